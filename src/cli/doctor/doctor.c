/*
 * spill doctor: finds problems of this machine, the environment and a program, with their reasons
 * and remedies.
 */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "cli.h"
#include "put.h"
#include "text.h"

enum level { PROBLEM, WARNING, FACT, LEVELS };
enum area { PROGRAM, DEVICE, HOST, ENVIRONMENT };

static const char *const level_names[] = {"problem", "warning", "fact"};
static const char *const area_names[] = {"program", "device", "host", "environment"};

static const struct row {
	const char *name;
	enum level level;
	enum area area;
	const char *why, *remedy;
} rows[] = {
#define FINDING(id, level, area, why, remedy) {#id, level, area, why, remedy},
#include "findings.def"
};

/* In the order of the checks. */
#define MOST_FINDINGS 512
static struct found {
	const struct row *row;
	char *observation;
} found[MOST_FINDINGS];
static unsigned found_count;

void doctor_find(enum doctor_finding finding, const char *format, ...)
{
	va_list arguments;
	char *observation;
	int length;

	va_start(arguments, format);
	length = vasprintf(&observation, format, arguments);
	va_end(arguments);
	if (length < 0)
		return;
	if (found_count == MOST_FINDINGS) {
		free(observation);
		return;
	}
	found[found_count++] = (struct found){&rows[finding], observation};
}

const char *doctor_size(uint64_t bytes)
{
	static char sizes[4][32];
	static unsigned next;
	char *size = sizes[next++ % 4];
	struct spill_text text = spill_text_begin(size, sizeof(sizes[0]));

	spill_text_size(&text, bytes);
	return size;
}

bool doctor_is_there(const struct doctor_patient *patient, const char *path)
{
	char whole[4096];

	return (size_t)snprintf(whole, sizeof(whole), "%s%s", patient->root, path) < sizeof(whole) &&
	       access(whole, F_OK) == 0;
}

static unsigned count_level(enum level level)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < found_count; i++)
		sum += found[i].row->level == level;
	return sum;
}

static void print_json_finding(const struct found *finding_found)
{
	const struct {
		const char *key, *value;
	} members[] = {{"{\"check\":", finding_found->row->name},
	               {",\"level\":", level_names[finding_found->row->level]},
	               {",\"area\":", area_names[finding_found->row->area]},
	               {",\"what\":", finding_found->observation},
	               {",\"why\":", finding_found->row->why},
	               {",\"do\":", finding_found->row->remedy}};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
		fputs(members[i].key, stdout);
		cli_print_json_string(stdout, members[i].value);
	}
	putchar('}');
}

/* The observation names files and variables, which must not control the terminal. */
static void print_text_finding(const struct found *finding_found)
{
	cli_printf("%s [%s] ", level_names[finding_found->row->level], area_names[finding_found->row->area]);
	cli_put(stdout, finding_found->observation);
	putchar('\n');
	if (finding_found->row->level == FACT) {
		if (finding_found->row->remedy[0])
			cli_printf("  %s; %s\n", finding_found->row->why, finding_found->row->remedy);
		return;
	}
	cli_printf("  why: %s\n  do:  %s\n", finding_found->row->why, finding_found->row->remedy);
}

/* Worst first. Findings of a level keep the order of the checks. */
static void print_all(bool json)
{
	bool first = true;

	for (enum level level = PROBLEM; level < LEVELS; level++) {
		for (unsigned i = 0; i < found_count; i++) {
			if (found[i].row->level != level)
				continue;
			if (json && !first)
				putchar(',');
			first = false;
			if (json)
				print_json_finding(&found[i]);
			else
				print_text_finding(&found[i]);
		}
	}
}

static int print_report(const char *program, bool json)
{
	unsigned problems = count_level(PROBLEM), warnings = count_level(WARNING), facts = count_level(FACT);

	if (json) {
		fputs("{\"program\":", stdout);
		if (program)
			cli_print_json_string(stdout, program);
		else
			fputs("null", stdout);
		fputs(",\"findings\":[", stdout);
		print_all(true);
		fputs("],\"links\":", stdout);
		doctor_print_links();
		printf(",\"problems\":%u,\"warnings\":%u,\"facts\":%u}\n", problems, warnings, facts);
	} else {
		print_all(false);
		cli_printf("%u problem%s, %u warning%s, %u fact%s%s\n", problems, problems == 1 ? "" : "s",
		           warnings, warnings == 1 ? "" : "s", facts, facts == 1 ? "" : "s",
		           problems || warnings ? "" : ": nothing stands in the way");
	}
	return cli_finish(problems || warnings ? CLI_FINDINGS : CLI_FINE);
}

/* Seconds from 1 to 600; 0: not a valid number. */
static unsigned read_seconds(const char *text)
{
	size_t length = strlen(text);
	unsigned long value =
	    length && length <= 3 && !text[strspn(text, "0123456789")] ? strtoul(text, NULL, 10) : 0;

	return value <= 600 ? (unsigned)value : 0;
}

static void read_overflow(struct cli_call *call, struct doctor_patient *patient)
{
	cli_call_size(call, &patient->overflow);
	if (!call->over && !patient->overflow)
		cli_call_refuse(call, "--overflow: the size must not be 0");
}

static int examine(const struct doctor_patient *patient, bool json)
{
	const struct spill_policy *policy;

	if (!patient->quick && isatty(STDERR_FILENO))
		fputs("spill doctor: tries the drivers and measures the link and the host's memory, for some "
		      "seconds "
		      "(--quick measures nothing)\n",
		      stderr);
	if (patient->program)
		doctor_look_at_program(patient);
	doctor_look_at_devices(patient);
	/*
	 * The environment comes after the program and the driver: judging the policy changes our
	 * variables.
	 */
	doctor_look_at_environment(patient);
	policy = doctor_look_at_policy(patient);
	doctor_look_at_host(patient, policy);
	return print_report(patient->program, json);
}

int cli_doctor(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	struct doctor_patient patient = {.root = "", .timeout_ms = 30000};
	bool json = false;

	while (cli_call_next(&call)) {
		if (call.option == CLI_doctor_json)
			json = true;
		else if (call.option == CLI_doctor_root)
			patient.root = call.value;
		else if (call.option == CLI_doctor_quick)
			patient.quick = true;
		else if (call.option == CLI_doctor_overflow)
			read_overflow(&call, &patient);
		else if (!(patient.timeout_ms = 1000 * read_seconds(call.value)))
			cli_call_refuse(&call, "--timeout: '%s' is not a number of seconds from 1 to 600",
			                call.value);
	}
	if (call.over)
		return call.status;
	if (patient.quick && patient.overflow)
		return cli_usage(argv[0], "--overflow needs the speed that --quick does not measure");
	if (call.count && !*call.operand[0])
		return cli_usage(argv[0], "'' is not the name of a program");
	patient.program = call.operand[0];
	return examine(&patient, json);
}

/* spill doctor: finds problems of a machine and a program, with reasons and remedies. */
#include "doctor.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "cli.h"
#include "json_out.h"
#include "put.h"

enum level { PROBLEM, WARNING, ADVICE, FACT, LEVELS };
enum area { PROGRAM, DEVICE, HOST, ENVIRONMENT };

static const char *const level_names[] = {"problem", "warning", "advice", "fact"};
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

	if (found_count == MOST_FINDINGS)
		return;
	va_start(arguments, format);
	if (vasprintf(&observation, format, arguments) >= 0)
		found[found_count++] = (struct found){&rows[finding], observation};
	va_end(arguments);
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

static void print_json_finding(struct spill_json *json, const struct found *finding)
{
	spill_json_object(cli_json_element(json));
	cli_json_text(json, "check", finding->row->name);
	cli_json_text(json, "level", level_names[finding->row->level]);
	cli_json_text(json, "area", area_names[finding->row->area]);
	cli_json_text(json, "what", finding->observation);
	cli_json_text(json, "why", finding->row->why);
	cli_json_text(json, "do", finding->row->remedy);
	spill_json_object_end(json);
}

/* The observation names files and variables, which must not control the terminal. */
static void print_text_finding(const struct found *finding)
{
	cli_printf("%s [%s] %s\n", level_names[finding->row->level], area_names[finding->row->area],
	           finding->observation);
	if (finding->row->level == FACT) {
		if (finding->row->remedy[0])
			cli_printf("  %s; %s\n", finding->row->why, finding->row->remedy);
		return;
	}
	cli_printf("  why: %s\n  do:  %s\n", finding->row->why, finding->row->remedy);
}

/* Worst first, up to `last`. Findings of a level keep the order of the checks. */
static void print_all(struct spill_json *json, enum level last)
{
	for (enum level level = PROBLEM; level <= last; level++) {
		for (unsigned i = 0; i < found_count; i++) {
			if (found[i].row->level == level && json)
				print_json_finding(json, &found[i]);
			else if (found[i].row->level == level)
				print_text_finding(&found[i]);
		}
	}
}

static void print_json(const char *program)
{
	struct spill_json json;

	cli_json_begin(&json);
	spill_json_object(&json);
	cli_json_text(&json, "program", program);
	spill_json_array(cli_json_key(&json, "findings"));
	print_all(&json, FACT);
	spill_json_array_end(&json);
	doctor_put_links(&json);
	cli_json_number(&json, "problems", count_level(PROBLEM));
	cli_json_number(&json, "warnings", count_level(WARNING));
	cli_json_number(&json, "advice", count_level(ADVICE));
	cli_json_number(&json, "facts", count_level(FACT));
	spill_json_object_end(&json);
	cli_json_end(&json);
}

static bool was_found(enum doctor_finding finding)
{
	for (unsigned i = 0; i < found_count; i++) {
		if (found[i].row == &rows[finding])
			return true;
	}
	return false;
}

static const char *verdict(void)
{
	if (count_level(PROBLEM))
		return "something does not work";
	if (count_level(WARNING))
		return "it works, but read the warnings";
	if (!was_found(DOCTOR_device))
		return "nothing stands in the way, but there is no GPU here for libspill to work with";
	return "nothing stands in the way";
}

static void print_count(const char *separator, unsigned count, const char *one, const char *many)
{
	cli_printf("%s%u %s", separator, count, count == 1 ? one : many);
}

/* The last line. */
static void print_verdict(bool verbose)
{
	unsigned facts = count_level(FACT);

	print_count("", count_level(PROBLEM), "problem", "problems");
	print_count(", ", count_level(WARNING), "warning", "warnings");
	if (count_level(ADVICE))
		print_count(", ", count_level(ADVICE), "piece of advice", "pieces of advice");
	print_count(", ", facts, "fact", "facts");
	cli_printf("%s: %s\n", facts && !verbose ? " (-v shows them)" : "", verdict());
}

static int print_report(const struct doctor_patient *patient, bool json)
{
	if (json) {
		print_json(patient->program);
	} else {
		print_all(NULL, patient->verbose ? FACT : ADVICE);
		print_verdict(patient->verbose);
	}
	return cli_finish(count_level(PROBLEM) || count_level(WARNING) ? CLI_FINDINGS : CLI_FINE);
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
	if (patient->program) {
		doctor_look_at_program(patient);
		doctor_look_at_model_file(patient);
	}
	doctor_look_at_devices(patient);
	/* Last, because judging the policy changes our variables. */
	doctor_look_at_environment(patient);
	policy = doctor_look_at_policy(patient);
	doctor_look_at_host(patient, policy);
	return print_report(patient, json);
}

int cli_doctor(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	struct doctor_patient patient = {.root = "", .timeout_ms = 30000};
	bool json = false;

	while (cli_call_next(&call)) {
		if (call.option == CLI_doctor_json)
			json = true;
		else if (call.option == CLI_doctor_verbose)
			patient.verbose = true;
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
	patient.words = call.operand;
	return examine(&patient, json);
}

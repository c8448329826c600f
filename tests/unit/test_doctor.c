/* What `spill doctor` looks at, on a machine without drivers, and its sums of what it found. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "cli.h"
#include "commands.h"
#include "doctor.h"
#include "doctor_driver.h"

/* In place of driver.c: what a trial of any driver finds. */
static struct driver_facts facts;
static const char *const no_files[] = {"libdriver.so", NULL};
const struct driver_vendor driver_cuda = {.name = "NVIDIA", .files = no_files};
const struct driver_vendor driver_hip = {.name = "AMD", .files = no_files};

const struct driver_facts *driver_try(const struct driver_vendor *vendor, unsigned timeout_ms, bool copying)
{
	return vendor == &driver_cuda ? &facts : NULL;
}

static char root[] = "/tmp/spill-doctor-XXXXXX", said[1 << 16];

static int make_root(void **state)
{
	char path[64];
	FILE *file;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof(path), "%s/proc", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/proc/meminfo", root);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("MemTotal: 99999999 kB\nMemAvailable: 67108864 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n", file);
	fclose(file);
	return 0;
}

static int remove_root(void **state)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

/* Findings that are there before the look begins. */
static enum doctor_finding earlier[4];
static unsigned earlier_count;

/* In a child, because the findings are kept for the life of a process. Returns its exit status. */
static int run_doctor(char **words)
{
	FILE *out = tmpfile();
	int status, count = 0;
	pid_t child;

	assert_non_null(out);
	while (words[count])
		count++;
	fflush(NULL);
	child = fork();
	if (child == 0) {
		clearenv();
		setenv("HOME", root, 1);
		setenv("CUDA_VISIBLE_DEVICES", "1,0", 1);
		dup2(fileno(out), STDOUT_FILENO);
		dup2(fileno(out), STDERR_FILENO);
		for (unsigned i = 0; i < earlier_count; i++)
			doctor_find(earlier[i], "earlier %u", i);
		exit(cli_doctor(count, words));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	rewind(out);
	said[fread(said, 1, sizeof(said) - 1, out)] = '\0';
	fclose(out);
	return WEXITSTATUS(status);
}

#define DOCTOR(...) run_doctor((char *[]){"doctor", "--root", root, __VA_ARGS__, NULL})

static int forget(void **state)
{
	facts = (struct driver_facts){0};
	earlier_count = 0;
	return 0;
}

TEST_WITH(a_program_is_looked_at_if_one_is_named, NULL, forget)
{
	char file[64];

	DOCTOR("--quick", "-v");
	assert_non_null(strstr(said, "fact [device] no GPU driver"));
	assert_non_null(strstr(said, "fact [environment] CUDA_VISIBLE_DEVICES=1,0\n"));
	assert_null(strstr(said, "[program]"));
	assert_int_equal(DOCTOR("--quick", "-v", "--", "/nonexistent/program"), CLI_FINDINGS);
	assert_non_null(strstr(said, "problem [program] /nonexistent/program is not there\n"));
	assert_non_null(strstr(said, "\n1 problem, "));
	/* One that cannot be executed is the end of it: nothing else is looked at. */
	assert_int_equal(DOCTOR("--quick", "-v", "--", root), CLI_FINDINGS);
	assert_non_null(strstr(said, ": it is a folder\n"));
	assert_non_null(strstr(said, "\n1 problem, "));
	snprintf(file, sizeof(file), "%s/proc/meminfo", root);
	assert_int_equal(DOCTOR("--quick", "-v", "--", file), CLI_FINDINGS);
	assert_non_null(strstr(said, "/proc/meminfo: it may not be executed\n"));
	assert_non_null(strstr(said, "\n1 problem, "));
	assert_int_equal(DOCTOR("--quick", ""), CLI_USAGE);
}

/* A driver that does not load is told in the loader's words. One that is absent is no problem. */
TEST_WITH(a_driver_that_does_not_load_is_a_problem, NULL, forget)
{
	strcpy(facts.problem, "libdriver.so: file too short");
	assert_int_equal(DOCTOR("--quick", "-v"), CLI_FINDINGS);
	assert_non_null(strstr(
	    said, "problem [device] NVIDIA's driver cannot be loaded: libdriver.so: file too short\n"));
	assert_null(strstr(said, "no GPU driver"));
	facts.problem[0] = '\0';
	DOCTOR("--quick", "-v");
	assert_null(strstr(said, "cannot be loaded"));
}

static int number(const cJSON *report, const char *name)
{
	const cJSON *member = cJSON_GetObjectItem(report, name);

	assert_true(cJSON_IsNumber(member));
	return member->valueint;
}

/* Sums of each level, and each finding with all that is told of it. */
TEST_WITH(a_report_as_json_has_all_that_was_found, NULL, forget)
{
	static const char *const levels[] = {"problem", "warning", "advice", "fact"};
	static const char *const sums[] = {"problems", "warnings", "advice", "facts"};
	static const char *const members[] = {"check", "level", "area", "what", "why", "do"};

	earlier[0] = DOCTOR_devices_several;
	earlier[1] = DOCTOR_device_held;
	earlier_count = 2;
	for (unsigned named = 0; named < 2; named++) {
		char *program = named ? "/nonexistent/program" : NULL;
		int counts[4] = {0}, sum = 0;
		cJSON *report;
		const cJSON *finding;

		assert_int_equal(DOCTOR("--quick", "--json", "--", program), CLI_FINDINGS);
		report = cJSON_Parse(said);
		assert_non_null(report);
		assert_int_equal(cJSON_IsNull(cJSON_GetObjectItem(report, "program")), !named);
		assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "links")), 0);
		assert_true(cJSON_IsArray(cJSON_GetObjectItem(report, "links")));
		cJSON_ArrayForEach(finding, cJSON_GetObjectItem(report, "findings"))
		{
			assert_int_equal(cJSON_GetArraySize(finding), 6);
			for (unsigned i = 0; i < 6; i++)
				assert_true(cJSON_IsString(cJSON_GetObjectItem(finding, members[i])));
			for (unsigned i = 0; i < 4; i++)
				counts[i] +=
				    !strcmp(cJSON_GetObjectItem(finding, "level")->valuestring, levels[i]);
		}
		for (unsigned i = 0; i < 4; i++) {
			assert_int_equal(number(report, sums[i]), counts[i]);
			sum += counts[i];
		}
		assert_int_equal(sum, cJSON_GetArraySize(cJSON_GetObjectItem(report, "findings")));
		assert_int_equal(counts[0], named);
		assert_true(counts[1] >= 1 && counts[2] >= 1 && counts[3] >= 1);
		cJSON_Delete(report);
	}
}

/* Two devices, of which one has a link that could not be measured. */
TEST_WITH(links_as_json, NULL, forget)
{
	static const char *const members[] = {"vendor",      "device",      "simulated", "to_device",
	                                      "from_device", "host_memory", "decode"};
	cJSON *report, *link;

	facts = (struct driver_facts){.stage = DRIVER_DONE, .finished = true, .complete = true, .count = 2};
	facts.devices[0].link = (struct driver_link){.problem = "the device is full"};
	facts.devices[1].link =
	    (struct driver_link){.to_device = 25.5, .from_device = 12.25, .simulated = true};
	DOCTOR("--json", "--overflow", "1GiB");
	report = cJSON_Parse(said);
	assert_non_null(report);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(report, "links")), 2);
	link = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "links"), 0);
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(link, "to_device")));
	assert_true(cJSON_IsNull(cJSON_GetObjectItem(link, "from_device")));
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(link, "decode")), 0);
	link = cJSON_GetArrayItem(cJSON_GetObjectItem(report, "links"), 1);
	assert_int_equal(cJSON_GetArraySize(link), 7);
	for (int i = 0; i < 7; i++)
		assert_string_equal(cJSON_GetArrayItem(link, i)->string, members[i]);
	assert_string_equal(cJSON_GetObjectItem(link, "vendor")->valuestring, "NVIDIA");
	assert_int_equal(number(link, "device"), 1);
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(link, "simulated")));
	assert_float_equal(cJSON_GetObjectItem(link, "to_device")->valuedouble, 25.5, 0.01);
	assert_float_equal(cJSON_GetObjectItem(link, "from_device")->valuedouble, 12.25, 0.01);
	assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(link, "decode")), 1);
	link = cJSON_GetArrayItem(cJSON_GetObjectItem(link, "decode"), 0);
	assert_int_equal(cJSON_GetArraySize(link), 3);
	assert_int_equal(number(link, "bytes"), 1 << 30);
	assert_float_equal(cJSON_GetObjectItem(link, "ms")->valuedouble, 1073.741824 / (0.93 * 25.5), 0.01);
	cJSON_Delete(report);
	DOCTOR("-v");
	assert_non_null(strstr(said, "device 0: the link was not measured: the device is full\n"));
}

static bool ends_with(const char *end)
{
	size_t length = strlen(said), of = strlen(end);

	return length >= of && !strcmp(said + length - of, end);
}

/* The worst comes first. The last line sums up. */
TEST_WITH(the_verdict, NULL, forget)
{
	unsigned facts_found;

	assert_int_equal(DOCTOR("--quick"), CLI_FINE);
	assert_int_equal(sscanf(said, "0 problems, 0 warnings, %u facts (-v", &facts_found), 1);
	assert_true(
	    ends_with("(-v shows them): nothing stands in the way, but there is no GPU here for libspill "
	              "to work with\n"));
	DOCTOR("--quick", "-v");
	assert_true(
	    ends_with(" facts: nothing stands in the way, but there is no GPU here for libspill to work "
	              "with\n"));
	earlier[0] = DOCTOR_device;
	earlier_count = 1;
	assert_int_equal(DOCTOR("--quick"), CLI_FINE);
	assert_true(ends_with("(-v shows them): nothing stands in the way\n"));
	earlier[1] = DOCTOR_devices_several;
	earlier_count = 2;
	assert_int_equal(DOCTOR("--quick"), CLI_FINE);
	assert_non_null(strstr(said, "\n0 problems, 0 warnings, 1 piece of advice, "));
	earlier[2] = DOCTOR_device_held;
	earlier_count = 3;
	assert_int_equal(DOCTOR("--quick"), CLI_FINDINGS);
	assert_int_equal(strncmp(said, "warning [device] earlier 2\n", 27), 0);
	assert_non_null(strstr(said, "\nadvice [device] earlier 1\n"));
	assert_null(strstr(said, "earlier 0"));
	assert_non_null(strstr(said, "\n0 problems, 1 warning, 1 piece of advice, "));
	assert_true(ends_with(": it works, but read the warnings\n"));
	earlier[3] = DOCTOR_program_missing;
	earlier_count = 4;
	assert_int_equal(DOCTOR("--quick"), CLI_FINDINGS);
	assert_int_equal(strncmp(said, "problem [program] earlier 3\n", 28), 0);
	assert_true(ends_with(": something does not work\n"));
}

TEST_WITH(the_bounds_of_its_options, NULL, forget)
{
	static char *const good[] = {"1", "600"}, *const wrong[] = {"0", "601", "0600", "-1", "6x", ""};

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_int_equal(DOCTOR("--quick", "--timeout", good[i]), CLI_FINE);
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(DOCTOR("--quick", "--timeout", wrong[i]), CLI_USAGE);
		assert_non_null(strstr(said, "is not a number of seconds from 1 to 600"));
	}
	assert_int_equal(DOCTOR("--overflow", "0"), CLI_USAGE);
	assert_non_null(strstr(said, "--overflow: the size must not be 0"));
	assert_int_equal(DOCTOR("--overflow", "x"), CLI_USAGE);
	assert_null(strstr(said, "must not be 0"));
	assert_int_equal(DOCTOR("--quick", "--overflow", "1GiB"), CLI_USAGE);
	assert_non_null(strstr(said, "--overflow needs the speed"));
}

int main(void)
{
	return run_unit_tests(make_root, remove_root);
}

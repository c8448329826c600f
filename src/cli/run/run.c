/* spill run: sets the environment and calls exec. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "cli.h"
#include "config.h"
#include "framework.h"
#include "ini_file.h"
#include "options.h"
#include "preload.h"
#include "program_file.h"
#include "put.h"

static int set_variable(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return CLI_FINE;
	perror("spill run");
	return CLI_FINDINGS;
}

/* The library would refuse a bad file too late for the user to see. */
static int set_policy(const char *path)
{
	char full[PATH_MAX], problem[PATH_MAX + 1024], *data;
	size_t size;
	bool good;

	switch (spill_config_file_read(path, &data, &size, problem, sizeof(problem))) {
	case SPILL_CONFIG_FILE_ABSENT:
		return cli_usage("run", "%s: no such file", path);
	case SPILL_CONFIG_FILE_BAD:
		return cli_usage("run", "%s", problem);
	case SPILL_CONFIG_FILE_READ:
		break;
	}
	good = spill_ini_read(path, data, size, NULL, problem, sizeof(problem));
	free(data);
	if (!good)
		return cli_usage("run", "%s", problem);
	if (!realpath(path, full))
		return cli_usage("run", "%s: %s", path, strerror(errno));
	return set_variable("SPILL_POLICY", full);
}

/* A relative pattern counts from our folder, whose % are doubled. */
static int set_log(const char *pattern)
{
	char full[2 * PATH_MAX + 8], here[PATH_MAX];
	struct spill_policy policy;
	struct spill_error error;
	size_t length = 0;

	spill_policy_default(&policy);
	if (strcmp(pattern, "off") && pattern[0] && !strchr("/~", pattern[0])) {
		if (!getcwd(here, sizeof(here)))
			return cli_usage("run", "the current folder: %s", strerror(errno));
		for (const char *c = here; *c; c++) {
			if (*c == '%')
				full[length++] = '%';
			full[length++] = *c;
		}
		full[length++] = '/';
	}
	if (strlen(pattern) >= sizeof(full) - length)
		return cli_usage("run", "--log: the path is too long");
	strcpy(full + length, pattern);
	if (spill_option_set(&policy, "log", "path", full, &error))
		return cli_usage("run", "--log %s: %s", pattern, error.text);
	/* SPILL_LOG_PATH names the same option, and the library refuses both. */
	unsetenv("SPILL_LOG_PATH");
	return set_variable("SPILL_LOG", full);
}

/* Sets an option's variable after checking the value. */
static int set_option(const char *variable, const char *option, const char *value)
{
	struct spill_policy policy;
	struct spill_error error;

	spill_policy_default(&policy);
	if (spill_option_put(&policy, (unsigned)spill_option_find_variable(variable, &error), value, &error))
		return cli_usage("run", "%s: %s", option, error.text);
	return set_variable(variable, value);
}

/* A smaller limit is seldom meant, except 0: then all memory goes to the host. */
#define LEAST_LIMIT ((uint64_t)64 << 20)

/* A line from the terminal. The program may read the rest of it, so nothing is read ahead. */
static bool is_yes_typed(void)
{
	char first = '\n', next = '\n';

	for (bool at_start = true; read(STDIN_FILENO, &next, 1) == 1 && next != '\n'; at_start = false)
		first = at_start ? next : first;
	return first == 'y' || first == 'Y';
}

/* Asks whether a very small limit was meant. Without a terminal only says so. */
static int question_limit(const char *value)
{
	bool asks = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	struct spill_policy policy;
	struct spill_error error;

	spill_policy_default(&policy);
	if (spill_option_set(&policy, "device", "limit", value, &error) ||
	    policy.device_limit.kind != SPILL_AMOUNT_BYTES || !policy.device_limit.value ||
	    policy.device_limit.value >= LEAST_LIMIT)
		return CLI_FINE;
	if (!asks && cli_unit_forgotten(value))
		return CLI_FINE; /* said already */
	cli_fprintf(stderr, "spill run: --limit %s: the program may hold only %s of device memory", value,
	            spill_size(policy.device_limit.value).text);
	fputs(asks ? "; start the program? [y/N] " : "\n", stderr);
	if (!asks || is_yes_typed())
		return CLI_FINE;
	return cli_usage("run", "not started; give --limit another value");
}

static int set_limit(const char *value)
{
	int status = set_option("SPILL_DEVICE_LIMIT", "--limit", value);

	return status ? status : question_limit(value);
}

/* requested[]: values by enum cli_option_id; NULL: not given. */
static int set_environment(const char *const *requested, char *const *program)
{
	const char *framework = requested[CLI_run_torch] ? "pytorch" : NULL;
	int status = cli_preload();

	if (!status && requested[CLI_run_policy])
		status = set_policy(requested[CLI_run_policy]);
	if (!status && requested[CLI_run_profile])
		status = set_option("SPILL_PROFILE", "--profile", requested[CLI_run_profile]);
	if (!status && requested[CLI_run_log])
		status = set_log(requested[CLI_run_log]);
	if (!status && requested[CLI_run_limit])
		status = set_limit(requested[CLI_run_limit]);
	if (!status && framework)
		status = set_option("SPILL_RUN_FRAMEWORK", "--torch", framework);
	/* Last, because it depends on the policy. */
	return status ? status : cli_framework_set(program, framework);
}

/* Warns if libspill would do nothing. The program starts anyway, because it may start others. */
static void warn_if_inactive(const char *program)
{
	char reason[PROGRAM_TEXT];

	if (spill_config_disabled())
		cli_fprintf(stderr, "spill run: SPILL=%s is set, so libspill does nothing; unset SPILL\n",
		            getenv("SPILL"));
	if (program_bars(program, reason) != PROGRAM_FREE)
		cli_fprintf(stderr, "spill run: %s, so libspill is not loaded; see: spill doctor -- %s\n",
		            reason, program);
}

/* Returns a shell's exit status. A script may exist while its interpreter does not. */
static int report_exec_failure(const char *program)
{
	int error = errno;
	bool exists = error == ENOENT && strchr(program, '/') && !access(program, F_OK);

	cli_fprintf(stderr, "spill run: %s: %s%s\n", program, strerror(error),
	            exists ? " (for the interpreter or loader that the file names)" : "");
	return error == ENOENT ? 127 : 126;
}

int cli_run(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	const char *requested[CLI_OPTIONS] = {NULL};
	int status;

	while (cli_call_next(&call)) {
		if (requested[call.option] && call.value)
			cli_call_refuse(&call, "--%s is given twice: '%s' and '%s'",
			                cli_options[call.option].name, requested[call.option], call.value);
		else if (call.option == CLI_run_limit)
			cli_call_hint(&call);
		requested[call.option] = call.value ? call.value : "";
	}
	if (call.over)
		return call.status;
	if (!call.count)
		return cli_usage("run", "which program?");
	status = set_environment(requested, call.operand);
	if (status)
		return status;
	warn_if_inactive(call.operand[0]);
	execvp(call.operand[0], call.operand);
	return report_exec_failure(call.operand[0]);
}

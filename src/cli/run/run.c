/* spill run: the environment of a preload, and exec. Nothing of us is left in the process. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "cli.h"
#include "config.h"
#include "ini_file.h"
#include "options.h"
#include "preload.h"
#include "program_file.h"
#include "put.h"

static int set(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return CLI_FINE;
	perror("spill run");
	return CLI_FINDINGS;
}

/* Refused here rather than by the preload: the person is still looking. */
static int set_policy(const char *path)
{
	char whole[PATH_MAX], problem[PATH_MAX + 1024], *data;
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
	if (!realpath(path, whole))
		return cli_usage("run", "%s: %s", path, strerror(errno));
	return set("SPILL_POLICY", whole);
}

/* A relative pattern is meant from here, wherever the program goes; a % in our folder's name is a plain %. */
static int set_log(const char *pattern)
{
	char whole[2 * PATH_MAX + 8], here[PATH_MAX];
	struct spill_policy policy;
	struct spill_error error;
	size_t at = 0;

	spill_policy_default(&policy);
	if (strcmp(pattern, "off") && pattern[0] && !strchr("/~", pattern[0])) {
		if (!getcwd(here, sizeof(here)))
			return cli_usage("run", "the current folder: %s", strerror(errno));
		for (const char *c = here; *c; c++) {
			if (*c == '%')
				whole[at++] = '%';
			whole[at++] = *c;
		}
		whole[at++] = '/';
	}
	if (strlen(pattern) >= sizeof(whole) - at)
		return cli_usage("run", "--log: the path is too long");
	strcpy(whole + at, pattern);
	if (spill_option_set(&policy, "log", "path", whole, &error))
		return cli_usage("run", "--log %s: %s", pattern, error.text);
	/* Another name of the same option; two would be refused. */
	unsetenv("SPILL_LOG_PATH");
	return set("SPILL_LOG", whole);
}

/* An option by its variable; refused here, as the policy is. */
static int set_option(const char *variable, const char *option, const char *value)
{
	struct spill_policy policy;
	struct spill_error error;

	spill_policy_default(&policy);
	if (spill_option_put(&policy, (unsigned)spill_option_find_variable(variable, &error), value, &error))
		return cli_usage("run", "%s: %s", option, error.text);
	return set(variable, value);
}

/* `wish` is by enum cli_option_id; NULL: not asked for. */
static int set_environment(const char *const *wish)
{
	int status = cli_preload();

	if (!status && wish[CLI_run_policy])
		status = set_policy(wish[CLI_run_policy]);
	if (!status && wish[CLI_run_profile])
		status = set_option("SPILL_PROFILE", "--profile", wish[CLI_run_profile]);
	if (!status && wish[CLI_run_log])
		status = set_log(wish[CLI_run_log]);
	if (!status && wish[CLI_run_limit])
		status = set_option("SPILL_DEVICE_LIMIT", "--limit", wish[CLI_run_limit]);
	return status;
}

/* What would leave libspill out without a word. The program is started all the same: it may start others. */
static void warn(const char *program)
{
	char what[PROGRAM_TEXT];

	if (spill_config_disabled())
		cli_fprintf(stderr, "spill run: SPILL=%s is set, so libspill does nothing; unset SPILL\n",
		            getenv("SPILL"));
	if (program_bars(program, what) != PROGRAM_FREE)
		cli_fprintf(stderr, "spill run: %s, so libspill is not loaded; see: spill doctor -- %s\n",
		            what, program);
}

/* Exit status as shells have it. A script can be there, and its interpreter not. */
static int fail(const char *program)
{
	int error = errno;
	bool there = error == ENOENT && strchr(program, '/') && !access(program, F_OK);

	cli_fprintf(stderr, "spill run: %s: %s%s\n", program, strerror(error),
	            there ? " (for the interpreter or loader that the file names)" : "");
	return error == ENOENT ? 127 : 126;
}

int cli_run(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	const char *wish[CLI_OPTIONS] = {NULL};
	int status;

	while (cli_call_next(&call)) {
		if (wish[call.option]) /* which of them was meant? */
			cli_call_refuse(&call, "--%s is given twice: '%s' and '%s'",
			                cli_options[call.option].name, wish[call.option], call.value);
		else if (call.option == CLI_run_limit)
			cli_call_hint(&call);
		wish[call.option] = call.value;
	}
	if (call.over)
		return call.status;
	if (!call.count)
		return cli_usage("run", "which program?");
	status = set_environment(wish);
	if (status)
		return status;
	warn(call.operand[0]);
	execvp(call.operand[0], call.operand);
	return fail(call.operand[0]);
}

/* spill run: the environment of a preload, and exec. Nothing of us is left in the process. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "call.h"
#include "cli.h"
#include "configfile.h"
#include "ini_file.h"
#include "options.h"

#define PATH_SIZE (PATH_MAX + 64)

struct wish {
	const char *policy, *log, *limit;
};

static bool is_file(const char *path)
{
	return access(path, R_OK) == 0;
}

/* Beside the command (a build folder), or in the lib folder of where it is installed. */
static bool find_library(char path[PATH_SIZE])
{
	static const char *const places[] = {"libspill.so", "../lib/libspill.so",
	                                     "../lib/" SPILL_MULTIARCH "/libspill.so"};
	char folder[PATH_MAX], there[PATH_SIZE];
	ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
	char *slash;

	if (length <= 0)
		return false;
	folder[length] = '\0';
	slash = strrchr(folder, '/');
	if (!slash)
		return false;
	slash[1] = '\0';
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		snprintf(there, sizeof(there), "%s%s", folder, places[i]);
		if (is_file(there) && realpath(there, path))
			return true;
	}
	return false;
}

static bool in_list(const char *list, const char *path)
{
	size_t length = strlen(path);

	for (list += strspn(list, " :"); *list; list += strspn(list, " :")) {
		size_t item = strcspn(list, " :");

		if (item == length && !memcmp(list, path, length))
			return true;
		list += item;
	}
	return false;
}

static int set(const char *name, const char *value)
{
	if (!setenv(name, value, 1))
		return CLI_FINE;
	perror("spill run");
	return CLI_FINDINGS;
}

static int set_preload(void)
{
	const char *before = getenv("LD_PRELOAD");
	char library[PATH_SIZE], *list;
	int status;

	if (!find_library(library)) {
		fputs("spill run: libspill.so is neither beside this command nor in ../lib\n", stderr);
		return CLI_FINDINGS;
	}
	if (strpbrk(library, " :")) {
		fprintf(
		    stderr,
		    "spill run: the loader splits LD_PRELOAD at blanks and colons, so this cannot work: %s\n"
		    "move or link the library to a path that has neither\n",
		    library);
		return CLI_FINDINGS;
	}
	if (!before || !before[strspn(before, " :")])
		return set("LD_PRELOAD", library);
	if (in_list(before, library))
		return CLI_FINE;
	if (asprintf(&list, "%s:%s", before, library) < 0)
		return CLI_FINDINGS;
	status = set("LD_PRELOAD", list);
	free(list);
	return status;
}

/* Refused here rather than by the preload: the person is still looking. */
static int set_policy(const char *path)
{
	char whole[PATH_MAX], problem[PATH_MAX + 1024], *data;
	size_t size;
	bool good;

	switch (spill_configfile_read(path, &data, &size, problem, sizeof(problem))) {
	case SPILL_CONFIGFILE_ABSENT:
		return cli_usage("run", "%s: no such file", path);
	case SPILL_CONFIGFILE_BAD:
		return cli_usage("run", "%s", problem);
	case SPILL_CONFIGFILE_READ:
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

static int set_limit(const char *size)
{
	struct spill_policy policy;
	struct spill_error error;

	spill_policy_default(&policy);
	if (spill_option_set(&policy, "device", "limit", size, &error))
		return cli_usage("run", "--limit: %s", error.text);
	return set("SPILL_DEVICE_LIMIT", size);
}

static int set_environment(const struct wish *wish)
{
	int status = set_preload();

	if (!status && wish->policy)
		status = set_policy(wish->policy);
	if (!status && wish->log)
		status = set_log(wish->log);
	if (!status && wish->limit)
		status = set_limit(wish->limit);
	return status;
}

int cli_run(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	struct wish wish = {0};
	int status;

	while (cli_call_next(&call)) {
		if (call.option == CLI_run_policy)
			wish.policy = call.value;
		else if (call.option == CLI_run_log)
			wish.log = call.value;
		else
			wish.limit = call.value;
	}
	if (call.over)
		return call.status;
	if (!call.count)
		return cli_usage("run", "which program?");
	status = set_environment(&wish);
	if (status)
		return status;
	execvp(call.operand[0], call.operand);
	fprintf(stderr, "spill run: %s: %s\n", call.operand[0], strerror(errno));
	return errno == ENOENT ? 127 : 126; /* as shells do */
}

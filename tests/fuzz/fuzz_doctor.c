/*
 * A machine's files and variables as `spill doctor` judges them, below a root of its own: the loader's cache and preloads, the kernel's
 * version, NVIDIA's parameters, memory and swap, and the environment as /proc/self/environ has it. Each finding is kept here.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "doctor.h"
#include "elf_file.h"
#include "fuzz.h"
#include "fuzz_printed.h"
#include "fuzz_tree.h"
#include "options.h"
#include "put.h"

#define CACHE "/etc/ld.so.cache"
#define ENVIRON "/proc/self/environ"

static const char *const files[] = {CACHE,
                                    ENVIRON,
                                    "/etc/ld.so.preload",
                                    "/proc/meminfo",
                                    "/proc/version",
                                    "/proc/pressure/memory",
                                    "/proc/sys/kernel/osrelease",
                                    "/proc/driver/nvidia/params",
                                    "/sys/module/ttm/parameters/pages_limit",
                                    "/dev/kfd",
                                    "/dev/nvidiactl",
                                    "/dev/tdx_guest",
                                    "/run/.containerenv",
                                    "/tmp/nvidia-mps/control"};

/* -- in place of doctor.c and library.c ------------------------------------------------------- */

/* As the command prints it. */
void doctor_find(enum doctor_finding finding, const char *format, ...)
{
	va_list arguments;
	char *observation;

	fuzz_require(finding < DOCTOR_FINDINGS, "a finding of the table");
	va_start(arguments, format);
	fuzz_require(vasprintf(&observation, format, arguments) >= 0, "no memory");
	va_end(arguments);
	cli_printf("%s\n", observation);
	free(observation);
}

bool doctor_is_there(const struct doctor_patient *patient, const char *path)
{
	char whole[4096];

	return (size_t)snprintf(whole, sizeof(whole), "%s%s", patient->root, path) < sizeof(whole) &&
	       access(whole, F_OK) == 0;
}

/* A path of the cache is in the cache, and ends. No file is opened: fuzz_elf.c has them. */
bool doctor_open_library(const struct doctor_patient *patient, const char *name, char path[PATH_MAX],
                         struct elf_file *file)
{
	struct ld_cache cache;
	uint32_t from = 0, before = 0;
	size_t length;
	const char *content = fuzz_tree_content(CACHE, &length);

	ld_cache_read(&cache, patient->root);
	while (ld_cache_find(&cache, name, &from, path, PATH_MAX)) {
		fuzz_require(from > before && from <= cache.entries, "each entry once");
		fuzz_require(memmem(content, length, path, strlen(path) + 1) != NULL, "a path of the cache");
		before = from;
	}
	ld_cache_free(&cache);
	return false;
}

/* -- the input -------------------------------------------------------------------------------- */

#define MOST_VARIABLES 64

static char *const *variables(void)
{
	static char *list[MOST_VARIABLES + 1];
	static char text[8192];
	size_t length, count = 0;
	const char *content = fuzz_tree_content(ENVIRON, &length);

	length = length < sizeof(text) - 1 ? length : sizeof(text) - 1;
	if (length)
		memcpy(text, content, length);
	text[length] = '\0';
	for (size_t at = 0; at < length && count < MOST_VARIABLES; at += strlen(text + at) + 1)
		list[count++] = text + at;
	list[count] = NULL;
	return list;
}

static int judge(int argc, char **argv)
{
	struct doctor_patient patient = {.root = fuzz_tree_root()};
	struct elf_file file;
	struct spill_policy policy;
	char **own = environ, path[PATH_MAX];

	spill_policy_default(&policy);
	environ = (char **)variables();
	doctor_look_at_environment(&patient);
	doctor_look_at_host(&patient, &policy);
	environ = own;
	doctor_open_library(&patient, "libcuda.so.1", path, &file);
	return CLI_FINE;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool begun;

	if (!begun)
		fuzz_tree_begin(files, sizeof(files) / sizeof(files[0]));
	begun = true;
	fuzz_tree_fill(data, size);
	fuzz_run(judge, (const char *const[]){"doctor", NULL});
	return 0;
}

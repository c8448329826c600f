/* The functions of callers, read from a file of this machine: only from one that is surely that of the run. It is this test itself. */
#define SETUP setup
#define TEARDOWN teardown
#define KEEPS_DESCRIPTORS /* files stay open for later runs of a report */
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "elf_file.h"
#include "files.h"

static char own[PATH_MAX], boot[64], build_id[SPILL_BUILD_ID], changed[64], caller[64], first[64];
static struct utsname machine;
static struct spill_record_start start;
static struct cli_run_files files;
static char folder[] = "/tmp/spill-unit-XXXXXX";

__attribute__((noinline)) static void the_function_of_a_caller(void)
{
	assert_true(own[0]);
}

static void get_boot(void)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

	assert_non_null(file);
	assert_non_null(fgets(boot, sizeof(boot), file));
	boot[strcspn(boot, "\n")] = '\0';
	fclose(file);
}

/* When the file was changed last, in the form of a start line's time, and so many seconds later. */
static const char *time_of_change(time_t later)
{
	struct stat status;
	struct tm parts;
	struct timespec last;
	time_t seconds;

	assert_int_equal(stat(own, &status), 0);
	last = status.st_mtim;
	if (status.st_ctim.tv_sec > last.tv_sec ||
	    (status.st_ctim.tv_sec == last.tv_sec && status.st_ctim.tv_nsec > last.tv_nsec))
		last = status.st_ctim;
	seconds = last.tv_sec + later;
	gmtime_r(&seconds, &parts);
	snprintf(changed + strftime(changed, 40, "%Y-%m-%dT%H:%M:%S.", &parts), 20, "%06ldZ",
	         last.tv_nsec / 1000);
	return changed;
}

static void get_build_id(void)
{
	struct elf_file file = {0};

	elf_read(&file, open(own, O_RDONLY | O_CLOEXEC));
	assert_int_equal(file.kind, ELF_OURS);
	if (!elf_build_id(&file, build_id))
		build_id[0] = '\0';
	close(file.fd);
}

/* The start line of a run that was here, and began as the file was there already. */
static int setup(void **state)
{
	start = (struct spill_record_start){.program = "test_files",
	                                    .exe = own,
	                                    .host = machine.nodename,
	                                    .boot = boot,
	                                    .time = time_of_change(0)};
	return 0;
}

static int teardown(void **state)
{
	cli_run_files_free(&files);
	return 0;
}

static void function_is(const char *of, const char *name)
{
	char found[PLAIN_NAME] = "not set";

	cli_run_files_function(&files, of, found);
	assert_string_equal(found, name);
}

static const char *at(const char *file, const char *offset)
{
	static char text[200];

	snprintf(text, sizeof(text), "%.100s%.90s", file, offset);
	return text;
}

static const char known[] = "the_function_of_a_caller";

TEST(the_program_itself)
{
	char found[PLAIN_NAME];

	cli_run_files_begin(&files, &start);
	assert_true(files.here);
	function_is(at("test_files", caller), known);
	/* The first byte follows the last call of the function before. */
	cli_run_files_function(&files, at("test_files", first), found);
	assert_string_not_equal(found, known);
	function_is(NULL, "");
	function_is("test_files", "");
	function_is("test_files+", "");
	function_is("test_files+0x", "");
	function_is("test_files+0x0", "");
	function_is("other+0x10", "");
	function_is("test_file+0x10", "");
	strcat(caller, "g");
	function_is(at("test_files", caller), "");
	caller[strlen(caller) - 1] = '\0';
}

/* A caller's text has its function, if that is known. */
TEST(the_text_of_a_caller)
{
	char text[200];

	cli_run_files_begin(&files, &start);
	snprintf(text, sizeof(text), "test_files%s (%s)", caller, known);
	assert_string_equal(cli_caller_text(&files, at("test_files", caller)).text, text);
	assert_string_equal(cli_caller_text(&files, "other+0x10").text, "other+0x10");
	assert_string_equal(cli_caller_text(&files, NULL).text, "not known");
	assert_string_equal(cli_caller_text(NULL, "test_files+0x10").text, "test_files+0x10");
}

/* The file is not believed where another one may have had its name, or it was changed since. */
TEST(a_run_that_was_elsewhere_or_before)
{
	const struct spill_record_start here = start;

	for (unsigned i = 0; i < 8; i++) {
		start = here;
		start.time = time_of_change(0);
		if (i == 0)
			start.host = "another";
		else if (i == 1)
			start.host = NULL;
		else if (i == 2)
			start.boot = "another";
		else if (i == 3)
			start.boot = NULL;
		else if (i == 4)
			start.time = NULL;
		else if (i == 5)
			start.time = time_of_change(-1);
		else if (i == 6)
			start.program = NULL;
		else
			start.exe = NULL;
		cli_run_files_begin(&files, &start);
		function_is(at("test_files", caller), "");
	}
	start = here;
	start.time = time_of_change(1);
	cli_run_files_begin(&files, &start);
	function_is(at("test_files", caller), known);
}

static void add(const char *name, const char *path, const char *id)
{
	cli_run_files_add(&files, &(struct spill_record_file){.name = name, .path = path, .build_id = id});
}

/* With a build id in the log, it alone decides. Without, the file must have none. */
TEST(a_library_by_its_build_id)
{
	cli_run_files_begin(&files, &start);
	add("a", own, NULL);
	add("b", own, "0123456789abcdef");
	add("n", own + 1, build_id); /* a path that is no whole one */
	function_is(at("a", caller), build_id[0] ? "" : known);
	function_is(at("b", caller), "");
	function_is(at("n", caller), "");
	if (!build_id[0])
		skip();
	start.host = "another";
	cli_run_files_begin(&files, &start);
	add("libfoo+1.so", own, build_id);
	function_is(at("libfoo+1.so", caller), known);
	function_is(at("libfoo", caller), "");
	/* The program's own line comes later, and has its build id. */
	add("test_files", own, build_id);
	function_is(at("test_files", caller), known);
	assert_int_equal(files.count, 2);
}

/* Two libraries of one name: nobody knows which one called. */
TEST(files_of_one_name)
{
	if (!build_id[0])
		skip();
	add("same", own, build_id);
	add("same", own, build_id);
	function_is(at("same", caller), known);
	add("path", own, build_id);
	add("path", "/elsewhere", build_id);
	add("path", own, build_id);
	function_is(at("path", caller), "");
	add("id", own, build_id);
	add("id", own, NULL);
	function_is(at("id", caller), "");
	add("no id", own, NULL);
	add("no id", own, build_id);
	function_is(at("no id", caller), "");
}

TEST(most_files_of_a_run)
{
	char name[16];

	for (unsigned i = 0; i < CLI_RUN_FILES + 5; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		add(name, "/nowhere", NULL);
	}
	assert_int_equal(files.count, CLI_RUN_FILES);
	function_is("f3+0x10", "");
	cli_run_files_begin(&files, &start);
	assert_int_equal(files.count, 1);
}

/* It is closed again. */
TEST(a_file_without_functions)
{
	int before = dup(0);

	close(before);
	add("text", "/proc/sys/kernel/random/boot_id", build_id);
	function_is("text+0x10", "");
	assert_int_equal(dup(0), before);
	close(before);
}

TEST(the_object_of_a_caller)
{
	assert_int_equal(cli_caller_object("libfoo.so+0x1a"), 9);
	assert_int_equal(cli_caller_object("a+b.so+0x1a"), 6);
	assert_int_equal(cli_caller_object("libfoo.so"), 9);
	assert_int_equal(cli_caller_object("c++"), 3);
	assert_int_equal(cli_caller_object("f.py:a+b"), 8);
}

/* Files of no use are told apart once. Of 64 of them all stay known; further ones have no functions. */
TEST(most_files_of_a_report)
{
	char name[16], path[64];
	unsigned used = 0;

	if (!build_id[0])
		skip();
	for (unsigned i = 0; i < 70; i++) {
		char found[PLAIN_NAME];

		snprintf(name, sizeof(name), "l%u", i);
		snprintf(path, sizeof(path), "%s/%s", folder, name);
		assert_int_equal(symlink(own, path), 0);
		add(name, path, build_id);
		cli_run_files_function(&files, at(name, caller), found);
		unlink(path);
		if (!found[0])
			break;
		assert_string_equal(found, known);
		used++;
	}
	/* The paths of the tests before: this one, /nowhere, and perhaps more. */
	assert_in_range(used, 60, 63);
	function_is(at("l0", caller), known);
	snprintf(path, sizeof(path), "l%u", used - 1);
	function_is(at(path, caller), known);
}

int main(void)
{
	ssize_t length = readlink("/proc/self/exe", own, sizeof(own) - 1);
	uint64_t begin = 0;
	Dl_info info;
	struct elf_file file = {0};
	struct elf_functions functions = {0};
	int failed;

	if (length <= 0 || uname(&machine) || !mkdtemp(folder) ||
	    !dladdr((void *)(uintptr_t)the_function_of_a_caller, &info))
		return 1;
	begin = (uint64_t)(uintptr_t)the_function_of_a_caller - (uint64_t)(uintptr_t)info.dli_fbase;
	get_boot();
	get_build_id();
	elf_read(&file, open(own, O_RDONLY | O_CLOEXEC));
	if (!elf_functions_read(&functions, &file, 1 << 20))
		return 1;
	for (size_t i = 0; i < functions.count; i++) {
		if (functions.list[i].address != begin)
			continue;
		snprintf(caller, sizeof(caller), "+%#lx", begin + functions.list[i].bytes);
		snprintf(first, sizeof(first), "+%#lx", begin);
	}
	free(functions.list);
	close(file.fd);
	failed = run_unit_tests(NULL, NULL);
	rmdir(folder);
	return failed;
}

/* A vendor's driver that does not load, and one that crashes. A library that is absent is no problem, any other that cannot be loaded is one. */
#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "doctor_driver.h"

static char folder[] = "/tmp/spill-driver-XXXXXX", path[2][64];

/* Two files that are no libraries. */
static int make_files(void **state)
{
	assert_non_null(mkdtemp(folder));
	for (unsigned i = 0; i < 2; i++) {
		FILE *file;

		snprintf(path[i], sizeof(path[i]), "%s/%u.so", folder, i);
		file = fopen(path[i], "w");
		assert_non_null(file);
		fputs("no library\n", file);
		fclose(file);
	}
	return 0;
}

static int remove_files(void **state)
{
	for (unsigned i = 0; i < 2; i++)
		unlink(path[i]);
	return rmdir(folder);
}

/* The loader tries these, the first one first. Nothing of a driver that does not load is asked for. */
static const struct driver_facts *tried(const char *const *files)
{
	const struct driver_vendor vendor = {.name = "Vendor", .files = files, .start = "start"};
	const struct driver_facts *facts = driver_try(&vendor, 60000, true);

	assert_non_null(facts);
	assert_true(facts->finished);
	assert_int_equal(facts->end, DRIVER_ENDED);
	assert_int_equal(facts->stage, DRIVER_ABSENT);
	assert_string_equal(facts->library, "");
	return facts;
}

/* The loader's words, which begin with the name of the file. */
static void the_problem_is_of(const struct driver_facts *facts, const char *file)
{
	assert_memory_equal(facts->problem, file, strlen(file));
	assert_memory_equal(facts->problem + strlen(file), ": ", 2);
	assert_true(strlen(facts->problem) > strlen(file) + 2);
}

TEST(absent_libraries_are_no_problem)
{
	const char *const files[] = {"libspill-no-such.so.1", "/nonexistent/libspill.so", NULL};

	assert_string_equal(tried(files)->problem, "");
}

TEST(what_is_no_library_is_named)
{
	const char *const files[] = {path[0], NULL};

	the_problem_is_of(tried(files), path[0]);
}

/* Of several, the first is named: programs most likely use it. Absent ones around it change nothing. */
TEST(the_first_that_does_not_load_is_named)
{
	const char *const files[] = {"libspill-no-such.so.1", path[1], path[0], "libspill-no-such.so", NULL};

	the_problem_is_of(tried(files), path[1]);
}

static bool die(spill_resolve_fn *resolve)
{
	return raise(SIGKILL) != 0;
}

/* With the signal, and how far it came. */
TEST(a_driver_that_crashes_ends_the_trial_alone)
{
	const struct spill_backend backend = {.start = die};
	const struct driver_vendor vendor = {.name = "Vendor",
	                                     .backend = &backend,
	                                     .files = (const char *const[]){"libc.so.6", NULL},
	                                     .start = "abort"};
	const struct driver_facts *facts = driver_try(&vendor, 60000, true);

	assert_non_null(facts);
	assert_false(facts->finished);
	assert_int_equal(facts->end, DRIVER_CRASHED);
	assert_int_equal(facts->signal, SIGKILL);
	assert_int_equal(facts->stage, DRIVER_STARTING);
}

int main(void)
{
	return run_unit_tests(make_files, remove_files);
}

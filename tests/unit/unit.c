#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct CMUnitTest tests[64];
static size_t count;

static void leave_out(void **reason)
{
	print_message("left out: %s", (char *)*reason);
	skip();
}

/*
 * Tests that this machine cannot run, by the file that LEFT_OUT names (tests/aarch64/left_out). Its
 * lines are `PROGRAM / TEST: REASON`.
 */
static void find_left_out(const char *path)
{
	char line[512];
	FILE *file = path ? fopen(path, "re") : NULL;
	while (file && fgets(line, sizeof(line), file)) {
		char *slash = strstr(line, " / "), *colon = slash ? strstr(slash, ": ") : NULL;
		if (!colon)
			continue;
		*colon = '\0';
		for (size_t i = 0; i < count; i++)
			if (!strcmp(tests[i].name, slash + strlen(" / ")))
				tests[i] = (struct CMUnitTest){tests[i].name, leave_out, NULL, NULL,
				                               strdup(colon + strlen(": "))};
	}
	if (file)
		fclose(file);
}

void add_unit_test(const struct CMUnitTest *test)
{
	if (count == sizeof(tests) / sizeof(tests[0]))
		abort();
	tests[count++] = *test;
}

/* The macro of cmocka counts an array's elements, and this one is not full. */
int run_unit_tests(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	find_left_out(getenv("LEFT_OUT"));
	return _cmocka_run_group_tests("tests", tests, count, setup, teardown);
}

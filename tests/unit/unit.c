#include "unit.h"

#include <stdlib.h>

static struct CMUnitTest tests[64];
static size_t count;

void add_unit_test(const struct CMUnitTest *test)
{
	if (count == sizeof(tests) / sizeof(tests[0]))
		abort();
	tests[count++] = *test;
}

/* The macro of cmocka counts an array's elements, and this one is not full. */
int run_unit_tests(CMFixtureFunction setup, CMFixtureFunction teardown)
{
	return _cmocka_run_group_tests("tests", tests, count, setup, teardown);
}

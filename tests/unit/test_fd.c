/* Words about errors of the system. */
#include "unit.h"

#include <errno.h>
#include <limits.h>

#include "fd.h"

static void every_error_has_a_text(void **state)
{
	static const int unknown[] = {-1, 4095, INT_MAX, INT_MIN};

	assert_string_equal(spill_error_text(ENOSPC), "No space left on device");
	assert_string_equal(spill_error_text(EPERM), "Operation not permitted");
	for (unsigned i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
		assert_string_equal(spill_error_text(unknown[i]), "an unknown error");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(every_error_has_a_text)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Room off the stack: each has its own, however many there are; what was given back is used again; none is no harm. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "fake_libc.h"
#include "scratch.h"

#define MANY 50 /* more than are lent without a system call */

static void give_back(char **room)
{
	for (int i = 0; i < MANY; i++)
		spill_scratch_give_back(room[i]);
}

static void each_has_its_own(void **state)
{
	char *room[MANY];
	for (int i = 0; i < MANY; i++) {
		room[i] = spill_scratch_take();
		assert_non_null(room[i]);
		memset(room[i], i, SPILL_SCRATCH);
	}
	for (int i = 0; i < MANY; i++)
		for (size_t at = 0; at < SPILL_SCRATCH; at++)
			assert_int_equal(room[i][at], i);
	give_back(room);
}

static void given_back_is_used_again(void **state)
{
	fake_libc_reset();
	for (int i = 0; i < 100; i++) {
		void *one = spill_scratch_take(), *other = spill_scratch_take();
		spill_scratch_give_back(one);
		spill_scratch_give_back(other);
	}
	assert_int_equal(fake_libc[FAKE_mmap64].calls, 0);
}

static void none_is_no_harm(void **state)
{
	char *room[MANY];
	unsigned had = 0;
	fake_libc_fail(FAKE_mmap64, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	errno = EEXIST;
	for (int i = 0; i < MANY; i++) {
		room[i] = spill_scratch_take();
		had += room[i] != NULL;
	}
	assert_int_equal(errno, EEXIST); /* the program's */
	assert_in_range(had, 1, MANY - 1);
	give_back(room);
	fake_libc_reset();
	each_has_its_own(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_has_its_own),
	    cmocka_unit_test(given_back_is_used_again),
	    cmocka_unit_test(none_is_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

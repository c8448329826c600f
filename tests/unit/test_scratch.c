/* Room off the stack: each has its own, however many there are; what was given back is used again; none is no harm. */
#include <errno.h>
#include "unit.h"

#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_libc.h"
#include "fd.h"
#include "scratch.h"

#define MANY 50 /* more than are lent without a system call */

static void give_back(char **room)
{
	for (int i = 0; i < MANY; i++)
		spill_scratch_give_back(room[i]);
}

TEST(each_has_its_own)
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

TEST(given_back_is_used_again)
{
	fake_libc_reset();
	for (int i = 0; i < 100; i++) {
		void *one = spill_scratch_take(), *other = spill_scratch_take();
		spill_scratch_give_back(one);
		spill_scratch_give_back(other);
	}
	assert_int_equal(fake_libc[FAKE_mmap64].calls, 0);
}

TEST(what_had_to_be_mapped_is_unmapped)
{
	char *room[MANY];
	unsigned char pages[SPILL_SCRATCH / 4096];
	for (int i = 0; i < MANY; i++)
		room[i] = spill_scratch_take();
	assert_int_equal(mincore(room[MANY - 1], SPILL_SCRATCH, pages), 0);
	give_back(room);
	assert_int_equal(mincore(room[MANY - 1], SPILL_SCRATCH, pages), -1); /* nothing is mapped there */
}

static void nothing(void *data)
{
}

/* Its stack is such room. */
TEST(an_errand_keeps_none)
{
	fake_libc_reset();
	for (int i = 0; i < MANY; i++)
		assert_true(spill_fd_elsewhere(nothing, NULL));
	assert_int_equal(fake_libc[FAKE_mmap64].calls, 0);
}

TEST(none_is_no_harm)
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
	test_each_has_its_own(state);
}

/* The number of the launch that named a chunk last: threads note theirs in any order, and numbers wrap. */
#include "unit.h"

#include <stdatomic.h>

static uint32_t meanwhile; /* another thread's number, which it stores once, ahead of this thread; 0: none */

static void store_meanwhile(_Atomic uint32_t *at)
{
	if (meanwhile)
		*at = meanwhile;
	meanwhile = 0;
}

#undef atomic_compare_exchange_weak
#define atomic_compare_exchange_weak(at, expected, value) \
	(store_meanwhile(at), atomic_compare_exchange_strong(at, expected, value))
#include "launch_number.h"

static uint32_t note(uint32_t there, uint32_t number)
{
	_Atomic uint32_t last = there;
	spill_launch_number_note(&last, number);
	assert_int_equal(meanwhile, 0);
	return last;
}

TEST(a_later_number_is_later)
{
	assert_true(spill_launch_number_is_later(6, 5));
	assert_false(spill_launch_number_is_later(5, 5));
	assert_false(spill_launch_number_is_later(5, 6));
	assert_true(spill_launch_number_is_later(3, UINT32_MAX - 3));
	assert_false(spill_launch_number_is_later(UINT32_MAX - 3, 3));
}

/* Who was looked at first may note its number second. */
TEST(the_latest_number_stays)
{
	assert_int_equal(note(5, 6), 6);
	assert_int_equal(note(6, 5), 6);
	assert_int_equal(note(6, 6), 6);
	assert_int_equal(note(UINT32_MAX, 2), 2);
	assert_int_equal(note(2, UINT32_MAX), 2);
}

TEST(another_thread_notes_its_number_meanwhile)
{
	meanwhile = 6;
	assert_int_equal(note(5, 7), 7);
	meanwhile = 8;
	assert_int_equal(note(5, 7), 8);
}

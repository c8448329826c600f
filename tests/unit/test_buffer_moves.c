/* Where buffers were found that a launch has moved, with each limit at its value. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "buffer_moves.h"

#define PERIOD 64

static struct spill_buffer_moves moves;

static int begin(void **state)
{
	memset(&moves, 0, sizeof(moves));
	return 0;
}

/* A launch of now found the buffer elsewhere than a period ago. */
static void found(uint64_t now, uint32_t from, uint32_t to)
{
	spill_buffer_moves_found(&moves, now, now - PERIOD, from, to);
}

/* 0: it was not found. */
static uint32_t place(uint32_t of, uint64_t time, uint64_t period)
{
	uint32_t at = of;
	bool is = spill_buffer_moves_get(&moves, &at, time, period);

	assert_true(is || at == of);
	return is ? at : 0;
}

TEST(a_buffer_that_was_not_found)
{
	assert_int_equal(place(5, 0, PERIOD), 0);
	found(100, 5, 6);
	assert_int_equal(place(5, 0, PERIOD), 6);
	assert_int_equal(place(6, 0, PERIOD), 0);
}

/* A prediction can be wrong about a buffer that stays. */
TEST(a_buffer_that_stays)
{
	found(100, 5, 5);
	assert_int_equal(place(5, 0, PERIOD), 5);
}

/* What was accessed at the time of the launch, or since, is at its place already. */
TEST(a_move_is_of_buffers_accessed_before)
{
	found(100, 10, 20);
	assert_int_equal(place(10, 99, PERIOD), 20);
	assert_int_equal(place(10, 100, PERIOD), 0);
	/* So it is with a later move of another buffer. */
	found(200, 11, 21);
	assert_int_equal(place(10, 99, PERIOD), 20);
	assert_int_equal(place(10, 100, PERIOD), 0);
}

/* Up to an eighth of the period that is asked about. */
TEST(a_move_is_of_its_period)
{
	found(100, 10, 20);
	assert_int_equal(place(10, 0, 73), 20); /* 64 + 9 */
	assert_int_equal(place(10, 0, 74), 0);
	assert_int_equal(place(10, 0, 57), 20); /* 64 - 7 */
	assert_int_equal(place(10, 0, 56), 0);
}

TEST(the_last_place_counts)
{
	found(100, 10, 20);
	found(110, 10, 30);
	assert_int_equal(place(10, 0, PERIOD), 30);
}

/* More than the table has room for: a buffer may be forgotten, and never has another's place. */
TEST(no_buffer_has_the_place_of_another)
{
	unsigned kept = 0;

	for (uint32_t i = 1; i <= 4 * SPILL_BUFFER_MOVES; i++)
		found(100, i, i + 1000000);
	for (uint32_t i = 1; i <= 4 * SPILL_BUFFER_MOVES; i++) {
		uint32_t at = place(i, 0, PERIOD);

		assert_true(!at || at == i + 1000000);
		kept += at != 0;
	}
	assert_true(kept > SPILL_BUFFER_MOVES / 2);
}

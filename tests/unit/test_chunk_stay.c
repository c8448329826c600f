/* What a chunk on the host costs from one sweep to the next, and when an exchange for it is considered again. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "chunk_stay.h"

#define MS 1000000ull
#define GAP 100

static struct spill_chunk_stays stays;

static int begin(void **state)
{
	memset(&stays, 0, sizeof(stays));
	return 0;
}

static uint64_t add(uint32_t key, uint64_t use, uint64_t cost)
{
	return spill_chunk_stay_add(&stays, key, use, GAP, cost);
}

TEST(a_row_of_accesses_adds_up)
{
	assert_int_equal(add(7, 10, 3), 3);
	assert_int_equal(add(7, 11, 4), 7);
	assert_int_equal(add(8, 12, 1), 1);
	assert_int_equal(add(7, 11 + GAP, 5), 12);
}

/* Its first access says what all of it will cost. */
TEST(the_row_before_tells_what_this_one_costs)
{
	add(7, 10, 30);
	add(7, 11, 40);
	assert_int_equal(add(7, 1000, 1), 70);
	assert_int_equal(add(7, 1001, 80), 81);
	/* Now the row before was of 81. */
	assert_int_equal(add(7, 2000, 0), 81);
	assert_int_equal(add(7, 3000, 0), 0);
}

/* A chunk that comes within its row costs nothing from then on. The next row is expected to cost as much as this one would. */
TEST(the_row_of_a_chunk_that_came_counts_whole)
{
	add(7, 10, 30);
	add(7, 11, 40);
	spill_chunk_stay_whole(&stays, 7, 11, 100);
	assert_int_equal(add(7, 1000, 1), 130);
	/* That row was in place again. */
	assert_int_equal(add(7, 1001, 2), 130);
	assert_int_equal(add(7, 2000, 0), 3);
}

/* What the row before cost in place does not count for the one that a chunk comes ahead of. */
TEST(a_chunk_that_comes_early_has_no_row_yet)
{
	add(7, 10, 30);
	add(7, 11, 40);
	spill_chunk_stay_whole(&stays, 7, 900, 90);
	assert_int_equal(add(7, 1000, 1), 90);
}

TEST(what_is_told_may_be_less)
{
	add(7, 10, 30);
	spill_chunk_stay_whole(&stays, 7, 10, 30);
	assert_int_equal(add(7, 1000, 5), 30);
	spill_chunk_stay_whole(&stays, 7, 1000, 8);
	assert_int_equal(add(7, 1001, 0), 8);
	assert_int_equal(add(7, 2000, 0), 8);
}

TEST(a_chunk_that_does_not_pay_pauses_ever_longer)
{
	uint64_t now = 1000 * MS, pause = 10 * MS;
	assert_true(spill_chunk_stay_may_try(&stays, 7, now));
	add(7, 10, 30);
	for (unsigned i = 0; i < 12; i++) {
		spill_chunk_stay_verdict(&stays, 7, false, now);
		assert_false(spill_chunk_stay_may_try(&stays, 7, now + pause - 1));
		assert_true(spill_chunk_stay_may_try(&stays, 7, now + pause));
		pause = 2 * pause < 2000 * MS ? 2 * pause : 2000 * MS;
	}
	/* Others do not. */
	assert_true(spill_chunk_stay_may_try(&stays, 8, now));
	spill_chunk_stay_verdict(&stays, 7, true, now);
	assert_true(spill_chunk_stay_may_try(&stays, 7, now));
	spill_chunk_stay_verdict(&stays, 7, false, now);
	assert_true(spill_chunk_stay_may_try(&stays, 7, now + 10 * MS));
}

/* Two at one place: the later one replaces the other, whose cost is not taken for its own. */
TEST(a_full_table_forgets)
{
	for (uint32_t key = 1; key < 20 * SPILL_CHUNK_STAYS; key++)
		assert_int_equal(add(key, key, key), key);
	spill_chunk_stay_verdict(&stays, 1, false, MS);
	spill_chunk_stay_whole(&stays, 1, 1, 1000000);
	assert_true(spill_chunk_stay_may_try(&stays, 1, MS));
	assert_int_equal(add(1, 20 * SPILL_CHUNK_STAYS, 3), 3);
}

TEST(a_chunk_that_swapped_may_not_again_for_a_while)
{
	uint64_t now = 1000 * MS, pause = 1000 * MS;
	assert_true(spill_chunk_stay_may_swap(&stays, 7, now));
	add(7, 10, 30);
	assert_true(spill_chunk_stay_may_swap(&stays, 7, now));
	for (unsigned i = 0; i < 12; i++) {
		spill_chunk_stay_swapped(&stays, 7, now);
		assert_false(spill_chunk_stay_may_swap(&stays, 7, now + pause - 1));
		assert_true(spill_chunk_stay_may_swap(&stays, 7, now + pause));
		pause = 2 * pause < 600000 * MS ? 2 * pause : 600000 * MS;
	}
	assert_true(spill_chunk_stay_may_swap(&stays, 8, now));
	assert_int_equal(add(7, 11, 4), 34); /* its row goes on */
	/* One that was never on the host. */
	spill_chunk_stay_swapped(&stays, 9, now);
	assert_false(spill_chunk_stay_may_swap(&stays, 9, now + 1000 * MS - 1));
	assert_true(spill_chunk_stay_may_swap(&stays, 9, now + 1000 * MS));
}

TEST(a_gap_is_known_from_the_second_access_on)
{
	assert_true(spill_chunk_stay_gap(&stays, 7, 10) == UINT64_MAX);
	add(7, 10, 30);
	assert_int_equal(spill_chunk_stay_gap(&stays, 7, 10), 0);
	assert_int_equal(spill_chunk_stay_gap(&stays, 7, 25), 15);
	assert_true(spill_chunk_stay_gap(&stays, 8, 25) == UINT64_MAX);
}

/* Nobody waits for a chunk that was there from the begin. */
TEST(a_chunk_that_came_for_an_idle_one_has_to_pay)
{
	bool paid = true;
	assert_int_equal(spill_chunk_stay_left(&stays, 7, 1000, 5 * MS, &paid), 0);
	assert_false(paid);
	spill_chunk_stay_came(&stays, 7, 500, 5 * MS);
	assert_int_equal(spill_chunk_stay_left(&stays, 7, 499, 8 * MS, &paid), 3 * MS);
	assert_false(paid);
	assert_int_equal(spill_chunk_stay_left(&stays, 7, 499, 8 * MS, &paid), 0); /* once */
	spill_chunk_stay_came(&stays, 7, 500, 5 * MS);
	assert_int_equal(spill_chunk_stay_left(&stays, 7, 500, 8 * MS, &paid), 0);
	assert_true(paid);
	assert_int_equal(spill_chunk_stay_left(&stays, 7, 500, 8 * MS, &paid), 0);
	assert_false(paid);
	spill_chunk_stay_came(&stays, 7, 500, 5 * MS);
	assert_int_equal(spill_chunk_stay_left(&stays, 7, 499, 5 * MS, &paid),
	                 1); /* at once, and yet in vain */
	add(7, 10, 30);
	spill_chunk_stay_came(&stays, 7, 500, 5 * MS);
	assert_int_equal(add(7, 11, 4), 34); /* its row goes on */
}

/* Another chunk at its place knows nothing of that. */
TEST(what_pays_is_forgotten_with_the_chunk)
{
	bool paid;
	spill_chunk_stay_came(&stays, 7, 500, 5 * MS);
	for (uint32_t key = 8; key < 20 * SPILL_CHUNK_STAYS; key++)
		add(key, key, key);
	assert_int_equal(spill_chunk_stay_left(&stays, 7, 499, 8 * MS, &paid), 0);
	for (uint32_t key = 8; key < 20 * SPILL_CHUNK_STAYS; key++)
		assert_int_equal(spill_chunk_stay_left(&stays, key, 1, 8 * MS, &paid), 0);
}

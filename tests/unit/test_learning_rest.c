/* When accesses need not be learned: after a while in which next to nothing was lost in place. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "learning_rest.h"

#define MS 1000000ull
#define FIRST_MS 2000 /* before the first rest */

static struct spill_learning_rest rest;
static struct spill_learning_sums sums;
static uint64_t now;

static int begin(void **state)
{
	memset(&rest, 0, sizeof(rest));
	sums = (struct spill_learning_sums){.accesses = 700, .lost_ns = 900 * MS};
	now = 5000 * MS;
	return 0;
}

/* Accesses are learned for so long, and lose `lost_us` each ms. Until a rest is due: its length, or 0. */
static uint64_t watch(unsigned ms, unsigned lost_us)
{
	for (unsigned i = 0; i < ms; i++) {
		now += MS;
		sums.accesses += 100;
		sums.lost_ns += lost_us * 1000;
		uint64_t due = spill_learning_rest_due(&rest, now, sums, false);
		if (due)
			return due;
	}
	return 0;
}

/* Until accesses are learned again. */
static void sleep_for(uint64_t ns)
{
	now += ns;
	spill_learning_rest_ended(&rest, now, 0, sums, false);
}

TEST(rests_after_a_while)
{
	uint64_t from = now, due = watch(2 * FIRST_MS, 0);

	assert_in_range(now - from, FIRST_MS * MS, (FIRST_MS + 101) * MS);
	assert_in_range(due, FIRST_MS * MS / 16, (FIRST_MS + 101) * MS / 16);
}

TEST(rests_while_little_is_lost)
{
	assert_int_not_equal(watch(2 * FIRST_MS, 15), 0); /* a 66th */
	begin(NULL);
	assert_int_equal(watch(20 * FIRST_MS, 16), 0); /* a 62nd */
}

/* A rest is a sixteenth of the time without a loss, at most a second, and ever less of it is watched. */
TEST(rests_longer_and_longer)
{
	uint64_t from = now, watched = 0;

	for (unsigned i = 0; i < 60; i++) {
		uint64_t watch_from = now, due = watch(2 * FIRST_MS, 0);
		watched = now - watch_from;
		assert_in_range(due, 100 * MS, (now - from) / 16);
		assert_in_range(due, 0, 1000 * MS);
		sleep_for(due);
	}
	assert_int_equal(watch(FIRST_MS, 0), 1000 * MS);
	assert_in_range(watched, 125 * MS, 127 * MS);
}

TEST(wakes_for_a_loss)
{
	for (unsigned i = 0; i < 20; i++)
		sleep_for(watch(2 * FIRST_MS, 0));
	assert_int_equal(watch(200, 500), 0);
	assert_int_equal(watch(FIRST_MS - 200, 0), 0);
	assert_in_range(watch(400, 0), 1, 200 * MS); /* as short as the first */
}

/* What is lost in a rest is not seen, and counts for no window. */
TEST(begins_anew_behind_a_rest)
{
	uint64_t due = watch(2 * FIRST_MS, 0);

	sums.lost_ns += 50 * MS;
	sums.accesses += 1;
	sleep_for(due);
	assert_int_not_equal(watch(200, 0), 0);
}

TEST(waits_while_something_moves)
{
	for (unsigned i = 0; i < 100; i++) {
		assert_int_equal(watch(FIRST_MS - 200, 0), 0);
		assert_int_equal(spill_learning_rest_due(&rest, now, sums, true), 0);
	}
	assert_int_not_equal(watch(2 * FIRST_MS, 0), 0);
}

/* A graph is one launch of many kernels. */
TEST(learns_on_where_that_costs_nothing)
{
	for (unsigned i = 0; i < 20 * FIRST_MS; i++) {
		now += MS;
		sums.accesses += 15;
		assert_int_equal(spill_learning_rest_due(&rest, now, sums, false), 0);
	}
}

/* Nothing was launched meanwhile, so nothing is known of that time. */
TEST(time_without_launches_is_not_quiet)
{
	uint64_t due = watch(2 * FIRST_MS, 0);
	now += due + 3600 * 1000 * MS;
	spill_learning_rest_ended(&rest, now, 3600 * 1000 * MS, sums, false);
	assert_in_range(watch(200, 0), due, due + 30 * MS);
}

TEST(begins_anew_if_something_moved_in_the_rest)
{
	now += watch(2 * FIRST_MS, 0);
	spill_learning_rest_ended(&rest, now, 0, sums, true);
	assert_int_equal(watch(FIRST_MS - 100, 0), 0);
	assert_in_range(watch(400, 0), 1, 200 * MS);
}

/* When launches are not reported for a moment. The model, the memory and the clock are the test's. */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "access_model.h"
#include "chunked.h"
#include "fake_clock.h"
#include "rest.h"

#define MS 1000000ull
#define MISSED 1000000 /* bytes of a rest */

static struct {
	struct spill_access_activity activity;
	bool busy; /* the model's lock */
	uint64_t on_host;
} world;

static struct {
	unsigned told, rested;
	uint64_t watched_ns, rested_ns, bytes_before;
} seen;

bool spill_access_model_activity(struct spill_access_activity *activity)
{
	if (world.busy)
		return false;
	*activity = world.activity;
	world.activity.disturbed = false;
	return true;
}

void spill_access_model_rested(struct spill_access_activity *since, uint64_t watched_ns, uint64_t rested_ns)
{
	seen.rested++;
	seen.watched_ns = watched_ns;
	seen.rested_ns = rested_ns;
	seen.bytes_before = since->in_place.bytes;
	world.activity.in_place.bytes += MISSED;
	*since = world.activity;
}

uint64_t spill_chunked_on_host(void)
{
	return world.on_host;
}

/* As the observer (launch_access.c) does. */
void spill_chunked_tell(void)
{
	seen.told++;
	spill_rest_moved();
}

static int setup(void **state)
{
	fake_clock_use(5000 * MS);
	memset(&world, 0, sizeof(world));
	memset(&seen, 0, sizeof(seen));
	world.on_host = 64;
	spill_rest_reset();
	return 0;
}

/* Maintenance each ms. `lost_us`: each ms in place. */
static void run(unsigned ms, unsigned lost_us)
{
	while (ms--) {
		fake_clock.ns += MS;
		if (!spill_rest_on()) {
			world.activity.sums.accesses += 100;
			world.activity.sums.lost_ns += lost_us * 1000;
			world.activity.in_place.bytes++;
		}
		spill_rest_maintain();
	}
}

static void run_until(bool rests, unsigned most_ms)
{
	while (spill_rest_on() != rests && most_ms--)
		run(1, 0);
	assert_int_equal(spill_rest_on(), rests);
}

TEST(rests_begin_and_end)
{
	run(1900, 0);
	assert_false(spill_rest_on());
	run_until(true, 300);
	assert_int_equal(seen.told, 1);
	uint64_t began = fake_clock.ns;
	run_until(false, 300);
	assert_int_equal(seen.told, 2);
	assert_in_range(fake_clock.ns - began, 120 * MS, 150 * MS);
	run_until(true, 300);
	assert_int_equal(seen.told, 3);
	assert_int_equal(seen.rested, 1);
}

/* For the sums of accesses in place: how long accesses were learned, and how long not. */
TEST(the_model_is_told_what_it_missed)
{
	run_until(true, 3000);
	run_until(false, 300);
	assert_in_range(seen.watched_ns, 2000 * MS, 2200 * MS);
	assert_in_range(seen.rested_ns, 120 * MS, 150 * MS);
	assert_int_equal(seen.bytes_before, 1);
	uint64_t bytes = world.activity.in_place.bytes;
	run_until(true, 300);
	run_until(false, 300);
	assert_int_equal(seen.rested, 2);
	assert_in_range(seen.watched_ns, 99 * MS, 102 * MS);
	assert_int_equal(seen.bytes_before,
	                 bytes); /* with what was missed before, which so does not count again */
}

/* What was lost before the time that is watched says nothing about a rest. */
TEST(a_watch_begins_when_it_gets_quiet)
{
	run(3000, 500);
	uint64_t bytes = world.activity.in_place.bytes;
	run_until(true, 3000);
	run_until(false, 300);
	assert_in_range(seen.bytes_before, bytes, bytes + 100);
	assert_in_range(seen.watched_ns, 2000 * MS, 2200 * MS);
}

TEST(a_loss_keeps_it_awake)
{
	run_until(true, 3000);
	run_until(false, 300);
	run(150, 500);
	assert_false(spill_rest_on());
	run(1900, 0);
	assert_false(spill_rest_on());
	run_until(true, 300);
}

TEST(a_move_keeps_it_awake)
{
	for (unsigned i = 0; i < 5; i++) {
		run(1900, 0);
		world.activity.disturbed = true;
	}
	assert_int_equal(seen.told, 0);
}

TEST(other_memory_on_the_host_wakes)
{
	run_until(true, 3000);
	spill_rest_moved(); /* as much as before */
	run(1, 0);
	assert_true(spill_rest_on());
	world.on_host++;
	spill_rest_moved();
	run(1, 0);
	assert_false(spill_rest_on());
}

/* Nothing is used in place meanwhile. */
TEST(a_rest_that_ends_late_counts_as_long_as_it_was_to_be)
{
	run_until(true, 3000);
	fake_clock.ns += 3600 * 1000 * MS;
	run(1, 0);
	assert_false(spill_rest_on());
	assert_in_range(seen.rested_ns, 120 * MS, 150 * MS);
	/* Or until all memory left the host. */
	run_until(true, 3000);
	run(10, 0);
	world.on_host = 0;
	spill_rest_moved();
	fake_clock.ns += 3600 * 1000 * MS;
	spill_rest_moved();
	run(1, 0);
	assert_false(spill_rest_on());
	assert_in_range(seen.rested_ns, 10 * MS, 12 * MS);
}

/* Who holds the model's lock is asked again. */
TEST(a_busy_model_is_asked_later)
{
	world.busy = true;
	run(5000, 0);
	assert_false(spill_rest_on());
	world.busy = false;
	run_until(true, 3000);
}

TEST(a_forked_child_does_not_rest)
{
	run_until(true, 3000);
	spill_rest_reset();
	assert_false(spill_rest_on());
	run(1900, 0);
	assert_false(spill_rest_on());
	assert_int_equal(seen.rested, 0);
	run_until(true, 300);
}

/* As if it had moved before. */
TEST(a_rest_that_something_disturbs_is_the_last_for_a_while)
{
	run_until(true, 3000);
	world.activity.disturbed = true;
	run_until(false, 300);
	run(1900, 0);
	assert_false(spill_rest_on());
	run_until(true, 300);
	world.on_host++;
	spill_rest_moved();
	run_until(false, 2);
	run(1900, 0);
	assert_false(spill_rest_on());
	/* Or beside a rest. */
	world.on_host++;
	run(1900, 0);
	assert_false(spill_rest_on());
	run_until(true, 300);
}

/*
 * When memory flies in: what a launch waits for, which chunks may fly beside the work that is not done, and what the gate is told.
 * Flights, the gate and the model are replaced. They tell their names.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include "overlap_calls.h"

TEST(only_by_the_policy)
{
	assert_true(spill_overlap_wanted());
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	assert_false(spill_overlap_wanted());
	assert_false(spill_overlap_away());
	world.flight = 4;
	assert_true(spill_overlap_away());
}

/* -- looking ------------------------------------------------------------------------------------ */

TEST(a_launch_lands_what_it_needs)
{
	assert_string_equal(look(0, false), "");
	world.flight = 4;
	assert_string_equal(look(0, false), "lock:0 unlock:0");
	world.touches = true;
	assert_string_equal(look(0, false), "lock:0 unlock:0");
	world.up = true;
	assert_string_equal(look(0, true), "lock:0 land:2097152 exchanged:0 unlock:0");
	world.up = world.arrived = true;
	world.touches = false;
	world.came = 0;
	assert_string_equal(look(0, true), "lock:0 land:0 unlock:0");
	world.up = true;
	world.arrived = false;
	assert_string_equal(look(0, false), "lock:0 unlock:0");
	world.touches = world.busy = true;
	assert_string_equal(look(0, false), "");
}

/* The gate has such a launch wait for everything. */
TEST(a_launch_that_nobody_knows_looks_at_nothing)
{
	struct spill_launch_access access = launch_of(0);
	world.flight = world.touches = world.up = true;
	access.unknown = true;
	assert_false(spill_overlap_look(&access));
	assert_false(spill_overlap_bring(&access, &advice));
	access.unknown = false;
	access.count = SPILL_LAUNCH_ACCESS_KEYS;
	assert_false(spill_overlap_look(&access));
	assert_false(spill_overlap_bring(&access, &advice));
	assert_string_equal(what_was_said(), "");
	access.unknown = true;
	access.count = 1;
	spill_overlap_ahead(&access, &advice);
	assert_string_equal(what_was_said(), "clear:99");
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:99");
}

TEST(who_wants_the_mover_ends_the_flight)
{
	look(0, false);
	world.land();
	assert_string_equal(what_was_said(), "end:2097152 exchanged:0");
	world.came = 0;
	world.land();
	assert_string_equal(what_was_said(), "end:0");
}

/* What has left and did not come is mapped for the launch. The number that the gate gets is that behind it. */
TEST(what_is_away_is_mapped)
{
	const struct spill_launch_access access = launch_of(0);
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:0");
	world.flight = 4;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:4");
	world.touches = true;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "lock:0 map:1 unlock:0 clear:5");
	world.up = true;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "lock:0 land:2097152 exchanged:0 map:1 unlock:0 clear:6");
	world.busy = true;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:99");
}

/* -- flights ------------------------------------------------------------------------------------ */

static const char marked[] =
    "clear:0 lock:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 clear:1 unlock:0";

TEST(a_flight_ahead)
{
	assert_string_equal(ahead(0), marked);
	assert_true(world.asked.ahead);
	assert_int_equal(world.asked.slice, 128 << 20);
	assert_int_equal(world.asked.room, 11);
	assert_int_equal(world.asked.spare, SPILL_EXCHANGE_KEPT);
	assert_int_equal(world.asked.horizon, 10);
	assert_int_equal(world.asked.count, CHUNKS);
	/* One at a time. */
	assert_string_equal(ahead(0), "clear:1 lock:0 unlock:0");
	world.up = false;
	world.on_host = 0;
	assert_string_equal(ahead(0), "clear:1");
	world.on_host = 1;
	world.busy = true;
	assert_string_equal(ahead(0), "clear:1");
	assert_int_equal(world.free_calls, 1);
}

/* Then it is not tried again at once. */
TEST(a_flight_that_cannot_begin)
{
	bool *const reasons[] = {&world.only, &world.may_move, &world.chooses, &world.begins};
	for (unsigned i = 0; i < 4; i++) {
		setup(NULL);
		*reasons[i] = false;
		ahead(0);
		assert_false(world.up);
		assert_string_equal(ahead(0), "clear:0 lock:0 unlock:0");
		fake_clock.ns += 300 * US - 1;
		*reasons[i] = true;
		assert_string_equal(ahead(0), "clear:0 lock:0 unlock:0");
		fake_clock.ns++;
		ahead(0);
		assert_true(world.up);
	}
	setup(NULL);
	world.gone = true;
	assert_string_equal(ahead(0), "clear:0 lock:0 unlock:0");
	setup(NULL);
	world.no_memory = true;
	assert_string_equal(ahead(0), "clear:0 lock:0 close:1 mark:0 open:0 destroy:0 unlock:0");
	assert_int_equal(world.free_calls, 1);
}

/* For a launch that needs it now: all that it needs, and no more. */
TEST(a_flight_for_a_launch)
{
	assert_string_equal(
	    bring(0, true),
	    "lock:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 land:2097152 exchanged:0 unlock:0");
	assert_false(world.asked.ahead);
	assert_int_equal(world.asked.slice, 0);
	world.up = true;
	world.came = 0;
	assert_string_equal(bring(0, false), "lock:0 land:0 choose:1 begin:1 land:0 unlock:0");
	world.begins = false;
	assert_string_equal(bring(0, false), "lock:0 choose:1 begin:0 unlock:0");
	world.busy = true;
	assert_string_equal(bring(0, false), "");
}

/* -- work that is done -------------------------------------------------------------------------- */

/* The last launch is not submitted yet, so nothing that it names flies; by its allocation, or by its chunk. */
TEST(what_work_uses_stays)
{
	ahead(0);
	assert_string_equal(world.fixed, "ffff");
	made.chunked.exact_begins = true;
	world.up = false;
	ahead(1);
	assert_string_equal(world.fixed, ".f.f"); /* the last one never flies */
	assert_true(world.is_used(&made.chunked, 1));
	assert_false(world.is_used(&made.chunked, 0));
	world.up = false;
	ahead(2);
	assert_string_equal(world.fixed, "..ff");
	/* An entry that names nothing may use everything. */
	world.unclear++;
	assert_true(world.is_used(&made.chunked, 0));
}

/* Only the keys of the launch count. Chunks can share an entry, and then both are in use. */
TEST(chunks_of_a_launch)
{
	struct spill_launch_access access = launch_of(0);
	made.chunked.exact_begins = true;
	access.keys[1] = FIRST_KEY + 1;
	spill_overlap_ahead(&access, &advice);
	assert_string_equal(world.fixed, "f..f");
	world.up = false;
	uint32_t same = FIRST_KEY + CHUNKS;
	while (spill_hash_key(same, USED_BITS) != spill_hash_key(FIRST_KEY + 2, USED_BITS))
		same++;
	access.keys[0] = FIRST_KEY + 2;
	access.keys[2] = same;
	access.count = 3;
	spill_overlap_ahead(&access, &advice);
	assert_string_equal(world.fixed, ".fff");
}

/* A launch that waited for its memory is not submitted, and none is at first: the next launch is the first one. */
TEST(work_behind_the_last_mark_is_not_done)
{
	made.chunked.exact_begins = true;
	bring(0, true);
	world.up = false;
	assert_string_equal(ahead(1), "clear:1 lock:0 choose:1 begin:1 clear:2 unlock:0");
	assert_string_equal(world.fixed, ".f.f");
}

/* As long as a mark has not passed, work behind the mark before counts as not done. */
TEST(a_mark_that_has_not_passed)
{
	made.chunked.exact_begins = true;
	world.passes = false;
	assert_string_equal(ahead(0),
	                    "clear:0 lock:0 close:1 mark:0 open:0 unlock:0"); /* no mark has ever passed */
	assert_int_equal(world.looks, 8);
	fake_clock.ns += 300 * US;
	assert_string_equal(ahead(1), "clear:0 lock:0 unlock:0");
	fake_clock.ns += 300 * US;
	world.passes = true;
	/* That mark was placed before the launch of chunk 0 was submitted; the next one is placed by the next try. */
	assert_string_equal(
	    ahead(2),
	    "clear:0 lock:0 destroy:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 clear:1 unlock:0");
	assert_string_equal(world.fixed, "..ff");
	world.up = false;
	world.passes = false;
	ahead(3);
	assert_string_equal(world.fixed, "..ff");
}

TEST(marks_that_would_tell_too_much)
{
	static const char none[] = "clear:0 lock:0 close:1 open:0 unlock:0";
	world.others_clear = true;
	assert_string_equal(ahead(0), none);
	setup(NULL);
	set_capturing(true);
	assert_string_equal(ahead(0), none);
	set_capturing(false);
	setup(NULL);
	world.mark_fails = true;
	assert_string_equal(ahead(0), "clear:0 lock:0 close:1 mark:1 open:0 unlock:0");
	setup(NULL);
	world.closes = false;
	assert_string_equal(ahead(0), "clear:0 lock:0 close:0 unlock:0");
}

/* Its event ended with it. */
TEST(a_mark_of_a_context_that_ended)
{
	world.passes = false;
	ahead(0);
	world.birth = 2;
	world.passes = true;
	fake_clock.ns += 300 * US;
	assert_string_equal(
	    ahead(0), "clear:0 lock:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 clear:1 unlock:0");
}

TEST(a_child_begins_anew)
{
	ahead(0);
	world.up = false;
	what_was_said();
	spill_overlap_reset();
	assert_string_equal(what_was_said(), "reset:0");
	world.flight = 0;
	assert_string_equal(ahead(0), marked);
}

/*
 * What promotion calls, and in which order: which chunks it tries, what it gives back when memory is short, and at
 * which moment it looks. All that it calls is replaced. test_promote.c has the whole of it.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdlib.h>

#include "capture.h"
#include "demote.h"
#include "device_room.h"
#include "fake_clock.h"
#include "host_chunks.h"
#include "movable.h"
#include "process.h"
#include "promote.h"
#include "quiesce.h"
#include "said_batch.h"
#include "walked_chunks.h"

#define MS 1000000ull
#define LOOK (SPILL_PROMOTE_LOOK_MS * MS)
#define CHUNK 4096

static struct spill_policy policy;
static struct spill_backend vendor;
static struct {
	bool hopeless, all_dead; /* all_dead: nothing on the host counts, so it need not come */
	unsigned gets, refused;  /* calls for device memory. The one with this number, from 1, is refused */
	unsigned looks;
} world;

/* -- in place of the device -------------------------------------------------------------------- */

bool spill_device_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t *handle)
{
	if (++world.gets == world.refused)
		return false;
	*handle = world.gets;
	return true;
}

void spill_device_chunk_put(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t handle,
                            uint64_t view)
{
	say("put", handle);
}

/* A look at the device, which is idle. A call that is inside may return until the deadline. */
bool spill_quiesce_look(const struct spill_backend *backend, int device, uint64_t gate_ns,
                        uint64_t deadline_ns)
{
	assert_true(gate_ns > fake_clock.ns);
	world.looks++;
	return true;
}

/* -- in place of what decides ------------------------------------------------------------------ */

bool spill_movable_may_move(const struct spill_backend *backend, int device)
{
	return true;
}

bool spill_capture_any(void)
{
	return false;
}

bool spill_chunked_is_held(void)
{
	return false;
}

void spill_gate_want_maintenance(void)
{
}

bool spill_mover_trylock(void)
{
	return true;
}

void spill_mover_unlock(void)
{
}

uint64_t spill_log_now_us(void)
{
	return 0;
}

/* All allocations of the device with bytes on the host, oldest first. */
struct spill_victim *spill_victim_list(int device, bool on_host, uint64_t older_than, unsigned *count)
{
	struct spill_victim *list = calloc(WALKED, sizeof(*list));
	assert_true(on_host);
	*count = 0;
	for (unsigned i = 0; i < walked_count && !world.all_dead; i++)
		if (walked[i].chunked.base.device == device && spill_chunked_away(&walked[i].chunked))
			list[(*count)++].data = &walked[i].chunked;
	return list;
}

bool spill_demote_held(struct spill_demotion *demotion, bool recheck)
{
	say("demote", demotion->bytes);
	demotion->hopeless = world.hopeless;
	return true;
}

/* ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	fake_clock_use(1000 * MS);
	walk_nothing();
	memset(&world, 0, sizeof(world));
	device_room = device_reserve = 0;
	memset(&batch_world, 0, sizeof(batch_world));
	what_was_said();
	spill_promote_reset();
	return 0;
}

static int teardown(void **state)
{
	spill_promote_reset();
	return 0;
}

static struct spill_chunked *on_host(unsigned count)
{
	return walk_one_more(&vendor, count, CHUNK, true);
}

/* The next look, as maintenance makes it in time. */
static void look(void)
{
	spill_promote_wanted();
	fake_clock.ns += LOOK;
	spill_promote_maintain();
}

TEST(chunks_come_in_order_as_far_as_there_is_room)
{
	on_host(2);
	on_host(2);
	device_room = 3 * CHUNK;
	look();
	assert_string_equal(what_was_said(), "add:10 add:11 add:20 carry:3 settle:3 report:3 end:3");
}

/* Nothing was chosen, and the batch is ended all the same: it may have memory. */
TEST(the_driver_refuses_the_first_chunk)
{
	on_host(2);
	device_room = 2 * CHUNK;
	world.refused = 1;
	look();
	assert_int_equal(world.gets, 1);
	assert_string_equal(what_was_said(), "end:0");
}

/* What has been chosen comes. The driver is not asked for more. */
TEST(the_driver_refuses_a_later_chunk)
{
	on_host(3);
	device_room = 3 * CHUNK;
	world.refused = 2;
	look();
	assert_int_equal(world.gets, 2);
	assert_string_equal(what_was_said(), "add:10 carry:1 settle:1 report:1 end:1");
}

TEST(without_memory_for_bookkeeping_the_driver_is_asked_once)
{
	on_host(3);
	device_room = 3 * CHUNK;
	batch_world.no_memory = true;
	look();
	assert_int_equal(world.gets, 1);
	assert_string_equal(what_was_said(), "add:10 put:1 end:0");
}

/* A program is disturbed by a look at its device only if a chunk would fit. Chunks that stay do not count. */
TEST(the_smallest_chunk_that_may_come_decides)
{
	struct spill_chunked *mixed = on_host(3);
	mixed->chunks[0].bytes = CHUNK / 4;
	mixed->chunks[0].on_host = false;
	mixed->chunks[2].bytes = CHUNK / 4;
	mixed->stays_from = 2 * CHUNK; /* the last one stays */
	device_room = CHUNK - 1;
	look();
	assert_int_equal(world.looks, 0);
	device_room = CHUNK;
	look();
	assert_int_equal(world.looks, 1);
	assert_string_equal(what_was_said(), "add:11 carry:1 settle:1 report:1 end:1");
}

TEST(a_large_chunk_leaves_the_room_to_a_smaller_one)
{
	on_host(1)->chunks[0].bytes = 2 * CHUNK;
	on_host(1);
	device_room = CHUNK;
	look();
	assert_string_equal(what_was_said(), "add:20 carry:1 settle:1 report:1 end:1");
}

/* An older allocation leaves. The newcomer is the first to take the room, and the others keep their order. */
TEST(a_newcomer_comes_before_all_others)
{
	on_host(1);
	on_host(1);
	on_host(2)->owed = true;
	on_host(1);
	device_room = 5 * CHUNK;
	look();
	assert_string_equal(what_was_said(),
	                    "demote:8192 add:30 add:31 add:10 add:20 add:40 carry:5 settle:5 report:5 end:5");
}

/* As long as it comes, or nothing comes, it is still to come. */
TEST(a_newcomer_is_owed_its_room)
{
	static const struct {
		uint64_t room;
		bool others, hopeless, stays, owed;
	} cases[] = {
	    {1, false, false, false, true}, {0, false, false, false, true}, {1, false, true, false, false},
	    {1, true, false, false, true},  {1, false, false, true, true},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(NULL);
		struct spill_chunked *owed = on_host(2);
		owed->owed = true;
		if (cases[i].others)
			on_host(1);
		device_room = cases[i].room * CHUNK;
		world.hopeless = cases[i].hopeless;
		batch_world.stays = cases[i].stays;
		look();
		assert_int_equal(owed->owed, cases[i].owed);
	}
}

/* Others come, and nothing of it: its chunks are too large. */
TEST(a_newcomer_whose_room_others_take_is_given_up)
{
	struct spill_chunked *owed = on_host(1);
	owed->owed = true;
	owed->chunks[0].bytes = owed->base.held.host = owed->range = owed->stays_from = 3 * CHUNK;
	on_host(1);
	device_room = CHUNK;
	look();
	assert_false(owed->owed);
	assert_string_equal(what_was_said(), "demote:12288 add:20 carry:1 settle:1 report:1 end:1");
}

/* They may be used again, so looks go on. */
TEST(dead_chunks_need_not_come)
{
	on_host(1);
	device_room = CHUNK;
	world.all_dead = true;
	look();
	world.all_dead = false;
	fake_clock.ns += LOOK - 1;
	assert_true(spill_promote_maintain());
	assert_int_equal(world.looks, 0);
	assert_string_equal(what_was_said(), "");
	fake_clock.ns++;
	spill_promote_maintain();
	assert_string_equal(what_was_said(), "add:10 carry:1 settle:1 report:1 end:1");
}

/* Devices beyond those that libspill serves have nothing to come back. */
TEST(what_cannot_come_is_not_waited_for)
{
	struct spill_chunked *beyond = on_host(1);
	beyond->base.device = SPILL_DEVICES;
	spill_promote_wanted();
	fake_clock.ns += LOOK;
	assert_false(spill_promote_maintain());
	beyond->base.device = SPILL_DEVICES - 1;
	device_room = CHUNK;
	look();
	assert_string_equal(what_was_said(), "add:10 carry:1 settle:1 report:1 end:1");
}

/* Not before, and no call later. */
TEST(the_look_is_made_at_its_time)
{
	on_host(1);
	device_room = CHUNK;
	spill_promote_wanted();
	fake_clock.ns += LOOK - 1;
	spill_promote_maintain();
	assert_int_equal(world.looks, 0);
	fake_clock.ns++;
	spill_promote_maintain();
	assert_int_equal(world.looks, 1);
}

static void a_newcomer(void)
{
	device_room = CHUNK;
	on_host(1);
	spill_promote_wanted();
}

/* It is made by another thread, while a look finds that nothing is away. It waits as long as any. */
TEST(a_newcomer_beside_a_look_waits_its_time)
{
	walk_ends = a_newcomer;
	look();
	assert_int_equal(world.looks, 0);
	fake_clock.ns += LOOK - 1;
	assert_true(spill_promote_maintain());
	assert_int_equal(world.looks, 0);
	fake_clock.ns++;
	spill_promote_maintain();
	assert_int_equal(world.looks, 1);
}

/* The child has none of its parent's chunks. */
TEST(a_forked_child_looks_for_nothing)
{
	spill_promote_wanted();
	spill_promote_reset();
	assert_false(spill_promote_maintain());
}

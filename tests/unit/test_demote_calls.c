/*
 * What a demotion calls, and in which order: who may leave, what is given back when memory is short, and what is carried
 * out. All that it calls is replaced. test_promote.c has the whole of it.
 */
#define SETUP setup
#include "unit.h"

#include <stdlib.h>

#include "capture.h"
#include "demote.h"
#include "device_room.h"
#include "exchange.h"
#include "host_chunks.h"
#include "movable.h"
#include "process.h"
#include "promote.h"
#include "said_batch.h"
#include "walked_chunks.h"

#define CHUNK 4096

static const struct spill_vendor_moves moves;
static const struct spill_backend vendor = {.moves = &moves};
static struct spill_policy policy;
static struct {
	bool busy;
	uint64_t dead_seq;      /* the age of an allocation in which nothing counts */
	unsigned gets, refused; /* calls for host memory. The one with this number, from 1, is refused */
} world;

/* -- in place of the device and the host ------------------------------------------------------- */

bool spill_reserve_begin(int device)
{
	say("reserve", device);
	return true;
}

const char *spill_host_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes,
                                 struct spill_host_chunk *chunk)
{
	if (++world.gets == world.refused)
		return "no host memory";
	*chunk = (struct spill_host_chunk){.handle = world.gets, .bytes = bytes};
	return NULL;
}

void spill_host_chunk_put(const struct spill_backend *backend, int device,
                          const struct spill_host_chunk *chunk, bool keep)
{
	say(keep ? "keep" : "put", chunk->handle);
}

void spill_host_chunks_ahead(const struct spill_backend *backend, int device, const uint64_t *sizes,
                             unsigned count)
{
	say("ahead", count);
}

/* -- in place of the mover and what decides ---------------------------------------------------- */

bool spill_mover_trylock(void)
{
	say("try", !world.busy);
	return !world.busy;
}

void spill_mover_lock(void)
{
	say("lock", 0);
}

void spill_mover_unlock(void)
{
	say("unlock", 0);
}

bool spill_capture_any(void)
{
	return false;
}

bool spill_movable_may_move(const struct spill_backend *backend, int device)
{
	return true;
}

uint64_t spill_exchange_drop(void)
{
	return 0;
}

void spill_promote_hold(void)
{
	say("hold", 0);
}

bool spill_chunked_is_dead(const struct spill_chunked *chunked)
{
	return chunked->seq == world.dead_seq;
}

uint64_t spill_log_now_us(void)
{
	return 0;
}

/* ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	walk_nothing();
	memset(&world, 0, sizeof(world));
	device_room = device_reserve = device_held = device_charged = 0;
	device_limit = UINT64_MAX;
	memset(&batch_world, 0, sizeof(batch_world));
	what_was_said();
	return 0;
}

static struct spill_chunked *on_device(unsigned count)
{
	return walk_one_more(&vendor, count, CHUNK, false);
}

static struct spill_chunked *on_host(unsigned count)
{
	return walk_one_more(&vendor, count, CHUNK, true);
}

static struct spill_demotion demotion_for(unsigned chunks)
{
	return (struct spill_demotion){
	    .backend = &vendor, .bytes = chunks * CHUNK, .reason = SPILL_REASON_OOM, .api = "", .caller = ""};
}

/* Their ages, in order, as a decimal number. */
static unsigned ages(bool of_host, uint64_t older_than)
{
	unsigned count, number = 0;
	struct spill_victim *list = spill_victim_list(0, of_host, older_than, &count);
	for (unsigned i = 0; i < count; i++)
		number = 10 * number + (unsigned)((const struct spill_chunked *)list[i].data)->seq;
	free(list);
	return number;
}

/* -- who may leave, and come ------------------------------------------------------------------- */

/* Large ones first, but the newest of a priority is the last. */
TEST(who_leaves_first_comes_last)
{
	for (unsigned i = 0; i < WALKED; i++) {
		struct spill_chunked *both = on_device(2);
		both->base.held = (struct spill_bytes){.device = CHUNK, .host = CHUNK};
	}
	walked[0].chunked.priority = SPILL_PRIORITY_HOT;
	walked[2].chunked.base.bytes *= 4;
	walked[3].chunked.base.bytes *= 4;
	assert_int_equal(ages(false, 0), 3241);
	assert_int_equal(ages(true, 0), 1423);
	assert_int_equal(ages(false, 3), 21);
}

/* Cache that a growing pool never reuses, and chunks in which nothing counts. */
TEST(dead_cache_leaves_before_all_others)
{
	for (unsigned i = 0; i < WALKED; i++)
		on_device(1);
	walked[1].chunked.dead = true;
	assert_int_equal(ages(false, 0), 2134);
	walked[1].chunked.dead = false;
	world.dead_seq = 3;
	assert_int_equal(ages(false, 0), 3124);
}

/* Chunks in which nothing counts may stay on the host. What is on the device need not come. */
TEST(only_live_chunks_on_the_host_come)
{
	on_host(1);
	on_host(1);
	on_device(1);
	assert_int_equal(ages(true, 0), 21);
	assert_int_equal(ages(false, 0), 3);
	world.dead_seq = 2;
	assert_int_equal(ages(true, 0), 1);
}

static void one_more(void)
{
	on_device(1);
}

/* Another thread allocates between the count and the list. It comes into the next one. */
TEST(an_allocation_beside_a_list_is_not_in_it)
{
	on_device(1);
	on_device(1);
	walk_ends = one_more;
	assert_int_equal(ages(false, 0), 12);
	assert_int_equal(ages(false, 0), 123);
}

/* -- a demotion -------------------------------------------------------------------------------- */

/* From the end of an allocation, and no more than are missing. */
TEST(a_demotion_from_begin_to_end)
{
	struct spill_demotion demotion = demotion_for(3);
	policy.host_ahead = (struct spill_amount){SPILL_AMOUNT_BYTES, 1};
	on_device(2);
	on_device(2);
	assert_true(spill_demote(&demotion));
	assert_int_equal(demotion.freed, 3 * CHUNK);
	assert_string_equal(what_was_said(),
	                    "try:1 add:11 add:10 add:21 carry:3 settle:3 report:3 ahead:1 end:3 "
	                    "hold:0 reserve:0 unlock:0");
}

/* What is charged for a request that is not served yet is no memory beside it, so that it is not asked for twice. */
TEST(a_limit_counts_a_request_once)
{
	struct spill_demotion demotion = demotion_for(2);
	demotion.keeps_reserve = true;
	device_reserve = CHUNK;
	device_room = 2 * CHUNK;
	device_held = 4 * CHUNK;
	device_charged = 2 * CHUNK;
	device_limit = 6 * CHUNK;
	on_device(4);
	assert_true(spill_demote(&demotion));
	assert_int_equal(demotion.freed, CHUNK);
	what_was_said();
}

/* Another thread moves. It is waited for. */
TEST(the_mover_is_waited_for)
{
	struct spill_demotion demotion = demotion_for(1);
	world.busy = true;
	device_room = CHUNK;
	on_device(1);
	assert_true(spill_demote(&demotion)); /* with the room that there is now */
	assert_string_equal(what_was_said(), "try:0 lock:0 unlock:0");
}

TEST(without_memory_for_bookkeeping_host_memory_is_put_back)
{
	struct spill_demotion demotion = demotion_for(1);
	batch_world.no_memory = true;
	on_device(2);
	assert_false(spill_demote(&demotion));
	assert_string_equal(demotion.error, "no memory for bookkeeping");
	assert_string_equal(what_was_said(), "try:1 add:11 keep:1 settle:0 report:0 end:0 unlock:0");
}

/* No chunk leaves then, unless a part of the room helps. The batch is settled all the same. */
TEST(host_memory_for_a_part)
{
	for (unsigned part = 0; part < 2; part++) {
		setup(NULL);
		struct spill_demotion demotion = demotion_for(2);
		demotion.part_helps = part;
		world.refused = 2;
		on_device(2);
		assert_false(spill_demote(&demotion));
		assert_string_equal(demotion.error, "no host memory");
		assert_int_equal(demotion.freed, part * CHUNK);
		assert_string_equal(what_was_said(),
		                    part ? "try:1 add:11 carry:1 settle:1 report:1 end:1 hold:0 "
		                           "reserve:0 unlock:0"
		                         : "try:1 add:11 settle:1 report:1 end:1 unlock:0");
	}
}

/* Only the reserve lacks bytes, and nothing can leave for it. The device is left alone. */
TEST(nothing_leaves_for_the_reserve)
{
	struct spill_demotion demotion = demotion_for(1);
	device_room = 2 * CHUNK;
	device_reserve = 2 * CHUNK;
	on_host(1);
	assert_true(spill_demote(&demotion));
	assert_string_equal(what_was_said(), "try:1 settle:0 report:0 end:0 unlock:0");
}

TEST(a_busy_device_is_left_alone)
{
	struct spill_demotion demotion = demotion_for(1);
	batch_world.no_chance = true;
	on_device(1);
	assert_false(spill_demote(&demotion));
	assert_string_equal(demotion.error, "movable.wait: the device is busy");
	assert_string_equal(what_was_said(), "try:1 settle:0 report:0 end:0 unlock:0");
}

/* What the moves say is the reason. */
TEST(moves_that_fail_are_the_reason)
{
	struct spill_demotion demotion = demotion_for(1);
	batch_world.error = "the driver refused to move";
	batch_world.stays = true;
	on_device(1);
	assert_false(spill_demote(&demotion));
	assert_int_equal(demotion.freed, 0);
	assert_string_equal(demotion.error, batch_world.error);
	assert_string_equal(what_was_said(), "try:1 add:10 carry:1 settle:1 report:1 end:1 unlock:0");
}

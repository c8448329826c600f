/*
 * Which chunks go back to the side from which exchanges displaced them, in which order, and when that ends. Exchanges are
 * replaced, and tell what they are handed.
 */
#define SETUP setup
#include "unit.h"

#include "exchange.h"
#include "fake_clock.h"
#include "process.h"
#include "promote.h"
#include "said.h"
#include "walked_chunks.h"

#define MIB (1ull << 20)
#define HALF (SPILL_PROMOTE_SLICE / 2)

static const struct spill_backend vendor;
static struct spill_policy policy;
static struct {
	uint64_t room, kept;
	bool busy, wanted, no_memory;
} world;

uint64_t spill_promote_room(const struct spill_backend *backend, int device)
{
	return world.room;
}

uint64_t spill_exchange_kept(void)
{
	return world.kept;
}

bool spill_mover_wanted(void)
{
	return world.wanted;
}

bool spill_exchange_add(struct spill_exchange *exchange, struct spill_chunked *chunked, unsigned index)
{
	struct spill_chunk *chunk = &chunked->chunks[index];
	struct spill_move_batch *batch = chunk->on_host ? &exchange->comes : &exchange->goes;
	say(chunk->on_host ? "comes" : "goes", chunked->seq * 10 + index);
	if (world.no_memory)
		return false;
	batch->count++;
	batch->bytes += chunk->bytes;
	return true;
}

void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns)
{
	assert_int_equal(deadline_ns - fake_clock.ns, policy.movable_wait_us * 1000);
	say("carry", exchange->comes.count + exchange->goes.count);
	exchange->ns = !world.busy;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_wait_us = 3000;
	spill_process_use_policy(&policy);
	fake_clock_use(1000);
	walk_nothing();
	memset(&world, 0, sizeof(world));
	what_was_said();
	return 0;
}

/* The next `count` chunks of it, from the first on, were displaced to the side where they are. */
static struct spill_chunked *displaced(unsigned of, uint64_t bytes, bool on_host, unsigned count)
{
	struct spill_chunked *chunked = walk_one_more(&vendor, of, bytes, on_host);
	for (unsigned i = 0; i < count; i++)
		chunked->chunks[i].displaced = true;
	return chunked;
}

static bool restore(void)
{
	return spill_restore(&vendor, 0);
}

TEST(nothing_was_displaced)
{
	displaced(3, MIB, true, 0);
	displaced(3, MIB, false, 0);
	world.room = 10 * MIB;
	assert_true(restore());
	assert_string_equal(what_was_said(), "");
}

/* For each chunk that comes, as many leave as it lacks room. */
TEST(chunks_change_places)
{
	displaced(2, 2 * MIB, true, 2);
	displaced(3, MIB, false, 3);
	world.room = MIB;
	assert_true(restore());
	assert_string_equal(what_was_said(), "goes:20 comes:10 goes:21 goes:22 comes:11 carry:5");
}

/* Memory that exchanges keep is room, too. */
TEST(kept_memory_is_room)
{
	displaced(2, MIB, true, 2);
	world.room = MIB;
	world.kept = MIB;
	assert_true(restore());
	assert_string_equal(what_was_said(), "comes:10 comes:11 carry:2");
}

/* Chunks have left, but not enough for the next one. They may not have left in vain. */
TEST(room_that_does_not_suffice)
{
	displaced(1, 4 * MIB, true, 1);
	displaced(2, MIB, false, 2);
	assert_true(restore());
	assert_string_equal(what_was_said(), "goes:20 goes:21 carry:2");
}

/* A slice is as large as that of a promotion, and no larger. Then the next one begins where it ended. */
TEST(one_slice_after_the_other)
{
	displaced(3, HALF, true, 3);
	world.room = 4 * HALF;
	assert_true(restore());
	assert_string_equal(what_was_said(), "comes:10 comes:11 carry:2 comes:12 carry:1");
}

TEST(another_thread_wants_the_mover)
{
	displaced(3, HALF, true, 3);
	world.room = 4 * HALF;
	world.wanted = true;
	assert_false(restore());
	assert_string_equal(what_was_said(), "comes:10 comes:11 carry:2");
}

TEST(the_device_is_busy)
{
	displaced(3, HALF, true, 3);
	world.room = 4 * HALF;
	world.busy = true;
	assert_false(restore());
	assert_string_equal(what_was_said(), "comes:10 comes:11 carry:2");
}

/* A chunk that has no memory on the other side makes no room. */
TEST(memory_is_short)
{
	displaced(1, MIB, true, 1);
	displaced(2, MIB, false, 2);
	world.no_memory = true;
	assert_true(restore());
	assert_string_equal(what_was_said(), "goes:20 goes:21");
}

/* It does not matter which chunks of an allocation are on the device. So only the surplus of one side goes back. */
TEST(only_the_surplus_of_an_allocation_changes_sides)
{
	struct spill_chunked *both = displaced(3, MIB, true, 3);
	both->chunks[0].on_host = false;
	world.room = 10 * MIB;
	assert_true(restore());
	assert_string_equal(what_was_said(), "comes:11 carry:1");
	both->chunks[1].on_host = false; /* now the surplus is on the device, and nothing needs its room */
	assert_true(restore());
	assert_string_equal(what_was_said(), "");
	assert_false(spill_restore_left(1));
}

/* Lost, of an odd size, pinned, of another device, by a rule on the host: each stays where it is. */
TEST(chunks_that_stay)
{
	world.room = 10 * MIB;
	displaced(3, MIB, true, 3)->chunks[0].unmapped = true;
	displaced(3, MIB, true, 3)->chunks[2].bytes = MIB / 2;
	displaced(2, MIB, true, 2)->stays_from = MIB;
	displaced(1, MIB, true, 1)->pinned = true;
	walked[0].chunks[3].bytes = MIB; /* behind the last one */
	assert_true(restore());
	assert_string_equal(what_was_said(), "comes:11 comes:12 comes:20 comes:21 comes:30 carry:5");
}

/* A single chunk is never odd: its memory is made for it anyway. */
TEST(a_single_chunk_of_any_size_comes)
{
	displaced(1, MIB, true, 1)->chunks[0].bytes = MIB / 2;
	world.room = MIB;
	assert_true(restore());
	assert_string_equal(what_was_said(), "comes:10 carry:1");
}

TEST(another_device_has_some_left)
{
	struct spill_chunked *chunked = displaced(2, MIB, true, 1);
	assert_false(spill_restore_left(0));
	assert_true(spill_restore_left(1));
	world.room = 10 * MIB;
	assert_true(spill_restore(&vendor, 1));
	assert_string_equal(what_was_said(), "");
	chunked->chunks[0].displaced = false;
	assert_false(spill_restore_left(1));
	chunked->chunks[0].displaced = true;
	chunked->chunks[0].on_host = false; /* it is on the device, so it does not come */
	assert_false(spill_restore_left(1));
}

/* A batch of moves: how long it waits, in which context it copies, and where memory goes afterwards. */
#define SETUP setup
#include "unit.h"

#include "move_batch_world.h"

#define LEAST 5000ull /* us: the shortest wait */

static int other_context;

/* -- carrying out ------------------------------------------------------------------------------ */

/* Host memory is mapped before the program is stopped. */
TEST(moves_are_carried_out_behind_a_closed_gate)
{
	struct spill_chunked *chunked = allocation(false);
	chunked->chunks[0].displaced = chunked->chunks[1].displaced = true;
	plan(chunked, 0);
	plan(chunked, 1);
	world.refuses = true;
	assert_string_equal(carry_out(20000), "the driver refused to move");
	assert_string_equal(what_was_said(), "stage:2 close:1 wait:1 move:2 open:0");
	assert_int_equal(world.waited_ns, 20000 * US);
	/* What has moved is where this move wants it. */
	assert_false(chunked->chunks[0].displaced);
	assert_true(chunked->chunks[1].displaced);
	world.refuses = false;
	assert_null(carry_out(20000));
}

/* A move behind the batch is another's. */
TEST(only_the_moves_of_the_batch_count)
{
	struct spill_chunked *chunked = allocation(false);
	chunked->chunks[1].displaced = true;
	plan(chunked, 0);
	plan(chunked, 1)->moved = true;
	batch.count = 1;
	assert_null(carry_out(1));
	assert_true(chunked->chunks[1].displaced);
}

TEST(moves_that_may_not_begin)
{
	static const struct {
		bool capturing, busy, shut;
		const char *error, *said;
	} cases[] = {
	    {true, false, false, "capture", "stage:1 close:1 open:0"},
	    {false, true, false, "movable.wait: the device is busy", "stage:1 close:1 wait:0 open:0"},
	    {false, false, true, "movable.wait: a call does not return", "stage:1 close:0"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(NULL);
		plan(allocation(false), 0);
		world.capturing = cases[i].capturing;
		world.busy = cases[i].busy;
		world.shut = cases[i].shut;
		assert_string_equal(carry_out(1),
		                    i ? cases[i].error : spill_refused_by_name(SPILL_REFUSED_BY_CAPTURE));
		assert_string_equal(what_was_said(), cases[i].said);
	}
}

/* The time of the moves is never 0, even if the clock does not go on. */
TEST(an_attempt_tells_its_time)
{
	uint64_t ns = 99;
	plan(allocation(false), 0);
	assert_null(spill_move_batch_attempt(&batch, &vendor, DEVICE, fake_clock.ns + 5, NULL, &ns));
	assert_int_equal(ns, 7 + 1);
	assert_int_equal(world.waited_ns, 5);
	world.busy = true;
	assert_non_null(spill_move_batch_attempt(&batch, &vendor, DEVICE, fake_clock.ns + 5, NULL, &ns));
	assert_int_equal(ns, 0);
}

static uint64_t next_wait_us(uint64_t wait_us)
{
	carry_out(wait_us);
	return world.waited_ns / US;
}

/* A program beside endless work is stopped for a shorter and shorter time. */
TEST(each_busy_time_halves_the_wait)
{
	plan(allocation(false), 0);
	world.busy = true;
	for (uint64_t wait_us = 64 * LEAST; wait_us >= LEAST; wait_us /= 2)
		assert_int_equal(next_wait_us(64 * LEAST), wait_us);
	assert_int_equal(next_wait_us(64 * LEAST), LEAST);
	assert_int_equal(next_wait_us(100), 100); /* which is all that the user allows */
	world.busy = false;
	assert_int_equal(next_wait_us(64 * LEAST), LEAST);
	assert_int_equal(next_wait_us(64 * LEAST), 64 * LEAST);
}

/* Sixteen times in a row are enough for any wait. */
TEST(the_longest_wait_becomes_the_shortest)
{
	const uint64_t long_us = LEAST << 18;
	plan(allocation(false), 0);
	world.busy = true;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(next_wait_us(long_us), long_us >> i);
	for (unsigned i = 16; i < 70; i++)
		assert_int_equal(next_wait_us(long_us), LEAST);
}

/* A device that was busy is looked at before memory is made for it. */
TEST(a_device_that_was_busy_is_looked_at_first)
{
	assert_true(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_string_equal(what_was_said(), "");
	plan(allocation(false), 0);
	world.busy = true;
	carry_out(64 * LEAST);
	what_was_said();
	assert_false(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_int_equal(world.waited_ns, 32 * LEAST * US);
	assert_false(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_int_equal(world.waited_ns, 16 * LEAST * US);
	world.busy = false;
	assert_true(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_string_equal(what_was_said(), "look:0 look:0 look:1");
	assert_true(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_string_equal(what_was_said(), "");
}

/* In that of the first chunk, if it lives. Else in any. If not all are known, its own is as good as any. */
TEST(the_context_of_the_copies)
{
	enum { NONE = SPILL_CONTEXTS + 1 };
	static const struct {
		unsigned count, own_at; /* its own context is in the list there */
		const void *copies_in;
	} cases[] = {
	    {0, NONE, &own_context},
	    {1, NONE, &other_context},
	    {2, 1, &own_context},
	    {2, 2, &other_context}, /* left over behind the list */
	    {SPILL_CONTEXTS, SPILL_CONTEXTS - 1, &own_context},
	    {SPILL_CONTEXTS, NONE, &other_context},
	    {SPILL_CONTEXTS + 1, NONE, &own_context},
	};
	plan(allocation(false), 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned at = 0; at < SPILL_CONTEXTS; at++)
			world.list[at] = at == cases[i].own_at ? &own_context : &other_context;
		world.contexts = cases[i].count;
		carry_out(1);
		assert_ptr_equal(world.copies_in, cases[i].copies_in);
	}
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Host memory is kept: that of chunks that came, and of those that did not leave. */
TEST(memory_that_is_left_over)
{
	struct spill_chunked *goes = allocation(false), *comes = allocation(true);
	plan(goes, 0)->moved = goes->chunks[0].on_host = true;
	plan(goes, 1); /* stays */
	plan(comes, 0)->moved = true;
	comes->chunks[0].on_host = false;
	plan(comes, 1);             /* stays */
	plan(comes, 2)->handle = 0; /* and never had new memory */
	struct spill_bytes moved = spill_move_batch_settle(&batch, &vendor, DEVICE);
	assert_int_equal(moved.host, CHUNK);
	assert_int_equal(moved.device, CHUNK);
	assert_string_equal(what_was_said(), "device:10 host:12 host:14 device:16");
}

/* A batch grows with its moves. */
TEST(any_number_of_moves)
{
	struct spill_move_batch grows = {0};
	const struct spill_move move = {.chunked = allocation(false), .index = 1};
	for (unsigned i = 1; i <= 200; i++) {
		assert_true(spill_move_batch_add(&grows, &move));
		assert_int_equal(grows.count, i);
		assert_int_equal(grows.bytes, i * CHUNK);
	}
	assert_memory_equal(&grows.moves[0], &move, sizeof(move));
	assert_memory_equal(&grows.moves[199], &move, sizeof(move));
	spill_move_batch_end(&grows);
	assert_null(grows.moves);
	assert_int_equal(grows.count + grows.capacity + grows.bytes, 0);
}

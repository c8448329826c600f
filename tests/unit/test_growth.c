/* Growing pools: scenario 2 is recognised, and what only looks like it is not. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "growth.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define POOL 0x1000
#define OTHER 0x2000

static struct spill_growth growth;

static int begin(void **state)
{
	memset(&growth, 0, sizeof(growth));
	return 0;
}

/* What is asked before a request says the same, and changes nothing. */
static struct spill_growth_answer ask(uint64_t bytes)
{
	static struct spill_growth before;
	before = growth;
	bool would = spill_growth_would(&growth, POOL, 0, bytes);
	assert_memory_equal(&before, &growth, sizeof(growth));
	struct spill_growth_answer answer = spill_growth_request(&growth, POOL, 0, bytes);
	assert_int_equal(would, answer.grows);
	return answer;
}

static bool grows(uint64_t bytes)
{
	return ask(bytes).grows;
}

/* What the engine keeps of a block of the pool. */
struct block {
	uint64_t bytes, run;
	bool dead, used;
};

static struct block blocks[256];
static unsigned count;

/* The engine's rule: all older blocks of the run of one that grows are dead. */
static struct block *allocate(uint64_t bytes)
{
	struct spill_growth_answer answer = ask(bytes);
	for (unsigned i = 0; i < count && answer.grows; i++)
		blocks[i].dead = blocks[i].dead || blocks[i].run == answer.run;
	blocks[count] = (struct block){bytes, answer.run, false, true};
	return &blocks[count++];
}

/* The pool of the scenario: best fit over what it has cached, else a block 5 % larger than asked, by 256 bytes. */
static struct block *from_pool(uint64_t bytes, bool *allocated)
{
	struct block *best = NULL;
	for (unsigned i = 0; i < count; i++)
		if (!blocks[i].used && blocks[i].bytes >= bytes && (!best || blocks[i].bytes < best->bytes))
			best = &blocks[i];
	*allocated = !best;
	if (!best)
		best = allocate((bytes + bytes / 20 + 255) / 256 * 256);
	best->used = true;
	return best;
}

/*
 * A prompt of 20,000 tokens in micro-batches of 512. The attention scores grow with the position,
 * another buffer is half as large, and a third always has the same size. `first`: what the same
 * call site was asked for before.
 */
static void run_prompt(uint64_t first)
{
	unsigned allocations = 0;
	count = 0;
	if (first)
		allocate(first);
	for (uint64_t position = 512; position <= 20000; position += 512) {
		bool made[3];
		uint64_t scores = position * 512 * 32 * 4;
		struct block *one = from_pool(scores, &made[0]), *two = from_pool(scores / 2, &made[1]),
		             *three = from_pool(40 * MIB, &made[2]);
		allocations += made[0] + made[1] + made[2];
		one->used = two->used = three->used = false;
	}
	assert_true(allocations > 15);

	/* What lives is the newest block, and the few from before it was known that they grow. */
	uint64_t live = 0, all = 0, newest = blocks[count - 1].bytes;
	for (unsigned i = first ? 1 : 0; i < count; i++) {
		all += blocks[i].bytes;
		live += blocks[i].dead ? 0 : blocks[i].bytes;
	}
	assert_false(blocks[count - 1].dead);
	assert_true(all > 8 * newest);
	assert_true(live < 3 * newest);
	assert_false(first && blocks[0].dead);
}

TEST(a_prompt_of_20000_tokens)
{
	run_prompt(0);
}

/* ggml: the weights came through the same function, and are larger than what the pool ever asks for. */
TEST(behind_weights_of_the_same_call_site)
{
	run_prompt(7 * GIB);
}

/* Decode behind it asks for less and reuses: what it allocates, if anything, is no growth, and its blocks live. */
TEST(decode_is_none_of_it)
{
	run_prompt(0);
	struct spill_growth_answer last = ask(900 * MIB);
	for (int token = 0; token < 1000; token++) {
		struct spill_growth_answer answer = ask((token % 3 + 1) * 15 * MIB);
		assert_false(answer.grows);
		assert_int_not_equal(answer.run, last.run);
	}
}

TEST(three_in_a_row)
{
	struct spill_growth_answer one = ask(100), two = ask(101), three = ask(202);
	assert_false(one.grows || two.grows);
	assert_true(three.grows);
	assert_int_equal(one.run, two.run);
	assert_int_equal(two.run, three.run);
	assert_int_not_equal(one.run, 0);
}

/* More than twice as large is something else; so is as large, or smaller. */
TEST(what_ends_a_run)
{
	static const uint64_t enders[] = {405, 202, 1, 0};
	for (unsigned i = 0; i < sizeof(enders) / sizeof(enders[0]); i++) {
		begin(NULL);
		ask(100);
		ask(101);
		struct spill_growth_answer three = ask(202), four = ask(enders[i]);
		assert_true(three.grows);
		assert_false(four.grows);
		assert_int_not_equal(three.run, four.run);
	}
	assert_false(grows(UINT64_MAX / 2) || grows(UINT64_MAX - 1));
	assert_true(grows(UINT64_MAX));
}

/* Three in a row that are no records happen by chance; six are believed. */
TEST(below_what_was_before_it_takes_six)
{
	ask(1000);
	for (uint64_t bytes = 100; bytes < 105; bytes++)
		assert_false(grows(bytes));
	assert_true(grows(105));
}

/* A run that begins with as much as there was before is none of records. */
TEST(as_much_as_before_is_no_record)
{
	ask(1000);
	ask(400);
	for (uint64_t bytes = 1000; bytes < 1005; bytes++)
		assert_false(grows(bytes));
	assert_true(grows(1005));
	/* One byte more is a record. */
	ask(400);
	assert_false(grows(1006) || grows(1007));
	assert_true(grows(1008));
}

/* One call site, all sizes: PyTorch's segments of 2, 20 and rounded up to 2 MiB, as a training step asks for them. */
TEST(mixed_segments_do_not_grow)
{
	static const uint64_t mib[] = {2,  20, 20, 2,  32, 20, 2,  20, 50, 20, 20, 24, 2,
	                               20, 36, 20, 2,  64, 20, 20, 2,  22, 24, 26, 20, 20,
	                               2,  48, 64, 20, 2,  20, 96, 20, 2,  20, 22, 20};
	for (unsigned round = 0; round < 20; round++)
		for (unsigned i = 0; i < sizeof(mib) / sizeof(mib[0]); i++)
			assert_false(grows(mib[i] * MIB));
}

TEST(layers_of_one_size_do_not_grow)
{
	for (int layer = 0; layer < 80; layer++) {
		assert_false(grows(180 * MIB));
		assert_false(grows(180 * MIB));
		assert_false(grows(64 * MIB));
	}
}

TEST(call_sites_and_devices_are_apart)
{
	for (uint64_t step = 1; step < 20; step++) {
		struct spill_growth_answer mine = ask(100 + step);
		struct spill_growth_answer device = spill_growth_request(&growth, POOL, 1, 500 - step);
		struct spill_growth_answer other = spill_growth_request(&growth, OTHER, 0, 200 + step);
		assert_int_equal(mine.grows, step >= 3);
		assert_int_equal(other.grows, step >= 3);
		assert_false(device.grows);
		assert_true(mine.run != other.run && other.run != device.run && device.run != mine.run);
	}
}

/* More call sites than the table has rows: one that is in use stays; those heard of long ago are forgotten. */
TEST(one_of_many_sites_stays_known)
{
	ask(100);
	spill_growth_request(&growth, OTHER, 0, 100);
	spill_growth_request(&growth, OTHER, 0, 101);
	for (uint64_t i = 0; i < 3 * SPILL_GROWTH_SITES; i++) {
		spill_growth_request(&growth, 0x10000 + i, 0, 5);
		assert_int_equal(grows(101 + i), i >= 1);
	}
	assert_false(spill_growth_request(&growth, OTHER, 0, 102).grows);
}

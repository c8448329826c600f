/* What is foreseen, use by use. What it is worth: test_sweeps.c. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "access_history.h"

static struct spill_access_history order;

static int begin(void **state)
{
	memset(&order, 0, sizeof(order));
	return 0;
}

/* Each letter is a use of the chunk of that name; a capital is one by another site. */
static void uses(const char *letters)
{
	for (; *letters; letters++) {
		char upper = (char)(*letters & ~0x20);

		spill_access_history_launch(&order, (const uint32_t[]){(uint32_t)upper}, 1,
		                            upper == *letters);
	}
}

static char letter(const struct spill_access *use)
{
	return (char)(use->site ? use->key : use->key | 0x20);
}

/* What is foreseen begins so; all of it, if `whole`. */
static void foresees(const char *letters, bool whole)
{
	struct spill_access_walk walk = {0};
	struct spill_access use;
	char seen[200] = "";

	for (unsigned i = 0; i < sizeof(seen) - 1 && spill_access_history_next(&order, &walk, &use); i++)
		seen[i] = letter(&use);
	if (!whole && strlen(seen) > strlen(letters))
		seen[strlen(letters)] = '\0';
	assert_string_equal(seen, letters);
}

TEST(nothing_is_foreseen_at_first)
{
	foresees("", true);
	uses("abcdefghij");
	foresees("", true);
}

/* One period, from the next use to the one that was just made. */
TEST(a_sweep_is_foreseen_for_one_period)
{
	uses("abcdefghijabcdefghij");
	foresees("abcdefghij", true);
	uses("abc");
	foresees("defghijabc", true);
	assert_int_equal(order.foreseen + order.unforeseen, 23);
	assert_in_range(order.unforeseen, 10, 13);
}

/* The second step is known from its third use on. */
TEST(three_uses_are_enough)
{
	struct spill_access_walk walk = {0};
	struct spill_access use;

	uses("abcdefghijklmn"
	     "abc");
	assert_int_equal(order.uses[order.next].key, 'D');
	/* But it has to be right for a while before it is believed. */
	assert_false(spill_access_history_next(&order, &walk, &use));
	uses("defghij");
	foresees("klmn", false);
}

/* There and back by other sites: the same chunk, another place. */
TEST(sites_tell_places_apart)
{
	uses("abcdefFEDCBA"
	     "abcdefFEDCBA"
	     "abc");
	foresees("defFEDCBAabc", true);
	uses("defF");
	foresees("EDCBAabcdefF", true);
	uses("EDCBAabcdeF");
	foresees("EDCBAabc", false);
}

/* What was known as one site's is foreseen still when another one does it: the last batch of an epoch. */
TEST(another_site_is_the_same_place)
{
	uses("abcdefgh"
	     "abcdefgh"
	     "abcD");
	foresees("efgh", false);
}

TEST(one_left_out)
{
	uses("abcdefghijabcdefghij"
	     "abd");
	foresees("efghij", false);
}

/* Many left out: not by one use, which may be a coincidence, but by two. */
TEST(many_left_out)
{
	uses("abcdefghijklmnopabcdefghijklmnop"
	     "abm");
	foresees("cdef", false);
	uses("n");
	foresees("opab", false);
}

/* What is new, or used out of turn, came between. */
TEST(one_came_between)
{
	uses("abcdefghijabcdefghij"
	     "abz");
	foresees("cdefghij", false);
	uses("c");
	foresees("defghij", false);
	uses("i");
	foresees("defghij", false);
	uses("de");
	foresees("fghij", false);
}

/* Many new ones: the program does something else, of which nothing is known. */
TEST(something_else)
{
	uses("abcdefghijabcdefghijabcdefghij"
	     "uvwxy");
	assert_int_equal(order.next, order.count);
	foresees("", true);
	uses("ab");
	foresees("cdefghij", false);
}

/* Two places fit: the later one is believed. */
TEST(the_later_place)
{
	uses("abcdefgh"
	     "abcdxyzw"
	     "abcdxyzw");
	foresees("abcdxyzw", true);
	uses("abcd");
	foresees("xyzw", false);
}

/* The third use of a place that was known long ago, against two that were seen just now. */
TEST(an_old_place_is_left)
{
	uses("abcdefghabcdefghabcdefgh"
	     "stuvwxyzstuvwxyz"
	     "abcdefgh"
	     "abcdefgh");
	foresees("abcdefgh", true);
}

/* Two uses are not enough where both pairs of the three are used otherwise later on. */
TEST(the_longer_context_decides)
{
	uses("abcdefghabuijkxbcvlm"
	     "abcdefghabuijkxbcvlm"
	     "qrstw"
	     "abc");
	foresees("defgh", false);
}

/* The parts of a step are alike: which of them it is at is not forgotten, and not what comes behind the last. */
TEST(a_loop_in_a_step)
{
	for (unsigned step = 0; step < 4; step++)
		uses("abcdefghabcdefghabcdefgh"
		     "stuvwx");
	uses("abcdefghabcdefgh");
	foresees("abcdefghstuvwxabcdefgh", false);
	uses("abcdefgh");
	foresees("stuvwxabcdefgh", false);
}

/*
 * A layer is two launches. The first uses two chunks of weights and the buffers that all layers
 * share. The second uses the buffers alone. In the next step the weights of two layers tell where it
 * is, whatever the buffers did since.
 */
TEST(layers_share_their_buffers)
{
	enum { LAYERS = 20, BUFFERS = 10, SITE = 1, REDUCE };
	uint32_t keys[2 + BUFFERS];
	unsigned met = 0;

	for (unsigned i = 0; i < BUFFERS; i++)
		keys[2 + i] = 1000 + i;
	for (unsigned layer = 0; layer < LAYERS + 2; layer++) {
		if (layer == LAYERS) /* what ends a step */
			for (uint32_t other = 2000; other < 2008; other++)
				spill_access_history_launch(&order, (const uint32_t[]){other}, 1, REDUCE);
		keys[0] = 2 * (layer % LAYERS) + 1;
		keys[1] = 2 * (layer % LAYERS) + 2;
		spill_access_history_launch(&order, keys, 2 + BUFFERS, SITE);
		if (layer <= LAYERS)
			spill_access_history_launch(&order, keys + 2, BUFFERS, REDUCE);
	}

	struct spill_access_walk walk = {0};
	struct spill_access use;
	while (spill_access_history_next(&order, &walk, &use))
		if (use.key < 1000)
			assert_int_equal(use.key, (4 + met++) % (2 * LAYERS) + 1);
	assert_int_equal(met, 2 * LAYERS); /* to this one, of the step before it and of this one */
}

enum { DRIFT_LAYERS = 20, READ = 1, WRITE, BACK, END, BEGIN, DRIFT = 26, BUFFER = 1000, BUFFER_UNITS = 40 };

/* The key of a buffer's first chunk in that step. Chunks have 10 units. */
static uint32_t buffer_key(unsigned step, unsigned layer)
{
	return (BUFFER + layer * BUFFER_UNITS + step * DRIFT) / 10 * 10;
}

/* A launch of a chunk of weights, and a buffer of 12 units: one chunk, two or three. */
static void use_weights_and_buffer(unsigned step, unsigned layer, uint16_t site)
{
	uint32_t keys[4] = {10 * layer + 10}, first = BUFFER + layer * BUFFER_UNITS + step * DRIFT;
	unsigned count = 1;

	for (uint32_t key = buffer_key(step, layer); key < first + 12; key += 10)
		keys[count++] = key;
	spill_access_history_launch(&order, keys, count, site);
}

/* So many buffers are at one of two places, in turns. */
static unsigned turning;

static void drifting_step(unsigned step, unsigned back)
{
	for (uint16_t i = 0; i < 3; i++)
		spill_access_history_launch(&order, (const uint32_t[]){8000 + i}, 1, BEGIN + i);
	for (unsigned layer = 0; layer < DRIFT_LAYERS; layer++) {
		use_weights_and_buffer(step, layer, READ);
		use_weights_and_buffer(step, layer, WRITE);
	}
	spill_access_history_launch(&order, (const uint32_t[]){9000}, 1, END);
	for (uint16_t i = 0; i < turning; i++)
		spill_access_history_launch(&order, (const uint32_t[]){20000 + step % 2 * 5000 + 100 * i}, 1,
		                            100 + i);
	for (unsigned layer = DRIFT_LAYERS; layer-- > DRIFT_LAYERS - back;) {
		use_weights_and_buffer(step, layer, BACK);
		use_weights_and_buffer(step, layer, READ);
	}
}

/*
 * The allocator of the program places the buffers elsewhere in each step, and the weights stay. The way
 * forward tells where they are now, and the way back is foreseen by these names.
 */
TEST(buffers_that_move_from_step_to_step)
{
	enum { STEPS = 6 };
	struct spill_access_walk walk = {0};
	struct spill_access use;
	unsigned next = DRIFT_LAYERS - 2;

	for (unsigned step = 0; step < STEPS; step++)
		drifting_step(step, DRIFT_LAYERS);
	drifting_step(STEPS, 1);
	while (next && spill_access_history_next(&order, &walk, &use) && use.site != END)
		next -= use.key == buffer_key(STEPS, next);
	assert_int_equal(next, 0);
}

/*
 * Some buffers return to where they were two steps before, and that step is followed. It is wrong about all
 * others, so the prediction returns to the step before.
 */
TEST(buffers_that_return_among_others_that_move)
{
	enum { STEPS = 6 };
	struct spill_access_walk walk = {0};
	struct spill_access use;
	unsigned next = DRIFT_LAYERS - 2;

	turning = 6;
	for (unsigned step = 0; step < STEPS; step++)
		drifting_step(step, DRIFT_LAYERS);
	drifting_step(STEPS, 0);
	uint64_t period = order.count - order.next; /* as long as two steps */
	use_weights_and_buffer(STEPS, DRIFT_LAYERS - 1, BACK);
	use_weights_and_buffer(STEPS, DRIFT_LAYERS - 1, READ);
	turning = 0;
	assert_true(order.count - order.next < period * 2 / 3);
	while (next && spill_access_history_next(&order, &walk, &use) && use.site != END)
		next -= use.key == buffer_key(STEPS, next);
	assert_int_equal(next, 0);
}

/* Code that was not predicted is other work: nothing is renamed. */
TEST(other_code_renames_nothing)
{
	for (unsigned step = 0; step < 3; step++)
		drifting_step(0, DRIFT_LAYERS);
	struct spill_chunk_renames before = order.renames;
	for (uint32_t i = 0; i < 8; i++)
		spill_access_history_launch(&order, (const uint32_t[]){5000 + 100 * i}, 1, 77);
	assert_memory_equal(&before, &order.renames, sizeof(before));
}

/* A run of one chunk is one period of one use. */
TEST(the_same_again_and_again)
{
	uses("aaaaaaaaaaaaaaaaaaaa");
	foresees("a", true);
}

/* The ring is full, many times over: a period that fits is foreseen, in full, and one that does not is forgotten. */
TEST(more_than_is_remembered)
{
	for (unsigned period = SPILL_ACCESS_USES - 64; period <= SPILL_ACCESS_USES; period += 64) {
		struct spill_access_walk walk = {0};
		struct spill_access use;
		bool fits = period < SPILL_ACCESS_USES;

		begin(NULL);
		for (unsigned i = 0; i < 3 * period + 100; i++)
			spill_access_history_launch(&order, (const uint32_t[]){i % period}, 1, 1);
		assert_int_equal(spill_access_history_next(&order, &walk, &use), fits);
		if (!fits) {
			assert_int_equal(order.foreseen, 0);
			continue;
		}
		assert_int_equal(use.key, 100);
		for (unsigned i = 1; i < period; i++) {
			assert_true(spill_access_history_next(&order, &walk, &use));
			assert_int_equal(use.key, (100 + i) % period);
		}
		assert_false(spill_access_history_next(&order, &walk, &use));
	}
}

/* The place is lost when it is forgotten, not read as what was written over it. */
TEST(a_place_is_forgotten)
{
	unsigned period = SPILL_ACCESS_USES - 2;

	for (unsigned i = 0; i < 2 * period + 100; i++)
		spill_access_history_launch(&order, (const uint32_t[]){i % period}, 1, 1);
	assert_int_equal(order.count - order.next, period);
	for (unsigned i = 0; i < 4; i++)
		spill_access_history_launch(&order, (const uint32_t[]){UINT32_MAX - i}, 1, 1);
	assert_true(order.count - order.next < SPILL_ACCESS_USES);
}

/* By noise nothing is foreseen, and what is learned in it is no harm afterwards. */
TEST(noise)
{
	uint64_t seed = 1;

	for (unsigned i = 0; i < 3 * SPILL_ACCESS_USES; i++) {
		struct spill_access_walk walk = {0};
		struct spill_access use;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		spill_access_history_launch(&order, (const uint32_t[]){(uint32_t)(seed >> 40) % 300}, 1,
		                            (uint16_t)(seed >> 33) % 4);
		assert_false(spill_access_history_next(&order, &walk, &use));
	}
	uses("abcdefghijabcdefghijabcdefghij");
	foresees("abcdefghij", true);
}

TEST(the_past)
{
	struct spill_access use;

	assert_false(spill_access_history_past(&order, 0, &use));
	uses("abC");
	assert_true(spill_access_history_past(&order, 0, &use));
	assert_int_equal(letter(&use), 'C');
	assert_true(spill_access_history_past(&order, 2, &use));
	assert_int_equal(letter(&use), 'a');
	assert_false(spill_access_history_past(&order, 3, &use));
	for (unsigned i = 0; i < SPILL_ACCESS_USES; i++)
		spill_access_history_launch(&order, (const uint32_t[]){i}, 1, 0);
	assert_true(spill_access_history_past(&order, SPILL_ACCESS_USES - 1, &use));
	assert_int_equal(use.key, 0);
	assert_false(spill_access_history_past(&order, SPILL_ACCESS_USES, &use));
}

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

/* One launch of buffers of a unit each. */
static void launch(const uint32_t *firsts, unsigned count, uint16_t site)
{
	struct spill_access_range ranges[64];

	assert_true(count <= 64);
	for (unsigned i = 0; i < count; i++)
		ranges[i] = (struct spill_access_range){firsts[i], 1};
	spill_access_history_launch(&order, ranges, count, site);
}

/* The predicted access that is so many further on. */
static bool foresee(unsigned further, struct spill_access *use)
{
	return spill_access_history_next(&order, further, use);
}

/* Each letter is a use of the buffer of that name; a capital is one by another site. */
static void uses(const char *letters)
{
	for (; *letters; letters++) {
		char upper = (char)(*letters & ~0x20);

		launch((const uint32_t[]){(uint32_t)upper}, 1, upper == *letters);
	}
}

static char letter(const struct spill_access *use)
{
	return (char)(use->site ? use->first : use->first | 0x20);
}

/* What is foreseen begins so; all of it, if `whole`. */
static void foresees(const char *letters, bool whole)
{
	struct spill_access use;
	char seen[200] = "";

	for (unsigned i = 0; i < sizeof(seen) - 1 && foresee(i, &use); i++)
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
	struct spill_access use;

	uses("abcdefghijklmn"
	     "abc");
	assert_int_equal(order.uses[order.next].first, 'D');
	/* But it has to be right for a while before it is believed. */
	assert_false(foresee(0, &use));
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
	enum { SHARING = 20, BUFFERS = 10, SITE = 1, REDUCE };
	uint32_t keys[2 + BUFFERS];
	unsigned met = 0;

	for (unsigned i = 0; i < BUFFERS; i++)
		keys[2 + i] = 1000 + i;
	for (unsigned layer = 0; layer < SHARING + 2; layer++) {
		if (layer == SHARING) /* what ends a step */
			for (uint32_t other = 2000; other < 2008; other++)
				launch((const uint32_t[]){other}, 1, REDUCE);
		keys[0] = 2 * (layer % SHARING) + 1;
		keys[1] = 2 * (layer % SHARING) + 2;
		launch(keys, 2 + BUFFERS, SITE);
		if (layer <= SHARING)
			launch(keys + 2, BUFFERS, REDUCE);
	}

	struct spill_access use;
	for (unsigned i = 0; foresee(i, &use); i++)
		if (use.first < 1000)
			assert_int_equal(use.first, (4 + met++) % (2 * SHARING) + 1);
	assert_int_equal(met, 2 * SHARING); /* to this one, of the step before it and of this one */
}

enum { LAYERS = 20, READ = 1, WRITE, BACK, END, BEGIN, DRIFT = 26, BUFFER = 1000, BUFFER_UNITS = 40 };

/* A launch of weights, which stay, and of a buffer. */
static void use_weights_and_buffer(unsigned layer, uint32_t buffer, uint16_t site)
{
	launch((const uint32_t[]){10 * layer + 10, buffer}, 2, site);
}

/* Where the buffer of a layer is in a step. */
static uint32_t (*place_of)(unsigned step, unsigned layer);

/* The allocator goes on by as much in each step. */
static uint32_t drifting(unsigned step, unsigned layer)
{
	return BUFFER + layer * BUFFER_UNITS + step * DRIFT;
}

/* In each step elsewhere, without a rule. */
static uint32_t anywhere(unsigned step, unsigned layer)
{
	return BUFFER + layer * BUFFER_UNITS + step * step * step * DRIFT;
}

/* In turns at one of two places. */
static uint32_t in_turns(unsigned step, unsigned layer)
{
	return drifting(step % 2, layer);
}

/* So many other buffers are at one of two places, in turns. */
static unsigned turning;

static void begin_step(void)
{
	for (uint16_t i = 0; i < 3; i++)
		launch((const uint32_t[]){8000 + i}, 1, BEGIN + i);
}

/* Forward through all layers, and back through the last ones. */
static void run_step(unsigned step, unsigned back)
{
	begin_step();
	for (unsigned layer = 0; layer < LAYERS; layer++) {
		use_weights_and_buffer(layer, place_of(step, layer), READ);
		use_weights_and_buffer(layer, place_of(step, layer), WRITE);
	}
	launch((const uint32_t[]){9000}, 1, END);
	for (uint16_t i = 0; i < turning; i++)
		launch((const uint32_t[]){20000 + step % 2 * 5000 + 100 * i}, 1, 100 + i);
	for (unsigned layer = LAYERS; layer-- > LAYERS - back;) {
		use_weights_and_buffer(layer, place_of(step, layer), BACK);
		use_weights_and_buffer(layer, place_of(step, layer), READ);
	}
}

static void run_steps(unsigned count)
{
	for (unsigned step = 0; step < count; step++)
		run_step(step, LAYERS);
}

/* So many of the layers' buffers are foreseen where they are in that step, until the step ends. */
static unsigned count_foreseen(unsigned step)
{
	struct spill_access use;
	unsigned count = 0;
	bool found[LAYERS] = {false};

	for (unsigned i = 0; foresee(i, &use) && use.site != END && use.site != BEGIN; i++)
		for (unsigned layer = 0; layer < LAYERS; layer++)
			if (use.first == place_of(step, layer) && !found[layer]) {
				found[layer] = true;
				count++;
			}
	return count;
}

/*
 * The allocator of the program places the buffers elsewhere in each step, and the weights stay. The way
 * forward tells where they are now, and the way back is foreseen by these places.
 */
TEST(buffers_that_move_from_step_to_step)
{
	enum { STEPS = 6 };

	place_of = anywhere;
	run_steps(STEPS);
	run_step(STEPS, 1);
	assert_int_equal(count_foreseen(STEPS), LAYERS - 1);
	for (uint64_t i = 0; i < order.count; i++)
		assert_false(order.uses[i].drifts);
}

/* Buffers that moved as far in the last two steps are foreseen further on, before a launch has found them. */
TEST(buffers_that_drift)
{
	place_of = drifting;
	for (unsigned steps = 2; steps < 6; steps++) {
		begin(NULL);
		run_steps(steps);
		begin_step();
		assert_int_equal(count_foreseen(steps), steps < 3 ? 0 : LAYERS);
	}
}

/* It is no drift if a buffer returns. */
TEST(buffers_that_are_at_two_places_in_turns)
{
	struct spill_access use;

	place_of = in_turns;
	run_steps(6);
	begin_step();
	for (unsigned i = 0; foresee(i, &use); i++)
		assert_true(use.site >= END || use.first < in_turns(1, LAYERS));
	for (uint64_t i = 0; i < order.count; i++)
		assert_false(order.uses[i].drifts);
}

/* Further than 64 GiB, or from two steps before: a place is not foreseen by it. */
TEST(what_is_no_drift)
{
	static const uint32_t far[] = {INT16_MAX, (uint32_t)INT16_MAX + 1};

	for (unsigned i = 0; i < 2; i++) {
		begin(NULL);
		for (uint32_t step = 0; step < 6; step++) {
			begin_step();
			launch((const uint32_t[]){100, 1000 + step * far[i]}, 2, READ);
			launch((const uint32_t[]){200}, 1, END);
		}
		assert_int_equal(order.uses[order.count - 2].moved, i ? 0 : INT16_MAX);
		assert_int_equal(order.uses[order.count - 2].drifts, !i);
	}
}

/* If a launch has more or fewer buffers than before, it is not known which is which. */
TEST(another_number_of_buffers_tells_no_places)
{
	place_of = drifting;
	run_steps(3);
	begin_step();

	struct spill_buffer_moves before = order.moves;

	launch((const uint32_t[]){10, 777, drifting(3, 0)}, 3, READ);
	assert_memory_equal(&before, &order.moves, sizeof(before));
	launch((const uint32_t[]){10, 777}, 2, WRITE);
	assert_true(order.moves.since > before.since);
}

/*
 * Some buffers return to where they were two steps before, and that step is followed. It is wrong about all
 * others, so the prediction returns to the step before.
 */
TEST(buffers_that_return_among_others_that_move)
{
	enum { STEPS = 6 };

	place_of = anywhere;
	turning = 6;
	run_steps(STEPS);
	run_step(STEPS, 0);
	uint64_t period = order.count - order.next; /* as long as two steps */
	use_weights_and_buffer(LAYERS - 1, place_of(STEPS, LAYERS - 1), BACK);
	use_weights_and_buffer(LAYERS - 1, place_of(STEPS, LAYERS - 1), READ);
	turning = 0;
	assert_true(order.count - order.next < period * 2 / 3);
	assert_int_equal(count_foreseen(STEPS), LAYERS - 1);
}

/* Code that was not predicted is other work: nothing is learned of its places. */
TEST(other_code_tells_no_places)
{
	place_of = anywhere;
	run_steps(3);
	struct spill_buffer_moves before = order.moves;
	for (uint32_t i = 0; i < 8; i++)
		launch((const uint32_t[]){5000 + 100 * i}, 1, 77);
	assert_memory_equal(&before, &order.moves, sizeof(before));
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
		struct spill_access use;
		bool fits = period < SPILL_ACCESS_USES;

		begin(NULL);
		for (unsigned i = 0; i < 3 * period + 100; i++)
			launch((const uint32_t[]){i % period}, 1, 1);
		assert_int_equal(foresee(0, &use), fits);
		if (!fits) {
			assert_int_equal(order.foreseen, 0);
			continue;
		}
		assert_int_equal(use.first, 100);
		for (unsigned i = 1; i < period; i++) {
			assert_true(foresee(i, &use));
			assert_int_equal(use.first, (100 + i) % period);
		}
		assert_false(foresee(period, &use));
	}
}

/* The place is lost when it is forgotten, not read as what was written over it. */
TEST(a_place_is_forgotten)
{
	unsigned period = SPILL_ACCESS_USES - 2;

	for (unsigned i = 0; i < 2 * period + 100; i++)
		launch((const uint32_t[]){i % period}, 1, 1);
	assert_int_equal(order.count - order.next, period);
	for (unsigned i = 0; i < 4; i++)
		launch((const uint32_t[]){UINT32_MAX - i}, 1, 1);
	assert_true(order.count - order.next < SPILL_ACCESS_USES);
}

/* By noise nothing is foreseen, and what is learned in it is no harm afterwards. */
TEST(noise)
{
	uint64_t seed = 1;

	for (unsigned i = 0; i < 3 * SPILL_ACCESS_USES; i++) {
		struct spill_access use;

		seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
		launch((const uint32_t[]){(uint32_t)(seed >> 40) % 300}, 1, (uint16_t)(seed >> 33) % 4);
		assert_false(foresee(0, &use));
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
		launch((const uint32_t[]){i}, 1, 0);
	assert_true(spill_access_history_past(&order, SPILL_ACCESS_USES - 1, &use));
	assert_int_equal(use.first, 0);
	assert_false(spill_access_history_past(&order, SPILL_ACCESS_USES, &use));
}

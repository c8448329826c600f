/* When exchanges pause: what a period of the program takes without them is compared with what it took. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "exchange_pause.h"

#define MS 1000000ull
#define PERIOD 1000
#define STEP_NS (200 * MS) /* of a period with exchanges, which take half of it */
#define MOVES_NS (STEP_NS / 2)

static struct spill_exchange_pause pause;
static struct spill_access_history history; /* only its numbers are looked at */
static enum spill_pause_change change;      /* the last one that was told */
static uint64_t now, in_place_ns;

static const struct spill_access_point *at(void)
{
	static struct spill_access_point point;

	point = (struct spill_access_point){&history, now, in_place_ns};
	return &point;
}

static int begin(void **state)
{
	memset(&pause, 0, sizeof(pause));
	memset(&history, 0, sizeof(history));
	change = SPILL_PAUSE_SAME;
	now = 5000 * MS;
	in_place_ns = 0;
	return 0;
}

static void access_host(void)
{
	enum spill_pause_change told = spill_exchange_pause_access(&pause, at());

	change = told != SPILL_PAUSE_SAME ? told : change;
}

/* A tenth of a period, which repeats what was a period ago. */
static void runs_part(uint64_t ns)
{
	history.count += PERIOD / 10;
	history.next = history.count - PERIOD;
	now += ns / 10;
	access_host();
	if (!spill_exchange_pauses(&pause))
		spill_exchange_pause_moved(&pause, MOVES_NS / 10);
}

/* So many parts, of which too much was not predicted. */
static void runs_unforeseen(unsigned parts, uint64_t ns)
{
	while (parts--) {
		history.unforeseen += PERIOD / 10 / 8 + 1;
		runs_part(ns);
	}
}

/* Periods, as long as nothing else happens than what happens at their begin. */
static void runs(unsigned periods, uint64_t ns)
{
	for (unsigned i = 0; i < 10 * periods; i++)
		runs_part(ns);
}

/* At most so many periods until it asks. */
static bool asks_within(unsigned periods)
{
	for (unsigned i = 0; i < 10 * periods && !pause.asks; i++)
		runs_part(STEP_NS);
	return pause.asks;
}

static void told(uint64_t home_ns)
{
	spill_exchange_pause_told(&pause, at(), home_ns);
}

/* The trial begins. */
static void try_it(void)
{
	assert_true(asks_within(20));
	runs_part(STEP_NS); /* the next exchange asks */
	told(MOVES_NS / 2);
	assert_true(spill_exchange_pauses(&pause));
	assert_int_equal(pause.window.first, history.count); /* what was before does not count */
}

/* Exchanges pause, because a period takes 150 ms without them. */
static void pause_it(void)
{
	try_it();
	runs(20, 150 * MS);
	assert_int_equal(change, SPILL_PAUSE_BEGINS);
	change = SPILL_PAUSE_SAME;
}

TEST(two_windows_that_are_alike_lead_to_the_question)
{
	runs(3, STEP_NS); /* a window begins with its first access */
	assert_false(pause.asks);
	assert_true(asks_within(3));
	assert_int_equal(pause.period, PERIOD);
	assert_in_range(pause.cost_ns, MOVES_NS - 5 * MS, MOVES_NS + 5 * MS);
}

TEST(a_window_takes_half_a_second)
{
	runs_part(0);
	for (unsigned i = 0; i < 499; i++)
		runs_part(10 * MS);
	assert_int_equal(pause.pace, 0);
	runs_part(10 * MS);
	assert_int_not_equal(pause.pace, 0);
}

TEST(a_program_that_becomes_faster_is_waited_for)
{
	for (unsigned ms = 2000; ms > 200; ms -= ms / 5) {
		runs(1, ms * MS);
		assert_false(pause.asks);
	}
	assert_true(asks_within(10));
}

TEST(what_was_not_predicted_tells_nothing)
{
	for (unsigned i = 0; i < 400; i++) {
		runs_unforeseen(1, STEP_NS);
		assert_false(pause.asks);
	}
	assert_true(asks_within(10));
}

TEST(exchanges_that_take_little_are_not_spared)
{
	for (unsigned i = 0; i < 400; i++) {
		pause.window.moves_ns = (now + STEP_NS / 10 - pause.window.begin_ns) / 32 - 1;
		runs_part(STEP_NS);
		assert_false(pause.asks);
	}
	for (unsigned i = 0; i < 400 && !pause.asks; i++) {
		pause.window.moves_ns = (now + STEP_NS / 10 - pause.window.begin_ns) / 32 + 1;
		runs_part(STEP_NS);
	}
	assert_true(pause.asks);
}

/* Nothing is to be tried where chunks swap anyway. */
TEST(exchanges_that_let_chunks_swap_are_not_spared)
{
	for (unsigned i = 0; i < 400; i++) {
		in_place_ns += 16 * MOVES_NS / 10 + 1;
		runs_part(STEP_NS);
		assert_false(pause.asks);
	}
	for (unsigned i = 0; i < 400 && !pause.asks; i++) {
		in_place_ns += 15 * MOVES_NS / 10;
		runs_part(STEP_NS);
	}
	assert_true(pause.asks);
}

/* With exchanges, too, some memory is accessed in place. */
TEST(memory_at_home_may_cost_what_it_costs_in_place_by_now)
{
	for (unsigned i = 0; i < 400 && !pause.asks; i++) {
		in_place_ns += 3 * MOVES_NS / 10;
		runs_part(STEP_NS);
	}
	assert_true(pause.asks);
	assert_in_range(pause.cost_ns, 4 * MOVES_NS - 20 * MS, 4 * MOVES_NS + 20 * MS);
	told(4 * MOVES_NS - 30 * MS);
	assert_true(spill_exchange_pauses(&pause));
}

TEST(memory_that_costs_more_at_home_is_not_tried)
{
	assert_true(asks_within(10));
	told(pause.cost_ns + 1);
	assert_false(spill_exchange_pauses(&pause));
	assert_false(pause.asks);
	runs(9, STEP_NS); /* two seconds */
	assert_false(pause.asks);
	assert_true(asks_within(6));
	told(pause.cost_ns);
	assert_true(spill_exchange_pauses(&pause));
	assert_false(pause.asks);
}

TEST(a_faster_program_stays_without_exchanges)
{
	try_it();
	runs(6, 150 * MS); /* it settles for four periods, and its window takes half a second */
	assert_int_equal(change, SPILL_PAUSE_SAME);
	for (unsigned i = 0; i < 20 && change == SPILL_PAUSE_SAME; i++)
		runs_part(150 * MS);
	assert_int_equal(change, SPILL_PAUSE_BEGINS);
	assert_int_equal(pause.window.first, history.count);
	assert_true(pause.pauses && !pause.tries);
	assert_in_range(pause.is_ns, 149 * MS, 151 * MS);
	assert_in_range(pause.was_ns, STEP_NS - MS, STEP_NS + MS);
}

TEST(less_than_four_percent_are_not_enough)
{
	try_it();
	runs(8, 1925 * MS / 10);
	assert_int_equal(change, SPILL_PAUSE_IN_VAIN);
	assert_in_range(pause.is_ns, 6 * 192 * MS, 7 * 193 * MS); /* all of the trial */
	assert_in_range(100 * pause.was_ns / pause.is_ns, 100 * 200 / 193, 100 * 200 / 192 + 1);
	assert_false(spill_exchange_pauses(&pause));
}

TEST(four_percent_are_enough)
{
	try_it();
	runs(8, 191 * MS);
	assert_int_equal(change, SPILL_PAUSE_BEGINS);
}

/* It varies by some per cent. */
TEST(the_faster_window_with_exchanges_counts)
{
	assert_true(asks_within(20));
	runs(4, 210 * MS);
	assert_true(pause.asks);
	told(MOVES_NS / 2);
	runs(8, 195 * MS);
	assert_int_equal(change, SPILL_PAUSE_IN_VAIN);
	assert_false(spill_exchange_pauses(&pause));
}

TEST(a_trial_that_was_not_predicted_shows_nothing)
{
	try_it();
	runs_unforeseen(80, 150 * MS);
	assert_int_equal(change, SPILL_PAUSE_IN_VAIN);
	assert_false(spill_exchange_pauses(&pause));
}

TEST(a_trial_that_is_much_slower_ends_within_a_period)
{
	try_it();
	for (unsigned i = 0; i < 5; i++)
		runs_part(5 * STEP_NS / 2);
	assert_true(spill_exchange_pauses(&pause)); /* 250 ms for a period that was to take 200 */
	runs_part(5 * STEP_NS / 2);
	assert_false(spill_exchange_pauses(&pause));
	assert_int_equal(change, SPILL_PAUSE_IN_VAIN);
	assert_in_range(pause.is_ns, 299 * MS, 301 * MS);
	assert_int_equal(pause.window.first, history.count);
}

TEST(a_trial_settles_while_chunks_swap)
{
	try_it();
	for (unsigned i = 0; i < 119; i++) {
		runs_part(150 * MS);
		spill_exchange_pause_swapped(&pause, &history);
		assert_false(pause.settled);
	}
	runs_part(150 * MS);
	assert_true(pause.settled); /* not for ever */
}

TEST(a_trial_settles_for_a_period_after_the_last_swap)
{
	try_it();
	runs(4, 150 * MS);
	pause.settled = false; /* as before the end of the fourth */
	spill_exchange_pause_swapped(&pause, &history);
	for (unsigned i = 0; i < 9; i++) {
		runs_part(150 * MS);
		assert_false(pause.settled);
	}
	runs_part(150 * MS);
	assert_true(pause.settled);
}

TEST(the_next_trial_waits_ever_longer)
{
	uint64_t wait_ns;

	try_it();
	runs(7, STEP_NS);
	wait_ns = pause.wait_ns;
	assert_false(pause.tries);
	assert_in_range(wait_ns, 32 * 6 * STEP_NS, 32 * 7 * STEP_NS);
	runs(30 * 6, STEP_NS);
	assert_false(pause.asks);
	assert_true(asks_within(60));
	told(0);
	runs(7, STEP_NS);
	assert_int_equal(pause.wait_ns, 2 * wait_ns);
}

/* With exchanges again, which now take less. */
TEST(now_and_then_exchanges_are_tried_again)
{
	pause_it();
	for (unsigned i = 0; i < 10000 && spill_exchange_pauses(&pause); i++)
		runs_part(150 * MS);
	assert_true(pause.pauses && pause.tries);
	runs(10, 100 * MS);
	assert_int_equal(change, SPILL_PAUSE_ENDS);
	assert_false(pause.pauses || pause.tries);
	assert_in_range(pause.is_ns, 99 * MS, 101 * MS);
}

TEST(exchanges_that_are_no_better_pause_on)
{
	pause_it();
	for (unsigned i = 0; i < 10000 && spill_exchange_pauses(&pause); i++)
		runs_part(150 * MS);
	assert_true(pause.tries);
	runs(9, 150 * MS);
	assert_int_equal(change, SPILL_PAUSE_GOES_ON);
	assert_true(spill_exchange_pauses(&pause));
}

TEST(a_pause_ends_when_the_program_does_something_else)
{
	pause_it();
	runs_unforeseen(60, 150 * MS);
	assert_int_equal(change, SPILL_PAUSE_ENDS);
	assert_int_equal(pause.is_ns, 0);
	assert_false(spill_exchange_pauses(&pause));
}

TEST(a_pause_ends_when_the_program_becomes_slower)
{
	pause_it();
	runs(8, 184 * MS);
	assert_int_equal(change, SPILL_PAUSE_SAME);
	runs(8, 192 * MS);
	assert_int_equal(change, SPILL_PAUSE_ENDS);
	assert_false(spill_exchange_pauses(&pause));
}

/* Accesses that nothing predicts have no period. */
static void runs_without_period(unsigned periods)
{
	for (unsigned i = 0; i < 10 * periods; i++) {
		history.next = history.count += PERIOD / 10;
		now += 15 * MS;
		access_host();
	}
}

TEST(a_pause_ends_when_the_program_has_no_period_any_more)
{
	pause_it();
	runs(4, 150 * MS);
	runs_without_period(12);
	assert_int_equal(change, SPILL_PAUSE_SAME);
	runs_without_period(10);
	assert_int_equal(change, SPILL_PAUSE_ENDS);
	assert_false(spill_exchange_pauses(&pause));
}

TEST(a_trial_ends_when_the_program_has_no_period_any_more)
{
	try_it();
	runs(4, 150 * MS);
	assert_true(pause.settled);
	runs_without_period(15);
	assert_true(spill_exchange_pauses(&pause));
	runs_without_period(3);
	assert_false(spill_exchange_pauses(&pause));
	assert_int_equal(change, SPILL_PAUSE_SAME);
	runs_without_period(40); /* with exchanges nothing is lost */
	assert_true(pause.window.first < history.count - 30 * PERIOD);
}

/* Layers are alike, and a few accesses are more like those of an older step. */
TEST(a_period_is_one_that_a_sixteenth_of_the_accesses_had)
{
	for (unsigned i = 0; !pause.pace; i++) {
		runs_part(STEP_NS);
		history.next = history.count - (i % 20 == 5 ? 8 * PERIOD : i % 4 ? PERIOD / 10 : PERIOD);
		spill_exchange_pause_access(&pause, at());
	}
	assert_int_equal(pause.period, PERIOD);
}

/* When swaps are looked for, and over which accesses. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "swap_window.h"

#define MS 1000000ull
#define WINDOW_NS (250 * MS)
#define PERIOD 1000

static struct spill_swap_window window;
static struct spill_access_history history; /* only its numbers are looked at */
static uint64_t now, in_place;

static const struct spill_access_point *at(void)
{
	static struct spill_access_point point;

	point = (struct spill_access_point){&history, now, in_place};
	return &point;
}

static int begin(void **state)
{
	memset(&window, 0, sizeof(window));
	memset(&history, 0, sizeof(history));
	now = in_place = 5000 * MS;
	return 0;
}

/* The program does so many accesses, which repeat those of a period ago. */
static void runs(uint64_t accesses, uint64_t ns, uint64_t in_place_ns)
{
	history.count += accesses;
	history.next = history.count - PERIOD;
	now += ns;
	in_place += in_place_ns;
}

static bool tells(void)
{
	return spill_swap_window_tells(&window, at());
}

static void looked(bool swapped)
{
	spill_swap_window_looked(&window, &history, now);
	if (swapped)
		spill_swap_window_swapped(&window, now);
}

/* A window that tells, from access 2000 on. */
static void fill(void)
{
	runs(2 * PERIOD, 0, 0);
	assert_false(tells());
	runs(3 * PERIOD, WINDOW_NS, 100 * MS);
}

/* Three periods and a quarter of a second after it was asked for. */
TEST(a_window_has_some_length)
{
	fill();
	assert_true(tells());
	history.next++;
	now--;
	assert_false(tells());
	history.next--;
	now++;
	assert_true(tells());
	history.next--; /* a period is longer by one */
	assert_false(tells());
}

/* Of the clock, and of the sum of accesses in place, only what was since then counts. */
TEST(what_was_before_the_window_does_not_count)
{
	fill();
	in_place = 5000 * MS; /* nothing was on the host */
	assert_false(tells());
	assert_int_equal(spill_swap_window_first(&window, &history), 5 * PERIOD);
	runs(3 * PERIOD, WINDOW_NS, 1);
	assert_true(tells());
}

TEST(nothing_is_known_without_a_period)
{
	fill();
	history.next = history.count;
	assert_false(tells());
	history.next = history.count - PERIOD;
	assert_true(tells());
}

TEST(it_begins_where_it_was_first_asked_for)
{
	fill();
	assert_int_equal(spill_swap_window_first(&window, &history), 2 * PERIOD);
}

/* The history keeps 65,536 accesses. A longer window forgets an eighth of itself, of all its sums. */
TEST(a_long_window_forgets)
{
	uint64_t begin_ns;

	history.count = 0;
	fill();
	begin_ns = now - WINDOW_NS;
	window.moves_ns = 800;
	history.unforeseen = 80;
	runs(SPILL_ACCESS_USES - 3 * PERIOD, 80 * MS, 0);
	assert_true(tells());
	assert_int_equal(window.first, 2 * PERIOD);
	runs(8, 0, 0);
	assert_true(tells());
	assert_int_equal(window.first, 2 * PERIOD + SPILL_ACCESS_USES / 8 + 1);
	assert_int_equal(window.begin_ns, begin_ns + (WINDOW_NS + 80 * MS) / 8);
	assert_int_equal(window.in_place_ns, 5000 * MS + 100 * MS / 8);
	assert_int_equal(window.moves_ns, 700);
	assert_int_equal(window.unforeseen, 10);
	runs(10 * SPILL_ACCESS_USES, 1000000 * MS, 1000000 * MS);
	assert_true(tells());
	assert_in_range(history.count - window.first, SPILL_ACCESS_USES / 8 * 7 - 1, SPILL_ACCESS_USES);
}

/* Each chunk counts as often as all others. */
TEST(the_sums_are_of_whole_periods)
{
	uint64_t first = 2 * PERIOD + 300;

	runs(300, 0, 0);
	fill();
	assert_int_equal(spill_swap_window_first(&window, &history), first);
	runs(PERIOD - 1, MS, MS);
	assert_int_equal(spill_swap_window_first(&window, &history), first + PERIOD - 1);
	runs(1, MS, MS);
	assert_int_equal(spill_swap_window_first(&window, &history), first);
	history.next = history.count;
	assert_int_equal(spill_swap_window_first(&window, &history), first);
}

/* Who asks whether to try asks again in 10 ms, as it may not be possible. */
TEST(what_is_due_is_told_now_and_then)
{
	runs(2 * PERIOD, 0, 0);
	assert_false(spill_swap_window_is_due(&window, at()));
	runs(3 * PERIOD, WINDOW_NS, 100 * MS);
	assert_true(spill_swap_window_is_due(&window, at()));
	now += 10 * MS - 1;
	assert_false(spill_swap_window_is_due(&window, at()));
	assert_true(tells());
	now++;
	assert_true(spill_swap_window_is_due(&window, at()));
	now += 10 * MS;
	looked(false);
	assert_false(spill_swap_window_is_due(&window, at()));
}

/* Where moves cost a sixteenth of what memory in place costs, a new one begins. */
TEST(exchanges_end_a_window)
{
	fill();
	window.moves_ns = 100 * MS / 16 - 1;
	assert_true(tells());
	window.moves_ns = 100 * MS / 16;
	assert_false(tells());
	assert_int_equal(window.moves_ns, 0);
	assert_int_equal(spill_swap_window_first(&window, &history), 5 * PERIOD);
	runs(3 * PERIOD - 1, WINDOW_NS, 100 * MS);
	assert_false(tells());
	runs(1, 0, 0);
	assert_true(tells());
	runs(3 * PERIOD, WINDOW_NS - 1, 100 * MS);
	window.moves_ns = 1000 * MS;
	assert_false(tells());
	runs(3 * PERIOD, WINDOW_NS - 1, 100 * MS);
	assert_false(tells());
	runs(0, 1, 0);
	assert_true(tells());
}

/* One access in eight may lie elsewhere. More do while the program does something new. */
TEST(a_new_program_begins_a_window)
{
	history.unforeseen = 7 * PERIOD; /* before it */
	fill();
	history.unforeseen += 3 * PERIOD / 8;
	assert_true(tells());
	history.unforeseen++;
	assert_false(tells());
	assert_int_equal(spill_swap_window_first(&window, &history), 5 * PERIOD);
	runs(3 * PERIOD, WINDOW_NS, 100 * MS);
	assert_true(tells());
}

/* After a swap the same window tells a period later, and at another place of it. */
TEST(one_look_a_period)
{
	fill();
	assert_true(tells());
	looked(true);
	assert_false(tells());
	runs(PERIOD / 8 * 9 - 1, MS, MS);
	assert_false(tells());
	runs(1, 0, 0);
	assert_true(tells());
	assert_int_equal(window.first, 2 * PERIOD);
}

/* While nothing swaps, it is looked for ever more rarely. */
TEST(a_look_in_vain_makes_the_next_one_wait)
{
	uint64_t pause = 100 * MS;

	fill();
	for (unsigned i = 0; i < 10; i++) {
		assert_true(tells());
		looked(false);
		runs(2 * PERIOD, pause - 1, 0);
		assert_false(tells());
		now++;
		pause = 2 * pause < 10000 * MS ? 2 * pause : 10000 * MS;
	}
	assert_int_equal(pause, 10000 * MS);
	assert_true(tells());
	looked(true);
	runs(2 * PERIOD, 0, 0);
	assert_true(tells());
	looked(false);
	runs(2 * PERIOD, 100 * MS, 0);
	assert_true(tells());
}

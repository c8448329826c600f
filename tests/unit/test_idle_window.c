/* When to look for memory that lies idle on the device: the steps of a program, told by what it uses in place. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "access_history.h"
#include "idle_window.h"

#define MS 1000000ull
#define GIB ((uint64_t)1 << 30)
#define CHUNKS 40 /* used in place in a step */
#define APART 10  /* uses from one to the next, of memory on the device */
#define STEP (CHUNKS * APART)
#define NEW UINT64_MAX

static struct spill_idle_window window;
static struct spill_idle_point at;
static uint64_t now;

static int begin(void **state)
{
	memset(&window, 0, sizeof(window));
	at = (struct spill_idle_point){.access = 1000, .use = 5000};
	now = 5000 * MS;
	return 0;
}

/* A chunk is used in place. That costs a microsecond. */
static void use(uint64_t gap)
{
	at.access += APART / 2;
	at.use += APART;
	at.in_place_ns += 1000;
	spill_idle_window_use(&window, at, gap);
}

/* A step, whose chunks were used `gap` ago. */
static void step(uint64_t gap)
{
	for (unsigned i = 0; i < CHUNKS; i++)
		use(gap);
}

static void steps(unsigned count)
{
	while (count--)
		step(STEP);
}

static bool is_due(void)
{
	return spill_idle_window_is_due(&window, at, now);
}

/* The window has three steps. */
static void repeats(void)
{
	step(NEW);
	steps(3);
	assert_true(is_due());
}

TEST(three_steps_tell)
{
	step(NEW);
	steps(1);
	assert_false(is_due());
	for (unsigned i = 1; i < CHUNKS; i++)
		use(STEP);
	assert_false(is_due());
	use(STEP);
	assert_true(is_due());
	assert_int_equal(window.step, (3 * STEP - APART) / 3 + 1);
}

TEST(some_launches_are_no_step)
{
	at.access = 0;
	use(NEW);
	for (unsigned i = 0; i < 25; i++) {
		use(APART);
		assert_false(is_due());
	}
	at.access = window.first.access + 127 - APART / 2;
	use(APART);
	assert_false(is_due());
	at.access = window.first.access + 128 - APART / 2;
	use(10 * APART);
	assert_true(is_due());
}

/* It is used by each launch, or by each layer. */
TEST(a_chunk_that_is_used_again_and_again_tells_no_step)
{
	for (unsigned i = 0; i < 100; i++) {
		use(i < 30 ? NEW : STEP);
		use(APART);
		assert_false(is_due());
	}
}

TEST(something_else_begins_a_window)
{
	repeats();
	uint64_t first = at.access;
	unsigned count = 0;
	for (; is_due(); count++)
		use(NEW);
	assert_in_range(count, 8, 23);
	assert_in_range(window.fresh, 8, 16);
	first += (count - window.fresh) * (APART / 2);
	assert_in_range(window.first.access, first + 1, first + APART / 2);
	for (; count < CHUNKS; count++)
		use(NEW);
	steps(2);
	assert_false(is_due());
	for (unsigned i = 0; i < CHUNKS; i++)
		use(STEP);
	assert_true(is_due());
	assert_in_range(window.first.access, first + 1, first + APART / 2);
}

/* Of sixteen uses that begin now so many are of new chunks. True: a window begins. */
static bool begins_by(unsigned fresh)
{
	uint64_t first = window.first.access;
	window.group.uses = 0;
	for (unsigned i = 0; i < 16; i++)
		use(i < fresh ? NEW : STEP);
	return window.first.access != first;
}

TEST(half_of_a_group_is_enough)
{
	repeats();
	assert_false(begins_by(7));
	assert_true(begins_by(8));
	begin(NULL);
	repeats();
	assert_true(begins_by(16));
}

/* Used again after a quarter of the window: some four times a step. */
TEST(what_is_used_some_times_a_step_tells_it)
{
	for (unsigned i = 0; i <= 100; i++)
		use(NEW);
	uint64_t again = window.again;
	use((at.use + APART - window.first.use) / 4 - 1);
	assert_int_equal(window.again, again);
	at.use += 4 * APART - (at.use + APART - window.first.use) % 4;
	use((at.use + APART - window.first.use) / 4);
	assert_int_equal(window.again, again + 1);
}

TEST(a_few_new_chunks_do_not)
{
	repeats();
	uint64_t first = window.first.access;
	for (unsigned i = 0; i < 3 * CHUNKS; i++) {
		use(i % 16 < 7 ? NEW : STEP);
		assert_true(is_due());
	}
	assert_int_equal(window.first.access, first);
}

/* What was used in place long ago belongs to no group. */
TEST(a_group_is_of_one_step)
{
	repeats();
	for (unsigned i = 0; i < 4; i++)
		use(STEP);
	at.use += 2 * STEP;
	at.access += STEP;
	uint64_t first = at.access;
	for (unsigned i = 0; i < 15; i++)
		use(NEW);
	assert_true(is_due());
	use(NEW);
	assert_false(is_due());
	assert_int_equal(window.first.access, first + APART / 2);
}

/* The program had all on the device for a while. */
TEST(after_a_silence_something_else_begins_a_window)
{
	step(NEW);
	at.use += STEP + APART;
	at.access += STEP / 2;
	uint64_t first = at.access;
	step(NEW);
	assert_in_range(window.first.access, first + 1, first + APART);
	steps(2);
	assert_true(is_due());
}

/* So many chunks, then nothing for so long, then a new one. True: a window begins. */
static bool begins_after(unsigned chunks, uint64_t silence)
{
	begin(NULL);
	for (unsigned i = 0; i < chunks; i++)
		use(NEW);
	uint64_t first = window.first.access;
	at.use += silence - APART;
	use(NEW);
	return window.first.access != first;
}

TEST(a_silence_is_longer_than_the_window)
{
	assert_false(begins_after(16, 15 * APART));
	assert_true(begins_after(16, 15 * APART + 1));
	assert_false(begins_after(15, 100 * APART));
}

TEST(a_silence_between_steps_does_not)
{
	step(NEW);
	uint64_t first = window.first.access;
	for (unsigned i = 0; i < 2; i++) {
		at.use += 10 * STEP;
		step(11 * STEP);
	}
	assert_true(is_due());
	assert_int_equal(window.first.access, first);
}

/* In the first step each chunk is new, one layer after the other. */
TEST(a_silence_among_few_chunks_does_not)
{
	use(NEW);
	uint64_t first = window.first.access;
	for (unsigned i = 0; i < 14; i++) {
		at.use += 1000 << i;
		use(NEW);
	}
	assert_int_equal(window.first.access, first);
}

TEST(a_window_has_at_most_eight_steps)
{
	repeats();
	for (unsigned i = 0; i < 100; i++) {
		steps(1);
		assert_in_range(at.use - window.first.use, 3 * window.step, 8 * window.step + STEP);
		assert_in_range(2 * (at.access - window.first.access), at.use - window.first.use - 64,
		                at.use - window.first.use + 64);
		assert_in_range(10 * (at.in_place_ns - window.first.in_place_ns) / 1000,
		                at.use - window.first.use - 64, at.use - window.first.use + 64);
		assert_true(is_due());
	}
}

TEST(what_the_history_has_forgotten_is_not_looked_at)
{
	repeats();
	at.access = window.first.access + SPILL_ACCESS_USES - APART / 2;
	use(STEP);
	assert_true(is_due());
	use(STEP);
	assert_false(is_due());
	assert_int_equal(window.first.access, at.access);
}

TEST(where_exchanges_pay_nothing_is_due)
{
	repeats();
	window.first.in_place_ns = at.in_place_ns - 16000;
	window.moves_ns = 1000;
	assert_false(is_due());
	window.moves_ns = 999;
	assert_true(is_due());
	while (is_due())
		use(NEW);
	assert_int_equal(window.moves_ns, 0);
}

TEST(a_look_in_vain_makes_the_next_one_wait)
{
	repeats();
	for (unsigned ms = 10; ms < 4000; ms *= 2) {
		spill_idle_window_looked(&window, at, true, false, now);
		now += (ms < 1000 ? ms : 1000) * MS - 1;
		assert_false(is_due());
		now++;
		assert_true(is_due());
	}
	spill_idle_window_looked(&window, at, true, true, now);
	assert_true(is_due()); /* perhaps there is more */
	spill_idle_window_looked(&window, at, true, false, now);
	now += 10 * MS;
	assert_true(is_due());
}

TEST(a_window_that_is_not_whole_begins_anew)
{
	repeats();
	spill_idle_window_looked(&window, at, false, false, now);
	now += 10 * MS;
	assert_false(is_due());
	assert_int_equal(window.first.use, at.use);
	step(STEP);
	steps(1);
	assert_false(is_due());
	steps(1);
	assert_true(is_due());
}

static void swapped(uint64_t paid, uint64_t vain, uint64_t vain_ms)
{
	spill_idle_window_looked(&window, at, true, true, now);
	spill_idle_window_swapped(&window, paid, vain, vain_ms * MS, now);
}

/* No look for so long. */
static void is_barred(uint64_t ms)
{
	now += ms * MS - 1;
	assert_false(is_due());
	now++;
	assert_true(is_due());
}

TEST(after_swaps_in_vain_there_is_none_for_long)
{
	repeats();
	swapped(0, 0, 0);
	assert_true(is_due());
	swapped(0, GIB, 100);
	is_barred(3200);
	swapped(0, GIB, 100);
	is_barred(6400);
	swapped(0, GIB, 1000);
	is_barred(32000);
	swapped(0, GIB, 100000);
	is_barred(600000);
	swapped(0, GIB, 100000);
	is_barred(600000);
	swapped(GIB, 0, 0);
	assert_true(is_due());
	swapped(0, 3 * GIB, 100);
	is_barred(3200);
}

TEST(what_paid_lately_counts)
{
	repeats();
	swapped(2 * GIB, 0, 0);
	swapped(0, GIB, 100);
	assert_true(is_due());
	swapped(0, GIB, 100);
	assert_true(is_due());
	swapped(0, 1, 100);
	is_barred(3200);
	/* Of what was before the last window half counts. */
	swapped(4 * GIB, 0, 0);
	spill_idle_window_looked(&window, at, false, false, now);
	steps(3);
	swapped(0, 2 * GIB + 1, 100);
	is_barred(3200);
}

/* In three steps of 600 accesses a MiB has cost 300 us, and its copies take 200: four steps, and three until the next phase is known. */
TEST(a_chunk_pays_by_its_copies_and_the_steps_until_the_other_comes_back)
{
	step(NEW);
	steps(2);
	assert_true(is_due());
	uint64_t accesses = at.access - window.first.access;
	assert_int_equal(spill_idle_window_pays_at(&window, at, 0, 300), at.access + accesses);
	assert_int_equal(spill_idle_window_pays_at(&window, at, 200, 300),
	                 at.access + accesses + accesses * 2 / 3);
	/* A window of more steps. */
	steps(3);
	uint64_t longer = at.access - window.first.access;
	assert_in_range(spill_idle_window_pays_at(&window, at, 200, 600),
	                at.access + accesses + longer / 3 - 20, at.access + accesses + longer / 3 + 20);
}

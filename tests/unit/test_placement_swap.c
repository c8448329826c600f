/* Which chunks swap: those on the host that cost more in a window of accesses than others on the device would. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "find_by_key.h"
#include "placement_swap.h"

#define MIB ((uint64_t)1 << 20)
#define MOST 16
#define COPY SPILL_BENEFIT_COPY_NS_PER_MIB
#define PERIODS 8 /* in the window: in one of them, a copy has to save an eighth of it */

static struct spill_access_history order;
static struct spill_migration_benefit costs;
static struct spill_exchange_chunk chunks[MOST + 1];
static unsigned ranks[MOST + 1];
static struct spill_exchange_choice window;
static unsigned period; /* accesses; 0: one of each chunk */

static int begin(void **state)
{
	memset(&order, 0, sizeof(order));
	memset(&costs, 0, sizeof(costs));
	memset(chunks, 0, sizeof(chunks));
	period = 0;
	window = (struct spill_exchange_choice){.chunks = chunks, .ranks = ranks, .slice = 256 * MIB};
	return 0;
}

/*
 * A chunk, with key 10, 20, 30 … in the order in which they are added. It costs `percent` of a copy at each access, which
 * is by a site of its own.
 */
static void add(uint64_t mib, bool on_host, uint64_t percent)
{
	unsigned site = ++window.count;

	assert_true(site <= MOST);
	chunks[site - 1] =
	    (struct spill_exchange_chunk){.key = site * 10, .bytes = mib * MIB, .on_host = on_host};
	spill_benefit_add_use(&costs, (uint16_t)site, 0, 1);
	spill_benefit_add_chunk_use(&costs, (uint16_t)site, site * 10, 100 * MIB, 1 + percent * COPY);
	assert_in_range(spill_benefit_chunk_excess(&costs, (uint16_t)site, site * 10),
	                percent * COPY / 100 - 1, percent * COPY / 100);
}

static void access_chunk(unsigned nth)
{
	spill_access_history_launch(&order, (const struct spill_access_range[]){{nth * 10, 1}}, 1,
	                            (uint16_t)nth);
}

/* All of them in turns. */
static void run(void)
{
	for (unsigned i = 0; i < PERIODS * window.count; i++)
		access_chunk(i % window.count + 1);
}

static bool choose(void)
{
	return spill_placement_swap(&window, &order, order.count - PERIODS * (period ? period : window.count),
	                            &costs);
}

static void swaps_once(const char *expected)
{
	static const char signs[] = {
	    [SPILL_EXCHANGE_STAYS] = '.', [SPILL_EXCHANGE_COMES] = '+', [SPILL_EXCHANGE_GOES] = '-'};
	char seen[MOST + 1] = "";
	uint64_t comes = 0, goes = 0;

	find_by_key(&window, 10);
	assert_int_equal(choose(), strchr(expected, '+') != NULL);
	for (unsigned i = 0; i < window.count; i++) {
		seen[i] = signs[chunks[i].verdict];
		comes += seen[i] == '+' ? chunks[i].bytes : 0;
		goes += seen[i] == '-' ? chunks[i].bytes : 0;
	}
	assert_string_equal(seen, expected);
	assert_int_equal(window.comes, comes);
	assert_int_equal(window.goes, goes);
	assert_true(comes <= goes + window.room);
}

/* These come and go: a letter each, + - or a dot for the ones that stay. What lies behind the last chunk is nobody's. */
static void swaps(const char *expected)
{
	struct spill_exchange_chunk *behind = &chunks[window.count];

	*behind = (struct spill_exchange_chunk){.bytes = 1024 * MIB,
	                                        .on_host = true,
	                                        .excess_ns = UINT64_MAX / 2,
	                                        .launch = 1,
	                                        .last = UINT64_MAX - 1};
	swaps_once(expected);
	assert_int_equal(behind->excess_ns, UINT64_MAX / 2);
	behind->verdict = SPILL_EXCHANGE_GOES;
	swaps_once(expected);
	assert_int_equal(behind->verdict, SPILL_EXCHANGE_GOES);
}

TEST(the_dearest_on_the_host_for_the_cheapest_on_the_device)
{
	add(64, true, 80);
	add(64, true, 90);
	add(64, false, 70);
	add(64, false, 20);
	run();
	swaps(".+.-");
	assert_int_equal(window.excess_ns, PERIODS * (90 * COPY / 100));
}

/* The window would have saved the copies, and the dearer one costs half as much again. */
TEST(a_swap_has_to_save_something)
{
	add(64, true, 18);
	add(64, false, 4);
	run();
	swaps("..");
	begin(NULL);
	add(64, true, 14);
	add(64, false, 1);
	run();
	swaps("+-");
	begin(NULL);
	add(64, true, 312);
	add(64, false, 200);
	run();
	swaps("..");
	begin(NULL);
	add(64, true, 313);
	add(64, false, 200);
	run();
	swaps("+-");
}

TEST(of_equals_the_first_one_swaps)
{
	add(64, true, 90);
	add(64, true, 90);
	add(64, false, 10);
	add(64, false, 10);
	run();
	window.slice = 1;
	swaps("+.-.");
}

/* A chunk that is accessed twice in a period costs twice as much. */
TEST(all_accesses_of_the_window_count)
{
	add(64, true, 30);
	add(64, false, 25);
	for (unsigned i = 0; i < 60; i++)
		access_chunk(i % 3 % 2 + 1);
	period = 3;
	swaps("+-");
}

TEST(accesses_before_the_window_do_not_count)
{
	add(64, true, 90);
	add(64, false, 10);
	add(64, false, 11);
	run();
	for (unsigned i = 0; i < PERIODS; i++)
		access_chunk(i < 2 ? 1 : 2);
	period = 1;
	swaps("+.-");
	access_chunk(2);
	order.uses[order.count] = order.uses[order.count - PERIODS]; /* nobody's */
	swaps("...");
}

/* Two buffers of one launch in a chunk cost it once. */
TEST(a_launch_costs_a_chunk_once)
{
	const struct spill_access_range both[] = {{10, 1}, {12, 1}};

	add(64, true, 30);
	add(64, false, 20);
	for (unsigned i = 0; i < 20; i++) {
		spill_access_history_launch(&order, both, 2, 1);
		access_chunk(2);
	}
	period = 3;
	swaps("..");
}

/* Two tables of two chunks each. A launch names one of them and a small buffer, 42 MiB, and was only seen with all of it on the device. */
static void add_tables(uint64_t ns)
{
	const uint16_t site = MOST + 1;

	add(64, true, 80);
	spill_benefit_add_use(&costs, site, 0, 1 + ns); /* the shortest launch takes 1 ns (add) */
	for (unsigned i = 0; i < 4; i++) {
		chunks[window.count] =
		    (struct spill_exchange_chunk){.key = 10 * (window.count + 1), .bytes = 64 * MIB};
		window.count++;
	}
	for (unsigned i = 0; i < PERIODS; i++) {
		access_chunk(1);
		for (uint32_t table = 20; table <= 40; table += 20)
			spill_access_history_launch(
			    &order, (const struct spill_access_range[]){{1000, 1}, {table, 20}}, 2, site);
	}
	period = 5;
}

/* It reads no more than the device in its time: of a MiB a quarter of what is saved, or half of it. */
TEST(a_table_that_a_launch_hardly_reads_goes)
{
	add_tables(3400);
	swaps("+-...");
	assert_in_range(chunks[1].excess_ns, PERIODS * 340000 / 42 - PERIODS, PERIODS * 340000 / 42);
	assert_int_equal(chunks[4].excess_ns, chunks[1].excess_ns);
	begin(NULL);
	add_tables(6000);
	swaps(".....");
}

TEST(a_window_can_begin_within_a_launch)
{
	add_tables(3400);
	find_by_key(&window, 10);
	spill_placement_swap(&window, &order, order.count - 1, &costs);
	assert_int_equal(chunks[2].excess_ns, 0);
	assert_int_equal(chunks[4].excess_ns, 340000 / 40);
}

/* A buffer that reaches into the next chunk costs both. */
TEST(a_buffer_costs_each_of_its_chunks)
{
	add(64, true, 60);
	add(64, false, 5);
	add(64, true, 90);
	add(64, false, 10);
	for (unsigned i = 0; i < 20; i++) {
		spill_access_history_launch(&order, (const struct spill_access_range[]){{18, 20}}, 1,
		                            MOST + 1);
		access_chunk(4);
	}
	spill_benefit_add_chunk_use(&costs, MOST + 1, 30, 100 * MIB, 90 * COPY);
	period = 2;
	find_by_key(&window, 10);
	assert_true(choose());
	assert_int_equal(chunks[0].excess_ns,
	                 PERIODS * COPY); /* nothing is known of that code and these chunks */
	assert_int_equal(chunks[1].excess_ns, PERIODS * COPY);
	assert_int_equal(chunks[2].excess_ns, PERIODS * (90 * COPY / 100));
}

TEST(pinned_and_needed_chunks_and_those_that_swapped_stay)
{
	add(64, true, 90);
	add(64, true, 60);
	add(64, false, 10);
	add(64, false, 11);
	add(64, false, 12);
	run();
	chunks[0].fixed = chunks[2].fixed = chunks[3].needed = true;
	swaps(".+..-");
	chunks[0].fixed = false;
	chunks[0].swapped = true; /* lately */
	swaps(".+..-");
	chunks[4].swapped = true;
	swaps(".....");
}

/* The slice bounds what comes, but one chunk always may. */
TEST(so_much_comes_at_once)
{
	add(64, true, 90);
	add(64, true, 80);
	add(64, true, 70);
	add(64, false, 10);
	add(64, false, 11);
	add(64, false, 12);
	run();
	swaps("+++---");
	window.slice = 128 * MIB;
	swaps("++.--.");
	window.slice = 128 * MIB - 1;
	swaps("+..-..");
	window.slice = 1;
	swaps("+..-..");
}

/* Several small ones go for a large one, and what is left of their room serves the next. */
TEST(sizes_differ)
{
	add(64, true, 90);
	add(32, true, 80);
	add(48, false, 10);
	add(48, false, 11);
	add(48, false, 12);
	run();
	swaps("++--.");
}

/*
 * Of what the window accesses, at most an eighth comes up in its second half alone. If there is more, it is no whole period: the
 * program has not come to the rest yet, which would count as unused.
 */
TEST(half_a_period_tells_nothing)
{
	for (unsigned count = 8; count >= 7; count--) {
		begin(NULL);
		add(64, true, 90);
		while (window.count < count)
			add(64, false, 10);
		run();
		for (unsigned i = 0; i < PERIODS * count; i++)
			access_chunk(i % count                 ? i % count
			             : i < PERIODS * count / 2 ? 1 /* instead of the last one */
			                                       : count);
		swaps(count == 8 ? "+......-" : ".......");
		assert_int_equal(window.whole, count == 8);
	}
}

/* Half a million chunks of all accesses take some 10 ms. */
TEST(a_look_does_not_take_long)
{
	const struct spill_access_range rest[] = {{20, 10 * (MOST - 1)}};

	for (unsigned i = 0; i < MOST; i++)
		add(64, !i, i ? 10 : 90);
	for (unsigned i = 0; i < (1u << 19) / MOST; i++) {
		access_chunk(1);
		spill_access_history_launch(&order, rest, 1, 2);
	}
	period = (1u << 20) / MOST / PERIODS;
	find_by_key(&window, 10);
	assert_true(choose());
	assert_true(window.whole);
	for (unsigned i = 0; i < 2; i++)
		spill_access_history_launch(&order, rest, 1, 2);
	assert_false(choose());
	assert_false(window.whole);
}

/* What is free is used first. A copy has to pay there, too. */
TEST(room_needs_nobody_to_go)
{
	add(64, true, 90);
	add(64, true, 80);
	add(64, false, 10);
	add(64, false, 11);
	run();
	window.room = 64 * MIB;
	swaps("++-.");
	window.room = 128 * MIB;
	swaps("++..");
	begin(NULL);
	add(64, true, 12);
	run();
	window.room = 64 * MIB;
	swaps(".");
}

/* What counts is what all of them cost together. */
TEST(larger_ones_do_not_go_for_less)
{
	add(16, true, 200);
	add(64, false, 100);
	run();
	swaps("..");
	begin(NULL);
	add(16, true, 200);
	add(64, false, 20);
	run();
	swaps("+-");
	begin(NULL);
	add(64, true, 90);
	add(16, true, 1); /* its copies cost more than it did */
	add(80, false, 10);
	run();
	swaps("+.-");
}

/* If too few are cheap enough, none of them goes for it. */
TEST(what_finds_no_room_does_not_come)
{
	add(64, true, 90);
	add(96, true, 80);
	add(64, false, 10);
	add(64, false, 11);
	add(64, false, 79);
	run();
	swaps("+.-..");
	assert_int_equal(window.goes, 64 * MIB);
}

/* What an exchange chose before is forgotten. */
/* The cheaper one is used in the window. */
TEST(with_idle_only_nothing_else_leaves)
{
	add(64, true, 90);
	add(64, false, 1);
	add(64, false, 70);
	for (unsigned i = 0; i < PERIODS; i++) {
		access_chunk(1);
		access_chunk(2);
	}
	period = 2;
	swaps("+.-"); /* what is not used costs least anyway */
	window.idle_only = true;
	swaps("+.-");
	chunks[2].needed = true;
	swaps("...");
	window.idle_only = false;
	swaps("+-.");
}

TEST(older_verdicts_do_not_count)
{
	add(64, true, 10);
	add(64, false, 90);
	run();
	chunks[0].verdict = SPILL_EXCHANGE_COMES;
	chunks[1].verdict = SPILL_EXCHANGE_GOES;
	window.comes = window.goes = 64 * MIB;
	swaps("..");
	assert_int_equal(window.excess_ns, 0);
}

/* Two of three are elsewhere because of an exchange. Each is accessed eight times. */
TEST(what_memory_at_home_would_cost)
{
	add(64, true, 400);
	add(32, false, 50);
	add(16, true, 25);
	add(128, false, 100);
	chunks[0].displaced = chunks[1].displaced = true;
	run();
	find_by_key(&window, 10);
	assert_in_range(spill_placement_home_cost(&window, &order, 0, &costs),
	                PERIODS * (32 * COPY / 2 + 16 * COPY / 4) - 1000,
	                PERIODS * (32 * COPY / 2 + 16 * COPY / 4));
	assert_in_range(spill_placement_home_cost(&window, &order, order.count - window.count, &costs),
	                32 * COPY / 2 + 16 * COPY / 4 - 100, 32 * COPY / 2 + 16 * COPY / 4);
}

/*
 * The chunks that come and those that leave, case by case. What it adds up to over many steps:
 * test_sweeps.c.
 */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "exchange_choice.h"
#include "find_by_key.h"

#define MIB ((uint64_t)1 << 20)
#define MOST 64
#define SITE 1 /* what it costs there: excess() */

static struct spill_access_history order;
static struct spill_migration_benefit reuse;
static struct spill_exchange_chunk chunks[MOST];
static unsigned ranks[MOST];
static struct spill_exchange_choice window;

static int begin(void **state)
{
	memset(&order, 0, sizeof(order));
	memset(&reuse, 0, sizeof(reuse));
	memset(chunks, 0, sizeof(chunks));
	window = (struct spill_exchange_choice){
	    .chunks = chunks, .ranks = ranks, .slice = 1, .horizon = UINT64_MAX};
	return 0;
}

/* Keys are 10, 20, 30 in the order in which they are added. */
static struct spill_exchange_chunk *add(uint64_t mib, bool on_host)
{
	struct spill_exchange_chunk *chunk = &chunks[window.count++];

	*chunk =
	    (struct spill_exchange_chunk){.key = window.count * 10, .bytes = mib * MIB, .on_host = on_host};
	return chunk;
}

/* `host` chunks on the host and then as many resident, of 64 MiB. */
static void add_both(unsigned host, unsigned resident)
{
	for (unsigned i = 0; i < host + resident; i++)
		add(64, i < host);
}

static void use(unsigned nth, uint16_t site)
{
	spill_access_history_launch(&order, (const struct spill_access_range[]){{nth * 10, 1}}, 1, site);
}

/* Uses all, from the first to the last, in four sweeps: then the first is about to be used again. */
static void sweeps(uint16_t site)
{
	for (unsigned i = 0; i < 40 || i % window.count; i++)
		use(i % window.count + 1, site);
}

/* The n-th chunk is used now. */
static void need(unsigned nth)
{
	use(nth, SITE);
	chunks[nth - 1].needed = true;
}

static bool choose_for(const struct spill_migration_benefit *by, uint16_t site, bool moved_so_far)
{
	find_by_key(&window, 10);
	return spill_exchange_choose(&window, &order, by, site, moved_so_far);
}

static bool choose(const struct spill_migration_benefit *by)
{
	return choose_for(by, SITE, false);
}

/* Exactly these come and go: a letter each, + - or blank for the ones that stay. */
static void verdicts(const char *expected)
{
	static const char signs[] = {
	    [SPILL_EXCHANGE_STAYS] = '.', [SPILL_EXCHANGE_COMES] = '+', [SPILL_EXCHANGE_GOES] = '-'};
	char seen[MOST + 1] = "";
	uint64_t comes = 0, goes = 0;

	for (unsigned i = 0; i < window.count; i++) {
		seen[i] = signs[chunks[i].verdict];
		comes += seen[i] == '+' ? chunks[i].bytes : 0;
		goes += seen[i] == '-' ? chunks[i].bytes : 0;
		assert_int_equal(chunks[i].key, (i + 1) * 10);
	}
	assert_string_equal(seen, expected);
	assert_int_equal(window.comes, comes);
	assert_int_equal(window.goes, goes);
	assert_true(comes <= window.room + goes);
}

/* A site whose memory costs so much on the host, a MiB and use, in hundredths of what a copy costs. */
static void excess(uint16_t site, uint64_t hundredths)
{
	for (unsigned i = 0; i < 3; i++) {
		spill_benefit_add_use(&reuse, site, 0, 1);
		spill_benefit_add_use(&reuse, site, 100 * MIB,
		                      1 + hundredths * SPILL_BENEFIT_COPY_NS_PER_MIB);
	}
	assert_in_range(spill_benefit_excess(&reuse, site) * 1000 / SPILL_BENEFIT_COPY_NS_PER_MIB,
	                hundredths * 10 - 1, hundredths * 10 + 1);
}

TEST(nothing_needed_nothing_moves)
{
	add_both(2, 4);
	sweeps(SITE);
	assert_false(choose(NULL));
	assert_false(window.pays);
	verdicts("......");
}

/* In a sweep, the chunk that was used just now is needed last. */
TEST(the_furthest_goes)
{
	add_both(2, 6);
	sweeps(SITE);
	need(1);
	assert_true(choose(NULL));
	assert_true(window.pays);
	verdicts("+......-");
	assert_int_equal(chunks[0].next, 0);
	assert_int_equal(chunks[1].next, 1);
	assert_int_equal(chunks[7].next, 7);
}

/* Room is left for the next exchange, too, but not by what is needed again in fewer than eight accesses. */
TEST(room_is_left_by_what_is_not_needed_soon)
{
	add_both(2, 6);
	sweeps(SITE);
	need(1);
	window.spare = 64 * MIB;
	assert_true(choose(NULL));
	verdicts("+......-");
	begin(NULL);
	add_both(2, 8);
	sweeps(SITE);
	need(1);
	window.spare = 64 * MIB;
	assert_true(choose(NULL));
	verdicts("+.......--");
	assert_int_equal(chunks[8].next, 8);
}

/* A buffer of units 25 to 35: two chunks. */
static void use_both(void)
{
	spill_access_history_launch(&order, (const struct spill_access_range[]){{25, 11}}, 1, SITE);
}

TEST(the_chunks_of_a_buffer_are_used_in_their_order)
{
	add_both(4, 6);
	for (unsigned step = 0; step < 5; step++)
		for (unsigned i = 4; i <= 10; i++) {
			use(i, SITE);
			if (i == 6)
				use_both();
		}
	use(4, SITE);
	chunks[3].needed = true;
	assert_true(choose(NULL));
	assert_int_equal(chunks[4].next, 1);
	assert_int_equal(chunks[5].next, 2);
	assert_int_equal(chunks[1].next, 3);
	assert_int_equal(chunks[2].next, 4);
	assert_int_equal(chunks[6].next, 5);
	assert_int_equal(chunks[0].next, UINT64_MAX);
}

/* Behind the last chunk is no memory. */
TEST(what_was_freed_of_a_buffer_is_left_out)
{
	add_both(1, 2);
	for (unsigned step = 0; step < 20; step++) {
		use(1, SITE);
		use(2, SITE);
		spill_access_history_launch(&order, (const struct spill_access_range[]){{35, 60000}}, 1,
		                            SITE);
	}
	need(1);
	assert_true(choose(NULL));
	assert_int_equal(chunks[1].next, 1);
	assert_int_equal(chunks[2].next, 2);
	/* Nor is there where the buffer begins. */
	chunks[2].key = 50;
	assert_true(choose(NULL));
	assert_int_equal(chunks[2].next, UINT64_MAX);
}

/* One launch can have several buffers in a chunk. The chunk costs it once. */
TEST(a_launch_costs_a_chunk_once)
{
	add_both(1, 3);
	excess(SITE, 100);
	window.horizon = 64 * MIB;
	for (unsigned step = 0; step < 20; step++) {
		use(1, SITE);
		use(2, SITE);
		spill_access_history_launch(
		    &order, (const struct spill_access_range[]){{30, 2}, {33, 2}, {36, 9}}, 3, SITE);
	}
	need(1);
	choose(&reuse);
	assert_int_equal(chunks[1].excess_ns, chunks[2].excess_ns);
	assert_int_equal(chunks[1].excess_ns, chunks[3].excess_ns);
	assert_true(chunks[1].excess_ns);
}

/* Where nothing is predicted, too. */
TEST(all_chunks_of_a_buffer_were_used_at_the_same_time)
{
	add_both(1, 3);
	use(4, SITE);
	use_both();
	use(1, SITE);
	need(1);
	assert_true(choose(NULL));
	assert_int_equal(chunks[1].last, 2);
	assert_int_equal(chunks[2].last, 2);
	assert_int_equal(chunks[3].last, 3);
}

TEST(room_is_taken_first)
{
	add_both(2, 6);
	sweeps(SITE);
	window.room = 64 * MIB;
	need(1);
	assert_true(choose(NULL));
	verdicts("+.......");
}

/* 20 chunks, so that the second is needed much sooner than the last. */
TEST(the_foreseen_come_too)
{
	add_both(4, 16);
	sweeps(SITE);
	window.slice = 2 * 64 * MIB;
	need(1);
	assert_true(choose(NULL));
	verdicts("++................--");
	window.slice--;
	assert_true(choose(NULL));
	verdicts("+..................-");
	/* The third would come for one that is needed not much later than it. */
	window.slice = 20 * 64 * MIB;
	assert_true(choose(NULL));
	verdicts("+++..............---");
}

/* They are not copied. */
TEST(dead_ones_come_beside_the_slice)
{
	add_both(4, 16);
	sweeps(SITE);
	window.slice = 64 * MIB;
	need(1);
	chunks[1].dead = true;
	assert_true(choose(NULL));
	verdicts("++................--");
	chunks[1].dead = false;
	chunks[0].dead = true;
	assert_true(choose(NULL));
	verdicts("++................--");
	chunks[0].dead = false;
	assert_true(choose(NULL));
	verdicts("+..................-");
}

/* For a flight nothing has to be needed yet, and what little it saves does not count. */
TEST(ahead_of_any_need_the_next_come)
{
	excess(SITE, 1);
	add_both(4, 16);
	sweeps(SITE);
	window.slice = 2 * 64 * MIB;
	assert_false(choose(&reuse));
	window.ahead = true;
	assert_true(choose(&reuse));
	verdicts("++................--");
}

/* What is foreseen takes room, however far it is, but makes nothing leave that is needed sooner or soon after. */
TEST(far_ones_take_room_only)
{
	add_both(4, 4);
	sweeps(SITE);
	window.slice = 8 * 64 * MIB;
	window.room = 2 * 64 * MIB;
	need(1);
	assert_true(choose(NULL));
	verdicts("++......");
}

/*
 * Needed chunks come, even in the place of chunks that are needed next. Chunks that cannot come
 * stay.
 */
TEST(needed_by_the_same_use)
{
	add_both(3, 2);
	sweeps(SITE);
	need(1);
	need(2);
	need(3);
	assert_true(choose(NULL));
	verdicts("++.--");
	chunks[4].needed = true;
	assert_true(choose(NULL));
	verdicts("+..-.");
	chunks[3].needed = true;
	assert_false(choose(NULL));
	assert_true(window.pays);
	verdicts(".....");
}

/* Pinned ones neither come nor go. */
TEST(fixed_ones_stay)
{
	add_both(2, 3);
	sweeps(SITE);
	need(1);
	chunks[4].fixed = true;
	assert_true(choose(NULL));
	verdicts("+..-.");
	chunks[0].fixed = true;
	assert_false(choose(NULL));
	verdicts(".....");
}

/*
 * Chunks in no period leave first. Among these, chunks that were never used leave first, then the
 * one that was used longest ago.
 */
TEST(not_foreseen_goes_first)
{
	for (unsigned i = 0; i < 7; i++)
		add(64, i == 0);
	use(6, SITE);
	use(5, SITE);
	for (unsigned i = 0; i < 40; i++)
		use(i % 4 + 1, SITE);
	need(1);
	assert_true(choose(NULL));
	verdicts("+.....-");
	assert_int_equal(chunks[6].last, UINT64_MAX);
	chunks[6].fixed = true;
	assert_true(choose(NULL));
	verdicts("+....-.");
	chunks[5].fixed = true;
	assert_true(choose(NULL));
	verdicts("+...-..");
	chunks[4].fixed = true;
	assert_true(choose(NULL));
	verdicts("+..-...");
}

/* 60 MiB are needed; the furthest are of 2 and 64: the small one need not go with the large one. */
TEST(no_more_goes_than_is_needed)
{
	add(60, true);
	add(2, false);
	add(64, false);
	add(2, false);
	add(2, false);
	sweeps(SITE);
	need(1);
	assert_true(choose(NULL));
	verdicts("+.-..");
	chunks[0].bytes = 3 * MIB;
	assert_true(choose(NULL));
	verdicts("+..--");
}

/* Mean over the bytes that are needed and on the host: 1.2 times the copy pays. */
TEST(it_must_pay)
{
	excess(SITE, 119);
	add_both(1, 3);
	need(1);
	assert_false(choose(&reuse));
	assert_false(window.pays);
	verdicts("....");
	assert_in_range(chunks[0].excess_ns, SPILL_BENEFIT_COPY_NS_PER_MIB,
	                3 * SPILL_BENEFIT_COPY_NS_PER_MIB / 2);
	assert_true(choose_for(&reuse, SITE, true));
	window.always = true;
	assert_true(choose(&reuse));
	window.always = false;
	excess(2, 121);
	assert_true(choose_for(&reuse, 2, false));
}

/* Each of the foreseen uses counts, as long as the stay lasts: until `horizon` of others was used. */
TEST(uses_of_one_stay_add_up)
{
	excess(SITE, 100);
	add_both(1, 3);
	for (unsigned i = 0; i < 60; i++)
		use((const unsigned[]){1, 2, 1, 3, 1, 4}[i % 6], SITE);
	need(1);
	/* Now, then 1 behind each of 2, 3 and, as the last of the period, now again. */
	assert_true(choose(&reuse));
	assert_in_range(chunks[0].excess_ns / (SPILL_BENEFIT_COPY_NS_PER_MIB / 100), 399, 401);
	window.horizon = 2 * 64 * MIB;
	assert_true(choose(&reuse));
	assert_in_range(chunks[0].excess_ns / (SPILL_BENEFIT_COPY_NS_PER_MIB / 100), 199, 201);
	window.horizon = 64 * MIB;
	assert_false(choose(&reuse));
	assert_in_range(chunks[0].excess_ns / (SPILL_BENEFIT_COPY_NS_PER_MIB / 100), 99, 101);
}

/* Four chunks on the device have room for one of two models of three. Each is used for so many steps in turns. */
static void take_turns(unsigned steps)
{
	add_both(2, 4);
	window.horizon = 128 * MIB;
	excess(SITE, 20);
	for (unsigned turn = 0; turn < 8; turn++)
		for (unsigned step = 0; step < steps; step++)
			for (unsigned part = 1; part <= 3; part++)
				use(part + 3 * (turn % 2), SITE);
	need(1);
}

/* A step of a model is more than half of the device, and all its steps are less than the device. */
TEST(a_stay_is_wide_where_the_program_takes_turns)
{
	take_turns(10);
	assert_true(choose(&reuse));
	assert_in_range(chunks[0].excess_ns / (SPILL_BENEFIT_COPY_NS_PER_MIB / 100), 199, 201);
	verdicts("+....-");
	/* What leaves loses half of its own turn, and at most a copy. Three quarters count. */
	assert_in_range(window.rent_ns * 100 / SPILL_BENEFIT_COPY_NS_PER_MIB, 70, 75);
}

TEST(short_turns_are_no_wide_stay)
{
	take_turns(1);
	assert_false(choose(&reuse));
	assert_in_range(chunks[0].excess_ns / (SPILL_BENEFIT_COPY_NS_PER_MIB / 100), 19, 21);
}

/* Each is used twice in a row. Which of the two is on the device is all the same, so an exchange only costs. */
TEST(the_one_that_leaves_is_worth_something_too)
{
	add_both(1, 1);
	window.horizon = 32 * MIB; /* of 64 */
	excess(SITE, 65);
	for (unsigned i = 0; i < 40; i++)
		use(1 + i / 2 % 2, SITE);
	need(1);
	assert_false(choose(&reuse));
	assert_in_range(window.excess_ns * 100 / SPILL_BENEFIT_COPY_NS_PER_MIB, 129, 131);
	assert_true(window.rent_ns > 0);

	window.always = true;
	assert_true(choose(&reuse));
	verdicts("+-");

	/* A device with room for both costs nothing. */
	window.always = false;
	chunks[1].on_host = true;
	window.room = 64 * MIB;
	assert_true(choose(&reuse));
	assert_int_equal(window.rent_ns, 0);
	verdicts("+.");
}

/* What leaves and is not used again is worth nothing. */
TEST(what_is_used_no_more_is_worth_nothing)
{
	add_both(1, 1);
	window.horizon = 64 * MIB;
	excess(SITE, 65);
	for (unsigned i = 0; i < 40; i++)
		use(1 + (i < 2), SITE);
	need(1);
	assert_true(choose(&reuse));
	assert_int_equal(window.rent_ns, 0);
	verdicts("+-");
}

/* Each MiB that was begun counts, and so a chunk of less than one does. */
TEST(a_part_of_a_mib_counts_as_one)
{
	uint64_t ns[3], sum = 0;

	add(1, true)->bytes = MIB / 2;
	add(2, true);
	add(3, true)->bytes = 2 * MIB + 1;
	add(6, false);
	excess(SITE, 100);
	for (unsigned i = 0; i < 70; i++)
		use((const unsigned[]){1, 2, 2, 3, 3, 3, 4}[i % 7], SITE);
	window.horizon = 6 * MIB;
	for (unsigned nth = 1; nth <= 3; nth++)
		need(nth);
	choose(&reuse);
	for (unsigned i = 0; i < 3; i++) {
		ns[i] = chunks[i].excess_ns;
		sum += (i + 1) * ns[i];
	}
	assert_true(ns[1] < ns[2]);
	assert_int_equal(window.excess_ns, sum / 6);
}

/* A large one that pays carries a small one that does not, and not the other way round. */
TEST(bytes_count_the_same)
{
	excess(SITE, 100);
	add(2, true);
	add(64, true);
	add(128, false);
	for (unsigned i = 0; i < 60; i++)
		use((const unsigned[]){1, 2, 2, 3}[i % 4], SITE);
	window.horizon = 128 * MIB;
	need(1);
	need(2);
	assert_true(choose(&reuse));
	verdicts("++-");
	chunks[0].bytes = 64 * MIB;
	chunks[1].bytes = 2 * MIB;
	assert_false(choose(&reuse));
	verdicts("...");
}

/*
 * A chunk that is perhaps needed comes along with needed ones, beyond the slice, if it pays. It
 * leaves for a needed chunk if there is no other.
 */
TEST(what_is_perhaps_needed)
{
	excess(SITE, 200);
	add_both(3, 3);
	need(1);
	use(2, SITE);
	use(3, SITE);
	chunks[1].maybe = chunks[2].maybe = true;
	window.slice = 32 * MIB; /* four of them are two chunks */
	assert_true(choose(&reuse));
	verdicts("++.--.");
	window.slice = 64 * MIB;
	assert_true(choose(&reuse));
	verdicts("+++---");
	chunks[3].maybe = true;
	assert_true(choose(&reuse));
	verdicts("++..--");
	chunks[4].needed = chunks[5].needed = true;
	assert_true(choose(&reuse));
	verdicts("+..-..");
	/* Alone, too. It must pay, unless everything does. */
	chunks[0].on_host = false;
	chunks[3].maybe = chunks[4].needed = chunks[5].needed = false;
	assert_true(choose(&reuse));
	verdicts(".++--.");
	excess(SITE, 10);
	for (unsigned i = 0; i < 20; i++)
		excess(SITE, 10);
	assert_false(choose(&reuse));
	window.always = true;
	assert_true(choose(&reuse));
	verdicts(".++--.");
}

/* A foreseen one comes for its own sake only. */
TEST(the_foreseen_must_pay_themselves)
{
	excess(SITE, 200);
	excess(2, 100);
	add_both(3, 20);
	for (unsigned i = 0; i < 23 * 4; i++)
		use(i % 23 + 1, i % 23 == 1 ? 2 : SITE);
	window.slice = 3 * 64 * MIB;
	need(1);
	assert_true(choose(&reuse));
	verdicts("+.+..................--");
	chunks[1].dead = true;
	assert_true(choose(&reuse));
	verdicts("+++.................---");
	chunks[1].dead = false;
	window.always = true;
	assert_true(choose(&reuse));
	verdicts("+.+..................--");
}

/* Whatever the order of the list, the same chunks come and go. */
TEST(the_order_of_the_list_does_not_matter)
{
	enum spill_exchange_verdict before[MOST];
	add_both(4, 8);
	sweeps(SITE);
	need(1);
	assert_true(choose(NULL));
	for (unsigned i = 0; i < window.count; i++)
		before[i] = chunks[i].verdict;
	for (unsigned i = 0; i < window.count; i++) {
		struct spill_exchange_chunk chunk = chunks[i];
		unsigned other = (i * 5 + 3) % window.count;
		chunks[i] = chunks[other];
		chunks[other] = chunk;
	}
	assert_true(choose(NULL));
	for (unsigned i = 0; i < window.count; i++)
		assert_int_equal(chunks[i].verdict, before[chunks[i].key / 10 - 1]);
}

/*
 * The model of accesses: its estimate of the device's work, what it tells of memory that is used in place,
 * and what the exchanges teach. The clock, the stopwatches and the memory on the host are the test's.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "access_choice.h"
#include "access_model.h"
#include "access_recording.h"
#include "chunked.h"
#include "fake_clock.h"
#include "find_by_key.h"
#include "graph_modes.h"
#include "param_extent.h"
#include "process.h"
#include "stopwatch.h"
#include "trial.h"

#define MS 1000000ull
#define US 1000ull
#define MIB ((uint64_t)1 << 20)
#define START (100000 * MS)

static struct spill_policy policy;

static struct {
	/* A measurement that arrives at the next look. */
	bool arrives, at_most;
	struct spill_stopwatch_access timed;
	uint64_t ns, behind_ns;
	/* What the others say. */
	unsigned pending;
	uint64_t on_host;
	bool recording, may_help;
	void (*meanwhile)(void); /* during a launch: the lock is held */
} world;

static struct {
	unsigned looks, recorded, tried, of_graphs, too_short, suffices;
} seen;

void spill_stopwatch_collect(void (*done)(const struct spill_stopwatch_access *access,
                                          const struct spill_stopwatch_time *time))
{
	const struct spill_stopwatch_time time = {world.ns, world.at_most, world.behind_ns};
	seen.looks++;
	if (world.arrives)
		done(&world.timed, &time);
	world.arrives = false;
}

unsigned spill_stopwatch_pending(void)
{
	void (*meanwhile)(void) = world.meanwhile;
	world.meanwhile = NULL;
	if (meanwhile)
		meanwhile();
	return world.pending;
}

bool spill_access_recording_on(void)
{
	return world.recording;
}

void spill_access_recording_time(uint64_t number, uint64_t on_host, uint64_t ns)
{
	seen.recorded++;
}

void spill_graph_modes_measured(const struct spill_stopwatch_access *access, uint64_t ns)
{
	seen.of_graphs++;
}

void spill_trial_measured(const struct spill_stopwatch_access *access, uint64_t ns)
{
	seen.tried++;
}

uint64_t spill_chunked_on_host(void)
{
	return world.on_host;
}

bool spill_param_extent_too_short(uint64_t site)
{
	seen.too_short++;
	return world.may_help;
}

void spill_param_extent_suffices(uint64_t site)
{
	seen.suffices++;
}

static int setup(void **state)
{
	memset(&world, 0, sizeof(world));
	memset(&seen, 0, sizeof(seen));
	spill_policy_default(&policy);
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	spill_process_use_policy(&policy);
	fake_clock_use(START);
	spill_access_model_reset();
	return 0;
}

/* A launch of the code that uses one chunk of so many MiB, on the host or not. */
static struct spill_launch_access access_of(uint64_t code, uint32_t key, uint64_t host_mib)
{
	struct spill_launch_access access = {.site = code, .count = 1, .sure = 1, .bytes = 64 * MIB};
	access.keys[0] = access.host_keys[0] = key;
	access.ranges[access.range_count++] = (struct spill_access_range){key, 1};
	access.on_host = host_mib != 0;
	access.host_bytes = host_mib * MIB;
	return access;
}

static struct spill_access_advice learn(uint64_t code, uint32_t key, uint64_t host_mib)
{
	struct spill_launch_access access = access_of(code, key, host_mib);
	return spill_access_model_learn(&access);
}

/* A measurement of the launch with that advice arrives. */
static void measured(const struct spill_access_advice *advice, uint64_t on_host, uint64_t ns)
{
	world.arrives = true;
	world.ns = ns;
	world.timed = (struct spill_stopwatch_access){
	    .site = advice->site, .on_host = on_host, .work_ns = advice->work_ns, .waited = advice->waited};
	spill_access_model_hear();
}

static void took_at_most(const struct spill_access_advice *advice, uint64_t on_host, uint64_t ns)
{
	world.at_most = true;
	measured(advice, on_host, ns);
	world.at_most = false;
}

/* Code that is known to take so long with all memory on the device. */
static void know(uint64_t code, uint64_t ns)
{
	struct spill_access_advice advice = learn(code, 1, 0);
	for (unsigned i = 0; i < 4; i++)
		measured(&advice, 0, ns);
}

static struct spill_in_place_sums sums(bool all)
{
	struct spill_in_place_sums sums;
	assert_true(spill_access_model_in_place(&sums, all));
	return sums;
}

/* -- the device's work --------------------------------------------------------------------------------------- */

TEST(work_is_the_sum_of_launches)
{
	know(1, 100 * US);
	know(2, 30 * US);
	uint64_t before = learn(1, 1, 0).work_ns;
	assert_int_equal(learn(1, 1, 0).work_ns, before + 100 * US);
	assert_int_equal(learn(2, 1, 0).work_ns, before + 130 * US);
	assert_int_equal(learn(2, 1, 0).work_ns, before + 160 * US);
}

/* 64 MiB on the host cost as much as a copy until more is known. */
TEST(memory_on_the_host_makes_a_launch_longer)
{
	know(1, 100 * US);
	uint64_t before = learn(1, 1, 0).work_ns;
	assert_int_equal(learn(1, 5, 64).work_ns, before + 100 * US + 64ull * SPILL_BENEFIT_COPY_NS_PER_MIB);
}

TEST(the_device_is_busy_with_what_was_submitted)
{
	const uint64_t own = SPILL_BENEFIT_COPY_NS_PER_MIB; /* of the launch that asks */
	know(1, 100 * US);
	spill_access_model_idle();
	assert_int_equal(learn(2, 5, 1).busy_ns, 0);
	for (unsigned i = 0; i < 3; i++)
		learn(1, 1, 0);
	fake_clock.ns += 50 * US;
	assert_int_equal(learn(2, 5, 1).busy_ns, own + 250 * US);
	assert_int_equal(learn(2, 5, 1).busy_ns, 2 * own + 250 * US);
	fake_clock.ns += 10 * MS;
	assert_int_equal(learn(2, 5, 1).busy_ns, 0);
	learn(1, 1, 0);
	assert_int_equal(learn(2, 5, 1).busy_ns, own + 100 * US);
	spill_access_model_idle();
	assert_int_equal(learn(2, 5, 1).busy_ns, 0);
}

/* Ten launches of 1 ms. Returns the advice for the first. */
static struct spill_access_advice submit_ten(void)
{
	know(1, 1000 * US);
	know(2, 0);
	spill_access_model_idle();
	learn(2, 5, 1);
	struct spill_access_advice first = learn(1, 1, 0);
	for (unsigned i = 0; i < 9; i++)
		learn(1, 1, 0);
	return first;
}

/* A launch is done: what was submitted behind it is left at most, and the device is as late as it was seen. */
TEST(a_measured_launch_bounds_the_work_that_is_left)
{
	struct spill_access_advice first = submit_ten();
	world.behind_ns = 1;
	measured(&first, 0, 1000 * US);
	assert_int_equal(learn(2, 5, 1).busy_ns, 9000 * US);
	/* And at least as late as it was seen. */
	world.behind_ns = 20000 * US;
	measured(&first, 0, 1000 * US);
	assert_int_equal(learn(2, 5, 1).busy_ns, 20000 * US);
	/* One that was never seen unfinished tells nothing of the rest. */
	world.behind_ns = 0;
	struct spill_access_advice last = learn(1, 1, 0);
	measured(&last, 0, 1000 * US);
	assert_true(learn(2, 5, 1).busy_ns > 9000 * US);
}

/* -- advice --------------------------------------------------------------------------------------------------- */

/* Copies and sets teach the order of accesses only. */
TEST(a_copy_is_no_launch)
{
	struct spill_launch_access access = access_of(1, 5, 64);
	access.once = true;
	struct spill_access_advice advice = spill_access_model_learn(&access);
	assert_true(advice.learned);
	assert_false(advice.bring || advice.timed || advice.tells);
	assert_int_equal(advice.work_ns, 0);
	assert_int_equal(sums(true).bytes, 0);
}

TEST(followed_always_everything_comes_untimed)
{
	policy.movable_follow = SPILL_FOLLOW_ON;
	struct spill_access_advice advice = learn(1, 5, 64);
	assert_true(advice.bring);
	assert_false(advice.timed);
	assert_int_equal(advice.excess_ns, SPILL_BENEFIT_COPY_NS_PER_MIB);
	assert_false(learn(2, 6, 0).bring || learn(2, 6, 0).timed);
	assert_int_equal(seen.looks, 0);
	world.recording = true; /* which has times */
	learn(1, 5, 64);
	assert_int_equal(seen.looks, 1);
	/* They go to the recording and the trials, not to the model. */
	world.on_host = 1;
	measured(&advice, 0, 10000 * MS);
	measured(&advice, 0, 10000 * MS);
	assert_int_equal(seen.recorded, 2);
	assert_int_equal(seen.tried, 2);
	assert_int_equal(seen.suffices + seen.too_short, 0);
	assert_int_equal(seen.of_graphs, 2);
}

/* What all nodes of a graph took tells how it is launched, and nothing of a launch. */
TEST(the_time_of_all_nodes_of_a_graph_is_of_no_launch)
{
	world.on_host = 1;
	world.arrives = true;
	world.ns = 10 * MS;
	world.timed = (struct spill_stopwatch_access){.graph = 3, .by_nodes = true};
	spill_access_model_hear();
	assert_int_equal(seen.of_graphs, 1);
	assert_int_equal(seen.tried + seen.recorded, 0);
}

/* Launches on the device leave half of the stopwatches to those that use memory on the host. */
TEST(which_launches_are_timed)
{
	/* While nothing is on the host, none is, and none counts. */
	for (unsigned i = 0; i < 1000; i++)
		assert_false(learn(1, 5, 0).timed);
	world.on_host = 1;
	world.pending = SPILL_STOPWATCHES / 2 - 1;
	assert_true(learn(1, 1, 0).timed);
	world.pending++;
	assert_false(learn(2, 1, 0).timed);
	assert_true(learn(3, 5, 64).timed);
}

/* Code that is known is timed every 10 ms, so that it is known how late the device is. */
TEST(an_access_is_timed_after_a_while)
{
	struct spill_access_advice advice = {0};
	for (unsigned i = 0; i < 300; i++) {
		advice = learn(1, 5, 64);
		world.timed.count = 1;
		world.timed.keys[0] = 5;
		world.arrives = true;
		world.ns = MS;
		world.timed.site = advice.site;
		world.timed.on_host = 64 * MIB;
		spill_access_model_hear();
	}
	assert_false(learn(1, 5, 64).timed);
	fake_clock.ns += 10 * MS - 1;
	assert_false(learn(1, 5, 64).timed);
	fake_clock.ns++;
	assert_true(learn(1, 5, 64).timed);
	assert_false(learn(1, 5, 64).timed);
	/* Not while measurements are under way, unless these are lost. */
	world.pending = 1;
	fake_clock.ns += 1000 * MS - 1;
	assert_false(learn(1, 5, 64).timed);
	fake_clock.ns++;
	assert_true(learn(1, 5, 64).timed);
}

/* A launch on the device that takes far too long used memory that is not known, if there is some. */
TEST(unexplained_time_is_of_unknown_memory)
{
	world.on_host = 1;
	know(1, 100 * US);
	assert_int_equal(seen.suffices, 4);
	struct spill_access_advice advice = learn(1, 1, 0);
	uint64_t work = learn(1, 1, 0).work_ns;
	world.may_help = true;
	for (unsigned i = 0; i < 10; i++)
		measured(&advice, 0, 50 * MS);
	assert_int_equal(seen.too_short, 10);
	assert_int_equal(seen.suffices, 4);
	assert_int_equal(learn(1, 1, 0).work_ns, work + 100 * US); /* that is not what it takes */
	assert_true(learn(1, 1, 0).timed);
	/* With memory on the host, or with none anywhere, there is nothing to explain. */
	measured(&advice, 64 * MIB, 50 * MS);
	world.on_host = 0;
	measured(&advice, 0, 50 * MS);
	assert_int_equal(seen.too_short, 10);
	assert_int_equal(seen.suffices, 4);
}

TEST(each_measurement_is_counted)
{
	struct spill_access_advice advice = learn(1, 1, 0);
	uint64_t heard = spill_access_model_hear();
	measured(&advice, 0, MS);
	assert_int_equal(spill_access_model_hear(), heard + 1);
	measured(&advice, 0, MS);
	measured(&advice, 0, MS);
	assert_int_equal(spill_access_model_hear(), heard + 3);
}

/* -- memory that is used in place --------------------------------------------------------------------------- */

/* After a second the link could have carried this. */
static uint64_t bytes_in_place(void)
{
	fake_clock.ns += 1000 * MS;
	return sums(true).bytes;
}

TEST(what_is_left_in_place_counts)
{
	learn(1, 5, 64);
	assert_int_equal(bytes_in_place(), 64 * MIB);
	learn(2, 6, 32);
	assert_int_equal(bytes_in_place(), 96 * MIB);
	learn(1, 5, 0);
	assert_int_equal(bytes_in_place(), 96 * MIB);
}

/* What shall come counts when it did not. */
TEST(what_did_not_come_counts)
{
	policy.movable_follow = SPILL_FOLLOW_ON;
	struct spill_access_advice advice = learn(1, 5, 64), none = {0};
	assert_int_equal(bytes_in_place(), 0);
	spill_access_model_left_in_place(&advice, 16 * MIB);
	assert_int_equal(bytes_in_place(), 16 * MIB);
	spill_access_model_left_in_place(&advice, 0);
	spill_access_model_left_in_place(&none, 16 * MIB);
	assert_int_equal(bytes_in_place(), 16 * MIB);
}

/* One measurement tells the time of all launches of the code that waited for it, and no other's. */
TEST(measured_launches_are_known)
{
	learn(1, 5, 64);
	learn(2, 7, 64);
	struct spill_access_advice advice = learn(1, 6, 32);
	fake_clock.ns += 1000 * MS;
	assert_int_equal(sums(false).bytes, 0);
	measured(&advice, 0, 10 * MS);
	assert_int_equal(sums(false).bytes, 0);
	measured(&advice, 32 * MIB, 20 * MS);
	struct spill_in_place_sums known = sums(false);
	assert_int_equal(known.bytes, 96 * MIB);
	assert_int_equal(known.ns, 20 * MS); /* two launches, each 10 ms longer */
	assert_int_equal(sums(true).bytes, 160 * MIB);
	/* At the end those that still wait count with the mean time of their code. */
	advice = learn(1, 8, 64);
	assert_true(advice.bring);
	spill_access_model_left_in_place(&advice, 64 * MIB);
	assert_int_equal(sums(false).ns, 20 * MS);
	known = sums(true);
	assert_int_equal(known.bytes, (160 + 64) * MIB);
	known = sums(false);
	assert_int_equal(known.bytes, 160 * MIB);
	assert_int_equal(known.ns, 30 * MS);
}

static struct spill_access_advice missed[3];

static void learn_meanwhile(void)
{
	struct spill_launch_access copy = access_of(2, 6, 8);
	copy.once = true;
	missed[0] = learn(2, 6, 16);
	missed[1] = learn(2, 6, 0);
	missed[2] = spill_access_model_learn(&copy);
	struct spill_in_place_sums sums;
	assert_false(spill_access_model_in_place(&sums, true));
}

/* While another thread has the model, a launch goes on without advice. */
TEST(what_the_model_missed_counts)
{
	world.on_host = 1;
	learn(1, 5, 64);
	world.meanwhile = learn_meanwhile;
	learn(3, 1, 0);
	assert_null(world.meanwhile);
	for (unsigned i = 0; i < 3; i++)
		assert_false(missed[i].learned || missed[i].bring || missed[i].timed);
	assert_int_equal(bytes_in_place(), 80 * MIB);
	assert_int_equal(bytes_in_place(), 80 * MIB);
	world.meanwhile = learn_meanwhile;
	learn(3, 1, 0);
	spill_access_model_reset();
	learn(1, 5, 64);
	assert_int_equal(bytes_in_place(), 64 * MIB);
}

/* No more than the time since the first such launch has room for. */
TEST(sums_fit_into_the_time)
{
	learn(1, 5, 0);
	fake_clock.ns += 1000 * MS;
	learn(1, 5, 64);
	assert_int_equal(sums(true).bytes, 0);
	fake_clock.ns += 10;
	uint64_t ten = sums(true).bytes;
	assert_in_range(ten, 1, 64 * MIB - 1);
	learn(1, 5, 64); /* the first counts */
	fake_clock.ns += 10;
	assert_int_equal(sums(true).bytes, 2 * ten);
}

TEST(the_sums_are_due_every_250_ms)
{
	assert_true(learn(1, 5, 64).tells);
	assert_true(learn(1, 5, 64).tells);
	sums(false);
	assert_false(learn(1, 5, 64).tells);
	fake_clock.ns += 250 * MS - 1;
	assert_false(learn(1, 5, 64).tells);
	fake_clock.ns++;
	assert_true(learn(1, 5, 64).tells);
	assert_false(learn(1, 5, 0).tells);
}

/* -- exchanges ---------------------------------------------------------------------------------------------- */

static uint64_t copy_cost(void)
{
	struct spill_exchange_chunk chunks[1] = {{.key = 5, .bytes = 64 * MIB, .on_host = true}};
	unsigned ranks[2];
	struct spill_exchange_choice choice = {.chunks = chunks, .count = 1, .ranks = ranks, .slice = 1};
	uint64_t cost_ns;
	find_by_key(&choice, 1);
	spill_access_model_choose(&choice, 0, &cost_ns);
	return cost_ns;
}

static const struct spill_exchange_choice no_excess;

/* The mean of the first few samples. */
TEST(an_exchange_teaches_what_a_copy_costs)
{
	learn(1, 5, 64);
	assert_int_equal(copy_cost(), SPILL_BENEFIT_COPY_NS_PER_MIB);
	spill_access_model_moved(&no_excess, 32 * MIB - 1, 1000 * MS, 0); /* too small */
	assert_int_equal(copy_cost(), SPILL_BENEFIT_COPY_NS_PER_MIB);
	spill_access_model_moved(&no_excess, 32 * MIB, 32 * 20000, 0);
	assert_in_range(copy_cost(), 20001, SPILL_BENEFIT_COPY_NS_PER_MIB - 1);
}

/* An exchange held the program up for 7 ms. Code 1 takes no time, code 3 a millisecond. */
static void exchange_with_a_wait(void)
{
	spill_access_model_reset();
	know(1, 0);
	know(3, 1000 * US);
	learn(1, 5, 64);
	spill_access_model_moved(&no_excess, 64 * MIB, 64 * SPILL_BENEFIT_COPY_NS_PER_MIB, 5 * MS);
}

/* The cost that is learned by an access so much later. */
static uint64_t cost_after(uint64_t ns)
{
	fake_clock.ns += ns;
	learn(2, 5, 1);
	fake_clock.ns += 4000 * MS; /* by then the exchange is followed no longer */
	learn(2, 9, 64);
	return copy_cost();
}

static uint64_t cost_with_gaps(uint64_t gap_ns)
{
	exchange_with_a_wait();
	for (unsigned i = 0; i < 5; i++) {
		learn(1, 1, 0);
		fake_clock.ns += gap_ns;
		learn(2, 5, 1);
	}
	return cost_after(gap_ns);
}

/* The device waits for launches: the program has lost its lead. What ends later than it was held up does not count. */
TEST(a_device_that_idles_behind_an_exchange_makes_it_dearer)
{
	uint64_t busy = cost_with_gaps(0), idle = cost_with_gaps(1 * MS), more = cost_with_gaps(8 * MS);
	assert_int_equal(busy, SPILL_BENEFIT_COPY_NS_PER_MIB);
	assert_true(idle > busy + 2000);
	assert_int_equal(more, busy);
}

/* Nor has it when the exchange itself took time, or when the device was waited for. */
TEST(a_device_that_is_waited_for_is_not_idle)
{
	exchange_with_a_wait();
	fake_clock.ns += 3 * MS;
	spill_access_model_idle();
	assert_int_equal(cost_after(0), SPILL_BENEFIT_COPY_NS_PER_MIB);
	exchange_with_a_wait();
	fake_clock.ns += 3 * MS;
	spill_access_model_moved(&no_excess, 64 * MIB, 64 * SPILL_BENEFIT_COPY_NS_PER_MIB, 5 * MS);
	assert_int_equal(cost_after(0), SPILL_BENEFIT_COPY_NS_PER_MIB);
}

/* What is known by then counts when the next exchange begins. */
TEST(the_next_exchange_ends_what_is_known_of_the_last)
{
	uint64_t alone;
	exchange_with_a_wait();
	cost_after(6 * MS);
	alone = copy_cost();
	assert_true(alone > SPILL_BENEFIT_COPY_NS_PER_MIB);
	exchange_with_a_wait();
	fake_clock.ns += 6 * MS;
	learn(2, 5, 1);
	spill_access_model_moved(&no_excess, 64 * MIB, 64 * SPILL_BENEFIT_COPY_NS_PER_MIB, 5 * MS);
	assert_int_equal(copy_cost(), alone);
}

TEST(a_device_that_works_is_not_idle)
{
	exchange_with_a_wait();
	for (unsigned i = 0; i < 4; i++)
		learn(3, 1, 0);
	assert_int_equal(cost_after(4 * MS), SPILL_BENEFIT_COPY_NS_PER_MIB);
	/* A measurement tells that the third of them is done. */
	exchange_with_a_wait();
	struct spill_access_advice third = learn(3, 1, 0);
	for (unsigned i = 0; i < 2; i++)
		third = learn(3, 1, 0);
	learn(3, 1, 0);
	fake_clock.ns += 3 * MS;
	world.behind_ns = 1;
	measured(&third, 0, 1000 * US);
	assert_int_equal(cost_after(1 * MS), SPILL_BENEFIT_COPY_NS_PER_MIB);
}

/* Nobody knows how long such a launch takes, or only that it takes 3 ms at most. */
TEST(a_device_with_unknown_work_is_not_idle)
{
	exchange_with_a_wait();
	struct spill_access_advice advice = learn(7, 1, 0);
	assert_int_equal(cost_after(3 * MS), SPILL_BENEFIT_COPY_NS_PER_MIB);
	took_at_most(&advice, 0, 3 * MS);
	spill_access_model_moved(&no_excess, 64 * MIB, 64 * SPILL_BENEFIT_COPY_NS_PER_MIB, 5 * MS);
	learn(7, 1, 0);
	assert_int_equal(cost_after(3 * MS), SPILL_BENEFIT_COPY_NS_PER_MIB);
}

/* A longer one counts as four times as long as usual, or as four times what the memory cost in place. */
TEST(an_exchange_that_takes_long_counts_as_four)
{
	static const uint64_t excess[] = {0, SPILL_BENEFIT_COPY_NS_PER_MIB,
	                                  3 * SPILL_BENEFIT_COPY_NS_PER_MIB};
	for (unsigned i = 0; i < 3; i++) {
		uint64_t most = 4 * (excess[i] ? excess[i] : SPILL_BENEFIT_COPY_NS_PER_MIB), cost[3];
		for (unsigned k = 0; k < 3; k++) {
			spill_access_model_reset();
			learn(1, 5, 64);
			/* Enough of them that the mean follows. */
			for (unsigned n = 0; n < 40; n++)
				spill_access_model_moved(
				    &(struct spill_exchange_choice){.excess_ns = excess[i]}, 64 * MIB,
				    64 * (k ? most * k : most / 2), 0);
			cost[k] = copy_cost();
		}
		assert_int_equal(cost[1], cost[2]);
		assert_true(cost[0] < cost[1]);
	}
}

/* Memory that stays on the host by what copies cost puts that cost in doubt, after 10 s. */
TEST(a_cost_is_doubted_while_nothing_comes)
{
	learn(1, 1, 0);
	for (unsigned n = 0; n < 40; n++)
		spill_access_model_moved(&no_excess, 64 * MIB, 1000 * MS, 0);
	uint64_t cost = copy_cost();
	assert_true(cost > SPILL_BENEFIT_COPY_NS_PER_MIB);
	assert_false(learn(2, 6, 64).bring);
	fake_clock.ns += 10000 * MS - 1;
	assert_false(learn(3, 7, 64).bring);
	assert_int_equal(copy_cost(), cost);
	fake_clock.ns++;
	learn(4, 8, 0); /* uses nothing on the host */
	assert_int_equal(copy_cost(), cost);
	assert_false(learn(5, 9, 64).bring);
	assert_int_equal(copy_cost(), SPILL_BENEFIT_COPY_NS_PER_MIB);
}

/* Two accesses in a row cost more than a copy. They are of one row unless 64 others are between them. */
TEST(accesses_in_a_row_bring_a_chunk)
{
	uint32_t other = 1000;
	for (unsigned i = 0; i < 600; i++)
		learn(1, other++, 0);
	assert_false(learn(1, 5, 64).bring);
	for (unsigned i = 0; i < 30; i++)
		learn(1, other++, 0);
	assert_true(learn(1, 5, 64).bring);
	assert_false(learn(1, 6, 64).bring);
	for (unsigned i = 0; i < 100; i++)
		learn(1, other++, 0);
	assert_false(learn(1, 6, 64).bring);
}

/* The chunks that an exchange was for pause if it does not pay, and no others. */
TEST(chunks_pause_when_an_exchange_does_not_pay)
{
	struct spill_exchange_chunk chunks[] = {
	    {.key = 5, .bytes = 64 * MIB, .on_host = true, .needed = true},
	    {.key = 6, .bytes = 64 * MIB, .on_host = true, .maybe = true},
	    {.key = 7, .bytes = 64 * MIB, .on_host = true},
	    {.key = 8, .bytes = 64 * MIB, .needed = true},
	    {.key = 9, .bytes = 64 * MIB, .on_host = true, .needed = true}, /* behind the last */
	};
	unsigned ranks[6];
	struct spill_exchange_choice choice = {.chunks = chunks, .count = 4, .ranks = ranks, .slice = 1};
	uint64_t cost_ns;
	struct spill_access_advice advice = {0};
	for (uint32_t key = 5; key < 10; key++) {
		learn(1, key, 64);
		advice = learn(1, key, 64);
		assert_true(advice.bring);
	}
	find_by_key(&choice, 1);
	assert_false(spill_access_model_choose(&choice, advice.site, &cost_ns));
	assert_false(choice.pays);
	for (uint32_t key = 5; key < 10; key++)
		assert_int_equal(learn(1, key, 64).bring, key > 6);
}

/* Eight chunks in turns: for the first the one goes that is used last. */
TEST(an_exchange_goes_by_the_order_of_accesses)
{
	struct spill_exchange_chunk chunks[8];
	unsigned ranks[9];
	struct spill_exchange_choice choice = {
	    .chunks = chunks, .count = 8, .ranks = ranks, .slice = 1, .horizon = UINT64_MAX, .always = true};
	uint64_t cost_ns;
	struct spill_access_advice advice;
	for (uint32_t i = 0; i < 8; i++)
		chunks[i] = (struct spill_exchange_chunk){
		    .key = i + 10, .bytes = 64 * MIB, .on_host = i < 2, .needed = i == 3};
	chunks[3].on_host = true;
	for (uint32_t i = 0; i < 44; i++)
		advice = learn(1, i % 8 + 10, 0);
	find_by_key(&choice, 1);
	assert_true(spill_access_model_choose(&choice, advice.site, &cost_ns));
	assert_int_equal(chunks[3].verdict, SPILL_EXCHANGE_COMES);
	assert_int_equal(chunks[2].verdict, SPILL_EXCHANGE_GOES);
	assert_int_equal(chunks[4].next, 1);
}

/*
 * A chunk that comes leaves its row in place unfinished, or has none. The next row counts as what it would have cost, so
 * its first access brings the chunk.
 */
TEST(a_chunk_that_came_comes_at_once_the_next_time)
{
	struct spill_exchange_chunk chunks[8];
	unsigned ranks[9];
	struct spill_exchange_choice choice = {.chunks = chunks,
	                                       .count = 8,
	                                       .ranks = ranks,
	                                       .slice = 128 * MIB,
	                                       .room = 192 * MIB,
	                                       .horizon = UINT64_MAX};
	uint64_t cost_ns;
	struct spill_access_advice advice;
	know(1, 100 * US);
	for (uint32_t key = 10; key < 18; key++)
		assert_false(learn(2, key, 64).bring); /* code 2 costs as much as a copy, and no more */
	advice = learn(1, 20, 64);
	measured(&advice, 64 * MIB, 100000 * US);
	for (uint32_t i = 0; i < 8; i++)
		chunks[i] = (struct spill_exchange_chunk){.key = i + 10,
		                                          .bytes = 64 * MIB,
		                                          .on_host = i == 3 || i == 4 || i == 6,
		                                          .needed = i == 3};
	for (uint32_t i = 0; i < 803; i++)
		learn(1, i % 8 + 10, 0);
	advice = learn(1, 13, 64);
	find_by_key(&choice, 1);
	assert_true(spill_access_model_choose(&choice, advice.site, &cost_ns));
	assert_int_equal(chunks[3].verdict, SPILL_EXCHANGE_COMES);
	assert_int_equal(chunks[4].verdict, SPILL_EXCHANGE_COMES);
	assert_int_equal(chunks[6].verdict, SPILL_EXCHANGE_STAYS);
	for (uint32_t i = 4; i < 804; i++)
		learn(1, i % 8 + 10, 0);
	for (uint32_t key = 10; key < 18; key++)
		assert_int_equal(learn(2, key, 64).bring, key == 13 || key == 14);
}

/* -- swaps: eight chunks in turns, of which the fourth is on the host and costs more there than the others would -------- */

#define TURN 8
#define DEAR 3
#define WINDOW_NS (250 * MS) /* policy/predict/swap_window.c */

static struct spill_exchange_chunk turns[TURN + 1]; /* the last one is nobody's */
static bool moves;                                  /* the chosen chunks do */
static bool for_graph;                              /* the launch that needs it is one */

/* So many accesses, up to that of the dear chunk, the last of which takes long. */
static struct spill_access_advice run_turns(unsigned count)
{
	struct spill_access_advice advice = {0};
	for (unsigned i = count; i--;) {
		unsigned nth = (DEAR + TURN * count - i) % TURN;
		advice = learn(nth == DEAR ? 1 : 2, nth + 10, nth == DEAR ? 64 : 0);
		if (advice.bring)
			spill_access_model_left_in_place(&advice, 64 * MIB);
		if (nth == DEAR)
			measured(&advice, 64 * MIB, 100 * US + 64ull * 28000);
	}
	return advice;
}

/* With all memory on the device the turns become known. */
static void begin_turns(void)
{
	moves = true;
	for_graph = false;
	for (unsigned i = 0; i < 3 * TURN; i++)
		learn((i + 1) % TURN == DEAR ? 1 : 2, (i + 1) % TURN + 10, 0);
	know(1, 100 * US);
	know(2, 100 * US);
	struct spill_access_advice advice = learn(2, 21, 64);
	measured(&advice, 64 * MIB, 100 * US + 64ull * 10000);
}

/* The choice for the dear chunk. ranks: room for TURN numbers */
static struct spill_exchange_choice choice_of_turns(unsigned *ranks)
{
	struct spill_exchange_choice choice = {.chunks = turns,
	                                       .count = TURN,
	                                       .ranks = ranks,
	                                       .slice = 64 * MIB,
	                                       .horizon = 64 * MIB,
	                                       .graph = for_graph};
	for (unsigned i = 0; i < TURN; i++)
		turns[i] = (struct spill_exchange_chunk){
		    .key = i + 10, .bytes = 64 * MIB, .on_host = i == DEAR, .needed = i == DEAR};
	find_by_key(&choice, 1);
	return choice;
}

/* True: the dear chunk comes for good, and one of the others goes. */
static bool swapped(struct spill_access_advice advice)
{
	unsigned ranks[TURN + 1], gone = 0;
	uint64_t cost_ns;
	struct spill_exchange_choice choice = choice_of_turns(ranks);
	turns[TURN] =
	    (struct spill_exchange_chunk){.key = DEAR + 10, .verdict = SPILL_EXCHANGE_COMES, .swapped = true};
	bool comes = spill_access_model_choose(&choice, advice.site, &cost_ns);
	assert_false(choice.pays);
	assert_int_equal(comes, choice.swaps);
	for (unsigned i = 0; i < TURN; i++)
		gone += turns[i].verdict == SPILL_EXCHANGE_GOES;
	assert_int_equal(gone, comes);
	assert_int_equal(turns[DEAR].verdict == SPILL_EXCHANGE_COMES, comes);
	assert_true(turns[TURN].swapped);
	if (choice.swaps && moves)
		spill_access_model_swapped(&choice);
	return choice.swaps;
}

/* A quarter of a second, in which the program goes on as it did. */
static bool swaps_after_a_window(void)
{
	fake_clock.ns += WINDOW_NS;
	return swapped(run_turns(6 * TURN));
}

/* Not before the costs are known. */
TEST(chunks_swap_once_a_period)
{
	begin_turns();
	assert_false(swapped(run_turns(6 * TURN)));
	fake_clock.ns += WINDOW_NS - 1;
	assert_false(swapped(run_turns(6 * TURN)));
	fake_clock.ns++;
	assert_true(swapped(run_turns(0)));
	fake_clock.ns += 1000 * MS;
	assert_false(swapped(run_turns(0)));
	assert_true(swapped(run_turns(2 * TURN)));
}

/* Only what was on the host costs in place: no access of that window was. */
TEST(nothing_swaps_where_nothing_costs_in_place)
{
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	fake_clock.ns += WINDOW_NS;
	for (unsigned i = 0; i < 6 * TURN; i++)
		learn(2, i % TURN + 10, 0);
	assert_false(swapped(learn(1, DEAR + 10, 0)));
	assert_true(swaps_after_a_window());
}

/* Where exchanges take long, a placement is only for a moment. All of them count, but a swap does not. */
TEST(chunks_do_not_swap_while_exchanges_pay)
{
	const struct spill_exchange_choice swap = {.swaps = true}, exchange = {.pays = true};
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	spill_access_model_moved(&swap, 64 * MIB, 1000 * MS, 0);
	assert_true(swaps_after_a_window());
	spill_access_model_reset();
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	spill_access_model_moved(&exchange, 2 * MIB, 1000 * MS, 0);
	assert_false(swaps_after_a_window());
	spill_access_model_moved(&exchange, 2 * MIB, 1 * US, 0);
	assert_true(swaps_after_a_window());
}

/* Whatever its cost is then. */
TEST(a_chunk_does_not_swap_again_for_a_while)
{
	uint64_t pause = 1000 * MS;
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	fake_clock.ns += WINDOW_NS;
	for (unsigned i = 0; i < 12; i++) {
		assert_true(swapped(run_turns(6 * TURN)));
		fake_clock.ns += pause - 1;
		assert_false(swapped(run_turns(6 * TURN)));
		fake_clock.ns += 100 * MS; /* that look was in vain */
		pause = 2 * pause < 600000 * MS ? 2 * pause : 600000 * MS;
	}
	assert_int_equal(pause, 600000 * MS);
}

/* If the device was busy, nothing has swapped. That is tried again, ever more rarely, until it swaps. */
TEST(a_swap_that_was_not_carried_out_is_tried_again)
{
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	moves = false;
	assert_true(swaps_after_a_window());
	for (unsigned i = 0; i < 3; i++) {
		fake_clock.ns += (100 * MS << i) - 1;
		assert_false(swapped(run_turns(2 * TURN)));
		fake_clock.ns++;
		assert_true(swapped(run_turns(0)));
	}
	moves = true;
	fake_clock.ns += 800 * MS;
	assert_true(swapped(run_turns(2 * TURN)));
	fake_clock.ns += 1000 * MS;
	assert_true(swapped(run_turns(2 * TURN))); /* the wait is over */
}

/* Only the chunks that have swapped wait. */
TEST(others_may_swap_meanwhile)
{
	struct spill_exchange_chunk *goes = turns;
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	assert_true(swaps_after_a_window());
	while (goes->verdict != SPILL_EXCHANGE_GOES)
		goes++;
	uint32_t first = goes->key;
	fake_clock.ns += 1000 * MS;
	assert_true(swapped(run_turns(6 * TURN)));
	assert_int_equal(first, 10); /* of equals the first */
	fake_clock.ns += 1999 * MS;
	assert_false(swapped(run_turns(6 * TURN)));
	spill_access_model_reset();
	spill_access_model_swapped(
	    &(struct spill_exchange_choice){.chunks = turns, .count = TURN}); /* nobody is known */
}

/* With `on` everything comes. With `overlap` what is on the host is not mapped, and comes in a flight. */
TEST(swaps_are_for_memory_that_goes_by_the_price)
{
	static const enum spill_follow others[] = {SPILL_FOLLOW_OFF, SPILL_FOLLOW_ON, SPILL_FOLLOW_OVERLAP};
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	struct spill_access_advice advice = run_turns(6 * TURN);
	fake_clock.ns += WINDOW_NS;
	for (unsigned i = 0; i < 3; i++) {
		policy.movable_follow = others[i];
		assert_false(swapped(advice));
	}
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	assert_true(swapped(advice));
}

/* Accesses that cost little are considered ever more rarely, but not when it is time to look. A graph's memory has trials. */
TEST(any_access_in_place_leads_to_a_look)
{
	struct spill_launch_access graph = access_of(2, 29, 64);
	graph.graph = true;
	begin_turns();
	assert_false(learn(2, 30, 64).bring);
	assert_false(swapped(run_turns(TURN)));
	run_turns(6 * TURN);
	assert_false(learn(2, 31, 64).bring);
	fake_clock.ns += WINDOW_NS;
	assert_false(spill_access_model_learn(&graph).bring);
	assert_false(learn(2, 32, 0).bring);
	struct spill_access_advice advice = learn(2, 33, 64);
	assert_true(advice.bring && advice.looks);
	assert_true(swapped(run_turns(0)));
	assert_false(learn(2, 34, 64).bring);
	run_turns(3 * TURN);
	fake_clock.ns += 10 * MS;
	assert_true(learn(2, DEAR + 11, 64).bring); /* the next one of the turn */
	policy.movable_follow = SPILL_FOLLOW_OVERLAP;
	assert_false(learn(2, 35, 64).bring);
}

/* Its memory finds its place by trials, which a swap would end. */
TEST(a_graph_does_not_swap)
{
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	for_graph = true;
	assert_false(swaps_after_a_window());
	for_graph = false;
	assert_true(swapped(run_turns(0)));
}

/* A launch that led to a look is not judged by it: no pause begins, and no exchange. */
TEST(a_look_in_vain_changes_no_verdict)
{
	struct spill_exchange_chunk chunks[] = {
	    {.key = 5, .bytes = 64 * MIB, .on_host = true, .needed = true}, {.key = 6, .bytes = 64 * MIB}};
	unsigned ranks[3];
	struct spill_exchange_choice choice = {
	    .chunks = chunks, .count = 2, .ranks = ranks, .slice = 64 * MIB, .swaps_only = true};
	uint64_t cost_ns;
	know(3, 100 * US);
	struct spill_access_advice advice = learn(3, 5, 64);
	measured(&advice, 64 * MIB, 100 * US + 64ull * 90000);
	advice = learn(3, 5, 64);
	assert_true(advice.bring && !advice.looks);
	find_by_key(&choice, 1);
	assert_false(spill_access_model_choose(&choice, advice.site, &cost_ns));
	assert_false(choice.pays);
	assert_true(learn(3, 5, 64).bring);
	choice.swaps_only = false;
	assert_true(spill_access_model_choose(&choice, advice.site, &cost_ns));
	assert_true(choice.pays);
}

/* While nothing swaps, it is looked for more rarely. */
TEST(a_swap_in_vain_is_tried_again_later)
{
	struct spill_access_advice advice;
	begin_turns();
	assert_false(swapped(run_turns(TURN)));
	for (unsigned i = 0; i < 200; i++) { /* all cost as much */
		advice = learn(2, 21, 64);
		measured(&advice, 64 * MIB, 100 * US + 64ull * 28000);
	}
	assert_false(swaps_after_a_window());
	for (unsigned i = 0; i < 200; i++) {
		advice = learn(2, 21, 64);
		measured(&advice, 64 * MIB, 100 * US + 64ull * 10000);
	}
	fake_clock.ns += 100 * MS - 1;
	assert_false(swapped(run_turns(6 * TURN)));
	fake_clock.ns++;
	assert_true(swapped(run_turns(0)));
}

/* -- pauses: a program of the same turns, in which an exchange for the dear chunk takes half of the time ------------------ */

#define TURN_NS (100 * MS)
#define HOME 6 /* a chunk on the device that an exchange brought, so it would be on the host */

static bool others_swap; /* chunks of another device, at each access */

/* The costs of a MiB in place: of the chunk that is needed, and of the others. */
static void begin_exchanges(uint64_t dear_ns, uint64_t other_ns)
{
	begin_turns();
	others_swap = false;
	struct spill_access_advice advice = learn(1, DEAR + 10, 64);
	measured(&advice, 64 * MIB, 100 * US + 64 * dear_ns);
	for (unsigned i = 0; i < 3; i++) { /* the third one far from the mean is the mean */
		advice = learn(2, HOME + 10, 64);
		measured(&advice, 64 * MIB, 100 * US + 64 * other_ns);
	}
}

/* A turn. Returns the advice for the chunk on the host. */
static struct spill_access_advice turn(uint64_t ns)
{
	struct spill_access_advice advice = {0};
	fake_clock.ns += ns;
	for (unsigned i = 1; i <= TURN; i++) {
		unsigned nth = (DEAR + i) % TURN;
		advice = learn(nth == DEAR ? 1 : 2, nth + 10, nth == DEAR ? 64 : 0);
		if (others_swap)
			spill_access_model_swapped(&(const struct spill_exchange_choice){.swaps = true});
	}
	return advice;
}

/* True: an exchange brings the needed chunk. */
static bool exchanged(struct spill_access_advice advice)
{
	unsigned ranks[TURN];
	uint64_t cost_ns;
	struct spill_exchange_choice choice = choice_of_turns(ranks);
	turns[DEAR].displaced = turns[HOME].displaced = true;
	if (!advice.bring || advice.looks || !spill_access_model_choose(&choice, advice.site, &cost_ns))
		return false;
	assert_false(choice.swaps);
	spill_access_model_moved(&choice, 2 * MIB, TURN_NS / 2, 0);
	return true;
}

/* Turns with exchanges, until one does not come. */
static unsigned turns_with_exchanges(unsigned most)
{
	unsigned count = 0;
	while (count < most && exchanged(turn(TURN_NS)))
		count++;
	return count;
}

TEST(exchanges_pause_where_the_program_is_faster_without)
{
	struct spill_access_advice advice = {0};
	begin_exchanges(100 * US, 10 * US);
	assert_in_range(turns_with_exchanges(40), 5, 15);
	for (unsigned i = 0; i < 20 && advice.pause_change == SPILL_PAUSE_SAME; i++) {
		advice = turn(60 * MS);
		assert_true(!advice.bring || advice.looks);
	}
	assert_int_equal(advice.pause_change, SPILL_PAUSE_BEGINS);
	assert_in_range(advice.pause_is_ns, 59 * MS, 61 * MS);
	assert_in_range(advice.pause_was_ns, 90 * MS, 101 * MS);
	for (unsigned i = 0; i < 20; i++)
		assert_false(exchanged(turn(60 * MS)));
}

/* Turns until a swap is looked for, in a pause. It began so many turns later than it would. */
static unsigned turns_until_look(unsigned later)
{
	unsigned count = 0;
	setup(NULL);
	begin_exchanges(100 * US, 10 * US);
	for (unsigned i = 0; i < later; i++) {
		assert_true(exchanged(turn(TURN_NS)));
		spill_access_model_by_nodes();
	}
	turns_with_exchanges(40);
	for (; count < 20; count++) {
		struct spill_access_advice advice = turn(60 * MS);
		if (advice.looks)
			break;
		measured(&advice, 64 * MIB, 100 * US + 64 * 100 * US);
	}
	return count;
}

/* What exchanges took before does not count, whenever the last window began. */
TEST(chunks_swap_in_a_pause)
{
	for (unsigned later = 0; later < 6; later++)
		assert_in_range(turns_until_look(later), 4, 5);
}

/* A trial settles as long as chunks swap, for twelve periods at most, and then its window takes half a second. */
TEST(a_swap_lets_a_trial_settle)
{
	unsigned count = 0;
	begin_exchanges(100 * US, 10 * US);
	turns_with_exchanges(40);
	others_swap = true;
	while (count < 30 && turn(60 * MS).pause_change == SPILL_PAUSE_SAME)
		count++;
	assert_in_range(count, 18, 24);
}

/* They are not measured in a pause, but no link is slow for that. */
TEST(a_pause_does_not_make_copies_doubtful)
{
	const struct spill_exchange_choice exchange = {.pays = true};
	begin_exchanges(100 * US, 10 * US);
	for (unsigned i = 0; i < 100; i++)
		spill_access_model_moved(&exchange, 64 * MIB, 64 * 60 * US, 0);
	uint64_t cost_ns = copy_cost();
	assert_true(cost_ns > SPILL_BENEFIT_COPY_NS_PER_MIB);
	turns_with_exchanges(40);
	for (unsigned i = 0; i < 1000; i++)
		turn(60 * MS);
	assert_int_equal(copy_cost(), cost_ns);
}

TEST(exchanges_that_are_better_go_on)
{
	begin_exchanges(100 * US, 10 * US);
	assert_in_range(turns_with_exchanges(40), 5, 15);
	for (unsigned i = 0; i < 20; i++)
		turn(TURN_NS);
	assert_int_equal(turns_with_exchanges(40), 40);
}

/* 128 ms a turn, where exchanges take 50. */
TEST(exchanges_go_on_where_memory_at_home_costs_much)
{
	begin_exchanges(100 * US, 2 * MS);
	assert_int_equal(turns_with_exchanges(40), 40);
}

TEST(only_auto_pauses_and_nothing_for_graphs)
{
	begin_exchanges(100 * US, 10 * US);
	for (unsigned i = 0; i < 40; i++) {
		struct spill_launch_access graph = access_of(1, DEAR + 10, 64);
		graph.graph = true;
		assert_true(exchanged(turn(TURN_NS)));
		spill_access_model_learn(&graph);
	}
	for (unsigned i = 0; i < 40; i++) {
		assert_true(exchanged(turn(TURN_NS)));
		spill_access_model_by_nodes();
	}
	policy.movable_follow = SPILL_FOLLOW_OVERLAP;
	spill_process_use_policy(&policy);
	assert_int_equal(turns_with_exchanges(40), 40);
}

/* -- two models in turns, each of 80 chunks: what one uses lies idle while the other one goes on ------------------------- */

#define MODEL 80 /* more than the accesses after which a row ends */

static struct spill_exchange_chunk both[2 * MODEL];
static bool at_home[2 * MODEL]; /* on the device */

static struct spill_exchange_choice choice_of_models(unsigned *ranks)
{
	struct spill_exchange_choice choice = {
	    .chunks = both, .count = 2 * MODEL, .ranks = ranks, .slice = 2 * MIB, .swaps_only = true};
	for (unsigned i = 0; i < 2 * MODEL; i++)
		both[i] =
		    (struct spill_exchange_chunk){.key = i + 10, .bytes = 2 * MIB, .on_host = !at_home[i]};
	find_by_key(&choice, 1);
	return choice;
}

/* Looks for swaps; how many chunks came. */
static unsigned look(struct spill_access_advice advice)
{
	unsigned ranks[2 * MODEL], came = 0;
	uint64_t cost_ns;
	struct spill_exchange_choice choice = choice_of_models(ranks);
	if (!spill_access_model_choose(&choice, advice.site, &cost_ns))
		return 0;
	assert_true(choice.swaps);
	for (unsigned i = 0; i < 2 * MODEL; i++) {
		came += both[i].verdict == SPILL_EXCHANGE_COMES;
		if (both[i].verdict != SPILL_EXCHANGE_STAYS)
			at_home[i] = !at_home[i];
	}
	spill_access_model_swapped(&choice);
	return came;
}

/* A step of a model, a millisecond each chunk. In place a chunk costs 20 us a MiB. How many chunks came. */
static unsigned model_step(unsigned which)
{
	unsigned came = 0;
	for (unsigned i = which * MODEL; i < (which + 1) * MODEL; i++) {
		uint32_t on_host = at_home[i] ? 0 : 2;
		struct spill_access_advice advice = learn(1 + which, i + 10, on_host);
		if (on_host)
			measured(&advice, 2 * MIB, 10 * US + 2 * 20 * US);
		if (advice.looks)
			came += look(advice);
		fake_clock.ns += MS;
	}
	return came;
}

static unsigned model_steps(unsigned which, unsigned count)
{
	unsigned came = 0;
	while (count--)
		came += model_step(which);
	return came;
}

static void begin_models(void)
{
	for (unsigned i = 0; i < 2 * MODEL; i++)
		at_home[i] = i < MODEL;
	know(1, 10 * US);
	know(2, 10 * US);
	assert_int_equal(model_steps(0, 10), 0);
}

/* After three steps, one after the other: a look takes two chunks at most. */
TEST(a_model_takes_the_place_of_an_idle_one)
{
	begin_models();
	assert_int_equal(model_steps(1, 2), 0);
	assert_int_equal(model_steps(1, 4), MODEL);
	assert_int_equal(model_steps(1, 20), 0);
	assert_int_equal(model_steps(0, 2), 0);
	assert_int_equal(model_steps(0, 4), MODEL);
	assert_int_equal(model_steps(0, 20), 0);
}

/* A stay of some steps does not pay what the ways cost. Then it is tried again after 32 times as long, twice that, and so on. */
TEST(models_that_alternate_too_fast_stay)
{
	unsigned phases = 0, came = 0, tries = 0;
	begin_models();
	for (; phases < 500; phases++) {
		unsigned more = model_steps((phases + 1) % 2, 5);
		came += more;
		tries += more != 0;
	}
	assert_in_range(tries, 2, 20);
	assert_in_range(came, MODEL, 12 * MODEL);
}

/* What costs little in place is used in each step. Other swaps look at a quarter of a second. */
TEST(memory_in_use_gives_no_idle_place)
{
	begin_models();
	know(3, 10 * US);
	struct spill_access_advice advice = learn(3, 400, 2);
	measured(&advice, 2 * MIB, 10 * US + 100);
	for (unsigned i = 0; i < 6 * MODEL; i++) {
		learn(3, i % MODEL + 10, 0);
		advice = learn(2, i % MODEL + MODEL + 10, 2);
		measured(&advice, 2 * MIB, 10 * US + 2 * 20 * US);
		assert_true(!advice.looks || look(advice) == 0);
		fake_clock.ns += MS / 4;
	}
	assert_int_equal(model_steps(1, 30), MODEL);
}

TEST(while_exchanges_pay_nothing_takes_an_idle_place)
{
	const struct spill_exchange_choice exchange = {.pays = true};
	begin_models();
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(model_step(1), 0);
		spill_access_model_moved(&exchange, 2 * MIB, MS, 0);
	}
}

TEST(a_forked_child_knows_nothing)
{
	know(1, 100 * US);
	learn(1, 5, 64);
	spill_access_model_reset();
	assert_int_equal(learn(1, 1, 0).work_ns, 0);
	assert_int_equal(bytes_in_place(), 0);
}

/* -- times that a launch took at most --------------------------------------------------------------------- */

/* Of one launch that names 64 MiB. */
static uint64_t lost_by_one(void)
{
	struct spill_access_activity before, after;
	assert_true(spill_access_model_activity(&before));
	learn(1, 5, 64);
	assert_true(spill_access_model_activity(&after));
	return after.sums.lost_ns - before.sums.lost_ns;
}

/* It reads little of it. No decision knows that. */
TEST(a_bound_tells_what_is_lost_at_most)
{
	know(1, 20 * US);
	uint64_t usual = lost_by_one();
	struct spill_access_advice advice = learn(1, 5, 64);
	unsigned of_graphs = seen.of_graphs, tried = seen.tried, recorded = seen.recorded;
	took_at_most(&advice, 64 * MIB, 60 * US);
	assert_int_equal(lost_by_one(), 60 * US);
	struct spill_access_advice after = learn(1, 5, 64);
	assert_int_equal(after.excess_ns, advice.excess_ns);
	assert_int_equal(after.bring, advice.bring);
	assert_int_equal(seen.of_graphs, of_graphs);
	assert_int_equal(seen.tried, tried);
	assert_int_equal(seen.recorded, recorded);
	assert_int_equal(usual, 64ull * SPILL_BENEFIT_COPY_NS_PER_MIB);
}

TEST(a_bound_is_a_mean_and_at_most_what_is_expected)
{
	struct spill_access_advice advice = learn(1, 5, 64);
	uint64_t usual = lost_by_one();
	took_at_most(&advice, 64 * MIB, 10 * MS);
	assert_int_equal(lost_by_one(), usual);
	for (unsigned i = 0; i < 60; i++)
		took_at_most(&advice, 64 * MIB, 80 * US);
	assert_in_range(lost_by_one(), 80 * US, 90 * US);
}

TEST(a_time_is_better_than_a_bound)
{
	struct spill_access_advice advice = learn(1, 5, 64);
	took_at_most(&advice, 64 * MIB, 60 * US);
	measured(&advice, 64 * MIB, 640 * US);
	assert_in_range(lost_by_one(), 600 * US, 640 * US);
}

/* On the device a launch is as short as its bound, or shorter: the device is busy for no longer. */
TEST(a_bound_of_memory_on_the_device_is_work)
{
	struct spill_access_advice advice = learn(1, 1, 0);
	took_at_most(&advice, 0, 60 * US);
	uint64_t before = learn(1, 1, 0).work_ns;
	assert_int_equal(learn(1, 1, 0).work_ns, before + 60 * US);
}

/* The device idled, so it says nothing of the work behind the launch. */
TEST(a_bound_does_not_bound_the_work)
{
	struct spill_access_advice first = submit_ten();
	world.behind_ns = 20000 * US;
	took_at_most(&first, 0, 1000 * US);
	assert_true(learn(2, 5, 1).busy_ns < 20000 * US);
}

/* -- whether it is worth it to learn ------------------------------------------------------------------------- */

static struct spill_access_activity activity(void)
{
	struct spill_access_activity activity;
	assert_true(spill_access_model_activity(&activity));
	return activity;
}

TEST(what_is_lost_in_place_is_told)
{
	struct spill_access_activity before, after;
	know(1, 100 * US);
	before = activity();
	learn(1, 5, 64);
	after = activity();
	assert_int_equal(after.sums.accesses, before.sums.accesses + 1);
	assert_int_equal(after.sums.lost_ns, before.sums.lost_ns + 64ull * SPILL_BENEFIT_COPY_NS_PER_MIB);
	learn(1, 6, 0);
	assert_int_equal(activity().sums.accesses, after.sums.accesses + 1);
	assert_int_equal(activity().sums.lost_ns, after.sums.lost_ns);
}

/* Moves, swaps, trials and graphs do. */
TEST(what_disturbs_a_rest_is_told_once)
{
	know(1, 100 * US);
	assert_false(activity().disturbed);
	struct spill_launch_access graph = access_of(2, 7, 0);
	graph.graph = true;
	spill_access_model_learn(&graph);
	assert_true(activity().disturbed);
	assert_false(activity().disturbed);
	const struct spill_exchange_choice choice = {.count = 0};
	spill_access_model_moved(&choice, 0, MS, 0);
	assert_true(activity().disturbed);
	spill_access_model_swapped(&choice);
	assert_true(activity().disturbed);
	spill_access_model_by_nodes();
	assert_true(activity().disturbed);
	assert_false(activity().disturbed);
}

TEST(what_a_rest_has_not_seen_counts_as_before)
{
	know(1, 100 * US);
	struct spill_access_advice advice = learn(1, 5, 64);
	measured(&advice, 64 * MIB, 160 * US);
	fake_clock.ns += 1000 * MS;
	struct spill_access_activity since = activity();
	advice = learn(1, 5, 64);
	assert_true(advice.bring);
	spill_access_model_left_in_place(&advice, 64 * MIB);
	uint64_t lost_ns = activity().sums.lost_ns - since.sums.lost_ns;
	measured(&advice, 64 * MIB, 160 * US);
	struct spill_in_place_sums seen = sums(false);
	spill_access_model_rested(&since, 100 * MS, 300 * MS);
	assert_in_range(lost_ns, 50 * US, 60 * US);
	assert_int_equal(sums(false).bytes - seen.bytes, 3 * 64 * lost_ns); /* no link carries more */
	assert_int_equal(sums(false).ns - seen.ns, 3 * lost_ns);
	/* Nothing since then. */
	seen = sums(false);
	spill_access_model_rested(&since, 100 * MS, 300 * MS);
	assert_int_equal(sums(false).bytes, seen.bytes);
}

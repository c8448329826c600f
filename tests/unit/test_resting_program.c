/* A program whose launches are not reported for a moment, again and again (rest.h). The replay has its times. */
#include "unit.h"

#include "replay_sim.h"

#define MS 1000000ull
#define US 1000ull
#define CHUNK (64ull << 20)

enum { LIGHT = 5, HEAVY, SMALL, LAUNCHES = 500, TIMES = 100 };

/* The program uses the first two always. The third is on the host. */
static const struct recorded_use ours = {.chunk = 0}, other = {.chunk = 1},
                                 light = {.chunk = 2, .in_place_ns = 20 * US},
                                 heavy = {.chunk = 2, .in_place_ns = 8 * MS};
static struct recorded_launch launches[2 * LAUNCHES];

static struct recorded_launch launch_of(uint64_t code, const struct recorded_use *use)
{
	return (struct recorded_launch){.site = code, .ns = 2 * US, .sure = 1, .count = 1, .uses = use};
}

/* A period of LAUNCHES, bound by them: 20 ms. One uses what is on the host. */
static void make_period(struct recorded_launch *to, uint64_t code, const struct recorded_use *use)
{
	for (unsigned i = 0; i < LAUNCHES; i++)
		to[i] = launch_of(SMALL, &ours);
	to[1] = launch_of(code, use);
	to[2] = launch_of(SMALL, &other);
	to[LAUNCHES - 1].waits = true;
}

/* So often with light use, then so often with heavy use. */
static struct replay_result result_of(unsigned lights, unsigned heavies)
{
	struct recorded_chunk chunks[] = {{.bytes = CHUNK, .begins = true},
	                                  {.bytes = CHUNK, .begins = true},
	                                  {.bytes = CHUNK, .begins = true, .on_host = true}};
	make_period(launches, LIGHT, &light);
	make_period(launches + LAUNCHES, HEAVY, &heavy);
	const struct recording recording = {
	    .chunks = chunks,
	    .launches = launches,
	    .phases = {{.first = 0, .count = LAUNCHES, .repeats = lights},
	               {.first = LAUNCHES, .count = LAUNCHES, .repeats = heavies}},
	    .host_ns = 40 * US,
	    .chunk_count = 3,
	    .launch_count = 2 * LAUNCHES,
	    .phase_count = heavies ? 2 : 1,
	};
	return replay(&recording, SPILL_FOLLOW_AUTO, &replay_usual);
}

/* 2 s until the first rest. Then 100 ms are watched at a time, and rests become longer. */
TEST(it_rests_while_it_hardly_uses_the_host)
{
	struct replay_result result = result_of(2 * TIMES, 0);
	assert_int_equal(result.submitted, 2 * TIMES * LAUNCHES);
	assert_in_range(result.unreported, result.submitted / 4, result.submitted / 2);
}

TEST(it_does_not_rest_at_once)
{
	assert_int_equal(result_of(TIMES * 9 / 10, 0).unreported, 0);
}

/* What it begins to use comes, a short while later than without rests. */
TEST(something_new_is_seen_behind_a_rest)
{
	struct replay_result result = result_of(TIMES + TIMES / 2, TIMES);
	unsigned slow = 0;
	for (unsigned i = result.count - TIMES; i < result.count; i++)
		slow += result.period_ns[i] > 24 * MS;
	assert_true(result.unreported);
	assert_in_range(slow, 1, 20);
	assert_true(result.period_ns[result.count - 1] < 21 * MS);
}

/* It never gets quiet: two in turns are heavily used, and one has to be on the host. */
TEST(it_learns_on_while_memory_on_the_host_costs_time)
{
	static const struct recorded_use both[] = {{.chunk = 0, .in_place_ns = 400 * US},
	                                           {.chunk = 1, .in_place_ns = 400 * US}};
	struct recorded_chunk chunks[] = {{.bytes = CHUNK, .begins = true},
	                                  {.bytes = CHUNK, .begins = true, .on_host = true}};
	for (unsigned i = 0; i < LAUNCHES; i++)
		launches[i] = launch_of(SMALL, &both[i % 2]);
	const struct recording recording = {
	    .chunks = chunks,
	    .launches = launches,
	    .phases = {{.first = 0, .count = LAUNCHES, .repeats = TIMES}},
	    .host_ns = 40 * US,
	    .chunk_count = 2,
	    .launch_count = LAUNCHES,
	    .phase_count = 1,
	};
	assert_int_equal(replay(&recording, SPILL_FOLLOW_AUTO, &replay_usual).unreported, 0);
}

/* Launches that take longer than the memory they are known to access explains. The replay has their times. */
#include "unit.h"

#include "chunk_map.h"
#include "hash.h"
#include "param_extent.h"
#include "replay_sim.h"

#define MS 1000000ull
#define CHUNK (64ull << 20)

enum { CODE = 5, OTHER, FAST_PERIODS = 40, SLOW_PERIODS = 40 };

/* The chunk of the code is on the device; the one of other launches may be on the host. */
static const struct recorded_use uses[] = {{.chunk = 0}, {.chunk = 1, .in_place_ns = 20000}};
static const struct recorded_launch other = {
    .site = OTHER, .ns = MS, .sure = 1, .count = 1, .uses = &uses[1]};

static struct recorded_launch launch_of(uint64_t code, uint64_t ns)
{
	return (struct recorded_launch){
	    .site = code, .ns = ns, .sure = 1, .count = 1, .uses = &uses[0], .waits = true};
}

/* In units, once the recording has been replayed. */
static uint64_t extent_by(const struct recording *recording, uint64_t code)
{
	replay(recording, SPILL_FOLLOW_AUTO, &replay_usual);
	return spill_param_extent(code, 0, SPILL_CHUNK_MAP_UNIT) / SPILL_CHUNK_MAP_UNIT;
}

/* A launch of the code takes `slow_ns` in the later periods. */
static uint64_t extent_after(uint64_t code, uint64_t slow_ns, bool other_on_host)
{
	struct recorded_chunk chunks[] = {{.bytes = CHUNK, .begins = true},
	                                  {.bytes = CHUNK, .begins = true, .on_host = other_on_host}};
	struct recorded_launch launches[] = {launch_of(code, MS / 2), other, launch_of(code, slow_ns), other};
	const struct recording recording = {
	    .chunks = chunks,
	    .launches = launches,
	    .phases = {{.first = 0, .count = 2, .repeats = FAST_PERIODS},
	               {.first = 2, .count = 2, .repeats = SLOW_PERIODS}},
	    .host_ns = RECORDED_HOST_NS,
	    .chunk_count = 2,
	    .launch_count = 4,
	    .phase_count = 2,
	};
	return extent_by(&recording, code);
}

TEST(it_is_expected_to_access_more)
{
	assert_int_equal(extent_after(CODE, 20 * MS, true), 8);
}

TEST(a_little_longer_is_nothing_special)
{
	assert_int_equal(extent_after(CODE + 100, 2 * MS, true), 1);
}

/* It was slow for another reason: nothing is timed then. */
TEST(with_all_memory_on_the_device_nothing_is_missing)
{
	assert_int_equal(extent_after(CODE + 200, 20 * MS, false), 1);
}

/* Codes whose launches take turns: none makes the library forget how often another was slow. */
TEST(many_codes_in_turn)
{
	enum { CODES = 200 };
	for (unsigned launch = 0; launch < SPILL_PARAM_EXTENT_SLOW; launch++)
		for (unsigned i = 0; i < CODES; i++)
			assert_true(spill_param_extent_too_short(spill_hash(1, i)));
	for (unsigned i = 0; i < CODES; i++)
		assert_int_equal(spill_param_extent(spill_hash(1, i), 0, SPILL_CHUNK_MAP_UNIT),
		                 2 * SPILL_CHUNK_MAP_UNIT);
}

/* A neighbour on the device makes a launch slow now and then. Its memory is known all the same. */
TEST(slow_launches_that_are_rare_do_not_add_up)
{
	enum { RARE_CODE = 500, OFTEN_CODE };
	for (unsigned slow = 0; slow < 4 * SPILL_PARAM_EXTENT_SLOW; slow++) {
		assert_true(spill_param_extent_too_short(RARE_CODE));
		for (unsigned i = 0; i < SPILL_PARAM_EXTENT_RARE; i++)
			spill_param_extent_suffices(RARE_CODE);
	}
	assert_int_equal(spill_param_extent(RARE_CODE, 0, SPILL_CHUNK_MAP_UNIT), SPILL_CHUNK_MAP_UNIT);
	for (unsigned slow = 0; slow < SPILL_PARAM_EXTENT_SLOW; slow++) {
		for (unsigned i = 0; i < SPILL_PARAM_EXTENT_RARE - 1; i++)
			spill_param_extent_suffices(OFTEN_CODE);
		assert_true(spill_param_extent_too_short(OFTEN_CODE));
	}
	assert_int_equal(spill_param_extent(OFTEN_CODE, 0, SPILL_CHUNK_MAP_UNIT), 2 * SPILL_CHUNK_MAP_UNIT);
	/* That was the remedy, so it stays. */
	for (unsigned i = 0; i < 4 * SPILL_PARAM_EXTENT_RARE; i++)
		spill_param_extent_suffices(OFTEN_CODE);
	assert_int_equal(spill_param_extent(OFTEN_CODE, 0, SPILL_CHUNK_MAP_UNIT), 2 * SPILL_CHUNK_MAP_UNIT);
}

enum { BLOCK = 512, SLOW_BLOCKS = 5 };

/* A slow launch, which is timed, and then `blocks` of fast ones; five times. */
static uint64_t extent_with_pauses(uint64_t code, unsigned blocks)
{
	static struct recorded_launch launches[2 * BLOCK];
	struct recorded_chunk chunks[] = {{.bytes = CHUNK, .begins = true},
	                                  {.bytes = CHUNK, .begins = true, .on_host = true}};
	for (unsigned i = 0; i < 2 * BLOCK; i++)
		launches[i] = launch_of(code, i == BLOCK ? 20 * MS : MS / 2);
	struct recording recording = {.chunks = chunks,
	                              .launches = launches,
	                              .chunk_count = 2,
	                              .launch_count = 2 * BLOCK,
	                              .phase_count = 2 * SLOW_BLOCKS};
	for (unsigned i = 0; i < SLOW_BLOCKS; i++) {
		recording.phases[2 * i] = (struct recorded_phase){.count = BLOCK, .repeats = blocks};
		recording.phases[2 * i + 1] =
		    (struct recorded_phase){.first = BLOCK, .count = BLOCK, .repeats = 1};
	}
	return extent_by(&recording, code);
}

TEST(the_fast_launches_between_slow_ones_count)
{
	assert_int_equal(extent_with_pauses(CODE + 600, 1), 2);
	assert_int_equal(extent_with_pauses(CODE + 700, SPILL_PARAM_EXTENT_RARE * 8 / BLOCK), 1);
}

/*
 * One launch of eight does more work with the same grid. Longer extents are no help, so they are given
 * up, and then launches are timed no more often than others.
 */
TEST(code_that_is_given_up_is_timed_rarely)
{
	enum { PERIODS = 200, LAST_PERIODS = 50, LAUNCHES = 8 };
	struct recorded_chunk chunks[] = {{.bytes = CHUNK, .begins = true},
	                                  {.bytes = CHUNK, .begins = true, .on_host = true}};
	struct recorded_launch launches[LAUNCHES + 1];
	for (unsigned i = 0; i < LAUNCHES; i++)
		launches[i] = launch_of(CODE + 300, i ? MS / 2 : 20 * MS);
	launches[LAUNCHES] = other;
	const struct recording recording = {
	    .chunks = chunks,
	    .launches = launches,
	    .phases = {{.first = 0, .count = LAUNCHES + 1, .repeats = PERIODS}},
	    .host_ns = RECORDED_HOST_NS,
	    .chunk_count = 2,
	    .launch_count = LAUNCHES + 1,
	    .phase_count = 1,
	};
	struct replay_result result = replay(&recording, SPILL_FOLLOW_AUTO, &replay_usual);
	unsigned timed = 0;
	for (unsigned i = PERIODS - LAST_PERIODS; i < PERIODS; i++)
		timed += result.timed[i];
	assert_false(spill_param_extent_too_short(CODE + 300)); /* given up */
	assert_in_range(timed, 1, 3 * LAST_PERIODS); /* of each period one launch of each code, and probes */
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

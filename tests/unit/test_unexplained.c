/* Launches that take longer than the memory they are known to access explains. The replay has their times. */
#include "unit.h"

#include "chunk_map.h"
#include "param_extent.h"
#include "replay_sim.h"

#define MS 1000000ull
#define CHUNK (64ull << 20)

enum { CODE = 5, OTHER, FAST_PERIODS = 40, SLOW_PERIODS = 40 };

/* A launch of the code takes `slow_ns` in the later periods. Its chunk is on the device; another launch has one on the host. */
static uint64_t extent_after(uint64_t code, uint64_t slow_ns, bool other_on_host)
{
	static const struct recorded_use uses[] = {{.chunk = 0}, {.chunk = 1, .in_place_ns = 20000}};
	struct recorded_chunk chunks[] = {{.bytes = CHUNK, .begins = true},
	                                  {.bytes = CHUNK, .begins = true, .on_host = other_on_host}};
	struct recorded_launch launches[] = {
	    {.site = code, .ns = MS / 2, .sure = 1, .count = 1, .uses = &uses[0], .waits = true},
	    {.site = OTHER, .ns = MS, .sure = 1, .count = 1, .uses = &uses[1]},
	    {.site = code, .ns = slow_ns, .sure = 1, .count = 1, .uses = &uses[0], .waits = true},
	    {.site = OTHER, .ns = MS, .sure = 1, .count = 1, .uses = &uses[1]},
	};
	const struct recording recording = {
	    .chunks = chunks,
	    .launches = launches,
	    .phases = {{.first = 0, .count = 2, .repeats = FAST_PERIODS},
	               {.first = 2, .count = 2, .repeats = SLOW_PERIODS}},
	    .chunk_count = 2,
	    .launch_count = 4,
	    .phase_count = 2,
	};
	replay(&recording, SPILL_SWITCH_AUTO);
	return spill_param_extent(code, 0, SPILL_CHUNK_MAP_UNIT) / SPILL_CHUNK_MAP_UNIT;
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

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

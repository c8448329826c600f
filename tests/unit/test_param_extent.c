/*
 * How far a parameter is thought to reach, with each limit at its value. What is learned stays for ever, so
 * each test has sites of its own.
 */
#include "unit.h"

#include "chunk_map.h"
#include "param_extent.h"

#define MIB ((uint64_t)1 << 20)
#define UNIT SPILL_CHUNK_MAP_UNIT

static void too_short(uint64_t site, unsigned times)
{
	for (unsigned i = 0; i < times; i++)
		assert_true(spill_param_extent_too_short(site));
}

TEST(an_extent_is_in_whole_units)
{
	assert_int_equal(spill_param_extent(10, 0, 1), UNIT);
	assert_int_equal(spill_param_extent(11, 0, UNIT), UNIT);
	assert_int_equal(spill_param_extent(12, 0, UNIT + 1), 2 * UNIT);
	/* More than is counted is as it is. */
	assert_int_equal(spill_param_extent(13, 0, (UINT16_MAX + 5ull) * UNIT + 7),
	                 (UINT16_MAX + 5ull) * UNIT + 7);
}

TEST(each_parameter_has_its_own)
{
	assert_int_equal(spill_param_extent(20, 1, 5 * UNIT), 5 * UNIT);
	assert_int_equal(spill_param_extent(20, 2, UNIT), UNIT);
	assert_int_equal(spill_param_extent(21, 1, UNIT), UNIT);
}

/* The longest of as many shorter ones in a row follows. */
TEST(a_longer_extent_is_forgotten_after_a_while)
{
	spill_param_extent(30, 0, 9 * UNIT);
	spill_param_extent(30, 0, 9 * UNIT); /* as long again is no shorter one */
	for (unsigned i = 1; i < SPILL_PARAM_EXTENTS; i++)
		assert_int_equal(spill_param_extent(30, 0, (i == 2 ? 4 : 3) * UNIT), 9 * UNIT);
	assert_int_equal(spill_param_extent(30, 0, 3 * UNIT), 4 * UNIT);
	for (unsigned i = 1; i < SPILL_PARAM_EXTENTS; i++)
		assert_int_equal(spill_param_extent(30, 0, 2 * UNIT), 4 * UNIT);
	assert_int_equal(spill_param_extent(30, 0, 2 * UNIT), 2 * UNIT);
}

TEST(a_longer_one_counts_at_once)
{
	spill_param_extent(35, 0, 9 * UNIT);
	spill_param_extent(35, 0, 20 * UNIT);
	assert_int_equal(spill_param_extent(35, 0, UNIT), 20 * UNIT);
}

TEST(as_long_again_begins_the_row_anew)
{
	spill_param_extent(40, 0, 9 * UNIT);
	for (unsigned turn = 0; turn < 3; turn++) {
		for (unsigned i = 1; i < SPILL_PARAM_EXTENTS; i++)
			assert_int_equal(spill_param_extent(40, 0, UNIT), 9 * UNIT);
		spill_param_extent(40, 0, 9 * UNIT);
	}
}

TEST(slow_launches_double_it)
{
	assert_int_equal(spill_param_extent(50, 0, UNIT), UNIT);
	for (unsigned doubling = 0; doubling < 3; doubling++) {
		too_short(50, SPILL_PARAM_EXTENT_SLOW - 1);
		assert_int_equal(spill_param_extent(50, 0, UNIT), UNIT << doubling);
		too_short(50, 1);
		assert_int_equal(spill_param_extent(50, 0, UNIT), UNIT << (doubling + 1));
	}
	/* 63 more, and then it is given up, for good. */
	too_short(50, 63);
	assert_int_equal(spill_param_extent(50, 0, UNIT), 8 * UNIT);
	assert_false(spill_param_extent_too_short(50));
	assert_int_equal(spill_param_extent(50, 0, UNIT), UNIT);
	assert_false(spill_param_extent_too_short(50));
}

TEST(it_is_doubled_up_to_256_MiB)
{
	too_short(60, SPILL_PARAM_EXTENT_SLOW);
	assert_int_equal(spill_param_extent(60, 0, 100 * MIB), 200 * MIB);
	assert_int_equal(spill_param_extent(60, 1, 128 * MIB), 256 * MIB);
	assert_int_equal(spill_param_extent(60, 2, 130 * MIB), 256 * MIB);
	assert_int_equal(spill_param_extent(60, 3, 256 * MIB), 256 * MIB);
	assert_int_equal(spill_param_extent(60, 4, 300 * MIB), 300 * MIB);
	assert_int_equal(spill_param_extent(60, 4, 258 * MIB), 300 * MIB);
}

/* Slow launches between many fast ones are chance. */
TEST(rare_slow_launches_do_not_count)
{
	for (unsigned i = 0; i < 3; i++) {
		too_short(70, SPILL_PARAM_EXTENT_SLOW - 1);
		for (unsigned k = 0; k < SPILL_PARAM_EXTENT_RARE; k++)
			spill_param_extent_suffices(70);
	}
	assert_int_equal(spill_param_extent(70, 0, UNIT), UNIT);
	/* One fast launch fewer: all of them count. */
	too_short(70, SPILL_PARAM_EXTENT_SLOW - 1);
	for (unsigned k = 1; k < SPILL_PARAM_EXTENT_RARE; k++)
		spill_param_extent_suffices(70);
	too_short(70, 1);
	assert_int_equal(spill_param_extent(70, 0, UNIT), 2 * UNIT);
}

/* A slow launch between them, and the fast ones are counted anew. */
TEST(fast_launches_count_in_a_row)
{
	for (unsigned i = 0; i < SPILL_PARAM_EXTENT_SLOW; i++) {
		for (unsigned k = 1; k < SPILL_PARAM_EXTENT_RARE; k++)
			spill_param_extent_suffices(80);
		too_short(80, 1);
	}
	assert_int_equal(spill_param_extent(80, 0, UNIT), 2 * UNIT);
}

/* Of nine sites at one place of the table, the ninth replaces the first. */
TEST(sites_at_one_place_are_kept_apart)
{
	uint64_t sites[9];
	unsigned count = 0;
	for (uint64_t site = 1000; count < 9; site++)
		if ((site * 0x9e3779b97f4a7c15ull >> 16) % 1024 == 500)
			sites[count++] = site;
	for (unsigned i = 0; i < 9; i++)
		too_short(sites[i], SPILL_PARAM_EXTENT_SLOW);
	for (unsigned i = 0; i < 9; i++)
		assert_int_equal(spill_param_extent(sites[i], 0, UNIT), i ? 2 * UNIT : UNIT);
}

/* Which uses of which chunks were measured, and that a full table goes on learning. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "site_chunk_cost.h"

#define MS 1000000ull

static struct spill_site_chunk_costs pairs;

static int begin(void **state)
{
	memset(&pairs, 0, sizeof(pairs));
	return 0;
}

TEST(what_was_measured_is_found)
{
	assert_null(spill_site_chunk_cost_find(&pairs, 1, 10));
	spill_site_chunk_cost_add(&pairs, 1, 10, 1024, 8 * MS);
	assert_null(spill_site_chunk_cost_find(&pairs, 2, 10));
	assert_null(spill_site_chunk_cost_find(&pairs, 1, 11));
	assert_true(spill_site_chunk_cost_find(&pairs, 1, 10)->ns == 8 * MS);
	/* Half of it is the last one's. */
	spill_site_chunk_cost_add(&pairs, 1, 10, 2 * 1024, 4 * MS);
	assert_true(spill_site_chunk_cost_find(&pairs, 1, 10)->ns == 6 * MS);
	assert_true(spill_site_chunk_cost_find(&pairs, 1, 10)->kib == 1536);
	spill_site_chunk_cost_add(&pairs, 2, 10, 0, 1);
	assert_int_equal(spill_site_chunk_cost_find(&pairs, 2, 10)->kib, 1);
}

/* However often it was measured. */
TEST(what_was_measured_stays_known)
{
	for (unsigned i = 0; i < 300; i++) {
		spill_site_chunk_cost_add(&pairs, 1, 10, 1024, 8 * MS);
		assert_non_null(spill_site_chunk_cost_find(&pairs, 1, 10));
	}
}

static bool known;

static unsigned wanted(uint16_t site, uint32_t key, unsigned uses)
{
	unsigned count = 0;

	while (uses--)
		count += spill_site_chunk_cost_wants_sample(&pairs, site, key, 1024, &known);
	return count;
}

TEST(it_is_timed_until_it_is_known)
{
	assert_int_equal(wanted(1, 10, 9), 5);    /* never told: the uses 0, 1, 2, 4, 8 */
	assert_int_equal(wanted(1, 10, 247), 15); /* one of 16 */
	assert_null(spill_site_chunk_cost_find(&pairs, 1, 10));
	spill_site_chunk_cost_add(&pairs, 1, 10, 1024, MS);
	assert_int_equal(wanted(1, 10, 256), 4);
	assert_int_equal(wanted(1, 11, 1), 1);
}

TEST(a_launch_is_known_if_each_of_its_chunks_is)
{
	known = true;
	wanted(1, 10, 1);
	assert_false(known);
	spill_site_chunk_cost_add(&pairs, 1, 10, 1024, MS);
	known = true;
	wanted(1, 10, 1);
	assert_true(known);
	wanted(1, 11, 1);
	assert_false(known);
	wanted(1, 10, 1);
	assert_false(known);
	/* Measured with far more on the host, which says nothing. */
	spill_site_chunk_cost_add(&pairs, 1, 11, 64 * 1024, MS);
	known = true;
	wanted(1, 11, 1);
	assert_false(known);
}

/* The sample was of a launch that named the rest of an allocation. It says nothing about a launch that names one buffer. */
TEST(it_is_timed_again_with_half_or_twice_as_much_on_the_host)
{
	assert_int_equal(wanted(1, 10, 1), 1);
	spill_site_chunk_cost_add(&pairs, 1, 10, 64 * 1024, MS);
	assert_true(spill_site_chunk_cost_wants_sample(&pairs, 1, 10, 1024, &known));
	assert_true(spill_site_chunk_cost_find(&pairs, 1, 10)->kib == 64 * 1024);
	spill_site_chunk_cost_add(&pairs, 1, 10, 1024, 2 * MS);
	assert_true(spill_site_chunk_cost_find(&pairs, 1, 10)->ns == 2 * MS);
	assert_true(spill_site_chunk_cost_find(&pairs, 1, 10)->kib == 1024);
	assert_int_equal(wanted(1, 10, 10), 0);
	assert_true(spill_site_chunk_cost_wants_sample(&pairs, 1, 10, 3 * 1024, &known));
}

/* A program whose memory comes and goes for days. */
TEST(the_newest_are_known_whatever_came_before)
{
	unsigned known = 0;

	for (uint32_t key = 1; key < 20 * SPILL_SITE_CHUNK_COSTS; key++) {
		spill_site_chunk_cost_add(&pairs, (uint16_t)(key % 50), key, 1024, key);
		assert_true(spill_site_chunk_cost_find(&pairs, (uint16_t)(key % 50), key)->ns == key);
	}
	for (uint32_t key = 20 * SPILL_SITE_CHUNK_COSTS - 1000; key < 20 * SPILL_SITE_CHUNK_COSTS; key++)
		known += spill_site_chunk_cost_find(&pairs, (uint16_t)(key % 50), key) != NULL;
	assert_in_range(known, 950, 1000);
}

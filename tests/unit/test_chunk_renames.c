/*
 * Which chunks have taken the place of others: by launches of the same code on other chunks, with each
 * limit at its value.
 */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "chunk_renames.h"

#define KEYS(...) (const uint32_t[]){__VA_ARGS__}, sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#define PERIOD 64

static struct spill_chunk_renames renames;

static int begin(void **state)
{
	memset(&renames, 0, sizeof(renames));
	return 0;
}

/* A launch of now accesses other chunks than a period ago. */
static void learn(uint64_t now, const uint32_t *old, unsigned old_count, const uint32_t *keys, unsigned count)
{
	spill_chunk_renames_learn(&renames, now, now - PERIOD, old, old_count, keys, count);
}

static void check_names(uint32_t key, uint64_t time, uint64_t period, const uint32_t *expected,
                        unsigned count)
{
	uint32_t names[SPILL_CHUNK_NAMES];

	assert_int_equal(spill_chunk_renames_get(&renames, key, time, period, names), count);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(names[i], expected[i]);
}

/* Of a chunk that was accessed a period before the launch at 100. */
static void named(uint32_t key, const uint32_t *expected, unsigned count)
{
	check_names(key, 100 - PERIOD, PERIOD, expected, count);
}

TEST(without_a_rename_each_chunk_has_its_own_name)
{
	named(5, KEYS(5));
	learn(100, KEYS(5), KEYS(6));
	named(6, KEYS(6));
}

TEST(a_buffer_elsewhere)
{
	learn(100, KEYS(10, 11, 12), KEYS(310, 311, 312));
	named(10, KEYS(310));
	named(11, KEYS(311));
	named(12, KEYS(312));
	named(13, KEYS(13));
}

TEST(the_same_chunks_are_not_renamed)
{
	learn(100, KEYS(10, 11), KEYS(10, 11));
	assert_int_equal(renames.since, 0);
	/* Others of the same launch are. */
	learn(100, KEYS(10, 11, 500), KEYS(10, 11, 700));
	named(10, KEYS(10));
	named(11, KEYS(11));
	named(500, KEYS(700));
}

/* What was accessed at the time of the launch, or since, has its name already. */
TEST(a_rename_is_of_chunks_accessed_before)
{
	learn(100, KEYS(10), KEYS(20));
	check_names(10, 99, PERIOD, KEYS(20));
	check_names(10, 100, PERIOD, KEYS(10));
	/* So it is with a later rename of another chunk. */
	learn(200, KEYS(11), KEYS(21));
	check_names(10, 99, PERIOD, KEYS(20));
	check_names(10, 100, PERIOD, KEYS(10));
}

/* Up to an eighth of the period that is asked about. */
TEST(a_rename_is_of_its_period)
{
	learn(100, KEYS(10), KEYS(20));
	check_names(10, 0, 73, KEYS(20)); /* 64 + 9 */
	check_names(10, 0, 74, KEYS(10));
	check_names(10, 0, 57, KEYS(20)); /* 64 - 7 */
	check_names(10, 0, 56, KEYS(10));
}

/* The chunk has parts of several buffers, which went to different ones. */
TEST(the_last_two_names_of_a_step)
{
	learn(100, KEYS(10), KEYS(20));
	learn(110, KEYS(10), KEYS(21));
	named(10, KEYS(21, 20));
	learn(120, KEYS(10), KEYS(21));
	named(10, KEYS(21, 20));
	learn(130, KEYS(10), KEYS(22));
	named(10, KEYS(22, 21));
}

TEST(names_of_the_step_before_are_forgotten)
{
	learn(100, KEYS(10), KEYS(20));
	learn(99 + PERIOD, KEYS(10), KEYS(21)); /* the first name is younger than the old access */
	named(10, KEYS(21, 20));
	learn(99 + 2 * PERIOD, KEYS(10), KEYS(22)); /* and the second as old as it */
	named(10, KEYS(22));
}

TEST(names_of_another_period_are_forgotten)
{
	learn(100, KEYS(10), KEYS(20));
	spill_chunk_renames_learn(&renames, 101, 101 - 74, KEYS(10), KEYS(21));
	check_names(10, 0, 74, KEYS(21));
	spill_chunk_renames_learn(&renames, 102, 102 - 83, KEYS(10), KEYS(22));
	check_names(10, 0, 83, KEYS(22, 21));
}

/* A part of a chunk that is now in the next one needs both. */
TEST(a_buffer_in_more_chunks_than_before)
{
	learn(100, KEYS(10, 11), KEYS(20, 21, 22));
	named(10, KEYS(21, 20));
	named(11, KEYS(22, 21));
}

TEST(a_buffer_in_fewer_chunks_than_before)
{
	learn(100, KEYS(10, 11, 12), KEYS(20, 21));
	named(10, KEYS(20));
	named(11, KEYS(21, 20));
	named(12, KEYS(21));
}

/* A buffer is at ascending chunks, of which each is at most 32 units behind the one before it. */
TEST(buffers_are_compared_one_by_one)
{
	learn(100, KEYS(10, 42, 200), KEYS(1010, 1200));
	named(10, KEYS(1010));
	named(42, KEYS(1010));
	named(200, KEYS(1200));
}

TEST(another_number_of_buffers_tells_nothing)
{
	learn(100, KEYS(10, 43), KEYS(1010)); /* too far away for one buffer */
	learn(100, KEYS(10, 9), KEYS(1010));  /* not ascending */
	learn(100, KEYS(10, 10), KEYS(1010));
	learn(100, KEYS(10), KEYS(1010, 1043));
	assert_int_equal(renames.since, 0);
}

/* The lists begin and end where the caller says, whatever their memory has around them. */
TEST(what_is_around_a_list_is_not_read)
{
	static const uint32_t old[] = {8, 9, 10, 100, 200, 201}, keys[] = {1, 2, 1010, 1100, 1200, 1201};

	learn(100, old + 2, 3, keys + 2, 3);
	named(9, KEYS(9));
	named(10, KEYS(1010));
	named(100, KEYS(1100));
	named(200, KEYS(1200));
	named(201, KEYS(201));
	named(1200, KEYS(1200));
}

/* More than the table has room for: a chunk may have lost its new name, and never has another's. */
TEST(no_chunk_has_the_name_of_another)
{
	unsigned kept = 0;

	for (uint32_t i = 1; i <= 4 * SPILL_CHUNK_RENAMES; i++)
		learn(100, &i, 1, &(uint32_t){i + 1000000}, 1);
	for (uint32_t i = 1; i <= 4 * SPILL_CHUNK_RENAMES; i++) {
		uint32_t names[SPILL_CHUNK_NAMES];

		assert_int_equal(spill_chunk_renames_get(&renames, i, 0, PERIOD, names), 1);
		assert_true(names[0] == i || names[0] == i + 1000000);
		kept += names[0] != i;
	}
	assert_true(kept > SPILL_CHUNK_RENAMES / 2);
}

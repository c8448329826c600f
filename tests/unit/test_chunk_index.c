/* The chunk that has a unit: each is found, also where slots collide, and no other. */
#include "unit.h"

#include <string.h>

#include "chunk_index.h"
#include "roll.h"

#define BITS 6
#define SLOTS (1u << BITS)

static struct spill_chunk_slot slots[4096];
static struct spill_chunk_index found_by;

static void begin_with(unsigned bits)
{
	memset(slots, 0, sizeof(slots));
	found_by = (struct spill_chunk_index){.slots = slots, .bits = bits};
	assert_true(1u << bits <= sizeof(slots) / sizeof(*slots));
}

/* The place of the chunk that has the unit; -1: none has. */
static int find(uint32_t unit)
{
	const struct spill_chunk_slot *slot = spill_chunk_index_find(&found_by, unit);

	assert_true(!slot || unit - slot->first < slot->units);
	return slot ? (int)slot->place : -1;
}

/* The first unit of the n-th block whose first slot is this one. */
static uint32_t block_at(unsigned slot, unsigned nth)
{
	uint32_t block = 0;

	while (spill_hash_key(block, BITS) != slot || nth--)
		block++;
	return block * SPILL_CHUNK_BLOCK;
}

TEST(half_of_the_slots_stay_free)
{
	static const struct {
		unsigned entries, bits;
	} cases[] = {{0, 1}, {1, 1},    {2, 2},    {3, 3},    {4, 3},
	             {5, 4}, {448, 10}, {512, 10}, {513, 11}, {1u << 30, 31}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(spill_chunk_index_bits(cases[i].entries), cases[i].bits);
}

/* A chunk is found by each of its units, and by none beside it. */
TEST(all_units_of_a_chunk)
{
	static const struct {
		uint32_t first, units;
	} chunks[] = {{0, 1},    {16, 16},  {33, 1},  {40, 8},
	              {48, 100}, {160, 15}, {191, 2}, {UINT32_MAX - 9, 9}};

	begin_with(BITS);
	for (unsigned i = 0; i < sizeof(chunks) / sizeof(*chunks); i++)
		assert_true(spill_chunk_index_add(&found_by, chunks[i].first, chunks[i].units, i));
	for (unsigned i = 0; i < sizeof(chunks) / sizeof(*chunks); i++)
		for (uint32_t unit = 0; unit < chunks[i].units; unit++)
			assert_int_equal(find(chunks[i].first + unit), i);
	for (uint32_t unit = 0; unit < 200; unit++) {
		int of = find(unit);

		if (of >= 0)
			assert_true(unit - chunks[of].first < chunks[of].units);
	}
	assert_int_equal(find(1), -1);
	assert_int_equal(find(32), -1);
	assert_int_equal(find(34), -1);
	assert_int_equal(find(148), -1);
	assert_int_equal(find(193), -1);
}

TEST(blocks_of_one_slot)
{
	/* From the last slot it goes on with the first, where block 0 is already. */
	uint32_t firsts[SLOTS / 2] = {0};

	assert_int_equal(spill_hash_key(0, BITS), 0);
	begin_with(BITS);
	for (unsigned i = 1; i < SLOTS / 2; i++)
		firsts[i] = block_at(i % 2 ? SLOTS - 1 : 5, i / 2);
	for (unsigned i = 0; i < SLOTS / 2; i++) {
		for (unsigned k = i; k < SLOTS / 2; k++)
			assert_int_equal(find(firsts[k]), -1);
		assert_true(spill_chunk_index_add(&found_by, firsts[i], 1, i));
		for (unsigned k = 0; k <= i; k++)
			assert_int_equal(find(firsts[k]), k);
	}
	assert_int_equal(find(block_at(SLOTS - 1, 40)), -1);
}

/* One slot stays free, so that each search ends. */
TEST(a_full_index_takes_no_more)
{
	begin_with(2);
	assert_true(spill_chunk_index_add(&found_by, 0, 17, 7)); /* two blocks */
	assert_false(spill_chunk_index_add(&found_by, 100, 17, 8));
	assert_int_equal(find(100), -1);
	assert_true(spill_chunk_index_add(&found_by, 100, 12, 8));
	assert_false(spill_chunk_index_add(&found_by, 200, 1, 9));
	assert_int_equal(find(200), -1);
	assert_int_equal(find(16), 7);
	assert_int_equal(find(111), 8);
}

/* Whatever the chunks are, so many entries are enough. */
TEST(enough_entries)
{
	roll_state = ROLL_BEGIN;
	for (unsigned round = 0; round < 100; round++) {
		unsigned chunks = 0, bits;
		uint64_t units = 0;
		uint32_t firsts[64], counts[64], at = 0;

		for (; chunks < 64; chunks++) {
			at += (uint32_t)(roll_any() >> 20) % 40;
			counts[chunks] = (uint32_t)(roll_any() >> 20) % (round + 1) + 1;
			firsts[chunks] = at;
			at += counts[chunks];
			units += counts[chunks];
		}
		bits = spill_chunk_index_bits(spill_chunk_index_entries(chunks, units));
		begin_with(bits);
		for (unsigned i = 0; i < chunks; i++)
			assert_true(spill_chunk_index_add(&found_by, firsts[i], counts[i], i));
		assert_true(found_by.taken <= spill_chunk_index_entries(chunks, units));
		for (unsigned i = 0; i < chunks; i++)
			assert_int_equal(find(firsts[i] + counts[i] - 1), i);
	}
}

/* Chunks of a real run: 20 MiB each, one behind the other. */
TEST(neighbours_are_found_soon)
{
	unsigned steps = 0;

	begin_with(spill_chunk_index_bits(spill_chunk_index_entries(448, 4480)));
	for (unsigned i = 0; i < 448; i++)
		assert_true(spill_chunk_index_add(&found_by, 0x3f1000 + 10 * i, 10, i));
	for (unsigned i = 0; i < 4480; i++) {
		unsigned at = spill_hash_key((0x3f1000 + i) / SPILL_CHUNK_BLOCK, found_by.bits);

		for (; slots[at].place != i / 10; at = (at + 1) % (1u << found_by.bits))
			steps++;
	}
	assert_true(steps < 2 * 4480);
}

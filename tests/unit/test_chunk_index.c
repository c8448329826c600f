/* The place of a key in a list: each key is found, also where their slots collide, and no other. */
#include "unit.h"

#include <string.h>

#include "chunk_index.h"

#define BITS 6
#define SLOTS (1u << BITS)

static struct spill_chunk_slot slots[SLOTS];
static struct spill_chunk_index found_by = {slots, BITS};

/* The n-th key whose first slot is this one. */
static uint32_t key_at(unsigned slot, unsigned nth)
{
	uint32_t key = 0;

	while (spill_hash_key(key, BITS) != slot || nth--)
		key++;
	return key;
}

TEST(half_of_the_slots_stay_free)
{
	static const struct {
		unsigned chunks, bits;
	} cases[] = {{0, 1}, {1, 1},    {2, 2},    {3, 3},    {4, 3},
	             {5, 4}, {448, 10}, {512, 10}, {513, 11}, {1u << 30, 31}};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_int_equal(spill_chunk_index_bits(cases[i].chunks), cases[i].bits);
}

TEST(keys_of_one_slot)
{
	/* From the last slot it goes on with the first, where the key 0 is already. */
	uint32_t keys[SLOTS / 2] = {0};

	assert_int_equal(spill_hash_key(0, BITS), 0);
	memset(slots, 0, sizeof(slots));
	for (unsigned i = 1; i < SLOTS / 2; i++)
		keys[i] = key_at(i % 2 ? SLOTS - 1 : 5, i / 2);
	for (unsigned i = 0; i < SLOTS / 2; i++) {
		for (unsigned k = i; k < SLOTS / 2; k++)
			assert_int_equal(spill_chunk_index_find(&found_by, keys[k]), SPILL_CHUNK_NOWHERE);
		spill_chunk_index_add(&found_by, keys[i], i);
		for (unsigned k = 0; k <= i; k++)
			assert_int_equal(spill_chunk_index_find(&found_by, keys[k]), k);
	}
	assert_int_equal(spill_chunk_index_find(&found_by, key_at(SLOTS - 1, 40)), SPILL_CHUNK_NOWHERE);
}

/* Chunks of a real run: 20 MiB each, one behind the other. */
TEST(neighbours_are_found_at_once)
{
	static struct spill_chunk_slot many[1024];
	struct spill_chunk_index index = {many, spill_chunk_index_bits(448)};
	unsigned steps = 0;

	for (unsigned i = 0; i < 448; i++)
		spill_chunk_index_add(&index, 0x3f1000 + 10 * i, i);
	for (unsigned i = 0; i < 1024; i++)
		if (many[i].place)
			steps += (i - spill_hash_key(many[i].key, index.bits)) % 1024;
	assert_true(steps < 448);
}

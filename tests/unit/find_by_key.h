/* The index of the chunks of a choice, as prefetch/chunk_list.c makes it. */
#ifndef SPILL_TEST_FIND_BY_KEY_H
#define SPILL_TEST_FIND_BY_KEY_H

#include "unit.h"

#include <string.h>

#include "exchange_choice.h"

/* Chunks of so many units. Until the next one: there is one place for it. */
static inline void find_by_key(struct spill_exchange_choice *choice, uint32_t units)
{
	static struct spill_chunk_slot slots[1024];

	memset(slots, 0, sizeof(slots));
	choice->index =
	    (struct spill_chunk_index){.slots = slots, .bits = spill_chunk_index_bits(3 * choice->count)};
	assert_true(choice->index.bits <= 10);
	for (unsigned i = 0; i < choice->count; i++)
		assert_true(spill_chunk_index_add(&choice->index, choice->chunks[i].key, units, i));
}

#endif

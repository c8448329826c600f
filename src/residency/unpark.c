#include "unpark.h"

#include "exchange.h"
#include "remap.h"

/* Does the chunk reach into the bytes? */
static bool is_parked(const struct spill_chunked *chunked, unsigned index, uint64_t ptr, uint64_t bytes)
{
	const struct spill_chunk *chunk = &chunked->chunks[index];
	uint64_t begin = spill_chunked_address(chunked, index);
	return chunk->parked && begin < ptr + bytes && ptr < begin + chunk->bytes;
}

/* pre: the mover is held */
static bool give_mapping(struct spill_chunked *chunked, unsigned index)
{
	struct spill_move move = {.chunked = chunked, .index = index};
	if (!spill_exchange_bring_parked(chunked, index))
		spill_remap_own(chunked->base.backend, chunked->base.device, &move);
	return !chunked->chunks[index].unmapped;
}

/*
 * A move may have found a chunk dead before these bytes were live. It has marked the chunk before it looked
 * (spill_parking_begin), so the mark is seen here.
 */
bool spill_unpark(struct spill_chunked *chunked, uint64_t ptr, uint64_t bytes)
{
	unsigned first = 0;
	bool mapped = true;
	while (first < chunked->count && !is_parked(chunked, first, ptr, bytes))
		first++;
	if (first == chunked->count)
		return true;
	spill_mover_lock();
	for (unsigned i = first; i < chunked->count; i++)
		if (is_parked(chunked, i, ptr, bytes))
			mapped = give_mapping(chunked, i) && mapped;
	spill_mover_unlock();
	return mapped;
}

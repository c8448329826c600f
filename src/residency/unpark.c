#include "unpark.h"

#include "exchange.h"
#include "mover.h"
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

void spill_unpark_pin_held(struct spill_chunked *chunked)
{
	for (unsigned i = 0; i < chunked->count; i++)
		if (chunked->chunks[i].parked)
			spill_remap_own(chunked->base.backend, chunked->base.device,
			                &(const struct spill_move){.chunked = chunked, .index = i});
	spill_chunked_pin_held(chunked);
}

void spill_unpark_pin(struct spill_chunked *chunked)
{
	spill_mover_lock();
	spill_unpark_pin_held(chunked);
	spill_mover_unlock();
}

void spill_unpark_pin_at(uint64_t ptr)
{
	spill_mover_lock();
	struct spill_chunked *chunked = spill_chunked_at(ptr);
	if (chunked)
		spill_unpark_pin_held(chunked);
	spill_mover_unlock();
}

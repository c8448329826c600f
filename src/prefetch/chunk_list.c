#include "chunk_list.h"

#include <stdlib.h>

#include "chunk_map.h"

static void add_chunk(struct spill_chunk_list *list, struct spill_chunked *chunked, unsigned index)
{
	struct spill_chunk_map_entry entry;
	const struct spill_chunk *chunk = &chunked->chunks[index];
	struct spill_span spans[SPILL_SPANS];
	uint64_t va = spill_chunked_address(chunked, index);
	if (!spill_chunk_map_of(va, &entry) ||
	    !spill_chunk_index_add(&list->index, entry.key, entry.count, list->count))
		return;
	*(chunk->on_host ? &list->on_host : &list->resident) += chunk->bytes;
	list->chunks[list->count++] = (struct spill_exchange_chunk){
	    .key = entry.key,
	    .bytes = chunk->bytes,
	    .on_host = chunk->on_host,
	    .displaced = chunk->displaced,
	    .dead = !spill_chunked_live(chunked, index, spans),
	    .fixed = chunked->pinned || spill_chunk_is_lost(chunk) ||
	             (chunk->on_host && !spill_chunk_may_come(chunked, index)),
	    .data = chunked,
	    .index = index,
	};
}

static void mark_needed(struct spill_chunk_list *list, const struct spill_launch_access *access)
{
	for (unsigned i = 0; i < access->count; i++) {
		const struct spill_chunk_slot *slot = spill_chunk_index_find(&list->index, access->keys[i]);
		if (!slot)
			continue;
		struct spill_exchange_chunk *found = &list->chunks[slot->place];
		*(i < access->sure ? &found->needed : &found->maybe) = true;
	}
}

bool spill_chunk_list_make(struct spill_chunk_list *list, int device,
                           const struct spill_launch_access *access)
{
	unsigned room = 0, more;
	uint64_t units = 0;
	for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
	     chunked = spill_chunked_next(chunked))
		if (chunked->base.device == device) {
			room += chunked->count;
			units += chunked->range >> SPILL_CHUNK_MAP_UNIT_SHIFT;
		}
	unsigned bits = spill_chunk_index_bits(spill_chunk_index_entries(room, units));
	*list = (struct spill_chunk_list){
	    .chunks = calloc(room + 1, sizeof(*list->chunks)),
	    .index = {.slots = calloc((size_t)1 << bits, sizeof(*list->index.slots)), .bits = bits},
	    .ranks = calloc(room + 1, sizeof(*list->ranks)),
	};
	if (!list->chunks || !list->index.slots || !list->ranks)
		return false;
	/* There may be more of them since. */
	for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
	     chunked = spill_chunked_next(chunked)) {
		more = chunked->base.device == device ? chunked->count : 0;
		for (unsigned i = 0; i < more && list->count < room; i++)
			add_chunk(list, chunked, i);
	}
	mark_needed(list, access);
	return true;
}

void spill_chunk_list_free(struct spill_chunk_list *list)
{
	free(list->chunks);
	free(list->index.slots);
	free(list->ranks);
}

bool spill_chunk_list_add_chosen(const struct spill_exchange_choice *choice, struct spill_exchange *exchange)
{
	for (unsigned i = 0; i < choice->count; i++)
		if (choice->chunks[i].verdict != SPILL_EXCHANGE_STAYS)
			spill_exchange_add(exchange, choice->chunks[i].data, choice->chunks[i].index);
	return exchange->comes.count || exchange->goes.count;
}

void spill_chunk_list_swapped(struct spill_exchange_choice *choice)
{
	for (unsigned i = 0; i < choice->count; i++) {
		struct spill_exchange_chunk *chosen = &choice->chunks[i];
		struct spill_chunk *chunk = &((struct spill_chunked *)chosen->data)->chunks[chosen->index];
		if (chosen->verdict != SPILL_EXCHANGE_STAYS && chunk->on_host != chosen->on_host)
			chunk->displaced = false;
		else
			chosen->verdict = SPILL_EXCHANGE_STAYS;
	}
}

struct spill_chunked *spill_chunk_list_allocation(const struct spill_launch_access *access)
{
	for (unsigned i = 0; i < access->count; i++)
		for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
		     chunked = spill_chunked_next(chunked))
			if (((uint64_t)access->keys[i] << SPILL_CHUNK_MAP_UNIT_SHIFT) - chunked->base.ptr <
			    chunked->range)
				return chunked;
	return NULL;
}

#include "chunk_set.h"

#include <stdatomic.h>

#include "blocks.h"

/* Numbers of handles. Never used twice, so that a late release finds nothing. */
static _Atomic uint64_t last_number;

struct spill_chunked *spill_chunk_set_new(const struct spill_place_ops *ops,
                                          const struct spill_place_request *want, uint64_t unit,
                                          const char **error)
{
	struct spill_chunked *set = spill_chunked_new(ops, want, unit, error);
	if (!set)
		return NULL;
	set->set = true;
	set->name = SPILL_CHUNK_SET_TAG | ++last_number;
	set->properties = want->properties;
	if (want->properties)
		set->chunk_bytes = set->range; /* the vendor exports one handle */
	return set;
}

/* Ends the mappings of the first `count` chunks. */
static void undo_mappings(const struct spill_chunked *set, uint64_t va, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		set->base.backend->vmm->unmap(va + set->chunks[i].offset, set->chunks[i].bytes);
}

/* All of it has a mapping of its own, whatever was mapped before. */
static void note_first_mapping(struct spill_chunked *set, uint64_t va)
{
	for (unsigned i = 0; i < set->count; i++) {
		set->chunks[i].unmapped = set->chunks[i].wrong_memory = false;
		set->chunks[i].parked = false;
	}
	set->base.ptr = va;
}

static int map_chunks(const struct spill_chunked *set, uint64_t va)
{
	for (unsigned i = 0; i < set->count; i++) {
		const struct spill_chunk *chunk = &set->chunks[i];
		int result = set->base.backend->vmm->map(va + chunk->offset, chunk->bytes, chunk->handle);
		if (result) {
			undo_mappings(set, va, i);
			return result;
		}
	}
	return 0;
}

int spill_chunk_set_map(struct spill_chunked *set, uint64_t va, uint64_t bytes)
{
	if (bytes != set->range)
		return set->base.backend->invalid_value; /* as the vendor answers for a part */
	int result = map_chunks(set, va);
	if (!result && !set->base.ptr)
		note_first_mapping(set, va);
	return result;
}

void spill_chunk_set_unmapped(struct spill_chunked *set, uint64_t va, bool done)
{
	if (done && set->base.ptr == va) {
		spill_blocks_end(set);
		set->base.ptr = set->users = 0;
	} else if (!done && !set->pinned)
		spill_chunked_enlist(set);
}

void spill_chunk_set_accessed(struct spill_chunked *set, uint64_t va, uint64_t bytes, uint64_t users)
{
	bool whole = va <= set->base.ptr && set->base.ptr + set->range <= va + bytes;
	set->users |= users;
	if (!users || !whole) {
		spill_chunked_pin_held(set);
	} else if (set->users >> set->base.device & 1 && !set->pinned) {
		spill_chunked_enlist(set);
		spill_blocks_follow(set);
	}
}

uint64_t spill_chunk_set_real(const struct spill_chunked *set)
{
	return set->count == 1 && !set->chunks[0].on_host && !set->moved_at ? set->chunks[0].handle : 0;
}

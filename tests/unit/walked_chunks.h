/* Allocations in chunks, without memory, and the walk over them: for code that only chooses chunks. */
#ifndef SPILL_TEST_WALKED_CHUNKS_H
#define SPILL_TEST_WALKED_CHUNKS_H

#include <string.h>

#include "chunked.h"

enum { WALKED = 4, WALKED_CHUNKS = 3 };

static struct {
	struct spill_chunked chunked;
	struct spill_chunk chunks[WALKED_CHUNKS + 1];
} walked[WALKED];
static unsigned walked_count;
static void (*walk_ends)(void); /* another thread's doing, once: at the end of a walk */

struct spill_chunked *spill_chunked_next(struct spill_chunked *after)
{
	unsigned next = 0;
	while (after && &walked[next++].chunked != after)
		;
	if (next < walked_count)
		return &walked[next].chunked;
	void (*ends)(void) = walk_ends;
	walk_ends = NULL;
	if (ends)
		ends();
	return NULL;
}

static inline void walk_nothing(void)
{
	memset(walked, 0, sizeof(walked));
	walked_count = 0;
	walk_ends = NULL;
}

/*
 * One more, of device 0, whose chunks are of these bytes. Whoever takes the chunk behind its last one is noticed:
 * it is smaller than any, on the host, and displaced.
 */
static inline struct spill_chunked *walk_one_more(const struct spill_backend *backend, unsigned count,
                                                  uint64_t bytes, bool on_host)
{
	struct spill_chunked *chunked = &walked[walked_count++].chunked;
	chunked->base =
	    (struct spill_placement){.backend = backend, .ptr = walked_count << 20, .bytes = count * bytes};
	*(on_host ? &chunked->base.held.host : &chunked->base.held.device) = count * bytes;
	chunked->seq = walked_count;
	chunked->count = count;
	chunked->chunk_bytes = bytes;
	chunked->range = chunked->stays_from = count * bytes;
	for (unsigned i = 0; i < count; i++)
		chunked->chunks[i] =
		    (struct spill_chunk){.bytes = bytes, .offset = i * bytes, .on_host = on_host};
	chunked->chunks[count] = (struct spill_chunk){.bytes = 1, .on_host = true, .displaced = true};
	return chunked;
}

#endif

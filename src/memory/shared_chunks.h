/*
 * Shared chunks for small requests. A chunk is made once and cut into blocks, so that 10,000
 * spilled allocations of 4 KiB cost about 40 MiB, and not 10,000 times 2 MiB.
 */
#ifndef SPILL_SHARED_CHUNKS_H
#define SPILL_SHARED_CHUNKS_H

#include "context_end.h"
#include "place.h"

/* Larger requests do not share chunks. */
#define SPILL_SHARED_CHUNKS_LARGEST (1ull << 20)

/*
 * Chunks are small, so that a few half-empty ones do not matter. Blocks are aligned as by
 * cudaMalloc.
 */
#define SPILL_SHARED_CHUNKS_CHUNK (8ull << 20)
#define SPILL_SHARED_CHUNKS_ALIGNMENT 512ull

/*
 * As spill_place_ops.make, for want->bytes <= SPILL_SHARED_CHUNKS_LARGEST, in a chunk of `ops`'
 * place.
 */
struct spill_placement *spill_shared_chunks_make(const struct spill_place_ops *ops,
                                                 const struct spill_place_request *want, const char **error);

/* Releases the empty chunks of a context. NULL: of the device, where it has no contexts. */
void spill_shared_chunks_trim(const struct spill_backend *backend, int device, const void *context);

/*
 * Releases all empty chunks that the end covers. The vendor released their memory together with the
 * context.
 */
void spill_shared_chunks_context_ended(const struct spill_context_end *end);

/* Visits the placement of each chunk, with the lock held. */
void spill_shared_chunks_each(void (*visit)(const struct spill_placement *backing, void *data), void *data);

#endif

/*
 * Shared chunks for small requests: a chunk at some place is made once and cut into blocks, so that 10,000
 * spilled allocations of 4 KiB cost about 40 MiB and not 10,000 granules of 2 MiB.
 */
#ifndef SPILL_SHARED_CHUNKS_H
#define SPILL_SHARED_CHUNKS_H

#include "context_end.h"
#include "place.h"

/* Requests up to this share chunks. */
#define SPILL_SHARED_CHUNKS_LARGEST (1ull << 20)

/* Of chunk and block: chunks small enough that a few half-empty ones do not matter, blocks as cudaMalloc aligns. */
#define SPILL_SHARED_CHUNKS_CHUNK (8ull << 20)
#define SPILL_SHARED_CHUNKS_ALIGNMENT 512ull

/* As spill_place_ops.make, for want->bytes <= SPILL_SHARED_CHUNKS_LARGEST, in a chunk of `ops`' place. */
struct spill_placement *spill_shared_chunks_make(const struct spill_place_ops *ops,
                                                 const struct spill_place_request *want, const char **error);

/* Releases the empty chunks of a context; NULL, where there are no contexts: of the device. */
void spill_shared_chunks_trim(const struct spill_backend *backend, int device, const void *context);

/* The same for all chunks that the end covers: what the vendor made in the context went with it. */
void spill_shared_chunks_context_ended(const struct spill_context_end *end);

/* Visits what backs each chunk, under the lock. */
void spill_shared_chunks_each(void (*visit)(const struct spill_placement *backing, void *data), void *data);

#endif

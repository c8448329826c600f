/*
 * Ordered pools: memory in stream order from segments of ours, which can move. A segment is a
 * chunked placement. A pool cuts its segments into ranges, one for each request, and keeps the order
 * of streams: a range that was freed on a stream serves the same stream at once. It serves another
 * stream after a mark behind the work of its context has passed, as the driver's pools do by default
 * (CUDA Programming Guide, "Stream Ordered Memory Allocator"). A range in use is a placement.
 *
 * So the library knows which bytes of a segment are in use. The others are dead once the device is
 * idle: a move does not copy them (spill_chunked_live).
 *
 * Each of the program's pools has an ordered pool beside it, made when it is first needed. The engine
 * makes segments and ends them, because the ledger and the log have them, too. A pool is never freed.
 */
#ifndef SPILL_ORDERED_POOL_H
#define SPILL_ORDERED_POOL_H

#include "chunked.h"

struct spill_ordered_pool;

/* Makes the pool beside the vendor's pool `handle`, whose memory may move. NULL: no memory. */
struct spill_ordered_pool *spill_ordered_pool_made(const struct spill_backend *backend, int device,
                                                   const void *handle);

/* The pool beside the vendor's pool. NULL: there is none. */
struct spill_ordered_pool *spill_ordered_pool_of(const struct spill_backend *backend, const void *handle);

int spill_ordered_device(const struct spill_ordered_pool *pool);
/* Bytes that the pool keeps at a synchronisation; 0 at first, and after its end. */
void spill_ordered_keep(struct spill_ordered_pool *pool, uint64_t bytes);
uint64_t spill_ordered_kept(const struct spill_ordered_pool *pool);
/* NULL: the vendor's pool has ended. */
void *spill_ordered_handle(const struct spill_ordered_pool *pool);

/* Walks all pools. NULL: the first one; or there are no more. Costs one load if there is none. */
struct spill_ordered_pool *spill_ordered_next(const struct spill_ordered_pool *pool);

/* The vendor's pool ends. Its ranges live on. Returns the pool beside it, or NULL. */
struct spill_ordered_pool *spill_ordered_pool_ended(const struct spill_backend *backend, const void *handle);

/* Undoes that, because the vendor refused. NULL is allowed. */
void spill_ordered_pool_alive(struct spill_ordered_pool *pool, const void *handle);

/*
 * From now on the pool serves no request, because another device uses its memory. pre: the mover is
 * held until all segments are told
 */
void spill_ordered_pool_close(struct spill_ordered_pool *pool);
bool spill_ordered_pool_is_closed(const struct spill_ordered_pool *pool);

/*
 * The next segment that the latest close has not been told; NULL: it has been told all. A segment is
 * told once for each close. pre: the mover is held, and only then can the caller use the segment
 */
struct spill_chunked *spill_ordered_next_closed(struct spill_ordered_pool *pool);

/* Bytes of a segment that suits requests of this size. */
uint64_t spill_ordered_segment_bytes(uint64_t bytes);

/* Bytes of the chunks of segments, so that any chunk's memory fits any other. */
#define SPILL_ORDERED_CHUNK ((uint64_t)16 << 20)

/*
 * Takes a range that work in `order` may use, on the device; with `anywhere` one on the host if there
 * is none, or while exchanges follow each other (spill_chunked_hold), whatever is free. NULL: none is
 * free, or no memory. Calls the vendor without a lock.
 */
struct spill_placement *spill_ordered_take(struct spill_ordered_pool *pool, uint64_t bytes,
                                           const struct spill_stream_order *order, bool anywhere);

/*
 * Adds a segment for requests of `bytes`, before it is enlisted. False: no memory, or the pool is
 * closed. Then the segment stays the caller's.
 */
bool spill_ordered_add(struct spill_ordered_pool *pool, struct spill_chunked *segment, uint64_t bytes);

/*
 * Opens an added segment for all requests, and takes the first range of it. From then on another
 * thread may end the segment once the range is free. NULL: no memory, and the segment is the
 * caller's again.
 */
struct spill_placement *spill_ordered_open(struct spill_chunked *segment, uint64_t bytes,
                                           const struct spill_stream_order *order);

/* True: the pool has segments; with NULL, any pool has some. */
bool spill_ordered_any(struct spill_ordered_pool *pool);

/* True: the placement is a range of such a pool. */
bool spill_ordered_is(const struct spill_placement *placement);

/* The segment of such a range, which lives as long as the range is in use. */
struct spill_chunked *spill_ordered_segment(const struct spill_placement *range);

/*
 * Frees a range behind the work of `order`, whose context is of `device`. The name NULL is no
 * stream: only a mark shows that no work uses the range.
 */
void spill_ordered_free(struct spill_placement *placement, const struct spill_stream_order *order,
                        int device);

/* A stream is about to end. A later stream may have the same handle, and no order with its frees. */
void spill_ordered_stream_ended(const struct spill_backend *backend, const void *stream);
void spill_ordered_context_ended(const struct spill_context_end *end);

/* Unused segments of a device, settled or not. */
uint64_t spill_ordered_unused(const struct spill_backend *backend, int device);

/*
 * The number of the last free. A caller that has seen since then that certain work was done says so:
 * no work uses ranges that were freed in that order up to that number. The work of a stream; of a
 * context, with order->stream NULL; or of the device (`idle`), seen with the gate closed.
 */
uint64_t spill_ordered_number(void);
void spill_ordered_done(const struct spill_backend *backend, const struct spill_stream_order *order,
                        uint64_t number);
void spill_ordered_idle(const struct spill_backend *backend, int device, uint64_t number);

/*
 * Unlinks a segment that no work can use; with `on_host` only one with chunks on the host; of `pool`,
 * or of all (NULL). The caller ends it. NULL: none. Calls the vendor without a lock.
 */
struct spill_chunked *spill_ordered_empty(const struct spill_backend *backend, int device,
                                          const struct spill_ordered_pool *pool, bool on_host);

/* What the pool adds to the figures of the vendor's pool. */
struct spill_ordered_figures {
	uint64_t used, most_used, reserved, most_reserved; /* bytes */
};
struct spill_ordered_figures spill_ordered_figures(struct spill_ordered_pool *pool);
/* Sets the highest figures to the present ones. */
void spill_ordered_restart(struct spill_ordered_pool *pool, bool used, bool reserved);

/*
 * Counts memory of the pool that has spilled elsewhere, until spill_ordered_uncount. That does
 * nothing for other memory.
 */
void spill_ordered_count(struct spill_ordered_pool *pool, struct spill_placement *placement);
void spill_ordered_uncount(struct spill_placement *placement);

/* Visits each segment, with the lock held. */
void spill_ordered_each(void (*visit)(const struct spill_placement *segment, void *data), void *data);

extern const struct spill_fork_lock spill_ordered_fork_lock;

#endif

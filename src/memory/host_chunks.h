/*
 * Host memory for chunks that leave the device: from the kept chunks, or new. Making it costs 0.19
 * s a GiB (shared/design/facts.md). So memory that a promotion freed is kept for the next demotion.
 * With host.ahead a thread (host_ahead.c) makes more of it ahead of need.
 */
#ifndef SPILL_HOST_CHUNKS_H
#define SPILL_HOST_CHUNKS_H

#include "backend.h"
#include "lock.h"

struct spill_host_chunk {
	uint64_t handle, bytes;
	/* address of its mapping for copies, with access by the device (move.h); 0: none */
	uint64_t view;
};

/*
 * Gets a chunk of exactly `bytes`, near `device`, charged to the host account (host.limit,
 * host.reserve). Returns NULL, or the refusal as a static string: the option, or the vendor's
 * error. pre: no lock of ours but the mover is held
 */
const char *spill_host_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes,
                                 struct spill_host_chunk *chunk);

/* Puts a chunk back: kept or released, with its charge. `keep` false: released at once. */
void spill_host_chunk_put(const struct spill_backend *backend, int device,
                          const struct spill_host_chunk *chunk, bool keep);

/* Releases all kept chunks, because a request was refused host memory. Returns their bytes. */
uint64_t spill_host_chunks_drop(const struct spill_backend *backend);

/*
 * Releases a few surplus chunks. None while exchanges follow each other (spill_chunked_hold).
 * Called now and then. True: there is more to release. pre: no lock of ours is held
 */
bool spill_host_chunks_trim(void);

/*
 * Sets the sizes of the chunks that would leave the device next, in order, in place of the sizes
 * set before. Has chunks of these sizes made ahead, up to host.ahead bytes. Does nothing if
 * host.ahead is 0. Cheap if no chunk is missing. pre: no lock of ours but the mover is held
 */
void spill_host_chunks_ahead(const struct spill_backend *backend, int device, const uint64_t *sizes,
                             unsigned count);

/*
 * Makes the next missing chunk. False: there is none to make now. The thread of host.ahead calls
 * this.
 */
bool spill_host_chunks_make(void);

/*
 * Releases the chunks of a device, because its last context has ended. The memory is the process's,
 * not a context's.
 */
void spill_host_chunks_forget(const struct spill_backend *backend, int device);

/*
 * Wakes or starts the thread of host.ahead. It calls spill_host_chunks_make until that returns
 * false. pre: no lock of ours is held
 */
void spill_host_ahead_wake(void);
/* A forked child has no such thread, and starts its own. */
void spill_host_ahead_fork_child(void);

extern const struct spill_fork_lock spill_host_chunks_fork_lock;

#endif

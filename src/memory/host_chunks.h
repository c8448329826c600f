/*
 * Host memory for chunks that leave the device: taken from what is kept, or made now. Making it costs 0.19 s a GiB
 * (shared/design/facts.md), so what promotion has freed is kept for the next demotion, and host.ahead has some made ahead
 * of need by a thread of its own; that thread exists only then.
 */
#ifndef SPILL_HOST_CHUNKS_H
#define SPILL_HOST_CHUNKS_H

#include "backend.h"

struct spill_host_chunk {
	uint64_t handle, bytes;
	uint64_t view; /* where it is mapped for copies, with access by the device (move.h); 0: nowhere */
};

/*
 * Gets one of exactly `bytes`, near `device`, charged to the host account (host.limit, host.reserve). NULL, or what refused
 * (static): the option, or the vendor's error. pre: no lock of ours but the mover is held
 */
const char *spill_host_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes,
                                 struct spill_host_chunk *chunk);

/* Gives one back: kept or released, account too. `keep`: false releases at once. */
void spill_host_chunk_put(const struct spill_backend *backend, int device,
                          const struct spill_host_chunk *chunk, bool keep);

/* Gives back to the system what is kept (someone was refused host memory). Returns the bytes. */
uint64_t spill_host_chunks_drop(const struct spill_backend *backend);

/*
 * Gives back a little of what is too much: while memory follows its use (prefetch.h) all is kept that was made. Called now and then.
 * True: there is more. pre: no lock of ours is held
 */
bool spill_host_chunks_trim(void);

/*
 * Has chunks made ahead, up to host.ahead bytes: `sizes` are those that would leave the device next, in order; they replace
 * those named before. Cheap when nothing is to be made; does nothing when host.ahead is 0. pre: no lock of ours but the
 * mover is held
 */
void spill_host_chunks_ahead(const struct spill_backend *backend, int device, const uint64_t *sizes,
                             unsigned count);

/* Makes the next of those. False: nothing more is to be made now. The body of the thread of host_ahead.h. */
bool spill_host_chunks_make(void);

/*
 * The program has no more use for the device (its last context has ended): what is kept for it is given back. Such memory
 * is the process's, not a context's.
 */
void spill_host_chunks_forget(const struct spill_backend *backend, int device);

void spill_host_chunks_fork_prepare(void);
void spill_host_chunks_fork_done(bool child); /* nothing of its parent's is there in a child */

#endif

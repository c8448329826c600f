/*
 * Waits for submitted work until a deadline. The vendor's synchronise calls have no time-out, so a
 * mark behind all work of a context is polled (CUDA Driver API, cuCtxRecordEvent). Work may never
 * end: a kernel that loops, a stream that waits for a value that never comes, a host callback that
 * waits for a lock of the calling thread.
 */
#ifndef SPILL_QUIESCE_H
#define SPILL_QUIESCE_H

#include "backend.h"

/*
 * Waits for all work that was submitted before the call to any context of the process, of any
 * device: a copy may use memory of `device` in another device's context, without peer access. False:
 * some work is not done by `deadline_ns` (CLOCK_MONOTONIC), or that cannot be known. Deadline 0:
 * looks once. pre: nothing captures; the gate is closed (gate.h), or the result is only a hint,
 * because more work may be submitted at any moment
 */
bool spill_quiesce_wait(const struct spill_backend *backend, int device, uint64_t deadline_ns);

/*
 * The same as a hint: closes the gate until `gate_ns` at the latest, and opens it again. False also
 * while a stream captures. pre: the mover is held, this thread is not inside the gate
 */
bool spill_quiesce_look(const struct spill_backend *backend, int device, uint64_t gate_ns,
                        uint64_t deadline_ns);

/*
 * Waits with the gate closed. Then the vendor waits, too, which is over at once. After that it
 * knows what was freed in stream order (backend.h, `synchronize`). pre: as spill_quiesce_look
 */
bool spill_quiesce_synchronize(const struct spill_backend *backend, int device, uint64_t deadline_ns);

/*
 * Marks all work of a context that is submitted by now, for looks at *event later (backend.h, `mark`). A
 * mark breaks each capture of its context, so none may begin behind the look for one: the gate is closed
 * meanwhile, for 0.1 ms at most. False: no mark, because something captures, another thread moves memory, a
 * call does not return, did not return some ms ago, or the vendor refuses. pre: the context is held (contexts.h), this thread
 * is not inside the gate
 */
bool spill_quiesce_mark(const struct spill_backend *backend, int device, void *context, void **event);

#endif

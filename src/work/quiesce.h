/*
 * Waiting for submitted work without the vendor's synchronise calls, which have no time-out: a mark behind all work of a
 * context is polled (CUDA Driver API, cuCtxRecordEvent). A kernel that never ends, a stream that waits for a value that
 * never comes, a host callback that waits for a lock of the calling thread: the wait ends at its deadline.
 */
#ifndef SPILL_QUIESCE_H
#define SPILL_QUIESCE_H

#include "backend.h"

/*
 * Waits until all work is done that was submitted before the call to any context of `device`, and to those of devices with
 * peer access to its memory. False: not by `deadline_ns` (CLOCK_MONOTONIC), or it cannot be known. Deadline 0: looks once.
 * pre: the gate is closed (gate.h), or the answer is a hint only, because more may be submitted at any moment; nothing captures
 */
bool spill_quiesce_wait(const struct spill_backend *backend, int device, uint64_t deadline_ns);

/*
 * The same as a hint, behind a gate that is closed for it until `gate_ns` at the latest and opened again. False also while anything
 * captures: with the gate closed nothing can begin to. pre: the mover is held, this thread is not inside the gate
 */
bool spill_quiesce_look(const struct spill_backend *backend, int device, uint64_t gate_ns,
                        uint64_t deadline_ns);

#endif

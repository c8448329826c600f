/*
 * The first step of oom.chain: what is held and not used is given back before anything is spilled. Frees of ours that
 * wait for the device and unused memory of stream-ordered pools. Nothing happens while a capture is active: the
 * vendor would end it with an error.
 */
#ifndef SPILL_TRIM_H
#define SPILL_TRIM_H

#include "backend.h"

/* Gives back what it can on `device`, for a request of `bytes`; true if the driver may now have more to give. */
bool spill_trim(const struct spill_backend *backend, int device, uint64_t bytes);

/*
 * The same for host memory, when host.limit or host.reserve refuses: our own pools and shared chunks, which otherwise
 * keep theirs because pinning it again is slow (docs/measurements.md).
 */
bool spill_trim_host(const struct spill_backend *backend, int device, void *context, uint64_t bytes);

#endif

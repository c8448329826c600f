/*
 * The first step of oom.chain: what is held and not used is given back before anything is spilled. Frees of ours that
 * wait for the device, empty shared chunks, unused memory of stream-ordered pools (the program's and ours).
 */
#ifndef SPILL_TRIM_H
#define SPILL_TRIM_H

#include "backend.h"

/* Gives back what it can on `device`, for a request of `bytes`; true if the driver may now have more to give. */
bool spill_trim(const struct spill_backend *backend, int device, void *context, uint64_t bytes);

#endif

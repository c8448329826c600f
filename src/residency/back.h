/*
 * What comes back to the device, and how. When is promote.h's business.
 */
#ifndef SPILL_BACK_H
#define SPILL_BACK_H

#include "backend.h"
#include "victim.h"

/* Moved at a time: 5 ms of the link and as much of mapping (docs/measurements.md), so 10 ms a call. A larger chunk goes whole. */
#define SPILL_BACK_SLICE (256ull << 20)

/* Device bytes that may be taken: free, less device.reserve, and within device.limit. */
uint64_t spill_back_room(const struct spill_backend *backend, int device);

/* Bytes of the smallest chunk on host. */
uint64_t spill_back_smallest(const struct spill_victim *list, unsigned count);

/* Brings chunks back as far as there is room, a slice at most. Returns the bytes. pre: the mover is held, count > 0 */
uint64_t spill_back_bring(const struct spill_victim *list, unsigned count);

#endif

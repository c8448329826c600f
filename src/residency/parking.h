/*
 * Parked chunks: dead chunks on the host (spill_chunked_live) without a mapping of their own. Of memory in stream
 * order, half of what an exchange moves is dead. To map it on the host takes as long as a copy
 * (docs/measurements.md, The time of an exchange). So all parked chunks are mapped to one place in device memory,
 * which is nobody's. A program that wrongly reads memory after its free gets some bytes, as before, and no fault.
 *
 * A chunk is parked in a stop, when it leaves the device. Its host memory is kept for it. Before the program gets
 * memory in it again, that ends (unpark.h). If it comes to the device before, nothing is copied.
 */
#ifndef SPILL_PARKING_H
#define SPILL_PARKING_H

#include "move.h"

/* Larger chunks are not parked: the place would take too much of the device. */
#define SPILL_PARKING_MOST ((uint64_t)16 << 20)

/* True: the device has no place for chunks of that size yet. pre, of all but the last two: the mover is held */
bool spill_parking_needs(const struct spill_backend *backend, int device, uint64_t bytes);

/* Takes device memory for the place, with its charge. */
void spill_parking_take(const struct spill_backend *backend, int device, uint64_t handle, uint64_t bytes);

/*
 * A move begins, of a chunk that leaves. True: the chunk is going to be parked if it is dead, which the caller
 * finds out afterwards (spill_chunked_live). From then on spill_unpark waits for the end of the move.
 */
bool spill_parking_begin(const struct spill_backend *backend, int device, const struct spill_move *move);

/* It is not dead. */
void spill_parking_cancel(const struct spill_move *move);

/* Maps the place there. False: the vendor refused, and the old memory is mapped, or none. pre: as remap.h */
bool spill_parking_park(const struct spill_backend *backend, int device, const struct spill_move *move);

/* The last context of the device has ended. The place goes with the last chunk there. Waits for the mover. */
void spill_parking_forget(const struct spill_backend *backend, int device);
void spill_parking_reset(void); /* in a forked child */

#endif

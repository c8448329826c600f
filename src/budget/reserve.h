/*
 * How much device memory is kept free for code (device.reserve), and on which devices that has begun. Everybody who makes or
 * takes room asks here. engine/reserve_keeper.h keeps it.
 */
#ifndef SPILL_RESERVE_H
#define SPILL_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes to keep free on the device: device.reserve, or more where a load was seen to need more. */
uint64_t spill_reserve_size(int device);

/* A load was seen to need so much. False: the reserve is as large already. A reserve of 0 stays 0. */
bool spill_reserve_grow(int device, uint64_t bytes);

/*
 * Something of the device was placed elsewhere or moved away for lack of room, or the program was told that it is full.
 * From now on the reserve is kept. True: only now, so the caller asks for maintenance (spill_gate_want_maintenance).
 */
bool spill_reserve_begin(int device);

/* The device has begun to spill, and has a reserve: it is kept from all requests. One or two loads. */
bool spill_reserve_is_kept(int device);

/* Some device has. One load. */
bool spill_reserve_has_begun(void);

/* For tests: as at the beginning. */
void spill_reserve_reset(void);

#endif

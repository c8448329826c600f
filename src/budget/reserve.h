/*
 * The reserve: device memory that is kept free for code (device.reserve), and the devices on which
 * that has begun. Code that places memory or makes room asks here. engine/reserve_keeper.h keeps
 * the memory.
 */
#ifndef SPILL_RESERVE_H
#define SPILL_RESERVE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bytes to keep free on the device: device.reserve, or more if the load of a module needed more. 0
 * on a device that is left out.
 */
uint64_t spill_reserve_size(int device);

/*
 * Nothing is kept free on this device from now on, because its memory is the host's. The vendor does
 * not call free there what the kernel can take back from its caches, and gives it out all the same.
 */
void spill_reserve_leave_out(int device);

/* The load of a module needed `bytes`. False if the reserve is that large. 0 stays 0. */
bool spill_reserve_grow(int device, uint64_t bytes);

/*
 * The device is full: memory was placed elsewhere or moved away, or the program got an out of
 * memory. The reserve is kept from now on. True the first time: the caller then asks for
 * maintenance (spill_gate_want_maintenance).
 */
bool spill_reserve_begin(int device);

/* True if the reserve of the device is kept from all requests. One or two atomic loads. */
bool spill_reserve_is_kept(int device);

/* True if that holds for any device. One atomic load. */
bool spill_reserve_has_begun(void);

/* For tests: forgets everything. */
void spill_reserve_reset(void);

#endif

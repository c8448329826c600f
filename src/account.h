/*
 * Physical bytes this process holds through libspill, by place: what limits are checked against. Atomic, no lock:
 * charge first, look at the new sum, give back if it is too much, so that racing threads cannot pass a
 * limit together.
 */
#ifndef SPILL_ACCOUNT_H
#define SPILL_ACCOUNT_H

#include <stdint.h>

/* Adds and returns the bytes held on the device before this charge. Devices beyond SPILL_DEVICES share a row. */
uint64_t spill_account_device(int device, uint64_t bytes);
void spill_account_device_return(int device, uint64_t bytes);
uint64_t spill_account_device_held(int device);

/* The same for host memory that holds spilled data (managed memory counts in full). */
uint64_t spill_account_host(uint64_t bytes);
void spill_account_host_return(uint64_t bytes);
uint64_t spill_account_host_held(void);

/* After fork the child holds nothing. */
void spill_account_reset(void);

#endif

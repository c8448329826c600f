/*
 * The account: physical bytes that this process holds through libspill, by place. Limits are
 * checked against it. It is atomic and takes no lock. A request is charged only if it fits, so that
 * one that is too large cannot make the request of another thread fail:
 *
 *	uint64_t held = spill_account_device_held(device);
 *	while (fits(held, bytes))
 *		if (spill_account_device_charge(device, &held, bytes))
 *			return charged;
 */
#ifndef SPILL_ACCOUNT_H
#define SPILL_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of a device. Devices beyond SPILL_DEVICES share one account. */
uint64_t spill_account_device_held(int device);
/* Adds `bytes` if *held is still the value of the account. If not, sets *held to that value. */
bool spill_account_device_charge(int device, uint64_t *held, uint64_t bytes);
void spill_account_device_return(int device, uint64_t bytes);
/* Adds without a condition, for memory that is already taken. */
void spill_account_device_add(int device, uint64_t bytes);

/* The same for a rule of the policy, over all devices. `rule` is its position in the list. */
uint64_t spill_account_rule_held(unsigned rule);
bool spill_account_rule_charge(unsigned rule, uint64_t *held, uint64_t bytes);
void spill_account_rule_return(unsigned rule, uint64_t bytes);

/* The same for host memory that holds spilled data. Managed memory counts in full. */
uint64_t spill_account_host_held(void);
bool spill_account_host_charge(uint64_t *held, uint64_t bytes);
void spill_account_host_return(uint64_t bytes);
/* Adds without a condition: the program took it, so spilled data cannot have it. */
void spill_account_host_add(uint64_t bytes);
/*
 * The part of the host memory that is physical memory of the driver (chunks, handles). The kernel
 * subtracts it from MemAvailable, but no control group counts it (docs/measurements.md). `charged`
 * is for bytes that are charged as host memory already. Add and return change both accounts.
 */
uint64_t spill_account_physical_held(void);
void spill_account_physical_charged(uint64_t bytes);
void spill_account_physical_add(uint64_t bytes);
void spill_account_physical_return(uint64_t bytes);
/*
 * Sets a function that is called after each add and return of host memory, in the same thread. It
 * is not called after a charge, because the caller of a charge reports it. NULL removes the
 * function, but threads may still be about to call it.
 */
void spill_account_host_observe(void (*changed)(void));

/* After fork the child holds nothing. */
void spill_account_reset(void);

#endif

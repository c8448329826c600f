/*
 * Physical bytes this process holds through libspill, by place: what limits are checked against. Atomic, no lock. What
 * does not fit is never charged, so that a request too large for a limit cannot make another thread's fail:
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

/* Devices beyond SPILL_DEVICES share a row. */
uint64_t spill_account_device_held(int device);
/* Adds `bytes` if *held is still what is held; otherwise *held is what is. */
bool spill_account_device_charge(int device, uint64_t *held, uint64_t bytes);
void spill_account_device_return(int device, uint64_t bytes);
/* Adds without asking: it is taken already. */
void spill_account_device_add(int device, uint64_t bytes);

/* The same for what a rule of the policy holds, by its position in the list, over all devices. */
uint64_t spill_account_rule_held(unsigned rule);
bool spill_account_rule_charge(unsigned rule, uint64_t *held, uint64_t bytes);
void spill_account_rule_return(unsigned rule, uint64_t bytes);

/* The same for host memory that holds spilled data (managed memory counts in full). */
uint64_t spill_account_host_held(void);
bool spill_account_host_charge(uint64_t *held, uint64_t bytes);
void spill_account_host_return(uint64_t bytes);
/* Adds without asking: the program took it, and what it took is no longer there for spilled data. */
void spill_account_host_add(uint64_t bytes);
/*
 * Of these, what is physical memory of the driver's (chunks, handles): the kernel takes it off MemAvailable, but no control group has it
 * in its figure (docs/measurements.md). `charged`: it has been charged as host memory; add and return are for both.
 */
uint64_t spill_account_physical_held(void);
void spill_account_physical_charged(uint64_t bytes);
void spill_account_physical_add(uint64_t bytes);
void spill_account_physical_return(uint64_t bytes);
/*
 * From now on called behind each add and return, in its thread, and not behind a charge: who charges tells by itself. NULL: no more;
 * threads may still be about to call it then.
 */
void spill_account_host_tell(void (*changed)(void));

/* After fork the child holds nothing. */
void spill_account_reset(void);

#endif

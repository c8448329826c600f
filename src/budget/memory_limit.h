/*
 * budget: how much memory may still be taken, of each device and of the host. A charge checks the
 * limit and books the memory in one step, so two threads together never pass a limit.
 *
 * budget allocates no memory and moves none. Begin with this header, then account.h (the booked
 * memory) and host_available.h (the memory of the machine).
 */
#ifndef SPILL_MEMORY_LIMIT_H
#define SPILL_MEMORY_LIMIT_H

#include "backend.h"
#include "decide.h"

struct spill_refusal; /* record.h */

/* Bytes of `device` that this process may take by device.limit; SPILL_UNLIMITED without a limit. */
uint64_t spill_device_limit(const struct spill_backend *backend, int device);

/* Charges all `bytes` of device memory, or none. Does not ask the driver for free memory. */
bool spill_device_charge_all(int device, uint64_t limit, uint64_t bytes);

/*
 * Charges `bytes` of host memory if host.limit, host.reserve and the memory pressure allow it.
 * Returns NULL, or the name of the option that refuses. "host.pressure" is no option.
 */
const char *spill_host_charge(const struct spill_policy *policy, uint64_t bytes);
/* The figures of this thread's last refusal; all 0 for "host.pressure". */
const struct spill_refusal *spill_host_refusal(void);
/* The same for physical memory (account.h). */
const char *spill_physical_charge(const struct spill_policy *policy, uint64_t bytes);

/*
 * The bytes of host memory that spill_host_charge would grant now. *most gets the bytes that it
 * could grant at best. Both are 0 if the kernel does not tell the available memory.
 */
uint64_t spill_host_room(const struct spill_policy *policy, uint64_t *most);

#endif

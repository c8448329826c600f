/*
 * budget: how much may still be taken, of each device and of the host. A charge asks whether memory may be taken and books it, in
 * one step, so two threads together never pass a limit.
 *
 * It makes no memory and moves none. Begin with this header, then account.h (what is booked) and host_memory.h (what the machine
 * has).
 */
#ifndef SPILL_CHARGE_H
#define SPILL_CHARGE_H

#include "backend.h"
#include "decide.h"

struct spill_refusal; /* record.h */

/* Bytes of `device` that this process may take by device.limit; SPILL_UNLIMITED without a limit. */
uint64_t spill_device_limit(const struct spill_backend *backend, int device);

/* Charges `bytes` of device memory, all or nothing, if the limit allows it. What is free the driver knows better. */
bool spill_device_charge_all(int device, uint64_t limit, uint64_t bytes);

/*
 * Charges `bytes` of host memory if host.limit, host.reserve and the pressure on the host allow it: NULL, or what refuses
 * ("host.pressure" is no option).
 */
const char *spill_host_charge(const struct spill_policy *policy, uint64_t bytes);
/* Figures of this thread's last refusal; none of "host.pressure". */
const struct spill_refusal *spill_host_refusal(void);
/* The same for physical memory (account.h). */
const char *spill_physical_charge(const struct spill_policy *policy, uint64_t bytes);

/*
 * Bytes of host memory that spill_host_charge would grant now, and in *most those that it could ever grant. Both 0 where the
 * kernel does not say what there is: nothing can be promised then.
 */
uint64_t spill_host_room(const struct spill_policy *policy, uint64_t *most);

#endif

/* The HIP functions of backend_hip.def. backend_hip.c looks them up once. */
#ifndef SPILL_BACKEND_HIP_H
#define SPILL_BACKEND_HIP_H

#include "abi/hip.h"
#include "backend.h"

struct spill_hip {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_hip.def"
};

extern struct spill_hip spill_hip;

/* The groups of backend.h that are not in backend_hip.c. */
extern const struct spill_vendor_physical spill_hip_physical; /* backend_hip_vmm.c */
extern const struct spill_vendor_pools spill_hip_pools;       /* backend_hip_pool.c */
extern const struct spill_vendor_events spill_hip_events;     /* backend_hip_pool.c */

/* As spill_vendor_devices.enter and .leave. */
int spill_hip_enter(int device, void **before);
void spill_hip_leave(void *before);

int spill_hip_version(void); /* of the runtime; 60200000 is 6.2 */

#endif

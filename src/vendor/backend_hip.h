/* The HIP functions of backend_hip.def. backend_hip.c looks them up once. */
#ifndef SPILL_BACKEND_HIP_H
#define SPILL_BACKEND_HIP_H

#include "abi/hip.h"
#include "backend.h"
#include "relaxed.h"

struct spill_hip {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_hip.def"
};

extern struct spill_hip spill_hip;

/* Makes a call that a capture may forbid (relaxed.h). */
#define SPILL_HIP_RELAXED(call) \
	SPILL_RELAXED(hipStreamCaptureMode, hipStreamCaptureModeRelaxed, \
	              spill_hip.hipThreadExchangeStreamCaptureMode, call)

/* The groups of backend.h that are not in backend_hip.c. */
extern const struct spill_vendor_physical spill_hip_physical; /* backend_hip_vmm.c */
extern const struct spill_vendor_vmm spill_hip_vmm;           /* backend_hip_vmm.c */
extern const struct spill_vendor_pools spill_hip_pools;       /* backend_hip_pool.c */
extern const struct spill_vendor_events spill_hip_events;     /* backend_hip_pool.c */

/* As spill_vendor_devices.enter and .leave. */
int spill_hip_enter(int device, void **before);
void spill_hip_leave(void *before);

int spill_hip_attribute(int device, hipDeviceAttribute_t attribute); /* 0 if there is none */

#define SPILL_HIP_SPLITS_FROM 70200000 /* ROCm 7.2: first version with chunks on the host */

/* The device has virtual memory management, and the runtime makes chunks on the host. */
bool spill_hip_has_vmm(int device);
/* As spill_vendor_vmm.works. */
bool spill_hip_chunks_work(int device, uint64_t unit);

int spill_hip_version(void); /* of the runtime; 60200000 is 6.2 */

#endif

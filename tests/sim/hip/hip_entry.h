/*
 * Inside of the simulated HIP: ROCm's face of the simulated GPU. HIP has one level, so this stands on core.h
 * directly. Built once for each soname: HIP_RELEASE is 5 (ROCm 5.2, Debian's), 6 (6.4) or 7 (7.2). What is said
 * of 5 is proven by Debian's headers and library; of 6 and 7 it is read in AMD's published sources and documents.
 */
#ifndef SIM_HIP_RUNTIME_H
#define SIM_HIP_RUNTIME_H

#include "hip_api.h"
#include "core.h"

/* The build names the release; read alone, this is the one that Debian has. */
#ifndef HIP_RELEASE
#define HIP_RELEASE 5
#endif
#if HIP_RELEASE < 5 || HIP_RELEASE > 7
#error "HIP_RELEASE is 5, 6 or 7: see meson.build"
#endif

/*
 * First thing in an entry point: starts the simulator, injects faults (SPILL_SIM_FAIL counts `symbol`). What
 * it returns goes to hip_leave. Without a device that is hipErrorInvalidDevice, as ROCm 5 answers; from ROCm 6
 * on hipErrorNoDevice (hip_internal.hpp, HIP_INIT_API: unproven here).
 */
hipError_t hip_enter(const char *symbol);

/*
 * Last thing in an entry point. Up to ROCm 6 every result is the thread's last error, success too; from ROCm 7 on
 * a success and hipErrorNotReady leave it as it is ("HIP API 7.0 changes", Update hipGetLastError).
 * SPILL_SIM_LAST_ERROR=overwritten or sticky: that rule, whatever the release.
 */
hipError_t hip_leave(hipError_t error);

hipError_t hip_error(enum sim_status status);

static inline hipError_t hip_return(enum sim_status status)
{
	return hip_leave(hip_error(status));
}

/* HIP's pointers are the core's addresses. */
static inline uint64_t hip_address(const void *pointer)
{
	return (uint64_t)(uintptr_t)pointer;
}

/* What the thread's last call returned, once. */
hipError_t hip_last_result(void);

/* `sim: NAME is not implemented` on stderr; returns hipErrorNotSupported as an entry point does. */
hipError_t hip_missing(const char *name);

/* This thread's device, and the one context that each device has: made at the first call that needs it. */
int hip_device(void);
void hip_set_device(int device); /* pre: there is such a device */
hipError_t hip_context(int device, struct sim_context **context);
bool hip_is_active(int device); /* has it a context? */

/* This thread's device and `peer`, in the vendor's errors. */
hipError_t hip_peer_enable(int peer, unsigned flags);
hipError_t hip_peer_disable(int peer);

/* Plain device memory on this thread's device. pre: out. *out is NULL when it was tried in vain. */
hipError_t hip_allocate_device(void **out, size_t size);

/* Frees what the pools of a device gave, and ends the pools. */
void hip_pools_reset(int device);
void hip_pool_forget(uint64_t address); /* it is freed: harmless for what no pool gave */

/*
 * For calls that a capture forbids, as hipMalloc does: hipErrorStreamCaptureUnsupported when this thread's mode
 * and the captures under way say so (CHECK_STREAM_CAPTURE_SUPPORTED of hip_internal.hpp).
 */
hipError_t hip_capture_forbids(void);
/* For calls that wait for a stream, or ask how far it is. */
hipError_t hip_capture_forbids_waiting(struct sim_stream *stream);

/* What a stream argument means: NULL is the thread's device's default stream, 2 the thread's own. */
hipError_t hip_stream(hipStream_t stream, struct sim_stream **out);

#define HIP_ENTER() \
	do { \
		hipError_t enter_error = hip_enter(__func__); \
		if (enter_error) \
			return hip_leave(enter_error); \
	} while (0)

/* Returns from an entry point with what `expression` says, unless it is hipSuccess. */
#define HIP_TRY(expression) \
	do { \
		hipError_t try_error = (expression); \
		if (try_error) \
			return hip_leave(try_error); \
	} while (0)

/* -- allocations.c -- */

/*
 * What HIP remembers about an allocation and the simulated device does not: the flags it was made with, and
 * that managed memory without XNACK is pinned host memory which only calls itself managed.
 */
struct hip_note {
	bool managed;
	unsigned flags;
};

/* False without memory for it. The key is core.h's id of the allocation, which is never used again. */
bool hip_note_add(uint64_t id, struct hip_note note);
struct hip_note hip_note_find(uint64_t id); /* zeros when there is none */
void hip_note_remove(uint64_t id);

#endif

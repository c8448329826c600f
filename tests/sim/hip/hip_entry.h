/*
 * Inside of the simulated HIP: the first and the last call of each function, and helpers. It is
 * built once per soname: HIP_RELEASE is 5 (ROCm 5.2, Debian's), 6 (6.4) or 7 (7.2). Debian's
 * headers and library prove release 5. Releases 6 and 7 follow AMD's published sources and
 * documents.
 */
#ifndef SIM_HIP_RUNTIME_H
#define SIM_HIP_RUNTIME_H

#include "hip_api.h"
#include "core.h"

/* Debian's release, unless the build names another. */
#ifndef HIP_RELEASE
#define HIP_RELEASE 5
#endif
#if HIP_RELEASE < 5 || HIP_RELEASE > 7
#error "HIP_RELEASE is 5, 6 or 7: see meson.build"
#endif

/*
 * The first call of a function: starts the simulator and injects faults (SPILL_SIM_FAIL counts
 * `symbol`). Its result goes to hip_leave. Without a device ROCm 5 returns hipErrorInvalidDevice,
 * and from ROCm 6 on hipErrorNoDevice (hip_internal.hpp, HIP_INIT_API: unproven here).
 */
hipError_t hip_enter(const char *symbol, const void *caller);

/*
 * The last call of a function. Up to ROCm 6 each result is the thread's last error, even a success.
 * From ROCm 7 on, hipSuccess and hipErrorNotReady keep it ("HIP API 7.0 changes", Update
 * hipGetLastError). SPILL_SIM_LAST_ERROR=overwritten or sticky sets the rule for any release.
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

/* The result of the thread's last call, once. */
hipError_t hip_last_result(void);

/* Prints `sim: NAME is not implemented` on stderr, and ends with hipErrorNotSupported. */
hipError_t hip_missing(const char *name);

static inline bool hip_is_device(int device)
{
	return device >= 0 && device < sim_config()->devices;
}

/* The thread's device, and each device's only context, made by the first call that needs it. */
int hip_device(void);
void hip_set_device(int device); /* pre: there is such a device */
hipError_t hip_context(int device, struct sim_context **context);
bool hip_is_active(int device); /* true: it has a context */

/* Between the thread's device and `peer`, with the vendor's errors. */
hipError_t hip_peer_enable(int peer, unsigned flags);
hipError_t hip_peer_disable(int peer);

/* Plain device memory on the thread's device. *out is NULL on failure. pre: out. */
hipError_t hip_allocate_device(void **out, size_t size);

/* Frees allocations of a device's pools, and ends the pools. */
void hip_pools_reset(int device);
void hip_pool_forget(uint64_t address); /* `address` is freed; ignored if no pool has it */

/*
 * For calls that a capture forbids, such as hipMalloc. hipErrorStreamCaptureUnsupported if the
 * thread's mode and the current captures forbid it (CHECK_STREAM_CAPTURE_SUPPORTED,
 * hip_internal.hpp).
 */
hipError_t hip_capture_forbids(void);
/* For calls that wait for a stream or query it. */
hipError_t hip_capture_forbids_waiting(struct sim_stream *stream);

/* Stream of an argument. NULL: default stream of the thread's device. 2: the thread's own. */
hipError_t hip_stream(hipStream_t stream, struct sim_stream **out);

hipError_t hip_launch(hipFunction_t function, const struct sim_shape *shape, hipStream_t stream,
                      void **parameters, void **extra);

/* NULL: no such graph. */
struct sim_graph *hip_graph(hipGraph_t graph);

#define HIP_ENTER() \
	do { \
		hipError_t enter_error = hip_enter(__func__, __builtin_return_address(0)); \
		if (enter_error) \
			return hip_leave(enter_error); \
	} while (0)

/* Returns from a function with the error of `expression`, if any. */
#define HIP_TRY(expression) \
	do { \
		hipError_t try_error = (expression); \
		if (try_error) \
			return hip_leave(try_error); \
	} while (0)

/* -- allocations.c: facts about allocations that only HIP knows -------------------------------- */

/* The flags of an allocation; and true for managed memory that is really pinned (no XNACK). */
struct hip_note {
	bool managed;
	unsigned flags;
};

/* False: out of memory. The key is core.h's id of the allocation, which is never used again. */
bool hip_note_add(uint64_t id, struct hip_note note);
struct hip_note hip_note_find(uint64_t id); /* zeros if there is none */
void hip_note_remove(uint64_t id);

#endif

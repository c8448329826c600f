/*
 * Inside of the simulated HIP: ROCm 5's face of the simulated GPU. HIP has one level, so this stands on
 * core.h directly.
 */
#ifndef SIM_HIP_RUNTIME_H
#define SIM_HIP_RUNTIME_H

#include "api.h"
#include "core.h"

/*
 * First thing in an entry point: starts the simulator, injects faults (SPILL_SIM_FAIL counts `symbol`). What
 * it returns goes to hip_leave. Without a device that is hipErrorInvalidDevice, as ROCm 5 answers.
 */
hipError_t hip_enter(const char *symbol);

/* Last thing in an entry point: ROCm 5 makes every result the thread's last error, success too. */
hipError_t hip_leave(hipError_t error);

hipError_t hip_error(enum sim_status status);

static inline hipError_t hip_return(enum sim_status status)
{
	return hip_leave(hip_error(status));
}

/* `sim: NAME is not implemented` on stderr; returns hipErrorNotSupported as an entry point does. */
hipError_t hip_missing(const char *name);

/* This thread's device, and the one context that each device has: made at the first call that needs it. */
int hip_device(void);
hipError_t hip_context(int device, struct sim_context **context);

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

#endif

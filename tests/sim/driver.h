/* What the files of the simulated CUDA driver share. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#pragma GCC visibility push(default)
#include "driver_types.h"
#pragma GCC visibility pop

#include "core.h"

#define DRIVER_VERSION 13000

enum row {
#define DRIVER(symbol, base, since, variant, parameters) ROW_##symbol,
#define MISSING(symbol, base, since, variant) ROW_##symbol,
#include "driver.def"
	ROWS
};

enum needs { NOTHING, INIT, CONTEXT };

/*
 * The first thing in every function: an injected fault; not initialised; for CONTEXT no current context, or
 * one that a kernel broke.
 */
CUresult driver_enter(enum row row, enum needs needs);
#define ENTER(symbol, needs) \
	do { \
		CUresult entered = driver_enter(ROW_##symbol, needs); \
		if (entered) \
			return entered; \
	} while (0)

CUresult driver_result(enum sim_status status);

/*
 * Two entries over one body: stream 0 means the context's default stream in `symbol` and the calling thread's
 * own in `per_thread`. The parameter is called hStream; a body of the second form gets it in addition.
 */
#define ZERO_IS(special) (hStream ? hStream : (special))
#define WITH_STREAM(symbol, per_thread, parameters, arguments) \
	static CUresult symbol##_body parameters; \
	CUresult symbol parameters \
	{ \
		ENTER(symbol, CONTEXT); \
		hStream = ZERO_IS(CU_STREAM_LEGACY); \
		return symbol##_body arguments; \
	} \
	CUresult per_thread parameters \
	{ \
		ENTER(per_thread, CONTEXT); \
		hStream = ZERO_IS(CU_STREAM_PER_THREAD); \
		return symbol##_body arguments; \
	} \
	static CUresult symbol##_body parameters
#define WITHOUT_STREAM(symbol, per_thread, parameters, body_parameters, arguments) \
	static CUresult symbol##_body body_parameters; \
	CUresult symbol parameters \
	{ \
		CUstream hStream = CU_STREAM_LEGACY; \
		ENTER(symbol, CONTEXT); \
		return symbol##_body arguments; \
	} \
	CUresult per_thread parameters \
	{ \
		CUstream hStream = CU_STREAM_PER_THREAD; \
		ENTER(per_thread, CONTEXT); \
		return symbol##_body arguments; \
	} \
	static CUresult symbol##_body body_parameters

/* NULL: none is current. */
struct sim_context *driver_current(void);
bool driver_device(CUdevice device); /* is there one of that number? */

/* NULL: no such stream. 0 is the default stream. */
struct sim_stream *driver_stream(CUstream stream);

/* SIM_CPU, a device, or -2: no such place. */
int driver_location(CUmemLocation location);

/* driver_pool.c: was it allocated from a pool? It is not any more. */
bool driver_pool_forget(CUdeviceptr pointer);
CUmemoryPool driver_pool_of(CUdeviceptr pointer);
void driver_pools_context_gone(struct sim_context *context);

#endif

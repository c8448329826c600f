/* Shared by the files of the simulated driver: how a function begins, and helpers. */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

#pragma GCC visibility push(default)
#include "cuda_api.h"
#pragma GCC visibility pop

#include "core.h"
#include "graph.h"

/*
 * Of each build of the library (version.c): what cuDriverGetVersion tells, and the newest version
 * whose functions it has.
 */
extern const int driver_version, driver_newest;

enum row {
#define DRIVER(symbol, base, since, variant, parameters) ROW_##symbol,
#define MISSING(symbol, base, since, variant) ROW_##symbol,
#include "cuda_api.def"
	ROWS
};

enum needs { NOTHING, INIT, CONTEXT };

/*
 * The first call of each function. Fails for an injected fault, and before cuInit. With CONTEXT it
 * also fails without a current context, or if a kernel broke it.
 */
CUresult driver_enter(enum row row, enum needs needs, const void *caller);
#define ENTER(symbol, needs) \
	do { \
		CUresult entered = driver_enter(ROW_##symbol, needs, __builtin_return_address(0)); \
		if (entered) \
			return entered; \
	} while (0)

CUresult driver_result(enum sim_status status);

/*
 * Two functions with one body. Stream 0 is the context's default stream in `symbol` and the calling
 * thread's own in `per_thread`. The parameter is called hStream. With WITHOUT_STREAM only the body
 * has it.
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

/* NULL: no context is current. */
struct sim_context *driver_current(void);
bool driver_device(CUdevice device); /* true: there is a device of that number */

/* capture.c: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED if a capture forbids the function now. */
CUresult driver_capture_forbids(enum row row);
/* Adds an allocation node. pre: the stream captures. */
CUresult driver_capture_alloc(CUdeviceptr *out, size_t bytes, const CUmemPoolProps *pool,
                              struct sim_stream *stream);

/* The image inside nvcc's wrapper, or `image` itself. */
const void *driver_image(const void *image);

/* Either of `dptr` and `bytes` may be NULL. */
CUresult driver_global(struct sim_module *module, const char *name, CUdeviceptr *dptr, size_t *bytes);

/* `handle`: a function, or a kernel of a library: its function in the current context. */
CUresult driver_function(const void *handle, struct sim_kernel **out);

/* `function`: as driver_function. */
CUresult driver_launch(const void *function, const struct sim_shape *shape, CUstream hStream,
                       void **parameters, void **extra);

/* NULL: no such stream. 0 is the default stream. */
struct sim_stream *driver_stream(CUstream stream);

/* SIM_CPU, a device, or -2 if there is no such place. */
int driver_location(CUmemLocation location);

/* The properties of its creation. NULL: no such pool. */
const CUmemPoolProps *driver_pool_props(CUmemoryPool pool);

/* graph.c: a node of any type. */
CUresult driver_graph_node(CUgraphNode *out, const struct sim_spot *spot, CUgraphNodeParams *params);

/* copy.c: stream NULL is an invalid handle. */
CUresult driver_copy_3d(struct sim_stream *stream, const CUDA_MEMCPY3D_v2 *copy, bool wait);

/* The place of a part of an array. CUDA_ERROR_INVALID_VALUE: it reaches beyond the array. */
CUresult driver_array_box(CUarray array, size_t x, size_t y, size_t z, size_t width, size_t rows,
                          size_t slices, struct sim_box *out);
unsigned driver_array_element(CUarray array); /* bytes; 0: no such array */

/* NULL: no such event. */
struct sim_event *driver_event(CUevent event);

/* NULL: no such array. */
struct sim_array *driver_array(CUarray array);

/* NULL: no such handle. */
struct sim_physical *driver_physical(CUmemGenericAllocationHandle handle);
struct physical_face { /* in sim_physical_face */
	unsigned handle_types;
	unsigned char rdma;
	unsigned short usage;
};

#endif

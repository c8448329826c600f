/* Stream capture: the functions for it, and the functions that it forbids. */
#include "cuda_entry.h"

/*
 * Functions that fail with error 900 during a capture of the thread, or one of another thread in
 * global mode. They also invalidate that capture (H200, driver 580.159). Allowed are cuMemCreate
 * and its family, cuModuleLoad, events, streams, and copies that obey the default stream's rule.
 * cuMemAlloc, cuModuleUnload and functions with a stream check their arguments first and then ask.
 */
static const enum row forbidden[] = {
    ROW_cuMemAllocPitch_v2,
    ROW_cuMemFree_v2,
    ROW_cuMemAllocHost_v2,
    ROW_cuMemHostAlloc,
    ROW_cuMemFreeHost,
    ROW_cuMemAllocManaged,
    ROW_cuMemHostRegister_v2,
    ROW_cuMemHostUnregister,
    ROW_cuMemAdvise,
    ROW_cuMemAdvise_v2,
    ROW_cuMemPoolCreate,
    ROW_cuMemPoolDestroy,
    ROW_cuMemPoolTrimTo,
    ROW_cuMemPoolGetAttribute,
    ROW_cuArrayCreate_v2,
    ROW_cuArray3DCreate_v2,
    ROW_cuMipmappedArrayCreate,
    ROW_cuArrayDestroy,
    ROW_cuMipmappedArrayDestroy,
    ROW_cuCtxSetLimit,
    ROW_cuGraphInstantiate,
    ROW_cuGraphInstantiate_v2,
    ROW_cuGraphInstantiateWithFlags,
    ROW_cuGraphInstantiateWithParams,
    ROW_cuGraphInstantiateWithParams_ptsz,
};

CUresult driver_capture_forbids(enum row row)
{
	for (size_t i = 0; i < sizeof(forbidden) / sizeof(*forbidden); i++)
		if (forbidden[i] == row)
			return driver_result(sim_capture_unsafe());
	return CUDA_SUCCESS;
}

CUresult driver_capture_alloc(CUdeviceptr *out, size_t bytes, const CUmemPoolProps *pool,
                              struct sim_stream *stream)
{
	bool on_host = pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE;
	uint64_t address;

	/* A graph has memory of its own, whatever pool is named, and never on the host. */
	CUresult result =
	    on_host ? CUDA_ERROR_NOT_SUPPORTED : driver_result(sim_capture_alloc(stream, bytes, &address));
	if (!result)
		*out = address;
	return result;
}

static CUresult begin_capture(CUstream hStream, CUstreamCaptureMode mode, const struct sim_spot *spot)
{
	struct sim_stream *stream = driver_stream(hStream);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_capture_begin(stream, (enum sim_capture_mode)mode, spot));
}

WITH_STREAM(cuStreamBeginCapture, cuStreamBeginCapture_ptsz, (CUstream hStream), (hStream))
{
	return begin_capture(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL, NULL);
}

WITH_STREAM(cuStreamBeginCapture_v2, cuStreamBeginCapture_v2_ptsz,
            (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode))
{
	return begin_capture(hStream, mode, NULL);
}

WITH_STREAM(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph_ptsz,
            (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies,
             const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode),
            (hStream, hGraph, dependencies, dependencyData, numDependencies, mode))
{
	struct sim_spot spot = {(struct sim_graph *)hGraph, (struct sim_node *const *)dependencies,
	                        numDependencies};

	return begin_capture(hStream, mode, &spot);
}

WITH_STREAM(cuStreamEndCapture, cuStreamEndCapture_ptsz, (CUstream hStream, CUgraph *phGraph),
            (hStream, phGraph))
{
	struct sim_stream *stream = driver_stream(hStream);
	struct sim_graph *graph;

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	CUresult result = driver_result(sim_capture_end(stream, &graph));
	if (phGraph)
		*phGraph = (CUgraph)graph;
	else if (graph)
		sim_graph_destroy(graph);
	return result;
}

static CUresult query_capture(CUstream hStream, struct sim_capture_info *out)
{
	struct sim_stream *stream = driver_stream(hStream);

	return stream ? driver_result(sim_capture_query(stream, out)) : CUDA_ERROR_INVALID_HANDLE;
}

WITH_STREAM(cuStreamIsCapturing, cuStreamIsCapturing_ptsz,
            (CUstream hStream, CUstreamCaptureStatus *captureStatus), (hStream, captureStatus))
{
	struct sim_capture_info info;

	if (!captureStatus)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = query_capture(hStream, &info);
	if (!result)
		*captureStatus = (CUstreamCaptureStatus)info.status;
	return result;
}

/* Edges carry no data here, so none is ever lost. */
static CUresult get_info(CUstream hStream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                         const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count)
{
	struct sim_capture_info info;

	if (!status || (data && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = query_capture(hStream, &info);
	if (result)
		return result;
	*status = (CUstreamCaptureStatus)info.status;
	if (info.status != SIM_CAPTURE_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = info.id;
	if (graph)
		*graph = (CUgraph)info.graph;
	if (nodes)
		*nodes = (const CUgraphNode *)info.after;
	if (data)
		*data = NULL;
	if (count)
		*count = info.count;
	return CUDA_SUCCESS;
}

WITH_STREAM(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_ptsz,
            (CUstream hStream, CUstreamCaptureStatus *status, cuuint64_t *id), (hStream, status, id))
{
	return get_info(hStream, status, id, NULL, NULL, NULL, NULL);
}

WITH_STREAM(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo_v2_ptsz,
            (CUstream hStream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
             const CUgraphNode **nodes, size_t *count),
            (hStream, status, id, graph, nodes, count))
{
	return get_info(hStream, status, id, graph, nodes, NULL, count);
}

WITH_STREAM(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo_v3_ptsz,
            (CUstream hStream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
             const CUgraphNode **nodes, const CUgraphEdgeData **data, size_t *count),
            (hStream, status, id, graph, nodes, data, count))
{
	return get_info(hStream, status, id, graph, nodes, data, count);
}

static CUresult update_dependencies(CUstream hStream, CUgraphNode *nodes, size_t count, unsigned flags)
{
	struct sim_stream *stream = driver_stream(hStream);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !nodes))
		return CUDA_ERROR_INVALID_VALUE;
	return driver_result(sim_capture_depend(stream, (struct sim_node *const *)nodes, count, flags));
}

WITH_STREAM(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies_ptsz,
            (CUstream hStream, CUgraphNode *nodes, size_t count, unsigned int flags),
            (hStream, nodes, count, flags))
{
	return update_dependencies(hStream, nodes, count, flags);
}

WITH_STREAM(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies_v2_ptsz,
            (CUstream hStream, CUgraphNode *nodes, const CUgraphEdgeData *data, size_t count,
             unsigned int flags),
            (hStream, nodes, data, count, flags))
{
	return update_dependencies(hStream, nodes, count, flags);
}

/* A real driver also accepts every number. Only three have a meaning. */
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
	ENTER(cuThreadExchangeStreamCaptureMode, INIT);
	if (!mode)
		return CUDA_ERROR_INVALID_VALUE;
	*mode = (CUstreamCaptureMode)sim_capture_exchange_mode((int)*mode);
	return CUDA_SUCCESS;
}

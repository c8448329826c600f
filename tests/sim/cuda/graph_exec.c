/* Executable graphs, and the memory that a device keeps for graphs. */
#include "cuda_entry.h"

static CUresult instantiate_graph(CUgraphExec *out, CUgraph graph, unsigned long long flags)
{
	struct sim_exec *exec;

	if (!out || flags > 15)
		return CUDA_ERROR_INVALID_VALUE;
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) /* a kernel cannot launch a graph here */
		return CUDA_ERROR_NOT_SUPPORTED;
	CUresult result = driver_result(sim_graph_instantiate(
	    (struct sim_graph *)graph, flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, &exec));
	if (!result)
		*out = (CUgraphExec)exec;
	return result;
}

static CUresult instantiate_v1(CUgraphExec *out, CUgraph graph, CUgraphNode *error_node, char *log,
                               size_t room)
{
	CUresult result = instantiate_graph(out, graph, 0);

	if (error_node)
		*error_node = NULL;
	if (log && room)
		*log = '\0';
	return result;
}

CUresult cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                            char *logBuffer, size_t bufferSize)
{
	ENTER(cuGraphInstantiate, CONTEXT);
	return instantiate_v1(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiate_v2(CUgraphExec *phGraphExec, CUgraph hGraph, CUgraphNode *phErrorNode,
                               char *logBuffer, size_t bufferSize)
{
	ENTER(cuGraphInstantiate_v2, CONTEXT);
	return instantiate_v1(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags)
{
	ENTER(cuGraphInstantiateWithFlags, CONTEXT);
	return instantiate_graph(phGraphExec, hGraph, flags);
}

static CUresult launch_exec(CUgraphExec exec, CUstream hStream)
{
	struct sim_stream *stream = driver_stream(hStream);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return driver_result(sim_exec_launch((struct sim_exec *)exec, stream));
}

static CUresult upload_exec(CUgraphExec exec, CUstream hStream)
{
	struct sim_stream *stream = driver_stream(hStream);

	if (!stream)
		return CUDA_ERROR_INVALID_HANDLE;
	return driver_result(sim_exec_upload((struct sim_exec *)exec, stream));
}

static CUresult instantiate_params(CUgraphExec *out, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                                   CUstream zero)
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = instantiate_graph(out, graph, params->flags);
	if (!result && params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		result = upload_exec(*out, params->hUploadStream ? params->hUploadStream : zero);
	params->hErrNode_out = NULL;
	params->result_out = result ? CUDA_GRAPH_INSTANTIATE_ERROR : CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return result;
}

CUresult cuGraphInstantiateWithParams(CUgraphExec *phGraphExec, CUgraph hGraph,
                                      CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	ENTER(cuGraphInstantiateWithParams, CONTEXT);
	return instantiate_params(phGraphExec, hGraph, instantiateParams, CU_STREAM_LEGACY);
}

CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *phGraphExec, CUgraph hGraph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams)
{
	ENTER(cuGraphInstantiateWithParams_ptsz, CONTEXT);
	return instantiate_params(phGraphExec, hGraph, instantiateParams, CU_STREAM_PER_THREAD);
}

CUresult cuGraphExecDestroy(CUgraphExec hGraphExec)
{
	ENTER(cuGraphExecDestroy, INIT);
	return driver_result(sim_exec_destroy((struct sim_exec *)hGraphExec));
}

WITH_STREAM(cuGraphLaunch, cuGraphLaunch_ptsz, (CUgraphExec hGraphExec, CUstream hStream),
            (hGraphExec, hStream))
{
	return launch_exec(hGraphExec, hStream);
}

WITH_STREAM(cuGraphUpload, cuGraphUpload_ptsz, (CUgraphExec hGraphExec, CUstream hStream),
            (hGraphExec, hStream))
{
	return upload_exec(hGraphExec, hStream);
}

/* -- memory ------------------------------------------------------------------------------------ */

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	struct sim_graph_memory memory;

	ENTER(cuDeviceGetGraphMemAttribute, INIT);
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || (unsigned)attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_memory(device, &memory);
	*(cuuint64_t *)value = attr == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT       ? memory.used
	                       : attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH        ? memory.used_high
	                       : attr == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? memory.reserved
	                                                                        : memory.reserved_high;
	return CUDA_SUCCESS;
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
	ENTER(cuDeviceSetGraphMemAttribute, INIT);
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (!value || *(cuuint64_t *)value ||
	    (attr != CU_GRAPH_MEM_ATTR_USED_MEM_HIGH && attr != CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH))
		return CUDA_ERROR_INVALID_VALUE;
	sim_graph_memory_reset_high(device, attr == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH);
	return CUDA_SUCCESS;
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	ENTER(cuDeviceGraphMemTrim, INIT);
	if (!driver_device(device))
		return CUDA_ERROR_INVALID_DEVICE;
	sim_graph_trim(device);
	return CUDA_SUCCESS;
}

/* Stream capture: contract tests as test_driver.c. Results are of an H200, driver 580.159. */
#include "driver_test.h"

#include <pthread.h>

static CUstream capturing, other;
static CUdeviceptr memory;

static CUstream stream_new(unsigned flags)
{
	CUstream stream;

	OK(d.cuStreamCreate(&stream, flags));
	return stream;
}

static void begin_tests(void)
{
	start();
	capturing = stream_new(CU_STREAM_NON_BLOCKING);
	other = stream_new(CU_STREAM_NON_BLOCKING);
	OK(d.cuMemAlloc_v2(&memory, MIB));
	OK(d.cuMemsetD8_v2(memory, 0, MIB));
	OK(d.cuCtxSynchronize());
}

static void begin(CUstream stream, CUstreamCaptureMode mode)
{
	OK(d.cuStreamBeginCapture_v2(stream, mode));
}

static void end(CUstream stream, CUresult wanted)
{
	CUgraph graph = (CUgraph)&graph;

	GIVES(wanted, d.cuStreamEndCapture(stream, &graph));
	CHECK(!graph == !!wanted);
	if (graph)
		OK(d.cuGraphDestroy(graph));
}

static CUstreamCaptureStatus status_of(CUstream stream)
{
	CUstreamCaptureStatus status;

	OK(d.cuStreamIsCapturing(stream, &status));
	return status;
}

/* -- calls that a capture forbids -------------------------------------------------------------- */

static CUdeviceptr to_free;
static void *host_to_free;

static CUresult call_alloc(void)
{
	CUdeviceptr p = 1;
	CUresult result = d.cuMemAlloc_v2(&p, MIB);

	CHECK(result ? !p : p);
	return result ? result : d.cuMemFree_v2(p);
}
static CUresult call_free(void)
{
	CUresult result = d.cuMemFree_v2(to_free);

	if (!result)
		OK(d.cuMemAlloc_v2(&to_free, MIB));
	return result;
}
static CUresult call_free_nothing(void)
{
	return d.cuMemFree_v2(0);
}
static CUresult call_host_alloc(void)
{
	void *p;
	CUresult result = d.cuMemHostAlloc(&p, 4096, 0);

	return result ? result : d.cuMemFreeHost(p);
}
static CUresult call_free_host(void)
{
	CUresult result = d.cuMemFreeHost(host_to_free);

	if (!result)
		OK(d.cuMemHostAlloc(&host_to_free, 4096, 0));
	return result;
}
static CUresult call_sync_other(void)
{
	return d.cuStreamSynchronize(other);
}
static CUresult call_query_other(void)
{
	return d.cuStreamQuery(other);
}
static CUresult call_alloc_async(void)
{
	CUdeviceptr p;
	CUresult result = d.cuMemAllocAsync(&p, MIB, other);

	return result ? result : d.cuMemFreeAsync(p, other);
}
static CUresult call_pool(void)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemoryPool pool;
	CUresult result = d.cuMemPoolCreate(&pool, &props);

	return result ? result : d.cuMemPoolDestroy(pool);
}
static CUresult call_instantiate(void)
{
	CUgraphExec exec;
	CUgraph graph;

	OK(d.cuGraphCreate(&graph, 0));
	CUresult result = d.cuGraphInstantiateWithFlags(&exec, graph, 0);
	OK(d.cuGraphDestroy(graph));
	return result ? result : d.cuGraphExecDestroy(exec);
}

static CUresult (*const unsafe[])(void) = {
    call_alloc,      call_free,        call_free_nothing, call_host_alloc, call_free_host,
    call_sync_other, call_query_other, call_alloc_async,  call_pool,       call_instantiate,
};

static CUresult (*elsewhere)(void);

static void *run_elsewhere(void *unused)
{
	OK(d.cuCtxSetCurrent(context));
	return (void *)(intptr_t)elsewhere();
}

static CUresult in_thread(CUresult (*call)(void))
{
	pthread_t thread;
	void *result;

	elsewhere = call;
	CHECK(!pthread_create(&thread, NULL, run_elsewhere, NULL));
	CHECK(!pthread_join(thread, &result));
	return (CUresult)(intptr_t)result;
}

static void one_unsafe(CUresult (*call)(void), CUstreamCaptureMode mode, bool thread, bool forbidden)
{
	begin(capturing, mode);
	GIVES(forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS,
	      thread ? in_thread(call) : call());
	CHECK(status_of(capturing) ==
	      (forbidden ? CU_STREAM_CAPTURE_STATUS_INVALIDATED : CU_STREAM_CAPTURE_STATUS_ACTIVE));
	end(capturing, forbidden ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_SUCCESS);
}

DRIVER_TEST(unsafe_calls)
{
	begin_tests();
	OK(d.cuMemAlloc_v2(&to_free, MIB));
	OK(d.cuMemHostAlloc(&host_to_free, 4096, 0));
	for (size_t i = 0; i < sizeof(unsafe) / sizeof(*unsafe); i++) {
		one_unsafe(unsafe[i], CU_STREAM_CAPTURE_MODE_GLOBAL, false, true);
		one_unsafe(unsafe[i], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, false, true);
		one_unsafe(unsafe[i], CU_STREAM_CAPTURE_MODE_RELAXED, false, false);
		one_unsafe(unsafe[i], CU_STREAM_CAPTURE_MODE_GLOBAL, true, true);
		one_unsafe(unsafe[i], CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, true, false);
		one_unsafe(unsafe[i], CU_STREAM_CAPTURE_MODE_RELAXED, true, false);
	}
}

DRIVER_TEST(vmm_is_allowed)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	start();
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	capturing = stream_new(CU_STREAM_NON_BLOCKING);
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	handle = chunk(CU_MEM_LOCATION_TYPE_DEVICE, GRANULE);
	OK(d.cuMemAddressReserve(&at, GRANULE, 0, 0, 0));
	OK(d.cuMemMap(at, GRANULE, 0, handle, 0));
	OK(allow(at, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	OK(d.cuMemUnmap(at, GRANULE));
	OK(d.cuMemRelease(handle));
	OK(d.cuMemAddressFree(at, GRANULE));
	end(capturing, CUDA_SUCCESS);
}

DRIVER_TEST(thread_mode)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	begin_tests();
	OK(d.cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(call_alloc());
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, in_thread(call_alloc));
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
	OK(d.cuThreadExchangeStreamCaptureMode(&mode));
	CHECK(mode == CU_STREAM_CAPTURE_MODE_RELAXED);
}

/* -- calls that every mode forbids ------------------------------------------------------------- */

DRIVER_TEST(synchronising)
{
	begin_tests();
	begin(capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d.cuStreamSynchronize(capturing));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, RUN(capturing, "add", memory, 16, 1));
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d.cuStreamQuery(capturing));
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, in_thread(d.cuCtxSynchronize));
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	OK(RUN(capturing, "add", memory, 16, 1));
	OK(d.cuStreamSynchronize(capturing));
}

DRIVER_TEST(legacy_stream)
{
	CUstreamCaptureStatus status;
	CUstream blocking;

	begin_tests();
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
	      d.cuStreamBeginCapture_v2(NULL, CU_STREAM_CAPTURE_MODE_RELAXED));
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL); /* a stream that is not ordered with it */
	OK(d.cuMemsetD8_v2(memory, 0, 16));
	OK(RUN(NULL, "add", memory, 1, 1));
	end(capturing, CUDA_SUCCESS);
	blocking = stream_new(CU_STREAM_DEFAULT);
	begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, d.cuStreamIsCapturing(NULL, &status));
	CHECK(status_of(blocking) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, d.cuMemsetD8_v2(memory, 0, 16));
	end(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(blocking, CU_STREAM_CAPTURE_MODE_RELAXED);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, RUN(NULL, "add", memory, 1, 1));
	end(blocking, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

/* -- begin and end ----------------------------------------------------------------------------- */

static CUresult end_here(void)
{
	CUgraph graph;
	CUresult result = d.cuStreamEndCapture(capturing, &graph);

	CHECK(!graph == !!result);
	return result;
}

DRIVER_TEST(states)
{
	CUstreamCaptureStatus status;
	cuuint64_t id = 0, id2 = 0;

	begin_tests();
	end(capturing, CUDA_ERROR_ILLEGAL_STATE);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamBeginCapture_v2(capturing, (CUstreamCaptureMode)7));
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	GIVES(CUDA_ERROR_ILLEGAL_STATE, d.cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(d.cuStreamGetCaptureInfo(capturing, &status, &id));
	CHECK(status == CU_STREAM_CAPTURE_STATUS_ACTIVE && id);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, in_thread(end_here));
	CHECK(status_of(capturing) == CU_STREAM_CAPTURE_STATUS_NONE); /* ended nevertheless */
	begin(capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(d.cuStreamGetCaptureInfo(capturing, &status, &id2));
	CHECK(id2 && id2 != id);
	OK(in_thread(end_here));
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(d.cuStreamDestroy_v2(capturing)); /* and the capture is over */
	OK(call_alloc());
}

/* -- several streams --------------------------------------------------------------------------- */

static CUevent event_new(void)
{
	CUevent event;

	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	return event;
}

DRIVER_TEST(fork_and_join)
{
	uint64_t value[2] = {0, 0};
	size_t nodes = 0, edges = 0;
	CUgraphExec exec;
	CUgraph graph;

	begin_tests();
	CUevent forked = event_new(), joined = event_new();
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(RUN(capturing, "add", memory, 2, 1));
	OK(d.cuEventRecord(forked, capturing));
	OK(d.cuStreamWaitEvent(other, forked, 0));
	CHECK(status_of(other) == CU_STREAM_CAPTURE_STATUS_ACTIVE);
	OK(RUN(other, "add", memory + 8, 1, 4));
	OK(d.cuEventRecord(joined, other));
	OK(d.cuStreamWaitEvent(capturing, joined, 0));
	OK(RUN(capturing, "add", memory, 2, 8));
	OK(d.cuStreamEndCapture(capturing, &graph));
	CHECK(status_of(other) == CU_STREAM_CAPTURE_STATUS_NONE);
	OK(d.cuGraphGetNodes(graph, NULL, &nodes));
	OK(d.cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &edges));
	CHECK(nodes == 3 && edges == 3);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuEventQuery(forked)); /* the event has no meaning now */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamWaitEvent(other, forked, 0));
	OK(d.cuEventRecord(forked, other));
	OK(d.cuEventSynchronize(forked));
	OK(d.cuMemcpyDtoH_v2(value, memory, sizeof(value)));
	CHECK(!value[0] && !value[1]); /* nothing has run */
	OK(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(d.cuGraphLaunch(exec, capturing));
	OK(d.cuGraphLaunch(exec, other)); /* after the first launch, in any stream */
	OK(d.cuStreamSynchronize(other));
	OK(d.cuMemcpyDtoH_v2(value, memory, sizeof(value)));
	CHECK(value[0] == 18 && value[1] == 26);
}

DRIVER_TEST(unjoined)
{
	begin_tests();
	CUevent event = event_new();
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(d.cuEventRecord(event, capturing));
	OK(d.cuStreamWaitEvent(other, event, 0));
	OK(RUN(other, "add", memory, 1, 1));
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
	CHECK(status_of(other) == CU_STREAM_CAPTURE_STATUS_NONE);
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(RUN(capturing, "add", memory, 1, 1));
	OK(d.cuEventRecord(event, capturing));
	OK(d.cuStreamWaitEvent(other, event, 0)); /* no work there, so nothing to join */
	end(capturing, CUDA_SUCCESS);
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(d.cuEventRecord(event, capturing));
	OK(d.cuStreamWaitEvent(other, event, 0));
	end(other, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

DRIVER_TEST(events)
{
	begin_tests();
	CUevent event = event_new(), outside = event_new();
	OK(d.cuEventRecord(outside, other));
	begin(capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(d.cuStreamWaitEvent(capturing, event, 0)); /* never recorded */
	OK(d.cuEventRecord(event, capturing));
	GIVES(CUDA_ERROR_CAPTURED_EVENT, d.cuEventQuery(event));
	CHECK(status_of(capturing) == CU_STREAM_CAPTURE_STATUS_INVALIDATED);
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
	GIVES(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, d.cuStreamWaitEvent(capturing, outside, 0));
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	begin(capturing, CU_STREAM_CAPTURE_MODE_RELAXED);
	begin(other, CU_STREAM_CAPTURE_MODE_RELAXED);
	OK(d.cuEventRecord(event, capturing));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_MERGE, d.cuStreamWaitEvent(other, event, 0));
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	end(other, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

DRIVER_TEST(dependencies)
{
	const CUgraphNode *after;
	CUstreamCaptureStatus status;
	CUgraphNode node;
	CUgraph graph;
	size_t count;

	begin_tests();
	GIVES(CUDA_ERROR_ILLEGAL_STATE, d.cuStreamUpdateCaptureDependencies_v2(capturing, NULL, NULL, 0, 0));
	begin(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL);
	OK(RUN(capturing, "add", memory, 1, 1));
	OK(d.cuStreamGetCaptureInfo_v3(capturing, &status, NULL, &graph, &after, NULL, &count));
	CHECK(count == 1);
	OK(d.cuGraphAddEmptyNode(&node, graph, after, count));
	OK(d.cuStreamUpdateCaptureDependencies_v2(capturing, &node, NULL, 1,
	                                          CU_STREAM_ADD_CAPTURE_DEPENDENCIES));
	OK(d.cuStreamGetCaptureInfo_v3(capturing, &status, NULL, &graph, &after, NULL, &count));
	CHECK(count == 2);
	OK(d.cuStreamUpdateCaptureDependencies_v2(capturing, &node, NULL, 1,
	                                          CU_STREAM_SET_CAPTURE_DEPENDENCIES));
	OK(d.cuStreamGetCaptureInfo_v3(capturing, &status, NULL, &graph, &after, NULL, &count));
	CHECK(count == 1 && after[0] == node);
	end(capturing, CUDA_SUCCESS);
}

DRIVER_TEST(to_graph)
{
	CUgraph graph, same = NULL;
	CUgraphNode node;
	size_t count = 0;

	begin_tests();
	OK(d.cuGraphCreate(&graph, 0));
	OK(d.cuGraphAddEmptyNode(&node, graph, NULL, 0));
	OK(d.cuStreamBeginCaptureToGraph(capturing, graph, &node, NULL, 1, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(RUN(capturing, "add", memory, 1, 1));
	OK(d.cuStreamEndCapture(capturing, &same));
	CHECK(same == graph);
	OK(d.cuGraphGetEdges_v2(graph, NULL, NULL, NULL, &count));
	CHECK(count == 1);
	OK(d.cuStreamBeginCaptureToGraph(capturing, graph, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, call_alloc());
	end(capturing, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGraphDestroy(graph)); /* the error ended it */
}

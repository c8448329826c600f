/* All calls that neither allocate nor free: questions, wrong calls, exports, captures, graphs. */
#include "storm.h"

#include <unistd.h>

static void ask_attributes(struct storm_worker *worker, const struct storm_slot *slot, uint64_t inside)
{
	static const CUpointer_attribute wanted[] = {
	    CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
	    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	CUpointer_attribute attribute = wanted[storm_random(worker, sizeof(wanted) / sizeof(wanted[0]))];
	uint64_t value = 0;
	CUresult result = cuPointerGetAttribute(&value, attribute, slot->address + inside);
	storm_say(worker, "cuPointerGetAttribute", result, value);
	unsigned type = 0, managed = 0;
	CUdeviceptr start = 0;
	CUpointer_attribute several[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
	                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
	                                 CU_POINTER_ATTRIBUTE_IS_MANAGED};
	void *values[] = {&type, &start, &managed};
	result = cuPointerGetAttributes(3, several, values, slot->address + inside);
	storm_say(worker, "cuPointerGetAttributes", result,
	          type * 16u + (managed & 255) * 8u + (start == slot->address));
}

void storm_ask(struct storm_worker *worker, struct storm_slot *slot)
{
	CUdeviceptr base = 0;
	size_t size = 0, free_bytes, total = 0;
	unsigned on = 1;
	uint64_t inside = slot->bytes ? storm_random(worker, slot->bytes) : 0;
	switch (storm_random(worker, 6)) {
	case 0:
		storm_say(worker, "cuMemGetInfo_v2", cuMemGetInfo_v2(&free_bytes, &total), total);
		break;
	case 1:
		storm_say(worker, "cuDeviceTotalMem_v2", cuDeviceTotalMem_v2(&total, 0), total);
		break;
	case 2:
		if (slot->kind == STORM_PLAIN || slot->kind == STORM_ASYNC) {
			CUresult result = cuMemGetAddressRange_v2(&base, &size, slot->address + inside);
			storm_say(worker, "cuMemGetAddressRange_v2", result,
			          base == slot->address ? size : 0);
		}
		break;
	case 3:
		if (slot->kind == STORM_PLAIN)
			storm_say(worker, "cuPointerSetAttribute",
			          cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, slot->address),
			          0);
		break;
	default:
		if (slot->bytes)
			ask_attributes(worker, slot, inside);
		break;
	}
}

/* Arguments that no call takes: the vendor's own answers, whatever they are. */
void storm_nonsense(struct storm_worker *worker)
{
	CUdeviceptr address = 1;
	size_t pitch = 1;
	switch (storm_random(worker, 12)) {
	case 0:
		storm_say(worker, "alloc of nothing", cuMemAlloc_v2(&address, 0), address);
		break;
	case 1:
		storm_say(worker, "alloc to nowhere", cuMemAlloc_v2(NULL, 100), 0);
		break;
	case 2:
		storm_say(worker, "alloc of all", cuMemAlloc_v2(&address, 1ull << 60), address);
		break;
	case 3:
		storm_say(worker, "free nothing", cuMemFree_v2(0), 0);
		break;
	case 4:
		storm_say(worker, "free garbage", cuMemFree_v2(0x123456), 0);
		break;
	case 5:
		storm_say(worker, "free garbage in order", cuMemFreeAsync(0x123456, worker->stream), 0);
		break;
	case 6:
		storm_say(worker, "rows of nothing", cuMemAllocPitch_v2(&address, &pitch, 0, 10, 4), address);
		break;
	case 7:
		storm_say(worker, "rows of odd words", cuMemAllocPitch_v2(&address, &pitch, 10, 10, 3),
		          address);
		break;
	case 8:
		storm_say(worker, "create of nothing",
		          cuMemCreate((CUmemGenericAllocationHandle *)&address, 0, NULL, 0), 0);
		break;
	case 9:
		storm_say(worker, "order of nothing", cuMemAllocAsync(&address, 0, worker->stream), 0);
		break;
	case 10:
		storm_say(worker, "order to nowhere", cuMemAllocAsync(NULL, 100, worker->stream), 0);
		break;
	default:
		storm_say(worker, "own peer", cuCtxEnablePeerAccess(worker->context, 0), 0);
		break;
	}
}

/* Handing memory to others; what came out of it is given up at once. */
void storm_export(struct storm_worker *worker, struct storm_slot *slot)
{
	CUipcMemHandle ipc;
	int descriptor = -1;
	char data[64];
	switch (slot->kind) {
	case STORM_PLAIN:
		storm_say(worker, "cuIpcGetMemHandle", cuIpcGetMemHandle(&ipc, slot->address), 0);
		break;
	case STORM_ASYNC:
		storm_say(worker, "cuMemPoolExportPointer",
		          cuMemPoolExportPointer((CUmemPoolPtrExportData *)data, slot->address), 0);
		break;
	case STORM_MAPPED:
		if (slot->handle)
			storm_say(worker, "cuMemExportToShareableHandle",
			          cuMemExportToShareableHandle(&descriptor, slot->handle,
			                                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
			          0);
		break;
	default:
		break;
	}
	if (descriptor >= 0)
		close(descriptor);
}

static void launch_once(struct storm_worker *worker, CUgraph graph)
{
	CUgraphExec exec;
	if (cuGraphInstantiateWithFlags(&exec, graph, 0))
		return;
	CUresult launched = cuGraphLaunch(exec, worker->stream);
	CUresult ended = cuStreamSynchronize(worker->stream);
	worker->busy = false;
	storm_say(worker, "graph ran", launched ? launched : ended, 0);
	cuGraphExecDestroy(exec);
}

/* Work in a capture: memory that a graph allocates, fills, verifies and frees; sometimes a call that breaks it. */
void storm_capture(struct storm_worker *worker)
{
	CUdeviceptr address = 0, other = 0;
	CUgraph graph = NULL;
	bool relaxed = storm_random(worker, 2);
	CUstreamCaptureMode mode =
	    relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	CUstreamCaptureMode exchanged = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUresult result = cuStreamBeginCapture_v2(worker->stream, mode);
	storm_say(worker, "cuStreamBeginCapture_v2", result, 0);
	struct storm_slot slot = {.kind = STORM_ASYNC, .bytes = 4096};
	result = cuMemAllocAsync(&slot.address, slot.bytes, worker->stream);
	storm_say(worker, "cuMemAllocAsync in a capture", result, 0);
	storm_fill(worker, &slot);
	storm_verify(worker, &slot);
	storm_say(worker, "cuMemFreeAsync in a capture", cuMemFreeAsync(slot.address, worker->stream), 0);
	if (relaxed) {
		result = cuMemAlloc_v2(&other, 4096);
		storm_say(worker, "cuMemAlloc_v2 in a capture", result, 0);
		if (!result)
			storm_say(worker, "cuMemFree_v2 in a capture", cuMemFree_v2(other), 0);
	} else if (storm_random(worker, 2)) {
		result = cuMemAlloc_v2(&address, 4096);
		storm_say(worker, "cuMemAlloc_v2 that breaks a capture", result, address);
	}
	storm_say(worker, "cuThreadExchangeStreamCaptureMode", cuThreadExchangeStreamCaptureMode(&exchanged),
	          exchanged);
	cuThreadExchangeStreamCaptureMode(&exchanged);
	result = cuStreamEndCapture(worker->stream, &graph);
	storm_say(worker, "cuStreamEndCapture", result, graph != NULL);
	if (graph) {
		launch_once(worker, graph);
		cuGraphDestroy(graph);
	}
}

void storm_graph(struct storm_worker *worker)
{
	CUgraph graph;
	CUgraphNode made, freed;
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUDA_MEM_ALLOC_NODE_PARAMS wanted = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                                   .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}},
	                                     .accessDescs = &access,
	                                     .accessDescCount = 1,
	                                     .bytesize = 1 + storm_random(worker, 100000)};
	if (cuGraphCreate(&graph, 0))
		return;
	CUresult result = cuGraphAddMemAllocNode(&made, graph, NULL, 0, &wanted);
	storm_say(worker, "cuGraphAddMemAllocNode", result, wanted.dptr % 256);
	if (!result)
		storm_say(worker, "cuGraphAddMemFreeNode",
		          cuGraphAddMemFreeNode(&freed, graph, &made, 1, wanted.dptr), 0);
	launch_once(worker, graph);
	cuGraphDestroy(graph);
	storm_say(worker, "cuDeviceGraphMemTrim", cuDeviceGraphMemTrim(0), 0);
}

/* A context of its own, with memory in it that ends with it. */
void storm_context(struct storm_worker *worker)
{
	CUcontext context;
	CUdeviceptr address;
	CUresult result = cuCtxCreate_v2(&context, 0, 0);
	if (result)
		return;
	for (int i = 0; i < 3; i++)
		storm_say(worker, "cuMemAlloc_v2 in a context",
		          cuMemAlloc_v2(&address, 1 + storm_random(worker, storm_largest)), 0);
	storm_say(worker, "cuCtxDestroy_v2", cuCtxDestroy_v2(context), 0);
	cuCtxSetCurrent(worker->context);
}

void storm_pool(struct storm_worker *worker)
{
	CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                        .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemoryPool pool;
	CUdeviceptr address;
	uint64_t keep = UINT64_MAX;
	storm_say(worker, "cuMemPoolTrimTo", cuMemPoolTrimTo(worker->pool, 0), 0);
	CUresult result = cuMemPoolCreate(&pool, &props);
	storm_say(worker, "cuMemPoolCreate", result, 0);
	if (result)
		return;
	cuMemPoolSetAttribute(pool, 4 /* CU_MEMPOOL_ATTR_RELEASE_THRESHOLD */, &keep);
	result =
	    cuMemAllocFromPoolAsync(&address, 1 + storm_random(worker, storm_largest), pool, worker->stream);
	storm_say(worker, "cuMemAllocFromPoolAsync", result, 0);
	if (!result)
		storm_say(worker, "cuMemFreeAsync", cuMemFreeAsync(address, worker->stream), 0);
	/* Driver 580 crashed later where a pool was destroyed before a stream had reached the frees of its memory. */
	cuStreamSynchronize(worker->stream);
	worker->busy = false;
	storm_say(worker, "cuMemPoolDestroy", cuMemPoolDestroy(pool), 0);
}

static void new_stream(struct storm_worker *worker)
{
	if (!storm_check(worker))
		return;
	storm_say(worker, "cuStreamDestroy_v2", cuStreamDestroy_v2(worker->stream), 0);
	cuStreamCreate(&worker->stream, 1);
}

static void rare(struct storm_worker *worker)
{
	switch (storm_random(worker, 40)) {
	case 0:
		storm_context(worker);
		break;
	case 1:
		new_stream(worker);
		break;
	case 2 ... 9:
		storm_pool(worker);
		break;
	case 10 ... 19:
		storm_graph(worker);
		break;
	default:
		storm_capture(worker);
		break;
	}
}

void storm_step(struct storm_worker *worker)
{
	struct storm_slot *slot = &worker->slots[storm_random(worker, STORM_SLOTS)];
	uint64_t what = storm_random(worker, 100);
	if (what < 2)
		rare(worker);
	else if (what < 10)
		storm_nonsense(worker);
	else if (slot->kind == STORM_EMPTY)
		storm_make(worker, slot);
	else if (what < 30)
		storm_ask(worker, slot);
	else if (what < 35)
		storm_export(worker, slot);
	else if (what < 55)
		storm_verify(worker, slot);
	else if (!slot->seed || what < 60)
		storm_fill(worker, slot);
	else
		storm_give(worker, slot);
	if (slot->kind == STORM_ARRAY || slot->kind == STORM_MIPMAP)
		storm_give(worker, slot);
}

void storm_end(struct storm_worker *worker)
{
	for (int i = 0; i < STORM_SLOTS; i++)
		storm_give(worker, &worker->slots[i]);
}

/* mixed.c by CUDA's driver. */
#include "mixed.h"

#include "cuda_api.h"

#define MIB ((size_t)1 << 20)

#define TRY(call) (last_error = (call))

static __thread CUresult last_error;

static struct {
	CUcontext context;
	CUstream stream;
	CUmodule module;
	CUfunction fill, verify;
	CUmemoryPool pool;
	uint64_t *mismatches; /* pinned */
} devices[DEVICES];

static int take_plain(struct block *block, int device)
{
	return cuMemAlloc_v2(&block->address, block->bytes);
}

static int give_plain(struct block *block, int device)
{
	return cuMemFree_v2(block->address);
}

static int take_pitched(struct block *block, int device)
{
	size_t pitch;

	return cuMemAllocPitch_v2(&block->address, &pitch, 4096, block->bytes / 4096, 4);
}

static int take_ordered(struct block *block, int device)
{
	return cuMemAllocAsync(&block->address, block->bytes, devices[device].stream);
}

static int take_pooled(struct block *block, int device)
{
	return cuMemAllocFromPoolAsync(&block->address, block->bytes, devices[device].pool,
	                               devices[device].stream);
}

static int give_ordered(struct block *block, int device)
{
	return cuMemFreeAsync(block->address, devices[device].stream);
}

static int take_managed(struct block *block, int device)
{
	return cuMemAllocManaged(&block->address, block->bytes, CU_MEM_ATTACH_GLOBAL);
}

static int take_pinned(struct block *block, int device)
{
	void *pointer;
	CUresult result = cuMemHostAlloc(&pointer, block->bytes, CU_MEMHOSTALLOC_DEVICEMAP);

	block->address = (uintptr_t)pointer;
	return result;
}

static int give_pinned(struct block *block, int device)
{
	return cuMemFreeHost((void *)(uintptr_t)block->address);
}

/* Undoes what it did if a step fails. */
static int take_created(struct block *block, int device)
{
	CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                  .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUresult result = cuMemCreate(&handle, block->bytes, &properties, 0);

	if (result)
		return result;
	result = cuMemAddressReserve(&block->address, block->bytes, 0, 0, 0);
	if (!result) {
		result = cuMemMap(block->address, block->bytes, 0, handle, 0);
		if (!result && (result = cuMemSetAccess(block->address, block->bytes, &access, 1)))
			cuMemUnmap(block->address, block->bytes);
		if (result)
			cuMemAddressFree(block->address, block->bytes);
	}
	CUresult released = cuMemRelease(handle);
	return result ? result : released;
}

static int give_created(struct block *block, int device)
{
	CUresult result = cuMemUnmap(block->address, block->bytes);

	return result ? result : cuMemAddressFree(block->address, block->bytes);
}

/* Nothing is written to it. */
static int take_array(struct block *block, int device)
{
	const CUDA_ARRAY_DESCRIPTOR wanted = {block->bytes / 4096, 1024, 0x20, 1};
	CUarray array = NULL;
	CUresult result = cuArrayCreate_v2(&array, &wanted);

	block->handle = (uintptr_t)array;
	return result;
}

static int give_array(struct block *block, int device)
{
	return cuArrayDestroy((void *)(uintptr_t)block->handle);
}

static const struct kind kinds[] = {
    {"plain", 4 * MIB, 1, take_plain, give_plain},
    {"pitched", 2 * MIB, 1, take_pitched, give_plain},
    {"array", 1 * MIB, 1, take_array, give_array},
    {"created", 2 * MIB, 2, take_created, give_created},
    {"small", 16384, 2, take_plain, give_plain},
    {"ordered", 2 * MIB, 2, take_ordered, give_ordered},
    {"pooled", 2 * MIB, 1, take_pooled, give_ordered},
    {"managed", 2 * MIB, 1, take_managed, give_plain},
    {"pinned", 65536, 1, take_pinned, give_pinned},
    {"late", 2 * MIB, 1, take_plain, give_plain},
    {"late small", 262144, 1, take_plain, give_plain},
    {"late ordered", 262144, 2, take_ordered, give_ordered},
    {0},
};

static int use(int device)
{
	return cuCtxSetCurrent(devices[device].context);
}

static int open_device(int device, const char *kernels)
{
	const CUmemPoolProps pool = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                             .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};
	void *pinned;

	if (TRY(cuInit(0)) || TRY(cuDevicePrimaryCtxRetain(&devices[device].context, device)) ||
	    TRY(use(device)) || TRY(cuStreamCreate(&devices[device].stream, CU_STREAM_NON_BLOCKING)) ||
	    TRY(cuModuleLoad(&devices[device].module, kernels)) ||
	    TRY(cuModuleGetFunction(&devices[device].fill, devices[device].module, "fill")) ||
	    TRY(cuModuleGetFunction(&devices[device].verify, devices[device].module, "verify")) ||
	    TRY(cuMemPoolCreate(&devices[device].pool, &pool)) ||
	    TRY(cuMemHostAlloc(&pinned, sizeof(uint64_t), CU_MEMHOSTALLOC_DEVICEMAP)))
		return last_error;
	devices[device].mismatches = pinned;
	return CUDA_SUCCESS;
}

static int peers(void)
{
	for (int device = 0; device < DEVICES; device++)
		if (TRY(use(device)) || TRY(cuCtxEnablePeerAccess(devices[!device].context, 0)))
			return last_error;
	return CUDA_SUCCESS;
}

static int launch(int device, CUfunction function, void **parameters)
{
	return cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, devices[device].stream, parameters, NULL);
}

static int fill(int device, const struct block *block)
{
	uint64_t address = block->address, words = block->bytes / 8, seed = block->seed;
	void *parameters[] = {&address, &words, &seed};

	return TRY(launch(device, devices[device].fill, parameters))
	           ? last_error
	           : cuStreamSynchronize(devices[device].stream);
}

static int verify(int device, const struct block *block, uint64_t *wrong)
{
	uint64_t address = block->address, words = block->bytes / 8, seed = block->seed;
	uint64_t out = (uintptr_t)devices[device].mismatches;
	void *parameters[] = {&address, &words, &seed, &out};

	*devices[device].mismatches = 0;
	if (TRY(launch(device, devices[device].verify, parameters)) ||
	    TRY(cuStreamSynchronize(devices[device].stream)))
		return last_error;
	*wrong += *devices[device].mismatches;
	return CUDA_SUCCESS;
}

static int read_block(const struct block *block, void *copy)
{
	return cuMemcpyDtoH_v2(copy, block->address, block->bytes);
}

static int info(void)
{
	size_t free_bytes, total;

	return cuMemGetInfo_v2(&free_bytes, &total);
}

/* A node that allocates, its use, and a node that frees. */
static int capture_memory(int device, CUstream stream)
{
	unsigned long long address = 0, words = 512, seed = 1;
	void *parameters[] = {&address, &words, &seed};

	if (TRY(cuMemAllocAsync(&address, words * 8, stream)))
		return last_error;
	int launched = launch(device, devices[device].fill, parameters);
	return TRY(cuMemFreeAsync(address, stream)) ? (int)last_error : launched;
}

/* A capture whose graph is launched twice. */
static int graph(int device)
{
	CUstream stream = devices[device].stream;
	CUgraph made = NULL;
	CUgraphExec exec = NULL;

	if (TRY(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED)))
		return last_error;
	int captured = capture_memory(device, stream);
	CUresult result = cuStreamEndCapture(stream, &made);
	result = captured ? (CUresult)captured : result;
	if (!result)
		result = cuGraphInstantiateWithFlags(&exec, made, 0);
	for (unsigned i = 0; !result && i < 2; i++)
		result = cuGraphLaunch(exec, stream);
	if (!result)
		result = cuStreamSynchronize(stream);
	if (exec)
		cuGraphExecDestroy(exec);
	if (made)
		cuGraphDestroy(made);
	CUresult trimmed = cuDeviceGraphMemTrim(device);
	return result ? result : trimmed;
}

static const char *changed(int device, bool failed)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	CUcontext current = NULL;

	if (cuCtxGetCurrent(&current) || current != devices[device].context)
		return "context";
	if (cuThreadExchangeStreamCaptureMode(&mode) || mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
		return "capture mode";
	return cuThreadExchangeStreamCaptureMode(&mode) ? "capture mode" : NULL;
}

/* The driver's pools give back unused memory when the stream is waited for. */
static int close_device(int device)
{
	if (TRY(cuStreamSynchronize(devices[device].stream)) || TRY(cuMemPoolDestroy(devices[device].pool)) ||
	    TRY(cuMemFreeHost(devices[device].mismatches)) ||
	    TRY(cuStreamDestroy_v2(devices[device].stream)) || TRY(cuModuleUnload(devices[device].module)))
		return last_error;
	return cuDevicePrimaryCtxReset_v2(device);
}

static const char *error_name(int error)
{
	const char *name = "?";

	cuGetErrorName((CUresult)error, &name);
	return name;
}

const struct vendor vendor = {
    .kinds = kinds,
    .open = open_device,
    .peers = peers,
    .use = use,
    .fill = fill,
    .verify = verify,
    .read = read_block,
    .info = info,
    .graph = graph,
    .changed = changed,
    .close = close_device,
    .error_name = error_name,
};

/* CUDA's driver. */
#include "api_driver.h"

#include <string.h>

CUcontext contexts[DEVICES];
CUfunction functions[DEVICES][KERNELS];
static CUmodule modules[DEVICES];

static void *host_pointer(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static int driver_open(int device, const char *kernels)
{
	static const char *const names[KERNELS] = {"fill", "add", "copy"};

	TRY(cuInit(0));
	TRY(cuDevicePrimaryCtxRetain(&contexts[device], device));
	TRY(cuCtxSetCurrent(contexts[device]));
	TRY(cuModuleLoad(&modules[device], kernels));
	for (unsigned i = 0; i < KERNELS; i++)
		TRY(cuModuleGetFunction(&functions[device][i], modules[device], names[i]));
	return 0;
}

static int driver_close(int device, unsigned how)
{
	return how % 2 ? CALL(cuDevicePrimaryCtxReset_v2(device))
	               : CALL(cuDevicePrimaryCtxRelease_v2(device));
}

static int driver_trim(int device)
{
	CUmemoryPool pool;

	TRY(cuDeviceGetDefaultMemPool(&pool, device));
	TRY(cuMemPoolTrimTo(pool, 0));
	return CALL(cuDeviceGraphMemTrim(device));
}

static int driver_settle(int device)
{
	TRY(cuCtxSynchronize());
	return driver_trim(device);
}

static int driver_use(int device)
{
	return CALL(cuCtxSetCurrent(contexts[device]));
}

static int driver_use_by(int device, unsigned n, uint64_t *figure)
{
	CUcontext context = NULL;
	unsigned flags;
	int active = 0;

	switch (n % 4) {
	case 1:
		TRY(cuCtxPopCurrent_v2(&context));
		return CALL(cuCtxPushCurrent_v2(contexts[device]));
	case 2:
		TRY(cuDevicePrimaryCtxRetain(&context, device));
		TRY(cuCtxSetCurrent(context));
		*figure = context == contexts[device];
		return CALL(cuDevicePrimaryCtxRelease_v2(device));
	default:
		TRY(cuDevicePrimaryCtxGetState(device, &flags, &active));
		*figure = (uint64_t)active;
		return CALL(cuCtxSetCurrent(contexts[device]));
	}
}

static unsigned driver_changed(int device, bool failed)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
	CUcontext current = NULL;
	unsigned changed = 0;

	(void)failed;
	if (CALL(cuCtxGetCurrent(&current)) || current != contexts[device])
		changed |= 1;
	if (CALL(cuThreadExchangeStreamCaptureMode(&mode)) || mode != CU_STREAM_CAPTURE_MODE_GLOBAL)
		changed |= 4;
	if (CALL(cuThreadExchangeStreamCaptureMode(&mode)))
		changed |= 4;
	return changed;
}

static int driver_set_peers(int device, int other, bool on)
{
	(void)device;
	return on ? CALL(cuCtxEnablePeerAccess(contexts[other], 0))
	          : CALL(cuCtxDisablePeerAccess(contexts[other]));
}

static int driver_stream_make(void **stream)
{
	return CALL(cuStreamCreate((CUstream *)stream, CU_STREAM_NON_BLOCKING));
}

static int driver_stream_end(void *stream)
{
	return CALL(cuStreamDestroy_v2(stream));
}

static int driver_wait(void *stream)
{
	return CALL(cuStreamSynchronize(stream));
}

static int driver_event_make(void **event)
{
	return CALL(cuEventCreate((CUevent *)event, 2 /* CU_EVENT_DISABLE_TIMING */));
}

static int driver_event_end(void *event)
{
	return CALL(cuEventDestroy_v2(event));
}

static int driver_order(void *event, void *before, void *after)
{
	TRY(cuEventRecord(event, before));
	return CALL(cuStreamWaitEvent(after, event, 0));
}

static int driver_pool_make(int device, bool shared, void **pool)
{
	const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                               .handleTypes = shared ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	                                                     : CU_MEM_HANDLE_TYPE_NONE,
	                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, device}};

	return CALL(cuMemPoolCreate((CUmemoryPool *)pool, &wanted));
}

static int driver_pool_end(void *pool)
{
	return CALL(cuMemPoolDestroy(pool));
}

static int driver_pool_trim(void *pool)
{
	return CALL(cuMemPoolTrimTo(pool, 0));
}

static int driver_pool_keep(void *pool, uint64_t bytes)
{
	return CALL(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &bytes));
}

/* Undoes what it did if a step fails. */
static int take_created(struct block *block)
{
	bool shared = block->kind == CREATED_SHARED;
	CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                              .requestedHandleTypes = shared
	                                                          ? CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR
	                                                          : CU_MEM_HANDLE_TYPE_NONE,
	                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, block->device}};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, block->device},
	                          CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	uint64_t bytes = block->bytes;

	TRY(cuMemCreate(&handle, bytes, &wanted, 0));
	int error = CALL(cuMemAddressReserve((CUdeviceptr *)&block->address, bytes, 0, 0, 0));
	if (!error) {
		error = CALL(cuMemMap(block->address, bytes, 0, handle, 0));
		if (!error && (error = CALL(cuMemSetAccess(block->address, bytes, &access, 1))))
			CALL(cuMemUnmap(block->address, bytes));
		if (error)
			CALL(cuMemAddressFree(block->address, bytes));
	}
	int released = CALL(cuMemRelease(handle));
	return error ? error : released;
}

/* Of so many whole rows that the block is in it. */
static int take_pitched(struct block *block)
{
	size_t width = block->bytes < 4096 ? block->bytes : 4096, pitch;

	return CALL(cuMemAllocPitch_v2((CUdeviceptr *)&block->address, &pitch, width,
	                               (block->bytes + width - 1) / width, 4));
}

static int take_pinned(struct block *block)
{
	void *pointer = NULL;
	int error = CALL(
	    cuMemHostAlloc(&pointer, block->bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP));

	block->address = (uintptr_t)pointer;
	return error;
}

static int driver_take(struct block *block, void *stream)
{
	CUdeviceptr *address = (CUdeviceptr *)&block->address;

	switch (block->kind) {
	case PLAIN:
		return CALL(cuMemAlloc_v2(address, block->bytes));
	case PITCHED:
		return take_pitched(block);
	case MANAGED:
		return CALL(cuMemAllocManaged(address, block->bytes, CU_MEM_ATTACH_GLOBAL));
	case PINNED:
		return take_pinned(block);
	case REGISTERED:
		return CALL(
		    cuMemHostRegister_v2(host_pointer(block->address), block->bytes, 1 /* portable */));
	case ORDERED:
		return CALL(cuMemAllocAsync(address, block->bytes, stream));
	case POOLED:
	case POOLED_SHARED:
		return CALL(cuMemAllocFromPoolAsync(address, block->bytes, block->pool, stream));
	default:
		return take_created(block);
	}
}

static int driver_give(struct block *block, void *stream, bool other)
{
	switch (block->kind) {
	case PINNED:
		return CALL(cuMemFreeHost(host_pointer(block->address)));
	case REGISTERED:
		return CALL(cuMemHostUnregister(host_pointer(block->address)));
	case CREATED:
	case CREATED_SHARED:
		TRY(cuMemUnmap(block->address, block->bytes));
		return CALL(cuMemAddressFree(block->address, block->bytes));
	default:
		break;
	}
	bool in_order = block_is_in_order(block) != other;
	return in_order ? CALL(cuMemFreeAsync(block->address, stream)) : CALL(cuMemFree_v2(block->address));
}

static int driver_prefetch(const struct block *block, unsigned n, void *stream)
{
	CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, block->device};

	if (n % 4 == 3)
		TRY(cuMemAdvise(block->address, block->bytes, n < 8 ? 1 : 2 /* read mostly, no longer so */,
		                block->device));
	if (n % 4 == 2)
		return CALL(cuMemPrefetchAsync(block->address, block->bytes, -1 /* the host */, stream));
	return n % 4 ? CALL(cuMemPrefetchAsync_v2(block->address, block->bytes, device, 0, stream))
	             : CALL(cuMemPrefetchAsync(block->address, block->bytes, block->device, stream));
}

static int driver_launch(int device, enum kernel kernel, void *stream, void **parameters, unsigned way)
{
	CUfunction function = functions[device][kernel];
	CUlaunchConfig config = {4, 1, 1, 64, 1, 1, 0, stream, NULL, 0};

	switch (way % 4) {
	case 1:
		return CALL(cuLaunchKernelEx(&config, function, parameters, NULL));
	case 2:
		return CALL(cuLaunchKernel_ptsz(function, 4, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
	case 3:
		return CALL(cuLaunchCooperativeKernel(function, 4, 1, 1, 64, 1, 1, 0, stream, parameters));
	default:
		return CALL(cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
	}
}

static int driver_set(uint64_t address, unsigned char byte, uint64_t bytes, void *stream, unsigned way)
{
	switch (way % 4) {
	case 1:
		return CALL(cuMemsetD32Async(address, byte * 0x01010101u, bytes / 4, stream));
	case 2:
		return CALL(cuMemsetD16Async(address, (unsigned short)(byte * 0x0101u), bytes / 2, stream));
	case 3:
		return CALL(cuMemsetD8Async_ptsz(address, byte, bytes, stream));
	default:
		return CALL(cuMemsetD8Async(address, byte, bytes, stream));
	}
}

static int driver_copy(uint64_t to, uint64_t from, uint64_t bytes, enum way how, void *stream, unsigned way)
{
	if (way % 2)
		return CALL(cuMemcpyAsync(to, from, bytes, stream));
	switch (how) {
	case UPLOAD:
		return CALL(cuMemcpyHtoDAsync_v2(to, host_pointer(from), bytes, stream));
	case DOWNLOAD:
		return CALL(cuMemcpyDtoHAsync_v2(host_pointer(to), from, bytes, stream));
	default:
		return CALL(cuMemcpyDtoDAsync_v2(to, from, bytes, stream));
	}
}

static int driver_copy_now(uint64_t to, uint64_t from, uint64_t bytes, enum way how, unsigned way)
{
	if (way % 2)
		return CALL(cuMemcpy(to, from, bytes));
	return how == UPLOAD ? CALL(cuMemcpyHtoD_v2(to, host_pointer(from), bytes))
	                     : CALL(cuMemcpyDtoH_v2(host_pointer(to), from, bytes));
}

static int driver_copy_peer(uint64_t to, int to_device, uint64_t from, int from_device, uint64_t bytes,
                            void *stream)
{
	return CALL(cuMemcpyPeerAsync(to, contexts[to_device], from, contexts[from_device], bytes, stream));
}

static int driver_call(void *stream, void (*function)(void *), void *data)
{
	return CALL(cuLaunchHostFunc(stream, function, data));
}

static int driver_ordered(uint64_t *address, uint64_t bytes, void *stream)
{
	return CALL(cuMemAllocAsync((CUdeviceptr *)address, bytes, stream));
}

static int driver_ordered_free(uint64_t address, void *stream)
{
	return CALL(cuMemFreeAsync(address, stream));
}

/* Which devices have the access that the program gave. */
static int ask_access(uint64_t address, uint64_t *figure)
{
	for (int device = 0; device < DEVICES; device++) {
		const CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
		unsigned long long flags = 0;

		TRY(cuMemGetAccess(&flags, &location, address));
		*figure = *figure * 4 + flags;
	}
	return 0;
}

static int driver_ask(const struct block *block, uint64_t offset, uint64_t *figure)
{
	unsigned type = 0, managed = 0;
	int device = -1;
	CUdeviceptr start = 0;
	size_t size = 0;
	CUpointer_attribute several[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
	                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
	                                 CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
	                                 CU_POINTER_ATTRIBUTE_RANGE_SIZE};
	void *values[] = {&type, &managed, &device, &start, &size};

	TRY(cuPointerGetAttributes(5, several, values, block->address + offset));
	*figure = type * 100 + (managed & 255) * 10 + (unsigned)(device + 1);
	*figure = *figure * 2 + (start == block->address);
	*figure = (*figure << 32) + size;
	if (block->kind == PLAIN || block->kind == ORDERED)
		TRY(cuMemGetAddressRange_v2(&start, &size, block->address + offset));
	return block->kind == CREATED || block->kind == CREATED_SHARED
	           ? ask_access(block->address + offset, figure)
	           : 0;
}

static int driver_info(uint64_t *free_bytes, uint64_t *total)
{
	return CALL(cuMemGetInfo_v2((size_t *)free_bytes, (size_t *)total));
}

static int driver_nonsense(unsigned n, void *stream, uint64_t *figure)
{
	CUdeviceptr address = 1;
	size_t pitch = 1;
	int error = 0;

	switch (n % 11) {
	case 0:
		error = CALL(cuMemAlloc_v2(&address, 0));
		break;
	case 1:
		error = CALL(cuMemAlloc_v2(NULL, 100));
		break;
	case 2:
		error = CALL(cuMemAlloc_v2(&address, 1ull << 60));
		break;
	case 3:
		error = CALL(cuMemFree_v2(0));
		break;
	case 4:
		error = CALL(cuMemFree_v2(0x123456));
		break;
	case 5:
		error = CALL(cuMemFreeAsync(0x123456, stream));
		break;
	case 6:
		error = CALL(cuMemAllocPitch_v2(&address, &pitch, 10, 10, 3));
		break;
	case 7:
		error = CALL(cuMemAllocAsync(&address, 0, stream));
		break;
	case 8:
		error = CALL(cuMemAllocManaged(&address, 0, CU_MEM_ATTACH_GLOBAL));
		break;
	case 9:
		error = CALL(cuMemcpyDtoD_v2(0x123456, 0x654321, 8));
		break;
	default:
		error = CALL(cuCtxEnablePeerAccess(NULL, 0));
		break;
	}
	*figure = address + pitch;
	return error;
}

static int copy_array(CUarray array, uint64_t rows, const void *from, void *to)
{
	CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
	                      .srcHost = from,
	                      .srcPitch = 1024,
	                      .dstMemoryType = CU_MEMORYTYPE_ARRAY,
	                      .dstArray = array,
	                      .WidthInBytes = 1024,
	                      .Height = rows};

	TRY(cuMemcpy2D_v2(&copy));
	copy = (CUDA_MEMCPY2D){.srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                       .srcArray = array,
	                       .dstMemoryType = CU_MEMORYTYPE_HOST,
	                       .dstHost = to,
	                       .dstPitch = 1024,
	                       .WidthInBytes = 1024,
	                       .Height = rows};
	return CALL(cuMemcpy2D_v2(&copy));
}

static int driver_array(uint64_t rows, const void *from, void *to)
{
	const CUDA_ARRAY_DESCRIPTOR wanted = {256, rows, CU_AD_FORMAT_FLOAT, 1};
	CUarray array;

	TRY(cuArrayCreate_v2(&array, &wanted));
	int error = copy_array(array, rows, from, to);
	int ended = CALL(cuArrayDestroy(array));
	return error ? error : ended;
}

static int driver_context(int device, void **context)
{
	return CALL(cuCtxCreate_v2((CUcontext *)context, 0, device));
}

/* The present context is popped by its end. */
static int driver_context_end(void *context)
{
	return CALL(cuCtxDestroy_v2(context));
}

const struct api api = {
    .open = driver_open,
    .close = driver_close,
    .use = driver_use,
    .use_by = driver_use_by,
    .settle = driver_settle,
    .trim = driver_trim,
    .changed = driver_changed,
    .set_peers = driver_set_peers,
    .stream_make = driver_stream_make,
    .stream_end = driver_stream_end,
    .wait = driver_wait,
    .event_make = driver_event_make,
    .event_end = driver_event_end,
    .order = driver_order,
    .pool_make = driver_pool_make,
    .pool_end = driver_pool_end,
    .pool_trim = driver_pool_trim,
    .pool_keep = driver_pool_keep,
    .take = driver_take,
    .give = driver_give,
    .kinds = {[PLAIN... POOLED_SHARED] = true},
    .prefetch = driver_prefetch,
    .launch = driver_launch,
    .set = driver_set,
    .copy = driver_copy,
    .copy_now = driver_copy_now,
    .copy_peer = driver_copy_peer,
    .call = driver_call,
    .ordered = driver_ordered,
    .ordered_free = driver_ordered_free,
    .ask = driver_ask,
    .info = driver_info,
    .nonsense = driver_nonsense,
    .array = driver_array,
    .context = driver_context,
    .context_end = driver_context_end,
    .context_has_memory = true,
};

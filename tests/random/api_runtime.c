/* The CUDA runtime, or with -DHIP AMD's HIP: the same functions under other names. A thread has a device, and no context. */
#include "api_runtime.h"

#include <string.h>

static library_handle libraries[DEVICES];
kernel_handle functions[DEVICES][KERNELS];

#ifdef HIP
static int load(int device, const char *path)
{
	return CALL(hipModuleLoad(&libraries[device], path));
}

static int get_kernel(int device, const char *name, kernel_handle *kernel)
{
	return CALL(hipModuleGetFunction(kernel, libraries[device], name));
}
#else
static int load(int device, const char *path)
{
	return CALL(cudaLibraryLoadFromFile(&libraries[device], path, NULL, NULL, 0, NULL, NULL, 0));
}

static int get_kernel(int device, const char *name, kernel_handle *kernel)
{
	return CALL(cudaLibraryGetKernel(kernel, libraries[device], name));
}
#endif

static int runtime_open(int device, const char *kernels)
{
	static const char *const names[KERNELS] = {"fill", "add", "copy"};

	TRY(RUNTIME(SetDevice)(device));
	TRY(RUNTIME(Free)(NULL));
	int error = load(device, kernels);
	for (unsigned i = 0; i < KERNELS && !error; i++)
		error = get_kernel(device, names[i], &functions[device][i]);
	return error;
}

static int runtime_close(int device, unsigned how)
{
	TRY(RUNTIME(SetDevice)(device));
#ifdef HIP
	if (how % 2)
		TRY(hipDevicePrimaryCtxReset(device)); /* which ends nothing */
#else
	(void)how;
#endif
	return CALL(RUNTIME(DeviceReset)());
}

static int runtime_trim(int device)
{
	RUNTIME(MemPool_t) pool;

	TRY(RUNTIME(DeviceGetDefaultMemPool)(&pool, device));
	TRY(RUNTIME(MemPoolTrimTo)(pool, 0));
	return graphs.trim ? graphs.trim(device) : 0;
}

static int runtime_settle(int device)
{
	TRY(RUNTIME(DeviceSynchronize)());
	return runtime_trim(device);
}

static int runtime_use(int device)
{
	return CALL(RUNTIME(SetDevice)(device));
}

#ifdef HIP
/* A context is a name of its device. */
static int runtime_use_by(int device, unsigned n, uint64_t *figure)
{
	hipCtx_t context = NULL, popped = NULL;
	unsigned flags;
	int active = 0;

	switch (n % 4) {
	case 1:
		TRY(hipDevicePrimaryCtxRetain(&context, device));
		TRY(hipCtxSetCurrent(context));
		return CALL(hipDevicePrimaryCtxRelease(device));
	case 2:
		TRY(hipDevicePrimaryCtxRetain(&context, device));
		TRY(hipCtxPushCurrent(context));
		TRY(hipCtxPopCurrent(&popped));
		*figure = popped == context;
		return CALL(hipSetDevice(device));
	default:
		TRY(hipDevicePrimaryCtxGetState(device, &flags, &active));
		*figure = (uint64_t)active;
		return CALL(hipSetDevice(device));
	}
}

static int runtime_context(int device, void **context)
{
	return CALL(hipCtxCreate((hipCtx_t *)context, 0, device));
}

static int runtime_context_end(void *context)
{
	return CALL(hipCtxDestroy(context));
}
#endif

static unsigned runtime_changed(int device, bool failed)
{
	int current = -1;
	unsigned changed = 0;

	if (CALL(RUNTIME(GetLastError)()) && !failed)
		changed |= 2;
	if (CALL(RUNTIME(GetDevice)(&current)) || current != device)
		changed |= 1;
	return changed;
}

static int runtime_set_peers(int device, int other, bool on)
{
	(void)device;
	return on ? CALL(RUNTIME(DeviceEnablePeerAccess)(other, 0))
	          : CALL(RUNTIME(DeviceDisablePeerAccess)(other));
}

static int runtime_stream_make(void **stream)
{
	return CALL(RUNTIME(StreamCreateWithFlags)((RUNTIME(Stream_t) *)stream, 1 /* not blocking */));
}

static int runtime_stream_end(void *stream)
{
	return CALL(RUNTIME(StreamDestroy)(stream));
}

static int runtime_wait(void *stream)
{
	return CALL(RUNTIME(StreamSynchronize)(stream));
}

static int runtime_event_make(void **event)
{
	return CALL(RUNTIME(EventCreateWithFlags)((RUNTIME(Event_t) *)event, 2 /* without times */));
}

static int runtime_event_end(void *event)
{
	return CALL(RUNTIME(EventDestroy)(event));
}

static int runtime_order(void *event, void *before, void *after)
{
	TRY(RUNTIME(EventRecord)(event, before));
	return CALL(RUNTIME(StreamWaitEvent)(after, event, 0));
}

static int runtime_pool_make(int device, bool shared, void **pool)
{
	const struct RUNTIME(MemPoolProps) wanted = {
	    .allocType = RUNTIME(MemAllocationTypePinned),
	    .handleTypes = shared ? RUNTIME(MemHandleTypePosixFileDescriptor) : RUNTIME(MemHandleTypeNone),
	    .location = {RUNTIME(MemLocationTypeDevice), device}};

	return CALL(RUNTIME(MemPoolCreate)((RUNTIME(MemPool_t) *)pool, &wanted));
}

static int runtime_pool_end(void *pool)
{
	return CALL(RUNTIME(MemPoolDestroy)(pool));
}

static int runtime_pool_trim(void *pool)
{
	return CALL(RUNTIME(MemPoolTrimTo)(pool, 0));
}

static int runtime_pool_keep(void *pool, uint64_t bytes)
{
	return CALL(RUNTIME(MemPoolSetAttribute)(pool, RUNTIME(MemPoolAttrReleaseThreshold), &bytes));
}

static int runtime_ordered(uint64_t *address, uint64_t bytes, void *stream)
{
	void *made = NULL;
	int error = CALL(RUNTIME(MallocAsync)(&made, bytes, stream));

	*address = (uintptr_t)made;
	return error;
}

static int runtime_ordered_free(uint64_t address, void *stream)
{
	return CALL(RUNTIME(FreeAsync)(pointer(address), stream));
}

#if defined(HIP) && HIP_RELEASE >= 7
/* Undoes what it did if a step fails. The memory is of the current device, whatever the properties say. */
static int take_created(struct block *block)
{
	struct hip_allocation_prop_6 wanted = {.type = hipMemAllocationTypePinned,
	                                       .location = {hipMemLocationTypeDevice, block->device}};
	const hipMemAccessDesc access = {wanted.location, hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t handle;
	void *at = NULL;

	TRY(hipMemCreate(&handle, block->bytes, (void *)&wanted, 0));
	int error = CALL(hipMemAddressReserve(&at, block->bytes, 0, NULL, 0));
	if (!error) {
		error = CALL(hipMemMap(at, block->bytes, 0, handle, 0));
		if (!error && (error = CALL(hipMemSetAccess(at, block->bytes, &access, 1))))
			CALL(hipMemUnmap(at, block->bytes));
		if (error)
			CALL(hipMemAddressFree(at, block->bytes));
	}
	int released = CALL(hipMemRelease(handle));
	block->address = (uintptr_t)at;
	return error ? error : released;
}

static int give_created(const struct block *block)
{
	TRY(hipMemUnmap(pointer(block->address), block->bytes));
	return CALL(hipMemAddressFree(pointer(block->address), block->bytes));
}

static int ask_created(const struct block *block, uint64_t offset, uint64_t *figure)
{
	for (int device = 0; device < DEVICES; device++) {
		const hipMemLocation location = {hipMemLocationTypeDevice, device};
		unsigned long long flags = 0;

		TRY(hipMemGetAccess(&flags, &location, pointer(block->address + offset)));
		*figure = *figure * 4 + flags;
	}
	return 0;
}
#else /* the CUDA runtime has no such memory; before ROCm 7.2 none of it is ever on the host */
static int take_created(struct block *block)
{
	(void)block;
	return -1;
}

static int give_created(const struct block *block)
{
	(void)block;
	return -1;
}

#ifdef HIP
static int ask_created(const struct block *block, uint64_t offset, uint64_t *figure)
{
	(void)block;
	(void)offset;
	(void)figure;
	return -1;
}
#endif
#endif

static int take_pointer(struct block *block, void **made, void *stream)
{
	size_t width = block->bytes < 4096 ? block->bytes : 4096, pitch;

	switch (block->kind) {
	case PLAIN:
		return CALL(RUNTIME(Malloc)(made, block->bytes));
	case PITCHED: /* of so many whole rows that the block is in it */
		return CALL(RUNTIME(MallocPitch)(made, &pitch, width, (block->bytes + width - 1) / width));
	case MANAGED:
		return CALL(RUNTIME(MallocManaged)(made, block->bytes, 1 /* for all streams */));
	case PINNED:
#ifdef HIP
		return CALL(hipHostMalloc(made, block->bytes, hipHostMallocPortable | hipHostMallocMapped));
#else
		return CALL(cudaHostAlloc(made, block->bytes, cudaHostAllocPortable | cudaHostAllocMapped));
#endif
	case POOLED:
	case POOLED_SHARED:
		return CALL(RUNTIME(MallocFromPoolAsync)(made, block->bytes, block->pool, stream));
	default:
		return CALL(RUNTIME(MallocAsync)(made, block->bytes, stream));
	}
}

static int runtime_take(struct block *block, void *stream)
{
	void *made = NULL;

	if (block->kind == REGISTERED)
		return CALL(RUNTIME(HostRegister)(pointer(block->address), block->bytes, 1 /* portable */));
	if (block->kind == CREATED)
		return take_created(block);
	int error = take_pointer(block, &made, stream);
	block->address = (uintptr_t)made;
	return error;
}

static int runtime_give(struct block *block, void *stream, bool other)
{
	void *gone = pointer(block->address);

	if (block->kind == REGISTERED)
		return CALL(RUNTIME(HostUnregister)(gone));
	if (block->kind == CREATED)
		return give_created(block);
	if (block->kind == PINNED)
#ifdef HIP
		return CALL(hipHostFree(gone));
#else
		return CALL(cudaFreeHost(gone));
#endif
	bool in_order = block_is_in_order(block) != other;
	return in_order ? CALL(RUNTIME(FreeAsync)(gone, stream)) : CALL(RUNTIME(Free)(gone));
}

static int runtime_prefetch(const struct block *block, unsigned n, void *stream)
{
#ifdef HIP
	int where = n % 2 ? block->device : -1 /* the host */;
	return CALL(hipMemPrefetchAsync(pointer(block->address), block->bytes, where, stream));
#else
	struct cudaMemLocation where = {n % 2 ? cudaMemLocationTypeDevice : cudaMemLocationTypeHost,
	                                n % 2 ? block->device : 0};
	return CALL(cudaMemPrefetchAsync(pointer(block->address), block->bytes, where, 0, stream));
#endif
}

static int runtime_launch(int device, enum kernel kernel, void *stream, void **parameters, unsigned way)
{
	kernel_handle function = functions[device][kernel];

	(void)way;
#ifdef HIP
	return CALL(hipModuleLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, stream, parameters, NULL));
#else
	return CALL(cudaLaunchKernel(function, (dim3){4, 1, 1}, (dim3){64, 1, 1}, parameters, 0, stream));
#endif
}

static int runtime_set(uint64_t address, unsigned char byte, uint64_t bytes, void *stream, unsigned way)
{
	(void)way;
	return CALL(RUNTIME(MemsetAsync)(pointer(address), byte, bytes, stream));
}

static enum RUNTIME(MemcpyKind) kind_of(enum way how, unsigned way)
{
	if (way % 2)
		return RUNTIME(MemcpyDefault);
	return how == UPLOAD     ? RUNTIME(MemcpyHostToDevice)
	       : how == DOWNLOAD ? RUNTIME(MemcpyDeviceToHost)
	                         : RUNTIME(MemcpyDeviceToDevice);
}

static int runtime_copy(uint64_t to, uint64_t from, uint64_t bytes, enum way how, void *stream, unsigned way)
{
	return CALL(RUNTIME(MemcpyAsync)(pointer(to), pointer(from), bytes, kind_of(how, way), stream));
}

static int runtime_copy_now(uint64_t to, uint64_t from, uint64_t bytes, enum way how, unsigned way)
{
	return CALL(RUNTIME(Memcpy)(pointer(to), pointer(from), bytes, kind_of(how, way)));
}

#ifndef HIP /* the simulated HIP has it not */
static int runtime_call(void *stream, void (*function)(void *), void *data)
{
	return CALL(cudaLaunchHostFunc(stream, function, data));
}
#endif

#ifdef HIP
static int runtime_ask(const struct block *block, uint64_t offset, uint64_t *figure)
{
	hipDeviceptr_t start = NULL;
	size_t size = 0;

	if (block->kind == CREATED)
		return ask_created(block, offset, figure);
	if (block->kind != PLAIN && block->kind != ORDERED)
		return 0;
	TRY(hipMemGetAddressRange(&start, &size, pointer(block->address + offset)));
	*figure = size * 2 + (start == pointer(block->address));
	return 0;
}
#else
static int runtime_ask(const struct block *block, uint64_t offset, uint64_t *figure)
{
	struct cudaPointerAttributes about = {0};

	TRY(cudaPointerGetAttributes(&about, pointer(block->address + offset)));
	*figure = (unsigned)about.type * 100 + (unsigned)about.device * 10 +
	          (about.devicePointer != NULL) * 2 + (about.hostPointer != NULL);
	return 0;
}
#endif

static int runtime_info(uint64_t *free_bytes, uint64_t *total)
{
	return CALL(RUNTIME(MemGetInfo)((size_t *)free_bytes, (size_t *)total));
}

static int runtime_nonsense(unsigned n, void *stream, uint64_t *figure)
{
	void *made = NULL;
	size_t pitch = 1;
	int error = 0;

	switch (n % 9) {
	case 0:
		error = CALL(RUNTIME(Malloc)(&made, 0));
		break;
	case 1:
		error = CALL(RUNTIME(Malloc)(NULL, 100));
		break;
	case 2:
		error = CALL(RUNTIME(Malloc)(&made, (size_t)1 << 60));
		break;
	case 3:
		error = CALL(RUNTIME(Free)(NULL));
		break;
	case 4:
		error = CALL(RUNTIME(Free)(pointer(0x123456)));
		break;
	case 5:
		error = CALL(RUNTIME(FreeAsync)(pointer(0x123456), stream));
		break;
	case 6:
		error = CALL(RUNTIME(MallocPitch)(&made, &pitch, 0, 10));
		break;
	case 7:
		error = CALL(RUNTIME(MallocAsync)(&made, 0, stream));
		break;
	default:
		error = CALL(RUNTIME(SetDevice)(99));
		break;
	}
	*figure = (made != NULL) + pitch;
	return error;
}

const struct api api = {
    .open = runtime_open,
    .close = runtime_close,
    .use = runtime_use,
#ifdef HIP
    .use_by = runtime_use_by,
    .context = runtime_context,
    .context_end = runtime_context_end,
#endif
    .settle = runtime_settle,
    .trim = runtime_trim,
    .changed = runtime_changed,
    .set_peers = runtime_set_peers,
    .stream_make = runtime_stream_make,
    .stream_end = runtime_stream_end,
    .wait = runtime_wait,
    .event_make = runtime_event_make,
    .event_end = runtime_event_end,
    .order = runtime_order,
    .pool_make = runtime_pool_make,
    .pool_end = runtime_pool_end,
    .pool_trim = runtime_pool_trim,
    .pool_keep = runtime_pool_keep,
    .take = runtime_take,
    .give = runtime_give,
#if defined(HIP) && HIP_RELEASE >= 7
    .kinds = {[PLAIN... CREATED] = true},
#elif defined(HIP)
    .kinds = {[PLAIN... POOLED] = true},
#else
    .kinds = {[PLAIN... POOLED] = true, [POOLED_SHARED] = true},
#endif
    .prefetch = runtime_prefetch,
    .launch = runtime_launch,
    .set = runtime_set,
    .copy = runtime_copy,
    .copy_now = runtime_copy_now,
#ifndef HIP
    .call = runtime_call,
#endif
    .ordered = runtime_ordered,
    .ordered_free = runtime_ordered_free,
    .ask = runtime_ask,
    .info = runtime_info,
    .nonsense = runtime_nonsense,
};

/* Memory of every kind: made, filled by kernels that nobody waits for, verified, given back. */
#include "storm.h"

#include <stdlib.h>

#define GRANULE (2ull << 20)

static uint64_t some_bytes(struct storm_worker *worker)
{
	static const uint64_t usual[] = {1, 8, 100, 256, 513, 4096, 65536, 200000};
	if (storm_random(worker, 8))
		return usual[storm_random(worker, sizeof(usual) / sizeof(usual[0]))] +
		       storm_random(worker, 64);
	return 1 + storm_random(worker, storm_largest);
}

static void made(struct storm_slot *slot, enum storm_kind kind, CUresult result, uint64_t address,
                 uint64_t bytes)
{
	if (!result)
		*slot = (struct storm_slot){.kind = kind, .address = address, .bytes = bytes & ~7ull};
}

static void make_plain(struct storm_worker *worker, struct storm_slot *slot)
{
	CUdeviceptr address = 1;
	uint64_t bytes = some_bytes(worker);
	CUresult result = cuMemAlloc_v2(&address, bytes);
	storm_say(worker, "cuMemAlloc_v2", result, address % 256);
	made(slot, STORM_PLAIN, result, address, bytes);
}

static void make_pitch(struct storm_worker *worker, struct storm_slot *slot)
{
	CUdeviceptr address = 1;
	size_t pitch = 0, width = 1 + storm_random(worker, 5000), height = 1 + storm_random(worker, 64);
	CUresult result = cuMemAllocPitch_v2(&address, &pitch, width, height, 4u << storm_random(worker, 3));
	storm_say(worker, "cuMemAllocPitch_v2", result, pitch);
	made(slot, STORM_PLAIN, result, address, pitch * height);
}

static void make_managed(struct storm_worker *worker, struct storm_slot *slot)
{
	CUdeviceptr address = 1;
	uint64_t bytes = 1 + storm_random(worker, 100000);
	CUresult result = cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL);
	storm_say(worker, "cuMemAllocManaged", result, address % 256);
	made(slot, STORM_MANAGED, result, address, bytes);
}

static void make_async(struct storm_worker *worker, struct storm_slot *slot)
{
	CUdeviceptr address = 1;
	uint64_t bytes = some_bytes(worker);
	CUresult result;
	switch (storm_random(worker, 4)) {
	case 0:
		result = cuMemAllocAsync(&address, bytes, worker->stream);
		storm_say(worker, "cuMemAllocAsync", result, address % 256);
		break;
	case 1:
		result = cuMemAllocAsync_ptsz(&address, bytes, worker->stream);
		storm_say(worker, "cuMemAllocAsync_ptsz", result, address % 256);
		break;
	case 2:
		result = cuMemAllocFromPoolAsync(&address, bytes, worker->pool, worker->stream);
		storm_say(worker, "cuMemAllocFromPoolAsync", result, address % 256);
		break;
	default:
		result = cuMemAllocFromPoolAsync_ptsz(&address, bytes, worker->pool, worker->stream);
		storm_say(worker, "cuMemAllocFromPoolAsync_ptsz", result, address % 256);
		break;
	}
	made(slot, STORM_ASYNC, result, address, bytes);
}

static void make_host(struct storm_worker *worker, struct storm_slot *slot)
{
	void *host = NULL;
	uint64_t bytes = 1 + storm_random(worker, 20000);
	CUresult result;
	if (storm_random(worker, 2)) {
		result = cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
		storm_say(worker, "cuMemHostAlloc", result, 0);
	} else {
		result = cuMemAllocHost_v2(&host, bytes);
		storm_say(worker, "cuMemAllocHost_v2", result, 0);
	}
	made(slot, STORM_HOST, result, (uintptr_t)host, bytes);
	slot->host = host;
}

static void make_registered(struct storm_worker *worker, struct storm_slot *slot)
{
	void *host;
	uint64_t bytes = 4096 * (1 + storm_random(worker, 4));
	if (posix_memalign(&host, 4096, bytes))
		return;
	CUresult result = cuMemHostRegister_v2(host, bytes, 0);
	storm_say(worker, "cuMemHostRegister_v2", result, 0);
	made(slot, STORM_REGISTERED, result, (uintptr_t)host, bytes);
	if (result)
		free(host);
	else
		slot->host = host;
}

static void make_array(struct storm_worker *worker, struct storm_slot *slot)
{
	CUarray array = NULL;
	CUDA_ARRAY_DESCRIPTOR flat = {1 + storm_random(worker, 300), storm_random(worker, 100),
	                              CU_AD_FORMAT_FLOAT, 4};
	CUDA_ARRAY3D_DESCRIPTOR deep = {1 + storm_random(worker, 64),
	                                1 + storm_random(worker, 64),
	                                1 + storm_random(worker, 8),
	                                CU_AD_FORMAT_FLOAT,
	                                2,
	                                0};
	CUresult result;
	if (storm_random(worker, 2)) {
		result = cuArrayCreate_v2(&array, &flat);
		storm_say(worker, "cuArrayCreate_v2", result, 0);
	} else {
		result = cuArray3DCreate_v2(&array, &deep);
		storm_say(worker, "cuArray3DCreate_v2", result, 0);
	}
	made(slot, STORM_ARRAY, result, (uintptr_t)array, 0);
}

static void make_mipmap(struct storm_worker *worker, struct storm_slot *slot)
{
	CUmipmappedArray array = NULL;
	CUDA_ARRAY3D_DESCRIPTOR base = {64, 64, 0, CU_AD_FORMAT_FLOAT, 1, 0};
	CUresult result = cuMipmappedArrayCreate(&array, &base, 1 + (unsigned)storm_random(worker, 6));
	storm_say(worker, "cuMipmappedArrayCreate", result, 0);
	made(slot, STORM_MIPMAP, result, (uintptr_t)array, 0);
}

/* Addresses, physical memory, mapping, access; half of the programs release the handle at once. */
static void make_mapped(struct storm_worker *worker, struct storm_slot *slot)
{
	CUdeviceptr address;
	CUmemGenericAllocationHandle handle;
	uint64_t bytes = GRANULE;
	CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemAllocationProp got = {0};
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUresult result = cuMemCreate(&handle, bytes, &wanted, 0);
	storm_say(worker, "cuMemCreate", result, 0);
	if (result)
		return;
	result = cuMemGetAllocationPropertiesFromHandle(&got, handle);
	storm_say(worker, "cuMemGetAllocationPropertiesFromHandle", result,
	          got.location.type * 10u + got.type);
	storm_say(worker, "cuMemAddressReserve", cuMemAddressReserve(&address, bytes, 0, 0, 0), 0);
	storm_say(worker, "cuMemMap", cuMemMap(address, bytes, 0, handle, 0), 0);
	storm_say(worker, "cuMemSetAccess", cuMemSetAccess(address, bytes, &access, 1), 0);
	made(slot, STORM_MAPPED, CUDA_SUCCESS, address, bytes);
	slot->handle = handle;
	if (storm_random(worker, 2)) {
		storm_say(worker, "cuMemRelease", cuMemRelease(handle), 0);
		slot->handle = 0;
	}
}

void storm_make(struct storm_worker *worker, struct storm_slot *slot)
{
	static void (*const ways[])(struct storm_worker *, struct storm_slot *) = {
	    make_plain, make_plain, make_plain,  make_async,  make_async,      make_pitch,
	    make_host,  make_array, make_mapped, make_mipmap, make_registered, make_managed};
	void (*way)(struct storm_worker *, struct storm_slot *) =
	    ways[storm_random(worker, sizeof(ways) / sizeof(ways[0]))];
	if (way != make_managed || storm_managed)
		way(worker, slot);
}

static void launch(struct storm_worker *worker, CUfunction function, void **parameters)
{
	cuLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, worker->stream, parameters, NULL);
	worker->busy = true;
}

void storm_fill(struct storm_worker *worker, struct storm_slot *slot)
{
	uint64_t words = slot->bytes / 8;
	if (!words)
		return;
	slot->seed = 1 + storm_random(worker, 1u << 30);
	launch(worker, worker->fill, (void *[]){&slot->address, &words, &slot->seed});
}

void storm_verify(struct storm_worker *worker, struct storm_slot *slot)
{
	uint64_t words = slot->bytes / 8, out = (uintptr_t)worker->mismatches;
	if (slot->seed && words)
		launch(worker, worker->verify, (void *[]){&slot->address, &words, &slot->seed, &out});
}

static void give_mapped(struct storm_worker *worker, struct storm_slot *slot)
{
	/* Nothing waits for the device here but this. */
	cuStreamSynchronize(worker->stream);
	worker->busy = false;
	CUmemGenericAllocationHandle more = 0;
	if (storm_random(worker, 4) == 0) {
		CUresult result = cuMemRetainAllocationHandle(&more, (void *)(uintptr_t)slot->address);
		storm_say(worker, "cuMemRetainAllocationHandle", result, 0);
	}
	storm_say(worker, "cuMemUnmap", cuMemUnmap(slot->address, slot->bytes), 0);
	if (more)
		storm_say(worker, "cuMemRelease", cuMemRelease(more), 0);
	if (slot->handle)
		storm_say(worker, "cuMemRelease", cuMemRelease(slot->handle), 0);
	storm_say(worker, "cuMemAddressFree", cuMemAddressFree(slot->address, slot->bytes), 0);
}

/*
 * Plain memory may be given back while kernels use it: the call waits, or is in the order of the stream. The driver does not wait for
 * those that use memory of a pool (docs/measurements.md), so the program must.
 */
static void give_memory(struct storm_worker *worker, struct storm_slot *slot)
{
	uint64_t how = storm_random(worker, 4);
	if (how == 0) {
		storm_say(worker, "cuMemFreeAsync_ptsz", cuMemFreeAsync_ptsz(slot->address, worker->stream),
		          0);
	} else if (how == 1) {
		storm_say(worker, "cuMemFreeAsync", cuMemFreeAsync(slot->address, worker->stream), 0);
	} else {
		if (slot->kind == STORM_ASYNC)
			cuStreamSynchronize(worker->stream);
		storm_say(worker, "cuMemFree_v2", cuMemFree_v2(slot->address), 0);
	}
}

void storm_give(struct storm_worker *worker, struct storm_slot *slot)
{
	storm_verify(worker, slot);
	switch (slot->kind) {
	case STORM_PLAIN:
	case STORM_ASYNC:
		give_memory(worker, slot);
		break;
	case STORM_MANAGED: /* not in stream order: the driver does not support that */
		storm_say(worker, "cuMemFree_v2", cuMemFree_v2(slot->address), 0);
		break;
	case STORM_HOST:
		cuStreamSynchronize(worker->stream);
		storm_say(worker, "cuMemFreeHost", cuMemFreeHost(slot->host), 0);
		break;
	case STORM_REGISTERED:
		cuStreamSynchronize(worker->stream);
		storm_say(worker, "cuMemHostUnregister", cuMemHostUnregister(slot->host), 0);
		free(slot->host);
		break;
	case STORM_ARRAY:
		storm_say(worker, "cuArrayDestroy", cuArrayDestroy((CUarray)(uintptr_t)slot->address), 0);
		break;
	case STORM_MIPMAP:
		storm_say(worker, "cuMipmappedArrayDestroy",
		          cuMipmappedArrayDestroy((CUmipmappedArray)(uintptr_t)slot->address), 0);
		break;
	case STORM_MAPPED:
		give_mapped(worker, slot);
		break;
	case STORM_EMPTY:
		break;
	}
	*slot = (struct storm_slot){0};
}

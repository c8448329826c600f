/* Attributes of pointers, each as on an H200 with driver 580.159. */
#include <pthread.h>
#include <stdlib.h>

#include "cuda_entry.h"

#define HW_DECOMPRESS 21 /* CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, newer than the others */

/* Ids of allocations that the program made synchronous. It is reported, and has no effect. */
struct sync_memops {
	struct sync_memops *next;
	uint64_t id;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sync_memops *sync_memops;

static struct sync_memops **find_sync_memops(uint64_t id)
{
	struct sync_memops **link = &sync_memops;

	while (*link && (*link)->id != id)
		link = &(*link)->next;
	return link;
}

static bool has_sync_memops(uint64_t id)
{
	pthread_mutex_lock(&lock);
	bool found = *find_sync_memops(id);
	pthread_mutex_unlock(&lock);
	return found;
}

static CUresult set_sync_memops(uint64_t id, bool on)
{
	struct sync_memops *spare = on ? malloc(sizeof(*spare)) : NULL;

	if (on && !spare)
		return CUDA_ERROR_OUT_OF_MEMORY;
	pthread_mutex_lock(&lock);
	struct sync_memops **link = find_sync_memops(id);
	if (on && !*link) {
		*spare = (struct sync_memops){sync_memops, id};
		sync_memops = spare;
		spare = NULL;
	} else if (!on && *link) {
		spare = *link;
		*link = spare->next;
	}
	pthread_mutex_unlock(&lock);
	free(spare);
	return CUDA_SUCCESS;
}

static uint64_t handle_types(const struct sim_pointer *about)
{
	const CUmemPoolProps *props = about->pool ? driver_pool_props((CUmemoryPool)about->pool) : NULL;

	if (about->physical)
		return ((struct physical_face *)sim_physical_face(about->physical))->handle_types;
	return props ? props->handleTypes : 0;
}

/*
 * CUDA_ERROR_INVALID_VALUE: this memory has no such attribute. A query of one attribute fails then.
 * A query of several gives the answer of answer_nothing.
 */
static CUresult query_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr,
                                const struct sim_pointer *about)
{
	bool host = about->kind == SIM_HOST || about->kind == SIM_REGISTERED;
	bool vmm = about->kind == SIM_VMM,
	     plain = about->kind == SIM_DEVICE && !about->pool && about->context;

	if ((int)attribute == HW_DECOMPRESS) {
		*(unsigned *)data = plain;
		return CUDA_SUCCESS;
	}
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)data = (CUcontext)about->context;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned *)data = about->on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)data = ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && about->kind != SIM_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)data = (void *)ptr;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned *)data = about->kind == SIM_MANAGED || has_sync_memops(about->id);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)data = about->id;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned *)data = about->kind == SIM_MANAGED;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = about->device;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned *)data = plain;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		/* For VMM the reservation. A real driver has none for a host pool. */
		*(CUdeviceptr *)data = about->pool && host ? 0 : about->base;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)data = about->size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned *)data = !vmm || about->mapped;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(uint64_t *)data = handle_types(about);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned *)data =
		    plain ||
		    (about->physical && ((struct physical_face *)sim_physical_face(about->physical))->rdma);
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = about->access_write ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
		                    : about->access     ? CU_MEM_ACCESS_FLAGS_PROT_READ
		                                        : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)data = (CUmemoryPool)about->pool;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)data = about->map_size;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)data = about->map_base;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* The answer of a query of several attributes for one that does not exist. */
static CUresult answer_nothing(void *data, CUpointer_attribute attribute)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(uint64_t *)data = 0;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)data = -2;
		return CUDA_SUCCESS;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
	case CU_POINTER_ATTRIBUTE_MAPPED:
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(unsigned *)data = 0;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static bool find_pointer(CUdeviceptr ptr, struct sim_pointer *about)
{
	return sim_pointer(ptr, about) && (about->kind != SIM_VMM || about->mapped);
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct sim_pointer about;

	ENTER(cuPointerGetAttribute, CONTEXT);
	if (!data || !find_pointer(ptr, &about))
		return CUDA_ERROR_INVALID_VALUE;
	return query_attribute(data, attribute, ptr, &about);
}

CUresult cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute *attributes, void **data,
                                CUdeviceptr ptr)
{
	struct sim_pointer about;
	CUresult result = CUDA_SUCCESS;

	ENTER(cuPointerGetAttributes, CONTEXT);
	if (!numAttributes || !attributes || !data)
		return CUDA_ERROR_INVALID_VALUE;
	bool there = find_pointer(ptr, &about);
	for (unsigned i = 0; i < numAttributes && !result; i++) {
		if (!there || query_attribute(data[i], attributes[i], ptr, &about))
			result = answer_nothing(data[i], attributes[i]);
	}
	return result;
}

CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
	struct sim_pointer about;

	ENTER(cuPointerSetAttribute, CONTEXT);
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !find_pointer(ptr, &about))
		return CUDA_ERROR_INVALID_VALUE;
	if (about.kind != SIM_DEVICE && !about.pool)
		return CUDA_ERROR_NOT_SUPPORTED;
	return set_sync_memops(about.id, *(const unsigned *)value);
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
	struct sim_pointer about;

	ENTER(cuMemGetAddressRange_v2, CONTEXT);
	if (!find_pointer(dptr, &about))
		return CUDA_ERROR_NOT_FOUND;
	/* For mapped host memory a real driver gives an unknown address (H200). */
	bool elsewhere = about.kind == SIM_VMM && about.on_host;
	if (pbase)
		*pbase = elsewhere               ? about.map_base ^ 1ull << 46
		         : about.kind == SIM_VMM ? about.map_base
		                                 : about.base;
	if (psize)
		*psize = about.kind == SIM_VMM ? about.map_size : about.size;
	return CUDA_SUCCESS;
}

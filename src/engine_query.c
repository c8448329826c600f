/*
 * Questions about a pointer: what we placed looks like one plain device allocation, whatever backs it. The vendor is
 * asked first, so that arguments are judged by it; then the answers that tell our placement apart are replaced.
 * What the memory can do (IPC, RDMA, handle types) stays the vendor's truth. CUDA Driver API, "Unified Addressing".
 */
#include "abi/cuda.h"
#include "engine.h"

/* The answer for one attribute of a placed allocation. */
enum answer { TRUTH, REPLACED, INVALID };

/* Unique in the process and for ever, which the id of a shared chunk would not be; the vendor's are small numbers. */
static unsigned long long id_of(const struct spill_allocation *allocation)
{
	return 1ull << 63 | allocation->seq;
}

static enum answer answer(const struct spill_allocation *allocation, CUpointer_attribute attribute,
                          uint64_t ptr, void *value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		*(CUcontext *)value = allocation->context;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(CUmemorytype *)value = CU_MEMORYTYPE_DEVICE;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)value = ptr;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return INVALID; /* device memory has none */
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)value = id_of(allocation);
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)value = 0;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = allocation->device;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)value = allocation->ptr;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)value = allocation->bytes;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)value = 1;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)value = NULL;
		return REPLACED;
	default:
		return TRUTH;
	}
}

/* The call for one attribute reports what it cannot answer; the call for several leaves zero there and succeeds. */
bool spill_engine_attributes(struct spill_request *request)
{
	struct spill_allocation allocation;
	if (request->step++ == 0)
		return true;
	if (request->result || !request->attributes || !request->values ||
	    !spill_ledger_placed(request->ptr, &allocation))
		return false;
	const CUpointer_attribute *attributes = request->attributes;
	for (unsigned i = 0; i < request->count; i++) {
		if (!request->values[i] ||
		    answer(&allocation, attributes[i], request->ptr, request->values[i]) != INVALID)
			continue;
		if (request->single)
			request->result = allocation.backend->invalid_value;
		else
			*(void **)request->values[i] = NULL;
	}
	return false;
}

bool spill_engine_range(struct spill_request *request)
{
	struct spill_allocation allocation;
	if (request->step++ == 0)
		return true;
	if (request->result || !spill_ledger_placed(request->ptr, &allocation))
		return false;
	if (request->out)
		*(CUdeviceptr *)request->out = allocation.ptr;
	if (request->out_bytes)
		*request->out_bytes = allocation.bytes;
	return false;
}

/*
 * Questions about a pointer: what we placed looks like one plain device allocation, whatever backs it. The vendor is
 * asked first, so that arguments are judged by it; then the answers that tell our placement apart are replaced.
 * What the memory can do (IPC, RDMA, handle types) stays the vendor's truth. CUDA Driver API, "Unified Addressing"; HIP
 * numbers its attributes alike (hip_runtime_api.h, hipPointer_attribute).
 */
#include <string.h>

#include "abi/cuda.h"
#include "engine.h"
#include "vmm.h"

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
		if (!allocation->backend->contexts)
			return TRUTH; /* HIP has no contexts */
		*(CUcontext *)value =
		    allocation->ordered ? NULL : allocation->context; /* as the driver says */
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(int *)value = allocation->backend->device_memory_type();
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)value = ptr;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		if (!allocation->ordered)
			return TRUTH;
		*(bool *)value = false; /* managed memory, which it may be, says true */
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return INVALID; /* device memory has none */
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)value = id_of(allocation);
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)value = false; /* the vendor has written the rest of it, if it is wider */
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = allocation->device;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)value = allocation->ptr;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		memcpy(value, &allocation->bytes, allocation->backend->range_size_width);
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)value = allocation->bytes;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(bool *)value = true;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(void **)value = allocation->pool;
		return REPLACED;
	default:
		return TRUTH;
	}
}

/*
 * The same where the program has mapped memory itself: what differs between a mapping of device memory and one of the host
 * memory that it got instead.
 */
static enum answer answer_mapped(const struct spill_backend *backend, int device,
                                 CUpointer_attribute attribute, void *value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(int *)value = backend->device_memory_type();
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = device;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		return INVALID;
	default:
		return TRUTH;
	}
}

/* The call for one attribute reports what it cannot answer; the call for several leaves zero there and succeeds. */
bool spill_engine_attributes(struct spill_request *request)
{
	struct spill_allocation allocation;
	struct spill_vmm_range range;
	if (request->step++ == 0)
		return true;
	if (request->result || !request->attributes || !request->values)
		return false;
	bool placed = spill_ledger_placed(request->ptr, &allocation);
	if (!placed && !spill_vmm_spilled_at(request->ptr, &range))
		return false;
	const struct spill_backend *backend =
	    placed ? allocation.backend : spill_backend_for(request->domain);
	const CUpointer_attribute *attributes = request->attributes;
	for (unsigned i = 0; i < request->count; i++) {
		void *value = request->values[i];
		if (!value ||
		    (placed ? answer(&allocation, attributes[i], request->ptr, value)
		            : answer_mapped(backend, range.device, attributes[i], value)) != INVALID)
			continue;
		if (request->single)
			request->result = backend->invalid_value;
		else
			*(void **)request->values[i] = NULL;
	}
	return false;
}

bool spill_engine_pointer(struct spill_request *request)
{
	struct spill_allocation allocation;
	if (request->step++ == 0)
		return true;
	if (request->result == 0 && request->out && spill_ledger_placed(request->ptr, &allocation) &&
	    allocation.backend->describe_plain)
		allocation.backend->describe_plain(request->out, request->ptr, allocation.device);
	return false;
}

bool spill_engine_range(struct spill_request *request)
{
	struct spill_allocation allocation;
	struct spill_vmm_range range;
	if (request->step++ == 0)
		return true;
	if (request->result)
		return false;
	if (spill_ledger_placed(request->ptr, &allocation))
		range = (struct spill_vmm_range){.va = allocation.ptr, .bytes = allocation.bytes};
	else if (!spill_vmm_spilled_at(request->ptr, &range))
		return false; /* of a mapping of host memory the vendor names another base (measured, H200) */
	if (request->out)
		*(CUdeviceptr *)request->out = range.va;
	if (request->out_bytes)
		*request->out_bytes = range.bytes;
	return false;
}

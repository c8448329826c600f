/*
 * Queries about a pointer: memory that we placed looks like one plain device allocation.
 *
 * The vendor is asked first, so that it judges the arguments. Then the answers that would show our
 * placement are replaced. Answers about abilities of the memory (RDMA) stay the vendor's, except for
 * IPC, which libspill serves. Memory of another process that libspill has mapped looks so, too. See "Unified Addressing" in the CUDA Driver API. HIP numbers its attributes alike
 * (hip_runtime_api.h, hipPointer_attribute).
 */
#include <string.h>

#include "abi/cuda.h"
#include "engine.h"
#include "ipc.h"
#include "vmm.h"

/* Our answer for one attribute: the vendor's stays, it is replaced, or the attribute is invalid. */
enum answer { UNCHANGED, REPLACED, INVALID };

/*
 * Unique in the process for ever; the id of a shared chunk would not be. The vendor's ids are small
 * numbers.
 */
#define IMPORTED (1ull << 62) /* numbers of imports */
static unsigned long long buffer_id(const struct spill_allocation *allocation)
{
	return 1ull << 63 | allocation->seq;
}

/*
 * The answers that differ between device memory and the host memory that replaces it. For memory
 * that the program mapped itself, no others differ.
 */
static enum answer answer_of_mapping(const struct spill_backend *backend, int device,
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
		return INVALID; /* device memory has none */
	default:
		return UNCHANGED;
	}
}

/* Memory that we placed, or have opened for the program (ipc.h). */
static bool find(uint64_t ptr, struct spill_allocation *allocation)
{
	struct spill_ipc_range range;
	if (spill_ledger_placed(ptr, allocation))
		return true;
	if (!spill_ipc_at(ptr, &range))
		return false;
	*allocation = (struct spill_allocation){.backend = range.backend,
	                                        .ptr = range.ptr,
	                                        .bytes = range.bytes,
	                                        .device = range.device,
	                                        .context = range.context,
	                                        .seq = IMPORTED | range.number};
	return true;
}

static enum answer answer_of(const struct spill_allocation *allocation, CUpointer_attribute attribute,
                             uint64_t ptr, void *value)
{
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (!allocation->backend->contexts)
			return UNCHANGED; /* HIP has no contexts */
		/* The driver names no context for memory in stream order. */
		*(CUcontext *)value = allocation->ordered ? NULL : allocation->context;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)value = ptr;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		if (!allocation->ordered)
			return UNCHANGED;
		*(bool *)value = false; /* the driver says true of managed memory */
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		if (!spill_ipc_serves(allocation))
			return UNCHANGED;
		*(int *)value = 1;
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(unsigned long long *)value = 0; /* chunks have descriptors, plain memory has none */
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)value = buffer_id(allocation);
		return REPLACED;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(bool *)value = false; /* the vendor wrote the rest, if it is wider */
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
		return answer_of_mapping(allocation->backend, allocation->device, attribute, value);
	}
}

/*
 * The call for one attribute returns an error for an invalid one. The call for several stores 0
 * there and succeeds.
 */
bool spill_engine_attributes(struct spill_request *request)
{
	struct spill_allocation allocation;
	struct spill_vmm_range range;
	if (spill_engine_gated(request))
		return true;
	if (request->result || !request->attributes.wanted || !request->attributes.values)
		return false;
	bool placed = find(request->ptr, &allocation);
	if (!placed && !spill_vmm_spilled_at(request->ptr, &range))
		return false;
	const struct spill_backend *backend =
	    placed ? allocation.backend : spill_backend_for(request->domain);
	const CUpointer_attribute *attributes = request->attributes.wanted;
	for (unsigned i = 0; i < request->attributes.count; i++) {
		void *value = request->attributes.values[i];
		if (!value ||
		    (placed ? answer_of(&allocation, attributes[i], request->ptr, value)
		            : answer_of_mapping(backend, range.device, attributes[i], value)) != INVALID)
			continue;
		if (request->attributes.single)
			request->result = backend->invalid_value;
		else
			*(void **)request->attributes.values[i] = NULL;
	}
	return false;
}

bool spill_engine_pointer(struct spill_request *request)
{
	struct spill_allocation allocation;
	if (spill_engine_gated(request))
		return true;
	if (request->result == 0 && request->out && find(request->ptr, &allocation) &&
	    allocation.backend->describe_plain)
		allocation.backend->describe_plain(request->out, request->ptr, allocation.device);
	return false;
}

bool spill_engine_range(struct spill_request *request)
{
	struct spill_allocation allocation;
	struct spill_vmm_range range;
	if (spill_engine_gated(request))
		return true;
	if (request->result)
		return false;
	if (find(request->ptr, &allocation))
		range = (struct spill_vmm_range){.va = allocation.ptr, .bytes = allocation.bytes};
	/* For a mapping of host memory the vendor returns another base (measured, H200). */
	else if (!spill_vmm_spilled_at(request->ptr, &range))
		return false;
	if (request->out)
		*(CUdeviceptr *)request->out = range.va;
	if (request->out_bytes)
		*request->out_bytes = range.bytes;
	return false;
}

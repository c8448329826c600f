/* What a pointer is, and advice about managed memory. */
#include "allocations.h"
#include "runtime.h"

static bool find(const void *pointer, struct sim_pointer *about)
{
	return pointer && sim_pointer((uint64_t)(uintptr_t)pointer, about);
}

static bool on_host(const struct sim_pointer *about)
{
	return about->kind == SIM_HOST || about->kind == SIM_REGISTERED;
}

static bool is_managed(const struct sim_pointer *about)
{
	return about->kind == SIM_MANAGED || hip_note_find(about->id).managed;
}

/* Managed memory calls itself host memory in ROCm 5; a pointer that is none of HIP's is an error. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(attributes && find(ptr, &about) ? hipSuccess : hipErrorInvalidValue);
	bool managed = is_managed(&about), host = managed || on_host(&about);
	*attributes = (hipPointerAttribute_t){
	    .memoryType = host ? hipMemoryTypeHost : hipMemoryTypeDevice,
	    .device = about.device,
	    .devicePointer = (void *)ptr,
	    .hostPointer = host ? (void *)ptr : NULL,
	    .isManaged = managed,
	    .allocationFlags = hip_note_find(about.id).flags,
	};
	return hip_leave(hipSuccess);
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *pbase, size_t *psize, hipDeviceptr_t dptr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(find(dptr, &about) ? hipSuccess : hipErrorInvalidDevicePointer);
	if (pbase)
		*pbase = (void *)(uintptr_t)about.base;
	if (psize)
		*psize = about.size;
	return hip_leave(hipSuccess);
}

hipError_t hipHostGetDevicePointer(void **devPtr, void *hstPtr, unsigned int flags)
{
	struct sim_pointer about;

	(void)flags; /* none defined */
	HIP_ENTER();
	HIP_TRY(devPtr && find(hstPtr, &about) ? hipSuccess : hipErrorInvalidValue);
	*devPtr = hstPtr;
	return hip_leave(hipSuccess);
}

hipError_t hipHostGetFlags(unsigned int *flagsPtr, void *hostPtr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(flagsPtr && find(hostPtr, &about) && on_host(&about) ? hipSuccess : hipErrorInvalidValue);
	*flagsPtr = hip_note_find(about.id).flags;
	return hip_leave(hipSuccess);
}

/* Managed memory that is pinned host memory (no XNACK) takes advice and does nothing with it. */
static hipError_t advise(const struct sim_pointer *about, uint64_t address, size_t count,
                         hipMemoryAdvise advice, int device)
{
	static const struct {
		enum sim_advice advice;
		bool set;
	} meaning[] = {
	    [hipMemAdviseSetReadMostly] = {SIM_READ_MOSTLY, true},
	    [hipMemAdviseUnsetReadMostly] = {SIM_READ_MOSTLY, false},
	    [hipMemAdviseSetPreferredLocation] = {SIM_PREFERRED_LOCATION, true},
	    [hipMemAdviseUnsetPreferredLocation] = {SIM_PREFERRED_LOCATION, false},
	    [hipMemAdviseSetAccessedBy] = {SIM_ACCESSED_BY, true},
	    [hipMemAdviseUnsetAccessedBy] = {SIM_ACCESSED_BY, false},
	};

	if (advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain)
		return hipSuccess;
	if (advice < hipMemAdviseSetReadMostly || advice > hipMemAdviseUnsetAccessedBy)
		return hipErrorInvalidValue;
	if (about->kind != SIM_MANAGED)
		return hipSuccess;
	return hip_error(sim_advise(address, count, meaning[advice].advice, meaning[advice].set, device));
}

/* pre: hip_enter. The managed range that a program may advise or prefetch to `device`. */
static hipError_t managed_range(const void *pointer, size_t count, int device, struct sim_pointer *about)
{
	if (count == 0 || !find(pointer, about) || !is_managed(about))
		return hipErrorInvalidValue;
	if ((uint64_t)(uintptr_t)pointer - about->base + count > about->size)
		return hipErrorInvalidValue;
	if (device != hipCpuDeviceId && (device < 0 || device >= sim_config()->devices))
		return hipErrorInvalidDevice;
	return hipSuccess;
}

hipError_t hipMemAdvise(const void *dev_ptr, size_t count, hipMemoryAdvise advice, int device)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(managed_range(dev_ptr, count, device, &about));
	return hip_leave(advise(&about, (uint64_t)(uintptr_t)dev_ptr, count, advice, device));
}

hipError_t hipMemPrefetchAsync(const void *dev_ptr, size_t count, int device, hipStream_t stream)
{
	struct sim_pointer about;
	struct sim_stream *on;

	HIP_ENTER();
	HIP_TRY(managed_range(dev_ptr, count, device, &about));
	HIP_TRY(hip_stream(stream, &on));
	if (about.kind != SIM_MANAGED)
		return hip_leave(hipSuccess);
	return hip_return(sim_prefetch(on, (uint64_t)(uintptr_t)dev_ptr, count, device));
}

/* Allocations, as in ROCm 5: size 0 succeeds with NULL, and hipFree accepts every kind. */
#include "hip_entry.h"

#define ANY ((1u << SIM_DEVICE) | (1u << SIM_HOST) | (1u << SIM_MANAGED))

static void *pointer_at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

/* A size beyond the device's memory is refused at once. */
static bool exceeds_device(size_t size)
{
	uint64_t free, total;

	sim_device_memory(hip_device(), &free, &total);
	return size > total;
}

/* On the thread's device. *out becomes NULL only if an attempt failed, as in ROCm 5. */
static hipError_t allocate_with_note(void **out, size_t size, enum sim_memory kind, struct hip_note note)
{
	struct sim_context *context;
	struct sim_pointer about;
	uint64_t found;

	if (!out)
		return hipErrorInvalidValue;
	if (size == 0) {
		*out = NULL;
		return hipSuccess;
	}
	hipError_t error = hip_context(hip_device(), &context);
	if (error)
		return error;
	if (kind == SIM_DEVICE && exceeds_device(size))
		return hipErrorOutOfMemory;
	error = hip_error(sim_alloc(context, kind, size, &found));
	*out = error ? NULL : pointer_at(found);
	if (error)
		return error;
	if ((note.managed || note.flags) && (!sim_pointer(found, &about) || !hip_note_add(about.id, note))) {
		sim_free(found, ANY);
		*out = NULL;
		return hipErrorOutOfMemory;
	}
	return hipSuccess;
}

hipError_t hip_allocate_device(void **out, size_t size)
{
	return allocate_with_note(out, size, SIM_DEVICE, (struct hip_note){0});
}

static hipError_t release_memory(void *memory)
{
	struct sim_pointer about;

	if (!memory)
		return hipSuccess;
	if (!sim_pointer(hip_address(memory), &about))
		return hipErrorInvalidValue;
	if (about.pool)
		hip_pool_forget(hip_address(memory)); /* before another allocation gets the address */
	hipError_t error = hip_error(sim_free(hip_address(memory), ANY));
	if (error)
		return error;
	hip_note_remove(about.id);
	/* The core's pools free without waiting. HIP waits. */
	struct sim_context *context;
	if (about.pool && !hip_context(about.device, &context)) {
		sim_context_synchronize(context);
		sim_pools_synchronized(about.device, SIM_ALL_STREAMS);
	}
	return hipSuccess;
}

hipError_t hipMalloc(void **ptr, size_t size)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(allocate_with_note(ptr, size, SIM_DEVICE, (struct hip_note){0}));
}

hipError_t hipExtMallocWithFlags(void **ptr, size_t sizeBytes, unsigned int flags)
{
	HIP_ENTER();
	/* Coarse or fine grain: no visible difference here. A signal is one word on the host. */
	HIP_TRY(flags > hipMallocSignalMemory || (flags == hipMallocSignalMemory && sizeBytes != 8)
	            ? hipErrorInvalidValue
	            : hipSuccess);
	enum sim_memory kind = flags == hipMallocSignalMemory ? SIM_HOST : SIM_DEVICE;
	return hip_leave(allocate_with_note(ptr, sizeBytes, kind, (struct hip_note){.flags = flags}));
}

hipError_t hipFree(void *ptr)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(release_memory(ptr));
}

/* Without XNACK, managed memory of a discrete card is pinned host memory, read in place. */
hipError_t hipMallocManaged(void **dev_ptr, size_t size, unsigned int flags)
{
	const struct sim_config *config = sim_config();
	enum sim_memory kind = config->xnack || config->integrated ? SIM_MANAGED : SIM_HOST;

	HIP_ENTER();
	HIP_TRY(flags == hipMemAttachGlobal || flags == hipMemAttachHost ? hipSuccess : hipErrorInvalidValue);
	HIP_TRY(config->managed ? hipSuccess : hipErrorNotSupported);
	return hip_leave(allocate_with_note(dev_ptr, size, kind, (struct hip_note){.managed = true}));
}

static hipError_t host_allocate(void **ptr, size_t size, unsigned int flags)
{
	const unsigned int coherence = hipHostMallocCoherent | hipHostMallocNonCoherent;
	const unsigned int known = coherence | hipHostMallocPortable | hipHostMallocMapped |
	                           hipHostMallocWriteCombined | hipHostMallocNumaUser;

	if ((flags & ~known) || (flags & coherence) == coherence)
		return hipErrorInvalidValue;
	return allocate_with_note(ptr, size, SIM_HOST, (struct hip_note){.flags = flags});
}

hipError_t hipHostMalloc(void **ptr, size_t size, unsigned int flags)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(host_allocate(ptr, size, flags));
}

hipError_t hipHostAlloc(void **ptr, size_t size, unsigned int flags)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(host_allocate(ptr, size, flags));
}

hipError_t hipMallocHost(void **ptr, size_t size)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(host_allocate(ptr, size, hipHostMallocDefault));
}

hipError_t hipMemAllocHost(void **ptr, size_t size)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(host_allocate(ptr, size, hipHostMallocDefault));
}

hipError_t hipHostFree(void *ptr)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(release_memory(ptr));
}

hipError_t hipFreeHost(void *ptr)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hip_leave(release_memory(ptr));
}

hipError_t hipHostRegister(void *hostPtr, size_t sizeBytes, unsigned int flags)
{
	struct sim_context *context;

	(void)flags; /* every registration is mapped and portable here */
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	HIP_TRY(hostPtr && sizeBytes ? hip_context(hip_device(), &context) : hipErrorInvalidValue);
	return hip_return(sim_register(context, hostPtr, sizeBytes));
}

hipError_t hipHostUnregister(void *hostPtr)
{
	HIP_ENTER();
	HIP_TRY(hip_capture_forbids());
	return hostPtr ? hip_return(sim_unregister(hostPtr)) : hip_leave(hipErrorHostMemoryNotRegistered);
}

hipError_t hipMemGetInfo(size_t *free, size_t *total)
{
	uint64_t left, all;

	HIP_ENTER();
	HIP_TRY(free && total ? hipSuccess : hipErrorInvalidValue);
	sim_device_memory(hip_device(), &left, &all);
	*free = left;
	*total = all;
	return hip_leave(hipSuccess);
}

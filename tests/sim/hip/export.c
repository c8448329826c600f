/* Memory for other processes: legacy handles. Every other call is answered, and nothing is shared. */
#include <string.h>

#include "hip_entry.h"

_Static_assert(sizeof(struct sim_ticket) <= sizeof(hipIpcMemHandle_t),
               "it has to fit into the vendor's handle");

/*
 * As HSA, only whole device allocations: no managed memory, host memory or virtual mapping. ROCm 7
 * serves mapped memory, too, and the kernel driver fails later (ROCm/clr, issue 265): nobody can open
 * such a handle.
 */
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *devPtr)
{
	struct sim_ticket ticket = {{0}};
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(handle && devPtr ? hipSuccess : hipErrorInvalidValue);
	bool known = sim_pointer(hip_address(devPtr), &about);
	bool mapped = known && HIP_RELEASE >= 7 && about.kind == SIM_VMM && about.mapped;
	HIP_TRY(mapped || (known && about.kind == SIM_DEVICE) ? hipSuccess : hipErrorInvalidDevicePointer);
	if (!mapped)
		HIP_TRY(hip_error(sim_export(hip_address(devPtr), &ticket)));
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->reserved, &ticket, sizeof(ticket));
	return hip_leave(hipSuccess);
}

/* A process cannot open its own handle (hipamd's hip_memory.cpp). */
hipError_t hipIpcOpenMemHandle(void **devPtr, hipIpcMemHandle_t handle, unsigned int flags)
{
	struct sim_context *context;
	struct sim_ticket ticket;
	uint64_t address;

	(void)flags;
	HIP_ENTER();
	HIP_TRY(devPtr ? hip_context(hip_device(), &context) : hipErrorInvalidValue);
	memcpy(&ticket, handle.reserved, sizeof(ticket));
	HIP_TRY(sim_ticket_is_own(&ticket) ? hipErrorInvalidContext : hipSuccess);
	HIP_TRY(hip_error(sim_ticket_open(&ticket, context, &address)));
	*devPtr = (void *)(uintptr_t)address;
	return hip_leave(hipSuccess);
}

hipError_t hipIpcCloseMemHandle(void *devPtr)
{
	HIP_ENTER();
	HIP_TRY(devPtr ? hipSuccess : hipErrorInvalidValue);
	return hip_leave(sim_ticket_close(hip_address(devPtr)) ? hipErrorInvalidHandle : hipSuccess);
}

hipError_t hipMemPoolExportToShareableHandle(void *shared_handle, hipMemPool_t mem_pool,
                                             hipMemAllocationHandleType handle_type, unsigned int flags)
{
	(void)handle_type;
	(void)flags;
	HIP_ENTER();
	return hip_leave(shared_handle && mem_pool ? hipErrorNotSupported : hipErrorInvalidValue);
}

hipError_t hipMemPoolImportFromShareableHandle(hipMemPool_t *mem_pool, void *shared_handle,
                                               hipMemAllocationHandleType handle_type, unsigned int flags)
{
	(void)handle_type;
	(void)flags;
	HIP_ENTER();
	return hip_leave(shared_handle && mem_pool ? hipErrorNotSupported : hipErrorInvalidValue);
}

hipError_t hipMemPoolExportPointer(hipMemPoolPtrExportData *export_data, void *dev_ptr)
{
	HIP_ENTER();
	return hip_leave(export_data && dev_ptr ? hipErrorNotSupported : hipErrorInvalidValue);
}

hipError_t hipMemPoolImportPointer(void **dev_ptr, hipMemPool_t mem_pool,
                                   hipMemPoolPtrExportData *export_data)
{
	HIP_ENTER();
	return hip_leave(dev_ptr && mem_pool && export_data ? hipErrorNotSupported : hipErrorInvalidValue);
}

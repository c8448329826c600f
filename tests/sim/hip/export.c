/* Memory for other processes: every call is answered, and nothing is shared. */
#include <string.h>

#include "hip_entry.h"

/* As HSA, only whole device allocations: no managed memory, host memory or virtual mapping. */
static bool is_exportable(const void *pointer)
{
	struct sim_pointer about;

	return sim_pointer(hip_address(pointer), &about) && about.kind == SIM_DEVICE;
}

/* ROCm 7 serves mapped memory, too, and the kernel driver fails later (ROCm/clr, issue 265). */
hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *devPtr)
{
	struct sim_pointer about;

	HIP_ENTER();
	HIP_TRY(handle && devPtr ? hipSuccess : hipErrorInvalidValue);
	bool known = sim_pointer(hip_address(devPtr), &about);
	bool mapped = known && HIP_RELEASE >= 7 && about.kind == SIM_VMM && about.mapped;
	HIP_TRY(mapped || is_exportable(devPtr) ? hipSuccess : hipErrorInvalidDevicePointer);
	memset(handle, 0, sizeof(*handle));
	memcpy(handle->reserved, &about.id, sizeof(about.id));
	return hip_leave(hipSuccess);
}

/* A process cannot open its own handle, and no other process has a simulated device. */
hipError_t hipIpcOpenMemHandle(void **devPtr, hipIpcMemHandle_t handle, unsigned int flags)
{
	(void)handle;
	(void)flags;
	HIP_ENTER();
	return hip_leave(devPtr ? hipErrorInvalidContext : hipErrorInvalidValue);
}

hipError_t hipIpcCloseMemHandle(void *devPtr)
{
	HIP_ENTER();
	return hip_leave(devPtr ? hipErrorInvalidHandle : hipErrorInvalidValue);
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

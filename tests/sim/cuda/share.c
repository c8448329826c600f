/* Memory for other processes: legacy handles, descriptors of VMM handles, pools and ranges. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_entry.h"

_Static_assert(sizeof(struct sim_ticket) <= CU_IPC_HANDLE_SIZE, "it has to fit into the vendor's handle");

/* -- legacy handles ---------------------------------------------------------------------------- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct sim_ticket ticket;
	struct sim_pointer about;

	ENTER(cuIpcGetMemHandle, CONTEXT);
	if (!pHandle || !sim_pointer(dptr, &about) || about.kind != SIM_DEVICE || about.pool)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_export(dptr, &ticket));
	if (result)
		return result;
	memset(pHandle, 0, sizeof(*pHandle));
	memcpy(pHandle, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

/* The owner cannot open it: "invalid device context", as users of the real driver report. */
static CUresult open_ipc(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags)
{
	struct sim_ticket ticket;
	uint64_t address;

	memcpy(&ticket, handle, sizeof(ticket));
	if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_ticket_is_own(&ticket))
		return CUDA_ERROR_INVALID_CONTEXT;
	CUresult result = driver_result(sim_ticket_open(&ticket, driver_current(), &address));
	if (!result)
		*out = address;
	return result;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	ENTER(cuIpcOpenMemHandle_v2, CONTEXT);
	return open_ipc(pdptr, &handle, Flags);
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pdptr, CUipcMemHandle handle, unsigned int Flags)
{
	ENTER(cuIpcOpenMemHandle, CONTEXT);
	return open_ipc(pdptr, &handle, Flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	ENTER(cuIpcCloseMemHandle, CONTEXT);
	return driver_result(sim_ticket_close(dptr));
}

/* -- VMM handles ------------------------------------------------------------------------------- */

/* The device has no multicast and no endpoints, but the handle or the address is looked at. */
static CUresult bind_handle(CUmemGenericAllocationHandle handle)
{
	return driver_physical(handle) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

static CUresult bind_address(CUdeviceptr address)
{
	struct sim_pointer about;

	return sim_pointer(address, &about) && about.kind == SIM_VMM ? CUDA_ERROR_NOT_SUPPORTED
	                                                             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                            CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                            unsigned long long flags)
{
	ENTER(cuMulticastBindMem, INIT);
	return bind_handle(memHandle);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr,
                             size_t size, unsigned long long flags)
{
	ENTER(cuMulticastBindAddr, INIT);
	return bind_address(memptr);
}

CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                               CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                               unsigned long long flags)
{
	ENTER(cuMulticastBindMem_v2, INIT);
	return bind_handle(memHandle);
}

CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle mcHandle, CUdevice dev, size_t mcOffset,
                                CUdeviceptr memptr, size_t size, unsigned long long flags)
{
	ENTER(cuMulticastBindAddr_v2, INIT);
	return bind_address(memptr);
}

CUresult cuLogicalEndpointBindMem(cuuint32_t leId, CUdevice dev, cuuint64_t offset,
                                  CUmemGenericAllocationHandle memHandle, cuuint64_t memOffset,
                                  cuuint64_t size, unsigned long long flags)
{
	ENTER(cuLogicalEndpointBindMem, INIT);
	return bind_handle(memHandle);
}

CUresult cuLogicalEndpointBindAddr(cuuint32_t leId, CUdevice dev, cuuint64_t offset, void *ptr,
                                   cuuint64_t size, unsigned long long flags)
{
	ENTER(cuLogicalEndpointBindAddr, INIT);
	return bind_address((CUdeviceptr)ptr);
}

CUresult cuMemExportToShareableHandle(void *shareableHandle, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType handleType, unsigned long long flags)
{
	ENTER(cuMemExportToShareableHandle, INIT);
	struct sim_physical *physical = driver_physical(handle);
	if (!shareableHandle || !physical || flags)
		return CUDA_ERROR_INVALID_VALUE;
	struct physical_face *face = sim_physical_face(physical);
	if (handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || !(face->handle_types & handleType))
		return CUDA_ERROR_INVALID_VALUE;
	int descriptor;
	CUresult result = driver_result(sim_physical_export(physical, &descriptor));
	if (!result)
		*(int *)shareableHandle = descriptor;
	return result;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType)
{
	struct sim_physical *physical;

	ENTER(cuMemImportFromShareableHandle, INIT);
	if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_physical_import((int)(intptr_t)osHandle, &physical));
	if (!result)
		*handle = (CUmemGenericAllocationHandle)(uintptr_t)physical;
	return result;
}

/*
 * True if all pages are memory of one device, plain or in any number of mappings. CUDA Driver API,
 * cuMemGetHandleForAddressRange: fully mapped, all of it resident on the same device.
 */
static bool is_on_one_device(CUdeviceptr dptr, size_t size)
{
	struct sim_pointer first, about;

	if (!sim_range_valid(dptr, size) || !sim_pointer(dptr, &first))
		return false;
	for (CUdeviceptr at = dptr; at - dptr < size; at = about.map_base + about.map_size) {
		if (!sim_pointer(at, &about) || about.on_host || about.device != first.device)
			return false;
		if (about.kind != SIM_VMM)
			return about.kind == SIM_DEVICE;
	}
	return true;
}

/* No other device here could use what the descriptor stands for. */
CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long flags)
{
	ENTER(cuMemGetHandleForAddressRange, CONTEXT);
	if (!handle || !size || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags)
		return CUDA_ERROR_INVALID_VALUE;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (dptr % page || size % page || !is_on_one_device(dptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	int descriptor = memfd_create("simulated dma-buf", MFD_CLOEXEC);
	if (descriptor < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)handle = descriptor;
	return CUDA_SUCCESS;
}

/* -- pools ------------------------------------------------------------------------------------- */

CUresult cuMemPoolExportToShareableHandle(void *handle_out, CUmemoryPool pool,
                                          CUmemAllocationHandleType handleType, unsigned long long flags)
{
	ENTER(cuMemPoolExportToShareableHandle, INIT);
	const CUmemPoolProps *props = driver_pool_props(pool);
	if (!handle_out || !props || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !(props->handleTypes & handleType))
		return CUDA_ERROR_INVALID_VALUE;
	int descriptor;
	CUresult result = driver_result(sim_pool_export((struct sim_pool *)pool, &descriptor));
	if (!result)
		*(int *)handle_out = descriptor;
	return result;
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                            CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct sim_pool *pool;

	ENTER(cuMemPoolImportFromShareableHandle, INIT);
	if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_pool_import((int)(intptr_t)handle, &pool));
	if (result)
		return result;
	struct sim_pool_about about;
	sim_pool_about(pool, &about);
	/* Devices may have other numbers in the other process. */
	((CUmemPoolProps *)sim_pool_face(pool))->location.id = about.device;
	*pool_out = (CUmemoryPool)pool;
	return CUDA_SUCCESS;
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	struct sim_ticket ticket;
	struct sim_pointer about;

	ENTER(cuMemPoolExportPointer, INIT);
	if (!shareData_out || !sim_pointer(ptr, &about) || !about.pool)
		return CUDA_ERROR_INVALID_VALUE;
	const CUmemPoolProps *props = driver_pool_props((CUmemoryPool)about.pool);
	if (!props || props->handleTypes == CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_export(ptr, &ticket));
	if (result)
		return result;
	memset(shareData_out, 0, sizeof(*shareData_out));
	memcpy(shareData_out, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	struct sim_ticket ticket;
	uint64_t address;

	ENTER(cuMemPoolImportPointer, CONTEXT);
	if (!ptr_out || !shareData)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&ticket, shareData, sizeof(ticket));
	CUresult result = driver_result(
	    sim_pool_import_block((struct sim_pool *)pool, &ticket, driver_current(), &address));
	if (!result)
		*ptr_out = address;
	return result;
}

/*
 * Memory for other processes: legacy handles, descriptors of VMM handles, pools and ranges.
 * Refusals are the vendor's. A handle works inside this process. Another process gets an error,
 * because simulated memory is not shared.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_entry.h"

/* Contents of a handle, a descriptor, or exported pointer data. */
struct ticket {
	char magic[16];
	uint64_t kind, pid, id, address, offset, bytes;
};
enum { TICKET_IPC = 1, TICKET_PHYSICAL, TICKET_POOL, TICKET_POINTER, TICKET_RANGE };

_Static_assert(sizeof(struct ticket) <= CU_IPC_HANDLE_SIZE, "it has to fit into the vendor's handle");

static struct ticket ticket_of(unsigned kind, uint64_t address)
{
	return (struct ticket){
	    .magic = "spill-simulator", .kind = kind, .pid = (uint64_t)getpid(), .address = address};
}

static bool is_ticket(const struct ticket *ticket, unsigned kind)
{
	return !memcmp(ticket->magic, "spill-simulator", 16) && ticket->kind == kind;
}

static bool is_ours(const struct ticket *ticket)
{
	return ticket->pid == (uint64_t)getpid();
}

/* -1: no descriptor was free. */
static int descriptor_of(const struct ticket *ticket)
{
	int fd = memfd_create("simulated GPU memory", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, ticket, sizeof(*ticket)) != sizeof(*ticket)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static CUresult hand_out(void *out, const struct ticket *ticket)
{
	int fd = descriptor_of(ticket);

	if (fd < 0)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*(int *)out = fd;
	return CUDA_SUCCESS;
}

static CUresult refuse_import(const char *what)
{
	sim_say("%s: memory of another process is not imitated", what);
	return CUDA_ERROR_NOT_SUPPORTED;
}

/* -- legacy handles ---------------------------------------------------------------------------- */

CUresult cuIpcGetMemHandle(CUipcMemHandle *pHandle, CUdeviceptr dptr)
{
	struct sim_pointer about;

	ENTER(cuIpcGetMemHandle, CONTEXT);
	if (!pHandle || !sim_pointer(dptr, &about) || about.kind != SIM_DEVICE || about.pool)
		return CUDA_ERROR_INVALID_VALUE;
	struct ticket ticket = ticket_of(TICKET_IPC, about.base);
	ticket.id = about.id;
	ticket.offset = dptr - about.base;
	ticket.bytes = about.size;
	memset(pHandle, 0, sizeof(*pHandle));
	memcpy(pHandle, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

/* The owner cannot open it: "invalid device context", as users of the real driver report. */
static CUresult open_ipc(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags)
{
	struct ticket ticket;

	memcpy(&ticket, handle, sizeof(ticket));
	if (!out || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !is_ticket(&ticket, TICKET_IPC))
		return CUDA_ERROR_INVALID_VALUE;
	return is_ours(&ticket) ? CUDA_ERROR_INVALID_CONTEXT : refuse_import("cuIpcOpenMemHandle");
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

/* No handle was ever opened. */
CUresult cuIpcCloseMemHandle(CUdeviceptr dptr)
{
	ENTER(cuIpcCloseMemHandle, CONTEXT);
	return CUDA_ERROR_INVALID_VALUE;
}

/* -- VMM handles ------------------------------------------------------------------------------- */

static uint64_t next_id(void)
{
	static atomic_ullong last;

	return atomic_fetch_add(&last, 1) + 1;
}

/* The device has no multicast, but the handle or the address is looked at. */
CUresult cuMulticastBindMem(CUmemGenericAllocationHandle mcHandle, size_t mcOffset,
                            CUmemGenericAllocationHandle memHandle, size_t memOffset, size_t size,
                            unsigned long long flags)
{
	ENTER(cuMulticastBindMem, INIT);
	return driver_physical(memHandle) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle mcHandle, size_t mcOffset, CUdeviceptr memptr,
                             size_t size, unsigned long long flags)
{
	struct sim_pointer about;

	ENTER(cuMulticastBindAddr, INIT);
	return sim_pointer(memptr, &about) && about.kind == SIM_VMM ? CUDA_ERROR_NOT_SUPPORTED
	                                                            : CUDA_ERROR_INVALID_VALUE;
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
	struct ticket ticket = ticket_of(TICKET_PHYSICAL, handle);
	if (!face->id)
		face->id = next_id();
	ticket.id = face->id;
	return hand_out(shareableHandle, &ticket);
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *osHandle,
                                        CUmemAllocationHandleType shHandleType)
{
	struct ticket ticket;

	ENTER(cuMemImportFromShareableHandle, INIT);
	if (!handle || shHandleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	if (pread((int)(intptr_t)osHandle, &ticket, sizeof(ticket), 0) != sizeof(ticket) ||
	    !is_ticket(&ticket, TICKET_PHYSICAL))
		return CUDA_ERROR_INVALID_VALUE;
	if (!is_ours(&ticket))
		return refuse_import("cuMemImportFromShareableHandle");
	struct sim_physical *physical = driver_physical(ticket.address);
	if (!physical || ((struct physical_face *)sim_physical_face(physical))->id != ticket.id)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = driver_result(sim_physical_reference(physical));
	if (!result)
		*handle = ticket.address;
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

CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr dptr, size_t size,
                                       CUmemRangeHandleType handleType, unsigned long long flags)
{
	ENTER(cuMemGetHandleForAddressRange, CONTEXT);
	if (!handle || !size || handleType != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags)
		return CUDA_ERROR_INVALID_VALUE;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	if (dptr % page || size % page || !is_on_one_device(dptr, size))
		return CUDA_ERROR_INVALID_VALUE;
	struct ticket ticket = ticket_of(TICKET_RANGE, dptr);
	ticket.bytes = size;
	return hand_out(handle, &ticket);
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
	struct ticket ticket = ticket_of(TICKET_POOL, (uint64_t)pool);
	return hand_out(handle_out, &ticket);
}

CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool *pool_out, void *handle,
                                            CUmemAllocationHandleType handleType, unsigned long long flags)
{
	struct ticket ticket;

	ENTER(cuMemPoolImportFromShareableHandle, INIT);
	if (!pool_out || flags || handleType != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    pread((int)(intptr_t)handle, &ticket, sizeof(ticket), 0) != sizeof(ticket) ||
	    !is_ticket(&ticket, TICKET_POOL))
		return CUDA_ERROR_INVALID_VALUE;
	return refuse_import("cuMemPoolImportFromShareableHandle");
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData *shareData_out, CUdeviceptr ptr)
{
	struct sim_pointer about;

	ENTER(cuMemPoolExportPointer, INIT);
	if (!shareData_out || !sim_pointer(ptr, &about) || !about.pool)
		return CUDA_ERROR_INVALID_VALUE;
	const CUmemPoolProps *props = driver_pool_props((CUmemoryPool)about.pool);
	if (!props || props->handleTypes == CU_MEM_HANDLE_TYPE_NONE)
		return CUDA_ERROR_INVALID_VALUE;
	struct ticket ticket = ticket_of(TICKET_POINTER, about.base);
	ticket.id = about.id;
	memset(shareData_out, 0, sizeof(*shareData_out));
	memcpy(shareData_out, &ticket, sizeof(ticket));
	return CUDA_SUCCESS;
}

/* Only an imported pool takes pointers, and no pool was imported. */
CUresult cuMemPoolImportPointer(CUdeviceptr *ptr_out, CUmemoryPool pool, CUmemPoolPtrExportData *shareData)
{
	ENTER(cuMemPoolImportPointer, INIT);
	return CUDA_ERROR_INVALID_VALUE;
}

/* Memory of other processes, by CUDA's driver. */
#include "api_driver.h"

#include <string.h>

#define DESCRIPTOR CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static int hand_out_created(const struct block *block, struct ticket *ticket)
{
	CUmemGenericAllocationHandle handle;

	TRY(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)block->address));
	int error = CALL(cuMemExportToShareableHandle(&ticket->descriptor, handle, DESCRIPTOR, 0));
	int released = CALL(cuMemRelease(handle));
	return error ? error : released;
}

static int hand_out_pooled(const struct block *block, struct ticket *ticket)
{
	CUmemPoolPtrExportData data;

	TRY(cuMemPoolExportPointer(&data, block->address));
	memcpy(ticket->handle, &data, sizeof(data));
	return CALL(cuMemPoolExportToShareableHandle(&ticket->descriptor, block->pool, DESCRIPTOR, 0));
}

static int driver_hand_out(const struct block *block, struct ticket *ticket)
{
	CUipcMemHandle handle;

	if (block->kind == CREATED_SHARED)
		return hand_out_created(block, ticket);
	if (block->kind == POOLED_SHARED)
		return hand_out_pooled(block, ticket);
	TRY(cuIpcGetMemHandle(&handle, block->address));
	memcpy(ticket->handle, &handle, sizeof(handle));
	return 0;
}

static int import_created(const struct ticket *ticket, uint64_t *address)
{
	const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, ticket->device},
	                                CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUmemGenericAllocationHandle handle;
	CUdeviceptr at;

	TRY(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)ticket->descriptor, DESCRIPTOR));
	TRY(cuMemAddressReserve(&at, ticket->bytes, 0, 0, 0));
	TRY(cuMemMap(at, ticket->bytes, 0, handle, 0));
	TRY(cuMemSetAccess(at, ticket->bytes, &access, 1));
	*address = at;
	return CALL(cuMemRelease(handle));
}

static int import_pooled(const struct ticket *ticket, uint64_t *address, void **pool)
{
	CUmemPoolPtrExportData data;

	memcpy(&data, ticket->handle, sizeof(data));
	TRY(cuMemPoolImportFromShareableHandle((CUmemoryPool *)pool, (void *)(intptr_t)ticket->descriptor,
	                                       DESCRIPTOR, 0));
	return CALL(cuMemPoolImportPointer((CUdeviceptr *)address, *pool, &data));
}

static int driver_import(const struct ticket *ticket, uint64_t *address, void **pool)
{
	CUipcMemHandle handle;

	if (ticket->kind == CREATED_SHARED)
		return import_created(ticket, address);
	if (ticket->kind == POOLED_SHARED)
		return import_pooled(ticket, address, pool);
	memcpy(&handle, ticket->handle, sizeof(handle));
	return CALL(
	    cuIpcOpenMemHandle_v2((CUdeviceptr *)address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

static int driver_import_end(const struct ticket *ticket, uint64_t address, void *pool)
{
	if (ticket->kind == CREATED_SHARED) {
		TRY(cuMemUnmap(address, ticket->bytes));
		return CALL(cuMemAddressFree(address, ticket->bytes));
	}
	if (ticket->kind == POOLED_SHARED) {
		TRY(cuMemFreeAsync(address, NULL));
		TRY(cuCtxSynchronize());
		return CALL(cuMemPoolDestroy(pool));
	}
	return CALL(cuIpcCloseMemHandle(address));
}

const struct share_api shares = {
    .kinds = {[PLAIN] = true, [PITCHED] = true, [CREATED_SHARED] = true, [POOLED_SHARED] = true},
    .hand_out = driver_hand_out,
    .import = driver_import,
    .import_end = driver_import_end,
};

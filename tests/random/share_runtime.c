/* Memory of other processes, by the CUDA runtime, or with -DHIP by HIP, which has handles of plain memory only. */
#include "api_runtime.h"

#include <string.h>

#ifdef HIP
static int hand_out_pooled(const struct block *block, struct ticket *ticket)
{
	(void)block;
	(void)ticket;
	return -1;
}

static int import_pooled(const struct ticket *ticket, uint64_t *address, void **pool)
{
	(void)ticket;
	(void)address;
	(void)pool;
	return -1;
}

static int end_pooled(uint64_t address, void *pool)
{
	(void)address;
	(void)pool;
	return -1;
}
#else
static int hand_out_pooled(const struct block *block, struct ticket *ticket)
{
	struct cudaMemPoolPtrExportData data;

	TRY(cudaMemPoolExportPointer(&data, pointer(block->address)));
	memcpy(ticket->handle, &data, sizeof(data));
	return CALL(cudaMemPoolExportToShareableHandle(&ticket->descriptor, block->pool,
	                                               cudaMemHandleTypePosixFileDescriptor, 0));
}

static int import_pooled(const struct ticket *ticket, uint64_t *address, void **pool)
{
	struct cudaMemPoolPtrExportData data;

	memcpy(&data, ticket->handle, sizeof(data));
	TRY(cudaMemPoolImportFromShareableHandle((cudaMemPool_t *)pool, (void *)(intptr_t)ticket->descriptor,
	                                         cudaMemHandleTypePosixFileDescriptor, 0));
	return CALL(cudaMemPoolImportPointer((void **)address, *pool, &data));
}

static int end_pooled(uint64_t address, void *pool)
{
	TRY(cudaFreeAsync(pointer(address), NULL));
	TRY(cudaDeviceSynchronize());
	return CALL(cudaMemPoolDestroy(pool));
}
#endif

static int runtime_hand_out(const struct block *block, struct ticket *ticket)
{
	RUNTIME(IpcMemHandle_t) handle;

	if (block->kind == POOLED_SHARED)
		return hand_out_pooled(block, ticket);
	TRY(RUNTIME(IpcGetMemHandle)(&handle, pointer(block->address)));
	memcpy(ticket->handle, &handle, sizeof(handle));
	return 0;
}

static int runtime_import(const struct ticket *ticket, uint64_t *address, void **pool)
{
	RUNTIME(IpcMemHandle_t) handle;

	if (ticket->kind == POOLED_SHARED)
		return import_pooled(ticket, address, pool);
	memcpy(&handle, ticket->handle, sizeof(handle));
	return CALL(RUNTIME(IpcOpenMemHandle)((void **)address, handle, 1 /* lazy access of peers */));
}

static int runtime_import_end(const struct ticket *ticket, uint64_t address, void *pool)
{
	return ticket->kind == POOLED_SHARED ? end_pooled(address, pool)
	                                     : CALL(RUNTIME(IpcCloseMemHandle)(pointer(address)));
}

const struct share_api shares = {
#ifdef HIP
    .kinds = {[PLAIN] = true, [PITCHED] = true},
#else
    .kinds = {[PLAIN] = true, [PITCHED] = true, [POOLED_SHARED] = true},
#endif
    .hand_out = runtime_hand_out,
    .import = runtime_import,
    .import_end = runtime_import_end,
};

/* Devices: contexts that reach each other's memory, their code, and the streams of each thread there. */
#include "moving.h"

CUcontext moving_context[MOVING_DEVICES];
_Atomic(CUmemoryPool) moving_plugged_pool[MOVING_DEVICES];
static CUmodule module[MOVING_DEVICES];

/* The device gets access to memory of `owner`. Memory of a pool has an access list of its own. */
static bool reach(int device, int owner)
{
	return !cuCtxSetCurrent(moving_context[device]) && !cuCtxEnablePeerAccess(moving_context[owner], 0);
}

bool moving_open_devices(void)
{
	for (int device = 0; device < moving_devices; device++)
		if (cuDevicePrimaryCtxRetain(&moving_context[device], device) ||
		    cuCtxSetCurrent(moving_context[device]) || cuModuleLoad(&module[device], moving_kernels))
			return false;
	for (int device = 0; device < moving_devices; device++)
		for (int owner = 0; owner < moving_devices; owner++)
			if (owner != device && atomic_load(&moving_peers) && !reach(device, owner))
				return false;
	return true;
}

/* Pools have no memory of the program afterwards. That of pools that ended goes with the wait. */
static bool empty_pools(int device)
{
	CUmemoryPool pool, plugged = atomic_load(&moving_plugged_pool[device]);

	return !cuCtxSetCurrent(moving_context[device]) && !cuCtxSynchronize() &&
	       !cuDeviceGetDefaultMemPool(&pool, device) && !cuMemPoolTrimTo(pool, 0) &&
	       (!plugged || !cuMemPoolTrimTo(plugged, 0));
}

bool moving_close_devices(void)
{
	bool closed = true;

	for (int device = 0; device < moving_devices; device++)
		closed &= empty_pools(device);
	for (int device = 0; device < moving_devices; device++)
		closed &= !cuDevicePrimaryCtxRelease_v2(device);
	return closed;
}

static bool open_code(struct moving_code *code, int device)
{
	return !cuModuleGetFunction(&code->fill, module[device], "fill") &&
	       !cuModuleGetFunction(&code->fill_all, module[device], "fill_all") &&
	       !cuModuleGetFunction(&code->verify, module[device], "verify") &&
	       !cuModuleGetFunction(&code->copy, module[device], "copy") &&
	       !cuModuleGetFunction(&code->hold_fill, module[device], "hold_fill") &&
	       !cuModuleGetFunction(&code->read_until, module[device], "read_until") &&
	       !cuModuleGetFunction(&code->read_loop, module[device], "read_loop");
}

bool moving_open_streams(struct moving_worker *worker)
{
	for (unsigned i = 0; i < moving_streams(); i++)
		if (cuCtxSetCurrent(moving_context[moving_device_of(worker, i)]) ||
		    cuStreamCreate(&worker->streams[i], 1))
			return false;
	for (int device = 0; device < moving_devices; device++)
		if (cuCtxSetCurrent(moving_context[device]) || cuEventCreate(&worker->event[device], 2) ||
		    !open_code(&worker->code[device], device))
			return false;
	return !cuCtxSetCurrent(moving_context[worker->device]);
}

void moving_close_streams(struct moving_worker *worker)
{
	for (unsigned i = 0; i < moving_streams(); i++)
		moving_must(worker, "cuStreamDestroy", cuStreamDestroy_v2(worker->streams[i]));
	for (int device = 0; device < moving_devices; device++)
		moving_must(worker, "cuEventDestroy", cuEventDestroy_v2(worker->event[device]));
}

void moving_enter(struct moving_worker *worker, int device)
{
	if (moving_devices > 1)
		moving_must(worker, "cuCtxSetCurrent", cuCtxSetCurrent(moving_context[device]));
}

unsigned moving_stream_for(struct moving_worker *worker, const struct moving_block *block)
{
	int device = moving_reaches(block, 1 - block->device) && moving_devices > 1
	                 ? (int)moving_random(worker, MOVING_DEVICES)
	                 : block->device;
	return moving_stream_on(worker, device);
}

unsigned moving_stream_on(struct moving_worker *worker, int device)
{
	return (device == worker->device ? 0 : MOVING_STREAMS) +
	       (unsigned)moving_random(worker, MOVING_STREAMS);
}

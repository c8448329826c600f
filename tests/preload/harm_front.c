/*
 * Stands in front of the simulator under the driver's name, and calls the program before some
 * calls, and behind one. There the program does the things that a tool's callback inside the driver could do.
 */
#include "harm.h"

#include <dlfcn.h>
#include <stddef.h>

#define TOLD(call, symbol, parameters, ...) \
	CUresult symbol parameters; \
	CUresult symbol parameters \
	{ \
		CUresult(*real) parameters; \
		CUresult refused = harm_called(call); \
		*(void **)&real = dlsym(RTLD_NEXT, #symbol); \
		return refused ? refused : real(__VA_ARGS__); \
	}

TOLD(prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? HARM_DEVICE : HARM_HOST, cuMemCreate,
     (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *prop,
      unsigned long long flags),
     handle, size, prop, flags)
TOLD(HARM_COPY, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), to, from,
     bytes, stream)
TOLD(HARM_MARK, cuCtxRecordEvent, (CUcontext context, CUevent event), context, event)
TOLD(HARM_PINNED, cuMemHostAlloc, (void **pointer, size_t bytes, unsigned flags), pointer, bytes, flags)
TOLD(HARM_INFO, cuMemGetInfo_v2, (size_t * free, size_t *total), free, total)

CUresult cuMemUnmap(CUdeviceptr address, size_t bytes)
{
	CUresult (*real)(CUdeviceptr, size_t);
	*(void **)&real = dlsym(RTLD_NEXT, "cuMemUnmap");
	CUresult result = real(address, bytes);
	struct harm_block block = harm_block_a();
	if (address - block.address < block.bytes)
		harm_called(HARM_UNMAP);
	return result;
}

/* A second preloaded library, behind ours: a card that can be divided, which the simulated one cannot. */
#include "abi/cuda.h"

__attribute__((visibility("default"))) CUresult cuGreenCtxCreate(void **context, void *description,
                                                                 CUdevice device, unsigned flags);

CUresult cuGreenCtxCreate(void **context, void *description, CUdevice device, unsigned flags)
{
	static int green;

	*context = &green;
	return CUDA_SUCCESS;
}

/* A program of the driver begins with its primary context and one allocation; the driver keeps no last error. */
#include "cuda_api.h"
#include "rows.h"

int rows_begin(void)
{
	CUdeviceptr pointer;
	CUcontext context;
	CUresult error = cuInit(0);
	if (!error)
		error = cuDevicePrimaryCtxRetain(&context, 0);
	if (!error)
		error = cuCtxSetCurrent(context);
	return error ? (int)error : (int)cuMemAlloc_v2(&pointer, 1 << 20);
}

int rows_last_error(void)
{
	return 0;
}

/*
 * Launches as before CUDA 4, which the driver still has: a function keeps its parameters and its
 * block shape. Also the launch of one kernel on several devices.
 */
#include <string.h>

#include "cuda_entry.h"

#define BYTES 64 /* 8 parameters of 8 bytes: kernel.h */

struct face { /* in sim_kernel_face */
	int block[3];
	unsigned bytes;
	unsigned char parameter[BYTES];
};

static CUresult face_of(CUfunction function, struct face **out)
{
	struct sim_kernel *kernel;
	CUresult result = driver_function(function, &kernel);

	_Static_assert(sizeof(struct face) <= SIM_FACE, "the core keeps that much");
	if (!result)
		*out = sim_kernel_face(kernel);
	return result;
}

CUresult cuFuncSetBlockShape(CUfunction hfunc, int x, int y, int z)
{
	struct face *face;

	ENTER(cuFuncSetBlockShape, CONTEXT);
	CUresult result = face_of(hfunc, &face);
	if (!result && (x <= 0 || y <= 0 || z <= 0))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		memcpy(face->block, (int[]){x, y, z}, sizeof(face->block));
	return result;
}

CUresult cuFuncSetSharedSize(CUfunction hfunc, unsigned int bytes)
{
	struct face *face;

	ENTER(cuFuncSetSharedSize, CONTEXT);
	return face_of(hfunc, &face);
}

CUresult cuParamSetSize(CUfunction hfunc, unsigned int numbytes)
{
	struct face *face;

	ENTER(cuParamSetSize, CONTEXT);
	CUresult result = face_of(hfunc, &face);
	if (!result && numbytes > BYTES)
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		face->bytes = numbytes;
	return result;
}

static CUresult set_parameter(CUfunction function, int offset, const void *from, unsigned bytes)
{
	struct face *face;
	CUresult result = face_of(function, &face);

	if (!result && (offset < 0 || !from || bytes > BYTES || (unsigned)offset > BYTES - bytes))
		result = CUDA_ERROR_INVALID_VALUE;
	if (!result)
		memcpy(face->parameter + offset, from, bytes);
	return result;
}

CUresult cuParamSeti(CUfunction hfunc, int offset, unsigned int value)
{
	ENTER(cuParamSeti, CONTEXT);
	return set_parameter(hfunc, offset, &value, sizeof(value));
}

CUresult cuParamSetf(CUfunction hfunc, int offset, float value)
{
	ENTER(cuParamSetf, CONTEXT);
	return set_parameter(hfunc, offset, &value, sizeof(value));
}

CUresult cuParamSetv(CUfunction hfunc, int offset, void *ptr, unsigned int numbytes)
{
	ENTER(cuParamSetv, CONTEXT);
	return set_parameter(hfunc, offset, ptr, numbytes);
}

static CUresult launch_grid(CUfunction function, int width, int height, CUstream hStream)
{
	struct face *face;
	CUresult result = face_of(function, &face);

	if (result)
		return result;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	const struct sim_shape shape = {
	    {(unsigned)width, (unsigned)height, 1},
	    {(unsigned)face->block[0], (unsigned)face->block[1], (unsigned)face->block[2]},
	    0};
	size_t bytes = face->bytes;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, face->parameter, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	return driver_launch(function, &shape, hStream, NULL, extra);
}

CUresult cuLaunch(CUfunction f)
{
	ENTER(cuLaunch, CONTEXT);
	return launch_grid(f, 1, 1, CU_STREAM_LEGACY);
}

CUresult cuLaunchGrid(CUfunction f, int grid_width, int grid_height)
{
	ENTER(cuLaunchGrid, CONTEXT);
	return launch_grid(f, grid_width, grid_height, CU_STREAM_LEGACY);
}

CUresult cuLaunchGridAsync(CUfunction f, int grid_width, int grid_height, CUstream hStream)
{
	ENTER(cuLaunchGridAsync, CONTEXT);
	return launch_grid(f, grid_width, grid_height, hStream);
}

/* -- several devices --------------------------------------------------------------------------- */

static bool is_special_stream(CUstream stream)
{
	return !stream || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

static CUresult list_good(const CUDA_LAUNCH_PARAMS *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct sim_stream *stream =
		    is_special_stream(list[i].hStream) ? NULL : driver_stream(list[i].hStream);

		if (!stream)
			return CUDA_ERROR_INVALID_HANDLE;
		if (memcmp(&list[i].gridDimX, &list[0].gridDimX, 7 * sizeof(unsigned)))
			return CUDA_ERROR_INVALID_VALUE;
		for (unsigned j = 0; j < i; j++)
			if (sim_context_device(sim_stream_context(stream)) ==
			    sim_context_device(sim_stream_context((struct sim_stream *)list[j].hStream)))
				return CUDA_ERROR_INVALID_DEVICE;
	}
	return CUDA_SUCCESS;
}

/* Each of the streams continues when all have reached this point. */
static CUresult join_streams(const CUDA_LAUNCH_PARAMS *list, unsigned count)
{
	enum sim_status status = SIM_OK;

	for (unsigned i = 0; i < count && !status; i++) {
		struct sim_stream *stream = (struct sim_stream *)list[i].hStream;
		struct sim_event *event;

		status = sim_event_create(sim_stream_context(stream), false, &event);
		if (status)
			break;
		status = sim_event_record(event, stream);
		for (unsigned j = 0; j < count && !status; j++)
			if (j != i)
				status = sim_stream_wait((struct sim_stream *)list[j].hStream, event);
		sim_event_destroy(event);
	}
	return driver_result(status);
}

CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launchParamsList, unsigned int numDevices,
                                              unsigned int flags)
{
	const CUDA_LAUNCH_PARAMS *list = launchParamsList;

	ENTER(cuLaunchCooperativeKernelMultiDevice, CONTEXT);
	if (!list || !numDevices || numDevices > SIM_DEVICES || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	CUresult result = list_good(list, numDevices);
	if (!result && !(flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_PRE_LAUNCH_SYNC))
		result = join_streams(list, numDevices);
	for (unsigned i = 0; i < numDevices && !result; i++) {
		const struct sim_shape shape = {{list[i].gridDimX, list[i].gridDimY, list[i].gridDimZ},
		                                {list[i].blockDimX, list[i].blockDimY, list[i].blockDimZ},
		                                list[i].sharedMemBytes};

		result = driver_launch(list[i].function, &shape, list[i].hStream, list[i].kernelParams, NULL);
	}
	if (!result && !(flags & CUDA_COOPERATIVE_LAUNCH_MULTI_DEVICE_NO_POST_LAUNCH_SYNC))
		result = join_streams(list, numDevices);
	return result;
}

/*
 * The context of a call. The runtime retains a device's primary context at the first call that
 * needs one, and makes it current. A context that the program made current with the driver API is
 * used unchanged.
 */
#include <pthread.h>
#include <stdbool.h>

#include "cudart_entry.h"

#define DEVICES 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[DEVICES]; /* retained here; NULL before, and after cudaDeviceReset */
/* the one before cudaDeviceReset, which may still be current in a thread */
static CUcontext stale[DEVICES];

static _Thread_local int chosen; /* cudaSetDevice */

cudaError_t cudart_device(int ordinal, CUdevice *device)
{
	int count = 0;
	cudaError_t error = cudart_error(CU(cuDeviceGetCount, &count));

	if (error)
		return error;
	if (ordinal < 0 || ordinal >= count || ordinal >= DEVICES)
		return cudaErrorInvalidDevice;
	return cudart_error(CU(cuDeviceGet, device, ordinal));
}

cudaError_t cudart_primary(int ordinal, CUcontext *context)
{
	CUdevice device;
	cudaError_t error = cudart_device(ordinal, &device);

	if (error)
		return error;
	pthread_mutex_lock(&lock);
	if (!primary[ordinal])
		error = cudart_error(CU(cuDevicePrimaryCtxRetain, &primary[ordinal], device));
	*context = primary[ordinal];
	pthread_mutex_unlock(&lock);
	return error;
}

/* Retains the primary context of `ordinal`, once, and makes it current. */
static cudaError_t use_primary(int ordinal)
{
	CUcontext context;
	cudaError_t error = cudart_primary(ordinal, &context);

	return error ? error : cudart_error(CU(cuCtxSetCurrent, context));
}

/* Device whose primary context was `context` before a reset without recovery yet, or -1. */
static int reset_device(CUcontext context)
{
	int found = -1;

	pthread_mutex_lock(&lock);
	for (int i = 0; i < DEVICES && found < 0; i++) {
		if (stale[i] == context && !primary[i])
			found = i;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

cudaError_t cudart_enter(void)
{
	CUcontext current = NULL;
	cudaError_t error = cudart_init();

	if (!error)
		error = cudart_error(CU(cuCtxGetCurrent, &current));
	if (error)
		return error;
	if (!current)
		return use_primary(chosen);
	int device = reset_device(current);
	return device < 0 ? cudaSuccess : use_primary(device);
}

cudaError_t cudart_current_device(int *device)
{
	CUcontext current = NULL;
	cudaError_t error = cudart_error(CU(cuCtxGetCurrent, &current));

	if (error)
		return error;
	if (current && reset_device(current) < 0)
		return cudart_error(CU(cuCtxGetDevice, device));
	*device = chosen;
	return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
	CUDART_ENTER(init);
	cudaError_t error = use_primary(device);
	if (!error)
		chosen = device;
	return cudart_leave(error);
}

cudaError_t cudaInitDevice(int device, unsigned int deviceFlags, unsigned int flags)
{
	(void)deviceFlags;
	(void)flags;
	CUcontext before = NULL;

	CUDART_ENTER(init);
	/* Initialises the device, and does not make it current. */
	cudaError_t error = cudart_error(CU(cuCtxGetCurrent, &before));
	if (!error)
		error = use_primary(device);
	if (!error)
		error = cudart_error(CU(cuCtxSetCurrent, before));
	return cudart_leave(error);
}

cudaError_t cudaGetDevice(int *device)
{
	CUDART_ENTER(init);
	if (!device)
		return cudart_leave(cudaErrorInvalidValue);
	return cudart_leave(cudart_current_device(device));
}

cudaError_t cudaDeviceReset(void)
{
	int ordinal;
	CUdevice device;

	CUDART_ENTER(init);
	cudaError_t error = cudart_current_device(&ordinal);
	if (!error)
		error = cudart_device(ordinal, &device);
	if (error)
		return cudart_leave(error);
	pthread_mutex_lock(&lock);
	if (primary[ordinal])
		stale[ordinal] = primary[ordinal];
	primary[ordinal] = NULL;
	pthread_mutex_unlock(&lock);
	error = cudart_error(CU(cuDevicePrimaryCtxReset, device));
	if (!error)
		error = cudart_error(CU(cuCtxSetCurrent, NULL));
	return cudart_leave(error);
}

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>

#include "cudart_driver.h"

/* A CUDA 13 runtime passes this for functions with one ABI only. It is that ABI's version, too. */
#define FLAG_LEGACY_STREAM 1

struct cudart_driver cudart_driver;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool loaded, initialised;

static void *find_function(const char *name, int version)
{
	CUdriverProcAddressQueryResult status;
	void *found = NULL;

	if (cudart_driver.cuGetProcAddress(name, &found, version, FLAG_LEGACY_STREAM, &status) !=
	    CUDA_SUCCESS)
		return NULL;
	return found;
}

static cudaError_t load_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library)
		return cudaErrorInsufficientDriver;
	*(void **)&cudart_driver.cuGetProcAddress = dlsym(library, "cuGetProcAddress_v2");
	if (!cudart_driver.cuGetProcAddress)
		return cudaErrorInsufficientDriver;
#define DRIVER(name, since, params) *(void **)&cudart_driver.name = find_function(#name, since);
#include "cudart_driver.def"
	if (!cudart_driver.cuInit)
		return cudaErrorInsufficientDriver;
	return cudaSuccess;
}

static cudaError_t load_locked(void)
{
	cudaError_t error = loaded ? cudaSuccess : load_driver();

	loaded = error == cudaSuccess;
	return error;
}

cudaError_t cudart_driver_load(void)
{
	pthread_mutex_lock(&lock);
	cudaError_t error = load_locked();
	pthread_mutex_unlock(&lock);
	return error;
}

cudaError_t cudart_driver_init(void)
{
	if (__atomic_load_n(&initialised, __ATOMIC_ACQUIRE))
		return cudaSuccess;
	pthread_mutex_lock(&lock);
	cudaError_t error = load_locked();
	if (!error)
		error = (cudaError_t)cudart_driver.cuInit(0);
	if (!error)
		__atomic_store_n(&initialised, true, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&lock);
	return error;
}

CUresult cudart_driver_lacks(const char *name)
{
	fprintf(stderr, "sim: %s is not in this driver\n", name);
	return CUDA_ERROR_NOT_SUPPORTED;
}

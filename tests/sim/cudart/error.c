/* Last errors as NVIDIA documents them: per thread, set by a failure, kept by a success. */
#include <stdio.h>

#include "cudart_entry.h"

static _Thread_local cudaError_t last_error;

static const struct {
	cudaError_t error;
	const char *name, *text;
} errors[] = {
#define ERROR(number, name, text) {(cudaError_t)number, #name, text},
#include "cudart_errors.def"
};

cudaError_t cudart_leave(cudaError_t error)
{
	/* A query's "not ready" is a result. A real runtime does not keep it as an error either. */
	if (error && error != cudaErrorNotReady)
		last_error = error;
	return error;
}

/* NVIDIA's runtime starts the driver here too: without one, this call fails. */
static cudaError_t last_error_of_thread(void)
{
	cudart_leave(cudart_init());
	return last_error;
}

/* Clears the error, even if the context is broken: the next call fails again. */
cudaError_t cudaGetLastError(void)
{
	cudaError_t error = last_error_of_thread();

	last_error = cudaSuccess;
	return error;
}

cudaError_t cudaPeekAtLastError(void)
{
	return last_error_of_thread();
}

const char *cudaGetErrorName(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == error)
			return errors[i].name;
	}
	return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
		if (errors[i].error == error)
			return errors[i].text;
	}
	return "unrecognized error code";
}

cudaError_t cudart_missing(const char *name)
{
	fprintf(stderr, "sim: %s is not implemented\n", name);
	return cudart_leave(cudaErrorNotSupported);
}

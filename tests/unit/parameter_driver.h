/*
 * A driver of a test's own that tells the sizes of a function's parameters (layouts.c). CHECK is that of childtest.h.
 */
#ifndef SPILL_TEST_PARAMETER_DRIVER_H
#define SPILL_TEST_PARAMETER_DRIVER_H

#include <errno.h>
#include <string.h>

#include "childtest.h"
#include "abi/cuda_work.h"
#include "layouts.h"
#include "process.h"
#include "real.h"

/* Sizes of parameters, 0 behind the last, by function handle modulo KINDS; the even ones are CUkernel. */
enum { KINDS = 32 };
static size_t sizes[KINDS][1100];
static _Atomic unsigned asked;
static void (*_Atomic in_ask)(void); /* what the next question does */
static bool lacks_kernels, lacks_functions;
static CUresult always;

static CUresult answer(uintptr_t function, bool of_kernel, size_t index, size_t *offset, size_t *size)
{
	CHECK(spill_thread.depth == 1);
	errno = EDOM;
	asked++;
	void (*action)(void) = atomic_exchange(&in_ask, NULL);
	if (action)
		action();
	if (always)
		return always;
	if (of_kernel != (function % 2 == 0))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!sizes[function % KINDS][index])
		return CUDA_ERROR_INVALID_VALUE;
	*offset = 0;
	*size = sizes[function % KINDS][index];
	return CUDA_SUCCESS;
}

static CUresult kernel_info(const void *function, size_t index, size_t *offset, size_t *size)
{
	return answer((uintptr_t)function, true, index, offset, size);
}

static CUresult function_info(const void *function, size_t index, size_t *offset, size_t *size)
{
	return answer((uintptr_t)function, false, index, offset, size);
}

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	CHECK(domain == SPILL_CUDA_DRIVER);
	if (!strcmp(symbol, "cuKernelGetParamInfo"))
		return lacks_kernels ? NULL : (void *)kernel_info;
	CHECK(!strcmp(symbol, "cuFuncGetParamInfo"));
	return lacks_functions ? NULL : (void *)function_info;
}

#endif

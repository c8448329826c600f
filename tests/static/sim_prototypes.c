/*
 * Proves the simulator's own rows by the vendors' headers, as prototypes.c does for hooks.def: functions of the
 * simulated runtimes, the driver functions that the runtime asks for, attribute and error numbers.
 */
#include <stdio.h>

/* Deprecated names are names still. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#if defined(PROTOTYPES_SIM_DRIVER)
#define __CUDA_API_VERSION_INTERNAL /* the typedefs of first versions, too */
#include <cudaTypedefs.h>
#elif defined(PROTOTYPES_SIM_CUDART)
#include <cuda_runtime_api.h>
#elif defined(PROTOTYPES_SIM_HIP)
#include <hip/hip_runtime_api.h>
#elif defined(PROTOTYPES_SIM_NVML)
#include <nvml.h>
#else
#error "one of PROTOTYPES_SIM_DRIVER, PROTOTYPES_SIM_CUDART, PROTOTYPES_SIM_HIP, PROTOTYPES_SIM_NVML"
#endif

#define SAME(name, ours, theirs) \
	_Static_assert(__builtin_types_compatible_p(ours, theirs), \
	               name " has another prototype in the vendor's header");
#define EQUAL(name, number) \
	_Static_assert((name) == (number), #name " is another number in the vendor's header");

#if defined(PROTOTYPES_SIM_DRIVER)
#define DRIVER(name, since, params) SAME(#name, CUresult(*) params, PFN_##name##_v##since)
#include "cudart_driver.def"
#define PROPERTY(field, name, number) EQUAL(name, number)
#include "cudart_properties.def"
#define DRIVER(name, since, params) +1
#define ROWS "cudart_driver.def"
#elif defined(PROTOTYPES_SIM_CUDART)
#define API(ret, name, params) SAME(#name, ret params, __typeof__(name))
#include "cudart_api.def"
#define ERROR(number, name, text) EQUAL(name, number)
#include "cudart_errors.def"
#define API(ret, name, params) +1
#define ROWS "cudart_api.def"
#elif defined(PROTOTYPES_SIM_NVML)
#define NVML(ret, name, params) SAME(#name, ret params, __typeof__(name))
#include "nvml_api.def"
#define NVML(ret, name, params) +1
#define ROWS "nvml_api.def"
#else
#define API(node, ret, name, params) SAME(#name, ret params, __typeof__(name))
#include "hip_api.def"
#define ERROR(number, name) EQUAL(name, number)
#include "hip_errors.def"
#define API(node, ret, name, params) +1
#define ROWS "hip_api.def"
#endif

static const int rows = 0
#include ROWS
    ;

int main(void)
{
	printf("%d rows of %s have the vendor's prototypes\n", rows, ROWS);
	return rows == 0;
}

/*
 * Proves that the functions which libspill calls itself (src/backend_*.def) have the vendor's own prototypes, by the
 * vendor's headers; one that has not does not compile.
 */
#include <stdio.h>

#if defined(BACKEND_CUDA)
#define __CUDA_API_VERSION_INTERNAL /* the first versions by their own names, too */
#include <cuda.h>
#define LIST "backend_cuda.def"
#elif defined(BACKEND_HIP)
#include <hip/hip_runtime_api.h>
#define LIST "backend_hip.def"
#elif defined(BACKEND_NVML)
#include <nvml.h>
#define LIST "backend_nvml.def"
#else
#error "one of BACKEND_CUDA, BACKEND_HIP, BACKEND_NVML"
#endif

#define FUNCTION(needed, ret, symbol, params) \
	_Static_assert(__builtin_types_compatible_p(ret params, __typeof__(symbol)), \
	               #symbol " has another prototype in the vendor's header");
#include LIST

#define FUNCTION(needed, ret, symbol, params) +1
static const int functions = 0
#include LIST
    ;

int main(void)
{
	printf("%d functions have the vendor's prototypes\n", functions);
	return functions == 0;
}

/*
 * Proves that every row of shim/hooks.def has the vendor's own prototype, by the vendor's headers; a row that
 * has not does not compile. Built once per domain (PROTOTYPES_CUDA_DRIVER, …): rows of the other domains
 * expand to nothing, so that one vendor's headers are enough.
 */
#include <stdio.h>

/* Deprecated names are names still. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#if defined(PROTOTYPES_CUDA_DRIVER)
#define __CUDA_API_VERSION_INTERNAL /* the typedefs of first versions, too */
#include <cudaTypedefs.h>
#elif defined(PROTOTYPES_CUDA_RUNTIME)
#include <cuda_runtime_api.h>
#elif defined(PROTOTYPES_HIP)
#include <hip/hip_runtime_api.h>
#elif defined(PROTOTYPES_NVML)
#include <nvml.h>
#else
#error "one of PROTOTYPES_CUDA_DRIVER, PROTOTYPES_CUDA_RUNTIME, PROTOTYPES_HIP, PROTOTYPES_NVML"
#endif

#define SAME(name, ours, theirs) \
	_Static_assert(__builtin_types_compatible_p(ours, theirs), \
	               name " has another prototype in the vendor's header");

#define NONE(...)
#define DRIVER_ROW(name, typedefs, symbol, base, variant, ret, params) \
	SAME(name, ret(*) params, DRIVER_##variant typedefs)
#define DRIVER_LEGACY(legacy, ptds, ptsz) legacy
#define DRIVER_PTDS(legacy, ptds, ptsz) ptds
#define DRIVER_PTSZ(legacy, ptds, ptsz) ptsz
/* The runtime's headers declare the per-thread variants only as their base. */
#define LIBRARY_ROW(name, typedefs, symbol, base, variant, ret, params) \
	SAME(name, ret params, __typeof__(LIBRARY_##variant(symbol, base)))
#define LIBRARY_LEGACY(symbol, base) symbol
#define LIBRARY_PTSZ(symbol, base) base
#define COUNT_ROW(...) +1

#ifdef PROTOTYPES_CUDA_DRIVER
#define ROW_CUDA_DRIVER DRIVER_ROW
#define COUNT_CUDA_DRIVER COUNT_ROW
#else
#define ROW_CUDA_DRIVER NONE
#define COUNT_CUDA_DRIVER NONE
#endif

#ifdef PROTOTYPES_CUDA_RUNTIME
#define ROW_CUDA_RUNTIME LIBRARY_ROW
#define COUNT_CUDA_RUNTIME COUNT_ROW
#else
#define ROW_CUDA_RUNTIME NONE
#define COUNT_CUDA_RUNTIME NONE
#endif

#ifdef PROTOTYPES_HIP
#define ROW_HIP LIBRARY_ROW
#define COUNT_HIP COUNT_ROW
#else
#define ROW_HIP NONE
#define COUNT_HIP NONE
#endif

#ifdef PROTOTYPES_NVML
#define ROW_NVML LIBRARY_ROW
#define COUNT_NVML COUNT_ROW
#else
#define ROW_NVML NONE
#define COUNT_NVML NONE
#endif

/*
 * base + since + variant is the driver's own typedef, PFN_cuMemAllocAsync_v11020_ptsz. Pasted here and not
 * further in, because cuda.h defines many a base as a macro of its newest symbol.
 */
#define UNPROVEN NONE /* no header here has them; docs/hooks.md lists them */
#define HOOK(domain, ret, symbol, base, since, variant, op, params, ...) \
	ROW_##domain(#symbol, \
	             (PFN_##base##_v##since, PFN_##base##_v##since##_ptds, PFN_##base##_v##since##_ptsz), \
	             symbol, base, variant, ret, params)
#include "hooks.def"

#define UNPROVEN NONE
#define HOOK(domain, ...) COUNT_##domain(__VA_ARGS__)
static const int rows = 0
#include "hooks.def"
    ;

int main(void)
{
	printf("%d rows have the vendor's prototypes\n", rows);
	return rows == 0;
}

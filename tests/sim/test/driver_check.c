/*
 * Proves cuda_api.h, cuda_api.def and cuda_errors.def by the vendor's headers. One table is
 * compiled with ours (DRIVER_OURS) and with theirs. tests/static/abi_compare.c compares both.
 */
#include <stddef.h>

#include "abi_table.h"

#ifdef DRIVER_OURS
#include "cuda_api.h"
#define TABLE abi_ours
#define COUNT abi_ours_count
#else
#define __CUDA_API_VERSION_INTERNAL /* also the typedefs of first versions */
#include <cudaTypedefs.h>
#include <cudaProfilerTypedefs.h>
#define TABLE abi_theirs
#define COUNT abi_theirs_count

#define SAME(symbol, theirs, parameters) \
	_Static_assert(__builtin_types_compatible_p(theirs, CUresult(CUDAAPI *) parameters), \
	               #symbol " has another prototype in the vendor's header");
#define CHECK_LEGACY(symbol, typedefed, parameters) SAME(symbol, typedefed, parameters)
#define CHECK_PTDS(symbol, typedefed, parameters) SAME(symbol, typedefed##_ptds, parameters)
#define CHECK_PTSZ(symbol, typedefed, parameters) SAME(symbol, typedefed##_ptsz, parameters)
/* Before cuda.h's macros make cuMemAlloc_v2 of cuMemAlloc. */
#define DRIVER(symbol, base, since, variant, parameters) \
	CHECK_##variant(symbol, PFN_##base##_v##since, parameters)
#define LATER(...)
#include "cuda_api.def"

#define ERROR(number, name, text) _Static_assert((name) == (number), #name " is another number");
#include "cuda_errors.def"
#endif

#define CONSTANT(name) {#name, (long long)(name), 0},
#define SIZE(type) {"size of " #type, sizeof(type), _Alignof(type)},
#define FIELD(type, member) {#type "." #member, offsetof(type, member), sizeof(((type *)0)->member)},

const struct abi_value TABLE[] = {
#include "cuda_values.def"
};

const unsigned COUNT = sizeof(TABLE) / sizeof(TABLE[0]);

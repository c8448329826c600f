/*
 * One table of abi_values.def, compiled with our headers (ABI_OURS) or the vendor's: the two must never meet
 * in one file. abi_compare.c links both.
 */
#include <stddef.h>

#include "abi_table.h"

#if defined(ABI_OURS) && defined(ABI_CUDA)
#include "abi/cuda.h"
#include "abi/cuda_work.h"
#elif defined(ABI_OURS) && defined(ABI_CUDART)
#include "cudart_types.h"
#elif defined(ABI_OURS) && defined(ABI_HIP)
#include "abi/hip.h"
#elif defined(ABI_OURS) && defined(ABI_NVML)
#include "abi/nvml.h"
#elif defined(ABI_CUDA)
#include <cuda.h>
#elif defined(ABI_CUDART)
#include <cuda_runtime_api.h>
#elif defined(ABI_HIP)
#include <hip/hip_runtime_api.h>
#elif defined(ABI_NVML)
#include <nvml.h>
#else
#error "one of ABI_CUDA, ABI_CUDART, ABI_HIP, ABI_NVML"
#endif

#ifdef ABI_OURS
#define TABLE abi_ours
#define COUNT abi_ours_count
#else
#define TABLE abi_theirs
#define COUNT abi_theirs_count
#endif

#define MEMBER_SIZE(type, member) sizeof(((type *)0)->member)

const struct abi_value TABLE[] = {
#define CONSTANT(name) {#name, (long long)(name), 0},
#define SIZE(type) {"size of " #type, sizeof(type), _Alignof(type)},
#define FIELD(type, member) {#type "." #member, offsetof(type, member), MEMBER_SIZE(type, member)},
#include "abi_values.def"
};

const unsigned COUNT = sizeof(TABLE) / sizeof(TABLE[0]);

/*
 * The CUDA driver functions that libspill calls, looked up once from the driver that the program loaded
 * (backend_cuda.c) and shared by the files of this backend. The list is backend_cuda.def; names and versions are
 * those of the CUDA Driver API reference.
 */
#ifndef SPILL_BACKEND_CUDA_H
#define SPILL_BACKEND_CUDA_H

#include "abi/cuda.h"
#include "backend.h"

struct spill_cuda {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_cuda.def"
};

extern struct spill_cuda spill_cuda;

/* Memory: host, managed, virtual memory management (backend_cuda_memory.c). */
int spill_cuda_attribute(int device, CUdevice_attribute which); /* 0 if the driver does not know it */
int spill_cuda_host_alloc(uint64_t bytes, uint64_t *ptr, void **host);
int spill_cuda_host_free(void *host);
int spill_cuda_managed_alloc(uint64_t bytes, uint64_t *ptr);
int spill_cuda_managed_free(uint64_t ptr);
int spill_cuda_advise_preferred(uint64_t ptr, uint64_t bytes, enum spill_location where, int device);
int spill_cuda_advise_accessed_by(uint64_t ptr, uint64_t bytes, enum spill_location who, int device);
int spill_cuda_advise_read_mostly(uint64_t ptr, uint64_t bytes, int device);
int spill_cuda_prefetch(uint64_t ptr, uint64_t bytes, int device);
int spill_cuda_granularity(int device, bool on_host, uint64_t *bytes);
int spill_cuda_reserve(uint64_t bytes, uint64_t alignment, uint64_t *va);
int spill_cuda_unreserve(uint64_t va, uint64_t bytes);
int spill_cuda_create(int device, bool on_host, uint64_t bytes, uint64_t *handle);
int spill_cuda_release(uint64_t handle);
int spill_cuda_map(uint64_t va, uint64_t bytes, uint64_t handle);
int spill_cuda_unmap(uint64_t va, uint64_t bytes);
int spill_cuda_allow(uint64_t va, uint64_t bytes, int device);

#endif

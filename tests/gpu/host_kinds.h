/* The kinds of host memory that spilled data can be in, by the driver's own calls; ordinary memory first, to compare with. */
#ifndef SPILL_GPU_HOST_KINDS_H
#define SPILL_GPU_HOST_KINDS_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

struct memory {
	CUdeviceptr device; /* 0: the device is not to touch it */
	char *host;         /* NULL: the host cannot */
	CUmemGenericAllocationHandle handle;
	CUmemoryPool pool;
};

struct host_kind {
	const char *name;
	bool pinned; /* by the driver, when it is made */
	CUresult (*make)(struct memory *memory, size_t bytes,
	                 int node); /* node: of the host, where the call takes one */
	void (*free)(struct memory *memory, size_t bytes);
};

/* Ends with one without a name. */
extern const struct host_kind host_kinds[];

#endif

/*
 * Declarations of ROCm after 5.2, from AMD's documentation ("HIP Runtime API Reference", ROCm 7).
 * No test here has these headers, so nothing proves the declarations. Rows that use them are
 * UNPROVEN in the table.
 */
#ifndef SPILL_ABI_HIP_LATER_H
#define SPILL_ABI_HIP_LATER_H

#include "hip.h"

typedef struct hipGraphEdgeData hipGraphEdgeData;
/* Enumerations in ROCm's headers. */
typedef int hipDriverProcAddressQueryResult;
typedef int hipDriverEntryPointQueryResult;
typedef int hipMemRangeHandleType;

/* The beginning of ROCm 6's hipDeviceProp_t. libspill does not read the rest. */
typedef struct hipDeviceProp_tR0600 {
	char name[256];
	char uuid[16];
	char luid[8];
	unsigned int luidDeviceNodeMask;
	size_t totalGlobalMem;
} hipDeviceProp_tR0600;

typedef struct hipMemAllocNodeParams {
	hipMemPoolProps poolProps;
	const hipMemAccessDesc *accessDescs;
	size_t accessDescCount;
	size_t bytesize;
	void *dptr;
} hipMemAllocNodeParams;

typedef struct hipMemFreeNodeParams {
	void *dptr;
} hipMemFreeNodeParams;

typedef enum hipGraphNodeType {
	hipGraphNodeTypeMemAlloc = 10,
	hipGraphNodeTypeMemFree = 11,
} hipGraphNodeType;

typedef struct hipGraphNodeParams {
	hipGraphNodeType type;
	int reserved0[3];
	union {
		long long reserved1[29];
		hipMemAllocNodeParams alloc;
		hipMemFreeNodeParams free;
	};
	long long reserved2;
} hipGraphNodeParams;

#endif

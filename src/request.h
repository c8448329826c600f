/*
 * A request: one call of a hooked vendor function, on its way through the engine.
 *
 * The stub (shim/stubs.c) fills it in, then asks spill_request_next() again and again whether the real
 * function is to be called; each time it is, the stub stores the vendor's result. So the engine can try,
 * look at the answer, make room and try again, without knowing any function's signature:
 *
 *	while (spill_request_next(&request))
 *		request.result = real(arguments);
 *	return request.result;
 */
#ifndef SPILL_REQUEST_H
#define SPILL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

struct spill_allocation;

enum spill_domain { SPILL_CUDA_DRIVER, SPILL_CUDA_RUNTIME, SPILL_HIP, SPILL_DOMAINS };

/* What the engine does with a call; one file or function each in src/engine*.c. */
#define SPILL_OPS(X) \
	X(ALLOC, "device memory: decided by policy") \
	X(ALLOC_MANAGED, "managed memory that the program asked for: accounted, passed through") \
	X(ALLOC_HOST, "pinned host memory that the program asked for: accounted, passed through") \
	X(FREE, "gives back what an ALLOC made, wherever it was placed") \
	X(INFO, "free and total memory: the vendor's answer (meminfo.report)") \
	X(ATTR, "attributes of a pointer: what we placed looks like one plain device allocation") \
	X(RANGE, "base and size of an allocation: likewise") \
	X(CONTEXT_DESTROY, "ends a context and all that was allocated in it") \
	X(PRIMARY_RELEASE, "may end a device's primary context") \
	X(PRIMARY_RESET, "ends a device's primary context") \
	X(DEVICE_RESET, "ends everything on the current device") \
	X(RESOLVE, "hands out addresses of vendor functions: ours for those in the table") \
	X(FRAME, "names the API and the caller for the log; never decides")

enum spill_op {
#define X(name, text) SPILL_OP_##name,
	// clang-format off
	SPILL_OPS(X)
#undef X
	SPILL_OPS_COUNT
	// clang-format on
};

/* How the caller got the address of the function. */
#define SPILL_WAYS(X) X(LINK, "link") X(DLSYM, "dlsym") X(PROC, "proc")

enum spill_way {
#define X(id, name) SPILL_WAY_##id,
	// clang-format off
	SPILL_WAYS(X)
#undef X
	SPILL_WAYS_COUNT
	// clang-format on
};

struct spill_request {
	/* Set by the stub. */
	int hook; /* row of the table */
	enum spill_op op;
	enum spill_domain domain;
	enum spill_way way;
	const char *api;
	const void *caller; /* return address */

	/* Set by the row's fill column; which ones depends on op. */
	void *out; /* where the vendor stores the new pointer, range base or function */
	size_t *out_bytes;
	uint64_t bytes, ptr;
	void *context;
	int device;
	unsigned count;         /* ATTR: entries of attributes and values */
	const void *attributes; /* ATTR: CUpointer_attribute[] */
	void **values;
	bool single;      /* ATTR: the call for one attribute, which can fail for it */
	const char *name; /* RESOLVE */

	int result; /* the vendor's error code, stored by the stub or the engine */

	/* The engine's own. */
	bool pass;  /* off or nested: call the real function once and do nothing else */
	bool taken; /* FRAME: a driver row served this call */
	unsigned step;
	bool ends;                      /* context operations: something of ours may end with it */
	struct spill_request *outer;    /* FRAME below this one */
	struct spill_allocation *entry; /* FREE: taken from the ledger */
	int last_error;   /* the vendor's last error before the call, where it has such a thing */
	uint64_t charged; /* bytes charged to the device while the driver is asked */
	uint64_t start_us;
	bool over_limit; /* device.limit refuses; with mode=observe the driver is asked all the same */
	const char *refused_by, *rule;
	unsigned attempts;
	struct spill_attempt tried[SPILL_ATTEMPTS];
};

/* Tells whether the real function is to be called (again). See above. */
bool spill_request_next(struct spill_request *request);

#endif

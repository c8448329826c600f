/*
 * engine: carries out one hooked call. A request is one call of a hooked vendor function, on its way through the engine.
 *
 * The stub (shim/stubs.c) fills it in, then asks spill_request_next() again and again whether the real
 * function is to be called; each time it is, the stub stores the vendor's result. So the engine can try,
 * look at the answer, make room and try again, without knowing any function's signature:
 *
 * 	while (spill_request_next(&request))
 * 		request.result = real(arguments);
 * 	return request.result;
 *
 * It never calls the program's function itself. Begin with this header, then engine.c (one row an operation), admit.h and
 * fallback_chain.h.
 */
#ifndef SPILL_REQUEST_H
#define SPILL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backend.h"
#include "context_end.h"
#include "decide.h"
#include "growth.h"
#include "record.h"
#include "reserve_keeper.h"

struct spill_allocation;
struct spill_vendor_pool;
struct spill_capture;

/* The operations of the engine. Each has a function in an engine*.c; docs/hooks.md prints these texts. */
#define SPILL_OPS(X) \
	X(ALLOC, "allocates device memory: policy decides the place") \
	X(ALLOC_ASYNC, "allocates device memory in stream order, from a pool: policy decides the place") \
	X(ALLOC_MANAGED, "allocates managed memory: counted and passed through") \
	X(ALLOC_HOST, "allocates pinned host memory: counted and passed through") \
	X(REGISTER, "pins host memory of the program: counted and passed through") \
	X(ARRAY, "allocates an array, on the device only: makes room, or returns the vendor's error") \
	X(CREATE, "creates physical memory without an address: policy decides the place") \
	X(GRAPH_ALLOC, \
	  "adds a graph node that allocates: passed through; graph memory counts toward device.limit") \
	X(FREE, "frees an allocation, in every place") \
	X(FREE_ASYNC, "frees an allocation in stream order, in every place") \
	X(GRAPH_FREE, "adds a graph node that frees the memory of another node: passed through") \
	X(RELEASE, "releases a handle of physical memory") \
	X(RETAIN, "makes one more handle of mapped physical memory") \
	X(MAP, "maps physical memory to addresses") \
	X(UNMAP, "unmaps physical memory") \
	X(ACCESS, "sets the devices that may use mapped memory: passed through") \
	X(RESERVE, "reserves or frees addresses without memory: passed through") \
	X(PROPERTIES, "reads properties of a handle: answers those that the program asked for") \
	X(POOL_CREATE, "makes a pool: recorded, so that it can be trimmed") \
	X(POOL_DESTROY, "ends a pool") \
	X(POOL_TRIM, "gives back a pool's unused memory: counted") \
	X(EXPORT, "exports memory to another process or device driver: refused for placed memory") \
	X(INFO, "reads free and total memory: the vendor's answer, changed as meminfo.report says") \
	X(ATTR, "reads attributes of a pointer: placed memory looks like one plain device allocation") \
	X(ATTR_SET, "sets an attribute of a pointer: as for ATTR") \
	X(RANGE, "reads base and size of an allocation: as for ATTR") \
	X(POINTER, "reads all attributes of a pointer in one structure: as for ATTR") \
	X(PEER, "lets a context or device use another's memory: applied to placed memory, too") \
	X(CAPTURE_BEGIN, "begins a capture: in it nothing is placed, waited for or given back") \
	X(CAPTURE_END, "ends a capture") \
	X(CAPTURE_MODE, "changes the calls that a thread may make while others capture") \
	X(STREAM_END, "ends a stream and its capture") \
	X(GATE, "submits work: held back while chunks move; asked again after room was made") \
	X(ROOM, "takes device memory that is no buffer: room is made for it") \
	X(UNLOAD, "unloads code: records of its functions are dropped; passed through") \
	X(GRAPH_CHANGE, "changes an executable graph: the memory it uses is read again; passed through") \
	X(GRAPH_END, "ends an executable graph: the record of its memory is dropped; passed through") \
	X(CONTEXT_CREATE, "makes a context: recorded, so that moves wait for its work; room is made for it") \
	X(PRIMARY_RETAIN, "makes a device's primary context, or adds a user: as for CONTEXT_CREATE") \
	X(CONTEXT_DESTROY, "ends a context and all its allocations") \
	X(PRIMARY_RELEASE, "may end a device's primary context") \
	X(PRIMARY_RESET, "ends a device's primary context") \
	X(DEVICE_RESET, "ends all contexts and allocations of the current device") \
	X(RESOLVE, "returns addresses of vendor functions: of our stub if the function is in the table") \
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

#define SPILL_CURRENT_DEVICE (-1)

struct spill_request {
	/* Set by the stub. */
	int hook; /* row of the table */
	enum spill_op op;
	enum spill_domain domain;
	enum spill_way way;
	const char *api;
	const void *caller; /* return address */
	const void *real;   /* the vendor's function that is called */

	bool per_thread; /* stream 0 means the calling thread's default stream: a _ptsz or _spt row */

	/* Set by the row's fill column; which ones depends on op. */
	enum spill_op
	    other_op; /* what the arguments ask for instead of the row's op, which becomes op; or 0 */
	void *out;    /* where the vendor stores the new pointer, handle, range base, pool or function */
	size_t *out_bytes;
	uint64_t bytes;
	uint64_t ptr;    /* device pointer, host pointer or array */
	uint64_t handle; /* CREATE and its family: of physical memory; INFO of NVML: its device */
	/* `height` times `depth` rows of `width` bytes, padded by the vendor: bytes is 0 and the engine asks the backend. */
	size_t *out_pitch, *out_width, *out_height;
	uint64_t width, height, depth;
	size_t *out_free, *out_total; /* INFO; each may be NULL */
	void *context;
	int device; /* INFO: SPILL_CURRENT_DEVICE for the one that is current */
	void *stream, *pool, *node;
	const void *properties; /* CREATE, POOL_CREATE, ACCESS: the vendor's structure; ATTR_SET: the value */
	/* CAPTURE_BEGIN: the vendor's capture mode; PEER: 1 enables, 0 disables; ATTR_SET: the vendor's attribute */
	unsigned mode;
	/* ATTR: entries of attributes and values; ACCESS: of properties; INFO of NVML: which form of its structure `out` is */
	unsigned count;
	const void *attributes; /* ATTR: CUpointer_attribute[] */
	void **values;
	bool single;                            /* ATTR: the call for one attribute, which can fail for it */
	const char *name;                       /* RESOLVE */
	const struct spill_graph_change *graph; /* ROOM, GRAPH_*: the shim's own (graph_hints.h) */

	int result; /* the vendor's error code, stored by the stub or the engine */

	/* The engine's own. */
	bool pass;  /* off or nested: call the real function once and do nothing else */
	bool taken; /* FRAME: a driver row served this call */
	unsigned step;
	struct spill_context_end
	    end; /* context operations: begun before the vendor's call; no backend: none */
	struct spill_request *outer;        /* FRAME below this one */
	struct spill_allocation *entry;     /* FREE: taken from the ledger */
	struct spill_vmm_memory *memory;    /* RELEASE, MAP, RETAIN: what the call is about */
	struct spill_vmm_mapping *mappings; /* UNMAP: taken from the table */
	struct spill_capture *capture;      /* CAPTURE_END, STREAM_END: taken from the table (capture.c) */
	int last_error;              /* the vendor's last error before the call, where it has such a thing */
	uint64_t weight;             /* device bytes that the driver takes for it */
	uint64_t charged;            /* bytes charged to the device while the driver is asked */
	uint64_t pending;            /* bytes that the driver is asked for, as reserve_keeper.h counts them */
	struct spill_code_load load; /* ROOM: what was free before the vendor was asked */
	struct spill_vendor_pool *mempool; /* ALLOC_ASYNC: the pool whose growth that is, or NULL */
	uint64_t start_us;                 /* spill_log_start_us */
	uint64_t asked_ns; /* the clock when the driver was asked last; 0: not known, or long ago */
	/* What the policy says about it (rules.h, admit.c). Without rules `applied` and the flags are as they were made. */
	const struct spill_rule *applied;  /* the rule that counts for it, or NULL */
	bool asks_growth;                  /* a rule that fits its call site looks at growth */
	bool placeable, place_failed;      /* as in struct spill_ask */
	bool at_once;                      /* it is being made where its rule says */
	struct spill_growth_answer growth; /* once it is served, and somebody wants to know */
	uint64_t charged_rule; /* bytes charged to the rule's cap, and not taken over by the ledger's entry */
	struct spill_decision decision;
	struct spill_fallback remedy; /* from the first failure on */
	unsigned remedy_at;           /* steps that have been tried */
	unsigned demotions;           /* that made enough room for it */
	bool gated;                   /* CAPTURE_*, STREAM_END, ends of contexts: inside the gate (gate.h) */
	bool full;                    /* has failed: remedy is set */
	bool
	    over_limit; /* device.limit or a cap refuses; with mode=observe the driver is asked all the same */
	bool capped;    /* a cap did */
	bool short_of_reserve; /* the driver was not asked: it would take of device.reserve */
	uint64_t
	    reserved_before; /* ALLOC_ASYNC: by its pool, which may have to grow all the same; 0: nobody looks */
	bool last_resort;    /* no place took it: the driver may have it although it takes of the reserve */
	bool repeats;        /* a failure of it has surfaced before, which tried is to say */
	const char *refused_by;
	struct spill_refusal refusal; /* figures of it, if it is an option of the host */
	unsigned attempts;
	struct spill_attempt tried[SPILL_ATTEMPTS];
};

/* Tells whether the real function is to be called (again). See above. */
bool spill_request_next(struct spill_request *request);

#endif

/*
 * engine: carries out one hooked call.
 *
 * A request is one call of a hooked vendor function on its way through the engine. The stub
 * (shim/stubs.c) fills it in. Then the stub runs this loop, and stores each result of the vendor:
 *
 * 	while (spill_request_next(&request))
 * 		request.result = real(arguments);
 * 	return request.result;
 *
 * So the engine can ask the driver, look at the answer, make room and ask again, without knowing
 * the signature of any function. The engine never calls the program's function itself. Begin with
 * this header, then engine.c (one row for each operation), admit.h and fallback_chain.h.
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

struct spill_alloc_kind_ops;
struct spill_allocation;
struct spill_vendor_pool;
struct spill_capture;

/*
 * The operations of the engine: name, function (spill_engine_… of an engine*.c; `pass` calls the
 * vendor and nothing else), and the text in docs/hooks.md.
 */
#define SPILL_OPS(X) \
	X(ALLOC, alloc, "allocates device memory: policy decides the place") \
	X(ALLOC_ASYNC, alloc_async, \
	  "allocates device memory in stream order, from a pool: policy decides the place") \
	X(ALLOC_MANAGED, account, "allocates managed memory: counted and passed through") \
	X(ALLOC_HOST, account, "allocates pinned host memory: counted and passed through") \
	X(REGISTER, account, "pins host memory of the program: counted and passed through") \
	X(ARRAY, array, "allocates an array, on the device only: makes room, or returns the vendor's error") \
	X(CREATE, create, "creates physical memory without an address: policy decides the place") \
	X(GRAPH_ALLOC, graph, \
	  "adds a graph node that allocates: passed through; graph memory counts toward device.limit") \
	X(FREE, free, "frees an allocation, in every place") \
	X(FREE_ASYNC, free, "frees an allocation in stream order, in every place") \
	X(GRAPH_FREE, pass, "adds a graph node that frees the memory of another node: passed through") \
	X(RELEASE, release, "releases a handle of physical memory") \
	X(RETAIN, retain, "makes one more handle of mapped physical memory") \
	X(MAP, map, "maps physical memory to addresses") \
	X(UNMAP, unmap, "unmaps physical memory") \
	X(ACCESS, access, "sets the devices that may use mapped memory: that memory may move from now on") \
	X(RESERVE, pass, "reserves or frees addresses without memory: passed through") \
	X(PROPERTIES, properties, "reads properties of a handle: answers those that the program asked for") \
	X(POOL_CREATE, pool, "makes a pool: recorded, so that it can be trimmed") \
	X(POOL_FIND, pool, "finds the pool of a place: recorded, if it is not on a device") \
	X(POOL_DESTROY, pool, "ends a pool") \
	X(POOL_TRIM, pool, "gives back a pool's unused memory: counted") \
	X(POOL_SHARE, pool, "gives devices access to a pool: to memory that libspill placed for it, too") \
	X(POOL_GET, pool, "reads a figure of a pool: that of our segments is added") \
	X(POOL_SET, pool, "changes a pool; restarts its highest figures, those of our segments too") \
	X(SYNCHRONIZE, synchronize, \
	  "waits for work: afterwards unused memory in stream order goes back, as the driver's does") \
	X(EXPORT, export, \
	  "exports memory to another process or device driver: refused for placed memory, but for legacy " \
	  "handles") \
	X(IMPORT, import, "opens a legacy handle of another process: libspill opens its own") \
	X(IMPORT_END, import_end, "ends the use of an opened handle: likewise") \
	X(INFO, info, "reads free and total memory: the vendor's answer, changed as meminfo.report says") \
	X(ATTR, attributes, \
	  "reads attributes of a pointer: placed memory looks like one plain device allocation") \
	X(ATTR_SET, export, "sets an attribute of a pointer: as for ATTR") \
	X(RANGE, range, "reads base and size of an allocation: as for ATTR") \
	X(POINTER, pointer, "reads all attributes of a pointer in one structure: as for ATTR") \
	X(PEER, peer, "lets a context or device use another's memory: applied to placed memory, too") \
	X(CAPTURE_BEGIN, capture, "begins a capture: in it nothing moves, is waited for or given back") \
	X(CAPTURE_END, capture, "ends a capture") \
	X(CAPTURE_MODE, capture, "changes the calls that a thread may make while others capture") \
	X(STREAM_END, capture, "ends a stream and its capture") \
	X(GATE, pass, "submits work: held back while chunks move; asked again after room was made") \
	X(ROOM, room, "takes device memory that is no buffer: room is made for it") \
	X(UNLOAD, pass, "unloads code: records of its functions are dropped; passed through") \
	X(GRAPH_CHANGE, gated, \
	  "changes an executable graph: the memory it uses is read again; held back while chunks move") \
	X(GRAPH_END, pass, "ends an executable graph: the record of its memory is dropped; passed through") \
	X(CONTEXT_CREATE, room, \
	  "makes a context: recorded, so that moves wait for its work; room is made for it") \
	X(PRIMARY_RETAIN, room, "makes a device's primary context, or adds a user: as for CONTEXT_CREATE") \
	X(CONTEXT_DESTROY, context, "ends a context and all its allocations") \
	X(PRIMARY_RELEASE, context, "may end a device's primary context") \
	X(PRIMARY_RESET, context, "ends a device's primary context") \
	X(DEVICE_RESET, context, "ends all contexts and allocations of the current device") \
	X(RESOLVE, pass, \
	  "returns addresses of vendor functions: of our stub if the function is in the table") \
	X(FRAME, frame, "names the API and the caller for the log; never decides")

enum spill_op {
#define X(name, function, text) SPILL_OP_##name,
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

/* SYNCHRONIZE: the work that the call waits for. */
enum spill_waits_for { SPILL_WAITS_FOR_EVENT, SPILL_WAITS_FOR_STREAM, SPILL_WAITS_FOR_CONTEXT };

/* ALLOC of `height` times `depth` rows of `width` bytes, which the vendor pads. bytes is then 0. */
struct spill_pitched_arguments {
	size_t *out_pitch, *out_width, *out_height; /* each may be NULL. */
	uint64_t width, height, depth;
};

struct spill_info_arguments {
	size_t *out_free, *out_total; /* each may be NULL. */
	unsigned nvml_form;           /* of NVML's structure in `out`: 1 or 2. */
};

struct spill_attribute_arguments {
	const void *wanted; /* CUpointer_attribute[] */
	void **values;
	unsigned count;
	bool single; /* the call for one attribute, which can fail for it. */
};

/* The engine's state of a request for memory, ALLOC to CREATE. See admit.h. */
struct spill_admission {
	const struct spill_alloc_kind_ops *kind;
	const struct spill_backend *backend;
	uint64_t weight;  /* device bytes that the driver takes for the request. */
	uint64_t charged; /* bytes charged to the device while the driver is asked. */
	/* Bytes charged to the rule's cap that the ledger's entry has not taken over. */
	uint64_t charged_rule;
	uint64_t pending;               /* bytes that the driver is asked for (reserve_keeper.h). */
	struct spill_vendor_pool *pool; /* ALLOC_ASYNC with a limit: the pool that may grow. */
	/* ALLOC_ASYNC: the segments that serve it (engine_ordered.h); NULL: the vendor's pool does. */
	struct spill_ordered_pool *ordered;
	bool no_segments;     /* the next decision is about the vendor's pool. */
	void *stream_context; /* ALLOC_ASYNC: of the stream, which can be of another device than the pool. */
	uint64_t asked_ns;    /* last question to the driver; 0: unknown, or long ago. */
	int last_error;       /* the vendor's before the call, if the vendor keeps one. */

	const struct spill_rule *applied;  /* the rule that counts, or NULL (rules.h). */
	bool asks_growth;                  /* a rule for its call site looks at growth. */
	bool placeable, place_failed;      /* as in struct spill_ask. */
	bool at_once;                      /* the engine is placing it where its rule says. */
	struct spill_growth_answer growth; /* once the request is served, if some code asks. */
	struct spill_decision decision;

	/* From the first failure on. */
	bool full; /* `fallback` is set. */
	struct spill_fallback fallback;
	unsigned steps_taken; /* of fallback. */
	unsigned demotions;   /* that made enough room. */
	/* device.limit or a cap refused. With mode=observe the driver is asked all the same. */
	bool over_limit;
	bool capped;           /* a rule's cap refused. */
	bool short_of_reserve; /* the driver was not asked, because device.reserve would shrink. */
	bool last_resort;      /* no place was left: the driver may take from the reserve. */
	bool repeats;          /* an earlier failure of it surfaced; `tried` does not say so yet. */
	/* ALLOC_ASYNC: bytes that its pool had reserved, and of these unused; 0: the pool is not looked at. */
	uint64_t reserved_before, unused_before;
	bool reserve_in_pool;             /* spill_reserve_is_in_pool. */
	enum spill_refused_by refused_by; /* the last refusal; NONE: there was none. */
	const char *refused_word;         /* of refused_by, or the error's own name. */
	struct spill_refusal refusal;     /* its figures, if an option of the host refused. */
	unsigned attempts;
	struct spill_attempt tried[SPILL_ATTEMPTS];
};

struct spill_request {
	/* The call, from the stub. */
	int hook; /* row of the table. */
	enum spill_op op;
	enum spill_domain domain;
	enum spill_way way;
	const char *api;
	const void *caller; /* return address. */
	const void *real;   /* the vendor's function that is called. */
	/* stream 0 is the calling thread's default stream: a _ptsz or _spt row. */
	bool per_thread;
	bool pass;  /* call the real function once, and do nothing else. */
	int result; /* the vendor's error code. The stub or the engine stores it. */

	/* Arguments that several operations have, from the row's fill column. */
	enum spill_op other_op; /* the operation if the arguments change it; 0: the row's. */
	void *out;              /* for the new pointer, handle, base, pool or function. */
	uint64_t bytes;
	uint64_t ptr;    /* device pointer, host pointer or array. */
	uint64_t handle; /* of physical memory; INFO of NVML: its device. */
	void *context, *stream, *pool;
	const void *properties; /* the vendor's structure; ATTR_SET: the value. */
	int device;             /* INFO: SPILL_CURRENT_DEVICE for the current one. */
	/*
	 * CAPTURE_*: the vendor's mode. PEER: 1 enables, 0 disables. ATTR_SET, POOL_GET, POOL_SET: the
	 * attribute. EXPORT: 1 for a legacy handle. IMPORT: the flags. ACCESS, POOL_SHARE: the number of descriptions. POOL_FIND: the
	 * kind of memory. ALLOC_ASYNC: 1 if the call names a pool that is NULL. SYNCHRONIZE: enum spill_waits_for.
	 * CONTEXT_CREATE, PRIMARY_RELEASE: 1 for a green context.
	 */
	unsigned mode;

	/* Arguments of one operation. The largest is first: C zeroes the first member only. */
	union {
		struct spill_pitched_arguments pitched;      /* ALLOC. */
		struct spill_info_arguments info;            /* INFO. */
		struct spill_attribute_arguments attributes; /* ATTR. */
		size_t *out_bytes;                           /* RANGE. */
		const char *name;                            /* RESOLVE. */
		void *green;                                 /* PRIMARY_RELEASE of a green context. */
		/* ROOM, GRAPH_CHANGE: the shim's own (graph_hints.h). */
		const struct spill_graph_change *graph;
	};

	/* The engine's state. */
	unsigned step; /* how often the operation was stepped. */
	bool gated; /* CAPTURE_*, STREAM_END, GRAPH_ALLOC, GRAPH_CHANGE, ends of contexts: inside the gate. */
	uint64_t start_us; /* spill_log_start_us. */
	union {            /* of one operation; the largest first, as above. */
		struct spill_admission admission;
		struct {
			struct spill_request *outer; /* the frame below this one. */
			bool taken;                  /* a driver row served this call. */
		} frame;                             /* FRAME. */
		struct spill_allocation *freed;      /* FREE, FREE_ASYNC: taken from the ledger. */
		struct spill_vmm_memory *memory;     /* RELEASE, MAP, RETAIN: of the handle. */
		struct spill_vmm_mapping *mappings;  /* UNMAP: taken from the table. */
		struct {
			struct spill_vendor_pool *vendor;
			struct spill_ordered_pool *ordered;
		} destroyed;    /* POOL_DESTROY. */
		uint64_t frees; /* SYNCHRONIZE: the number of the last free before it (ordered_pool.h). */
		/* CAPTURE_END, STREAM_END: taken from the table. */
		struct spill_capture *capture;
		/* ROOM: free memory before the vendor was asked. */
		struct spill_code_load load;
		/* Ends of contexts: begun before the vendor's call. No backend: nothing ends. */
		struct spill_context_end end;
	};
};

/* A request is on the program's stack, which may be small. */
_Static_assert(sizeof(struct spill_request) <= 640, "a request has grown");

/* Returns true if the real function is to be called (again). See above. */
bool spill_request_next(struct spill_request *request);

#endif

/*
 * core: the simulated GPU without a vendor. It has capacity, addresses, contexts, streams, kernels,
 * and failures on request.
 *
 * - A device has a fixed number of bytes. An allocation beyond them fails.
 * - A device address is a number that only the device can use, while memory is mapped there. The
 *   program's view of it is inaccessible memory.
 * - Work runs in stream order on threads of its own while the program goes on.
 * - A kernel that touches unmapped memory breaks its context for good.
 * - Every function may be called by several threads. No lock is held while work runs or while a
 *   thread waits for it.
 * - A function that fails leaves its out pointers untouched.
 *
 * It never uses a type, an error code or a rule of one vendor. cuda/ and hip/ are thin layers over it.
 * Each of their libraries has its own copy of the core, so one process may have several.
 *
 * Begin with sim_alloc in alloc.c, then stream_submit in stream.c. core_internal.h is what the files
 * of the core share. kernel.h is for kernels, which are not part of the core.
 */
#ifndef SIM_CORE_H
#define SIM_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_EXPORT __attribute__((visibility("default")))
#define SIM_DEVICES 16
#define SIM_GRANULE ((uint64_t)2 << 20) /* bytes: the unit of large allocations and of VMM */

enum sim_status {
	SIM_OK,
	SIM_INVALID,        /* an argument names nothing, or cannot be so */
	SIM_NO_MEMORY,      /* the device is full */
	SIM_NO_HOST_MEMORY, /* the machine or the address range is full */
	SIM_NO_DEVICE,      /* SPILL_SIM_DEVICES=0 */
	SIM_FORKED,         /* the parent had initialised: the child has no GPU */
	SIM_NOT_READY,      /* query: still running */
	SIM_NOT_FOUND,      /* no such kernel in the module, no such file */
	SIM_BAD_IMAGE,      /* not an ELF shared object made with kernel.h */
	SIM_NOT_SUPPORTED,
	SIM_BAD_CONTEXT,     /* destroyed, or NULL */
	SIM_ILLEGAL_ADDRESS, /* sticky: a kernel or copy touched what is not mapped */
	SIM_LAUNCH_FAILED,   /* sticky: a kernel died of another signal */
	SIM_ALREADY,         /* host memory is registered already */
	SIM_NOT_REGISTERED,
	/* graph.h: the vendors' errors of the same names */
	SIM_CAPTURE_UNSUPPORTED,
	SIM_CAPTURE_INVALIDATED,
	SIM_CAPTURE_MERGE,
	SIM_CAPTURE_UNMATCHED,
	SIM_CAPTURE_UNJOINED,
	SIM_CAPTURE_ISOLATION,
	SIM_CAPTURE_IMPLICIT,
	SIM_CAPTURE_EVENT,
	SIM_CAPTURE_WRONG_THREAD,
	SIM_CAPTURE_STATE, /* captures already, or does not capture */
	SIM_UNKNOWN,
};

/* -- configuration: the environment, set by scripts/sim, read once --------------------------------------- */

struct sim_config {
	uint64_t vram
	    [SIM_DEVICES]; /* SPILL_SIM_VRAM: bytes of each installed device (8GiB); the last size is of all that follow */
	int devices;   /* that the process sees: those that CUDA_VISIBLE_DEVICES leaves, if it is set */
	int installed; /* SPILL_SIM_DEVICES (1) */
	int which[SIM_DEVICES]; /* of the installed ones each visible one is */
	uint64_t
	    reserved; /* SPILL_SIM_RESERVED: bytes of every device beside vram, that only NVML tells of (0) */
	uint64_t context_bytes; /* SPILL_SIM_CONTEXT: device bytes that each live context takes (0) */
	/* SPILL_SIM_CAPS: novmm nohostvmm nomanaged (not concurrent) nounified (not managed) integrated coherent xnack */
	bool vmm;        /* virtual memory management */
	bool host_vmm;   /* VMM handles on host memory */
	bool managed;    /* managed memory exists */
	bool concurrent; /* it migrates on demand and may exceed the device */
	bool integrated; /* says that its memory is the host's; what it has is counted as ever */
	bool
	    coherent; /* says that it uses the processor's page tables; pageable memory is out of reach as ever */
	bool xnack; /* HIP: managed memory migrates */
	int node; /* SPILL_SIM_NODE: the host's node that the device says is nearest (0); memory is on node 0 only */
	bool verbose; /* SPILL_SIM_VERBOSE=1: say on stderr what was asked for and not there */
	/*
	 * SPILL_SIM_ROOM: device bytes that things take besides what is allocated, `module:2MiB,stream:1MiB`; what
	 * is not named takes none. By enum sim_room.
	 */
	uint64_t room[6];
	/* SPILL_SIM_QUEUE: pieces of work that a stream holds before who submits more has to wait; 0: no end (1022: on
	 * an H200, 1021 launches behind one that does not end) */
	unsigned queue;
	/* SPILL_SIM_JITTER: microseconds that a pause can take (jitter.c); 0: there are none */
	unsigned jitter;
};

enum sim_room {
	SIM_ROOM_MODULE,   /* a loaded module, and its variables in whole granules */
	SIM_ROOM_FUNCTION, /* of it, from its first launch or cuFuncLoad on */
	SIM_ROOM_STREAM,
	SIM_ROOM_EVENT,
	SIM_ROOM_EXEC,   /* an executable graph */
	SIM_ROOM_THREADS /* not bytes but threads that local memory (stacks) is kept for, once a kernel or
	                    cuCtxSetLimit wants more a thread than a context has anyway */
};

const struct sim_config *sim_config(void);

/*
 * Fault injection, SPILL_SIM_FAIL: comma-separated `FUNCTION:N[+][:CODE]`; the Nth call of FUNCTION fails
 * (from the Nth on with +). Call it first thing in an entry point; it counts the call. FUNCTION in the rule
 * matches `symbol` ("cuMemAlloc_v2") or `base` ("cuMemAlloc"; NULL: none). True: fail now, with the vendor's
 * error *code, or if that is -1 with what the function returns when it is out of memory.
 * SPILL_SIM_TRACE=FILE: each such call appends a line with `symbol`.
 */
bool sim_fault(const char *symbol, const char *base, int *code);

/* `sim: NAME is not implemented`, once a name, on stderr. */
void sim_missing(const char *symbol);

/* A line on stderr with SPILL_SIM_VERBOSE=1 only. */
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* -- start ----------------------------------------------------------------------------------------------- */

/* Idempotent. SIM_NO_DEVICE, SIM_FORKED, SIM_NO_HOST_MEMORY. */
enum sim_status sim_init(void);

/* SIM_OK after a sim_init that succeeded in this process; SIM_FORKED in a child of one; else SIM_INVALID. */
enum sim_status sim_ready(void);

/* -- devices and contexts -------------------------------------------------------------------------------- */

struct sim_context;
struct sim_stream;
struct sim_event;
struct sim_module;
struct sim_kernel;
struct sim_physical;
struct sim_pool;
struct sim_array;

/* Exported for the simulated NVML, which asks its process's driver. Both 0 as long as nothing has started. */
SIM_EXPORT void sim_device_memory(int device, uint64_t *free, uint64_t *total);

/*
 * Every function that makes something of enum sim_room is SIM_NO_MEMORY when the device has no room for it;
 * the room is given back when the thing goes, or its context.
 */
/* Local memory for kernels that want `bytes` a thread; it never shrinks. */
enum sim_status sim_context_local(struct sim_context *context, uint64_t bytes);
/*
 * Returns when no thread waits for a place in a full queue of the context: as with an H200's driver, what makes
 * streams, events and plain allocations waits meanwhile, and all the rest does not.
 */
void sim_context_unblocked(struct sim_context *context);

/* Takes context_bytes on the device, or SIM_NO_MEMORY. Streams get their threads when they first get work. */
enum sim_status sim_context_create(int device, struct sim_context **out);

/*
 * Waits for its work, then frees its allocations (device, host and managed), streams, events and modules.
 * VMM handles and mappings belong to the process and stay. NULL is SIM_BAD_CONTEXT. The handle is invalid
 * afterwards; every function here answers SIM_BAD_CONTEXT for a handle that is not alive.
 */
enum sim_status sim_context_destroy(struct sim_context *context);

bool sim_context_alive(struct sim_context *context);
int sim_context_device(struct sim_context *context);
uint64_t sim_context_id(struct sim_context *context);
/* SIM_FACE bytes for the vendor's side, zero in a new context. */
#define SIM_FACE 128
void *sim_context_face(struct sim_context *context);

/* The sticky error of the context, or SIM_OK; SIM_BAD_CONTEXT. Vendor faces ask this at every call. */
enum sim_status sim_context_status(struct sim_context *context);

/* Waits for everything submitted to the context; returns its sticky error. */
enum sim_status sim_context_synchronize(struct sim_context *context);

/*
 * Kernels of `context`'s device may touch what `owner` allocates, on another device (else SIM_INVALID), until
 * disabled or until one of the two is destroyed. SIM_ALREADY, SIM_NOT_REGISTERED. Memory of pools and VMM
 * have lists of their own. (A device has one view here, so a context shares its peers with its device's others.)
 */
enum sim_status sim_peer_enable(struct sim_context *context, struct sim_context *owner);
enum sim_status sim_peer_disable(struct sim_context *context, struct sim_context *owner);

/* -- plain allocations ----------------------------------------------------------------------------------- */

enum sim_memory {
	SIM_DEVICE,     /* device memory: the host cannot touch it */
	SIM_HOST,       /* pinned host memory that every device reaches at the same address */
	SIM_MANAGED,    /* both; pages have a residency */
	SIM_VMM,        /* a reserved range; what is mapped there decides */
	SIM_REGISTERED, /* the program's own memory, made reachable by sim_register */
};

/*
 * Up to 1 MiB shares 2 MiB blocks with others, aligned to 512 bytes; above, it is rounded up and aligned to
 * 2 MiB. `kind`: DEVICE, HOST or MANAGED. bytes 0 is SIM_INVALID.
 */
enum sim_status sim_alloc(struct sim_context *context, enum sim_memory kind, uint64_t bytes,
                          uint64_t *address);

/*
 * pre: `address` is what sim_alloc returned, and of one of the kinds in `kinds` (bits 1 << enum sim_memory);
 * else SIM_INVALID. Waits for all work of the owning context first, whatever context is current: running
 * kernels may still use the memory. What came from a pool goes back there if `kinds` has DEVICE.
 */
enum sim_status sim_free(uint64_t address, unsigned kinds);

/* Stream-ordered: removed when the stream gets there. Not waited for. Any kind that sim_alloc makes, and pools'. */
enum sim_status sim_free_ordered(uint64_t address, struct sim_stream *stream);

/* The program's own pages become reachable by kernels at their own address until unregistered. */
enum sim_status sim_register(struct sim_context *context, void *memory, uint64_t bytes);
enum sim_status sim_unregister(void *memory); /* waits like sim_free */

/* What an address belongs to. */
struct sim_pointer {
	enum sim_memory kind;
	bool on_host; /* backed by host memory (HOST, REGISTERED, VMM chunk on host) */
	int device;   /* that owns or backs it; for VMM on host: the first that has access, or 0 */
	struct sim_context *context;   /* that allocated it; NULL for VMM */
	uint64_t base, size;           /* the allocation as asked for; for VMM the reservation */
	uint64_t map_base, map_size;   /* the mapping (VMM: the chunk), else as base and size */
	uint64_t id;                   /* unique in the process, for ever */
	bool mapped;                   /* VMM: something is mapped here */
	bool host_access;              /* the program itself may touch it */
	unsigned access, access_write; /* devices that may read, write: bit 1 << device */
	struct sim_physical *physical; /* VMM: not retained; NULL otherwise */
	struct sim_pool *pool;         /* that it was allocated from, or NULL */
};

/* False: no allocation, reservation or registered memory there. */
bool sim_pointer(uint64_t address, struct sim_pointer *out);

/* True if all of the bytes lie in one allocation, or in mapped chunks one behind the other. */
bool sim_range_valid(uint64_t address, uint64_t bytes);

/* -- pools: stream-ordered memory ------------------------------------------------------------------------ */

/*
 * A pool takes device (or host, or managed) memory in chunks, cuts allocations from them, and keeps what is
 * freed for the next: for the same stream at once, for others when the freeing stream got there, or with a wait
 * put into their stream. It gives chunks back at a synchronisation if it holds more than its threshold, when it
 * is trimmed, and when it is destroyed and everything is freed.
 */
struct sim_pool_about {
	enum sim_memory kind;                 /* DEVICE, HOST or MANAGED */
	int device;                           /* where it lives; SIM_CPU for HOST */
	uint64_t limit, threshold;            /* bytes; limit 0: none */
	bool follow, opportunistic, internal; /* what may be used again; follow is kept and not looked at */
	uint64_t reserved, reserved_high, used, used_high;
};

enum sim_status sim_pool_create(enum sim_memory kind, int device, uint64_t limit, struct sim_pool **out);
enum sim_status sim_pool_destroy(struct sim_pool *pool); /* the handle dies at once, the memory when freed */
bool sim_pool_alive(const struct sim_pool *pool);
void *sim_pool_face(struct sim_pool *pool); /* SIM_FACE bytes for the vendor's side, zero in a new pool */
void sim_pool_about(struct sim_pool *pool, struct sim_pool_about *out);
/* Takes threshold and the three switches from `set`; resets a high mark that is 0 there to what is now. */
void sim_pool_set(struct sim_pool *pool, const struct sim_pool_about *set);
/* device SIM_CPU is ignored: the program reaches host and managed memory anyway, and never device memory. */
void sim_pool_set_access(struct sim_pool *pool, int device, bool read, bool write);
void sim_pool_get_access(struct sim_pool *pool, int device, bool *read, bool *write);
/* SIM_INVALID for no bytes. Freed by sim_free_ordered or sim_free. */
enum sim_status sim_pool_alloc(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes,
                               uint64_t *address);
/* Gives back whole unused chunks as long as `keep` bytes stay. */
void sim_pool_trim(struct sim_pool *pool, uint64_t keep);
/* What a synchronisation does: every pool of the device gives back what is above its threshold. */
void sim_pools_synchronized(int device);

/* -- arrays ---------------------------------------------------------------------------------------------- */

/* Opaque device memory of `rows` rows; freed with its context. The face is the vendor's, zero at first. */
enum sim_status sim_array_create(struct sim_context *context, uint64_t row_bytes, uint64_t rows,
                                 struct sim_array **out);
enum sim_status sim_array_destroy(struct sim_array *array); /* waits like sim_free */
bool sim_array_alive(const struct sim_array *array);
void *sim_array_face(struct sim_array *array);
/* Where the copy functions reach it, and the distance from row to row. */
uint64_t sim_array_address(const struct sim_array *array, uint64_t *pitch);

/* -- managed memory -------------------------------------------------------------------------------------- */

#define SIM_CPU (-1)

enum sim_advice { SIM_READ_MOSTLY, SIM_PREFERRED_LOCATION, SIM_ACCESSED_BY };

/* `device`: ordinal or SIM_CPU; ignored for READ_MOSTLY. SIM_INVALID: not managed memory. */
enum sim_status sim_advise(uint64_t address, uint64_t bytes, enum sim_advice advice, bool set, int device);

/* Moves pages in stream order; what does not fit on the device stays where it is. */
enum sim_status sim_prefetch(struct sim_stream *stream, uint64_t address, uint64_t bytes, int device);

/* Of the pages in the range. -2 for "not the same everywhere, or none", as the vendors' query answers. */
struct sim_managed {
	bool read_mostly;
	int preferred;        /* ordinal, SIM_CPU, or -2 */
	unsigned accessed_by; /* bit 1 << device; bit 31 for SIM_CPU */
	int last_prefetch;    /* ordinal, SIM_CPU, or -2 */
	uint64_t resident;    /* bytes of the range that are on a device now */
};
enum sim_status sim_managed_query(uint64_t address, uint64_t bytes, struct sim_managed *out);

/* -- virtual memory management --------------------------------------------------------------------------- */

enum sim_place { SIM_ON_DEVICE = 1, SIM_ON_HOST = 2 };

/* alignment 0: 2 MiB. `hint` is taken if it is free. All sizes multiples of SIM_GRANULE, else SIM_INVALID. */
enum sim_status sim_reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, uint64_t *address);
enum sim_status sim_unreserve(uint64_t address, uint64_t bytes); /* whole reservation, nothing mapped */

/* `id`: device, or NUMA node. Takes capacity at once. The caller holds one reference. */
enum sim_status sim_physical_create(enum sim_place place, int id, uint64_t bytes, struct sim_physical **out);
/* Drops one reference; the memory goes when the last reference and the last mapping are gone. */
enum sim_status sim_physical_release(struct sim_physical *physical);
enum sim_status sim_physical_retain(uint64_t address,
                                    struct sim_physical **out); /* of the chunk mapped there */
/* One reference more to what the caller holds one of. */
enum sim_status sim_physical_reference(struct sim_physical *physical);
bool sim_physical_alive(struct sim_physical *physical);
#define SIM_PHYSICAL_FACE 32
void *sim_physical_face(struct sim_physical *physical); /* bytes for the vendor's side, zero in a new one */
void sim_physical_about(struct sim_physical *physical, enum sim_place *place, int *id, uint64_t *bytes);

/* offset 0 and the whole handle. No access yet. */
enum sim_status sim_map(uint64_t address, uint64_t bytes, uint64_t offset, struct sim_physical *physical);
/* Whole mappings only, and what is not mapped between them. Does not wait for work. */
enum sim_status sim_unmap(uint64_t address, uint64_t bytes);
/* pre: the range is whole mappings. device SIM_CPU: the program itself, host chunks only. */
enum sim_status sim_set_access(uint64_t address, uint64_t bytes, int device, bool read, bool write);

/* -- streams and events ---------------------------------------------------------------------------------- */

/* A blocking stream (non_blocking false) orders itself with the context's default stream. */
enum sim_status sim_stream_create(struct sim_context *context, bool non_blocking, int priority,
                                  struct sim_stream **out);
/* Returns at once; what was submitted still runs. */
enum sim_status sim_stream_destroy(struct sim_stream *stream);
/* The legacy default stream of the context, and the calling thread's per-thread default stream. */
struct sim_stream *sim_stream_default(struct sim_context *context);
struct sim_stream *sim_stream_per_thread(struct sim_context *context);
bool sim_stream_alive(struct sim_stream *stream);
struct sim_context *sim_stream_context(struct sim_stream *stream);
bool sim_stream_non_blocking(struct sim_stream *stream);
int sim_stream_priority(struct sim_stream *stream);
uint64_t sim_stream_id(struct sim_stream *stream);

enum sim_status sim_stream_query(struct sim_stream *stream);       /* SIM_OK, SIM_NOT_READY, sticky error */
enum sim_status sim_stream_synchronize(struct sim_stream *stream); /* returns the sticky error */
enum sim_status sim_stream_wait(struct sim_stream *stream, struct sim_event *event);

enum sim_status sim_event_create(struct sim_context *context, bool timing, struct sim_event **out);
enum sim_status sim_event_destroy(struct sim_event *event);
bool sim_event_alive(struct sim_event *event);
struct sim_context *sim_event_context(struct sim_event *event);
enum sim_status sim_event_record(struct sim_event *event, struct sim_stream *stream);
/*
 * All that was submitted to any stream of the event's context. SIM_CAPTURE_UNSUPPORTED: one of them captured, and the
 * capture is broken.
 */
enum sim_status sim_event_record_context(struct sim_event *event);
enum sim_status sim_event_query(struct sim_event *event); /* never recorded: SIM_OK */
enum sim_status sim_event_synchronize(struct sim_event *event);
/* SIM_INVALID: no timing or never recorded; SIM_NOT_READY. */
enum sim_status sim_event_elapsed(struct sim_event *start, struct sim_event *end, float *milliseconds);

/* -- work ------------------------------------------------------------------------------------------------ */

/* Runs `function(data)` on the stream's thread (cuLaunchHostFunc). Skipped when the context is broken. */
enum sim_status sim_host_function(struct sim_stream *stream, void (*function)(void *), void *data);

/*
 * A copy as the vendors do it: addresses of either side may be device, pinned, managed or pageable host
 * memory. `wait`: the synchronous call. Without it a pageable source is read before the call returns, and a
 * pageable destination makes the call wait. SIM_INVALID when a range is not the program's to name.
 */
enum sim_copy_kind { SIM_COPY_ANY, SIM_COPY_TO_DEVICE, SIM_COPY_TO_HOST, SIM_COPY_ON_DEVICE, SIM_COPY_HOST };
enum sim_status sim_copy(struct sim_stream *stream, uint64_t to, uint64_t from, uint64_t bytes,
                         enum sim_copy_kind kind, bool wait);

/* The same for `rows` rows of `width` bytes, each side with its own distance from row to row. */
enum sim_status sim_copy_rows(struct sim_stream *stream, uint64_t to, uint64_t to_pitch, uint64_t from,
                              uint64_t from_pitch, uint64_t width, uint64_t rows, enum sim_copy_kind kind,
                              bool wait);

/* The same for boxes of `slices` such rows; distances from row to row and from slice to slice. */
struct sim_box {
	uint64_t address, pitch, slice;
};
enum sim_status sim_copy_box(struct sim_stream *stream, const struct sim_box *to, const struct sim_box *from,
                             uint64_t width, uint64_t rows, uint64_t slices, enum sim_copy_kind kind,
                             bool wait);

/* Words of device, pinned or managed memory that a stream writes, or waits for, when it gets there. */
enum sim_condition { SIM_AT_LEAST, SIM_EQUAL, SIM_AND, SIM_NOR };
struct sim_word {
	uint64_t address, value;
	bool wide, wait; /* 8 bytes, else 4; waits for `condition`, else writes */
	enum sim_condition condition;
};
/* One piece of work, in the order given. SIM_INVALID: an address that is not aligned or not the device's. */
enum sim_status sim_words(struct sim_stream *stream, const struct sim_word *words, size_t count);

/* rows of `width` elements of `element` (1, 2 or 4) bytes, `pitch` bytes from row to row. */
enum sim_status sim_set(struct sim_stream *stream, uint64_t to, uint64_t pitch, uint32_t value,
                        unsigned element, uint64_t width, uint64_t rows, bool wait);

/* -- kernels: see kernel.h for what a module is ---------------------------------------------------------- */

enum sim_status sim_module_load_file(struct sim_context *context, const char *path, struct sim_module **out);
/* `image` is a whole ELF file in memory; its own headers say how long it is. Copied. */
enum sim_status sim_module_load_data(struct sim_context *context, const void *image, struct sim_module **out);
/* The same, but it takes its room only with sim_module_settle, which may fail and be tried again. */
enum sim_status sim_module_load_lazily(struct sim_context *context, const void *image,
                                       struct sim_module **out);
enum sim_status sim_module_settle(struct sim_module *module);
/* Waits for the context's work: a kernel of it may be running. */
enum sim_status sim_module_unload(struct sim_module *module);
bool sim_module_alive(struct sim_module *module);
struct sim_context *sim_module_context(struct sim_module *module);
/* Bytes of the module that starts at `image` with at most `limit` readable, 0: none. For who keeps a copy. */
uint64_t sim_image_bytes(const void *image, uint64_t limit);
/* Owned by the module. */
enum sim_status sim_module_kernel(struct sim_module *module, const char *name, struct sim_kernel **out);
unsigned sim_module_kernel_count(struct sim_module *module);
/* A variable of the module; SIM_NOT_FOUND. */
enum sim_status sim_module_global(struct sim_module *module, const char *name, uint64_t *address,
                                  uint64_t *bytes);

bool sim_kernel_alive(struct sim_kernel *kernel);
const char *sim_kernel_name(struct sim_kernel *kernel);
struct sim_module *sim_kernel_module(struct sim_kernel *kernel);
#define SIM_PARAMETERS 8        /* most of a kernel */
#define SIM_PARAMETER_BYTES 256 /* most of all of them */
unsigned sim_kernel_parameters(struct sim_kernel *kernel);
/* Where it is in the block of all parameters. False: there is none of that number. */
bool sim_kernel_parameter(struct sim_kernel *kernel, size_t index, size_t *offset, size_t *bytes);
size_t sim_kernel_parameter_bytes(struct sim_kernel *kernel); /* of all together */

uint64_t sim_kernel_local(struct sim_kernel *kernel); /* bytes of local memory a thread */
bool sim_kernel_loaded(struct sim_kernel *kernel);
/*
 * Else the first launch does it. SIM_NO_MEMORY once, and the kernel is spoilt: its launches are SIM_UNKNOWN from then
 * on, room or not (seen once on an H200 with driver 580.159, for a kernel of a library).
 */
enum sim_status sim_kernel_load(struct sim_kernel *kernel);
void *sim_kernel_face(struct sim_kernel *kernel); /* SIM_FACE bytes for the vendor's side, zero at first */

/* How a kernel was launched; no kernel here looks at it. */
struct sim_shape {
	unsigned grid[3], block[3], shared;
};

/* `parameters`: the block of values, copied before the call returns. */
enum sim_status sim_launch(struct sim_stream *stream, struct sim_kernel *kernel,
                           const struct sim_shape *shape, const void *parameters);

#endif

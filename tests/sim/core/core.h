/*
 * core: the simulated GPU without a vendor.
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
 * It never uses a type, an error code or a rule of one vendor. cuda/ and hip/ are thin layers over
 * it. Each of their libraries has its own copy of the core, so one process may have several.
 *
 * Begin with sim_alloc in alloc.c, then stream_submit in stream.c. core_internal.h is shared by the
 * files of the core. kernel.h is for kernels, which are not part of the core.
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
	SIM_INVALID,        /* an argument is no handle, or has a value that is not allowed. */
	SIM_NO_MEMORY,      /* the device is full. */
	SIM_NO_HOST_MEMORY, /* the machine or the address range is full. */
	SIM_NO_DEVICE,      /* SPILL_SIM_DEVICES=0. */
	SIM_FORKED,         /* the parent initialised; a child has no GPU. */
	SIM_NOT_READY,      /* query: still running. */
	SIM_NOT_FOUND,      /* the module has no such kernel, or there is no such file. */
	SIM_BAD_IMAGE,      /* not an ELF shared object built with kernel.h. */
	SIM_NOT_SUPPORTED,
	SIM_BAD_CONTEXT,     /* destroyed, or NULL. */
	SIM_ILLEGAL_ADDRESS, /* sticky: a kernel or copy touched unmapped memory. */
	SIM_LAUNCH_FAILED,   /* sticky: a kernel died of another signal. */
	SIM_ALREADY,         /* host memory is registered already. */
	SIM_NOT_REGISTERED,
	/* for graph.h: the vendors' errors of the same names */
	SIM_CAPTURE_UNSUPPORTED,
	SIM_CAPTURE_INVALIDATED,
	SIM_CAPTURE_MERGE,
	SIM_CAPTURE_UNMATCHED,
	SIM_CAPTURE_UNJOINED,
	SIM_CAPTURE_ISOLATION,
	SIM_CAPTURE_IMPLICIT,
	SIM_CAPTURE_EVENT,
	SIM_CAPTURE_WRONG_THREAD,
	SIM_CAPTURE_STATE, /* a stream captures already, or does not capture */
	SIM_UNKNOWN,
};

/* -- configuration: the environment, set by scripts/sim, read once ----------------------------- */

struct sim_config {
	/*
	 * SPILL_SIM_VRAM: bytes of each installed device (8GiB). The last size is for all that
	 * follow.
	 */
	uint64_t vram[SIM_DEVICES];
	int devices;            /* that the process sees: all, or those in CUDA_VISIBLE_DEVICES. */
	int installed;          /* SPILL_SIM_DEVICES (1). */
	int which[SIM_DEVICES]; /* installed device of each visible one. */
	/* SPILL_SIM_RESERVED: bytes of each device beside vram that only NVML reports (0). */
	uint64_t reserved;
	/* SPILL_SIM_HELD: bytes of each device that other processes hold (0). */
	uint64_t held;
	/*
	 * SPILL_SIM_RECLAIMABLE: bytes of each device that are not reported as free, and are given out all the
	 * same (0). On an integrated device, what the kernel can take back from its caches.
	 */
	uint64_t reclaimable;
	/* SPILL_SIM_ADDRESSES: bytes of addresses of each device, for tools that record each mapped page (0: many). */
	uint64_t addresses;
	uint64_t context_bytes; /* SPILL_SIM_CONTEXT: device bytes that each live context takes (0). */
	/* By SPILL_SIM_CAPS: novmm nohostvmm nomanaged nounified integrated coherent xnack. */
	bool vmm;        /* virtual memory management. */
	bool host_vmm;   /* VMM handles on host memory. */
	bool managed;    /* managed memory exists (not with nounified). */
	bool concurrent; /* it migrates on demand and may exceed the device (not with nomanaged). */
	bool integrated; /* it reports the host's memory as its own; capacity is still counted. */
	/*
	 * It reports that it uses the processor's page tables. Pageable memory stays out of its
	 * reach.
	 */
	bool coherent;
	bool xnack; /* HIP: managed memory migrates. */
	/* SPILL_SIM_NODE: NUMA node that the device reports as nearest (0). All memory is on 0. */
	int node;
	bool verbose; /* SPILL_SIM_VERBOSE=1: report on stderr requests that the simulator cannot serve. */
	/*
	 * SPILL_SIM_ROOM: device bytes that objects other than allocations take, such as
	 * `module:2MiB,stream:1MiB`. An object that is not listed takes none. By enum sim_room.
	 */
	uint64_t room[6];
	/*
	 * SPILL_SIM_QUEUE: pieces of work that a stream holds (1022). A thread that submits more
	 * waits. An H200 holds 1021 launches behind one that does not end. 0: no limit.
	 */
	unsigned queue;
	/* SPILL_SIM_JITTER: longest pause in microseconds (jitter.c). 0: no pauses. */
	unsigned jitter;
	/*
	 * SPILL_SIM_TIME: how long work takes at least (time.c), such as
	 * `device:4GiB,link:512MiB,launch:10`: bytes a second of the device's memory and of the
	 * link to it, and microseconds a launch. A part that is not listed takes no time.
	 */
	uint64_t time_device, time_link, time_launch;
};

enum sim_room {
	SIM_ROOM_MODULE,   /* a loaded module, and its variables in whole granules */
	SIM_ROOM_FUNCTION, /* of a module, from its first launch or cuFuncLoad on */
	SIM_ROOM_STREAM,
	SIM_ROOM_EVENT,
	SIM_ROOM_EXEC, /* an executable graph */
	/*
	 * Not bytes: the number of threads that have local memory (stacks). It is taken once a
	 * kernel or cuCtxSetLimit wants more per thread than every context has.
	 */
	SIM_ROOM_THREADS
};

const struct sim_config *sim_config(void);

/*
 * Fault injection. SPILL_SIM_FAIL is a comma-separated list of `FUNCTION:N[+][:CODE]`: the Nth call
 * of FUNCTION fails, with + each later call too. An entry point calls this first, and the call is
 * counted. FUNCTION matches `symbol` ("cuMemAlloc_v2") or `base` ("cuMemAlloc"; NULL: none). True:
 * fail now with the vendor's error *code. If that is -1, fail as the function does when memory runs
 * out.
 * SPILL_SIM_TRACE=FILE: each call appends a line with `symbol`. `caller` is the entry point's return
 * address.
 */
bool sim_fault(const char *symbol, const char *base, const void *caller, int *code);
/* A preload of the tests may have this function (tests/faults). It is asked before SPILL_SIM_FAIL. */
extern bool sim_test_fault(const char *symbol, const void *caller, int *code) __attribute__((weak));
/* The same for each call that a capture may forbid, in a thread whose mode is not relaxed. */
extern void sim_test_strict(const char *symbol, const void *caller) __attribute__((weak));

/* The entry point that sim_fault was asked for last in this thread. */
struct sim_entered {
	const char *symbol;
	const void *caller;
};
struct sim_entered sim_entered(void);

/* Prints `sim: NAME is not implemented` on stderr, once per name. */
void sim_missing(const char *symbol);

/* Prints a line on stderr with SPILL_SIM_VERBOSE=1 only. */
void sim_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* -- start ------------------------------------------------------------------------------------- */

/* Idempotent. Errors: SIM_NO_DEVICE, SIM_FORKED, SIM_NO_HOST_MEMORY. */
enum sim_status sim_init(void);

/* SIM_OK after a sim_init that succeeded here. SIM_FORKED in a child of one. Else SIM_INVALID. */
enum sim_status sim_ready(void);

/* -- devices and contexts ---------------------------------------------------------------------- */

struct sim_context;
struct sim_stream;
struct sim_event;
struct sim_module;
struct sim_kernel;
struct sim_physical;
struct sim_pool;
struct sim_array;

/* Exported for the simulated NVML, which calls its process's driver. Both 0 before the start. */
SIM_EXPORT void sim_device_memory(int device, uint64_t *free, uint64_t *total);

/* What the process has now: bytes of all devices and of the host, and numbers of objects. */
struct sim_left {
	uint64_t device, host;
	unsigned contexts, streams, events, handles, modules, pools, arrays, ranges;
};
/* Exported for tests that look for leaks at the end of a process (tests/faults). */
SIM_EXPORT void sim_left(struct sim_left *left);

/*
 * Each function that makes an object of enum sim_room returns SIM_NO_MEMORY if the device has no
 * room for it. The room is given back when the object or its context ends.
 */
/* Local memory of `bytes` per thread for kernels. It never shrinks. */
enum sim_status sim_context_local(struct sim_context *context, uint64_t bytes);
/*
 * Returns when no thread waits for a place in a full queue of the context. On an H200, calls that
 * make streams, events or plain allocations wait meanwhile. All other calls do not.
 */
void sim_context_unblocked(struct sim_context *context);

/* Takes context_bytes, or returns SIM_NO_MEMORY. A stream starts its thread with its first work. */
enum sim_status sim_context_create(int device, struct sim_context **out);

/*
 * Waits for its work, then frees its allocations, streams, events and modules. VMM handles and
 * mappings belong to the process and stay. NULL is SIM_BAD_CONTEXT. The handle is invalid
 * afterwards: every function answers SIM_BAD_CONTEXT for it.
 */
enum sim_status sim_context_destroy(struct sim_context *context);

bool sim_context_alive(struct sim_context *context);
int sim_context_device(struct sim_context *context);
uint64_t sim_context_id(struct sim_context *context);
/* SIM_FACE bytes for the vendor's room, zero in a new context. */
#define SIM_FACE 128
void *sim_context_face(struct sim_context *context);

/* The context's sticky error, SIM_OK, or SIM_BAD_CONTEXT. Vendors' rooms ask at each call. */
enum sim_status sim_context_status(struct sim_context *context);

/* Waits for everything submitted to the context; returns its sticky error. */
enum sim_status sim_context_synchronize(struct sim_context *context);

/*
 * Lets kernels of `context` touch allocations of `owner`, which is on another device (else
 * SIM_INVALID). It ends with sim_peer_disable or with either context. Errors: SIM_ALREADY,
 * SIM_NOT_REGISTERED.
 * Memory of pools and VMM have access lists of their own. A device has one view here, so all
 * contexts of a device share their peers.
 */
enum sim_status sim_peer_enable(struct sim_context *context, struct sim_context *owner);
enum sim_status sim_peer_disable(struct sim_context *context, struct sim_context *owner);

/* -- plain allocations ------------------------------------------------------------------------- */

enum sim_memory {
	SIM_DEVICE,     /* device memory, which the host cannot touch. */
	SIM_HOST,       /* pinned host memory, at the same address for every device. */
	SIM_MANAGED,    /* reached by both; each page has a residency. */
	SIM_VMM,        /* a reserved range; access depends on the mappings in it. */
	SIM_REGISTERED, /* the program's own memory, made reachable by sim_register. */
};

/*
 * An allocation of up to 1 MiB shares a block of 2 MiB with others and is aligned to 512 bytes. A
 * larger one is rounded up and aligned to 2 MiB. `kind`: DEVICE, HOST or MANAGED. 0 bytes are
 * SIM_INVALID.
 */
enum sim_status sim_alloc(struct sim_context *context, enum sim_memory kind, uint64_t bytes,
                          uint64_t *address);

/*
 * `address`: from sim_alloc or sim_pool_alloc, of a kind in `kinds` (bits 1 << enum sim_memory).
 * Else SIM_INVALID. Waits first for all work of the owning context, because running kernels may
 * still use the memory. Memory of a pool goes back to the pool if `kinds` has DEVICE.
 */
enum sim_status sim_free(uint64_t address, unsigned kinds);

/* Frees when the stream gets there. The caller does not wait. For all kinds, and for pools. */
enum sim_status sim_free_ordered(uint64_t address, struct sim_stream *stream);

/* Kernels reach the program's own pages at their own address until they are unregistered. */
enum sim_status sim_register(struct sim_context *context, void *memory, uint64_t bytes);
enum sim_status sim_unregister(void *memory); /* waits like sim_free */

/* The allocation, mapping or registered memory at an address. */
struct sim_pointer {
	enum sim_memory kind;
	bool on_host; /* backed by host memory (HOST, REGISTERED, VMM chunk on host). */
	int device;   /* its owner, or where it lies; VMM on host: the first with access, or 0. */
	struct sim_context *context;   /* its allocator; NULL for VMM. */
	uint64_t base, size;           /* the allocation as requested; VMM: the reservation. */
	uint64_t map_base, map_size;   /* VMM: the mapped chunk; else as base and size. */
	uint64_t id;                   /* unique in the process, for ever. */
	bool mapped;                   /* VMM: memory is mapped here. */
	bool host_access;              /* the program itself may touch it. */
	unsigned access, access_write; /* devices that may read, write: bit 1 << device. */
	struct sim_physical *physical; /* VMM: not retained; NULL otherwise. */
	struct sim_pool *pool;         /* where it was allocated, or NULL. */
};

/* False: no allocation, reservation or registered memory is there. */
bool sim_pointer(uint64_t address, struct sim_pointer *out);

/* True if all of the bytes lie in one allocation or in adjacent mapped chunks. */
bool sim_range_valid(uint64_t address, uint64_t bytes);

/* -- pools: stream-ordered memory -------------------------------------------------------------- */

/*
 * A pool takes device, host or managed memory in chunks and cuts allocations from them. It keeps
 * freed memory for the next allocation. The freeing stream may use it at once. Another stream may
 * use it when the freeing stream got there, or after a wait that is put into the other stream.
 * A pool gives chunks back when it is trimmed, and at a synchronisation if it holds more than its
 * threshold. A destroyed pool gives them back when its last allocation is freed.
 */
struct sim_pool_about {
	enum sim_memory kind;                 /* DEVICE, HOST or MANAGED */
	int device;                           /* its device; SIM_CPU for HOST */
	uint64_t limit, threshold;            /* bytes; limit 0: none */
	bool follow, opportunistic, internal; /* rules of reuse; `follow` is stored and has no effect */
	bool imported;                        /* from another process */
	uint64_t reserved, reserved_high, used, used_high;
};

enum sim_status sim_pool_create(enum sim_memory kind, int device, uint64_t limit, struct sim_pool **out);
/* the handle ends now, the memory when it is freed */
enum sim_status sim_pool_destroy(struct sim_pool *pool);
bool sim_pool_alive(const struct sim_pool *pool);
void *sim_pool_face(struct sim_pool *pool); /* SIM_FACE bytes for the vendor's room, zero in a new pool */
void sim_pool_about(struct sim_pool *pool, struct sim_pool_about *out);
/* Copies threshold and switches from `set`. A high mark of 0 in `set` resets that mark. */
void sim_pool_set(struct sim_pool *pool, const struct sim_pool_about *set);
/* SIM_CPU is ignored: the program reaches host and managed memory, and no device memory. */
void sim_pool_set_access(struct sim_pool *pool, int device, bool read, bool write);
void sim_pool_get_access(struct sim_pool *pool, int device, bool *read, bool *write);
/* 0 bytes are SIM_INVALID. Freed by sim_free_ordered or sim_free. */
enum sim_status sim_pool_alloc(struct sim_pool *pool, struct sim_stream *stream, uint64_t bytes,
                               uint64_t *address);
/* Gives back whole unused chunks while at least `keep` bytes stay. */
void sim_pool_trim(struct sim_pool *pool, uint64_t keep);
/*
 * The host has waited for a stream (sim_stream_id; 0: for none of its own), or for all of the
 * device. Each pool of the device gives back memory above its threshold.
 */
#define SIM_ALL_STREAMS UINT64_MAX
void sim_pools_synchronized(int device, uint64_t stream);

/* -- memory of other processes ----------------------------------------------------------------- */

/*
 * The memory of a device is a file, and so is the host's. An exported part has a row behind the
 * memory in that file. Another process finds the row by a ticket, which names the file's owner, or by
 * a descriptor. It locks the part for as long as it maps it, and so does each descriptor that was
 * handed out. The lock ends with its process. The owner's device has the part's bytes again when
 * nobody holds it. Each process has devices of its own, so imported memory takes no capacity there.
 *
 * SIM_INVALID: no ticket or descriptor of ours, or the memory has ended. SIM_NO_HOST_MEMORY: no
 * descriptor, or no row. SIM_NOT_SUPPORTED: the memory's device is hidden from this process.
 */
struct sim_ticket {
	char magic[16];
	uint64_t file, row;
	uint32_t pid, descriptor, slot, kind;
};

/* Of a plain device allocation, or of memory of a pool, that contains the address. */
enum sim_status sim_export(uint64_t address, struct sim_ticket *out);
bool sim_ticket_is_own(const struct sim_ticket *ticket);
/*
 * Of a plain allocation. The context that has it open already gets the same address, and has to
 * close it once more. An address of sim_ticket_open is not for sim_free.
 */
enum sim_status sim_ticket_open(const struct sim_ticket *ticket, struct sim_context *context,
                                uint64_t *address);
enum sim_status sim_ticket_close(uint64_t address); /* waits like sim_free */

/* The descriptor is the caller's. The importing process gets the face as it is now. */
enum sim_status sim_physical_export(struct sim_physical *physical, int *descriptor);
/* In the process that made it, it is the same handle with one more reference. */
enum sim_status sim_physical_import(int descriptor, struct sim_physical **out);

/* An imported pool has the other one's face. Nothing can be allocated from it. */
enum sim_status sim_pool_export(struct sim_pool *pool, int *descriptor);
enum sim_status sim_pool_import(int descriptor, struct sim_pool **out);
/* Memory of the other process's pool. sim_free and sim_free_ordered end it here, and only here. */
enum sim_status sim_pool_import_block(struct sim_pool *pool, const struct sim_ticket *ticket,
                                      struct sim_context *context, uint64_t *address);

/* -- arrays ------------------------------------------------------------------------------------ */

/* Opaque device memory, freed with its context. The face is the vendor's, zero at first. */
enum sim_status sim_array_create(struct sim_context *context, uint64_t row_bytes, uint64_t rows,
                                 struct sim_array **out);
enum sim_status sim_array_destroy(struct sim_array *array); /* waits like sim_free */
bool sim_array_alive(const struct sim_array *array);
void *sim_array_face(struct sim_array *array);
/* The address for the copy functions, and the distance between rows. */
uint64_t sim_array_address(const struct sim_array *array, uint64_t *pitch);

/* -- managed memory ---------------------------------------------------------------------------- */

#define SIM_CPU (-1)

enum sim_advice { SIM_READ_MOSTLY, SIM_PREFERRED_LOCATION, SIM_ACCESSED_BY };

/* `device`: ordinal or SIM_CPU; ignored for READ_MOSTLY. SIM_INVALID: not managed memory. */
enum sim_status sim_advise(uint64_t address, uint64_t bytes, enum sim_advice advice, bool set, int device);

/* Moves pages in stream order. Pages that do not fit on the device stay in place. */
enum sim_status sim_prefetch(struct sim_stream *stream, uint64_t address, uint64_t bytes, int device);

/* Of the pages in the range. -2: not the same for all, or none, as in the vendors' queries. */
struct sim_managed {
	bool read_mostly;
	int preferred;        /* ordinal, SIM_CPU, or -2 */
	unsigned accessed_by; /* bit 1 << device; bit 31 for SIM_CPU */
	int last_prefetch;    /* ordinal, SIM_CPU, or -2 */
	uint64_t resident;    /* bytes of the range that are on a device now */
};
enum sim_status sim_managed_query(uint64_t address, uint64_t bytes, struct sim_managed *out);

/* -- virtual memory management ----------------------------------------------------------------- */

enum sim_place { SIM_ON_DEVICE = 1, SIM_ON_HOST = 2 };

/* Alignment 0: 2 MiB. Takes a free `hint`. Sizes are multiples of SIM_GRANULE, else SIM_INVALID. */
enum sim_status sim_reserve(uint64_t bytes, uint64_t alignment, uint64_t hint, uint64_t *address);
/* a whole reservation without mappings */
enum sim_status sim_unreserve(uint64_t address, uint64_t bytes);

/* `id`: device, or NUMA node. Takes capacity at once. The caller holds one reference. */
enum sim_status sim_physical_create(enum sim_place place, int id, uint64_t bytes, struct sim_physical **out);
/* Ends all mapped memory of `id`, with its handles and mappings. Addresses stay reserved. */
void sim_vmm_reset(int id);
/* Drops one reference. The memory is freed with the last reference and the last mapping. */
enum sim_status sim_physical_release(struct sim_physical *physical);
enum sim_status sim_physical_retain(uint64_t address,
                                    /* the chunk mapped there, with a new reference */
                                    struct sim_physical **out);
/* Adds a reference. pre: the caller holds one. */
enum sim_status sim_physical_reference(struct sim_physical *physical);
bool sim_physical_alive(struct sim_physical *physical);
#define SIM_PHYSICAL_FACE 32
void *sim_physical_face(struct sim_physical *physical); /* bytes for the vendor's room, zero at first */
void sim_physical_about(struct sim_physical *physical, enum sim_place *place, int *id, uint64_t *bytes);

/* Offset 0 and the whole handle only. Nobody has access yet. */
enum sim_status sim_map(uint64_t address, uint64_t bytes, uint64_t offset, struct sim_physical *physical);
/* Removes whole mappings, and skips gaps between them. Does not wait for work. */
enum sim_status sim_unmap(uint64_t address, uint64_t bytes);
/* pre: the range is whole mappings. SIM_CPU is the program itself, for host chunks only. */
enum sim_status sim_set_access(uint64_t address, uint64_t bytes, int device, bool read, bool write);

/* -- streams and events ------------------------------------------------------------------------ */

/* A blocking stream (non_blocking false) runs in order with the context's default stream. */
enum sim_status sim_stream_create(struct sim_context *context, bool non_blocking, int priority,
                                  struct sim_stream **out);
/* Returns at once. Submitted work still runs. */
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
uint64_t sim_event_stream(struct sim_event *event); /* that recorded it last; 0: none */
enum sim_status sim_event_record(struct sim_event *event, struct sim_stream *stream);
/* Records all streams of the event's context. SIM_CAPTURE_UNSUPPORTED: it broke a capture. */
enum sim_status sim_event_record_context(struct sim_event *event);
enum sim_status sim_event_query(struct sim_event *event); /* never recorded: SIM_OK */
enum sim_status sim_event_synchronize(struct sim_event *event);
/* SIM_INVALID: no timing or never recorded; SIM_NOT_READY. */
enum sim_status sim_event_elapsed(struct sim_event *start, struct sim_event *end, float *milliseconds);

/* -- work -------------------------------------------------------------------------------------- */

/*
 * Runs `function(data)` on the stream's thread (cuLaunchHostFunc). Skipped when the context is
 * broken.
 */
enum sim_status sim_host_function(struct sim_stream *stream, void (*function)(void *), void *data);

/*
 * Copies as the vendors do. Each side may be device, pinned, managed or pageable host memory.
 * `wait`: the synchronous call. Without `wait` a pageable source is read before the call returns,
 * and a pageable destination makes the call wait. SIM_INVALID: a range is not the program's.
 */
enum sim_copy_kind { SIM_COPY_ANY, SIM_COPY_TO_DEVICE, SIM_COPY_TO_HOST, SIM_COPY_ON_DEVICE, SIM_COPY_HOST };
enum sim_status sim_copy(struct sim_stream *stream, uint64_t to, uint64_t from, uint64_t bytes,
                         enum sim_copy_kind kind, bool wait);

/* The same for `rows` rows of `width` bytes. Each side has its own distance between rows. */
enum sim_status sim_copy_rows(struct sim_stream *stream, uint64_t to, uint64_t to_pitch, uint64_t from,
                              uint64_t from_pitch, uint64_t width, uint64_t rows, enum sim_copy_kind kind,
                              bool wait);

/* The same for boxes of `slices` such rows, with distances between rows and between slices. */
struct sim_box {
	uint64_t address, pitch, slice;
};
enum sim_status sim_copy_box(struct sim_stream *stream, const struct sim_box *to, const struct sim_box *from,
                             uint64_t width, uint64_t rows, uint64_t slices, enum sim_copy_kind kind,
                             bool wait);

/* Words of device, pinned or managed memory that a stream writes or waits for, in order. */
enum sim_condition { SIM_AT_LEAST, SIM_EQUAL, SIM_AND, SIM_NOR };
struct sim_word {
	uint64_t address, value;
	bool wide, wait; /* 8 bytes, else 4; wait for `condition`, else write */
	enum sim_condition condition;
};
/* One piece of work. SIM_INVALID: an address is not aligned, or not the device's. */
enum sim_status sim_words(struct sim_stream *stream, const struct sim_word *words, size_t count);

/* `rows` rows of `width` elements of `element` (1, 2 or 4) bytes, `pitch` bytes apart. */
enum sim_status sim_set(struct sim_stream *stream, uint64_t to, uint64_t pitch, uint32_t value,
                        unsigned element, uint64_t width, uint64_t rows, bool wait);

/* -- kernels: see kernel.h for the format of a module ------------------------------------------ */

enum sim_status sim_module_load_file(struct sim_context *context, const char *path, struct sim_module **out);
/* `image` is a whole ELF file in memory, and its headers have its size. The file is copied. */
enum sim_status sim_module_load_data(struct sim_context *context, const void *image, struct sim_module **out);
/* The same, but only sim_module_settle takes the room. It may fail and be called again. */
enum sim_status sim_module_load_lazily(struct sim_context *context, const void *image,
                                       struct sim_module **out);
enum sim_status sim_module_settle(struct sim_module *module);
/* Waits for the context's work, because a kernel of the module may be running. */
enum sim_status sim_module_unload(struct sim_module *module);
bool sim_module_alive(struct sim_module *module);
struct sim_context *sim_module_context(struct sim_module *module);
/* Size of the module at `image`, with `limit` readable bytes, for a copy. 0: no module. */
uint64_t sim_image_bytes(const void *image, uint64_t limit);
/* Owned by the module. */
enum sim_status sim_module_kernel(struct sim_module *module, const char *name, struct sim_kernel **out);
unsigned sim_module_kernel_count(struct sim_module *module);
/* A variable of the module. SIM_NOT_FOUND: there is none. */
enum sim_status sim_module_global(struct sim_module *module, const char *name, uint64_t *address,
                                  uint64_t *bytes);

bool sim_kernel_alive(struct sim_kernel *kernel);
const char *sim_kernel_name(struct sim_kernel *kernel);
struct sim_module *sim_kernel_module(struct sim_kernel *kernel);
#define SIM_PARAMETERS 8        /* most parameters of a kernel */
#define SIM_PARAMETER_BYTES 256 /* most bytes of all parameters */
/* Position of a parameter in the block of all parameters. False: the kernel has fewer. */
bool sim_kernel_parameter(struct sim_kernel *kernel, size_t index, size_t *offset, size_t *bytes);
size_t sim_kernel_parameter_bytes(struct sim_kernel *kernel); /* of all parameters */

uint64_t sim_kernel_local(struct sim_kernel *kernel); /* bytes of local memory per thread */
bool sim_kernel_loaded(struct sim_kernel *kernel);
/*
 * Loads the kernel; else its first launch does. After one SIM_NO_MEMORY each launch is SIM_UNKNOWN,
 * even if there is room by then. Seen once on an H200 (driver 580.159), for a kernel of a library.
 */
enum sim_status sim_kernel_load(struct sim_kernel *kernel);
/* SIM_FACE bytes for the vendor's room, zero at first */
void *sim_kernel_face(struct sim_kernel *kernel);

/* Shape of a launch. No kernel here reads it. */
struct sim_shape {
	unsigned grid[3], block[3], shared;
};

/* `parameters`: the block of values. It is copied before the call returns. */
enum sim_status sim_launch(struct sim_stream *stream, struct sim_kernel *kernel,
                           const struct sim_shape *shape, const void *parameters);

#endif

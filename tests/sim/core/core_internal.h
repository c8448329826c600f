/*
 * Shared by the files of the core. sim_memory_lock guards capacity, addresses and memory. The lock
 * of stream.c guards queues. No thread holds both, and none is held while work runs.
 */
#ifndef SIM_INTERNAL_H
#define SIM_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "core.h"
#include "graph.h"

/*
 * Handles that programs hold. Their memory is never returned to malloc, only to a list of its own
 * type. So a stale handle gives an error, and the simulator does not crash.
 */
enum object_type {
	OBJECT_CONTEXT = 1,
	OBJECT_STREAM,
	OBJECT_EVENT,
	OBJECT_PHYSICAL,
	OBJECT_MODULE,
	OBJECT_KERNEL,
	OBJECT_GRAPH,
	OBJECT_NODE,
	OBJECT_EXEC,
	OBJECT_POOL,
	OBJECT_ARRAY,
	OBJECT_TYPES
};

struct object {
	_Atomic uint32_t alive; /* its type, or 0 */
	struct object *next;    /* in the free list */
};

void *object_new(enum object_type type, size_t size); /* zeroed but for `object`; NULL without memory */
void object_delete(void *object);
bool object_is(const void *object, enum object_type type);

/* Unique in the process, never 0. */
uint64_t sim_next_id(void);

static inline uint64_t round_up(uint64_t value, uint64_t to)
{
	return (value + to - 1) / to * to;
}

/* -- space.c: which parts of a range of numbers are taken -------------------------------------- */

struct span {
	uint64_t start, size;
};

struct space {
	struct span *span; /* free, sorted, never adjacent */
	size_t count, capacity;
};

bool space_init(struct space *space, uint64_t start, uint64_t size);
bool space_take(struct space *space, uint64_t size, uint64_t alignment, uint64_t hint, uint64_t *start);
void space_give(struct space *space, uint64_t start, uint64_t size);

/* -- device.c: capacity and the memory itself -------------------------------------------------- */

extern pthread_mutex_t sim_memory_lock;

struct sim_physical {
	struct object object;
	enum sim_place place;
	int id;
	uint64_t bytes;
	char *home;            /* its mapping, always accessible */
	bool uncounted;        /* it is not counted in the capacity */
	bool exported;         /* share.c has told others of it */
	struct import *import; /* memory of another process, or NULL */
	unsigned references;   /* handles; a plain allocation has one */
	unsigned mappings;
	_Alignas(16) char face[SIM_PHYSICAL_FACE];
};

/* The first of the simulator's own descriptors, beyond those that programs count. */
#define DEVICE_DESCRIPTORS 500

/* The memory of a device or of the host. */
struct file {
	struct space space;
	char *home;
	uint64_t bytes;
	int descriptor;       /* -1: none, and nothing can be exported */
	struct table *table;  /* share.c: behind the memory, or NULL */
	enum sim_place place; /* of the memory, */
	int id;               /* as in sim_physical */
};

/* A part of a file, taken for one physical allocation. */
struct part {
	struct file *file;
	char *home;
	uint64_t bytes;
	bool uncounted;
};

/* pre for all of these: sim_memory_lock is held. */
/* False under qemu-user: pages cannot be mapped a second time without a descriptor. */
bool device_maps_again(void);
bool device_files_open(const struct sim_config *config, uint64_t host_bytes, bool small);
struct file *device_file_of(const struct sim_physical *physical);
/* Maps memory, readable and writable, at another address. */
bool device_show(char *where, const struct sim_physical *physical, uint64_t offset, uint64_t bytes);
/* Gives a part back. */
void device_part_end(const struct part *part);
/* Gives pages of a home back to the machine. Their bytes are 0 then. */
void device_empty(char *pages, uint64_t bytes);
/* If necessary, takes back unused memory of pools and evicts managed pages. */
enum sim_status device_charge(int device, uint64_t bytes);
/* The same in a signal handler, where nothing is freed: only managed pages make way. */
enum sim_status device_charge_in_fault(int device, uint64_t bytes);
void device_discharge(int device, uint64_t bytes);
/* `counted`: memory on a device takes capacity. */
enum sim_status physical_new(enum sim_place place, int id, uint64_t bytes, bool counted,
                             struct sim_physical **out);
void physical_drop(struct sim_physical *physical); /* destroys it with the last reference and mapping */

/* -- va.c: the program's addresses and the devices' views of them ------------------------------ */

struct mapping { /* of a VMM handle */
	uint64_t address, bytes;
	struct sim_physical *physical;
	unsigned read, write; /* devices: bit 1 << device. */
	bool host_read, host_write;
};

struct page {                 /* of managed memory: one granule. */
	int8_t resident;      /* device, or SIM_CPU. */
	int8_t preferred;     /* device, SIM_CPU, or -2. */
	int8_t last_prefetch; /* the same. */
	bool read_mostly;
	uint32_t accessed_by; /* bit 1 << device; bit 31: the host. */
	uint32_t mapped;      /* devices that reach it without fault. */
};

#define UNIT 512
#define UNITS (SIM_GRANULE / UNIT)

struct small { /* one allocation in a slab, at its first unit. */
	uint64_t id;
	uint32_t bytes;
	uint16_t units;
};

struct slab {
	unsigned free, rover;  /* units. */
	uint16_t owner[UNITS]; /* first unit of the allocation, plus one; 0: free. */
	struct small small[UNITS];
};

struct range { /* one reservation of addresses; never shares a granule with another. */
	struct range *next, *previous;
	enum sim_memory kind;
	uint64_t address, bytes; /* whole granules. */
	uint64_t asked, id;
	int device;
	struct sim_context *context;
	struct sim_physical *physical; /* all kinds but VMM. */
	unsigned reach;                /* DEVICE: devices that see it. */
	bool leaving;                  /* freed in stream order: invalid for the program. */
	bool module;                   /* variables of a module: the program cannot free it. */
	struct slab *slab;             /* NULL: one allocation. */
	struct page *page;             /* MANAGED. */
	struct mapping **map;          /* VMM: per granule. */
	struct graph_block *graph;     /* DEVICE: memory of graph nodes; `physical` is unused. */
	struct sim_pool *pool;         /* the pool of this chunk, or NULL. */
	struct range *pool_next;
	struct block *blocks;      /* of a chunk: its pieces, by address. */
	struct imported *imported; /* DEVICE: an allocation of another process, or NULL. */
};

struct imported {
	uint64_t start;        /* the address that the program has */
	uint64_t file, row;    /* which allocation it is */
	unsigned opens;        /* by handles */
	struct sim_pool *pool; /* an imported one; NULL: opened by a handle */
};

extern struct range *sim_ranges; /* newest first */

bool va_open(int devices, uint64_t bytes);
bool va_contains(uint64_t address);
char *va_alias(uint64_t address, int device); /* pre: va_contains */
bool va_of_alias(const void *pointer, uint64_t *address, int *device);
const void *va_poison(void); /* any access faults */
struct range *va_range(uint64_t address);
struct range *va_take(enum sim_memory kind, uint64_t bytes, uint64_t alignment, uint64_t hint);
void va_give(struct range *range);

/* Makes `bytes` of `physical` from `offset` visible at `where`. On failure nothing has changed. */
bool va_show(char *where, const struct sim_physical *physical, uint64_t offset, uint64_t bytes,
             int protection);
void va_hide(char *where, uint64_t bytes);

/* -- pages.c ----------------------------------------------------------------------------------- */

/* Before much memory is read or written at once. Keeps errno. */
void pages_ready(const void *start, uint64_t bytes, bool written);

/* -- alloc.c, managed.c ------------------------------------------------------------------------ */

void alloc_context_gone(struct sim_context *context);
/* Shows allocations of `owner` to the devices with access now, and hides them from the others. */
void alloc_peers_changed(const struct sim_context *owner);
/* Shows a pool's chunk on a device, or hides it, as the pool's access list says. */
void alloc_pool_changed(struct range *chunk, int device);

/* pre for these: sim_memory_lock is held. `like` gives kind, device, context, pool and imported. */
enum sim_status range_new(const struct range *like, uint64_t bytes, struct range **out);
/* The same with memory that is there. It is dropped on failure. */
enum sim_status range_of(const struct range *like, uint64_t bytes, struct sim_physical *physical,
                         struct range **out);
void range_remove(struct range *range);

/* Zeroed device memory of a module, not counted in the capacity. pre: no lock is held. */
enum sim_status alloc_for_module(struct sim_context *context, uint64_t bytes, struct range **out);
void alloc_module_gone(struct range *range);

/* The program's own memory as kernels see it; NULL if not registered. pre: the lock is not held. */
void *registered(uint64_t address);

bool managed_init(struct range *range);
void managed_gone(struct range *range);
/* A kernel on `device` faulted: true to try again. On the faulting thread, without locks. */
bool managed_touch(uint64_t address, int device);
/* Moves pages off `device` until `bytes` are free or no page can be moved. */
void managed_evict(int device, uint64_t bytes);

/* -- pool.c ------------------------------------------------------------------------------------ */

/* pre for all: sim_memory_lock is held, `range` is a chunk of a pool. */
bool pool_allocation(const struct range *range, uint64_t address, uint64_t *start, uint64_t *bytes,
                     uint64_t *id);
void pool_access(const struct sim_pool *pool, int device, bool *read, bool *write);
/* Gives back all unused chunks on the device. */
void pools_reclaim(int device);

/* SIM_NOT_FOUND: no pool's memory. SIM_INVALID: no start of one. pre: the lock is not held. */
enum sim_status pool_free(uint64_t address);
enum sim_status pool_free_ordered(uint64_t address, struct sim_stream *stream);

/* Of an imported pool: the descriptor of its file, and its row. -1: it is not imported. */
struct pool_import {
	int descriptor;
	uint64_t file, row;
};
const struct pool_import *pool_import(const struct sim_pool *pool);
void pool_set_import(struct sim_pool *pool, struct pool_import import);

/* -- share.c, share_import.c: memory that several processes have. pre for these: sim_memory_lock is held. ------ */

uint64_t share_table_bytes(void);
/* Of a new file with a descriptor. */
bool share_table_open(struct file *file);
/* The allocation with that id has ended: nobody can open it any more. */
void share_forget(uint64_t id);
/* True: other processes hold the part, which nobody here does any more. It ends when they let go. */
bool share_lends(const struct part *part);
/* Ends parts that nobody holds any more. */
void share_settle(void);
/* Unmaps memory of another process. pre: physical->import */
void share_let_go(struct sim_physical *physical);
/* Where a descriptor and an offset are needed to map it. */
int share_descriptor(const struct import *import, uint64_t *offset);
/* Frees memory of an imported pool. SIM_NOT_FOUND: it is none. Stream NULL: at once. pre: no lock is held */
enum sim_status share_free(uint64_t address, struct sim_stream *stream);

/* -- array.c ----------------------------------------------------------------------------------- */

void array_context_gone(struct sim_context *context);

/* -- device.c: contexts ------------------------------------------------------------------------ */

struct sim_context {
	struct object object;
	int device;
	uint64_t id;
	_Atomic int status; /* sticky enum sim_status */
	/* bytes held by make_room.c, and bytes per thread; under sim_memory_lock */
	uint64_t room, local;
	struct peer *peers;         /* contexts whose plain memory it may touch; under sim_memory_lock */
	struct sim_context *next;   /* under sim_memory_lock */
	struct sim_stream *streams; /* under the lock of stream.c */
	struct sim_stream *legacy;
	unsigned blocked;           /* threads waiting for a full queue; under the lock of stream.c */
	struct sim_module *modules; /* under the lock of module.c */
	_Alignas(16) char face[SIM_FACE];
};

extern struct sim_context *sim_contexts;

/* -- make_room.c: pre for these: no lock is held ---------------------------------------------------- */

/* Takes the configured bytes, and `more` if those are not 0. *held: bytes to give back. */
enum sim_status room_take(struct sim_context *context, enum sim_room what, uint64_t more, uint64_t *held);
/* `id`: of the context that took it. The room ends with that context. */
void room_give(struct sim_context *context, uint64_t id, uint64_t held);

/* pre: sim_memory_lock is held. */
bool context_reaches(const struct sim_context *context, const struct sim_context *owner);

/* -- stream.c, event.c, work.c, module.c ------------------------------------------------------- */

struct operation;
enum sim_status stream_open(struct sim_context *context); /* makes the default stream */
/* `room`: device bytes that were taken for the stream. */
enum sim_status stream_create(struct sim_context *context, bool non_blocking, int priority, uint64_t room,
                              struct sim_stream **out);
void stream_context_gone(struct sim_context *context); /* pre: nothing is running */
void event_context_gone(struct sim_context *context);
void module_context_gone(struct sim_context *context);

/*
 * -- time.c: the model of time. Without SPILL_SIM_TIME, work takes no time of its own. ------------
 *
 * The thread that runs work calls time_begin before it, and time_end behind it, which waits until
 * its modelled end and returns that. `nothing`: no work ran. The work itself calls the others.
 */
uint64_t time_now(void); /* ns */
void time_begin(uint64_t start);
uint64_t time_end(bool nothing);
void time_launch(void);
/* A kernel uses the range `times` times. pre of both: sim_memory_lock is not held */
void time_use(uint64_t address, uint64_t bytes, uint64_t times, int device);
/* The program's addresses, or the devices'. */
void time_copy(uint64_t to, uint64_t from, uint64_t bytes, int device);

/* Pauses at random, once in `one_in` calls. pre: no lock is held */
void jitter(unsigned one_in);

/* Work of a stream. It runs once, with no lock held, guarded against bad addresses. */
typedef void (*work_function)(void *data);
/* The launch whose work has `data`. */
const struct sim_kernel_node *launch_about(const void *data);
/* The same for a copy and for a set. */
const struct sim_box_node *copy_about(const void *data);
const struct sim_box_node *set_about(const void *data);

/*
 * Appends work to the stream. `data` is freed with free() after the work ran or was skipped.
 * `wait`: return when it is done. `always`: run even in a broken context. In a capture the work
 * becomes a node of that type.
 */
enum sim_status stream_submit(struct sim_stream *stream, enum sim_node_type type, work_function run,
                              void *data, bool wait, bool always);

/* The stream's last operation, for record and wait. The caller gets a reference. */
struct operation *stream_mark(struct sim_stream *stream, enum sim_status *status);
/* Of no stream: it is done when all current work of the context is. NULL: no memory. */
struct operation *stream_mark_context(struct sim_context *context);
/* Waits until the stream's queue has a free place. Records and queries wait as well. */
void stream_has_room(struct sim_stream *stream);
/* The new stream takes its room with its first work. */
void stream_be_lazy(struct sim_stream *stream);
/* Closes the stream if it is alive and belongs to that context. */
void stream_close(struct sim_stream *stream, uint64_t context_id);
enum sim_status stream_after(struct sim_stream *stream, struct operation *mark);
struct operation *operation_get(struct operation *operation);
void operation_put(struct operation *operation);
bool operation_done(struct operation *operation);
void operation_wait(struct operation *operation);
uint64_t operation_time(struct operation *operation); /* ns; pre: done */

/* -- copy.c: where a range of memory is for the copy engine ------------------------------------ */

struct side {
	char *at;
	enum { SIDE_DEVICE, SIDE_PINNED, SIDE_PAGEABLE } what;
};

/* SIM_INVALID: a device address is not allocated or not reachable. */
enum sim_status side_of(uint64_t address, uint64_t bytes, struct sim_stream *stream, struct side *out);

/* -- capture.c, graph.c, graph_memory.c -------------------------------------------------------- */

/* Guards captures and graphs. Taken before the other two locks. */
extern pthread_mutex_t sim_graph_lock;

/* Each returns true if a capture took the call, with the result in *status. */
bool capture_take(struct sim_stream *stream, enum sim_node_type type, work_function run, void *data,
                  enum sim_status *status); /* `data` is freed if it fails */
bool capture_record(struct sim_event *event, struct sim_stream *stream, enum sim_status *status);
bool capture_wait(struct sim_stream *stream, struct sim_event *event, bool recorded, enum sim_status *status);
/* True if work becomes a node. Then its memory may come later, and the call never waits. */
bool capture_records(struct sim_stream *stream);
void capture_stream_gone(struct sim_stream *stream);
void capture_context_gone(struct sim_context *context);
void capture_mark_free(void *mark);

/* Invalidates all captures of the context; SIM_CAPTURE_UNSUPPORTED if there was one. */
enum sim_status capture_refuse_context(struct sim_context *context);
/* The event records work outside of a capture. Its mark in a capture ends. */
void capture_forget(struct sim_event *event);

/* The event's mark in a capture. The event owns it, and only capture.c reads it. */
void **event_capture_mark(struct sim_event *event);

/* pre for these: sim_graph_lock is held. */
/* A node that runs work in `context`. On success the node owns `data`. */
enum sim_status node_work(const struct sim_spot *spot, struct sim_context *context, enum sim_node_type type,
                          work_function run, void *data, struct sim_node **out);
enum sim_status node_alloc(const struct sim_spot *spot, int device, unsigned devices, uint64_t bytes,
                           uint64_t *address, struct sim_node **out);
enum sim_status node_free(const struct sim_spot *spot, uint64_t address, struct sim_node **out);
enum sim_status node_event(const struct sim_spot *spot, enum sim_node_type type, struct sim_event *event,
                           struct sim_node **out);
void graph_delete(struct sim_graph *graph);
/* True if each of `nodes` is in `before`, or comes before one of those. */
bool graph_leads_to(struct sim_graph *graph, struct sim_node *const *nodes, size_t count,
                    struct sim_node *const *before, size_t before_count);

struct graph_block;
/* Of one graph. References: the graph, its executable form, each live allocation. */
struct graph_memory;
struct graph_allocation {
	struct graph_allocation *next;
	struct graph_memory *memory;
	struct graph_block *block;
	uint64_t address, bytes, id;
	int device;
	unsigned devices;
	struct sim_context *context; /* of the last launch */
	struct sim_node *freed_by;   /* of the same graph, as long as the graph lives */
	bool open;                   /* live for the program */
	bool freed_here, freed_elsewhere, replaced;
};

struct graph_memory *graph_memory_new(void);
void graph_memory_get(struct graph_memory *memory);
void graph_memory_put(struct graph_memory *memory);
bool graph_memory_exec(struct graph_memory *memory, int change); /* false: there is one already */
/* `reuse`: the new allocation takes the place of that one. */
enum sim_status graph_memory_add(struct graph_memory *memory, int device, unsigned devices, uint64_t bytes,
                                 struct graph_allocation *reuse, struct graph_allocation **out);
struct graph_allocation *graph_memory_find(uint64_t address); /* the newest node that allocates it, or NULL */
bool graph_memory_contains(uint64_t address, uint64_t bytes);
/*
 * `frees`: allocations of other graphs. When the launched work is done, call graph_memory_launched,
 * and graph_memory_freed for each of `frees`.
 */
enum sim_status graph_memory_launch(struct graph_memory *memory, struct sim_context *context, bool auto_free,
                                    struct graph_allocation *const *frees, size_t count);
void graph_memory_launched(struct graph_memory *memory);
void graph_memory_freed(struct graph_allocation *allocation);
enum sim_status graph_memory_upload(struct graph_memory *memory);
/* As sim_free_ordered; SIM_NOT_FOUND: not a graph's. */
enum sim_status graph_memory_free_ordered(uint64_t address, struct sim_stream *stream);
/* pre for these: sim_memory_lock is held. */
/* true: something was given back */
bool graph_memory_trim(int device);
void graph_memory_free(const struct graph_block *block, uint64_t start); /* pre: it is live */
/* The live allocation of a graph that contains `address`. False: none. */
bool graph_memory_at(const struct graph_block *block, uint64_t address, uint64_t *start, uint64_t *bytes,
                     uint64_t *id);
struct sim_context *graph_memory_context(const struct graph_block *block, uint64_t address);

/* Up to `room` of the newest unfinished operations. The caller gets references. */
unsigned stream_pending(struct sim_context *context, struct operation **out, unsigned room);

/* Runs work of `context` on this thread. A bad address breaks the context only. */
void guard_run(struct sim_context *context, work_function run, void *data);
void guard_off(void); /* the rest of this work is the program's code, whose faults are its own */
/* Both are called by kernels (kernel.h). */
void *guard_reach(uint64_t address);
void *guard_range(uint64_t address, uint64_t bytes, uint64_t times);
int guard_device(void); /* of the work that runs on this thread */

#endif

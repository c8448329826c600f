/*
 * vendor: the only caller of the vendors' drivers. The other rooms see one struct of functions per
 * vendor: backend_cuda.c and backend_hip.c. Every function calls the real driver and returns the
 * vendor's error code; 0 is success for both vendors. On failure its outputs are untouched. Sizes
 * are bytes.
 *
 * The functions are in groups. A group is whole, or it is NULL. In a group that is there, a
 * function that this version of the driver lacks returns the vendor's "not supported".
 *
 * This room decides nothing and keeps no account. Begin with struct spill_backend, then registry.h.
 */
#ifndef SPILL_BACKEND_H
#define SPILL_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"
#include "decide.h"

enum spill_domain { SPILL_CUDA_DRIVER, SPILL_CUDA_RUNTIME, SPILL_HIP, SPILL_NVML, SPILL_DOMAINS };

/* Whether a backend works without a function of its list (backend_cuda.def). */
enum spill_needed { SPILL_OPTIONAL, SPILL_REQUIRED };

/* Finds the real vendor function `symbol`, never one of ours; NULL if the library has none. */
typedef void *spill_resolve_fn(enum spill_domain domain, const char *symbol);

/* Room for NVIDIA's and AMD's (both layouts) structure of the properties of physical memory. */
#define SPILL_PROPERTIES_BYTES 32

/* A program's request for physical memory (CREATE). */
struct spill_physical {
	enum spill_location where; /* NONE: neither pinned on a device nor pinned on the host */
	int device;
	bool device_only; /* host memory cannot serve the purpose that the request names */
	bool exportable;  /* the program may export its handle */
	/* The vendor's structure, for a program that reads it back from host memory. */
	unsigned char asked[SPILL_PROPERTIES_BYTES];
};

struct spill_context_end;

/* The calling thread and its devices. A vendor without context objects (HIP) has NULL contexts. */
struct spill_vendor_devices {
	/* Fills at most `room` entries, by device number. Returns their number. */
	unsigned (*list)(struct spill_log_device *devices, unsigned room);
	unsigned (*count)(void); /* devices that the process sees; 0 if the vendor refuses to tell */
	unsigned (*capabilities)(int device); /* enum spill_capability */
	/* The device and context of an allocation by this thread; false if there is none. */
	bool (*current)(int *device, void **context);
	/* Makes the device current, as the vendor's runtime would. `leave` undoes this. */
	int (*enter)(int device, void **before);
	void (*leave)(void *before);
	/* Also of other devices. *free is 0 where none of the contexts can be asked. */
	int (*memory)(int device, uint64_t *free, uint64_t *total);
	int (*wait)(int device, void *context); /* until all work of that context is done */
};

struct spill_vendor_memory {
	uint64_t (*footprint)(uint64_t bytes); /* device bytes that a plain allocation takes */
	uint64_t (*pitch)(uint64_t width);     /* bytes of a row of padded memory; 0 if unknown */
	int (*device_alloc)(uint64_t bytes, uint64_t *ptr);
	int (*device_free)(uint64_t ptr);
	/* Pinned memory, which the device reads in place at `ptr`. */
	int (*host_alloc)(uint64_t bytes, uint64_t *ptr, void **host);
	int (*host_free)(void *host);
	int (*managed_alloc)(uint64_t bytes, uint64_t *ptr);
	int (*managed_free)(uint64_t ptr);
	/* Preferred location and accessed-by are hints: their failure is no error. */
	int (*advise_preferred)(uint64_t ptr, uint64_t bytes, enum spill_location where, int device);
	int (*advise_accessed_by)(uint64_t ptr, uint64_t bytes, enum spill_location accessor, int device);
	int (*advise_read_mostly)(uint64_t ptr, uint64_t bytes, int device);
	/* To the device, on the default stream. */
	int (*prefetch)(uint64_t ptr, uint64_t bytes, int device);
};

struct spill_vendor_streams {
	/*
	 * The device and context of a stream, the primary one for that of a green context. The default streams are the
	 * current context's.
	 */
	int (*owner)(void *stream, int *device, void **context);
	/* True if work on the stream is recorded now, or refused as another captures. */
	bool (*capturing)(void *stream);
	/*
	 * The green context that is current in this thread: a part of the device, whose default stream is no other
	 * context's. NULL: none is. NULL itself for a vendor without them.
	 */
	const void *(*green)(void);
};

/* Contexts as objects. */
struct spill_vendor_contexts {
	/* The context need not be current. False if the handle is no context's. */
	bool (*device)(void *context, int *device);
	/* Never reused, unlike the handle. 0 if the driver has no such number. */
	uint64_t (*id)(void *context);
	/* The device's primary context, which is not created here; false if it is not active. */
	bool (*primary)(int device, void **context);
	/* The program has retained it: `primary` answers this handle from here on. */
	void (*primary_retained)(int device, void *context);
	/* The context that owns what is made in this one: the primary one, if this is a green one. */
	void *(*owner)(void *context);
	/*
	 * Green contexts: parts of a device, whose memory and work are its primary context's. To libspill that is the
	 * context of all that they own, because it outlives them. `green_made`: the program has made one. False: it
	 * cannot be noted. `green_ends`: it is to end. False: it is not known.
	 */
	bool (*green_made)(void *green, int device);
	bool (*green_ends)(void *green, int *device);
	/* Forgets the context and its events. Living objects may have the same handles by now. */
	void (*ended)(const struct spill_context_end *end);
};

/* Physical memory behind handles. */
struct spill_vendor_physical {
	void (*describe)(const void *properties, struct spill_physical *physical);
	int (*granularity)(int device, bool on_host, uint64_t *bytes);
	int (*create)(int device, bool on_host, uint64_t bytes, uint64_t *handle);
	/* The same, so that it can be handed on where that is possible (to_descriptor). NULL: nowhere. */
	int (*create_shareable)(int device, bool on_host, uint64_t bytes, uint64_t *handle);
	/* On a device, with the vendor's structure of properties. */
	int (*create_as)(const void *properties, uint64_t bytes, uint64_t *handle);
	int (*release)(uint64_t handle);
	/*
	 * For other processes. `retain` makes one more handle of what is mapped at `va`. A descriptor
	 * is the caller's to close; another process makes a handle of it. NULL, all four, where
	 * `create_shareable` is.
	 */
	bool (*shareable)(int device, bool on_host); /* can memory of `create_shareable` be handed on? */
	int (*retain)(uint64_t va, uint64_t *handle);
	int (*to_descriptor)(uint64_t handle, int *descriptor);
	int (*from_descriptor)(int descriptor, uint64_t *handle);
};

/* Address ranges, and mappings of physical memory in them. */
struct spill_vendor_vmm {
	bool outlive_contexts; /* ranges, mappings and handles belong to the process */
	/* An export of mapped memory is not refused, and damages the system. */
	bool export_harms;
	int (*reserve)(uint64_t bytes, uint64_t alignment, uint64_t *va);
	int (*unreserve)(uint64_t va, uint64_t bytes);
	int (*map)(uint64_t va, uint64_t bytes, uint64_t handle);
	/* Whole mappings only. Does not wait for the device. */
	int (*unmap)(uint64_t va, uint64_t bytes);
	int (*allow)(uint64_t va, uint64_t bytes, int device); /* read and write by the device */
	/* Recommended for mappings; a power of two. NULL: the granularity of physical memory. */
	int (*granularity)(int device, uint64_t *bytes);
	/*
	 * False: a trial with two chunks of `unit` bytes has failed on this device, or there was no
	 * memory for it. Tried until the result is known. NULL: no trial is needed. pre: nothing
	 * captures, and the device has SPILL_CAN_SPLIT
	 */
	bool (*works)(int device, uint64_t unit);
};

/* Memory in stream order. */
#define SPILL_SHARED_WITH_NOBODY (-1) /* takes access back */
#define SPILL_SHARED_WITH_OTHERS (-2) /* with what is no device */

struct spill_vendor_pools {
	bool outlive_contexts; /* with all that was allocated from them */
	/*
	 * Makes a pool for `device`: on it, on the host node nearest to it (HOST), or MANAGED with
	 * `preferred`. A pool on the device keeps its memory until it is trimmed, any other one
	 * until it is destroyed. Only `device` may use the pool; `allow` adds others.
	 */
	int (*create)(int device, enum spill_place place, enum spill_location preferred, void **pool);
	int (*destroy)(void *pool); /* allocations from the pool live on until they are freed */
	int (*allow)(void *pool, int device);
	int (*alloc)(void *pool, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr);
	int (*free)(uint64_t ptr, void *stream, bool per_thread); /* of any pool */
	/* Physical bytes, and the unused part of these. `trim` returns that part. */
	int (*reserved)(void *pool, uint64_t *bytes);
	int (*unused)(void *pool, uint64_t *bytes);
	int (*trim)(void *pool);
	/* The pool of allocations that name none, and the one that the driver made itself. */
	int (*current)(int device, void **pool);
	int (*device_default)(int device, void **pool);
	/* Reads the vendor's structure of properties. Sets *device if the place is DEVICE. */
	enum spill_place (*place)(const void *properties, int *device);
	/* The same of a place and a kind of memory for which the driver has pools of its own. NULL on HIP. */
	enum spill_place (*place_at)(const void *location, unsigned type);
	/* Its memory can be exported, or has properties that chunks lack. NULL on HIP, as `share`. */
	bool (*special)(const void *properties);
	/* Gives a range the access of one of the vendor's descriptions for a pool. */
	int (*share)(const void *descriptions, unsigned index, uint64_t va, uint64_t bytes);
	/* The device that such a description gives access to, SPILL_SHARED_WITH_NOBODY or _OTHERS. */
	int (*share_device)(const void *descriptions, unsigned index);
};

/* `device`, `context`: of the stream. */
struct spill_vendor_events {
	int (*record)(int device, void *context, void *stream, bool per_thread, void **event);
	bool (*passed)(int device, void *context, void *event);
	void (*destroy)(int device, void *context, void *event);
	/* False: it never passes, because its context is dead or the driver has shut down. NULL: nobody knows. */
	bool (*will_pass)(int device, void *context, void *event);
};

/* Measure work without waiting for it. `device`, `context`: of the stream. */
struct spill_vendor_timers {
	int (*create)(int device, void *context, void **timer);
	/* Takes the time when all work so far is done. A timer may be recorded again. */
	int (*record)(int device, void *context, void *stream, bool per_thread, void *timer);
	/* An error if the timer's context has ended, or its handle is another's. */
	int (*passed)(int device, void *context, void *timer, bool *passed);
	/* pre: both have passed */
	int (*between)(int device, void *context, void *begin, void *end, uint64_t *ns);
	void (*destroy)(int device, void *context, void *timer);
};

/* Moving chunks. */
struct spill_vendor_moves {
	/*
	 * Records an event (of the group events) behind all work of a context, of every stream and
	 * thread. A stream of the context that captures makes the driver refuse it and breaks the
	 * capture (measured, H200): nothing may capture.
	 */
	int (*mark)(int device, void *context, void **event);
	/*
	 * Waits for all work of a context. Only then does the vendor know that memory was freed in
	 * stream order: a query or a mark that has passed does not tell it (measured, H200). As
	 * `mark`: nothing may capture.
	 */
	int (*synchronize)(int device, void *context);
	/*
	 * Has `count` events of a context ready, for `mark` and for the group events. Making an
	 * event or a stream can wait as long as a launch of another thread waits for a full queue.
	 * Recording and asking do not (measured, H200).
	 */
	int (*events_ahead)(int device, void *context, unsigned count);
	/* A stream of ours in the context, in no order with the program's streams. */
	int (*copier_create)(int device, void *context, void **stream);
	void (*copier_destroy)(int device, void *context, void *stream);
	int (*copy)(int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes);
};

/* HIP's last error, below its allocation calls. CUDA's is above the driver, in the runtime. */
struct spill_vendor_last_error {
	int (*peek)(void);
	void (*forget)(void);
	/* Sets the last error by a true out of memory, and returns that. */
	int (*raise_out_of_memory)(void);
};

struct spill_backend {
	const char *name;  /* "cuda", "hip" */
	int out_of_memory; /* the vendor's code */
	int invalid_value;
	/* A kernel without room at its first launch fails for good (measured, H200). */
	bool loses_code;
	/* An out of memory writes NULL to the program's pointer, else nothing. */
	bool clears_pointer;
	/* Bytes of the vendor's answer about the size of a pointer's range; little-endian. */
	unsigned range_size_width;

	/* Looks the vendor's functions up. False if the library lacks a required one. */
	bool (*start)(spill_resolve_fn *resolve);
	const char *(*error_name)(int error); /* static storage */
	int (*driver_version)(void);
	/* The vendor's value for device memory in answers about pointers. */
	int (*device_memory_type)(void);
	/* Describes plain device memory, for POINTER. NULL: the vendor has no such call. */
	void (*describe_plain)(void *structure, uint64_t ptr, int device);
	/* The name of a kernel, for as long as its code is loaded. NULL: no such call, or nobody knows it. */
	const char *(*kernel_name)(const void *function);
	/* Device bytes of the process's graphs, in use or not. NULL: no such figure. */
	int (*graph_reserved)(int device, uint64_t *bytes);

	/* --- groups that every vendor has --- */

	const struct spill_vendor_devices *devices;
	const struct spill_vendor_memory *memory;
	const struct spill_vendor_streams *streams;

	/* --- groups that are NULL where the vendor has no such functions --- */

	const struct spill_vendor_contexts *contexts;
	const struct spill_vendor_physical *physical;
	const struct spill_vendor_vmm *vmm;
	const struct spill_vendor_pools *pools;
	const struct spill_vendor_events *events;
	const struct spill_vendor_timers *timers;
	const struct spill_vendor_moves *moves;
	const struct spill_vendor_last_error *last_error;
};

extern const struct spill_backend spill_backend_cuda, spill_backend_hip;

#endif

/*
 * vendor: the only caller of the vendors' drivers. One struct of functions per vendor (backend_cuda.c, backend_hip.c) is all that
 * the other rooms see. Every function calls the real driver, returns the vendor's error code (0 is success for both vendors) and
 * leaves its outputs untouched on failure. Sizes are bytes. A NULL slot means that the vendor cannot.
 *
 * It decides nothing and keeps no account. Begin with struct spill_backend, then registry.h.
 */
#ifndef SPILL_BACKEND_H
#define SPILL_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"
#include "decide.h"

enum spill_domain { SPILL_CUDA_DRIVER, SPILL_CUDA_RUNTIME, SPILL_HIP, SPILL_NVML, SPILL_DOMAINS };

/* Of a function in a backend's list. */
enum spill_needed { SPILL_OPTIONAL, SPILL_REQUIRED };

/* Finds the real vendor function `symbol`, never one of ours; NULL if the library has none. */
typedef void *spill_resolve_fn(enum spill_domain domain, const char *symbol);

/* Of the vendors' structures of properties of physical memory: NVIDIA's, and AMD's in both its layouts. */
#define SPILL_PROPERTIES_BYTES 32

/* What a program asks of physical memory (CREATE). */
struct spill_physical {
	enum spill_location where; /* NONE: neither pinned on a device nor pinned on the host */
	int device;
	bool device_only; /* what it is made for cannot be done by host memory */
	/* The vendor's structure, as the program is to find it when the memory is on the host all the same. */
	unsigned char asked[SPILL_PROPERTIES_BYTES];
};

struct spill_context_end;

struct spill_backend {
	const char *name;  /* "cuda", "hip" */
	int out_of_memory; /* the vendor's code */
	int invalid_value;
	bool
	    loses_code; /* a kernel that finds no room for its code at its first launch fails for good (measured, H200) */
	bool
	    clears_pointer; /* an out of memory writes NULL to the program's pointer; else it is left as it was */
	unsigned
	    range_size_width; /* bytes of the vendor's answer about the size of a pointer's range; little-endian */
	int (*device_memory_type)(void); /* the vendor's word for device memory, in answers about pointers */

	/* --- required --- */

	/* Looks the vendor's functions up. False if the library lacks what is required here. */
	bool (*start)(spill_resolve_fn *resolve);
	const char *(*error_name)(int error); /* static storage */
	/* The device and context that an allocation by this thread would belong to; false if there is none. */
	bool (*current)(int *device, void **context);
	/* Also of a device that is not current; *free is 0 where no context of it can be asked. */
	int (*memory)(int device, uint64_t *free, uint64_t *total);
	uint64_t (*footprint)(uint64_t bytes);  /* device bytes that a plain allocation takes */
	uint64_t (*pitch)(uint64_t width);      /* bytes of a row of padded memory; 0 where it is not known */
	unsigned (*capabilities)(int device);   /* enum spill_capability */
	int (*wait)(int device, void *context); /* until all work of that context is done */
	unsigned (*devices)(struct spill_log_device *devices, unsigned room); /* returns their number */
	int (*driver_version)(void);

	int (*host_alloc)(uint64_t bytes, uint64_t *ptr, void **host); /* pinned, readable in place at ptr */
	int (*host_free)(void *host);
	int (*managed_alloc)(uint64_t bytes, uint64_t *ptr);
	int (*managed_free)(uint64_t ptr);
	/* Where it should live and who maps it; both are hints, so their failure is no error of the allocation. */
	int (*advise_preferred)(uint64_t ptr, uint64_t bytes, enum spill_location where, int device);
	int (*advise_accessed_by)(uint64_t ptr, uint64_t bytes, enum spill_location who, int device);
	int (*advise_read_mostly)(uint64_t ptr, uint64_t bytes, int device);
	int (*prefetch)(uint64_t ptr, uint64_t bytes, int device); /* to the device, on the default stream */

	/* --- optional: virtual memory management --- */

	int (*granularity)(int device, bool on_host, uint64_t *bytes);
	int (*reserve)(uint64_t bytes, uint64_t alignment, uint64_t *va);
	int (*unreserve)(uint64_t va, uint64_t bytes);
	void (*physical)(const void *properties,
	                 struct spill_physical *physical); /* NULL: the vendor has no such thing */
	int (*create)(int device, bool on_host, uint64_t bytes, uint64_t *handle);
	int (*release)(uint64_t handle);
	int (*map)(uint64_t va, uint64_t bytes, uint64_t handle);
	int (*unmap)(uint64_t va, uint64_t bytes); /* whole mappings only; does not wait for the device */
	int (*allow)(uint64_t va, uint64_t bytes, int device); /* read and write by the device */

	/* --- optional: memory in stream order (all of them, or none) --- */

	bool pools_outlive_contexts; /* with all that was allocated from them */
	/* The device and context of a stream; the default streams are the current context's. */
	int (*stream_owner)(void *stream, int *device, void **context);
	/*
	 * Makes a pool for `device`: on it, on the host node nearest to it (HOST), or MANAGED with `preferred`. It
	 * keeps its memory until it is trimmed; one that is not on the device, until it is destroyed. The device may
	 * use it; others with pool_allow.
	 */
	int (*pool_create)(int device, enum spill_place place, enum spill_location preferred, void **pool);
	int (*pool_destroy)(void *pool); /* what is allocated from it lives on until it is freed */
	int (*pool_allow)(void *pool, int device);
	int (*pool_alloc)(void *pool, uint64_t bytes, void *stream, bool per_thread, uint64_t *ptr);
	int (*pool_free)(uint64_t ptr, void *stream, bool per_thread); /* of any pool */
	int (*pool_reserved)(void *pool, uint64_t *bytes);             /* physical, used or not */
	int (*pool_unused)(void *pool, uint64_t *bytes);               /* of these, what nobody uses */
	int (*pool_trim)(void *pool);                                  /* gives back what is not in use */
	/* What the graphs of the process hold on the device, in use or not. NULL: the vendor has no such figure. */
	int (*graph_reserved)(int device, uint64_t *bytes);
	/* The pool that an allocation without one comes from, and the one that is there without the program's doing.
	 */
	int (*pool_current)(int device, void **pool);
	int (*pool_default)(int device, void **pool);
	/* Where memory of a pool with these properties (the vendor's structure) is; *device if on one. */
	enum spill_place (*pool_place)(const void *properties, int *device);

	/* --- optional: events (all of them, or none). `device`, `context`: of the stream --- */

	int (*event_record)(int device, void *context, void *stream, bool per_thread, void **event);
	bool (*event_passed)(int device, void *context, void *event);
	void (*event_destroy)(int device, void *context, void *event);

	/* --- optional: timing (all of them, or none), without waiting. `device`, `context`: of the stream --- */

	int (*timer_create)(int device, void *context, void **timer);
	/* Takes the time when all work so far on the stream is done; may be recorded again. */
	int (*timer_record)(int device, void *context, void *stream, bool per_thread, void *timer);
	/* An error if there is no such timer any more: its context has ended, or has become another. */
	int (*timer_passed)(int device, void *context, void *timer, bool *passed);
	/* pre: both have passed */
	int (*timer_between)(int device, void *context, void *begin, void *end, uint64_t *ns);
	void (*timer_destroy)(int device, void *context, void *timer);

	/* --- optional: moving chunks (all of them, or none) --- */

	/*
	 * An event (of the event_ functions) behind all work of a context, whatever stream and thread it came from. A stream of
	 * the context that captures has it refused, and its capture is broken (measured, H200): nothing may capture.
	 */
	int (*mark)(int device, void *context, void **event);
	/*
	 * Has so many events of a context ready, for mark and event_record. Making one can wait for as long as a launch of
	 * another thread waits for a full queue, a stream likewise; recording and asking do not (measured, H200).
	 */
	int (*events_ahead)(int device, void *context, unsigned count);
	/* Forgets the events that ended with a context, and the context: living ones may have such handles by now. */
	void (*context_ended)(const struct spill_context_end *end);
	/* A stream of ours in that context, in no order with the program's, and copies on it between any two mappings. */
	int (*copier_create)(int device, void *context, void **stream);
	void (*copier_destroy)(int device, void *context, void *stream);
	int (*copy)(int device, void *context, void *stream, uint64_t to, uint64_t from, uint64_t bytes);

	/* --- optional: for callers that name a device (shim/torch.c) --- */

	int (*device_alloc)(uint64_t bytes, uint64_t *ptr);
	int (*device_free)(uint64_t ptr);
	/* Makes a context of the device current if none is, as the vendor's runtime would; leave undoes it. */
	int (*device_enter)(int device, void **before);
	void (*device_leave)(void *before);

	/* --- optional --- */

	/*
	 * Makes a structure of POINTER say plain device memory of `device` at `ptr`. NULL: the vendor has no such
	 * call.
	 */
	void (*describe_plain)(void *structure, uint64_t ptr, int device);
	/* Of a context that need not be current; false if it is none. NULL where there are no contexts. */
	bool (*context_device)(void *context, int *device);
	/* True if work given to the stream now would be recorded, or refused because another stream captures. */
	bool (*capturing)(void *stream);
	/* The device's primary context, without creating it; false if it is not active. */
	bool (*primary)(int device, void **context);
	/* The program has retained it: `primary` answers this handle from here on. */
	void (*primary_retained)(int device, void *context);
	/* A number that no other context of the process has had, also under the same handle; 0 if the vendor has none. */
	uint64_t (*context_id)(void *context);
	/*
	 * HIP keeps a last error below its allocation calls (CUDA's is above the driver, so it needs none of these).
	 * peek reads it, forget clears it, raise makes it and returns a true out of memory.
	 */
	int (*peek_error)(void);
	void (*forget_error)(void);
	int (*raise_out_of_memory)(void);
};

extern const struct spill_backend spill_backend_cuda, spill_backend_hip;

#endif

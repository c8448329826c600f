/*
 * What the engine needs of a vendor: one struct of functions per vendor (backend_cuda.c, backend_hip.c). Every
 * function calls the real driver, returns the vendor's error code (0 is success for both vendors) and
 * leaves its outputs untouched on failure. Sizes are bytes. A NULL slot means that the vendor cannot.
 */
#ifndef SPILL_BACKEND_H
#define SPILL_BACKEND_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"
#include "policy.h"
#include "request.h"

/* Of a function in a backend's list. */
enum spill_needed { SPILL_OPTIONAL, SPILL_REQUIRED };

/* Finds the real vendor function `symbol`, never one of ours; NULL if the library has none. */
typedef void *spill_resolve_fn(enum spill_domain domain, const char *symbol);

struct spill_backend {
	const char *name;  /* "cuda", "hip" */
	int out_of_memory; /* the vendor's code */
	int invalid_value;

	/* --- required --- */

	/* Looks the vendor's functions up. False if the library lacks what is required here. */
	bool (*start)(spill_resolve_fn *resolve);
	const char *(*error_name)(int error); /* static storage */
	/* The device and context that an allocation by this thread would belong to; false if there is none. */
	bool (*current)(int *device, void **context);
	int (*memory)(int device, uint64_t *free, uint64_t *total); /* pre: `device` is current */
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
	int (*create)(int device, bool on_host, uint64_t bytes, uint64_t *handle);
	int (*release)(uint64_t handle);
	int (*map)(uint64_t va, uint64_t bytes, uint64_t handle);
	int (*unmap)(uint64_t va, uint64_t bytes); /* whole mappings only; does not wait for the device */
	int (*allow)(uint64_t va, uint64_t bytes, int device); /* read and write by the device */

	/* --- optional --- */

	/* The device's primary context, without creating it; false if it is not active. */
	bool (*primary)(int device, void **context);
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

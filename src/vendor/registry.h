/*
 * The vendors that libspill knows, which of them work in this process, and how libspill finds their
 * real functions. runtime.c enters each vendor.
 */
#ifndef SPILL_REGISTRY_H
#define SPILL_REGISTRY_H

#include "backend.h"

/* The shim's look-ups in the vendors' libraries. */
struct spill_vendor_symbols {
	spill_resolve_fn *resolve;
	/* `symbol` of the library that has `real`, never one of ours; NULL if it has none. */
	void *(*beside)(const void *real, const char *symbol);
};

/* Called once, before all others. `symbols` must live as long as the process. */
void spill_registry_use(const struct spill_vendor_symbols *symbols);

/* Enters a domain's functions, or NULL, before other threads ask. The next question starts them. */
void spill_registry_use_backend(enum spill_domain domain, const struct spill_backend *backend);

/* The vendor's functions, started at first use. NULL: there is none (CUDA_RUNTIME), or not all. */
const struct spill_backend *spill_backend_for(enum spill_domain domain);

/* The same, but NULL if the vendor was not started: the program does not use its GPUs. */
const struct spill_backend *spill_backend_in_use(enum spill_domain domain);

/* A forked child uses no vendor yet. The drivers do not let it use its parent's state. */
void spill_registry_fork_child(void);

/*
 * The number that the CUDA driver has for an NVML device. NVML numbers all devices of the machine;
 * the driver numbers those of CUDA_VISIBLE_DEVICES. Their UUIDs are the same.
 *
 * `real`: a function of the NVML that gave the handle, so that no other copy of the library is
 * asked. Negative: this process does not see the device, the handle is a part of one (MIG), or the
 * driver is not initialised here.
 */
int spill_nvml_device(const struct spill_backend *backend, const void *real, uint64_t handle);

#endif

/*
 * The vendors there are: which of them work in this process, and how their real functions are found. The runtime enters each
 * vendor's functions (runtime.c).
 */
#ifndef SPILL_REGISTRY_H
#define SPILL_REGISTRY_H

#include "backend.h"

/* What the shim knows of the vendors' libraries. */
struct spill_vendor_symbols {
	spill_resolve_fn *resolve;
	/* The function `symbol` of the library that has the vendor's function `real`, never one of ours; NULL if it has none. */
	void *(*beside)(const void *real, const char *symbol);
};

/* Once, before the first question. `symbols` must live as long as the process. */
void spill_registry_use(const struct spill_vendor_symbols *symbols);

/* The functions of a domain, started at the next question; NULL: it has none. Before other threads ask. */
void spill_registry_use_backend(enum spill_domain domain, const struct spill_backend *backend);

/*
 * The vendor's functions, started at first use. NULL if the domain has none (CUDA_RUNTIME), or if they are missing.
 */
const struct spill_backend *spill_backend_for(enum spill_domain domain);

/* The same if it was started before: then the program works with that vendor's GPUs. */
const struct spill_backend *spill_backend_in_use(enum spill_domain domain);

/* As `beside` above; NULL before the start. */
void *spill_vendor_beside(const void *real, const char *symbol);

/* A forked child uses no vendor yet: by the driver's rules it cannot use its parent's. */
void spill_registry_fork_child(void);

#endif

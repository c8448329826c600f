/*
 * The real functions behind the table's rows.
 */
#ifndef SPILL_REAL_H
#define SPILL_REAL_H

#include <stdatomic.h>

#include "hooks.h"

/* CUDA_ERROR_NOT_INITIALIZED, cudaErrorInitializationError, hipErrorNotInitialized: the library is not there. */
#define SPILL_NOT_INITIALIZED 3
/* The same of any domain: NVML_ERROR_UNINITIALIZED is 1. */
#define SPILL_NOT_INITIALIZED_IN(domain) ((domain) == SPILL_NVML ? 1 : SPILL_NOT_INITIALIZED)

/*
 * The vendor's function for `row` as `caller` (a return address) would reach it without us, or NULL if its library
 * is not loaded. Driver rows have one real function in a process. Runtime and HIP rows are found in the scope of the
 * calling library, because two runtimes can be loaded at once and RTLD_LOCAL hides them from RTLD_NEXT (pitfall 6).
 */
void *spill_real(const struct spill_row *row, const void *caller);

/* Remembers that `caller` got `real` for `row` from dlsym: its calls through the stub go there. */
void spill_real_remember(const struct spill_row *row, const void *caller, void *real);

/* spill_resolve_fn for the engine's own use of the vendor's functions. */
void *spill_real_resolve(enum spill_domain domain, const char *symbol);

/*
 * The function `symbol` of the library that has that address, or of one that it depends on; NULL if there is none, or the address
 * is the main program's. Nothing is loaded.
 */
void *spill_real_beside(const void *address, const char *symbol);

/* As spill_real_resolve, asked once: `known`, NULL at first, keeps the answer, also that there is none. Any number of threads. */
static inline void *spill_real_once(_Atomic(void *) *known, enum spill_domain domain, const char *symbol)
{
	static const char nowhere;
	void *real = atomic_load_explicit(known, memory_order_acquire);
	if (!real) {
		real = spill_real_resolve(domain, symbol);
		real = real ? real : (void *)&nowhere;
		atomic_store_explicit(known, real, memory_order_release);
	}
	return real == &nowhere ? NULL : real;
}

#endif

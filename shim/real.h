/* Finds the real functions behind the table's rows. */
#ifndef SPILL_REAL_H
#define SPILL_REAL_H

#include <stdatomic.h>

#include "hooks.h"

/* The vendors' "not initialised" error, for a library that is not loaded. */
#define SPILL_NOT_INITIALIZED 3
/* The same for every domain; NVML_ERROR_UNINITIALIZED is 1. */
#define SPILL_NOT_INITIALIZED_IN(domain) ((domain) == SPILL_NVML ? 1 : SPILL_NOT_INITIALIZED)

/*
 * The function that `caller` (a return address) would reach without us. NULL: its library is not
 * loaded. A driver row has one real function in a process. Runtime and HIP rows are searched from
 * the calling library: two runtimes can be loaded at once, and RTLD_LOCAL hides them from RTLD_NEXT
 * (pitfall 6).
 */
void *spill_real(const struct spill_row *row, const void *caller);

/* Remembers that dlsym gave `real` to `caller`, so that its calls through the stub go there. */
void spill_real_remember(const struct spill_row *row, const void *caller, void *real);

/* A spill_resolve_fn, for the engine's own calls to the vendor. */
void *spill_real_resolve(enum spill_domain domain, const char *symbol);

/* `symbol` of the library at `address` or its dependencies. NULL: none, or the main program. */
void *spill_real_beside(const void *address, const char *symbol);

/* As spill_real_resolve, but asks once: `known` keeps the answer. For any thread. */
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

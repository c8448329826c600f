#include "registry.h"

#include <stdatomic.h>

static const struct spill_backend *backends[SPILL_DOMAINS];
enum state { UNKNOWN, WORKS, MISSING };
static _Atomic enum state states[SPILL_DOMAINS];
static const struct spill_vendor_symbols *_Atomic vendor;

void spill_registry_use(const struct spill_vendor_symbols *symbols)
{
	atomic_store(&vendor, symbols);
}

void spill_registry_use_backend(enum spill_domain domain, const struct spill_backend *backend)
{
	backends[domain] = backend;
	atomic_store(&states[domain], UNKNOWN);
}

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	const struct spill_backend *backend = backends[domain];
	enum state state = atomic_load_explicit(&states[domain], memory_order_acquire);
	if (backend && state == UNKNOWN) {
		/* Every thread that comes here finds the same; publish_once.h says why nobody waits. */
		const struct spill_vendor_symbols *symbols = atomic_load(&vendor);
		state = backend->start(symbols ? symbols->resolve : NULL) ? WORKS : MISSING;
		atomic_store_explicit(&states[domain], state, memory_order_release);
	}
	return state == WORKS ? backend : NULL;
}

const struct spill_backend *spill_backend_in_use(enum spill_domain domain)
{
	enum state state = atomic_load_explicit(&states[domain], memory_order_acquire);
	return state == WORKS ? backends[domain] : NULL;
}

void *spill_vendor_beside(const void *real, const char *symbol)
{
	const struct spill_vendor_symbols *symbols = atomic_load(&vendor);
	return symbols ? symbols->beside(real, symbol) : NULL;
}

void spill_registry_fork_child(void)
{
	for (int domain = 0; domain < SPILL_DOMAINS; domain++)
		atomic_store(&states[domain], UNKNOWN);
}

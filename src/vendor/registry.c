#include "registry.h"

#include <stdatomic.h>
#include <string.h>

#include "abi/nvml.h"

static const struct spill_backend *backends[SPILL_DOMAINS];
enum backend_state { UNKNOWN, WORKS, MISSING };
static _Atomic enum backend_state states[SPILL_DOMAINS];
static const struct spill_vendor_symbols *_Atomic vendor_symbols;

void spill_registry_use(const struct spill_vendor_symbols *symbols)
{
	atomic_store(&vendor_symbols, symbols);
}

void spill_registry_use_backend(enum spill_domain domain, const struct spill_backend *backend)
{
	backends[domain] = backend;
	atomic_store(&states[domain], UNKNOWN);
}

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	const struct spill_backend *backend = backends[domain];
	enum backend_state state = atomic_load_explicit(&states[domain], memory_order_acquire);
	if (backend && state == UNKNOWN) {
		/* Every thread finds the same: publish_once.h says why no thread waits. */
		const struct spill_vendor_symbols *symbols = atomic_load(&vendor_symbols);
		state = backend->start(symbols ? symbols->resolve : NULL) ? WORKS : MISSING;
		atomic_store_explicit(&states[domain], state, memory_order_release);
	}
	return state == WORKS ? backend : NULL;
}

const struct spill_backend *spill_backend_in_use(enum spill_domain domain)
{
	enum backend_state state = atomic_load_explicit(&states[domain], memory_order_acquire);
	return state == WORKS ? backends[domain] : NULL;
}

/* As spill_vendor_symbols.beside; NULL before the start. */
static void *beside(const void *real, const char *symbol)
{
	const struct spill_vendor_symbols *symbols = atomic_load(&vendor_symbols);
	return symbols ? symbols->beside(real, symbol) : NULL;
}

void spill_registry_fork_child(void)
{
	for (int domain = 0; domain < SPILL_DOMAINS; domain++)
		atomic_store(&states[domain], UNKNOWN);
}

/* -- NVML ------------------------------------------------------------------------------------- */

struct spill_nvml {
#define FUNCTION(needed, ret, symbol, params) ret(*symbol) params;
#include "backend_nvml.def"
};

/* libspill never starts NVML: the program has a handle, so it has started NVML. */
static bool read_nvml_uuid(const void *real, uint64_t handle, char *uuid, unsigned room)
{
	struct spill_nvml nvml;
#define FUNCTION(needed, ret, symbol, params) *(void **)&nvml.symbol = beside(real, #symbol);
#include "backend_nvml.def"
	return nvml.nvmlDeviceGetUUID &&
	       nvml.nvmlDeviceGetUUID((nvmlDevice_t)(uintptr_t)handle, uuid, room) == NVML_SUCCESS;
}

/* A part of a device (MIG) has a UUID of its own, so it never equals a whole device. */
int spill_nvml_device(const struct spill_backend *backend, const void *real, uint64_t handle)
{
	struct spill_log_device devices[SPILL_DEVICES];
	char uuid[NVML_DEVICE_UUID_V2_BUFFER_SIZE];
	if (!read_nvml_uuid(real, handle, uuid, sizeof(uuid)))
		return -1;
	unsigned count = backend->devices->list(devices, SPILL_DEVICES);
	for (unsigned i = 0; i < count; i++)
		if (devices[i].uuid[0] && strcmp(devices[i].uuid, uuid) == 0)
			return (int)i;
	return -1;
}

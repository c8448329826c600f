#include "trim.h"

#include "account.h"
#include "capture.h"
#include "clock.h"
#include "deferred.h"
#include "host_chunks.h"
#include "minmax.h"
#include "vendor_pool.h"
#include "shared_chunks.h"
#include "memory_limit.h"

/* The longest wait of a request for frees that it could use. */
#define WAIT_NS 50000000ull
#define POLL_NS 50000

/* Bytes that the driver and the limit could give now. */
static uint64_t device_room(const struct spill_backend *backend, int device)
{
	uint64_t free = 0, total = 0;
	uint64_t limit = spill_device_limit(backend, device), held = spill_account_device_held(device);
	uint64_t left = spill_minus(limit, held);
	backend->devices->memory(device, &free, &total);
	return spill_min(free, left);
}

bool spill_trim(const struct spill_backend *backend, int device, uint64_t bytes)
{
	if (spill_capture_any())
		return false;
	uint64_t given = spill_deferred_collect(backend, device, false).device;
	given += spill_vendor_pool_trim(backend, device, false);
	uint64_t needed = spill_minus(bytes, device_room(backend, device));
	/* Waits only if the pending frees are enough: otherwise the request spills in any case. */
	for (uint64_t end = spill_clock_ns() + WAIT_NS, freed; needed && spill_clock_ns() < end;
	     needed -= freed < needed ? freed : needed) {
		uint64_t pending = spill_deferred_pending(backend, device).device;
		if (!pending || pending < needed)
			break;
		spill_clock_sleep(POLL_NS);
		freed = spill_deferred_collect(backend, device, false).device;
		given += freed;
	}
	return given > 0;
}

/* First memory that needs no wait. Then a wait, because the alternative is an out of memory. */
bool spill_trim_host(const struct spill_backend *backend, int device, void *context, uint64_t bytes)
{
	uint64_t before = spill_account_host_held();
	if (spill_capture_any())
		return false;
	spill_deferred_drop(backend);
	spill_host_chunks_drop(backend);
	spill_vendor_pool_trim(backend, device, true);
	spill_shared_chunks_trim(backend, device, context);
	for (uint64_t end = spill_clock_ns() + WAIT_NS;
	     spill_clock_ns() < end && spill_account_host_held() + bytes > before;) {
		if (!spill_deferred_pending(backend, device).host)
			break;
		spill_clock_sleep(POLL_NS);
		spill_deferred_collect(backend, device, true);
		spill_deferred_drop(backend);
	}
	return spill_account_host_held() < before;
}

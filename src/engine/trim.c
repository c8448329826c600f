#include "trim.h"

#include "account.h"
#include "capture.h"
#include "clock.h"
#include "deferred.h"
#include "host_chunks.h"
#include "minmax.h"
#include "vendor_pool.h"
#include "shared_chunks.h"
#include "charge.h"

/* The longest that a request waits for frees that it could use. */
#define WAIT_NS 50000000ull
#define POLL_NS 50000

/* What the device could serve now, by the driver and by the limit. */
static uint64_t room(const struct spill_backend *backend, int device)
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
	uint64_t at = room(backend, device), needed = spill_minus(bytes, at);
	/* Waiting helps only if what waits is enough: what does not fit after it is spilled all the same. */
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

/* First what costs no time; then a wait for the rest, of which the alternative is an out of memory. */
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

#include "trim.h"

#include <stdatomic.h>

#include "account.h"
#include "capture.h"
#include "clock.h"
#include "deferred.h"
#include "device_memory.h"
#include "mover.h"
#include "host_chunks.h"
#include "engine_ordered.h"
#include "ordered_pool.h"
#include "minmax.h"
#include "quiesce.h"
#include "vendor_pool.h"
#include "shared_chunks.h"
#include "memory_limit.h"

/* The longest wait of a request for frees that it could use. */
#define WAIT_NS 50000000ull
#define POLL_NS 50000
/* The same for an urgent request, which would end the program otherwise. Others may submit between waits. */
#define URGENT_NS 1000000000ull
#define PAUSE_NS 1000000

/* Bytes that the driver and the limit could give now. */
static uint64_t device_room(const struct spill_backend *backend, int device)
{
	uint64_t free = 0, total = 0;
	uint64_t limit = spill_device_limit(backend, device), held = spill_account_device_held(device);
	uint64_t left = spill_minus(limit, held);
	spill_device_memory(backend, device, &free, &total);
	return spill_min(free, left);
}

/* Waits only if the pending frees are enough: otherwise the request spills in any case. */
static uint64_t wait_for_deferred(const struct spill_backend *backend, int device, uint64_t needed)
{
	uint64_t given = 0;
	for (uint64_t end = spill_clock_ns() + WAIT_NS; given < needed && spill_clock_ns() < end;) {
		uint64_t pending = spill_deferred_pending(backend, device).device;
		if (!pending || pending < needed - given)
			break;
		spill_clock_sleep(POLL_NS);
		given += spill_deferred_collect(backend, device, false).device;
	}
	return given;
}

/* No earlier wait for pools, unless the request is urgent. */
static _Atomic uint64_t no_wait_before_ns[SPILL_DEVICES];

/* True: the device is idle, and the vendor knows it. */
static bool wait_for_device(const struct spill_backend *backend, int device, bool urgent)
{
	uint64_t start = spill_clock_ns(), now = start;
	bool idle;
	do {
		spill_mover_lock();
		idle = spill_quiesce_synchronize(backend, device, now + WAIT_NS);
		spill_mover_unlock();
		if (!idle && urgent)
			spill_clock_sleep(PAUSE_NS);
		now = spill_clock_ns();
	} while (!idle && urgent && now - start < URGENT_NS);
	return idle;
}

/*
 * A pool cannot give back what was freed in stream order until the vendor knows that the free is
 * done. That takes a wait (backend.h, `synchronize`). It costs at most a tenth of the time, and a
 * hundredth while it brings nothing.
 */
static uint64_t trim_behind_work(const struct spill_backend *backend, int device, uint64_t needed,
                                 bool urgent)
{
	uint64_t start = spill_clock_ns();
	if (!backend->moves || device < 0 || device >= SPILL_DEVICES ||
	    (!urgent && start < atomic_load_explicit(&no_wait_before_ns[device], memory_order_relaxed)) ||
	    spill_vendor_pool_unused(backend, device) + spill_ordered_unused(backend, device) < needed)
		return 0;
	uint64_t freed = spill_ordered_number();
	uint64_t before = device_room(backend, device);
	/* A pool that keeps nothing gives its memory back in the wait itself. */
	if (wait_for_device(backend, device, urgent)) {
		spill_vendor_pool_trim(backend, device, false);
		spill_ordered_idle(backend, device, freed);
		spill_ordered_trim(backend, device,
		                   spill_minus(before + needed, device_room(backend, device)));
	}
	uint64_t given = spill_minus(device_room(backend, device), before), now = spill_clock_ns();
	atomic_store(&no_wait_before_ns[device], now + (now - start) * (given ? 10 : 100));
	return given;
}

bool spill_trim(const struct spill_backend *backend, int device, uint64_t bytes, bool urgent)
{
	if (spill_capture_any())
		return false;
	uint64_t given = spill_deferred_collect(backend, device, false).device;
	given += spill_vendor_pool_trim(backend, device, false);
	uint64_t needed = bytes ? spill_minus(bytes, device_room(backend, device)) : 0;
	uint64_t ended = spill_ordered_trim(backend, device, needed);
	given += ended;
	needed = spill_minus(needed, ended);
	uint64_t freed = needed ? wait_for_deferred(backend, device, needed) : 0;
	given += freed;
	needed = spill_minus(needed, freed);
	if (needed)
		given += trim_behind_work(backend, device, needed, urgent);
	return given > 0;
}

/* First memory that needs no wait. Then a wait, because the alternative is an out of memory. */
bool spill_trim_host(const struct spill_backend *backend, int device, void *context, uint64_t bytes)
{
	uint64_t before = spill_account_host_held();
	if (spill_capture_any())
		return false;
	spill_deferred_drop(backend, -1);
	spill_host_chunks_drop(backend);
	spill_vendor_pool_trim(backend, device, true);
	spill_ordered_trim_host(backend, device);
	spill_shared_chunks_trim(backend, device, context);
	for (uint64_t end = spill_clock_ns() + WAIT_NS;
	     spill_clock_ns() < end && spill_account_host_held() + bytes > before;) {
		if (!spill_deferred_pending(backend, device).host)
			break;
		spill_clock_sleep(POLL_NS);
		spill_deferred_collect(backend, device, true);
		spill_deferred_drop(backend, -1);
	}
	return spill_account_host_held() < before;
}

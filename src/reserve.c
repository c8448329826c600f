#include "reserve.h"

#include <stdatomic.h>

#include "capture.h"
#include "clock.h"
#include "demote.h"
#include "engine.h"
#include "place/chunked.h"

#define MS 1000000ull
#define LOOK_NS (SPILL_RESERVE_LOOK_MS * MS)
#define VAIN_NS (SPILL_RESERVE_VAIN_MS * MS)

static _Atomic uint64_t taken, look_ns, vain_ns; /* the next looks: by the clock, and at the earliest */

/* Is less of the reserve free than the `part`-th part? False where it is not known. */
static bool is_short(const struct spill_backend *backend, int device, unsigned part)
{
	uint64_t free = 0, total = 0;
	if (backend->memory(device, &free, &total) || !total)
		return false;
	return free < spill_policy_device_reserve(spill_runtime_policy(), device) / part;
}

void spill_reserve_taken(uint64_t bytes)
{
	atomic_fetch_add_explicit(&taken, bytes, memory_order_relaxed);
}

static void refill(const struct spill_backend *backend, int device, const char *api, const void *caller)
{
	struct spill_demotion demotion = {
	    .backend = backend,
	    .device = device,
	    .reason = "reserve",
	    .part_helps = true,
	    .api = api,
	    .caller = spill_engine_caller_of(caller),
	};
	if (!spill_demote(&demotion) || !demotion.freed)
		atomic_store(&vain_ns, spill_clock_ns() + VAIN_NS);
}

static bool may_refill(void)
{
	return spill_chunked_any() && !spill_runtime_observes() && !spill_capture_any() &&
	       spill_clock_ns() >= atomic_load_explicit(&vain_ns, memory_order_relaxed);
}

/* `sooner`: by so much before the clock's next look. */
static bool is_time(uint64_t sooner)
{
	uint64_t now = spill_clock_ns();
	if (now + sooner < atomic_load_explicit(&look_ns, memory_order_relaxed) &&
	    atomic_load_explicit(&taken, memory_order_relaxed) < SPILL_RESERVE_TAKEN)
		return false;
	atomic_store_explicit(&taken, 0, memory_order_relaxed);
	atomic_store_explicit(&look_ns, now + LOOK_NS, memory_order_relaxed);
	return true;
}

void spill_reserve_keep(const struct spill_backend *backend, int device, const char *api, const void *caller)
{
	if (may_refill() && is_time(0) && is_short(backend, device, 2))
		refill(backend, device, api, caller);
}

void spill_reserve_whole(const struct spill_backend *backend, int device, const char *api, const void *caller)
{
	if (may_refill() && is_time(LOOK_NS - MS) && is_short(backend, device, 1))
		refill(backend, device, api, caller);
}

bool spill_reserve_tick(void)
{
	const struct spill_backend *backend = spill_runtime_backend(SPILL_CUDA_DRIVER);
	void *context;
	int device;
	if (!spill_chunked_any())
		return false;
	if (backend && backend->current(&device, &context))
		spill_reserve_keep(backend, device, "", NULL);
	return true;
}

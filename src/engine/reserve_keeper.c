#include "reserve_keeper.h"

#include <stdatomic.h>

#include "capture.h"
#include "clock.h"
#include "demote.h"
#include "log.h"
#include "process.h"
#include "registry.h"
#include "gate.h"
#include "minmax.h"
#include "movable.h"
#include "note.h"
#include "chunked.h"
#include "text.h"
#include "trim.h"

#define MS 1000000ull
#define LOOK_NS (SPILL_RESERVE_LOOK_MS * MS)
#define VAIN_NS (SPILL_RESERVE_VAIN_MS * MS)
#define ROOMY_NS (10 * LOOK_NS) /* where more than an eighth of the device is free */

static struct keeper {
	_Atomic uint64_t budget;    /* may be asked for without another look, */
	_Atomic uint64_t budget_ns; /* until then */
	_Atomic uint64_t pending;   /* the driver was asked for, and has not answered */
	_Atomic uint64_t given;     /* has been given out ever */
	/* Refilling: what had been given out by the last look; the next ones, by the clock and at the earliest. */
	_Atomic uint64_t seen, look_ns, vain_ns;
	_Atomic uint64_t load_ns; /* the next load that is measured, at the earliest */
	_Atomic bool at_risk;     /* as was found out, and is believed until then */
	_Atomic uint64_t risk_ns;
	_Atomic uint64_t closed_ns; /* until then pools are thought to have nothing in pieces */
} keepers[SPILL_DEVICES];

static struct keeper *keeper_of(int device)
{
	return device >= 0 && device < SPILL_DEVICES ? &keepers[device] : NULL;
}

bool spill_reserve_any(void)
{
	return spill_chunked_any() || spill_reserve_has_begun();
}

/*
 * Asks the driver, and sets what may be given out until the next look. *kept: the reserve, as far as it is kept from requests.
 * False where the driver does not know.
 */
static bool look(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *kept)
{
	struct keeper *keeper = &keepers[device];
	uint64_t total = 0, pending = atomic_load(&keeper->pending);
	*free = 0;
	if (backend->devices->memory(device, free, &total) || !total)
		return false;
	uint64_t spare = spill_minus(*free, pending), look_ns = spare > total / 8 ? ROOMY_NS : LOOK_NS;
	*kept = spill_min(spill_reserve_size(device), total / SPILL_RESERVE_PART);
	atomic_store(&keeper->budget, spill_minus(spare, *kept + SPILL_RESERVE_BLOCK));
	atomic_store(&keeper->budget_ns, spill_clock_ns() + look_ns);
	return true;
}

/* Half of what can move may be pinned or in use at the moment it is needed. */
static bool find_risk(const struct spill_backend *backend, int device)
{
	uint64_t free, total, size = spill_reserve_size(device);
	if (!backend->loses_code || !size || spill_process_observes() ||
	    (spill_chunked_on_device(device) >= 2 * size && spill_movable_may_move(backend, device)))
		return false;
	return !backend->devices->memory(device, &free, &total) && total >= SPILL_RESERVE_DEVICE;
}

bool spill_reserve_is_at_risk(const struct spill_backend *backend, int device, uint64_t now_ns)
{
	struct keeper *keeper = keeper_of(device);
	if (!keeper)
		return false;
	if (now_ns >= atomic_load_explicit(&keeper->risk_ns, memory_order_relaxed)) {
		atomic_store_explicit(&keeper->at_risk, find_risk(backend, device), memory_order_relaxed);
		atomic_store_explicit(&keeper->risk_ns, now_ns + LOOK_NS, memory_order_relaxed);
	}
	return atomic_load_explicit(&keeper->at_risk, memory_order_relaxed);
}

/* Takes it of what the last look left. */
static bool take(struct keeper *keeper, uint64_t bytes)
{
	uint64_t left = atomic_load_explicit(&keeper->budget, memory_order_relaxed);
	do
		if (bytes > left)
			return false;
	while (!atomic_compare_exchange_weak(&keeper->budget, &left, left - bytes));
	return true;
}

static bool let(struct keeper *keeper, uint64_t bytes)
{
	atomic_fetch_add(&keeper->pending, bytes);
	return true;
}

bool spill_reserve_allows_at_once(int device, uint64_t bytes, uint64_t now_ns)
{
	struct keeper *keeper = &keepers[device];
	if (now_ns >= atomic_load_explicit(&keeper->budget_ns, memory_order_relaxed))
		return false;
	return take(keeper, bytes) && let(keeper, bytes);
}

void spill_reserve_answered(int device, uint64_t bytes)
{
	if (bytes)
		atomic_fetch_sub(&keepers[device].pending, bytes);
}

/* Bytes that the driver could give out now, without those that it is being asked for. False where that is not known. */
static bool find_free(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *kept)
{
	/* Free memory is told as 0 where no context of the device can be asked. */
	if (!look(backend, device, free, kept) || !*free)
		return false;
	*free = spill_minus(*free, atomic_load(&keepers[device].pending));
	return true;
}

/* What moves leaves: for `bytes` and all of the reserve, or nothing; for as much of the reserve as can be if they are 0. */
static bool demote(const struct spill_backend *backend, int device, uint64_t bytes, const char *api,
                   const void *caller)
{
	struct spill_demotion demotion = {
	    .backend = backend,
	    .device = device,
	    .bytes = bytes,
	    .keeps_reserve = bytes != 0,
	    .part_helps = bytes == 0,
	    .reason = "reserve",
	    .api = api,
	    .caller = spill_log_caller(caller),
	};
	return spill_chunked_any() && spill_demote(&demotion) && demotion.freed;
}

/* Half of the reserve is enough while something can fill it up behind the request (spill_reserve_keep). */
static uint64_t part_of(const struct spill_backend *backend, int device, uint64_t kept)
{
	bool moves =
	    backend->moves && spill_chunked_on_device(device) && spill_movable_may_move(backend, device);
	return moves ? kept / 2 : kept;
}

/*
 * The driver refuses what it has not got, and its own word is the truest. It gives back what its pools do not use before it
 * does: so that comes first here, too.
 */
static bool is_beyond(const struct spill_backend *backend, int device, uint64_t least, uint64_t *free,
                      uint64_t *kept)
{
	return least > *free &&
	       (!spill_trim(backend, device, 0) || !find_free(backend, device, free, kept) || least > *free);
}

static bool leaves_enough(const struct spill_backend *backend, int device, const struct spill_taking *taking,
                          const char *api, const void *caller)
{
	uint64_t free, kept;
	if (!find_free(backend, device, &free, &kept) ||
	    is_beyond(backend, device, taking->least, &free, &kept))
		return true;
	uint64_t part = part_of(backend, device, kept), bytes = spill_max(taking->bytes, SPILL_RESERVE_BLOCK);
	if (part <= free && bytes <= free - part)
		return true;
	return demote(backend, device, bytes, api, caller) &&
	       (!find_free(backend, device, &free, &kept) || (part <= free && bytes <= free - part));
}

bool spill_reserve_allows(const struct spill_backend *backend, int device, const struct spill_taking *taking,
                          const char *api, const void *caller)
{
	if (!leaves_enough(backend, device, taking, api, caller))
		return false;
	take(&keepers[device], taking->bytes);
	return let(&keepers[device], taking->bytes);
}

/* Is less of the reserve free than the `part`-th part? False where it is not known. */
static bool is_short(const struct spill_backend *backend, int device, unsigned part)
{
	uint64_t free, kept;
	return look(backend, device, &free, &kept) && free < spill_reserve_size(device) / part;
}

void spill_reserve_taken(int device, uint64_t bytes)
{
	struct keeper *keeper = keeper_of(device);
	if (keeper)
		atomic_fetch_add_explicit(&keeper->given, bytes, memory_order_relaxed);
}

/* It is kept from requests, or would be from the next one. */
static bool is_watched(int device)
{
	const struct keeper *keeper = keeper_of(device);
	return spill_reserve_is_kept(device) ||
	       (keeper && atomic_load_explicit(&keeper->at_risk, memory_order_relaxed));
}

/* First what nobody uses: that is all there is where nothing can move. */
static void refill(const struct spill_backend *backend, int device, const char *api, const void *caller)
{
	bool gained = is_watched(device) && spill_trim(backend, device, 0);
	if (!gained || is_short(backend, device, 1))
		gained |= demote(backend, device, 0, api, caller);
	if (!gained)
		atomic_store(&keepers[device].vain_ns, spill_clock_ns() + VAIN_NS);
}

bool spill_reserve_fell(const struct spill_backend *backend, int device)
{
	uint64_t free, kept;
	bool fell = look(backend, device, &free, &kept) && free < kept;
	if (fell)
		atomic_store(&keepers[device].closed_ns, spill_clock_ns() + SPILL_RESERVE_CLOSED_MS * MS);
	return fell;
}

bool spill_reserve_is_closed(int device)
{
	const struct keeper *keeper = keeper_of(device);
	uint64_t until = keeper ? atomic_load_explicit(&keeper->closed_ns, memory_order_relaxed) : 0;
	return until && spill_clock_ns() < until;
}

static bool may_refill(int device)
{
	return keeper_of(device) && (spill_chunked_any() || is_watched(device)) &&
	       !spill_process_observes() && !spill_capture_any();
}

/* `sooner`: by so much before the clock's next look. now: 0 if nobody has read the clock yet */
static bool is_time(int device, uint64_t now, uint64_t sooner)
{
	struct keeper *keeper = &keepers[device];
	now = now ? now : spill_clock_ns();
	if (now < atomic_load_explicit(&keeper->vain_ns, memory_order_relaxed))
		return false;
	uint64_t given = atomic_load_explicit(&keeper->given, memory_order_relaxed);
	if (now + sooner < atomic_load_explicit(&keeper->look_ns, memory_order_relaxed) &&
	    given - atomic_load_explicit(&keeper->seen, memory_order_relaxed) < SPILL_RESERVE_TAKEN)
		return false;
	atomic_store_explicit(&keeper->seen, given, memory_order_relaxed);
	atomic_store_explicit(&keeper->look_ns, now + LOOK_NS, memory_order_relaxed);
	return true;
}

void spill_reserve_keep(const struct spill_backend *backend, int device, uint64_t now_ns, const char *api,
                        const void *caller)
{
	if (may_refill(device) && is_time(device, now_ns, 0) && is_short(backend, device, 2))
		refill(backend, device, api, caller);
}

void spill_reserve_whole(const struct spill_backend *backend, int device, const char *api, const void *caller)
{
	if (may_refill(device) && is_time(device, 0, LOOK_NS - MS) && is_short(backend, device, 1))
		refill(backend, device, api, caller);
}

bool spill_reserve_maintain(void)
{
	const struct spill_backend *backend = spill_backend_for(SPILL_CUDA_DRIVER);
	void *context;
	int device;
	if (!spill_reserve_any())
		return false;
	if (backend && backend->devices->current(&device, &context))
		spill_reserve_keep(backend, device, 0, "", NULL);
	return true;
}

struct spill_code_load spill_reserve_load_begin(const struct spill_backend *backend, int device, bool refused)
{
	struct spill_code_load load = {0};
	struct keeper *keeper = keeper_of(device);
	if (!keeper || spill_capture_any() || (!refused && !spill_reserve_is_kept(device)))
		return load;
	uint64_t total, now = spill_clock_ns();
	if (!refused && now < atomic_load_explicit(&keeper->load_ns, memory_order_relaxed))
		return load;
	atomic_store_explicit(&keeper->load_ns, now + MS, memory_order_relaxed);
	load.given = atomic_load(&keeper->given);
	if (backend->devices->memory(device, &load.free, &total))
		load.free = 0;
	return load;
}

static void say(int device, uint64_t size, const char *api)
{
	char line[256];
	struct spill_text text = spill_text_begin(line, sizeof(line));
	spill_text_add(&text, "device.reserve of device ");
	spill_text_number(&text, (uint64_t)device);
	spill_text_add(&text, " grows to ");
	spill_text_size(&text, size);
	spill_text_add(&text, ": ");
	spill_text_add(&text, api);
	spill_text_add(&text, " needed more than was kept free");
	spill_note("reserve", line);
}

void spill_reserve_load_end(const struct spill_backend *backend, int device,
                            const struct spill_code_load *load, const char *api)
{
	struct keeper *keeper = keeper_of(device);
	uint64_t free = 0, total = 0, size = spill_reserve_size(device);
	if (!keeper || !size || !load->free || spill_capture_any() ||
	    backend->devices->memory(device, &free, &total) || load->given != atomic_load(&keeper->given))
		return;
	uint64_t most = spill_min(SPILL_RESERVE_MOST, total / SPILL_RESERVE_PART);
	uint64_t needs = spill_min(spill_minus(load->free, free), most);
	if (spill_reserve_grow(device, needs))
		say(device, needs, api);
}

void spill_reserve_keeper_reset(void)
{
	for (unsigned i = 0; i < SPILL_DEVICES; i++) {
		struct keeper *keeper = &keepers[i];
		keeper->budget = keeper->budget_ns = keeper->pending = keeper->given = 0;
		keeper->seen = keeper->look_ns = keeper->vain_ns = keeper->load_ns = 0;
		keeper->at_risk = false;
		keeper->risk_ns = keeper->closed_ns = 0;
	}
	spill_reserve_reset();
}

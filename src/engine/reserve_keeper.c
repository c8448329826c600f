#include "reserve_keeper.h"

#include <stdatomic.h>

#include "capture.h"
#include "clock.h"
#include "contexts.h"
#include "demote.h"
#include "device_memory.h"
#include "hazards.h"
#include "loaded_objects.h"
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
#include "vendor_pool.h"

#define MS 1000000ull
#define LOOK_NS (SPILL_RESERVE_LOOK_MS * MS)
#define VAIN_NS (SPILL_RESERVE_VAIN_MS * MS)
/*
 * A vain try before a load is repeated after so many times what it took, twice as late each time, and
 * after VAIN_NS at the latest. So tries take a tenth of the time at most. What can be done by now is
 * done before the time since the first vain try has doubled.
 */
#define VAIN_SHARE 9
#define ROOMY_NS (10 * LOOK_NS) /* if more than an eighth of the device is free */

static struct keeper {
	/* Bytes that may be given out without another look, and the time when that ends. */
	_Atomic uint64_t budget, budget_ns;
	_Atomic uint64_t pending; /* bytes of questions that the driver has not answered yet */
	_Atomic uint64_t given;   /* bytes given out ever */
	/* `given` at the last look; time of the next look; no look before, after a vain one. */
	_Atomic uint64_t given_at_look, next_look_ns, no_look_before_ns;
	/* Of spill_reserve_whole: the earliest time; when it may demote again, and the pause until then. */
	_Atomic uint64_t next_whole_ns, no_whole_before_ns, vain_whole_ns;
	_Atomic uint64_t next_load_ns;   /* the earliest time to measure a load */
	_Atomic uint64_t next_others_ns; /* the earliest time to look for NCCL and its like */
	_Atomic bool at_risk;            /* spill_reserve_is_at_risk, until at_risk_ns */
	_Atomic uint64_t at_risk_ns;
	_Atomic bool alone; /* the reserve has grown, because nothing can move */
} keepers[SPILL_DEVICES];

static struct keeper *keeper_of(int device)
{
	return device >= 0 && device < SPILL_DEVICES ? &keepers[device] : NULL;
}

bool spill_reserve_any(void)
{
	return spill_chunked_any() || spill_reserve_has_begun();
}

bool spill_reserve_look(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *kept)
{
	struct keeper *keeper = &keepers[device];
	uint64_t total = 0, pending = atomic_load(&keeper->pending);
	*free = 0;
	if (spill_device_memory(backend, device, free, &total) || !total)
		return false;
	uint64_t spare = spill_minus(*free, pending), look_ns = spare > total / 8 ? ROOMY_NS : LOOK_NS;
	*kept = spill_min(spill_reserve_size(device), total / SPILL_RESERVE_PART);
	atomic_store(&keeper->budget, spill_minus(spare, *kept + SPILL_RESERVE_BLOCK));
	atomic_store(&keeper->budget_ns, spill_clock_ns() + look_ns);
	return true;
}

/*
 * Demotion can fill the reserve up: twice the reserve can move. Half of that may be pinned or in use
 * when it is needed.
 */
static bool can_refill(const struct spill_backend *backend, int device)
{
	return backend->moves && spill_chunked_on_device(device) >= 2 * spill_reserve_size(device) &&
	       spill_movable_may_move(backend, device);
}

static void note_growth(int device, uint64_t size, const char *who, const char *why)
{
	char line[256];
	struct spill_text text = spill_text_begin(line, sizeof(line));
	spill_text_add(&text, "device.reserve of device ");
	spill_text_number(&text, (uint64_t)device);
	spill_text_add(&text, " grows to ");
	spill_text_size(&text, size);
	spill_text_add(&text, ": ");
	spill_text_add(&text, who);
	spill_text_add(&text, why);
	spill_note("reserve", line);
}

/* Once: nobody fills up what code takes from the reserve, so it must be enough for all of it. */
static void grow_alone(int device)
{
	uint64_t size =
	    spill_min(SPILL_RESERVE_ALONE_TIMES * spill_reserve_size(device), SPILL_RESERVE_ALONE);
	if (spill_movable_never(device) && !atomic_exchange(&keepers[device].alone, true) &&
	    spill_reserve_grow(device, size))
		note_growth(device, size, "nothing can move there", ", and so nothing makes room for code");
}

static bool find_risk(const struct spill_backend *backend, int device)
{
	uint64_t free, total;
	if (!backend->loses_code || !spill_reserve_size(device) || spill_process_observes() ||
	    can_refill(backend, device))
		return false;
	return !spill_device_memory(backend, device, &free, &total) && total >= SPILL_RESERVE_DEVICE;
}

bool spill_reserve_is_at_risk(const struct spill_backend *backend, int device, uint64_t now_ns)
{
	struct keeper *keeper = keeper_of(device);
	if (!keeper)
		return false;
	/* A thread that sees the new time sees the answer that goes with it. */
	if (now_ns >= atomic_load_explicit(&keeper->at_risk_ns, memory_order_acquire)) {
		bool risk = find_risk(backend, device);
		if (risk)
			grow_alone(device);
		atomic_store_explicit(&keeper->at_risk, risk, memory_order_relaxed);
		atomic_store_explicit(&keeper->at_risk_ns, now_ns + LOOK_NS, memory_order_release);
	}
	return atomic_load_explicit(&keeper->at_risk, memory_order_relaxed);
}

/* Takes the bytes from the budget of the last look. */
static bool take_from_budget(struct keeper *keeper, uint64_t bytes)
{
	uint64_t left = atomic_load_explicit(&keeper->budget, memory_order_relaxed);
	do
		if (bytes > left)
			return false;
	while (!atomic_compare_exchange_weak(&keeper->budget, &left, left - bytes));
	return true;
}

static bool add_pending(struct keeper *keeper, uint64_t bytes)
{
	atomic_fetch_add(&keeper->pending, bytes);
	return true;
}

bool spill_reserve_allows_at_once(int device, uint64_t bytes, uint64_t now_ns)
{
	struct keeper *keeper = &keepers[device];
	/* Acquire: the budget is that of this look, or of a later one. */
	if (now_ns >= atomic_load_explicit(&keeper->budget_ns, memory_order_acquire))
		return false;
	return take_from_budget(keeper, bytes) && add_pending(keeper, bytes);
}

void spill_reserve_answered(int device, uint64_t bytes)
{
	if (bytes)
		atomic_fetch_sub(&keepers[device].pending, bytes);
}

/* Bytes that the driver could give out now, without pending questions. False if unknown. */
static bool find_free(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *kept)
{
	/* The driver says 0 if no context of the device can be asked. */
	if (!spill_reserve_look(backend, device, free, kept) || !*free)
		return false;
	*free = spill_minus(*free, atomic_load(&keepers[device].pending));
	return true;
}

/*
 * Demotes chunks: for `bytes` and the whole reserve, or not at all. If `bytes` is 0: for as much of
 * the reserve as possible.
 */
static bool demote_for(const struct spill_backend *backend, int device, uint64_t bytes, const char *api,
                       const void *caller)
{
	struct spill_demotion demotion = {
	    .backend = backend,
	    .device = device,
	    .bytes = bytes,
	    .keeps_reserve = bytes != 0,
	    .part_helps = bytes == 0,
	    .reason = SPILL_REASON_RESERVE,
	    .api = api,
	    .caller = spill_log_caller(caller),
	};
	return spill_chunked_any() && spill_demote(&demotion) && demotion.freed;
}

/*
 * The part of the reserve that a request must leave: half of it while demotion can fill it up after
 * the request (spill_reserve_keep).
 */
static uint64_t part_to_leave(const struct spill_backend *backend, int device, uint64_t kept)
{
	return can_refill(backend, device) ? kept / 2 : kept;
}

/*
 * Does the driver itself have too little? It gives unused memory of pools back before it refuses.
 * So that is tried here first, too.
 */
static bool is_beyond_driver(const struct spill_backend *backend, int device, uint64_t least, uint64_t *free,
                             uint64_t *kept)
{
	return least > *free && (!spill_trim(backend, device, 0, false) ||
	                         !find_free(backend, device, free, kept) || least > *free);
}

static bool leaves_enough(const struct spill_backend *backend, int device, const struct spill_taking *taking,
                          const char *api, const void *caller)
{
	uint64_t free, kept;
	if (!find_free(backend, device, &free, &kept) ||
	    is_beyond_driver(backend, device, taking->least, &free, &kept))
		return true;
	uint64_t part = part_to_leave(backend, device, kept),
	         bytes = spill_max(taking->bytes, SPILL_RESERVE_BLOCK);
	if (bytes <= spill_minus(free, part))
		return true;
	return demote_for(backend, device, bytes, api, caller) &&
	       (!find_free(backend, device, &free, &kept) || bytes <= spill_minus(free, part));
}

bool spill_reserve_allows(const struct spill_backend *backend, int device, const struct spill_taking *taking,
                          const char *api, const void *caller)
{
	if (!leaves_enough(backend, device, taking, api, caller))
		return false;
	take_from_budget(&keepers[device], taking->bytes);
	return add_pending(&keepers[device], taking->bytes);
}

bool spill_reserve_is_short(const struct spill_backend *backend, int device, unsigned parts)
{
	uint64_t free, kept;
	return spill_reserve_look(backend, device, &free, &kept) && free < spill_reserve_size(device) / parts;
}

void spill_reserve_taken(int device, uint64_t bytes)
{
	struct keeper *keeper = keeper_of(device);
	if (keeper)
		atomic_fetch_add_explicit(&keeper->given, bytes, memory_order_relaxed);
}

/* Is the reserve kept from requests, or would it be from the next one? */
static bool is_watched(int device)
{
	const struct keeper *keeper = keeper_of(device);
	return spill_reserve_is_kept(device) ||
	       (keeper && atomic_load_explicit(&keeper->at_risk, memory_order_relaxed));
}

static bool is_paused(int device, uint64_t now)
{
	return now < atomic_load_explicit(&keepers[device].no_look_before_ns, memory_order_relaxed);
}

/* urgent: see spill_trim */
static bool give_back_unused(const struct spill_backend *backend, int device, bool urgent)
{
	return is_watched(device) && spill_trim(backend, device, spill_reserve_size(device), urgent);
}

/* First gives back unused memory: there is no other if nothing can move. False: in vain. */
static bool refill(const struct spill_backend *backend, int device, const char *api, const void *caller,
                   bool urgent)
{
	bool gained = give_back_unused(backend, device, urgent);
	if (!gained || spill_reserve_is_short(backend, device, 1))
		gained |= demote_for(backend, device, 0, api, caller);
	return gained;
}

static bool may_refill(int device)
{
	return keeper_of(device) && (spill_chunked_any() || is_watched(device)) &&
	       !spill_process_observes() && !spill_capture_any();
}

static bool is_time_to_look(int device, uint64_t now)
{
	struct keeper *keeper = &keepers[device];
	uint64_t given = atomic_load_explicit(&keeper->given, memory_order_relaxed);
	/* What is free beyond the reserve by the last look, of whatever call, is not taken at once. */
	uint64_t most =
	    spill_max(atomic_load_explicit(&keeper->budget, memory_order_relaxed) / SPILL_RESERVE_PART,
	              SPILL_RESERVE_TAKEN);
	if (now < atomic_load_explicit(&keeper->next_look_ns, memory_order_relaxed) &&
	    given - atomic_load_explicit(&keeper->given_at_look, memory_order_relaxed) < most)
		return false;
	atomic_store_explicit(&keeper->given_at_look, given, memory_order_relaxed);
	atomic_store_explicit(&keeper->next_look_ns, now + LOOK_NS, memory_order_relaxed);
	return true;
}

static int find_exporter(struct dl_phdr_info *info, size_t size, void *unused)
{
	return info->dlpi_name && spill_exporter_find(info->dlpi_name);
}

/* Does NCCL or its like work on several devices here? */
static void look_for_others(const struct spill_backend *backend, int device, uint64_t now)
{
	struct keeper *keeper = &keepers[device];
	int devices[SPILL_DEVICES];
	uint64_t free, total;
	if (now < atomic_load_explicit(&keeper->next_others_ns, memory_order_relaxed))
		return;
	atomic_store_explicit(&keeper->next_others_ns, now + VAIN_NS, memory_order_relaxed);
	if (spill_contexts_devices(backend, device, devices) < 2 ||
	    !spill_loaded_objects_visit(find_exporter, NULL) ||
	    spill_device_memory(backend, device, &free, &total))
		return;
	uint64_t size = spill_min(SPILL_RESERVE_TOGETHER, total / SPILL_RESERVE_PART);
	if (spill_reserve_grow(device, size))
		note_growth(device, size, "NCCL or its like",
		            " works on several devices of this process, whose kernels wait for each other");
	atomic_store_explicit(&keeper->next_others_ns, UINT64_MAX, memory_order_relaxed);
}

void spill_reserve_keep(const struct spill_backend *backend, int device, uint64_t now_ns, const char *api,
                        const void *caller)
{
	if (!may_refill(device))
		return;
	uint64_t now = now_ns ? now_ns : spill_clock_ns();
	if (is_paused(device, now) || !is_time_to_look(device, now))
		return;
	look_for_others(backend, device, now);
	/* The program goes on to free and to end work, so refilling may help again soon. */
	if (spill_reserve_is_short(backend, device, 2) && !refill(backend, device, api, caller, false))
		atomic_store(&keepers[device].no_look_before_ns, spill_clock_ns() + VAIN_NS);
}

/* `moves`: memory can move. If not, only the program makes room, and tries soon after are in vain, too. */
static void note_whole(struct keeper *keeper, bool gained, bool moves, uint64_t since_ns)
{
	uint64_t now = spill_clock_ns();
	uint64_t longer = spill_max(2 * atomic_load(&keeper->vain_whole_ns), VAIN_SHARE * (now - since_ns));
	uint64_t pause = gained ? 0 : spill_min(spill_max(longer, moves ? MS : VAIN_NS), VAIN_NS);
	atomic_store_explicit(&keeper->vain_whole_ns, pause, memory_order_relaxed);
	atomic_store_explicit(&keeper->no_whole_before_ns, now + pause, memory_order_relaxed);
}

void spill_reserve_whole(const struct spill_backend *backend, int device, const char *api, const void *caller)
{
	if (!may_refill(device))
		return;
	struct keeper *keeper = &keepers[device];
	uint64_t now = spill_clock_ns();
	/*
	 * Neither looks of spill_reserve_keep nor its pause are a reason to leave this one out. The looks
	 * are content with half. A pause may come from a moment in which no memory was movable yet: JAX
	 * takes 8 GiB, maps them 0.1 s later, and then NCCL loads its kernels.
	 */
	if (now < atomic_load_explicit(&keeper->next_whole_ns, memory_order_relaxed))
		return;
	/* In a pause of its own only the program can have made room, by frees into a pool. */
	bool moves = backend->moves != NULL;
	bool paused = now < atomic_load_explicit(&keeper->no_whole_before_ns, memory_order_relaxed) ||
	              (!moves && is_paused(device, now));
	if (paused && !spill_vendor_pool_unused(backend, device))
		return;
	atomic_store_explicit(&keeper->next_whole_ns, now + MS, memory_order_relaxed);
	if (!spill_reserve_is_short(backend, device, 1))
		note_whole(keeper, true, moves, now);
	else if (paused)
		give_back_unused(backend, device, false);
	else
		note_whole(keeper, refill(backend, device, api, caller, true), moves, now);
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
	if (!refused && now < atomic_load_explicit(&keeper->next_load_ns, memory_order_relaxed))
		return load;
	atomic_store_explicit(&keeper->next_load_ns, now + MS, memory_order_relaxed);
	load.given = atomic_load(&keeper->given);
	if (spill_device_memory(backend, device, &load.free, &total))
		load.free = 0;
	return load;
}

void spill_reserve_load_end(const struct spill_backend *backend, int device,
                            const struct spill_code_load *load, const char *api)
{
	struct keeper *keeper = keeper_of(device);
	uint64_t free = 0, total = 0, size = spill_reserve_size(device);
	if (!keeper || !size || !load->free || spill_capture_any() ||
	    spill_device_memory(backend, device, &free, &total) || load->given != atomic_load(&keeper->given))
		return;
	uint64_t most = spill_min(SPILL_RESERVE_MOST, total / SPILL_RESERVE_PART);
	uint64_t needs = spill_min(spill_minus(load->free, free), most);
	if (spill_reserve_grow(device, needs))
		note_growth(device, needs, api, " needed more than was kept free");
}

void spill_reserve_keeper_reset(void)
{
	for (unsigned i = 0; i < SPILL_DEVICES; i++) {
		struct keeper *keeper = &keepers[i];
		keeper->budget = keeper->budget_ns = keeper->pending = keeper->given = 0;
		keeper->given_at_look = keeper->next_look_ns = keeper->no_look_before_ns =
		    keeper->next_load_ns = keeper->next_whole_ns = keeper->no_whole_before_ns =
		        keeper->vain_whole_ns = 0;
		keeper->at_risk = keeper->alone = false;
		keeper->at_risk_ns = keeper->next_others_ns = 0;
	}
	spill_reserve_reset();
}

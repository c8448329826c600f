#include "movable.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "account.h"
#include "capture.h"
#include "clock.h"
#include "device_memory.h"
#include "usage_estimate.h"
#include "copier.h"
#include "note.h"
#include "process.h"
#include "loaded_objects.h"
#include "memory_limit.h"
#include "minmax.h"
#include "seqlock.h"

/* After this time the trial is repeated on a device that had no memory for it. */
#define RETRY_NS 100000000ull

enum { UNKNOWN, YES, NO };

static struct device_state {
	/* The last query of the driver. A thread that cannot read it queries anew. */
	spill_seqlock version;
	_Atomic uint64_t used, total, own, at_us;
	_Atomic uint64_t taken; /* bytes in all that the vendor's pools were asked for */
	_Atomic int movable;    /* result of the trial */
	_Atomic uint64_t retry_ns;
} devices[SPILL_DEVICES];

static _Atomic int interposes; /* UNKNOWN until asked */
static _Atomic(const char *) forbidden;
static _Atomic(const char *) noted;   /* the last reason noted */
static _Atomic(const char *) exports; /* by the environment; empty: none; NULL: not read yet */

/* -- reasons against movable memory ------------------------------------------------------------ */

static void note_reason(const char *why, const char *advice)
{
	char text[512];
	if (atomic_exchange(&noted, why) == why)
		return;
	snprintf(text, sizeof(text), "no memory is made movable or moved: %s%s", why, advice);
	spill_note("movable", text);
}

/* For reasons that may not apply to the program. */
static const char on_is_safe[] =
    " (set movable.enable = on if this does not apply to the program, or off to hide this note)";

static const char *export_reason(void)
{
	const char *exported = atomic_load(&exports);
	if (!exported) {
		exported = spill_hazard_scan_exports();
		atomic_store(&exports, exported ? exported : "");
	}
	return exported && exported[0] ? exported : NULL;
}

/* Work around the gate would lose data, so no option overrules this. */
static bool has_no_hazard(void)
{
	const char *why = spill_hazard_scan_mapped();
	if (why)
		note_reason(why, " (set movable.enable = off to hide this note)");
	return !why;
}

/* False, with a note, if a reason is against it that only the user can overrule. */
static bool is_unshared(void)
{
	const char *why = export_reason();
	if (why)
		note_reason(why, on_is_safe);
	return !why;
}

void spill_movable_forbid(const char *reason)
{
	const char *none = NULL;
	if (atomic_compare_exchange_strong(&forbidden, &none, reason) &&
	    spill_process_policy()->movable_enable != SPILL_SWITCH_OFF)
		note_reason(reason, " (set movable.enable = off to hide this note)");
}

static bool is_in_chain(const struct spill_policy *policy)
{
	bool found = spill_policy_demotes(policy);
	if (!found && policy->movable_enable == SPILL_SWITCH_ON)
		note_reason("oom.chain has no demote", "");
	return found;
}

/*
 * Loaded later, for spill_malloc alone (shim/torch.c), libspill does not see the program's work. So
 * it cannot know when a chunk is in use.
 */
static bool sees_work(void)
{
	int sees = atomic_load_explicit(&interposes, memory_order_relaxed);
	if (sees == UNKNOWN) {
		sees = spill_loaded_object_interposes(&interposes) ? YES : NO;
		atomic_store(&interposes, sees);
	}
	if (sees == NO)
		note_reason("libspill is not preloaded, so it does not see the program's work",
		            " (set movable.enable = off to hide this note)");
	return sees == YES;
}

static bool is_allowed(void)
{
	enum spill_switch enable = spill_process_policy()->movable_enable;
	if (enable == SPILL_SWITCH_OFF || atomic_load(&forbidden) || !is_in_chain(spill_process_policy()))
		return false;
	return sees_work() && has_no_hazard() && (enable == SPILL_SWITCH_ON || is_unshared());
}

/* -- abilities of the device ------------------------------------------------------------------- */

static void note_probe(const struct spill_backend *backend, int device)
{
	bool claims = backend->devices->capabilities(device) & SPILL_CAN_MOVE;
	/* A device that does not claim it: noted only if movable.enable is on. */
	if (claims)
		note_reason("a trial move of a chunk did not work on this device",
		            " (set movable.enable = off to hide this note)");
	else if (spill_process_policy()->movable_enable == SPILL_SWITCH_ON)
		note_reason("movable.enable is on, and this device or its driver cannot move memory", "");
}

/*
 * The trial needs a context of the device. If another device is current, return without caching a
 * result.
 */
static bool is_current(const struct spill_backend *backend, int device)
{
	int current;
	void *context;
	return backend->devices->current(&current, &context) && current == device;
}

/* Tried once, or by two threads at the same time. */
static bool can_move(const struct spill_backend *backend, int device)
{
	struct device_state *state = &devices[device];
	int movable = atomic_load_explicit(&state->movable, memory_order_acquire);
	if (movable != UNKNOWN)
		return movable == YES;
	if (!spill_policy_gains_by_moving(spill_process_policy(), backend->devices->capabilities(device))) {
		atomic_store_explicit(&state->movable, NO, memory_order_release);
		if (spill_process_policy()->movable_enable == SPILL_SWITCH_ON)
			note_reason("the device's memory is the host's, so moves gain nothing",
			            " (set device.memory = discrete if that is wrong)");
		return false;
	}
	uint64_t now = spill_clock_ns();
	if (now < atomic_load(&state->retry_ns) || spill_capture_any() || !is_current(backend, device))
		return false;
	switch (spill_probe(backend, device)) {
	case SPILL_PROBE_WORKS:
		atomic_store_explicit(&state->movable, YES, memory_order_release);
		return true;
	case SPILL_PROBE_FAILS:
		atomic_store_explicit(&state->movable, NO, memory_order_release);
		note_probe(backend, device);
		return false;
	case SPILL_PROBE_LATER:
		break;
	}
	atomic_store(&state->retry_ns, now + RETRY_NS);
	return false;
}

/* Streams for moves are made while there is memory for them. */
static bool is_prepared(const struct spill_backend *backend, int device)
{
	int current;
	void *context;
	return backend->devices->current(&current, &context) && current == device &&
	       spill_copier_prepare(backend, device, context);
}

/* -- how full the device is -------------------------------------------------------------------- */

static struct spill_usage_estimate last_look(struct device_state *state)
{
	uint32_t version = spill_seq_read_begin(&state->version);
	struct spill_usage_estimate look = {
	    .used = spill_seq_get(state->used),
	    .total = spill_seq_get(state->total),
	    .own = spill_seq_get(state->own),
	    .at_us = spill_seq_get(state->at_us),
	};
	look.seen = spill_seq_read_end(&state->version, version);
	return look;
}

/* One thread at a time writes. Another thread's query at the same time is as good. */
static void keep_look(struct device_state *state, const struct spill_usage_estimate *look)
{
	if (!spill_seq_write_begin(&state->version))
		return;
	spill_seq_set(state->used, look->used);
	spill_seq_set(state->total, look->total);
	spill_seq_set(state->own, look->own);
	spill_seq_set(state->at_us, look->at_us);
	spill_seq_write_end(&state->version);
}

/*
 * True: more than movable.above of the device is in use by any process, with the request. `own`:
 * held by this process without the request.
 */
static bool is_device_filled(const struct spill_backend *backend, int device, uint64_t own, uint64_t bytes)
{
	uint32_t share = (uint32_t)spill_process_policy()->movable_above.value;
	uint64_t free, now_us = spill_clock_ns() / 1000;
	struct spill_usage_estimate look = last_look(&devices[device]);
	enum spill_usage_answer answer = spill_usage_estimate(&look, share, own, bytes, now_us);
	if (answer != SPILL_USAGE_STALE)
		return answer == SPILL_USAGE_ABOVE;
	if (spill_device_memory(backend, device, &free, &look.total))
		return false;
	look.seen = true;
	look.used = look.total > free ? look.total - free : 0;
	look.own = own;
	look.at_us = now_us;
	keep_look(&devices[device], &look);
	return spill_usage_estimate(&look, share, own, bytes, now_us) == SPILL_USAGE_ABOVE;
}

/*
 * True: with the request this process holds more than that share of device.limit. Asks no driver.
 */
static bool is_limit_filled(const struct spill_backend *backend, int device, uint64_t held)
{
	uint64_t limit = spill_device_limit(backend, device);
	return limit != SPILL_UNLIMITED &&
	       held > spill_amount_resolve(spill_process_policy()->movable_above, limit, 0);
}

static bool is_filled(const struct spill_backend *backend, int device, uint64_t bytes)
{
	uint64_t held = spill_account_device_held(device);
	uint64_t own =
	    spill_minus(held, bytes) + atomic_load_explicit(&devices[device].taken, memory_order_relaxed);
	return is_limit_filled(backend, device, held) || is_device_filled(backend, device, own, bytes);
}

static bool is_known(int device)
{
	return device >= 0 && device < SPILL_DEVICES;
}

void spill_movable_pool_served(int device, uint64_t bytes)
{
	if (is_known(device))
		atomic_fetch_add_explicit(&devices[device].taken, bytes, memory_order_relaxed);
}

/* -- the questions ----------------------------------------------------------------------------- */

static bool is_wanted(const struct spill_backend *backend, int device, uint64_t bytes,
                      enum spill_switch chunks)
{
	const struct spill_policy *policy = spill_process_policy();
	if (chunks == SPILL_SWITCH_OFF || policy->movable_enable == SPILL_SWITCH_OFF ||
	    bytes < policy->movable_min.value || atomic_load_explicit(&forbidden, memory_order_relaxed) ||
	    !is_known(device) || atomic_load_explicit(&devices[device].movable, memory_order_relaxed) == NO)
		return false;
	if (chunks == SPILL_SWITCH_AUTO && policy->movable_enable == SPILL_SWITCH_AUTO &&
	    !is_filled(backend, device, bytes))
		return false;
	return is_allowed() && can_move(backend, device) && is_prepared(backend, device);
}

/*
 * Notes why a rule with `place = movable` has no effect, if the reason is permanent. Such a rule
 * insists as movable.enable = on does.
 */
static void note_rule(int device)
{
	const struct spill_policy *policy = spill_process_policy();
	if (policy->movable_enable == SPILL_SWITCH_OFF)
		note_reason("a rule has place = movable, and movable.enable is off", "");
	else if (!spill_policy_demotes(policy))
		note_reason("a rule has place = movable, and oom.chain has no demote", "");
	else if (is_known(device) && atomic_load(&devices[device].movable) == NO)
		note_reason("a rule has place = movable, and this device or its driver cannot move memory",
		            "");
}

bool spill_movable_wanted(const struct spill_backend *backend, int device, uint64_t bytes,
                          enum spill_switch chunks)
{
	bool wanted = is_wanted(backend, device, bytes, chunks);
	if (!wanted && chunks == SPILL_SWITCH_ON)
		note_rule(device);
	return wanted;
}

bool spill_movable_may_move(const struct spill_backend *backend, int device)
{
	return is_known(device) && is_allowed() && can_move(backend, device);
}

bool spill_movable_never(int device)
{
	const struct spill_policy *policy = spill_process_policy();
	return policy->movable_enable == SPILL_SWITCH_OFF || !spill_policy_demotes(policy) ||
	       atomic_load_explicit(&forbidden, memory_order_relaxed) || !is_known(device) ||
	       atomic_load_explicit(&devices[device].movable, memory_order_relaxed) == NO;
}

void spill_movable_reset(void)
{
	memset(devices, 0, sizeof(devices));
	atomic_store(&forbidden, NULL);
	atomic_store(&exports, NULL);
	atomic_store(&noted, NULL);
	atomic_store(&interposes, UNKNOWN);
	spill_hazard_scan_reset();
}

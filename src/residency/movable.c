#include "movable.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "account.h"
#include "hazard_scan.h"
#include "capture.h"
#include "clock.h"
#include "usage_estimate.h"
#include "move.h"
#include "note.h"
#include "probe.h"
#include "process.h"
#include "charge.h"
#include "seqlock.h"

/* A device that had no memory for the probe is asked again after this. */
#define RETRY_NS 100000000ull

enum { UNKNOWN, YES, NO };

static struct device {
	/* The last look. Who cannot read it has seen nothing, and looks anew. */
	spill_seqlock version;
	_Atomic uint64_t used, total, own, at_us;
	_Atomic int movable; /* by the probe */
	_Atomic uint64_t retry_ns;
} devices[SPILL_DEVICES];

static _Atomic(const char *) forbidden;
static _Atomic(const char *) told;    /* what was noted last */
static _Atomic(const char *) exports; /* what the environment says; empty: nothing; NULL: not looked yet */
static _Atomic int alone;             /* one device is visible */

/* -- what stands against it -------------------------------------------------------------------- */

static void tell(const char *why, const char *what_to_do)
{
	char text[512];
	if (atomic_exchange(&told, why) == why)
		return;
	snprintf(text, sizeof(text), "nothing is made movable, and nothing moves: %s%s", why, what_to_do);
	spill_note("movable", text);
}

/* In its own words for each reason: the user may know better. */
static const char on_is_safe[] =
    " (movable.enable = on if that does not concern the memory of this program; off to silence this)";

static bool is_alone(const struct spill_backend *backend)
{
	struct spill_log_device list[2];
	if (atomic_load(&alone) == UNKNOWN)
		atomic_store(&alone, backend->devices->list(list, 2) <= 1 ? YES : NO);
	return atomic_load(&alone) == YES;
}

static const char *why_exported(void)
{
	const char *what = atomic_load(&exports);
	if (!what) {
		what = spill_hazard_scan_exports();
		atomic_store(&exports, what ? what : "");
	}
	return what && what[0] ? what : NULL;
}

/* What works around the gate would lose data: nobody can overrule that. */
static bool is_safe(void)
{
	const char *why = spill_hazard_scan_mapped();
	if (why)
		tell(why, " (movable.enable = off to silence this)");
	return !why;
}

/* False, and noted, if something is against it that only the user can overrule. */
static bool is_likely(const struct spill_backend *backend)
{
	const char *why = why_exported();
	if (!why && !is_alone(backend))
		why = "more than one device is visible, and they may use each other's memory";
	if (why)
		tell(why, on_is_safe);
	return !why;
}

void spill_movable_forbid(const char *reason)
{
	const char *none = NULL;
	if (atomic_compare_exchange_strong(&forbidden, &none, reason) &&
	    spill_process_policy()->movable_enable != SPILL_SWITCH_OFF)
		tell(reason, " (movable.enable = off to silence this)");
}

static bool is_in_chain(const struct spill_policy *policy)
{
	bool found = spill_policy_demotes(policy);
	if (!found && policy->movable_enable == SPILL_SWITCH_ON)
		tell("oom.chain has no demote", "");
	return found;
}

static bool is_allowed(const struct spill_backend *backend)
{
	enum spill_switch enable = spill_process_policy()->movable_enable;
	if (enable == SPILL_SWITCH_OFF || atomic_load(&forbidden) || !is_in_chain(spill_process_policy()))
		return false;
	return is_safe() && (enable == SPILL_SWITCH_ON || is_likely(backend));
}

/* -- what the device can do -------------------------------------------------------------------- */

static void tell_of_probe(const struct spill_backend *backend, int device)
{
	bool claims = backend->devices->capabilities(device) & SPILL_CAN_MOVE;
	/* A device of which nobody said that it can: only who insists is told. */
	if (claims)
		tell("a trial move of a chunk did not work on this device",
		     "; movable.enable = off to silence this");
	else if (spill_process_policy()->movable_enable == SPILL_SWITCH_ON)
		tell("movable.enable is on, and this device or its driver cannot move memory", "");
}

/* A trial needs a context of the device. Who asks from another one's learns nothing, and keeps nobody from trying. */
static bool is_current(const struct spill_backend *backend, int device)
{
	int current;
	void *context;
	return backend->devices->current(&current, &context) && current == device;
}

/* Found out once; two threads at a time may both find out. */
static bool can_move(const struct spill_backend *backend, int device)
{
	struct device *mine = &devices[device];
	int movable = atomic_load_explicit(&mine->movable, memory_order_acquire);
	if (movable != UNKNOWN)
		return movable == YES;
	if (!spill_policy_gains_by_moving(spill_process_policy(), backend->devices->capabilities(device))) {
		atomic_store_explicit(&mine->movable, NO, memory_order_release);
		if (spill_process_policy()->movable_enable == SPILL_SWITCH_ON)
			tell("the device's memory is the host's, and nothing is gained by moving",
			     " (device.memory = discrete if it is not)");
		return false;
	}
	uint64_t now = spill_clock_ns();
	if (now < atomic_load(&mine->retry_ns) || spill_capture_any() || !is_current(backend, device))
		return false;
	switch (spill_probe(backend, device)) {
	case SPILL_PROBE_WORKS:
		atomic_store_explicit(&mine->movable, YES, memory_order_release);
		return true;
	case SPILL_PROBE_FAILS:
		atomic_store_explicit(&mine->movable, NO, memory_order_release);
		tell_of_probe(backend, device);
		return false;
	case SPILL_PROBE_LATER:
		break;
	}
	atomic_store(&mine->retry_ns, now + RETRY_NS);
	return false;
}

/* What a move needs is made while there is memory for it. */
static bool is_prepared(const struct spill_backend *backend, int device)
{
	int current;
	void *context;
	return backend->devices->current(&current, &context) && current == device &&
	       spill_move_prepare(backend, device, context);
}

/* -- how full the device is -------------------------------------------------------------------- */

static struct spill_usage_estimate last_look(struct device *mine)
{
	uint32_t version = spill_seq_read_begin(&mine->version);
	struct spill_usage_estimate look = {
	    .used = spill_seq_get(mine->used),
	    .total = spill_seq_get(mine->total),
	    .own = spill_seq_get(mine->own),
	    .at_us = spill_seq_get(mine->at_us),
	};
	look.seen = spill_seq_read_end(&mine->version, version);
	return look;
}

/* One thread at a time; what another has seen at the same moment is as good. */
static void keep_look(struct device *mine, const struct spill_usage_estimate *look)
{
	if (!spill_seq_write_begin(&mine->version))
		return;
	spill_seq_set(mine->used, look->used);
	spill_seq_set(mine->total, look->total);
	spill_seq_set(mine->own, look->own);
	spill_seq_set(mine->at_us, look->at_us);
	spill_seq_write_end(&mine->version);
}

/* Above movable.above of the device, in use by anyone, with the request. `own`: without it. */
static bool is_device_filled(const struct spill_backend *backend, int device, uint64_t own, uint64_t bytes)
{
	uint32_t share = (uint32_t)spill_process_policy()->movable_above.value;
	uint64_t free, now_us = spill_clock_ns() / 1000;
	struct spill_usage_estimate look = last_look(&devices[device]);
	enum spill_usage_answer answer = spill_usage_estimate(&look, share, own, bytes, now_us);
	if (answer != SPILL_USAGE_STALE)
		return answer == SPILL_USAGE_ABOVE;
	if (backend->devices->memory(device, &free, &look.total))
		return false;
	look.seen = true;
	look.used = look.total > free ? look.total - free : 0;
	look.own = own;
	look.at_us = now_us;
	keep_look(&devices[device], &look);
	return spill_usage_estimate(&look, share, own, bytes, now_us) == SPILL_USAGE_ABOVE;
}

/* Above that share of what this process may have, with the request: no question for the driver. */
static bool is_limit_filled(const struct spill_backend *backend, int device, uint64_t held)
{
	uint64_t limit = spill_device_limit(backend, device);
	return limit != SPILL_UNLIMITED &&
	       held > spill_amount_resolve(spill_process_policy()->movable_above, limit, 0);
}

static bool is_filled(const struct spill_backend *backend, int device, uint64_t bytes)
{
	uint64_t held = spill_account_device_held(device);
	return is_limit_filled(backend, device, held) ||
	       is_device_filled(backend, device, held > bytes ? held - bytes : 0, bytes);
}

/* -- the questions ----------------------------------------------------------------------------- */

static bool is_known(int device)
{
	return device >= 0 && device < SPILL_DEVICES;
}

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
	return is_allowed(backend) && can_move(backend, device) && is_prepared(backend, device);
}

/* A rule that says `place = movable` insists as much as movable.enable = on does: what is against it for good is told. */
static void tell_of_rule(int device)
{
	const struct spill_policy *policy = spill_process_policy();
	if (policy->movable_enable == SPILL_SWITCH_OFF)
		tell("a rule has place = movable, and movable.enable is off", "");
	else if (!spill_policy_demotes(policy))
		tell("a rule has place = movable, and oom.chain has no demote", "");
	else if (is_known(device) && atomic_load(&devices[device].movable) == NO)
		tell("a rule has place = movable, and this device or its driver cannot move memory", "");
}

bool spill_movable_wanted(const struct spill_backend *backend, int device, uint64_t bytes,
                          enum spill_switch chunks)
{
	bool wanted = is_wanted(backend, device, bytes, chunks);
	if (!wanted && chunks == SPILL_SWITCH_ON)
		tell_of_rule(device);
	return wanted;
}

bool spill_movable_may_move(const struct spill_backend *backend, int device)
{
	return is_known(device) && is_allowed(backend) && can_move(backend, device);
}

void spill_movable_reset(void)
{
	memset(devices, 0, sizeof(devices));
	atomic_store(&forbidden, NULL);
	atomic_store(&alone, UNKNOWN);
	atomic_store(&exports, NULL);
	atomic_store(&told, NULL);
	spill_hazard_scan_reset();
}

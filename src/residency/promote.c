#include "promote.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "back.h"
#include "victim_list.h"
#include "capture.h"
#include "clock.h"
#include "demote.h"
#include "process.h"
#include "gate.h"
#include "quiesce.h"
#include "movable.h"
#include "chunked.h"

#define MS 1000000ull

/* A device that is busy is looked at again; after so many looks in vain it is waited for, as long as a demotion would. */
#define GATE_NS (MS / 5)
#define BUSY_NS (2 * MS)
#define BUSY_LOOKS 250
#define VAIN_MOST_NS (10000 * MS)
#define QUIET_NS (SPILL_PROMOTE_QUIET_MS * MS)
#define QUIET_MOST_NS (2000 * MS)
#define LOOK_NS (SPILL_PROMOTE_LOOK_MS * MS)

static _Atomic bool pending;           /* something may come back */
static _Atomic uint64_t not_before_ns; /* the next look */
/* The mover's. */
static _Atomic uint64_t quiet_ns = QUIET_NS; /* read by any thread */
static uint64_t promoted_ns, busy_ns = BUSY_NS, vain_ns = LOOK_NS;
static unsigned busy_looks;

void spill_promote_later(void)
{
	if (!atomic_load_explicit(&pending, memory_order_relaxed))
		return;
	/* Sooner than the next look by the clock, but not before the quiet time is over. */
	uint64_t soon = spill_clock_ns() + atomic_load(&quiet_ns), then = atomic_load(&not_before_ns);
	while (then > soon && !atomic_compare_exchange_weak(&not_before_ns, &then, soon))
		;
}

void spill_promote_wanted(void)
{
	atomic_store(&not_before_ns, spill_clock_ns() + LOOK_NS);
	atomic_store(&pending, true);
	spill_gate_want_maintenance();
}

/* What came back just now and has to leave again came too soon. */
void spill_promote_hold(void)
{
	uint64_t now = spill_clock_ns();
	bool too_soon = promoted_ns && now - promoted_ns < 4 * quiet_ns;
	if (too_soon)
		quiet_ns = 2 * quiet_ns < QUIET_MOST_NS ? 2 * quiet_ns : QUIET_MOST_NS;
	else if (promoted_ns)
		quiet_ns = QUIET_NS;
	promoted_ns = 0;
	atomic_store(&not_before_ns, now + quiet_ns);
	atomic_store(&pending, true);
	spill_gate_want_maintenance();
}

/*
 * A program that keeps the device busy is not stopped for this: it is looked whether the device happens to be idle, and only
 * after many such looks in vain is it waited for, more and more rarely.
 */
static bool may_begin(const struct spill_placement *hottest)
{
	bool idle = spill_quiesce_look(hottest->backend, hottest->device, spill_clock_ns() + GATE_NS, 0);
	busy_looks = idle ? 0 : busy_looks + 1;
	return idle || busy_looks > BUSY_LOOKS;
}

/* When to look again: soon after a success, later and later after what was in vain. pre: the mover is held */
static uint64_t after(uint64_t moved, bool begun)
{
	uint64_t now = spill_clock_ns(), then = now + (busy_ns < LOOK_NS ? busy_ns : LOOK_NS);
	if (moved) {
		promoted_ns = now;
		busy_ns = BUSY_NS;
		vain_ns = LOOK_NS;
		busy_looks = 0;
		return now + MS;
	}
	if (!begun)
		return then;
	if (busy_looks > BUSY_LOOKS)
		busy_ns = 2 * busy_ns < VAIN_MOST_NS ? 2 * busy_ns : VAIN_MOST_NS;
	busy_looks = 0;
	then = now + vain_ns;
	vain_ns = 2 * vain_ns < VAIN_MOST_NS ? 2 * vain_ns : VAIN_MOST_NS;
	return then;
}

/* The hottest that came when nothing could move, so that it is on host while older ones are on the device; or NULL. */
static struct spill_chunked *find_owed(const struct spill_victim *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct spill_chunked *of = list[i].data;
		if (of->owed)
			return of;
	}
	return NULL;
}

/* Older ones give way to it, a slice at a time. pre: the mover is held, the device happens to be idle */
static void exchange(struct spill_chunked *owed)
{
	uint64_t away = spill_chunked_away(owed);
	struct spill_demotion demotion = {
	    .backend = owed->base.backend,
	    .device = owed->base.device,
	    .bytes = away < SPILL_BACK_SLICE ? away : SPILL_BACK_SLICE,
	    .reason = SPILL_REASON_EXCHANGE,
	    .part_helps = true,
	    .api = "",
	    .caller = "",
	    .before = owed->seq,
	};
	spill_demote_held(&demotion, true);
	owed->owed = !demotion.vain;
}

/* There is something to do, and now is not the wrong time for it. pre: the mover is held. Returns the bytes that came back. */
static uint64_t bring_back(const struct spill_victim *list, unsigned count, struct spill_chunked *owed)
{
	if (owed)
		exchange(owed);
	return spill_back_bring(list, count);
}

/* pre: the mover is held, something of the device is on host. Returns when to look again. */
static uint64_t promote_on(int device)
{
	unsigned count;
	struct spill_victim *list = spill_victim_list(device, true, 0, &count);
	uint64_t then = spill_clock_ns() + LOOK_NS;
	if (!count) {
		free(list);
		return then;
	}
	const struct spill_placement *hottest = &((struct spill_chunked *)list[0].data)->base;
	struct spill_chunked *owed = find_owed(list, count);
	/* For what is full the driver is asked now and then: others may have given something back. */
	if (owed || spill_back_room(hottest->backend, device) >= spill_back_smallest(list, count)) {
		bool begun = may_begin(hottest) && spill_movable_may_move(hottest->backend, device);
		then = after(begun ? bring_back(list, count, owed) : 0, begun);
	}
	free(list);
	return then;
}

/* The same for all devices. */
static uint64_t promote(void)
{
	bool has[SPILL_DEVICES] = {0}, any = false;
	uint64_t then = UINT64_MAX;
	atomic_store(&pending, false); /* first, so that what comes meanwhile is not forgotten */
	for (struct spill_chunked *one = spill_chunked_next(NULL); one; one = spill_chunked_next(one))
		if (spill_chunked_away(one) && !one->pinned && one->base.device < SPILL_DEVICES)
			any = has[one->base.device] = true;
	if (any)
		atomic_store(&pending, true);
	for (int device = 0; device < SPILL_DEVICES; device++) {
		uint64_t its = has[device] ? promote_on(device) : then;
		then = its < then ? its : then;
	}
	return any ? then : spill_clock_ns() + LOOK_NS;
}

/* Costs a look at the clock while it is not yet time. */
static void tick(void)
{
	if (spill_clock_ns() < atomic_load_explicit(&not_before_ns, memory_order_relaxed) ||
	    spill_capture_any() || spill_process_observes() || spill_chunked_is_held() ||
	    !spill_mover_trylock())
		return;
	if (spill_clock_ns() >= atomic_load(&not_before_ns))
		atomic_store(&not_before_ns, promote());
	spill_mover_unlock();
}

bool spill_promote_maintain(void)
{
	if (atomic_load_explicit(&pending, memory_order_relaxed))
		tick();
	return atomic_load_explicit(&pending, memory_order_relaxed);
}

void spill_promote_reset(void)
{
	atomic_store(&pending, false);
	atomic_store(&not_before_ns, 0);
	quiet_ns = QUIET_NS;
	busy_ns = BUSY_NS;
	vain_ns = LOOK_NS;
	busy_looks = 0;
	promoted_ns = 0;
}

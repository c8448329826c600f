#include "promote.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "account.h"
#include "capture.h"
#include "clock.h"
#include "demote.h"
#include "device_memory.h"
#include "process.h"
#include "host_chunks.h"
#include "minmax.h"
#include "move_batch.h"
#include "reserve.h"
#include "gate.h"
#include "quiesce.h"
#include "movable.h"
#include "chunked.h"

#define MS 1000000ull

/*
 * A busy device is looked at again. After this many looks in vain, it is waited for, as long as in
 * a demotion.
 */
#define GATE_NS (MS / 5)
#define BUSY_NS (2 * MS)
#define BUSY_LOOKS 250
#define VAIN_MOST_NS (10000 * MS)
#define QUIET_NS (SPILL_PROMOTE_QUIET_MS * MS)
#define QUIET_MOST_NS (2000 * MS)
#define LOOK_NS (SPILL_PROMOTE_LOOK_MS * MS)

static _Atomic bool pending;          /* chunks may come back */
static _Atomic uint64_t next_look_ns; /* time of the next look */
/* The mover's lock guards these. */
static _Atomic uint64_t quiet_ns = QUIET_NS; /* any thread reads it */
static uint64_t promoted_ns, busy_ns = BUSY_NS, vain_ns = LOOK_NS;
static unsigned busy_looks;

void spill_promote_later(void)
{
	if (!atomic_load_explicit(&pending, memory_order_relaxed))
		return;
	/* Sooner than the next look, but after the quiet time. */
	uint64_t soon = spill_clock_ns() + atomic_load(&quiet_ns), then = atomic_load(&next_look_ns);
	while (then > soon && !atomic_compare_exchange_weak(&next_look_ns, &then, soon))
		;
}

void spill_promote_wanted(void)
{
	atomic_store(&next_look_ns, spill_clock_ns() + LOOK_NS);
	atomic_store(&pending, true);
	spill_gate_want_maintenance();
}

/* If chunks that were just promoted leave again, the promotion was too soon. */
void spill_promote_hold(void)
{
	uint64_t now = spill_clock_ns();
	bool too_soon = promoted_ns && now - promoted_ns < 4 * quiet_ns;
	if (too_soon)
		quiet_ns = 2 * quiet_ns < QUIET_MOST_NS ? 2 * quiet_ns : QUIET_MOST_NS;
	else if (promoted_ns)
		quiet_ns = QUIET_NS;
	promoted_ns = 0;
	atomic_store(&next_look_ns, now + quiet_ns);
	atomic_store(&pending, true);
	spill_gate_want_maintenance();
}

/* -- a slice ----------------------------------------------------------------------------------- */

uint64_t spill_promote_room(const struct spill_backend *backend, int device)
{
	uint64_t free = 0, total = 0;
	if (spill_device_memory(backend, device, &free, &total))
		return 0;
	return spill_policy_device_room(spill_reserve_size(device), free, spill_account_device_held(device),
	                                spill_device_limit(backend, device));
}

static uint64_t smallest_on_host(const struct spill_victim *list, unsigned count)
{
	uint64_t least = UINT64_MAX;
	for (unsigned i = 0; i < count; i++) {
		const struct spill_chunked *chunked = list[i].data;
		for (unsigned index = 0; index < chunked->count; index++)
			if (spill_chunk_may_come(chunked, index) && chunked->chunks[index].bytes < least)
				least = chunked->chunks[index].bytes;
	}
	return least;
}

/* Adds a chunk, with device memory for it. False: the device has no more memory. */
static bool add_chunk(struct spill_move_batch *batch, struct spill_chunked *chunked, unsigned index)
{
	const struct spill_backend *backend = chunked->base.backend;
	uint64_t bytes = chunked->chunks[index].bytes;
	struct spill_move move = {.chunked = chunked, .index = index};
	if (!spill_device_chunk_get(backend, chunked->base.device, bytes, &move.handle))
		return false;
	if (spill_move_batch_add(batch, &move))
		return true;
	spill_device_chunk_put(backend, chunked->base.device, bytes, move.handle, move.view);
	return false;
}

static uint64_t largest_chunk(void)
{
	return spill_amount_resolve(spill_process_policy()->movable_chunk, 0, 0);
}

/* Fills the batch. Chunks come from the start of an allocation, because they leave from its end. */
static void fill_batch(struct spill_move_batch *batch, const struct spill_victim *list, unsigned count)
{
	const struct spill_placement *hottest = &((const struct spill_chunked *)list[0].data)->base;
	uint64_t left = spill_promote_room(hottest->backend, hottest->device);
	uint64_t slice = largest_chunk() > SPILL_PROMOTE_SLICE ? largest_chunk() : SPILL_PROMOTE_SLICE;
	left = spill_min(left, slice);
	for (unsigned i = 0; i < count; i++) {
		struct spill_chunked *chunked = list[i].data;
		for (unsigned index = 0; index < chunked->count; index++) {
			uint64_t bytes = chunked->chunks[index].bytes;
			if (!spill_chunk_may_come(chunked, index))
				continue;
			/* A chunk that is too large leaves the room to a later, smaller one. */
			if (batch->bytes + bytes > left)
				continue;
			if (!add_chunk(batch, chunked, index))
				return;
		}
	}
}

static uint64_t carry_out(struct spill_move_batch *batch)
{
	const struct spill_placement *first = &batch->moves[0].chunked->base;
	struct spill_move_reason why = {
	    .kind = SPILL_MOVE_PROMOTE,
	    .reason = SPILL_REASON_FREE,
	    .start_us = spill_log_now_us(),
	    .seen = spill_device_seen(first->device),
	};
	spill_move_batch_carry_out(batch, first->backend, first->device,
	                           spill_process_policy()->movable_wait_us);
	uint64_t moved = spill_move_batch_settle(batch, first->backend, first->device).device;
	spill_move_batch_report(batch, &why);
	return moved;
}

/* Promotes up to a slice. Returns its bytes. pre: the mover is held, count > 0 */
static uint64_t promote_slice(const struct spill_victim *list, unsigned count)
{
	struct spill_move_batch batch = {0};
	uint64_t moved = 0;
	fill_batch(&batch, list, count);
	if (batch.count)
		moved = carry_out(&batch);
	spill_move_batch_end(&batch);
	return moved;
}

/* -- when -------------------------------------------------------------------------------------- */

/*
 * True: promotion may begin. A program that keeps the device busy is not stopped: a look tells
 * whether the device is idle by chance. Only after many looks in vain it waits, more and more
 * rarely.
 */
static bool may_promote(const struct spill_placement *hottest)
{
	bool idle = spill_quiesce_look(hottest->backend, hottest->device, spill_clock_ns() + GATE_NS, 0);
	busy_looks = idle ? 0 : busy_looks + 1;
	return idle || busy_looks > BUSY_LOOKS;
}

/*
 * The time of the next look: soon after a success, later and later after waits in vain. pre: the
 * mover is held
 */
static uint64_t time_after(uint64_t moved, bool begun)
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

/*
 * The first allocation that was made when no chunk could move. So it is on the host, while older
 * ones are on the device. NULL: there is none.
 */
static struct spill_chunked *find_owed(const struct spill_victim *list, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		struct spill_chunked *chunked = list[i].data;
		if (chunked->owed)
			return chunked;
	}
	return NULL;
}

/* What is made free for it is not to be taken by another that would be brought back before it. */
static void bring_first(struct spill_victim *list, const struct spill_chunked *owed)
{
	unsigned at = 0;
	while (list[at].data != owed)
		at++;
	struct spill_victim first = list[at];
	for (; at; at--)
		list[at] = list[at - 1];
	list[0] = first;
}

/*
 * Demotes older allocations for it, and promotes, a slice at a time. Returns the promoted bytes. If
 * others came and nothing of it, its chunks are too large: the others would leave again and again.
 * pre: the mover is held, the device is idle by chance
 */
static uint64_t exchange_for_owed(struct spill_chunked *owed, struct spill_victim *list, unsigned count)
{
	uint64_t away = spill_chunked_away(owed);
	struct spill_demotion demotion = {
	    .backend = owed->base.backend,
	    .device = owed->base.device,
	    .bytes = away < SPILL_PROMOTE_SLICE ? away : SPILL_PROMOTE_SLICE,
	    .reason = SPILL_REASON_EXCHANGE,
	    .part_helps = true,
	    .api = "",
	    .caller = "",
	    .older_than = owed->seq,
	};
	spill_demote_held(&demotion, true);
	bring_first(list, owed);
	uint64_t moved = promote_slice(list, count);
	owed->owed = owed->owed && !demotion.hopeless && (!moved || spill_chunked_away(owed) < away);
	return moved;
}

/* Promotes on one device. Returns the time of the next look. pre: the mover is held */
static uint64_t promote_device(int device)
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
	/* The driver is asked even for a full device: other processes may have freed memory. */
	if (owed || spill_promote_room(hottest->backend, device) >= smallest_on_host(list, count)) {
		bool begun = may_promote(hottest) && spill_movable_may_move(hottest->backend, device);
		uint64_t moved = !begun ? 0
		                 : owed ? exchange_for_owed(owed, list, count)
		                        : promote_slice(list, count);
		then = time_after(moved, begun);
	}
	free(list);
	return then;
}

/* Promotes on all devices. Returns the time of the next look. */
static uint64_t promote_all(void)
{
	bool has[SPILL_DEVICES] = {0}, any = false;
	uint64_t then = UINT64_MAX;
	atomic_store(&pending, false); /* first, so that a call meanwhile is not lost */
	for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
	     chunked = spill_chunked_next(chunked))
		if (spill_chunked_away(chunked) && !chunked->pinned && chunked->base.device < SPILL_DEVICES)
			any = has[chunked->base.device] = true;
	if (any)
		atomic_store(&pending, true);
	for (int device = 0; device < SPILL_DEVICES; device++) {
		uint64_t device_look_ns = has[device] ? promote_device(device) : then;
		then = device_look_ns < then ? device_look_ns : then;
	}
	return any ? then : spill_clock_ns() + LOOK_NS;
}

/* Costs a look at the clock until the time has come. */
static void promote_if_due(void)
{
	if (spill_clock_ns() < atomic_load_explicit(&next_look_ns, memory_order_relaxed) ||
	    spill_capture_any() || spill_process_observes() || spill_chunked_is_held() ||
	    !spill_mover_trylock())
		return;
	if (spill_clock_ns() >= atomic_load(&next_look_ns))
		atomic_store(&next_look_ns, promote_all());
	spill_mover_unlock();
}

bool spill_promote_maintain(void)
{
	if (atomic_load_explicit(&pending, memory_order_relaxed))
		promote_if_due();
	return atomic_load_explicit(&pending, memory_order_relaxed);
}

void spill_promote_reset(void)
{
	atomic_store(&pending, false);
	quiet_ns = QUIET_NS;
	busy_ns = BUSY_NS;
	vain_ns = LOOK_NS;
	busy_looks = 0;
	promoted_ns = 0;
}

#include "prefetch.h"

#include <stdio.h>

#include "clock.h"
#include "exchange.h"
#include "chunk_list.h"
#include "quiesce.h"
#include "minmax.h"
#include "movable.h"
#include "note.h"
#include "chunked.h"
#include "promote.h"
#include "process.h"
#include "access_choice.h"
#include "access_model.h"
#include "access_recording.h"

#define MS 1000000ull

/* Most bytes promoted at once, beyond those needed now: 5 ms of the link. */
#define SLICE (256ull << 20)
/* The same as a share of the bytes on the host: a sweep then moves an eighth more than it must. */
#define SLICE_SHARE 8
/*
 * How long a busy device is waited for. The wait repeats movable.wait, with the gate open in
 * between, because the submitted work has to be done anyway. It is longer if a program runs a whole
 * step ahead: twice the estimate, and as long as measurements arrive.
 *
 * After a wait in vain, the device is only looked at for a while, each time as long as a few
 * kernels take. The next wait comes after four times the lost time, and twice as late each time.
 */
#define WAITS 5
#define WAITS_MOST_NS (5000 * MS)
#define EXPECTED 2
#define LOOK_NS (2 * MS)
#define LOOKS_NS (20 * MS)
#define BUSY_SHARE 4
#define BUSY_MOST_NS (60000 * MS)
/* Promotion pauses this long after an exchange. */
#define ACTIVE_NS (500 * MS)
/* Without an exchange for this long, the log gets a note. */
#define QUIET_NS (2000 * MS)
/* Most such notes. */
#define MOST_NOTES 8

/*
 * The placement of an exchange is undone after accesses in place to this share of the bytes on the
 * host, without an exchange: half a sweep. An exchange soon after that shows that it was too early.
 * Then twice as many sweeps are waited for.
 */
#define GIVE_UP_SHARE 2
#define SWEEPS_MOST 64
#define SOON_SWEEPS 8

/* Bytes accessed in place since the last exchange, or since it was undone. */
static _Atomic uint64_t in_place_bytes;
static _Atomic bool displaced;     /* the last exchange is not undone. */
static _Atomic uint64_t active_ns; /* time of the last exchange. */

/* The mover's lock guards the rest. */
static uint64_t sweeps = 1; /* sweeps in place before an exchange is undone. */
static bool restored;       /* it was undone, and there was none since. */
static uint64_t next_look_ns, next_wait_ns, busy_pause_ns;
static bool promoting;  /* as noted in the log. */
static bool swap_noted; /* in the log */
static unsigned note_count;
static _Atomic unsigned pause_notes;

/* -- an idle device ------------------------------------------------------------------- */

/* True: a wait was in vain, and even a look is too early. */
static bool is_too_soon(void)
{
	uint64_t now = spill_clock_ns();
	return now < next_wait_ns && now < next_look_ns;
}

/*
 * Closes the gate for `wait` again and again. Ends when the device is idle, when no measurement
 * arrives, or when another thread needs the mover (to free memory, to make room, to fork). pre: as
 * is_idle_in_time
 */
static bool wait_for_idle(const struct spill_backend *backend, int device, uint64_t wait,
                          uint64_t expected_ns)
{
	uint64_t heard = spill_access_model_hear(), before, now = spill_clock_ns();
	uint64_t alive_ns = now + WAITS * wait, most_ns = spill_max(alive_ns, now + WAITS_MOST_NS);
	uint64_t until_ns = now + EXPECTED * spill_min(expected_ns, WAITS_MOST_NS);
	do {
		if (spill_quiesce_look(backend, device, now + wait, now + wait))
			return true;
		/* Lets threads at the gate pass. */
		spill_clock_sleep(MS);
		now = spill_clock_ns();
		before = heard;
		heard = spill_access_model_hear();
		if (heard != before)
			alive_ns = now + WAITS * wait;
	} while (now < most_ns && (now < until_ns || now < alive_ns) && !spill_mover_wanted());
	return false;
}

/* True: the device is idle. pre: the mover is held, it is not too soon */
static bool is_idle_in_time(const struct spill_backend *backend, int device, uint64_t expected_ns)
{
	uint64_t start = spill_clock_ns(), wait = spill_process_policy()->movable_wait_us * 1000;
	uint64_t look = start + spill_min(LOOK_NS, wait);
	bool looks = start < next_wait_ns;
	if (looks ? spill_quiesce_look(backend, device, look, look)
	          : wait_for_idle(backend, device, wait, expected_ns)) {
		busy_pause_ns = next_wait_ns = 0;
		spill_access_model_idle();
		return true;
	}
	uint64_t now = spill_clock_ns();
	next_look_ns = now + LOOKS_NS;
	if (!looks) {
		busy_pause_ns =
		    spill_max(BUSY_SHARE * (now - start), spill_min(2 * busy_pause_ns, BUSY_MOST_NS));
		next_wait_ns = now + busy_pause_ns;
	}
	return false;
}

bool spill_prefetch_await_idle(const struct spill_backend *backend, int device, uint64_t expected_ns)
{
	return !is_too_soon() && is_idle_in_time(backend, device, expected_ns);
}

/* -- deciding and doing ------------------------------------------------------------------------ */

/* Notes in the log whether memory is promoted from now on. pre: the mover is held */
static void note_promoting(bool moves, uint64_t excess_ns, uint64_t cost_ns)
{
	char text[256];
	if (moves == promoting || note_count == MOST_NOTES)
		return;
	promoting = moves;
	note_count++;
	snprintf(text, sizeof(text),
	         "memory on the host is %s: in-place access costs %llu us per MiB, migration %llu "
	         "(movable.follow)",
	         moves ? "brought to the device before it is used" : "used in place again",
	         (unsigned long long)excess_ns / 1000, (unsigned long long)cost_ns / 1000);
	spill_note("follow", text);
}

/* Notes in the log that the predictions no longer hold. pre: the mover is held */
static void note_restored(void)
{
	if (!promoting || note_count == MOST_NOTES)
		return;
	promoting = false;
	note_count++;
	spill_note("follow",
	           "memory on the host is used in place again: the program has changed its accesses, "
	           "so each chunk returns to its place without movable.follow");
}

/* Notes in the log, once, that chunks swap. pre: the mover is held */
static void note_swap(void)
{
	if (swap_noted)
		return;
	swap_noted = true;
	spill_note(
	    "follow",
	    "memory that costs less in place changes places with memory that costs more (movable.follow)");
}

void spill_prefetch_note_pause(const struct spill_access_advice *advice)
{
	static const char *const NOW[] = {[SPILL_PAUSE_BEGINS] = "used in place from now on",
	                                  [SPILL_PAUSE_ENDS] = "brought to the device again",
	                                  [SPILL_PAUSE_IN_VAIN] = "brought to the device as before",
	                                  [SPILL_PAUSE_GOES_ON] = "used in place as before"};
	enum spill_pause_change change = advice->pause_change;
	bool vain = change == SPILL_PAUSE_IN_VAIN || change == SPILL_PAUSE_GOES_ON;
	char text[256];

	if (atomic_fetch_add(&pause_notes, 1) >= MOST_NOTES)
		return;
	if (advice->pause_is_ns)
		snprintf(
		    text, sizeof(text), "memory on the host is %s: %s %llu us, and %s %llu (movable.follow)",
		    NOW[change], vain ? "a trial of the other way took" : "a step of the program takes",
		    (unsigned long long)advice->pause_is_ns / 1000, vain ? "was to take less than" : "took",
		    (unsigned long long)advice->pause_was_ns / 1000);
	else
		snprintf(text, sizeof(text),
		         "memory on the host may be brought to the device again: the program has changed "
		         "its accesses (movable.follow)");
	spill_note("follow", text);
}

/* pre: the mover is held */
static bool choose_exchange(struct spill_exchange_choice *choice, uint16_t site, uint64_t *cost_ns)
{
	bool comes = spill_access_model_choose(choice, site, cost_ns);
	if (!choice->always && !choice->pays && !choice->swaps && !choice->swaps_only &&
	    spill_clock_ns() - atomic_load(&active_ns) > QUIET_NS)
		note_promoting(false, choice->excess_ns, *cost_ns);
	return comes;
}

/* Notes that the predictions led to an exchange. pre: the mover is held */
static void note_exchange(void)
{
	bool soon = atomic_exchange(&in_place_bytes, 0) < SOON_SWEEPS * spill_chunked_on_host();
	if (restored)
		sweeps = soon ? spill_min(2 * sweeps, SWEEPS_MOST) : 1;
	restored = false;
	atomic_store(&displaced, true);
}

void spill_prefetch_exchanged(void)
{
	uint64_t now = spill_clock_ns();
	atomic_store(&active_ns, now);
	spill_chunked_hold(now + ACTIVE_NS);
	note_exchange();
	spill_promote_hold();
}

/* True: a chunk came. pre: the mover is held */
static bool carry_out(struct spill_exchange_choice *choice, struct spill_exchange *exchange,
                      uint64_t waited_ns)
{
	if (!spill_chunk_list_add_chosen(choice, exchange))
		return false;
	if (choice->swaps)
		exchange->keep = 0; /* perhaps there is no next exchange, which it is for */
	spill_exchange_carry_out(exchange, spill_clock_ns() + spill_process_policy()->movable_wait_us * 1000);
	if (!exchange->came)
		return false;
	if (choice->swaps) {
		spill_chunk_list_swapped(choice);
		spill_access_model_swapped(choice);
		note_swap();
	} else {
		spill_prefetch_exchanged();
	}
	spill_access_model_moved(choice, exchange->fresh ? 0 : exchange->came, exchange->ns, waited_ns);
	return true;
}

/* True: a chunk came. pre: the mover is held */
static bool decide_and_exchange(struct spill_exchange_choice *choice, struct spill_exchange *exchange,
                                const struct spill_access_advice *advice)
{
	struct spill_recorded_exchange seen = {.busy_ns = advice->busy_ns};
	bool wants = choose_exchange(choice, advice->site, &seen.cost_ns);
	uint64_t start_ns = spill_clock_ns();
	bool idle = wants && is_idle_in_time(exchange->backend, exchange->device, advice->busy_ns);
	seen.waited_ns = wants ? spill_clock_ns() - start_ns : 0;
	bool came = idle && carry_out(choice, exchange, seen.waited_ns);
	/* The note has the costs that the decision was made by, not the measured ones. */
	if (came && !choice->always && !choice->swaps)
		note_promoting(true, choice->excess_ns, seen.cost_ns);
	seen.moved_ns = exchange->ns;
	seen.came = exchange->came;
	spill_access_recording_exchange(choice, &seen);
	return came;
}

/* pre: the mover is held */
static bool prefetch_for(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	const struct spill_chunked *chunked = spill_chunk_list_allocation(access);
	struct spill_chunk_list list;
	bool came = false;
	if (!chunked || is_too_soon() || !spill_movable_may_move(chunked->base.backend, chunked->base.device))
		return false;
	const struct spill_backend *backend = chunked->base.backend;
	int device = chunked->base.device;
	if (spill_chunk_list_make(&list, device, access)) {
		struct spill_exchange_choice choice = spill_chunk_list_choice(&list, backend, device);
		choice.spare = spill_min(SPILL_EXCHANGE_KEPT, list.on_host / SLICE_SHARE);
		choice.slice = spill_min(SLICE, list.on_host / SLICE_SHARE);
		choice.always = spill_process_policy()->movable_follow == SPILL_FOLLOW_ON;
		choice.swaps_only = advice->looks;
		choice.graph = access->graph;
		struct spill_exchange exchange = {.backend = backend, .device = device, .keep = choice.spare};
		came = decide_and_exchange(&choice, &exchange, advice);
	}
	spill_chunk_list_free(&list);
	return came;
}

bool spill_prefetch(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	if (!spill_mover_trylock())
		return false;
	bool came = prefetch_for(access, advice);
	spill_mover_unlock();
	return came;
}

/* pre: the mover is held */
static void restore_placement(const struct spill_launch_access *access,
                              const struct spill_access_advice *advice)
{
	/* The search is last: it takes microseconds, and launches come here until a sweep is over. */
	if (is_too_soon() || GIVE_UP_SHARE * atomic_load(&in_place_bytes) < sweeps * spill_chunked_on_host())
		return;
	const struct spill_chunked *chunked = spill_chunk_list_allocation(access);
	if (!chunked || !spill_movable_may_move(chunked->base.backend, chunked->base.device) ||
	    !is_idle_in_time(chunked->base.backend, chunked->base.device, advice->busy_ns))
		return;
	bool done = spill_restore(chunked->base.backend, chunked->base.device);
	spill_promote_hold();
	if (!done)
		return;
	atomic_store(&in_place_bytes, 0);
	atomic_store(&displaced, spill_restore_left(chunked->base.device));
	restored = true;
	spill_access_recording_restored();
	note_restored();
}

void spill_prefetch_left_in_place(const struct spill_launch_access *access,
                                  const struct spill_access_advice *advice)
{
	if (!atomic_load_explicit(&displaced, memory_order_relaxed) || access->once)
		return;
	uint64_t sum = atomic_fetch_add(&in_place_bytes, access->host_bytes) + access->host_bytes;
	if (GIVE_UP_SHARE * sum < spill_chunked_on_host() || !spill_mover_trylock())
		return;
	restore_placement(access, advice);
	spill_mover_unlock();
}

void spill_prefetch_displaced(void)
{
	atomic_store(&displaced, true);
}

void spill_prefetch_reset(void)
{
	atomic_store(&active_ns, 0);
	spill_chunked_hold(0);
	atomic_store(&in_place_bytes, 0);
	atomic_store(&displaced, false);
	sweeps = 1;
	restored = false;
	next_look_ns = next_wait_ns = busy_pause_ns = 0;
	promoting = swap_noted = false;
	note_count = 0;
	atomic_store(&pause_notes, 0);
}

#include "prefetch.h"

#include <stdio.h>
#include <stdlib.h>

#include "back.h"
#include "clock.h"
#include "exchange.h"
#include "chunk_map.h"
#include "quiesce.h"
#include "minmax.h"
#include "movable.h"
#include "note.h"
#include "chunked.h"
#include "promote.h"
#include "restore.h"
#include "process.h"
#include "access_model.h"

#define MS 1000000ull

/* Most that comes at once beyond what is needed now: 5 ms of the link. */
#define SLICE (256ull << 20)
/* Of what is on host: a sweep then moves an eighth more than it must. */
#define SLICE_SHARE 8
/*
 * A device that is busy is waited for so often movable.wait, the gate open in between: what it is doing was submitted before and has
 * to be done anyway. Longer, where a program runs a whole step ahead of it: twice what is expected, and as long as work that is
 * timed gets done. If that was in vain, it is only looked at for a while, each time as long as a few kernels take, and waited
 * for again after four times what was lost, twice as long each time.
 */
#define WAITS 5
#define WAITS_MOST_NS (5000 * MS)
#define EXPECTED 2
#define LOOK_NS (2 * MS)
#define LOOKS_NS (20 * MS)
#define BUSY_SHARE 4
#define BUSY_MOST_NS (60000 * MS)
/* For so long after an exchange, promotion leaves everything to us. */
#define ACTIVE_NS (500 * MS)
/* Nothing was brought for so long: a change of mind. */
#define QUIET_NS (2000 * MS)
/* Changes of mind that are told. */
#define MINDS 8

/*
 * What was learned is given up when uses have had on the host this share of what there is there, and nothing came: half a sweep in
 * place. An exchange soon after such a restoration says that it came too early, and the next one takes twice as many.
 */
#define SHARE 2
#define SWEEPS_MOST 64
#define SOON 8

/* What uses had on the host since the last exchange or restoration; whether such an exchange is not undone yet. */
static _Atomic uint64_t in_place;
static _Atomic bool displaced;
static uint64_t sweeps = 1; /* the mover's */
static bool restored;       /* likewise: there was no exchange since */

/* The mover's. */
static uint64_t look_ns, wait_ns, busy_ns;
static _Atomic uint64_t active_ns; /* the last exchange */
static bool moving;                /* as the log was told, so many times */
static unsigned told;

/* -- whether now is the time ------------------------------------------------------------------- */

/* It was waited for in vain, and even a look would come too soon. */
static bool is_too_soon(void)
{
	uint64_t now = spill_clock_ns();
	return now < wait_ns && now < look_ns;
}

/*
 * Closes the gate for `wait` again and again, until the device is idle, nothing is heard of it, or somebody needs the mover (to free
 * memory, to make room, to fork). pre: as is_time
 */
static bool wait_patiently(const struct spill_backend *backend, int device, uint64_t wait,
                           uint64_t expected_ns)
{
	uint64_t heard = spill_access_model_hear(), before, now = spill_clock_ns();
	uint64_t alive_ns = now + WAITS * wait, most_ns = spill_max(alive_ns, now + WAITS_MOST_NS);
	uint64_t until_ns = now + EXPECTED * spill_min(expected_ns, WAITS_MOST_NS);
	do {
		if (spill_quiesce_look(backend, device, now + wait, now + wait))
			return true;
		/* Those who wait at the gate get through. */
		spill_clock_sleep(MS);
		now = spill_clock_ns();
		before = heard;
		heard = spill_access_model_hear();
		if (heard != before)
			alive_ns = now + WAITS * wait;
	} while (now < most_ns && (now < until_ns || now < alive_ns) && !spill_mover_wanted());
	return false;
}

/* pre: the mover is held, it is not too soon */
static bool is_time(const struct spill_backend *backend, int device, uint64_t expected_ns)
{
	uint64_t start = spill_clock_ns(), wait = spill_process_policy()->movable_wait_us * 1000;
	uint64_t look = start + spill_min(LOOK_NS, wait);
	bool looks = start < wait_ns;
	if (looks ? spill_quiesce_look(backend, device, look, look)
	          : wait_patiently(backend, device, wait, expected_ns)) {
		busy_ns = wait_ns = 0;
		spill_access_model_idle();
		return true;
	}
	uint64_t now = spill_clock_ns();
	look_ns = now + LOOKS_NS;
	if (!looks) {
		busy_ns = spill_max(BUSY_SHARE * (now - start), spill_min(2 * busy_ns, BUSY_MOST_NS));
		wait_ns = now + busy_ns;
	}
	return false;
}

/* -- what is there ----------------------------------------------------------------------------- */

struct list {
	struct spill_exchange_chunk *chunks;
	unsigned *ranks;
	unsigned count;
	uint64_t on_host, resident; /* bytes */
};

static void add(struct list *list, struct spill_chunked *of, unsigned index)
{
	struct spill_chunk_map_entry granule;
	const struct spill_chunk *chunk = &of->chunks[index];
	uint64_t va = spill_chunked_address(of, index);
	if (!spill_chunk_map_of(va, &granule))
		return;
	*(chunk->on_host ? &list->on_host : &list->resident) += chunk->bytes;
	list->chunks[list->count++] = (struct spill_exchange_chunk){
	    .key = granule.key,
	    .bytes = chunk->bytes,
	    .on_host = chunk->on_host,
	    .fixed = of->pinned || chunk->unmapped || (chunk->on_host && !spill_chunk_may_come(of, index)),
	    .data = of,
	    .index = index,
	};
}

/* All chunks of a device, by key. False: no memory. pre: the mover is held */
static bool make_list(struct list *list, int device, const struct spill_launch_access *use)
{
	unsigned room = 0, more;
	for (struct spill_chunked *one = spill_chunked_next(NULL); one; one = spill_chunked_next(one))
		room += one->base.device == device ? one->count : 0;
	*list = (struct list){.chunks = calloc(room + 1, sizeof(*list->chunks)),
	                      .ranks = calloc(room + 1, sizeof(*list->ranks))};
	if (!list->chunks || !list->ranks)
		return false;
	/* More may have come meanwhile. */
	for (struct spill_chunked *one = spill_chunked_next(NULL); one; one = spill_chunked_next(one)) {
		more = one->base.device == device ? one->count : 0;
		for (unsigned i = 0; i < more && list->count < room; i++)
			add(list, one, i);
	}
	qsort(list->chunks, list->count, sizeof(*list->chunks), spill_exchange_chunk_compare);
	for (unsigned i = 0; i < use->count; i++) {
		struct spill_exchange_chunk key = {.key = use->keys[i]};
		struct spill_exchange_chunk *found =
		    bsearch(&key, list->chunks, list->count, sizeof(key), spill_exchange_chunk_compare);
		if (found)
			*(i < use->sure ? &found->needed : &found->maybe) = true;
	}
	return true;
}

static void end_list(struct list *list)
{
	free(list->chunks);
	free(list->ranks);
}

/* Whose the needed memory is. pre: the mover is held */
static struct spill_chunked *owner(const struct spill_launch_access *use)
{
	for (unsigned i = 0; i < use->count; i++)
		for (struct spill_chunked *one = spill_chunked_next(NULL); one; one = spill_chunked_next(one))
			if (((uint64_t)use->keys[i] << SPILL_CHUNK_MAP_UNIT_SHIFT) - one->base.ptr <
			    one->range)
				return one;
	return NULL;
}

/* -- deciding and doing ------------------------------------------------------------------------ */

/* A change of mind of the whole is a line of the log. pre: the mover is held */
static void tell(bool moves, uint64_t excess_ns, uint64_t cost_ns)
{
	char text[256];
	if (moves == moving || told == MINDS)
		return;
	moving = moves;
	told++;
	snprintf(
	    text, sizeof(text),
	    "memory on the host is %s: used in place a MiB of it costs %llu us, moved %llu (movable.follow)",
	    moves ? "brought to the device before it is used" : "used in place again",
	    (unsigned long long)excess_ns / 1000, (unsigned long long)cost_ns / 1000);
	spill_note("follow", text);
}

/* What was learned no longer holds. pre: the mover is held */
static void tell_restored(void)
{
	if (!moving || told == MINDS)
		return;
	moving = false;
	told++;
	spill_note("follow", "memory on the host is used in place again: the program does something else "
	                     "now, so memory is placed as without movable.follow");
}

/* pre: the mover is held */
static bool choose(struct spill_exchange_choice *window, uint16_t site, uint64_t *cost_ns)
{
	bool comes = spill_access_model_choose(window, site, cost_ns);
	if (!window->always && !window->pays && spill_clock_ns() - atomic_load(&active_ns) > QUIET_NS)
		tell(false, window->excess_ns, *cost_ns);
	return comes;
}

/* What was learned is used. pre: the mover is held */
static void learned(void)
{
	bool soon = atomic_exchange(&in_place, 0) < SOON * spill_chunked_on_host();
	if (restored)
		sweeps = soon ? spill_min(2 * sweeps, SWEEPS_MOST) : 1;
	restored = false;
	atomic_store(&displaced, true);
}

/* pre: the mover is held. True: something came */
static bool carry_out(const struct spill_exchange_choice *window, struct spill_exchange *exchange)
{
	/* What finds no home on host makes no room, and less comes. */
	for (unsigned i = 0; i < window->count; i++)
		if (window->chunks[i].verdict != SPILL_EXCHANGE_STAYS)
			spill_exchange_add(exchange, window->chunks[i].data, window->chunks[i].index);
	if (!exchange->comes.count && !exchange->goes.count)
		return false;
	spill_exchange_carry_out(exchange, spill_clock_ns() + spill_process_policy()->movable_wait_us * 1000);
	if (!exchange->came)
		return false;
	uint64_t now = spill_clock_ns();
	atomic_store(&active_ns, now);
	spill_chunked_hold(now + ACTIVE_NS);
	learned();
	spill_promote_hold();
	if (!exchange->fresh)
		spill_access_model_moved(exchange->came, exchange->ns);
	return true;
}

/* pre: the mover is held */
static bool bring(const struct spill_launch_access *use, const struct spill_advice *advice)
{
	const struct spill_chunked *whose = owner(use);
	struct list list;
	bool came = false;
	if (!whose || is_too_soon() || !spill_movable_may_move(whose->base.backend, whose->base.device))
		return false;
	const struct spill_backend *backend = whose->base.backend;
	int device = whose->base.device;
	if (make_list(&list, device, use)) {
		struct spill_exchange_choice window = {
		    .chunks = list.chunks,
		    .count = list.count,
		    .ranks = list.ranks,
		    .room = spill_back_room(backend, device) + spill_exchange_kept(),
		    .spare = spill_min(SPILL_EXCHANGE_KEPT, list.on_host / SLICE_SHARE),
		    .slice = spill_min(SLICE, list.on_host / SLICE_SHARE),
		    .horizon = list.resident / 2,
		    .always = spill_process_policy()->movable_follow == SPILL_SWITCH_ON,
		};
		struct spill_exchange exchange = {.backend = backend, .device = device, .keep = window.spare};
		uint64_t cost_ns;
		came = choose(&window, advice->site, &cost_ns) && is_time(backend, device, advice->busy_ns) &&
		       carry_out(&window, &exchange);
		if (came && !window.always)
			tell(true, window.excess_ns, cost_ns); /* by what was decided, not by what it took */
	}
	end_list(&list);
	return came;
}

bool spill_prefetch(const struct spill_launch_access *use, const struct spill_advice *advice)
{
	if (!spill_mover_trylock())
		return false;
	bool came = bring(use, advice);
	spill_mover_unlock();
	return came;
}

/* pre: the mover is held */
static void restore(const struct spill_launch_access *use, const struct spill_advice *advice)
{
	const struct spill_chunked *whose = owner(use);
	if (!whose || is_too_soon() || SHARE * atomic_load(&in_place) < sweeps * spill_chunked_on_host() ||
	    !spill_movable_may_move(whose->base.backend, whose->base.device) ||
	    !is_time(whose->base.backend, whose->base.device, advice->busy_ns))
		return;
	bool done = spill_restore(whose->base.backend, whose->base.device);
	spill_promote_hold();
	if (!done)
		return;
	atomic_store(&in_place, 0);
	atomic_store(&displaced, spill_restore_left(whose->base.device));
	restored = true;
	tell_restored();
}

void spill_prefetch_left_in_place(const struct spill_launch_access *use, const struct spill_advice *advice)
{
	if (!atomic_load_explicit(&displaced, memory_order_relaxed) || use->once)
		return;
	uint64_t sum = atomic_fetch_add(&in_place, use->host_bytes) + use->host_bytes;
	if (SHARE * sum < spill_chunked_on_host() || !spill_mover_trylock())
		return;
	restore(use, advice);
	spill_mover_unlock();
}

void spill_prefetch_reset(void)
{
	atomic_store(&active_ns, 0);
	spill_chunked_hold(0);
	atomic_store(&in_place, 0);
	atomic_store(&displaced, false);
	sweeps = 1;
	restored = false;
	look_ns = wait_ns = busy_ns = 0;
	moving = false;
	told = 0;
}

#include "overlap.h"

#include <stdatomic.h>
#include <string.h>

#include "access_choice.h"
#include "capture.h"
#include "chunk_list.h"
#include "chunk_map.h"
#include "clock.h"
#include "contexts.h"
#include "exchange.h"
#include "flight.h"
#include "hash.h"
#include "launch_number.h"
#include "minmax.h"
#include "movable.h"
#include "prefetch.h"
#include "process.h"

/* Bytes of a flight: as long as a slice of an exchange. */
#define SLICE (128ull << 20)
/* How long a flight that could not begin is not tried again. */
#define PAUSE_NS 300000ull
/* How long a mark may keep the gate closed, and how often it is asked at once: some 10 us. */
#define MARK_NS 100000ull
#define MARK_LOOKS 8

/* The launch that named a chunk last, by a hash of its key. Two chunks can have the same entry. */
#define USED_BITS 13
static _Atomic uint32_t used_at[1u << USED_BITS];
static _Atomic uint32_t launches; /* so far */

static __thread uint64_t seen_flight __attribute__((tls_model("initial-exec"))); /* by the last look */

/* The mover's lock guards these. */
static struct {
	void *event, *context; /* a mark behind all work of the launches up to `number`; NULL: none */
	uint64_t birth;        /* of the context (contexts.h) */
	uint32_t number, done;
	uint64_t unclear, done_unclear; /* entries that named nothing, likewise */
	bool any;                       /* one has passed: work before the gate told entries apart is done */
} mark;
static uint64_t next_try_ns;

bool spill_overlap_wanted(void)
{
	return spill_process_policy()->movable_follow == SPILL_FOLLOW_OVERLAP;
}

bool spill_overlap_away(void)
{
	return spill_gate_flight();
}

/* -- looking ------------------------------------------------------------------------------------ */

/* Somebody wants the mover. */
static void end_flight(void)
{
	if (spill_flight_end())
		spill_prefetch_exchanged();
}

/* pre: the mover is held, one is under way */
static void land(void)
{
	if (spill_flight_land())
		spill_prefetch_exchanged();
}

static bool is_unknown(const struct spill_launch_access *access)
{
	return access->unknown || access->count == SPILL_LAUNCH_ACCESS_KEYS;
}

bool spill_overlap_look(const struct spill_launch_access *access)
{
	bool landed = false;
	spill_gate_use_flights(end_flight);
	seen_flight = spill_gate_flight();
	if (!seen_flight || is_unknown(access) || !spill_mover_trylock_in_flight())
		return false;
	if (spill_flight_is_up() &&
	    (spill_flight_touches(access->keys, access->count) || spill_flight_has_arrived())) {
		land();
		landed = true;
	}
	spill_mover_unlock();
	return landed;
}

/*
 * Maps what the launch can reach and has not come. False: another thread has the mover, and then the gate has
 * the launch wait.
 */
static bool map_the_rest(const struct spill_launch_access *access)
{
	seen_flight = spill_gate_flight();
	if (!seen_flight || !spill_flight_touches(access->keys, access->count))
		return true;
	if (!spill_mover_trylock_in_flight())
		return false;
	if (spill_flight_is_up())
		land();
	spill_flight_map(access->keys, access->count);
	seen_flight = spill_gate_flight();
	spill_mover_unlock();
	return true;
}

/* The thread is going to submit the launch. */
static void tell_gate(const struct spill_launch_access *access)
{
	bool clear = !is_unknown(access) && map_the_rest(access);
	spill_gate_clear(clear ? seen_flight : SPILL_GATE_UNCLEAR);
}

/*
 * Returns the launch's number. First the thread is clear, then the number counts: who marks the work of this number
 * sees that it is not submitted yet.
 */
static uint32_t note(const struct spill_launch_access *access)
{
	tell_gate(access);
	uint32_t number = atomic_fetch_add(&launches, 1) + 1;
	for (unsigned i = 0; i < access->count; i++)
		spill_launch_number_note(&used_at[spill_hash_key(access->keys[i], USED_BITS)], number);
	return number;
}

/* -- work that is done. pre: the mover is held -------------------------------------------------- */

static void ask_mark(const struct spill_backend *backend, int device, const void *context)
{
	if (mark.context != context || mark.birth != spill_contexts_birth(backend, context))
		mark.event = NULL; /* it ended with its context */
	if (!mark.event || !backend->events->passed(device, mark.context, mark.event))
		return;
	backend->events->destroy(device, mark.context, mark.event);
	mark.event = NULL;
	mark.done = mark.number;
	mark.done_unclear = mark.unclear;
	mark.any = true;
}

/* Marks all work so far. With work under way that was looked at before, a mark would tell too much. */
static void place_mark(const struct spill_backend *backend, int device, void *context, uint32_t submitted)
{
	if (!spill_gate_close(spill_clock_ns() + MARK_NS))
		return;
	mark.number = submitted;
	mark.unclear = spill_gate_unclear();
	mark.context = context;
	mark.birth = spill_contexts_birth(backend, context);
	if (spill_capture_any() || spill_gate_others_clear() ||
	    backend->moves->mark(device, context, &mark.event))
		mark.event = NULL;
	spill_gate_open();
}

/* Finds out which work is done. `submitted`: the last launch that is. */
static void ask_what_is_done(const struct spill_backend *backend, int device, void *context,
                             uint32_t submitted)
{
	ask_mark(backend, device, context);
	if (!mark.event && (!mark.any || mark.done != submitted || mark.done_unclear != spill_gate_unclear()))
		place_mark(backend, device, context, submitted);
	for (unsigned i = 0; i < MARK_LOOKS && mark.event; i++)
		ask_mark(backend, device, context);
}

static bool is_used(uint64_t address)
{
	uint32_t key = (uint32_t)(address >> SPILL_CHUNK_MAP_UNIT_SHIFT);
	uint32_t number =
	    atomic_load_explicit(&used_at[spill_hash_key(key, USED_BITS)], memory_order_relaxed);
	return spill_launch_number_is_later(number, mark.done);
}

/* Can work that is not done reach the chunk? */
static bool is_in_use(const struct spill_chunked *chunked, unsigned index)
{
	struct spill_span reach = spill_flight_reach(chunked, index);
	if (mark.done_unclear != spill_gate_unclear())
		return true;
	for (unsigned i = 0; i < chunked->count; i++) {
		uint64_t address = spill_chunked_address(chunked, i);
		if (address - reach.offset < reach.bytes && is_used(address))
			return true;
	}
	return false;
}

/* -- flights ------------------------------------------------------------------------------------ */

/* A chunk stays where it is if it cannot fly now. */
static void fix_chunks(struct spill_chunk_list *list, const struct spill_backend *backend)
{
	const struct spill_chunked *last = NULL;
	bool last_used = false;
	for (unsigned i = 0; i < list->count; i++) {
		const struct spill_chunked *chunked = list->chunks[i].data;
		if (chunked != last || chunked->exact_begins)
			last_used = is_in_use(chunked, list->chunks[i].index);
		last = chunked;
		list->chunks[i].fixed |=
		    last_used || !spill_flight_takes(backend, chunked, list->chunks[i].index);
	}
}

/* pre: the mover is held, no flight. True: a flight has begun. */
static bool fly(const struct spill_launch_access *access, const struct spill_access_advice *advice,
                uint32_t submitted, bool ahead)
{
	const struct spill_chunked *chunked = spill_chunk_list_allocation(access);
	struct spill_chunk_list list;
	bool begun = false;
	uint64_t cost_ns;
	if (!chunked || !spill_movable_may_move(chunked->base.backend, chunked->base.device))
		return false;
	const struct spill_backend *backend = chunked->base.backend;
	int device = chunked->base.device;
	void *context = spill_contexts_only(backend, device);
	if (!context)
		return false;
	ask_what_is_done(backend, device, context, submitted);
	if (!mark.any || mark.done_unclear != spill_gate_unclear())
		return false;
	if (spill_chunk_list_make(&list, device, access)) {
		fix_chunks(&list, backend);
		struct spill_exchange_choice choice = spill_chunk_list_choice(&list, backend, device);
		choice.spare = SPILL_EXCHANGE_KEPT;
		choice.slice = ahead ? SLICE : 0;
		choice.ahead = ahead;
		struct spill_exchange exchange = {.backend = backend, .device = device, .keep = choice.spare};
		begun = spill_access_model_choose(&choice, advice->site, &cost_ns) &&
		        spill_chunk_list_add_chosen(&choice, &exchange) &&
		        spill_flight_begin(&exchange, is_in_use);
	}
	spill_chunk_list_free(&list);
	return begun;
}

bool spill_overlap_bring(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	uint64_t came = 0;
	if (is_unknown(access) || !spill_mover_trylock_in_flight())
		return false;
	if (spill_flight_is_up())
		land();
	if (fly(access, advice, atomic_load(&launches), false))
		came = spill_flight_land();
	if (came)
		spill_prefetch_exchanged();
	spill_mover_unlock();
	return came;
}

void spill_overlap_names_nothing(const struct spill_launch_access *access)
{
	tell_gate(access);
}

void spill_overlap_ahead(const struct spill_launch_access *access, const struct spill_access_advice *advice)
{
	uint64_t now = spill_clock_ns();
	uint32_t number = note(access);
	if (is_unknown(access) || !spill_chunked_on_host() || !spill_mover_trylock_in_flight())
		return;
	if (!spill_flight_is_up() && now >= next_try_ns) {
		/* This launch is not submitted yet, so nothing that it uses is done. */
		if (fly(access, advice, number - 1, true))
			spill_gate_clear(spill_gate_flight());
		else
			next_try_ns = spill_clock_ns() + PAUSE_NS;
	}
	spill_mover_unlock();
}

void spill_overlap_reset(void)
{
	memset(&mark, 0, sizeof(mark));
	next_try_ns = 0;
	spill_flight_reset();
}

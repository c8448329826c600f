#include "trial.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "chunk_list.h"
#include "chunk_map.h"
#include "clock.h"
#include "exchange.h"
#include "hash.h"
#include "movable.h"
#include "note.h"
#include "placement_trial.h"
#include "prefetch.h"
#include "process.h"
#include "mover.h"

/* Promotion pauses this long after a launch, while a trial goes on. */
#define HOLD_NS 500000000ull
/* Most notes about a better placement. */
#define MOST_NOTES 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_TRIAL */
/* The lock guards these. */
static struct spill_placement_trial state;
static unsigned note_count;

/* Names the launch: its kernels and all chunks that it names, wherever they are. */
static uint64_t site_of(const struct spill_launch_access *access)
{
	uint64_t name = access->site;
	for (unsigned i = 0; i < access->count; i++)
		name = spill_hash(name, access->keys[i]);
	return name | 1; /* 0 is none */
}

/* Names a site and the present placement of its memory; never 0. */
static uint64_t placement_of(const struct spill_launch_access *access, uint64_t site)
{
	uint64_t name = site;
	for (unsigned i = 0; i < access->count; i++) {
		struct spill_chunk_map_entry entry;
		uint64_t va = (uint64_t)access->keys[i] << SPILL_CHUNK_MAP_UNIT_SHIFT;
		if (spill_chunk_map_of(va, &entry) && entry.on_host)
			name = spill_hash(name, entry.key);
	}
	return name | 1;
}

/* -- exchanging. pre: the lock and the mover are held ------------------------------------------- */

/* All chunks of the device of a launch. */
struct trial_list {
	const struct spill_chunked *any; /* an allocation of the device */
	struct spill_chunk_list all;
	struct spill_trial_chunk *chunks; /* in the same order */
};

static struct spill_chunk *chunk_of(const struct trial_list *list, unsigned i)
{
	const struct spill_exchange_chunk *chunk = &list->all.chunks[i];
	return &((struct spill_chunked *)chunk->data)->chunks[chunk->index];
}

static void add_chosen(struct spill_exchange *exchange, const struct trial_list *list, bool on_host)
{
	for (unsigned i = 0; i < list->all.count; i++)
		if (list->chunks[i].chosen && list->chunks[i].on_host == on_host &&
		    !spill_exchange_add(exchange, list->all.chunks[i].data, list->all.chunks[i].index))
			return;
}

/*
 * Exchanges the chosen chunks, as far as there is memory for them, and notes which have moved. Until
 * the trial is kept they count as displaced, so that the end of the phase takes them home.
 */
static void exchange_chosen(const struct trial_list *list, uint64_t expected_ns)
{
	const struct spill_backend *backend = list->any->base.backend;
	int device = list->any->base.device;
	struct spill_exchange exchange = {.backend = backend, .device = device};
	if (!spill_prefetch_await_idle(backend, device, expected_ns))
		return;
	add_chosen(&exchange, list, false);
	add_chosen(&exchange, list, true);
	if (exchange.comes.count || exchange.goes.count)
		spill_exchange_carry_out(&exchange,
		                         spill_clock_ns() + spill_process_policy()->movable_wait_us * 1000);
	for (unsigned i = 0; i < list->all.count; i++)
		list->chunks[i].moved =
		    list->chunks[i].chosen && chunk_of(list, i)->on_host != list->chunks[i].on_host;
}

static void fill_chunks(struct trial_list *list)
{
	for (unsigned i = 0; i < list->all.count; i++) {
		const struct spill_exchange_chunk *chunk = &list->all.chunks[i];
		list->chunks[i] = (struct spill_trial_chunk){
		    .key = chunk->key,
		    .owner = ((const struct spill_chunked *)chunk->data)->range,
		    .bytes = chunk->bytes,
		    .on_host = chunk->on_host,
		    .fixed = chunk->fixed,
		    .named = chunk->needed || chunk->maybe,
		};
	}
}

/* False: no memory, or the launch's memory is gone. */
static bool make_list(struct trial_list *list, const struct spill_launch_access *access)
{
	*list = (struct trial_list){.any = spill_chunk_list_allocation(access)};
	if (!list->any || !spill_movable_may_move(list->any->base.backend, list->any->base.device) ||
	    !spill_chunk_list_make(&list->all, list->any->base.device, access))
		return false;
	list->chunks = calloc(list->all.count + 1, sizeof(*list->chunks));
	if (list->chunks)
		fill_chunks(list);
	return list->chunks;
}

static void free_list(struct trial_list *list)
{
	free(list->chunks);
	spill_chunk_list_free(&list->all);
}

/* Was it moved by the trial, and is it still there? */
static bool is_moved(const struct trial_list *list, unsigned i)
{
	return spill_trial_moved(&state, list->chunks[i].key, list->chunks[i].on_host);
}

/* -- steps. pre: as above ---------------------------------------------------------------------- */

static void propose(struct trial_list *list, const struct spill_launch_access *access, uint64_t site)
{
	uint64_t start = spill_clock_ns();
	if (!spill_trial_choose(&state, list->chunks, list->all.count, start))
		return;
	exchange_chosen(list, state.base_ns);
	uint64_t now = spill_clock_ns();
	spill_trial_begun(&state, list->chunks, list->all.count, placement_of(access, site), now,
	                  now - start);
}

static void undo(struct trial_list *list, const struct spill_launch_access *access, uint64_t site)
{
	uint64_t start = spill_clock_ns();
	bool any = false, left = false;
	for (unsigned i = 0; i < list->all.count; i++)
		any |= list->chunks[i].chosen = !list->chunks[i].fixed && is_moved(list, i);
	if (any)
		exchange_chosen(list, SPILL_TRIAL_SAMPLES * state.samples[0]);
	for (unsigned i = 0; i < list->all.count; i++)
		left |= list->chunks[i].chosen && !list->chunks[i].moved && list->chunks[i].on_host;
	uint64_t now = spill_clock_ns();
	spill_trial_undone(&state, !left, placement_of(access, site), now, now - start);
	if (left && state.phase == SPILL_TRIAL_RESTS)
		spill_prefetch_displaced(); /* the end of a phase takes them home */
}

static void keep(struct trial_list *list)
{
	for (unsigned i = 0; i < list->all.count; i++)
		if (is_moved(list, i))
			chunk_of(list, i)->displaced = false;
	spill_trial_kept(&state);
}

static void take_step(enum spill_trial_step step, const struct spill_launch_access *access, uint64_t site)
{
	struct trial_list list;
	if (step == SPILL_TRIAL_NOTHING)
		return;
	if (!make_list(&list, access))
		list.all.count = 0; /* nothing can be chosen, or is to be undone */
	if (step == SPILL_TRIAL_PROPOSE)
		propose(&list, access, site);
	else if (step == SPILL_TRIAL_UNDO)
		undo(&list, access, site);
	else
		keep(&list);
	free_list(&list);
}

static void note_better(void)
{
	char text[256];
	if (state.kept <= state.noted || state.phase != SPILL_TRIAL_RESTS || note_count == MOST_NOTES)
		return;
	state.noted = state.kept;
	note_count++;
	snprintf(
	    text, sizeof(text),
	    "memory that a graph uses little is on the host now, in place of memory that it uses more: a "
	    "launch takes %llu us, before it took %llu (movable.follow)",
	    (unsigned long long)state.base_ns / 1000, (unsigned long long)state.first_ns / 1000);
	spill_note("follow", text);
}

static uint64_t before(const struct spill_launch_access *access)
{
	uint64_t site = site_of(access), placement = placement_of(access, site), now = spill_clock_ns();
	enum spill_trial_step step = spill_trial_next(&state, access->site, site, placement, now);
	if (step != SPILL_TRIAL_NOTHING && spill_mover_trylock()) {
		take_step(step, access, site);
		if (step == SPILL_TRIAL_KEEP) /* the next trial follows at once */
			take_step(spill_trial_next(&state, access->site, site, placement, now), access, site);
		spill_mover_unlock();
		placement = placement_of(access, site);
	}
	/* Nothing else moves memory while launches are compared. */
	if (spill_trial_compares(&state, site))
		spill_chunked_hold(now + HOLD_NS + 2 * state.base_ns);
	note_better();
	return spill_trial_wants_sample(&state, site) ? placement : 0;
}

uint64_t spill_trial_before(const struct spill_launch_access *access)
{
	if (pthread_mutex_trylock(&lock))
		return 0;
	uint64_t placement = before(access);
	pthread_mutex_unlock(&lock);
	return placement;
}

void spill_trial_measured(const struct spill_stopwatch_access *access, uint64_t ns)
{
	if (!access->placement || pthread_mutex_trylock(&lock))
		return;
	spill_trial_sample(&state, access->placement, ns);
	pthread_mutex_unlock(&lock);
}

void spill_trial_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	if (state.site) /* a child of a process without trials does not touch the pages */
		state = (struct spill_placement_trial){0};
	note_count = 0;
}

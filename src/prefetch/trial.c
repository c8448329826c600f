#include "trial.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "chunk_list.h"
#include "chunk_map.h"
#include "clock.h"
#include "exchange.h"
#include "hash.h"
#include "movable.h"
#include "note.h"
#include "placement_trial.h"
#include "process.h"
#include "gate.h"

/* Promotion pauses this long after a launch, while a trial goes on. */
#define HOLD_NS 500000000ull
/* Most notes about a better placement. */
#define MOST_NOTES 4

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_TRIAL */
/* The lock guards these. */
static struct spill_placement_trial *trial;
static unsigned note_count;
static uint64_t noted, first_ns;

/* The state is mapped at the first need. pre: locked. False: no memory */
static bool ensure_trial(void)
{
	if (!trial) {
		void *made =
		    mmap(NULL, sizeof(*trial), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		trial = made == MAP_FAILED ? NULL : made;
	}
	return trial;
}

/* Names a site and the present placement of its memory; never 0. */
static uint64_t placement_of(const struct spill_launch_access *access)
{
	uint64_t name = spill_hash(1, access->site);
	for (unsigned i = 0; i < access->count; i++) {
		struct spill_chunk_map_entry entry;
		uint64_t va = (uint64_t)access->keys[i] << SPILL_CHUNK_MAP_UNIT_SHIFT;
		if (spill_chunk_map_of(va, &entry) && entry.on_host)
			name = spill_hash(name, entry.key);
	}
	return name | 1;
}

/* -- exchanging -------------------------------------------------------------------------------- */

/*
 * Carries out an exchange of the listed chunks for which `changes` is true. Their new sides are their
 * own: no exchange undoes them. Returns the time of the moves; 0: nothing moved. pre: the mover is held
 */
static uint64_t exchange_chunks(const struct spill_chunk_list *list, const struct spill_trial_chunk *chunks,
                                const struct spill_chunked *any)
{
	struct spill_exchange exchange = {.backend = any->base.backend, .device = any->base.device};
	for (unsigned i = 0; i < list->count; i++)
		if (chunks[i].chosen &&
		    !spill_exchange_add(&exchange, list->chunks[i].data, list->chunks[i].index))
			break;
	if (!exchange.comes.count && !exchange.goes.count)
		return 0;
	spill_exchange_carry_out(&exchange,
	                         spill_clock_ns() + spill_process_policy()->movable_wait_us * 1000);
	for (unsigned i = 0; i < list->count; i++) {
		struct spill_chunked *chunked = list->chunks[i].data;
		if (chunks[i].chosen)
			chunked->chunks[list->chunks[i].index].displaced = false;
	}
	return exchange.ns;
}

static void fill_chunks(const struct spill_chunk_list *list, struct spill_trial_chunk *chunks)
{
	for (unsigned i = 0; i < list->count; i++) {
		const struct spill_exchange_chunk *chunk = &list->chunks[i];
		chunks[i] = (struct spill_trial_chunk){
		    .key = chunk->key,
		    .owner = ((const struct spill_chunked *)chunk->data)->range,
		    .bytes = chunk->bytes,
		    .on_host = chunk->on_host,
		    .fixed = chunk->fixed,
		    .named = chunk->needed || chunk->maybe,
		};
	}
}

/* Chooses those of the trial that is undone, which are where it put them. */
static void choose_moved(struct spill_trial_chunk *chunks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		chunks[i].chosen =
		    !chunks[i].fixed && spill_trial_moved(trial, chunks[i].key, chunks[i].on_host);
}

/* -- steps. pre: locked ------------------------------------------------------------------------ */

static void note_better(void)
{
	char text[256];
	if (trial->kept == noted || trial->phase != SPILL_TRIAL_RESTS || note_count == MOST_NOTES)
		return;
	noted = trial->kept;
	note_count++;
	snprintf(
	    text, sizeof(text),
	    "memory that a graph uses little is on the host now, in place of memory that it uses more: a "
	    "launch takes %llu us, before it took %llu (movable.follow)",
	    (unsigned long long)trial->base_ns / 1000, (unsigned long long)first_ns / 1000);
	spill_note("follow", text);
}

/* pre: the mover is held, too */
static void take_step(enum spill_trial_step step, const struct spill_launch_access *access)
{
	struct spill_chunked *any = spill_chunk_list_allocation(access);
	struct spill_chunk_list list;
	if (!any || !spill_movable_may_move(any->base.backend, any->base.device))
		return;
	bool listed = spill_chunk_list_make(&list, any->base.device, access);
	struct spill_trial_chunk *chunks = listed ? calloc(list.count + 1, sizeof(*chunks)) : NULL;
	if (chunks) {
		fill_chunks(&list, chunks);
		if (step == SPILL_TRIAL_UNDO) {
			choose_moved(chunks, list.count);
			uint64_t ns = exchange_chunks(&list, chunks, any);
			spill_trial_undone(trial, ns ? placement_of(access) : 0, spill_clock_ns());
		} else if (spill_trial_choose(trial, chunks, list.count, spill_clock_ns())) {
			first_ns = first_ns ? first_ns : trial->base_ns;
			uint64_t ns = exchange_chunks(&list, chunks, any);
			spill_trial_begun(trial, ns ? placement_of(access) : 0, spill_clock_ns(), ns);
		}
	}
	free(chunks);
	spill_chunk_list_free(&list);
}

static uint64_t before(const struct spill_launch_access *access)
{
	uint64_t placement = placement_of(access), now = spill_clock_ns();
	enum spill_trial_step step = spill_trial_next(trial, access->site, placement, now);
	if (step != SPILL_TRIAL_NOTHING && spill_mover_trylock()) {
		take_step(step, access);
		spill_mover_unlock();
		placement = placement_of(access);
	}
	/* Nothing else moves memory while launches are compared. */
	if (trial->site == access->site && trial->phase != SPILL_TRIAL_RESTS)
		spill_chunked_hold(now + HOLD_NS + 2 * trial->base_ns);
	note_better();
	return spill_trial_wants_sample(trial, access->site) ? placement : 0;
}

uint64_t spill_trial_before(const struct spill_launch_access *access)
{
	uint64_t placement = 0;
	if (pthread_mutex_trylock(&lock))
		return 0;
	if (ensure_trial())
		placement = before(access);
	pthread_mutex_unlock(&lock);
	return placement;
}

void spill_trial_measured(const struct spill_stopwatch_access *access, uint64_t ns)
{
	if (!access->placement || pthread_mutex_trylock(&lock))
		return;
	if (trial)
		spill_trial_sample(trial, access->placement, ns);
	pthread_mutex_unlock(&lock);
}

void spill_trial_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	/* Not unmapped: a signal handler that forks may have interrupted a thread that uses it. */
	if (trial)
		*trial = (struct spill_placement_trial){0};
	note_count = 0;
	noted = first_ns = 0;
}

#include "graph_modes.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "clock.h"
#include "graph_mode.h"
#include "hash.h"
#include "note.h"

/* Places in sets: a graph is in the one that its site names. */
#define SET_BITS 6
#define SET_PLACES 4
/* Most notes about graphs that are launched otherwise. */
#define MOST_NOTES 4

_Atomic bool spill_graph_modes_used;

struct place {
	struct spill_graph_mode mode;
	uint64_t asked; /* when it was asked for last, as a number; 0: never */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_GRAPH_MODES */
/* The lock guards these. */
static struct place places[1 << SET_BITS][SET_PLACES];
static uint64_t asked;
static unsigned note_count;

/* The graph's place, or the one of its set that was asked for least recently. pre: locked */
static struct place *place_of(uint64_t site)
{
	struct place *set = places[spill_hash_key((uint32_t)(site ^ site >> 32), SET_BITS)], *oldest = set;
	for (struct place *place = set; place < set + SET_PLACES; place++) {
		if (place->mode.site == site)
			return place;
		if (place->asked < oldest->asked)
			oldest = place;
	}
	return oldest;
}

/*
 * `fresh`: a graph of which nothing is known gets a place. NULL: nothing is known of it, or the lock is contended,
 * because a launch does not wait here. Else locked.
 */
static struct spill_graph_mode *lock_mode(uint64_t site, bool fresh)
{
	if (pthread_mutex_trylock(&lock))
		return NULL;
	struct place *place = place_of(site);
	if (place->mode.site != site) {
		if (!fresh) {
			pthread_mutex_unlock(&lock);
			return NULL;
		}
		place->mode = (struct spill_graph_mode){.site = site};
	}
	place->asked = ++asked;
	return &place->mode;
}

bool spill_graph_modes_whole(const struct spill_launch_access *access, uint64_t copy_ns)
{
	struct spill_graph_mode *mode = lock_mode(access->site, true);
	if (!mode)
		return false;
	bool timed = spill_graph_mode_whole(mode, access->stream, (access->host_bytes >> 20) * copy_ns,
	                                    spill_clock_ns());
	/* From now on launches of graphs are looked at, so that their order is known when the first is by nodes. */
	atomic_store_explicit(&spill_graph_modes_used, true, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return timed;
}

bool spill_graph_modes_by_nodes(uint64_t site)
{
	struct spill_graph_mode *mode = lock_mode(site, false);
	if (!mode)
		return false;
	bool is = spill_graph_mode_by_nodes(mode, spill_clock_ns());
	pthread_mutex_unlock(&lock);
	return is;
}

void spill_graph_modes_refused(uint64_t site)
{
	struct spill_graph_mode *mode = lock_mode(site, false);
	if (!mode)
		return;
	spill_graph_mode_refused(mode, spill_clock_ns());
	pthread_mutex_unlock(&lock);
}

bool spill_graph_modes_wants_nodes(uint64_t site)
{
	struct spill_graph_mode *mode = lock_mode(site, false);
	if (!mode)
		return true;
	bool wants = spill_graph_mode_wants_nodes(mode, spill_clock_ns());
	pthread_mutex_unlock(&lock);
	return wants;
}

/* pre: locked */
static void note_change(const struct spill_graph_mode *mode, enum spill_graph_phase before)
{
	char text[256];
	if (mode->phase == before || note_count == MOST_NOTES)
		return;
	if (before == SPILL_GRAPH_TRIES && mode->phase == SPILL_GRAPH_NODES) {
		note_count++;
		snprintf(text, sizeof(text),
		         "the nodes of a graph are launched one by one, and memory comes before those that "
		         "use it: "
		         "a launch takes %llu us, as a whole it took %llu (movable.follow)",
		         (unsigned long long)mode->nodes_ns / 1000,
		         (unsigned long long)mode->whole_ns / 1000);
		spill_note("follow", text);
	} else if (before == SPILL_GRAPH_NODES ||
	           (before == SPILL_GRAPH_LOOKS && mode->phase == SPILL_GRAPH_WHOLE)) {
		note_count++;
		spill_note("follow",
		           "a graph is launched as a whole again, because its nodes one by one take longer "
		           "by now (movable.follow)");
	}
}

void spill_graph_modes_measured(const struct spill_stopwatch_access *access, uint64_t ns)
{
	struct spill_graph_mode *mode = access->graph ? lock_mode(access->graph, false) : NULL;
	if (!mode)
		return;
	enum spill_graph_phase before = mode->phase;
	spill_graph_mode_sample(mode, access->by_nodes, ns, spill_clock_ns());
	note_change(mode, before);
	pthread_mutex_unlock(&lock);
}

void spill_graph_modes_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	if (atomic_exchange(&spill_graph_modes_used, false)) /* else a child does not touch the pages */
		memset(places, 0, sizeof(places));
	asked = note_count = 0;
}

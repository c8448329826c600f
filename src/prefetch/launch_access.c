#include "launch_access.h"

#include <errno.h>
#include <string.h>

#include "audit.h"
#include "prefetch.h"
#include "overlap.h"
#include "exchange.h"
#include "gate.h"
#include "graph_access.h"
#include "graph_modes.h"
#include "chunk_map.h"
#include "clock.h"
#include "in_place.h"
#include "host_chunks.h"
#include "chunked.h"
#include "process.h"
#include "registry.h"
#include "stopwatch.h"
#include "access_model.h"
#include "access_recording.h"
#include "rest.h"
#include "trial.h"

_Atomic bool spill_launch_access_wanted;

static const struct spill_launch_calls *stand_in; /* set before there are threads */

void spill_launch_access_use(const struct spill_launch_calls *other)
{
	stand_in = other;
}

/* On the device and context of this thread. */
static void *start_in(void *stream, bool per_thread, const struct spill_stopwatch_access *timed)
{
	const struct spill_backend *backend = spill_backend_for(SPILL_CUDA_DRIVER);
	void *context;
	int device;
	return backend && backend->devices->current(&device, &context)
	           ? spill_stopwatch_start(backend, device, context, stream, per_thread, timed)
	           : NULL;
}

static void *start_stopwatch(const struct spill_launch_access *access,
                             const struct spill_access_advice *advice, uint64_t placement, uint64_t number)
{
	struct spill_stopwatch_access timed = {
	    .site = advice->site,
	    .on_host = access->host_bytes,
	    .work_ns = advice->work_ns,
	    .waited = advice->waited,
	    .placement = placement,
	    .graph = access->graph ? access->site : 0,
	    .number = number,
	};
	/* A trial may have moved them since. */
	timed.count = placement ? 0 : (uint8_t)spill_launch_access_host_keys(access);
	memcpy(timed.keys, access->host_keys, timed.count * sizeof(timed.keys[0]));
	return start_in(access->stream, access->per_thread, &timed);
}

/* A recording has times of as many launches as there are stopwatches, first of those in place. */
static bool recording_wants_time(const struct spill_launch_access *access)
{
	return spill_access_recording_on() &&
	       (access->on_host || spill_stopwatch_pending() < SPILL_STOPWATCHES / 2);
}

static bool is_tried(const struct spill_launch_access *access)
{
	return access->graph && access->on_host &&
	       spill_process_policy()->movable_follow == SPILL_FOLLOW_AUTO;
}

static bool is_on_host(uint32_t key, struct spill_chunk_map_entry *entry)
{
	return spill_chunk_map_of((uint64_t)key << SPILL_CHUNK_MAP_UNIT_SHIFT, entry) && entry->on_host;
}

/* Its bytes on the host now. */
static uint64_t still_on_host(const struct spill_launch_access *access)
{
	struct spill_chunk_map_entry entry;
	uint64_t bytes = 0;
	for (unsigned i = 0; i < access->count; i++)
		if (is_on_host(access->keys[i], &entry))
			bytes += (uint64_t)entry.count << SPILL_CHUNK_MAP_UNIT_SHIFT;
	return bytes;
}

/* False: chunks of the launch moved since its hint was read, because an exchange was undone, or there was room. */
static bool is_as_hinted(const struct spill_launch_access *access)
{
	struct spill_chunk_map_entry entry;
	for (unsigned i = 0; i < spill_launch_access_host_keys(access); i++)
		if (!is_on_host(access->host_keys[i], &entry))
			return false;
	return still_on_host(access) == access->host_bytes;
}

/* For the reports: memory on the host that the launch uses where it is. */
static void count_in_place(const struct spill_launch_access *access, const struct spill_access_advice *advice,
                           bool came)
{
	if (advice->bring && !advice->looks)
		spill_access_model_left_in_place(advice, came ? still_on_host(access) : access->host_bytes);
	if (advice->tells)
		spill_in_place_tell(false);
}

/*
 * Launches are reported before anything is on the host, too, from the first movable memory on: what they
 * teach serves the first exchanges. The second to fifth step of a training took up to twice as long without
 * (measured, H200). A program that never needs it pays for so many launches, and for no longer than that.
 */
#define EARLY_LAUNCHES 20000
#define EARLY_NS 60000000000ull

static _Atomic unsigned early_launches;
static _Atomic uint64_t early_since_ns; /* 0: no movable memory so far */

static bool is_early(void)
{
	uint64_t since = atomic_load(&early_since_ns);
	return since && atomic_load_explicit(&early_launches, memory_order_relaxed) < EARLY_LAUNCHES &&
	       spill_clock_ns() - since < EARLY_NS;
}

static void count_early(void)
{
	if (!spill_chunked_on_host() && atomic_fetch_add(&early_launches, 1) + 1 == EARLY_LAUNCHES)
		spill_chunked_tell();
}

/* True: it goes on. */
static bool maintain_early(void)
{
	if (!atomic_load_explicit(&spill_launch_access_wanted, memory_order_relaxed) ||
	    spill_chunked_on_host())
		return false;
	bool early = is_early();
	if (!early)
		spill_chunked_tell();
	return early;
}

/* True: some of it came. While memory is away, what cannot fly now is used in place. */
static bool bring(const struct spill_launch_access *access, const struct spill_access_advice *advice,
                  bool overlaps)
{
	bool came = overlaps && spill_overlap_bring(access, advice);
	return came || (!(overlaps && spill_overlap_away()) && spill_prefetch(access, advice));
}

void *spill_before_launch(const struct spill_launch_access *access)
{
	if (stand_in)
		return stand_in->before(access);
	int error = errno, cancel = spill_ours_begin();
	count_early();
	void *stopwatch = NULL;
	struct spill_access_advice advice = spill_access_model_learn(access);
	bool follows = spill_process_policy()->movable_follow != SPILL_FOLLOW_OFF;
	bool overlaps = spill_overlap_wanted();
	if (advice.pause_change != SPILL_PAUSE_SAME)
		spill_prefetch_note_pause(&advice);
	bool came = follows && advice.bring && bring(access, &advice, overlaps);
	/* A stop would map all that is away, which takes longer than the accesses in place. */
	if (!came && !overlaps)
		spill_prefetch_left_in_place(access, &advice);
	count_in_place(access, &advice, came);
	bool tried = !came && advice.learned && is_tried(access);
	uint64_t placement = tried ? spill_trial_before(access) : 0;
	bool compared = tried && spill_graph_modes_whole(access, advice.copy_ns);
	uint64_t number = spill_access_recording_launch(access, advice.site);
	bool timed =
	    (advice.timed || compared || recording_wants_time(access)) && !came && is_as_hinted(access);
	if (timed || placement)
		stopwatch = start_stopwatch(access, &advice, placement, number);
	if (overlaps)
		spill_overlap_ahead(access, &advice);
	spill_ours_end(cancel);
	errno = error;
	return stopwatch;
}

void *spill_before_nodes(uint64_t site, void *stream)
{
	int error = errno, cancel = spill_ours_begin();
	spill_access_model_by_nodes();
	void *stopwatch =
	    start_in(stream, false, &(const struct spill_stopwatch_access){.graph = site, .by_nodes = true});
	spill_ours_end(cancel);
	errno = error;
	return stopwatch;
}

void spill_after_launch(void *stopwatch)
{
	if (stand_in) {
		stand_in->after(stopwatch);
		return;
	}
	int error = errno, cancel = spill_ours_begin();
	if (!spill_audit_after(stopwatch))
		spill_stopwatch_stop(stopwatch);
	spill_ours_end(cancel);
	errno = error;
}

/* With `on` each launch counts, with `overlap` each must be told, and a recording has all. */
static bool may_rest(void)
{
	return spill_chunked_on_host() && spill_process_policy()->movable_follow == SPILL_FOLLOW_AUTO &&
	       !spill_access_recording_on() && !spill_audit_wanted() && !spill_process_observes();
}

void spill_launch_access_moved(void)
{
	if (!atomic_load(&early_since_ns)) /* one call at a time */
		atomic_store(&early_since_ns, spill_clock_ns());
	spill_rest_moved();
	bool follows = spill_process_policy()->movable_follow != SPILL_FOLLOW_OFF &&
	               (spill_chunked_on_host() ? !spill_rest_on() : is_early());
	bool wanted =
	    (follows || spill_access_recording_on() || spill_audit_wanted()) && !spill_process_observes();
	if (wanted != atomic_load_explicit(&spill_launch_access_wanted, memory_order_relaxed))
		atomic_store(&spill_launch_access_wanted, wanted);
	if (may_rest())
		spill_gate_want_maintenance();
}

bool spill_launch_access_maintain(void)
{
	bool more = maintain_early();
	more |= spill_host_chunks_trim();
	if (may_rest()) {
		spill_rest_maintain();
		more = true;
	}
	if (!spill_exchange_kept())
		return more;
	if ((!spill_chunked_is_held() || !spill_chunked_on_host()) && spill_mover_trylock()) {
		spill_exchange_drop();
		spill_mover_unlock();
	}
	return true;
}

void spill_launch_access_reset(void)
{
	atomic_store(&spill_launch_access_wanted, false);
	atomic_store(&early_launches, 0);
	atomic_store(&early_since_ns, 0);
	spill_exchange_reset();
	spill_graph_access_reset();
	spill_stopwatch_reset();
	spill_prefetch_reset();
	spill_overlap_reset();
	spill_audit_reset();
	spill_trial_reset();
	spill_graph_modes_reset();
	spill_access_model_reset();
	spill_in_place_reset();
	spill_rest_reset();
	spill_access_recording_reset();
}

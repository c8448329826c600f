#include "access_model.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "access_model_state.h"
#include "clock.h"
#include "chunked.h"
#include "graph_modes.h"
#include "minmax.h"
#include "param_extent.h"
#include "process.h"
#include "stopwatch.h"
#include "access_recording.h"
#include "trial.h"

#define MS 1000000ull

/*
 * A chunk's row of accesses ends after a quarter of the program's period without one, and at the
 * latest after this many accesses.
 */
#define PERIOD_SHARE 4
#define GAP_LEAST 64
#define GAP_MOST 1024
/* An access is timed at least this often. */
#define PROBE_NS (10 * MS)
/* After this time pending measurements count as lost: no thread uses their contexts any more. */
#define LOST_NS (1000 * MS)
/* How often the sums of accesses in place are told. */
#define TELL_NS (250 * MS)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_ACCESS_MODEL */
static struct spill_access_model *model;
static _Atomic uint64_t measurements; /* measurements so far */
static _Atomic uint64_t missed_bytes; /* used in place by accesses that were not learned */

/* pre: locked. False: no memory for the model */
static struct spill_access_model *ensure_model(void)
{
	if (!model) {
		void *made =
		    mmap(NULL, sizeof(*model), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		model = made == MAP_FAILED ? NULL : made;
	}
	return model;
}

struct spill_access_model *spill_access_model_lock(void)
{
	pthread_mutex_lock(&lock);
	return model;
}

void spill_access_model_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

/* A launch was submitted that takes about so long. pre: locked */
static void add_work(uint64_t ns)
{
	model->since_ns += ns;
	model->work_ns += ns;
}

/* The same of a launch with all its memory on the device. pre: locked */
static void add_resident_work(uint16_t site)
{
	uint64_t ns = spill_benefit_most_resident(&model->benefit, site);
	model->since_unknown |= ns == UINT64_MAX;
	add_work(ns == UINT64_MAX ? 0 : ns);
}

/* Brings busy_until_ns up to now, with the work since the last call. pre: locked */
static void count_work(uint64_t now)
{
	uint64_t done_ns = spill_max(model->busy_until_ns, model->read_ns) + model->since_ns;
	uint64_t idle_ns = model->since_unknown ? 0 : spill_minus(now, done_ns);
	model->busy_until_ns = spill_max(done_ns, now);
	model->read_ns = now;
	model->since_ns = 0;
	model->since_unknown = false;
	if (spill_exchange_lead_follow(&model->lead, idle_ns, now))
		spill_access_model_end_lead(model);
}

/*
 * A launch is done, so at most the work that was submitted after it is left. The estimate can be
 * longer, because it assumes one stream of work. pre: locked
 */
static void bound_busy_time(uint64_t left_ns)
{
	uint64_t now = spill_clock_ns();
	count_work(now);
	model->busy_until_ns = spill_min(model->busy_until_ns, now + left_ns);
}

/* True: every access that a chunk on the host is needed for brings it, whatever it costs. */
static bool brings_always(void)
{
	return spill_process_policy()->movable_follow == SPILL_FOLLOW_ON;
}

/*
 * True: the launch took so long because it accessed memory on the host that is not known. Then the
 * next launches of its code are expected to access more. False also for code that is given up, which
 * does other work. pre: locked
 */
static bool accessed_unknown(const struct spill_stopwatch_access *access, uint64_t ns)
{
	uint64_t code = model->benefit.sites[access->site].hash;
	if (access->on_host || !code || !spill_chunked_on_host())
		return false;
	if (spill_benefit_is_unexplained(&model->benefit, access->site, ns))
		return spill_param_extent_too_short(code);
	spill_param_extent_suffices(code);
	return false;
}

/* pre: locked */
static void learn_time(const struct spill_stopwatch_access *access, uint64_t ns)
{
	if (accessed_unknown(access, ns)) {
		spill_benefit_look_closer(&model->benefit, access->site);
		return;
	}
	spill_benefit_add_use(&model->benefit, access->site, access->on_host, ns);
	if (access->on_host)
		spill_in_place_cost_measured(&model->in_place, &model->benefit, access->site, access->waited,
		                             ns);
	for (unsigned i = 0; i < access->count; i++)
		spill_benefit_add_chunk_use(&model->benefit, access->site, access->keys[i], access->on_host,
		                            ns);
}

/*
 * In a program that is bound by its launches there are no other times of short ones, which read little of the memory that
 * they name. Such a time tells what is lost at most, or how long the device is busy at most. It is not compared with others. pre: locked
 */
static void learn_bound(const struct spill_stopwatch_access *access, uint64_t ns)
{
	spill_benefit_add_bound(&model->benefit, access->site, access->on_host, ns);
}

/* pre: locked */
static void learn_measurement(const struct spill_stopwatch_access *access,
                              const struct spill_stopwatch_time *time)
{
	model->behind_ns = time->behind_ns;
	if (time->behind_ns)
		bound_busy_time(model->work_ns - access->work_ns);
	learn_time(access, time->ns);
}

/* Adds a measurement. Dropped if the lock is contended. */
static void add_measurement(const struct spill_stopwatch_access *access,
                            const struct spill_stopwatch_time *time)
{
	if (!time->at_most) {
		atomic_fetch_add(&measurements, 1);
		spill_graph_modes_measured(access, time->ns);
		if (access->by_nodes) /* its launches are measured, too */
			return;
		spill_access_recording_time(access->number, access->on_host, time->ns);
		spill_trial_measured(access, time->ns);
	}
	if (brings_always() || pthread_mutex_trylock(&lock))
		return;
	if (model && time->at_most)
		learn_bound(access, time->ns);
	else if (model)
		learn_measurement(access, time);
	pthread_mutex_unlock(&lock);
}

/* Accesses of chunks without one of a chunk that end its row. pre: locked */
static uint64_t gap(void)
{
	uint64_t period = model->history.count - model->history.next;
	/* The history has accesses of buffers, which have one chunk or many. */
	period = period * model->chunk_accesses / spill_max(model->history.count, 1);
	return spill_min(spill_max(period / PERIOD_SHARE, GAP_LEAST), GAP_MOST);
}

/*
 * In-place cost of a MiB of the access, as the mean over its first chunks on the host. `*worth`: an
 * exchange may pay for one of them. pre: locked
 */
static uint64_t excess_of_access(const struct spill_launch_access *access, uint16_t site, uint64_t now,
                                 bool *worth)
{
	unsigned count = spill_launch_access_host_keys(access);
	uint64_t sum = 0, least = spill_benefit_copy_cost(&model->benefit), row_gap = gap();
	struct spill_idle_point at = spill_access_model_point(model);
	for (unsigned i = 0; i < count; i++) {
		uint32_t key = access->host_keys[i];
		uint64_t cost = spill_benefit_chunk_excess(&model->benefit, site, key);
		spill_idle_window_use(&model->idle, at, spill_chunk_stay_gap(&model->stays, key, at.use));
		uint64_t row = spill_chunk_stay_add(&model->stays, key, model->chunk_accesses, row_gap, cost);
		/* An access that is costly by itself counts even while its chunk pauses. */
		*worth |= (row > least && spill_chunk_stay_may_try(&model->stays, key, now)) ||
		          spill_benefit_pays(&model->benefit, cost, model->moves[site]);
		sum += cost;
	}
	return count ? sum / count : 0;
}

/* Estimated time until the device is idle. pre: locked */
static uint64_t busy_time(uint64_t now)
{
	count_work(now);
	return spill_max(model->busy_until_ns - now, model->behind_ns);
}

/* True: time this access, so that the device's delay is known. pre: locked */
static bool needs_probe(uint64_t now)
{
	uint64_t ago_ns = now - model->probed_ns;
	bool is = ago_ns >= PROBE_NS && (ago_ns >= LOST_NS || !spill_stopwatch_pending());
	if (is)
		model->probed_ns = now;
	return is;
}

/*
 * True: the costs of some of its chunks on the host are not known well enough. `*known`: each of them
 * was measured. pre: locked
 */
static bool has_unknown_cost(const struct spill_launch_access *access, uint16_t site, bool *known)
{
	bool timed = false;
	*known = true;
	for (unsigned i = 0; i < spill_launch_access_host_keys(access); i++)
		timed |= spill_site_chunk_cost_wants_sample(&model->benefit.pairs, site, access->host_keys[i],
		                                            access->host_bytes >> 10, known);
	return timed;
}

/* The access uses memory where it is, on the host. pre: locked */
static void add_in_place(uint16_t site, uint64_t host_bytes, uint64_t ns, bool known)
{
	spill_in_place_cost_add(&model->in_place, &model->benefit, site, host_bytes, ns, known);
}

/*
 * True: it is time to look for a swap, at any access in place. Those that cost less than a copy are considered ever more
 * rarely. pre: locked
 */
static bool is_look_due(const struct spill_launch_access *access, uint64_t now)
{
	struct spill_access_point at = spill_access_model_now(model, now);
	return spill_access_model_is_auto() && !access->graph &&
	       (spill_swap_window_is_due(&model->swaps, &at) ||
	        spill_idle_window_is_due(&model->idle, spill_access_model_point(model), now));
}

/*
 * True: exchanges pause, so it stays in place. The memory of a graph finds its places by trials, which another
 * trial would disturb. pre: locked
 */
static bool is_paused(struct spill_access_advice *advice, const struct spill_launch_access *access,
                      uint64_t now)
{
	if (!spill_access_model_is_auto() || access->graph) {
		model->pause = (struct spill_exchange_pause){0};
		return false;
	}
	struct spill_access_point at = spill_access_model_now(model, now);
	advice->pause_change = spill_exchange_pause_access(&model->pause, &at);
	advice->pause_was_ns = model->pause.was_ns;
	advice->pause_is_ns = model->pause.is_ns;
	return spill_exchange_pauses(&model->pause);
}

/*
 * Fills the advice for an access to memory on the host. Apart, so that other accesses do not save
 * registers for it. pre: locked
 */
static __attribute__((noinline)) void fill_advice(struct spill_access_advice *advice,
                                                  const struct spill_launch_access *access, bool always)
{
	uint64_t now = spill_clock_ns();
	bool worth = always;
	uint64_t excess_ns = excess_of_access(access, advice->site, now, &worth);
	bool paused = is_paused(advice, access, now);
	worth &= !paused;
	advice->looks = !worth && is_look_due(access, now);
	advice->bring = worth || advice->looks;
	advice->busy_ns = busy_time(now);
	advice->copy_ns = spill_benefit_copy_cost(&model->benefit);
	if (!worth && !paused)
		spill_benefit_doubt_copies(&model->benefit, now);
	bool known = false;
	advice->timed = !always && (has_unknown_cost(access, advice->site, &known) || needs_probe(now));
	uint64_t ns = spill_benefit_expected(&model->benefit, advice->site, access->host_bytes, excess_ns);
	add_work(ns);
	if (worth)
		advice->excess_ns = excess_ns;
	else
		add_in_place(advice->site, access->host_bytes, ns, known);
	model->lost_ns += spill_min(ns - model->benefit.sites[advice->site].resident_ns,
	                            spill_benefit_most_lost(&model->benefit, advice->site));
	advice->waited = model->benefit.sites[advice->site].waiting;
	if (!model->in_place_since_ns)
		model->in_place_since_ns = now;
	advice->tells = now >= model->tell_ns;
}

/* Fills the advice, which is all zero. pre: locked */
static void learn_access(struct spill_access_advice *advice, const struct spill_launch_access *access,
                         bool always)
{
	advice->learned = true;
	model->disturbed |= access->graph;
	advice->site = spill_benefit_site(&model->benefit, access->site);
	spill_access_history_launch(&model->history, access->ranges, access->range_count, advice->site);
	model->chunk_accesses += access->count;
	if (access->once)
		return;
	if (access->on_host)
		fill_advice(advice, access, always);
	else
		add_resident_work(advice->site);
	/*
	 * Called each time, because it counts the launches. Launches with all memory on the device leave
	 * half of the stopwatches to the others. While nothing is on the host, the driver sees the program's
	 * calls only, and such a launch does not count.
	 */
	bool wants = spill_chunked_on_host() &&
	             spill_benefit_wants_sample(&model->benefit, advice->site, access->host_bytes);
	advice->timed |=
	    !always && wants && (access->on_host || spill_stopwatch_pending() < SPILL_STOPWATCHES / 2);
	advice->work_ns = model->work_ns;
}

struct spill_access_advice spill_access_model_learn(const struct spill_launch_access *access)
{
	struct spill_access_advice advice = {0};
	bool always = brings_always();
	if (!always || spill_access_recording_on())
		spill_stopwatch_collect(add_measurement);
	if (pthread_mutex_trylock(&lock)) {
		if (access->on_host && !access->once)
			atomic_fetch_add_explicit(&missed_bytes, access->host_bytes, memory_order_relaxed);
		return advice;
	}
	if (ensure_model())
		learn_access(&advice, access, always);
	pthread_mutex_unlock(&lock);
	return advice;
}

void spill_access_model_left_in_place(const struct spill_access_advice *advice, uint64_t host_bytes)
{
	if (!advice->learned || !host_bytes)
		return;
	pthread_mutex_lock(&lock);
	add_in_place(advice->site, host_bytes,
	             spill_benefit_expected(&model->benefit, advice->site, host_bytes, advice->excess_ns),
	             false);
	pthread_mutex_unlock(&lock);
}

bool spill_access_model_in_place(struct spill_in_place_sums *sums, bool all)
{
	if (pthread_mutex_trylock(&lock))
		return false;
	bool known = model;
	if (known) {
		uint64_t now = spill_clock_ns(), since = model->in_place_since_ns;
		uint64_t missed = atomic_exchange_explicit(&missed_bytes, 0, memory_order_relaxed);
		model->in_place.unknown_kib += missed >> 10;
		if (all)
			spill_in_place_cost_end(&model->in_place, &model->benefit);
		model->tell_ns = now + TELL_NS;
		*sums = spill_in_place_cost_sums(&model->in_place, since ? now - since : 0, all);
	}
	pthread_mutex_unlock(&lock);
	return known;
}

uint64_t spill_access_model_hear(void)
{
	spill_stopwatch_collect(add_measurement);
	return atomic_load(&measurements);
}

void spill_access_model_idle(void)
{
	pthread_mutex_lock(&lock);
	if (model) {
		model->busy_until_ns = model->since_ns = model->behind_ns = 0;
		model->read_ns = spill_clock_ns(); /* it worked until now */
	}
	pthread_mutex_unlock(&lock);
}

/* pre: locked */
static void read_activity(struct spill_access_activity *activity)
{
	const struct spill_exchange_pause *pause = &model->pause;
	activity->sums = (struct spill_learning_sums){model->history.count, model->lost_ns};
	activity->in_place = model->in_place;
	activity->disturbed = model->disturbed || pause->tries || pause->asks;
	model->disturbed = false;
}

bool spill_access_model_activity(struct spill_access_activity *activity)
{
	if (pthread_mutex_trylock(&lock))
		return false;
	bool known = model;
	if (known)
		read_activity(activity);
	pthread_mutex_unlock(&lock);
	return known;
}

void spill_access_model_rested(struct spill_access_activity *activity, uint64_t watched_ns,
                               uint64_t rested_ns)
{
	pthread_mutex_lock(&lock);
	spill_in_place_cost_rested(&model->in_place, &activity->in_place,
	                           model->lost_ns - activity->sums.lost_ns, watched_ns, rested_ns);
	spill_swap_window_interrupted(&model->swaps);
	spill_idle_window_interrupted(&model->idle);
	spill_exchange_pause_interrupted(&model->pause);
	read_activity(activity);
	pthread_mutex_unlock(&lock);
}

void spill_access_model_by_nodes(void)
{
	pthread_mutex_lock(&lock);
	if (model) {
		model->pause = (struct spill_exchange_pause){0};
		model->disturbed = true;
	}
	pthread_mutex_unlock(&lock);
}

void spill_access_model_reset(void)
{
	pthread_mutex_init(&lock, NULL);
	atomic_store(&missed_bytes, 0);
	/* Not unmapped: a signal handler that forks may have interrupted a thread that uses it. */
	if (model)
		memset(model, 0, sizeof(*model));
}

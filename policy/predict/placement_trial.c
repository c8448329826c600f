#include "placement_trial.h"

#include <string.h>

#include "hash.h"
#include "minmax.h"

#define MS 1000000ull
#define SECOND (1000 * MS)

/* A gain below this share of the launch is noise. */
#define NOISE_SHARE 200
/*
 * Trials that are undone may cost one part of SPENT_SHARE of the time, and the time of CREDIT launches
 * beforehand. After PATIENT failures in a row there are also pauses, ever longer ones.
 */
#define SPENT_SHARE 20
#define CREDIT 8
#define PATIENT 4
#define PAUSE_NS (1 * SECOND)
#define PAUSE_MOST_NS (300 * SECOND)
#define FAILURES_MOST 16
/* The first pause after an exchange that could not be done, because the device was busy, and the last. */
#define BUSY_NS (100 * MS)
#define BUSY_MOST_NS (10 * SECOND)
/* A site that is not launched for so long gives its turn to another. */
#define GONE_NS (2 * SECOND)
/* A phase whose samples do not arrive ends after so many launches: the driver may refuse timers. */
#define LAUNCHES_MOST 32
/*
 * At rest one launch of so many is timed. SLOW of them in a row that are slower by this share begin a
 * new measurement.
 */
#define RESTED 32
#define SLOWER_SHARE 20
#define SLOW 2
/* A trial ends with its first sample if that is slower by half. */
#define BAD_SHARE 2

/* -- costs ------------------------------------------------------------------------------------- */

static unsigned place_of(uint32_t key)
{
	return spill_hash_key(key, SPILL_TRIAL_COST_BITS);
}

const struct spill_trial_cost *spill_trial_find_cost(const struct spill_placement_trial *trial, uint32_t key)
{
	const struct spill_trial_cost *cost = &trial->costs[place_of(key)];
	return cost->key == key ? cost : NULL;
}

void spill_trial_set_cost(struct spill_placement_trial *trial, uint32_t key, uint64_t ns)
{
	trial->costs[place_of(key)] =
	    (struct spill_trial_cost){.key = key, .ns = (uint32_t)spill_min(ns, UINT32_MAX)};
}

/* -- samples ----------------------------------------------------------------------------------- */

_Static_assert(SPILL_TRIAL_SAMPLES == 3, "spill_median_of_three takes as many");

static void enter_phase(struct spill_placement_trial *trial, enum spill_trial_phase phase)
{
	trial->phase = phase;
	trial->sampled = trial->tried = trial->launches = 0;
}

static bool is_compared(const struct spill_placement_trial *trial)
{
	return trial->phase == SPILL_TRIAL_MEASURES || trial->phase == SPILL_TRIAL_TRIES;
}

static bool is_bad(const struct spill_placement_trial *trial, uint64_t ns)
{
	return trial->phase == SPILL_TRIAL_TRIES && ns > trial->base_ns + trial->base_ns / BAD_SHARE;
}

bool spill_trial_is_slower(const struct spill_placement_trial *trial, uint64_t ns)
{
	return trial->settled_ns && ns > trial->settled_ns + trial->settled_ns / SLOWER_SHARE;
}

bool spill_trial_wants_sample(const struct spill_placement_trial *trial, uint64_t site)
{
	if (trial->site != site)
		return false;
	if (trial->phase == SPILL_TRIAL_RESTS)
		return trial->launches % RESTED == 0;
	return is_compared(trial) && trial->sampled < SPILL_TRIAL_SAMPLES;
}

bool spill_trial_compares(const struct spill_placement_trial *trial, uint64_t site)
{
	bool vain = trial->phase == SPILL_TRIAL_UNDOES && trial->busy_ns;
	return trial->site == site && trial->phase != SPILL_TRIAL_RESTS && !vain;
}

/* At rest. Others may have moved memory since the last trial: then the first sample is the measure. */
static void watch(struct spill_placement_trial *trial, uint64_t ns)
{
	if (!trial->settled_ns)
		trial->settled_ns = ns;
	trial->slow = spill_trial_is_slower(trial, ns) ? trial->slow + 1 : 0;
	if (trial->slow < SLOW)
		return;
	trial->slow = 0;
	enter_phase(trial, SPILL_TRIAL_MEASURES);
	if (trial->over_budget)
		return;
	trial->next_ns = 0;
	trial->failures = 0;
}

void spill_trial_sample(struct spill_placement_trial *trial, uint64_t placement, uint64_t ns)
{
	if (trial->placement != placement)
		return;
	if (trial->phase == SPILL_TRIAL_RESTS) {
		watch(trial, ns);
		return;
	}
	trial->tried++;
	while (is_compared(trial) && trial->sampled < SPILL_TRIAL_SAMPLES) {
		trial->samples[trial->sampled++] = ns;
		if (!is_bad(trial, ns))
			return;
	}
}

/* -- verdicts ---------------------------------------------------------------------------------- */

static void adopt(struct spill_placement_trial *trial, uint64_t code, uint64_t site, uint64_t placement,
                  uint64_t now_ns)
{
	if (trial->code != code) {
		memset(trial, 0, sizeof(*trial));
		trial->adopted_ns = now_ns;
	}
	trial->code = code;
	trial->site = site;
	trial->placement = placement;
	trial->settled_ns = 0;
	enter_phase(trial, SPILL_TRIAL_MEASURES);
}

void spill_trial_rest(struct spill_placement_trial *trial, uint64_t now_ns)
{
	unsigned doubled = trial->failures > PATIENT ? trial->failures - PATIENT : 0;
	uint64_t allowed = CREDIT * trial->base_ns + (now_ns - trial->adopted_ns) / SPENT_SHARE;
	uint64_t pause = doubled ? PAUSE_NS << doubled : 0;
	trial->over_budget = trial->spent_ns > allowed;
	if (trial->over_budget)
		pause = spill_max(pause, SPENT_SHARE * (trial->spent_ns - allowed));
	trial->next_ns = now_ns + spill_min(pause, PAUSE_MOST_NS);
	trial->settled_ns = trial->base_ns;
	enter_phase(trial, SPILL_TRIAL_RESTS);
}

/*
 * A failure costs time: that of its moves there and back, and of slower launches. `ns`: what a launch
 * took; 0: not known.
 */
static void note_failure(struct spill_placement_trial *trial, uint64_t ns)
{
	trial->spent_ns += 2 * trial->moving_ns + trial->tried * spill_minus(ns, trial->base_ns);
	trial->failures += trial->failures < FAILURES_MOST;
	trial->most = 0;
	trial->undone++;
}

static void fail(struct spill_placement_trial *trial, uint64_t ns)
{
	note_failure(trial, ns);
	trial->next_ns = trial->busy_ns = 0;
	trial->phase = SPILL_TRIAL_UNDOES;
}

/* The device was busy. Returns the time of the next attempt. */
static uint64_t after_busy(struct spill_placement_trial *trial, uint64_t now_ns)
{
	trial->busy_ns = spill_longer_wait(trial->busy_ns, BUSY_NS, BUSY_MOST_NS);
	return now_ns + trial->busy_ns;
}

/*
 * What the trial has taught: its chunks on the host cost what came, and what the launch became slower.
 * Without a gain they are no cheaper than what came, whatever the noise says.
 */
static void learn(struct spill_placement_trial *trial, uint64_t ns, bool gains)
{
	int64_t sum = (int64_t)trial->came_ns + (int64_t)ns - (int64_t)trial->base_ns;
	uint64_t least = trial->probes || gains ? 0 : trial->came_ns;
	uint64_t each = spill_max(sum > 0 ? (uint64_t)sum : 0, least) / spill_max(trial->left_mib, 1);
	for (unsigned i = 0; i < trial->moved_count; i++)
		if (trial->moved[i] & 1)
			spill_trial_set_cost(trial, trial->moved[i] >> 1, each);
}

static void judge(struct spill_placement_trial *trial)
{
	uint64_t ns = spill_median_of_three(trial->samples);
	bool gains = ns + trial->base_ns / NOISE_SHARE < trial->base_ns;
	learn(trial, ns, gains);
	if (gains) {
		trial->failures = 0;
		trial->most = 2 * trial->most;
		trial->kept++;
		trial->base_ns = ns;
		trial->phase = SPILL_TRIAL_KEEPS;
		return;
	}
	fail(trial, ns);
}

/* -- steps ------------------------------------------------------------------------------------- */

/* Others have moved memory: nothing tells now whether a trial was right. */
static void note_moved(struct spill_placement_trial *trial, uint64_t placement)
{
	trial->placement = placement;
	if (trial->phase == SPILL_TRIAL_TRIES) {
		fail(trial, 0);
	} else if (trial->phase == SPILL_TRIAL_MEASURES) {
		trial->sampled = 0;
	} else if (trial->phase == SPILL_TRIAL_RESTS) {
		trial->settled_ns = 0;
	}
}

/* All samples of the phase have arrived. */
static enum spill_trial_step step_on(struct spill_placement_trial *trial, uint64_t now_ns)
{
	if (trial->phase == SPILL_TRIAL_TRIES) {
		judge(trial);
		return trial->phase == SPILL_TRIAL_KEEPS ? SPILL_TRIAL_KEEP : SPILL_TRIAL_UNDO;
	}
	trial->base_ns = spill_median_of_three(trial->samples);
	if (now_ns >= trial->next_ns)
		return SPILL_TRIAL_PROPOSE;
	trial->settled_ns = trial->base_ns;
	enter_phase(trial, SPILL_TRIAL_RESTS);
	return SPILL_TRIAL_NOTHING;
}

/* Samples do not arrive. */
static enum spill_trial_step give_up(struct spill_placement_trial *trial, uint64_t now_ns)
{
	if (trial->phase == SPILL_TRIAL_TRIES) {
		fail(trial, 0);
		return SPILL_TRIAL_UNDO;
	}
	trial->failures = spill_min(spill_max(trial->failures, PATIENT) + 1, FAILURES_MOST);
	spill_trial_rest(trial, now_ns);
	trial->settled_ns = 0;
	return SPILL_TRIAL_NOTHING;
}

/* The trial of a site that is no longer launched. NOTHING: there is none. */
static enum spill_trial_step finish_gone(struct spill_placement_trial *trial)
{
	if (trial->phase == SPILL_TRIAL_TRIES)
		fail(trial, 0);
	return trial->phase == SPILL_TRIAL_UNDOES  ? SPILL_TRIAL_UNDO
	       : trial->phase == SPILL_TRIAL_KEEPS ? SPILL_TRIAL_KEEP
	                                           : SPILL_TRIAL_NOTHING;
}

enum spill_trial_step spill_trial_next(struct spill_placement_trial *trial, uint64_t code, uint64_t site,
                                       uint64_t placement, uint64_t now_ns)
{
	if (trial->site != site) {
		if (trial->site && (now_ns - trial->seen_ns < GONE_NS ||
		                    (trial->phase == SPILL_TRIAL_UNDOES && now_ns < trial->next_ns)))
			return SPILL_TRIAL_NOTHING;
		enum spill_trial_step step = finish_gone(trial);
		if (step != SPILL_TRIAL_NOTHING)
			return step;
		adopt(trial, code, site, placement, now_ns);
	}
	trial->seen_ns = now_ns;
	trial->launches++;
	if (trial->placement != placement)
		note_moved(trial, placement);
	if (trial->phase == SPILL_TRIAL_KEEPS)
		return SPILL_TRIAL_KEEP;
	if (trial->phase == SPILL_TRIAL_UNDOES)
		return now_ns >= trial->next_ns ? SPILL_TRIAL_UNDO : SPILL_TRIAL_NOTHING;
	if (trial->phase == SPILL_TRIAL_RESTS) {
		if (now_ns >= trial->next_ns)
			enter_phase(trial, SPILL_TRIAL_MEASURES);
		return SPILL_TRIAL_NOTHING;
	}
	if (trial->sampled == SPILL_TRIAL_SAMPLES)
		return step_on(trial, now_ns);
	return trial->launches > LAUNCHES_MOST ? give_up(trial, now_ns) : SPILL_TRIAL_NOTHING;
}

bool spill_trial_moved(const struct spill_placement_trial *trial, uint32_t key, bool on_host)
{
	for (unsigned i = 0; i < trial->moved_count; i++)
		if (trial->moved[i] == (key << 1 | on_host))
			return true;
	return false;
}

static void add_moved(struct spill_placement_trial *trial, const struct spill_trial_chunk *chunk)
{
	uint64_t mib = chunk->bytes >> 20;
	trial->moved[trial->moved_count++] = chunk->key << 1 | !chunk->on_host;
	trial->left_mib += chunk->on_host ? 0 : mib;
	trial->came_ns += chunk->on_host ? mib * chunk->guess_ns : 0;
}

void spill_trial_begun(struct spill_placement_trial *trial, const struct spill_trial_chunk *chunks,
                       unsigned count, uint64_t placement, uint64_t now_ns, uint64_t ns)
{
	trial->first_ns = trial->first_ns ? trial->first_ns : trial->base_ns;
	trial->moving_ns = ns;
	trial->moved_count = 0;
	trial->left_mib = trial->came_ns = 0;
	for (unsigned i = 0; i < count && trial->moved_count < SPILL_TRIAL_CHUNKS; i++)
		if (chunks[i].chosen && chunks[i].moved)
			add_moved(trial, &chunks[i]);
	if (trial->moved_count) {
		trial->placement = placement;
		trial->busy_ns = 0;
		enter_phase(trial, SPILL_TRIAL_TRIES);
		return;
	}
	note_failure(trial, 0); /* the device was busy */
	spill_trial_rest(trial, now_ns);
	trial->next_ns = spill_max(trial->next_ns, after_busy(trial, now_ns));
}

void spill_trial_kept(struct spill_placement_trial *trial)
{
	trial->next_ns = trial->moving_ns = 0;
	trial->phase = SPILL_TRIAL_MEASURES; /* with its samples, which are the next trial's, too */
	trial->launches = 0;
}

void spill_trial_undone(struct spill_placement_trial *trial, bool done, uint64_t placement, uint64_t now_ns,
                        uint64_t ns)
{
	trial->placement = placement;
	trial->spent_ns += spill_minus(ns, trial->moving_ns);
	if (done || trial->busy_ns == BUSY_MOST_NS) {
		trial->moved_count = 0;
		trial->busy_ns = trial->moving_ns = 0;
		spill_trial_rest(trial, now_ns);
		if (!done)
			trial->settled_ns = 0; /* it stays as it is */
		return;
	}
	trial->next_ns = after_busy(trial, now_ns);
}

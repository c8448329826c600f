#include "placement_trial.h"

#include <string.h>

#include "minmax.h"

#define MIB ((uint64_t)1 << 20)
#define MS 1000000ull
#define SECOND (1000 * MS)

/* A read over the link, as a first guess of what a chunk on the host costs (H200; facts.md). */
#define READ_NS_PER_MIB 19500
/*
 * Bytes of a trial: so many that a wrong guess shows above the noise of the samples, which was 0.3 %
 * for a token of llama.cpp (H200). After a success the next one is larger.
 */
#define SHOWS_SHARE 16
#define BYTES_LEAST (64 * MIB)
#define BYTES_MOST (1024 * MIB)
/* A trial of an allocation of which nothing is known moves so much less: it may be used all the time. */
#define PROBE_SHARE 4
/* Less is not worth a trial. */
#define OWNER_LEAST (128 * MIB)
/* A gain below this share of the launch is noise. */
#define NOISE_SHARE 200
/* A chunk is not exchanged for one that is less dearer: eighths. */
#define DEARER_EIGHTHS 10
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
/* After a trial that could not begin, because the device was busy. */
#define BUSY_NS (100 * MS)
/* A site that is not launched for so long gives its turn to another. */
#define GONE_NS (2 * SECOND)
/* At rest one launch of so many is timed. One that is slower by this share begins a new measurement. */
#define RESTED 32
#define SLOWER_SHARE 20
/* A trial ends with its first sample if that is slower by half. */
#define BAD_SHARE 2

/* -- costs ------------------------------------------------------------------------------------- */

static unsigned place_of(uint32_t key)
{
	return (uint32_t)(key * 0x9e3779b1u) >> 20; /* 12 bits: SPILL_TRIAL_COSTS */
}

_Static_assert(SPILL_TRIAL_COSTS == 1 << 12, "place_of has as many bits");

static const struct spill_trial_cost *find_cost(const struct spill_placement_trial *trial, uint32_t key)
{
	const struct spill_trial_cost *cost = &trial->costs[place_of(key)];
	return cost->key == key ? cost : NULL;
}

static void set_cost(struct spill_placement_trial *trial, uint32_t key, uint64_t ns)
{
	trial->costs[place_of(key)] =
	    (struct spill_trial_cost){.key = key, .ns = (uint32_t)spill_min(ns, UINT32_MAX)};
}

/* -- samples ----------------------------------------------------------------------------------- */

static uint64_t median(const struct spill_placement_trial *trial)
{
	uint64_t a = trial->samples[0], b = trial->samples[1], c = trial->samples[2];
	return spill_max(spill_min(a, b), spill_min(spill_max(a, b), c));
}

_Static_assert(SPILL_TRIAL_SAMPLES == 3, "median takes three");

static void enter_phase(struct spill_placement_trial *trial, enum spill_trial_phase phase)
{
	trial->phase = phase;
	trial->sampled = trial->tried = 0;
}

static bool is_bad(const struct spill_placement_trial *trial, uint64_t ns)
{
	return trial->phase == SPILL_TRIAL_TRIES && ns > trial->base_ns + trial->base_ns / BAD_SHARE;
}

static bool is_slower(const struct spill_placement_trial *trial, uint64_t ns)
{
	return trial->settled_ns && ns > trial->settled_ns + trial->settled_ns / SLOWER_SHARE;
}

bool spill_trial_wants_sample(const struct spill_placement_trial *trial, uint64_t site)
{
	if (trial->site != site)
		return false;
	return trial->phase == SPILL_TRIAL_RESTS ? trial->rested % RESTED == 0
	                                         : trial->sampled < SPILL_TRIAL_SAMPLES;
}

void spill_trial_sample(struct spill_placement_trial *trial, uint64_t placement, uint64_t ns)
{
	if (trial->placement != placement)
		return;
	if (trial->phase == SPILL_TRIAL_RESTS) {
		if (is_slower(trial, ns)) {
			enter_phase(trial, SPILL_TRIAL_MEASURES);
			trial->next_ns = 0;
			trial->failures = 0;
		}
		return;
	}
	trial->tried++;
	while (trial->sampled < SPILL_TRIAL_SAMPLES) {
		trial->samples[trial->sampled++] = ns;
		if (!is_bad(trial, ns))
			return;
	}
}

/* -- steps ------------------------------------------------------------------------------------- */

static void adopt(struct spill_placement_trial *trial, uint64_t site, uint64_t placement, uint64_t now_ns)
{
	memset(trial, 0, sizeof(*trial));
	trial->site = site;
	trial->placement = placement;
	trial->adopted_ns = now_ns;
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
			set_cost(trial, trial->moved[i] >> 1, each);
}

static uint64_t pause_after(const struct spill_placement_trial *trial)
{
	unsigned doubled = trial->failures > PATIENT ? trial->failures - PATIENT : 0;
	return doubled ? spill_min(PAUSE_NS << doubled, PAUSE_MOST_NS) : 0;
}

/* A failure costs time, so the next trial may be later. */
static void note_failure(struct spill_placement_trial *trial, uint64_t ns, uint64_t now_ns)
{
	uint64_t slower = ns > trial->base_ns ? ns - trial->base_ns : 0;
	uint64_t allowed = CREDIT * trial->base_ns + (now_ns - trial->adopted_ns) / SPENT_SHARE;
	trial->spent_ns += 2 * trial->moving_ns + trial->tried * slower;
	trial->failures += trial->failures < FAILURES_MOST;
	trial->next_ns = now_ns + pause_after(trial);
	if (trial->spent_ns > allowed)
		trial->next_ns =
		    spill_max(trial->next_ns, now_ns + SPENT_SHARE * (trial->spent_ns - allowed));
	trial->most = 0;
	trial->undone++;
}

static void note_success(struct spill_placement_trial *trial, uint64_t ns)
{
	trial->failures = 0;
	trial->most = 2 * trial->most;
	trial->kept++;
	trial->base_ns = trial->settled_ns = ns;
	enter_phase(trial, SPILL_TRIAL_MEASURES);
	trial->sampled = SPILL_TRIAL_SAMPLES; /* these samples are the next trial's, too */
}

static enum spill_trial_step judge(struct spill_placement_trial *trial, uint64_t now_ns)
{
	uint64_t ns = median(trial);
	bool gains = ns + trial->base_ns / NOISE_SHARE < trial->base_ns;
	learn(trial, ns, gains);
	if (gains) {
		note_success(trial, ns);
		return now_ns >= trial->next_ns ? SPILL_TRIAL_PROPOSE : SPILL_TRIAL_NOTHING;
	}
	note_failure(trial, ns, now_ns);
	trial->settled_ns = trial->base_ns;
	return SPILL_TRIAL_UNDO;
}

enum spill_trial_step spill_trial_next(struct spill_placement_trial *trial, uint64_t site, uint64_t placement,
                                       uint64_t now_ns)
{
	if (trial->site != site) {
		if (trial->site && now_ns - trial->seen_ns < GONE_NS)
			return SPILL_TRIAL_NOTHING;
		adopt(trial, site, placement, now_ns);
	}
	trial->seen_ns = now_ns;
	if (trial->placement != placement) {
		bool tries = trial->phase == SPILL_TRIAL_TRIES;
		trial->placement = placement;
		enter_phase(trial, SPILL_TRIAL_MEASURES);
		if (tries) /* nothing tells now whether it was right */
			return SPILL_TRIAL_UNDO;
	}
	if (trial->phase == SPILL_TRIAL_RESTS && now_ns >= trial->next_ns)
		enter_phase(trial, SPILL_TRIAL_MEASURES);
	trial->rested++;
	if (trial->phase == SPILL_TRIAL_RESTS || trial->sampled < SPILL_TRIAL_SAMPLES)
		return SPILL_TRIAL_NOTHING;
	if (trial->phase == SPILL_TRIAL_TRIES)
		return judge(trial, now_ns);
	trial->base_ns = median(trial);
	return now_ns >= trial->next_ns ? SPILL_TRIAL_PROPOSE : SPILL_TRIAL_NOTHING;
}

bool spill_trial_moved(const struct spill_placement_trial *trial, uint32_t key, bool on_host)
{
	for (unsigned i = 0; i < trial->moved_count; i++)
		if (trial->moved[i] == (key << 1 | on_host))
			return true;
	return false;
}

void spill_trial_begun(struct spill_placement_trial *trial, uint64_t placement, uint64_t now_ns, uint64_t ns)
{
	trial->moving_ns = ns;
	if (!placement) { /* the device was busy */
		trial->next_ns = now_ns + BUSY_NS;
		return;
	}
	trial->placement = placement;
	enter_phase(trial, SPILL_TRIAL_TRIES);
}

void spill_trial_undone(struct spill_placement_trial *trial, uint64_t placement, uint64_t now_ns)
{
	trial->placement = placement ? placement : trial->placement;
	enter_phase(trial, SPILL_TRIAL_RESTS);
	trial->next_ns = spill_max(trial->next_ns, now_ns);
}

/* -- choosing ---------------------------------------------------------------------------------- */

/*
 * Allocations of one size, which cost alike until more is known: the layers of a network. If a good
 * part of them is on the host, and of no others, the launch as it is tells their cost: that of a read.
 */
struct alike {
	uint64_t owner, bytes, host_bytes, cost_ns;
	unsigned known; /* chunks with a known cost */
};

#define GOOD_PART 10

/* The last one stands for all that find no place. */
#define ALIKES 64

static struct alike *find_alike(struct alike *alikes, uint64_t owner)
{
	unsigned i = 0;
	while (i < ALIKES - 1 && alikes[i].bytes && alikes[i].owner != owner)
		i++;
	alikes[i].owner = owner;
	return &alikes[i];
}

static void sum_alike(const struct spill_placement_trial *trial, struct spill_trial_chunk *chunks,
                      unsigned count, struct alike *alikes)
{
	for (unsigned i = 0; i < count; i++) {
		struct alike *alike = find_alike(alikes, chunks[i].owner);
		const struct spill_trial_cost *cost = find_cost(trial, chunks[i].key);
		alike->bytes += chunks[i].bytes;
		alike->host_bytes += chunks[i].on_host ? chunks[i].bytes : 0;
		alike->known += cost != NULL;
		alike->cost_ns += cost ? cost->ns : 0;
	}
}

static bool is_well_on_host(const struct alike *alike)
{
	return alike->bytes >= OWNER_LEAST && alike->host_bytes * GOOD_PART > alike->bytes;
}

/* After a prompt, weights and cache are on the host: which of them cost more is not told. */
static bool are_mixed(const struct alike *alikes)
{
	unsigned count = 0;
	for (unsigned i = 0; i < ALIKES; i++)
		count += is_well_on_host(&alikes[i]);
	return count > 1;
}

static bool is_known(const struct alike *alike, bool mixed)
{
	return alike->known || alike->bytes < OWNER_LEAST || (!mixed && is_well_on_host(alike));
}

/*
 * Guesses what the chunks cost on the host. Of what is not known and on the device, chunks that the
 * launch does not name leave first, and then those of allocations of which nothing is known.
 */
static void guess_all(const struct spill_placement_trial *trial, struct spill_trial_chunk *chunks,
                      unsigned count)
{
	struct alike alikes[ALIKES] = {0};
	sum_alike(trial, chunks, count, alikes);
	bool mixed = are_mixed(alikes);
	for (unsigned i = 0; i < count; i++) {
		struct spill_trial_chunk *chunk = &chunks[i];
		const struct spill_trial_cost *cost = find_cost(trial, chunk->key);
		const struct alike *alike = find_alike(alikes, chunk->owner);
		chunk->chosen = false;
		chunk->owner_bytes = alike->bytes;
		chunk->untried = !cost && !chunk->on_host && (!chunk->named || !is_known(alike, mixed));
		if (cost)
			chunk->guess_ns = cost->ns;
		else if (chunk->untried)
			chunk->guess_ns = chunk->named;
		else
			chunk->guess_ns = alike->known ? alike->cost_ns / alike->known : READ_NS_PER_MIB;
	}
}

/* A trial has put it on the host. */
static bool is_blamed(const struct spill_placement_trial *trial, const struct spill_trial_chunk *chunk)
{
	return chunk->on_host && chunk->named && find_cost(trial, chunk->key);
}

/*
 * Launches have become slower since the last trial. The chunks that trials have put on the host are
 * used more by now: a cache grows. They share the difference.
 */
static void blame_moved(struct spill_placement_trial *trial, struct spill_trial_chunk *chunks, unsigned count)
{
	uint64_t mib = 0;
	for (unsigned i = 0; i < count; i++)
		mib += is_blamed(trial, &chunks[i]) ? chunks[i].bytes / MIB : 0;
	for (unsigned i = 0; i < count && mib; i++)
		if (is_blamed(trial, &chunks[i])) {
			chunks[i].guess_ns += (trial->base_ns - trial->settled_ns) / mib;
			set_cost(trial, chunks[i].key, chunks[i].guess_ns);
		}
	trial->settled_ns = trial->base_ns;
}

static bool is_free(const struct spill_trial_chunk *chunk, bool on_host)
{
	return chunk->on_host == on_host && !chunk->fixed && !chunk->chosen;
}

/* The dearest chunk on the host. NULL: none. */
static struct spill_trial_chunk *find_dearest(struct spill_trial_chunk *chunks, unsigned count)
{
	struct spill_trial_chunk *best = NULL;
	for (unsigned i = 0; i < count; i++)
		if (is_free(&chunks[i], true) && chunks[i].named &&
		    (!best || chunks[i].guess_ns > best->guess_ns))
			best = &chunks[i];
	return best;
}

/* Of equals, a chunk of the larger allocation leaves, and of those of the newer one. */
static bool leaves_before(const struct spill_trial_chunk *a, const struct spill_trial_chunk *b)
{
	if (a->guess_ns != b->guess_ns)
		return a->guess_ns < b->guess_ns;
	return a->owner_bytes != b->owner_bytes ? a->owner_bytes > b->owner_bytes : a->owner > b->owner;
}

/*
 * The cheapest chunk on the device, of one allocation (0: any), so that the result tells about that
 * allocation. NULL: none.
 */
static struct spill_trial_chunk *find_cheapest(struct spill_trial_chunk *chunks, unsigned count,
                                               uint64_t owner)
{
	struct spill_trial_chunk *best = NULL;
	for (unsigned i = 0; i < count; i++)
		if (is_free(&chunks[i], false) && (!owner || chunks[i].owner == owner) &&
		    (!best || leaves_before(&chunks[i], best)))
			best = &chunks[i];
	return best;
}

/* The chunks chosen for a trial so far. */
struct trial_set {
	struct spill_trial_chunk *chosen[SPILL_TRIAL_CHUNKS];
	unsigned count;
	uint64_t owner; /* of those that leave; 0: none yet */
	uint64_t room;  /* bytes that left, less those that came */
	uint64_t came;
};

static void add_chunk(struct trial_set *set, struct spill_trial_chunk *chunk)
{
	chunk->chosen = true;
	set->chosen[set->count++] = chunk;
	if (chunk->on_host) {
		set->room -= chunk->bytes;
		set->came += chunk->bytes;
	} else {
		set->owner = chunk->owner;
		set->room += chunk->bytes;
	}
}

static bool is_cheaper(const struct spill_trial_chunk *goes, const struct spill_trial_chunk *comes)
{
	return goes && DEARER_EIGHTHS * goes->guess_ns <= 8 * comes->guess_ns;
}

/* The chunk that leaves next: of the same allocation if one of them is cheap enough. NULL: none is. */
static struct spill_trial_chunk *find_next(const struct trial_set *set, struct spill_trial_chunk *chunks,
                                           unsigned count, const struct spill_trial_chunk *comes)
{
	struct spill_trial_chunk *goes = find_cheapest(chunks, count, set->owner);
	if (!is_cheaper(goes, comes))
		goes = find_cheapest(chunks, count, 0);
	return is_cheaper(goes, comes) ? goes : NULL;
}

/* Adds a chunk that comes, and as many as must leave for it. False: none, because it promises no gain. */
static bool add_pair(struct trial_set *set, struct spill_trial_chunk *chunks, unsigned count)
{
	struct trial_set before = *set;
	struct spill_trial_chunk *comes = find_dearest(chunks, count), *goes = comes;
	while (goes && set->room < comes->bytes && set->count + 2 < SPILL_TRIAL_CHUNKS) {
		goes = find_next(set, chunks, count, comes);
		if (goes)
			add_chunk(set, goes);
	}
	if (comes && set->room >= comes->bytes) {
		add_chunk(set, comes);
		return true;
	}
	for (unsigned i = before.count; i < set->count; i++)
		set->chosen[i]->chosen = false;
	*set = before;
	return false;
}

static uint64_t bytes_of_trial(const struct spill_placement_trial *trial)
{
	uint64_t shows = trial->base_ns / SHOWS_SHARE / READ_NS_PER_MIB * MIB;
	if (trial->probes)
		shows /= PROBE_SHARE;
	else if (trial->most)
		shows = trial->most;
	return spill_min(spill_max(shows, BYTES_LEAST), BYTES_MOST);
}

/*
 * Chunks that leave and are no larger than the room that is left over stay. Free memory would be filled
 * by others, and then the trial could not be undone.
 */
static void drop_surplus(struct trial_set *set)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < set->count; i++) {
		struct spill_trial_chunk *chunk = set->chosen[i];
		if (!chunk->on_host && chunk->bytes <= set->room) {
			set->room -= chunk->bytes;
			chunk->chosen = false;
			continue;
		}
		set->chosen[kept++] = chunk;
	}
	set->count = kept;
}

static bool has_untried(const struct trial_set *set)
{
	for (unsigned i = 0; i < set->count; i++)
		if (set->chosen[i]->untried)
			return true;
	return false;
}

/* Keeps what learn needs. */
static void keep_set(struct spill_placement_trial *trial, const struct trial_set *set)
{
	trial->moved_count = set->count;
	trial->left_mib = trial->came_ns = 0;
	for (unsigned i = 0; i < set->count; i++) {
		const struct spill_trial_chunk *chunk = set->chosen[i];
		uint64_t mib = chunk->bytes / MIB;
		trial->moved[i] = chunk->key << 1 | !chunk->on_host;
		trial->left_mib += chunk->on_host ? 0 : mib;
		trial->came_ns += chunk->on_host ? mib * chunk->guess_ns : 0;
	}
}

bool spill_trial_choose(struct spill_placement_trial *trial, struct spill_trial_chunk *chunks, unsigned count,
                        uint64_t now_ns)
{
	struct trial_set set = {.count = 0};
	guess_all(trial, chunks, count);
	if (is_slower(trial, trial->base_ns))
		blame_moved(trial, chunks, count);
	bool more = add_pair(&set, chunks, count);
	drop_surplus(&set);
	trial->probes = has_untried(&set);
	uint64_t most = bytes_of_trial(trial);
	while (more && set.came < most)
		more = add_pair(&set, chunks, count);
	drop_surplus(&set);
	trial->most = trial->probes ? 0 : most;
	keep_set(trial, &set);
	if (set.count)
		return true;
	trial->failures = spill_min(spill_max(trial->failures, PATIENT) + 1, FAILURES_MOST);
	trial->next_ns = now_ns + pause_after(trial);
	trial->settled_ns = trial->base_ns;
	enter_phase(trial, SPILL_TRIAL_RESTS);
	return false;
}

/* The choice of the chunks of a trial (placement_trial.h). */
#include "placement_trial.h"

#include <stddef.h>

#include "minmax.h"

#define MIB ((uint64_t)1 << 20)

/* A read over the link, as a first guess of what a chunk on the host costs (H200; docs/measurements.md). */
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
/* A chunk is not exchanged for one that is less dearer: eighths. */
#define DEARER_EIGHTHS 10
/* Nothing to gain counts as so many failures, so there is a pause. */
#define NO_GAIN 5

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
		const struct spill_trial_cost *cost = spill_trial_find_cost(trial, chunks[i].key);
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
		const struct spill_trial_cost *cost = spill_trial_find_cost(trial, chunk->key);
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
	return chunk->on_host && chunk->named && spill_trial_find_cost(trial, chunk->key);
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
			spill_trial_set_cost(trial, chunks[i].key, chunks[i].guess_ns);
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

/* Of equals, a chunk of the allocations of one size that have most bytes leaves. */
static bool leaves_before(const struct spill_trial_chunk *a, const struct spill_trial_chunk *b)
{
	if (a->guess_ns != b->guess_ns)
		return a->guess_ns < b->guess_ns;
	return a->owner_bytes != b->owner_bytes ? a->owner_bytes > b->owner_bytes : a->owner > b->owner;
}

/*
 * The cheapest chunk on the device, of allocations of one size (0: any), so that the result tells about
 * those. NULL: none.
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

/* The chunk that leaves next: of the same size of allocation if one is cheap enough. NULL: none is. */
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
	while (goes && set->room < comes->bytes && set->count + 1 < SPILL_TRIAL_CHUNKS) {
		goes = find_next(set, chunks, count, comes);
		if (goes)
			add_chunk(set, goes);
	}
	if (comes && set->room >= comes->bytes && set->count < SPILL_TRIAL_CHUNKS) {
		add_chunk(set, comes);
		return true;
	}
	for (unsigned i = before.count; i < set->count; i++)
		set->chosen[i]->chosen = false;
	*set = before;
	return false;
}

/* Adds chunks that come into the room that is left over. */
static void fill_room(struct trial_set *set, struct spill_trial_chunk *chunks, unsigned count)
{
	struct spill_trial_chunk *comes;
	while (set->count < SPILL_TRIAL_CHUNKS && (comes = find_dearest(chunks, count)) != NULL &&
	       comes->bytes <= set->room)
		add_chunk(set, comes);
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

bool spill_trial_choose(struct spill_placement_trial *trial, struct spill_trial_chunk *chunks, unsigned count,
                        uint64_t now_ns)
{
	struct trial_set set = {.count = 0};
	guess_all(trial, chunks, count);
	if (spill_trial_is_slower(trial, trial->base_ns))
		blame_moved(trial, chunks, count);
	bool more = add_pair(&set, chunks, count);
	drop_surplus(&set);
	trial->probes = has_untried(&set);
	uint64_t most = bytes_of_trial(trial);
	while (more && set.came < most)
		more = add_pair(&set, chunks, count);
	drop_surplus(&set);
	fill_room(&set, chunks, count);
	trial->most = trial->probes ? 0 : most;
	if (set.count)
		return true;
	trial->failures = spill_max(trial->failures + (trial->failures < 2 * NO_GAIN), NO_GAIN);
	spill_trial_rest(trial, now_ns);
	return false;
}

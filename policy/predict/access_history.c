#include "access_history.h"

#include "hash.h"
#include "minmax.h"

/* A match at most so far behind the predicted access counts. One further on may be chance. */
#define NEAR 4
/*
 * The position stays for so many unknown accesses. After more of them, the program does other work.
 */
#define HELD 4
/* A new position is in doubt for so many accesses. */
#define NEW_PLACE 8
/*
 * After so many unknown accesses in a row, the code alone does not keep the position. A layer has
 * some 200.
 */
#define LOST 1024
/* Launches of more chunks give no new names, because comparing them takes too long. */
#define RENAMED 32
/*
 * The longer context is this launch so far and the launches before it. It counts launches, because
 * the layers of a network share a few small buffers. Their weights differ, in every second launch
 * or so. Up to COMPARED accesses are compared; of more, the hash counts.
 * The shorter context is the last access. It counts if the access before it is the same, too.
 */
#define COMPARED 128

static struct spill_access access_of(const uint32_t *keys, unsigned place, uint16_t site)
{
	return (struct spill_access){keys[place], site, (uint16_t)spill_min(place, UINT16_MAX)};
}

static bool is_same_access(const struct spill_access *a, const struct spill_access *b)
{
	return a->key == b->key && a->site == b->site;
}

/* The chunk is the predicted one, by a name that it has by now. */
static inline bool is_predicted(const struct spill_access_history *history, uint64_t number,
                                const struct spill_access *use)
{
	uint32_t names[SPILL_CHUNK_NAMES];

	if (spill_access_at(history, number)->site != use->site)
		return false;
	for (unsigned i = spill_access_names(history, number, names); i-- > 0;)
		if (names[i] == use->key)
			return true;
	return false;
}

/* The launch accesses other chunks than the same code did in the step before: [next, end). */
static void learn_names(struct spill_access_history *history, uint64_t end, const uint32_t *keys,
                        unsigned count)
{
	uint32_t old[RENAMED];
	unsigned old_count = (unsigned)(end - history->next);

	if (count > RENAMED || old_count > RENAMED)
		return;
	for (unsigned i = 0; i < old_count; i++)
		old[i] = spill_access_at(history, history->next + i)->key;
	spill_chunk_renames_learn(&history->renames, history->count, history->next, old, old_count, keys,
	                          count);
}

/*
 * Are the `length` accesses before number `end` equal to the last ones? `newest` is not in the ring
 * yet.
 */
static bool ends_alike(const struct spill_access_history *history, const struct spill_access *newest,
                       uint64_t end, unsigned length)
{
	/* The oldest access to compare must be in the ring. */
	if (!end || end < length || history->count < length ||
	    history->count - (end - length) >= SPILL_ACCESS_USES)
		return false;
	for (unsigned i = 0; i < length; i++) {
		const struct spill_access *now = i ? spill_access_at(history, history->count - i) : newest;

		if (!is_same_access(spill_access_at(history, end - 1 - i), now))
			return false;
	}
	return true;
}

/* Accesses of the longer context, with the newest one. */
static unsigned long_length(const struct spill_access_history *history)
{
	uint32_t length = 0;

	for (unsigned i = 0; i < SPILL_ACCESS_LAUNCHES; i++)
		length += history->launches[i].uses;
	return length < COMPARED ? length : COMPARED;
}

static uint64_t *short_slot(struct spill_access_history *history, const struct spill_access *newest)
{
	uint64_t hash = spill_hash(1, (uint64_t)newest->key << 16 | newest->site);

	return &history->contexts[hash % SPILL_ACCESS_CONTEXTS];
}

/* With too few launches, the slot of the shorter context. */
static uint64_t *long_slot(struct spill_access_history *history, const struct spill_access *newest)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < SPILL_ACCESS_LAUNCHES; i++) {
		if (!history->launches[i].uses)
			return short_slot(history, newest);
		hash = spill_hash(hash, history->launches[i].hash);
	}
	return &history->contexts[hash % SPILL_ACCESS_CONTEXTS];
}

static void count_prediction(struct spill_access_history *history, bool foreseen)
{
	uint32_t truth = foreseen ? SPILL_ACCESS_SURE : 0;

	history->sure = (history->sure * 15 + truth) / 16;
	history->followed++;
	if (foreseen) {
		history->foreseen++;
		history->misses = 0;
	} else {
		history->unforeseen++;
		history->misses++;
	}
}

/* The number behind a match that is near the predicted access; 0: no match. */
static uint64_t find_near(const struct spill_access_history *history, const struct spill_access *use)
{
	for (uint64_t n = history->next + 1; n < history->count && n < history->next + NEAR; n++) {
		if (is_predicted(history, n, use))
			return n + 1;
	}
	return 0;
}

/*
 * The new position: the number of the access that is predicted after `use`. Above the last number:
 * none. by_long, by_short: positions of the contexts, from the time before `use`.
 */
static uint64_t find_position(struct spill_access_history *history, const struct spill_access *use,
                              uint64_t by_long, uint64_t by_short)
{
	bool any = history->next < history->count;

	if (any && is_predicted(history, history->next, use)) {
		count_prediction(history, true);
		/*
		 * A new position, and the context occurred again later: prefer the later one. The
		 * accesses that follow here may be those that were wrong just before.
		 */
		if (history->followed <= NEW_PLACE && by_long > history->next + 1 &&
		    ends_alike(history, use, by_long, long_length(history)))
			return by_long;
		return history->next + 1;
	}
	history->followed = 0;
	if (ends_alike(history, use, by_long, long_length(history))) {
		count_prediction(history, true);
		return by_long;
	}

	uint64_t found = any ? find_near(history, use) : 0;

	/*
	 * The same chunk by another site: a kernel with another grid, as in the last batch of an
	 * epoch.
	 */
	if (any && !found && spill_access_at(history, history->next)->key == use->key)
		found = history->next + 1;
	count_prediction(history, found);
	if (found)
		return found;
	if (ends_alike(history, use, by_short, 2))
		return by_short;
	return any && history->misses <= HELD ? history->next : history->count + 1;
}

/*
 * Adds an access. `end`: its launch runs the predicted code, which ends there; 0: it is not known.
 * `doubt`: but on other chunks, so a place where the last launches occurred may be better.
 */
static void add_access(struct spill_access_history *history, struct spill_access use, uint64_t end,
                       bool doubt)
{
	struct spill_access_launch *launch = &history->launches[0];
	launch->hash = spill_hash(launch->hash, (uint64_t)use.key << 16 | use.site);
	launch->uses++;

	uint64_t *by_short = short_slot(history, &use), *by_long = long_slot(history, &use);
	uint64_t next = end;
	if (!end)
		next = find_position(history, &use, *by_long, *by_short);
	else if (doubt && (*by_long >= history->next || history->misses) &&
	         ends_alike(history, &use, *by_long, long_length(history))) {
		next = *by_long;
		history->left = next < end ? end : 0;
	}

	history->uses[history->count++ % SPILL_ACCESS_USES] = use;
	*by_long = history->count;
	*by_short = history->count;
	history->next = history->count - next < SPILL_ACCESS_USES ? next : history->count;
}

/* The number behind the last access of the launch that begins at `first`. */
static uint64_t end_of_launch(const struct spill_access_history *history, uint64_t first)
{
	uint64_t end = first + 1;

	while (end < history->count && spill_access_at(history, end)->place)
		end++;
	return end;
}

/* The launch that begins at history->next predicted the chunk, which is the one of that place now. */
static bool launch_predicts(const struct spill_access_history *history, uint64_t end,
                            const struct spill_access *use)
{
	uint64_t first = history->next, number = first + use->place;

	if (number < end && is_predicted(history, number, use))
		return true;
	end = spill_min(end, first + RENAMED);
	for (number = first; number < end; number++)
		if (is_predicted(history, number, use))
			return true;
	return false;
}

/*
 * The end of the launch at `next`, if its code tells the position: it is this launch's, and the launches
 * beside it run other code. 0: it does not tell.
 */
static uint64_t end_by_code(const struct spill_access_history *history, uint64_t next,
                            const struct spill_access *first)
{
	uint64_t end;

	if (next >= history->count || history->count - next >= SPILL_ACCESS_USES || history->misses > LOST ||
	    spill_access_at(history, next)->place || spill_access_at(history, next)->site != first->site)
		return 0;
	end = end_of_launch(history, next);
	return end == history->count || spill_access_at(history, end)->site == first->site ? 0 : end;
}

/* The end of the predicted launch, by its code. 0: unknown, or the program has left something out. */
static uint64_t end_of_predicted(const struct spill_access_history *history, const struct spill_access *first)
{
	uint64_t end = end_by_code(history, history->next, first);

	return end && (launch_predicts(history, end, first) || !find_near(history, first)) ? end : 0;
}

/*
 * The step that was left goes on beside the older one. Returns to it if the older one is wrong. The end of
 * the launch there; 0: the position stays.
 */
static uint64_t return_to_left(struct spill_access_history *history, const struct spill_access *first,
                               bool right)
{
	uint64_t left = history->left, end = left ? end_by_code(history, left, first) : 0;

	history->left = right ? end : 0;
	if (!end || right)
		return 0;
	history->next = left;
	return end;
}

/* The launch runs the predicted code. Counts the chunks that were predicted. True: all were. */
static bool count_launch(struct spill_access_history *history, uint64_t end, const uint32_t *keys,
                         unsigned count, uint16_t site)
{
	bool all = true;

	for (unsigned i = 0; i < count; i++) {
		struct spill_access use = access_of(keys, i, site);
		bool seen = launch_predicts(history, end, &use);

		count_prediction(history, seen);
		all &= seen;
	}
	return all;
}

static void begin_launch(struct spill_access_history *history)
{
	for (unsigned i = SPILL_ACCESS_LAUNCHES; --i;)
		history->launches[i] = history->launches[i - 1];
	history->launches[0] = (struct spill_access_launch){0};
}

void spill_access_history_launch(struct spill_access_history *history, const uint32_t *keys, unsigned count,
                                 uint16_t site)
{
	if (!count)
		return;
	struct spill_access first = access_of(keys, 0, site);
	uint64_t end = end_of_predicted(history, &first);
	bool all = end && count_launch(history, end, keys, count, site);
	uint64_t left_end = return_to_left(history, &first, all);

	end = left_end ? left_end : end;
	if (end && !all)
		learn_names(history, end, keys, count);
	begin_launch(history);
	for (unsigned i = 0; i < count; i++)
		add_access(history, access_of(keys, i, site), end, !all && i + 1 == count);
}

bool spill_access_history_past(const struct spill_access_history *history, uint64_t ago,
                               struct spill_access *use)
{
	if (ago >= history->count || ago >= SPILL_ACCESS_USES)
		return false;
	*use = *spill_access_at(history, history->count - 1 - ago);
	return true;
}

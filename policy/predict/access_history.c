#include "access_history.h"

#include "hash.h"

/* A match at most so far behind the predicted access counts. One further on may be chance. */
#define NEAR 4
/*
 * The position stays for so many unknown accesses. After more of them, the program does other work.
 */
#define HELD 4
/* A new position is in doubt for so many accesses. */
#define NEW_PLACE 8
/*
 * The longer context is this launch so far and the launches before it. It counts launches, because
 * the layers of a network share a few small buffers. Their weights differ, in every second launch
 * or so. Up to COMPARED accesses are compared; of more, the hash counts.
 * The shorter context is the last access. It counts if the access before it is the same, too.
 */
#define COMPARED 128
/* Least share of right predictions, 3/8. Of two sequences that run at once, one is predicted. */
#define SURE_LEAST (SPILL_ACCESS_SURE / 8 * 3)

static const struct spill_access *access_at(const struct spill_access_history *history, uint64_t number)
{
	return &history->uses[number % SPILL_ACCESS_USES];
}

static bool is_same_access(const struct spill_access *a, const struct spill_access *b)
{
	return a->key == b->key && a->site == b->site;
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
		const struct spill_access *now = i ? access_at(history, history->count - i) : newest;

		if (!is_same_access(access_at(history, end - 1 - i), now))
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
		if (is_same_access(access_at(history, n), use))
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

	if (any && is_same_access(access_at(history, history->next), use)) {
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
	if (any && !found && access_at(history, history->next)->key == use->key)
		found = history->next + 1;
	count_prediction(history, found);
	if (found)
		return found;
	if (ends_alike(history, use, by_short, 2))
		return by_short;
	return any && history->misses <= HELD ? history->next : history->count + 1;
}

static void add_access(struct spill_access_history *history, struct spill_access use)
{
	struct spill_access_launch *launch = &history->launches[0];
	launch->hash = spill_hash(launch->hash, (uint64_t)use.key << 16 | use.site);
	launch->uses++;

	uint64_t *by_short = short_slot(history, &use), *by_long = long_slot(history, &use);
	uint64_t next = find_position(history, &use, *by_long, *by_short);

	history->uses[history->count++ % SPILL_ACCESS_USES] = use;
	*by_long = history->count;
	*by_short = history->count;
	history->next = history->count - next < SPILL_ACCESS_USES ? next : history->count;
}

void spill_access_history_launch(struct spill_access_history *history, const uint32_t *keys, unsigned count,
                                 uint16_t site)
{
	for (unsigned i = SPILL_ACCESS_LAUNCHES; --i && count;)
		history->launches[i] = history->launches[i - 1];
	if (count)
		history->launches[0] = (struct spill_access_launch){0};
	for (unsigned i = 0; i < count; i++)
		add_access(history, (struct spill_access){.key = keys[i], .site = site});
}

bool spill_access_history_next(const struct spill_access_history *history, struct spill_access_walk *walk,
                               struct spill_access *use)
{
	if (history->sure < SURE_LEAST || history->count - history->next <= walk->steps)
		return false;
	*use = *access_at(history, history->next + walk->steps++);
	return true;
}

bool spill_access_history_past(const struct spill_access_history *history, uint64_t ago,
                               struct spill_access *use)
{
	if (ago >= history->count || ago >= SPILL_ACCESS_USES)
		return false;
	*use = *access_at(history, history->count - 1 - ago);
	return true;
}

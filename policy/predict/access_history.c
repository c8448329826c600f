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
/*
 * A buffer counts once for so many units, 16 MiB, and so often at most: what a program with few large buffers
 * does next is believed as soon as that of one with many.
 */
#define PART 8
#define PARTS 8
/* Of longer launches, a buffer that was at another place of the list is only searched in so much of it. */
#define SEARCHED 32
/*
 * The longer context is this launch so far and the launches before it. It counts launches, because
 * the layers of a network share a few small buffers. Their weights differ, in every second launch
 * or so. Up to COMPARED accesses are compared; of more, the hash counts.
 * The shorter context is the last access. It counts if the access before it is the same, too.
 */
#define COMPARED 128

static struct spill_access access_of(const struct spill_access_range *ranges, unsigned place, uint16_t site)
{
	return (struct spill_access){
	    .first = ranges[place].first,
	    .units = (uint16_t)spill_min(ranges[place].units, UINT16_MAX),
	    .site = site,
	    .place = (uint16_t)spill_min(place, SPILL_ACCESS_PLACES),
	};
}

static bool is_same_access(const struct spill_access *a, const struct spill_access *b)
{
	return a->first == b->first && a->site == b->site;
}

/* The buffer is the predicted one, where it is by now. */
static inline bool is_predicted(const struct spill_access_history *history, uint64_t number,
                                const struct spill_access *use)
{
	return spill_access_at(history, number)->site == use->site &&
	       spill_access_place(history, number) == use->first;
}

/*
 * A launch accesses its buffers where they are now, and the same code accessed them in the step before, from
 * that number on. Both are in the order of the launch's arguments.
 */
static void learn_places(struct spill_access_history *history, uint64_t before,
                         const struct spill_access_range *ranges, unsigned count)
{
	for (unsigned i = 0; i < count; i++, before++)
		if (spill_access_place(history, before) != ranges[i].first)
			spill_buffer_moves_found(&history->moves, history->count, before,
			                         spill_access_at(history, before)->first, ranges[i].first);
}

/* Notes how far the buffer has moved since that access, which was the same in the step before. */
static void note_move(const struct spill_access_history *history, uint64_t before, struct spill_access *use)
{
	const struct spill_access *then = spill_access_at(history, before);
	int64_t moved = (int64_t)use->first - then->first;

	use->moved = moved == (int16_t)moved ? (int16_t)moved : 0;
	use->period = (uint16_t)(history->count - before);
	use->drifts = use->moved && use->moved == then->moved;
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
	uint64_t hash = spill_hash(1, (uint64_t)newest->first << 16 | newest->site);

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

static void count_prediction(struct spill_access_history *history, const struct spill_access *use,
                             bool foreseen)
{
	uint32_t truth = foreseen ? SPILL_ACCESS_SURE : 0;
	uint32_t parts = (uint32_t)spill_min(1 + use->units / PART, PARTS);

	history->sure = (history->sure * (16 - parts) + truth * parts) / 16;
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
		count_prediction(history, use, true);
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
		count_prediction(history, use, true);
		return by_long;
	}

	uint64_t found = any ? find_near(history, use) : 0;

	/*
	 * The same buffer by another site: a kernel with another grid, as in the last batch of an
	 * epoch.
	 */
	if (any && !found && spill_access_place(history, history->next) == use->first)
		found = history->next + 1;
	count_prediction(history, use, found);
	if (found)
		return found;
	if (ends_alike(history, use, by_short, 2))
		return by_short;
	return any && history->misses <= HELD ? history->next : history->count + 1;
}

/*
 * Adds an access. `end`: its launch runs the predicted code, which ends there; 0: it is not known.
 * `doubt`: the launch accesses other buffers than predicted, so a place where the last launches occurred may
 * be better.
 */
static void add_access(struct spill_access_history *history, struct spill_access use, uint64_t end,
                       bool doubt)
{
	struct spill_access_launch *launch = &history->launches[0];
	launch->hash = spill_hash(launch->hash, (uint64_t)use.first << 16 | use.site);
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

/* The launch that begins at history->next predicted the buffer, which is the one of that place now. */
static bool launch_predicts(const struct spill_access_history *history, uint64_t end,
                            const struct spill_access *use)
{
	uint64_t first = history->next, number = first + use->place;

	if (number < end && is_predicted(history, number, use))
		return true;
	end = spill_min(end, first + SEARCHED);
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

/* The launch runs the predicted code. Counts the buffers that were predicted. True: all were. */
static bool count_launch(struct spill_access_history *history, uint64_t end,
                         const struct spill_access_range *ranges, unsigned count, uint16_t site)
{
	bool all = true;

	for (unsigned i = 0; i < count; i++) {
		struct spill_access use = access_of(ranges, i, site);
		bool seen = launch_predicts(history, end, &use);

		count_prediction(history, &use, seen);
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

void spill_access_history_launch(struct spill_access_history *history,
                                 const struct spill_access_range *ranges, unsigned count, uint16_t site)
{
	if (!count)
		return;
	struct spill_access first = access_of(ranges, 0, site);
	uint64_t end = end_of_predicted(history, &first);
	bool all = end && count_launch(history, end, ranges, count, site);
	uint64_t left_end = return_to_left(history, &first, all);

	end = left_end ? left_end : end;
	/* If their numbers differ, it is not known which buffer is which. */
	bool alike = end && end - history->next == count;
	uint64_t before = history->next;

	if (alike && !all)
		learn_places(history, before, ranges, count);
	begin_launch(history);
	for (unsigned i = 0; i < count; i++) {
		struct spill_access use = access_of(ranges, i, site);

		if (alike)
			note_move(history, before + i, &use);
		add_access(history, use, end, !all && i + 1 == count);
	}
}

bool spill_access_history_past(const struct spill_access_history *history, uint64_t ago,
                               struct spill_access *use)
{
	if (ago >= history->count || ago >= SPILL_ACCESS_USES)
		return false;
	*use = *spill_access_at(history, history->count - 1 - ago);
	return true;
}

#include "access_history.h"

#include "hash.h"

/* A use this little further on than the foreseen one is believed: so much was left out. One further on may be chance. */
#define NEAR 4
/* So many uses that are found nowhere came between; if there are more, the program does something else. */
#define HELD 4
/* A place that was jumped to is doubted for so many uses. */
#define NEW_PLACE 8
/*
 * The longer context: this launch so far and those before it. Launches, and not uses: the layers of a network use the same few small
 * buffers in turn, and what tells them apart is the weights, in every second launch or so. Of more uses the hash is believed.
 * The shorter context is found by its last use, and is believed if the one before fits too.
 */
#define COMPARED 128
/* The walk foresees while at least three of eight uses were foreseen: of two sequences that run at once, one is. */
#define SURE_LEAST (SPILL_ACCESS_SURE / 8 * 3)

static const struct spill_access *at(const struct spill_access_history *order, uint64_t number)
{
	return &order->uses[number % SPILL_ACCESS_USES];
}

static bool same(const struct spill_access *a, const struct spill_access *b)
{
	return a->key == b->key && a->site == b->site;
}

/* Are the `length` uses that end before number `end` the last ones, of which the newest is not in the ring yet? */
static bool ends_alike(const struct spill_access_history *order, const struct spill_access *newest,
                       uint64_t end, unsigned length)
{
	/* The oldest that is compared must not be forgotten. */
	if (!end || end < length || order->count < length ||
	    order->count - (end - length) >= SPILL_ACCESS_USES)
		return false;
	for (unsigned i = 0; i < length; i++) {
		const struct spill_access *now = i ? at(order, order->count - i) : newest;

		if (!same(at(order, end - 1 - i), now))
			return false;
	}
	return true;
}

/* Uses of the longer context, the newest among them. */
static unsigned long_length(const struct spill_access_history *order)
{
	uint32_t length = 0;

	for (unsigned i = 0; i < SPILL_ACCESS_LAUNCHES; i++)
		length += order->launches[i].uses;
	return length < COMPARED ? length : COMPARED;
}

static uint64_t *short_slot(struct spill_access_history *order, const struct spill_access *newest)
{
	uint64_t hash = spill_hash(1, (uint64_t)newest->key << 16 | newest->site);

	return &order->contexts[hash % SPILL_ACCESS_CONTEXTS];
}

/* As long as there are too few launches, the shorter one. */
static uint64_t *long_slot(struct spill_access_history *order, const struct spill_access *newest)
{
	uint64_t hash = 0;

	for (unsigned i = 0; i < SPILL_ACCESS_LAUNCHES; i++) {
		if (!order->launches[i].uses)
			return short_slot(order, newest);
		hash = spill_hash(hash, order->launches[i].hash);
	}
	return &order->contexts[hash % SPILL_ACCESS_CONTEXTS];
}

static void judge(struct spill_access_history *order, bool foreseen)
{
	uint32_t truth = foreseen ? SPILL_ACCESS_SURE : 0;

	order->sure = (order->sure * 15 + truth) / 16;
	order->followed++;
	if (foreseen) {
		order->foreseen++;
		order->misses = 0;
	} else {
		order->unforeseen++;
		order->misses++;
	}
}

/* The number behind the use if it is a little further on than the foreseen one; 0 if not. */
static uint64_t look_ahead(const struct spill_access_history *order, const struct spill_access *use)
{
	for (uint64_t n = order->next + 1; n < order->count && n < order->next + NEAR; n++) {
		if (same(at(order, n), use))
			return n + 1;
	}
	return 0;
}

/* The number of what is foreseen behind this use. The contexts' are of the time before it. Above the last: nothing is. */
static uint64_t follow(struct spill_access_history *order, const struct spill_access *use, uint64_t by_long,
                       uint64_t by_short)
{
	bool any = order->next < order->count;

	if (any && same(at(order, order->next), use)) {
		judge(order, true);
		/*
		 * Not long at this place yet: if it occurred again since, that is the better one. What followed here may be
		 * what has just turned out wrong.
		 */
		if (order->followed <= NEW_PLACE && by_long > order->next + 1 &&
		    ends_alike(order, use, by_long, long_length(order)))
			return by_long;
		return order->next + 1;
	}
	order->followed = 0;
	if (ends_alike(order, use, by_long, long_length(order))) {
		judge(order, true);
		return by_long;
	}

	uint64_t found = any ? look_ahead(order, use) : 0;

	/* The same chunk by another site: a kernel with another grid, as for the last batch of an epoch. */
	if (any && !found && at(order, order->next)->key == use->key)
		found = order->next + 1;
	judge(order, found);
	if (found)
		return found;
	if (ends_alike(order, use, by_short, 2))
		return by_short;
	return any && order->misses <= HELD ? order->next : order->count + 1;
}

static void use_one(struct spill_access_history *order, struct spill_access use)
{
	struct spill_access_launch *launch = &order->launches[0];
	launch->hash = spill_hash(launch->hash, (uint64_t)use.key << 16 | use.site);
	launch->uses++;

	uint64_t *by_short = short_slot(order, &use), *by_long = long_slot(order, &use);
	uint64_t next = follow(order, &use, *by_long, *by_short);

	order->uses[order->count++ % SPILL_ACCESS_USES] = use;
	*by_long = order->count;
	*by_short = order->count;
	order->next = order->count - next < SPILL_ACCESS_USES ? next : order->count;
}

void spill_access_history_launch(struct spill_access_history *order, const uint32_t *keys, unsigned count,
                                 uint16_t site)
{
	for (unsigned i = SPILL_ACCESS_LAUNCHES; --i && count;)
		order->launches[i] = order->launches[i - 1];
	if (count)
		order->launches[0] = (struct spill_access_launch){0};
	for (unsigned i = 0; i < count; i++)
		use_one(order, (struct spill_access){.key = keys[i], .site = site});
}

void spill_access_history_add(struct spill_access_history *order, uint32_t key, uint16_t site)
{
	spill_access_history_launch(order, &key, 1, site);
}

bool spill_access_history_next(const struct spill_access_history *order, struct spill_access_walk *walk,
                               struct spill_access *use)
{
	if (order->sure < SURE_LEAST || order->count - order->next <= walk->steps)
		return false;
	*use = *at(order, order->next + walk->steps++);
	return true;
}

bool spill_access_history_past(const struct spill_access_history *order, uint64_t ago,
                               struct spill_access *use)
{
	if (ago >= order->count || ago >= SPILL_ACCESS_USES)
		return false;
	*use = *at(order, order->count - 1 - ago);
	return true;
}

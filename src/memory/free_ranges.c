#include "free_ranges.h"
#include "minmax.h"

#include <stdlib.h>

/*
 * Classes: below 16 units one for each number of units, then eight for each power of two. A class
 * has the sizes from its own up to the next one's.
 */
#define LINEAR 16
#define LINEAR_BITS 4
#define STEPS_BITS 3

/* Ranges that one search looks at. */
#define MOST_LOOKS 32

static unsigned class_of(uint64_t bytes)
{
	uint64_t units = bytes / SPILL_RANGE_UNIT;
	if (units < LINEAR)
		return (unsigned)units;
	unsigned power = 63 - (unsigned)__builtin_clzll(units);
	unsigned step = (unsigned)(units >> (power - STEPS_BITS)) & ((1u << STEPS_BITS) - 1);
	unsigned class = LINEAR + ((power - LINEAR_BITS) << STEPS_BITS) + step;
	return class < SPILL_RANGE_CLASSES ? class : SPILL_RANGE_CLASSES - 1;
}

/* The first class from `class` on that has a range; SPILL_RANGE_CLASSES: none. */
static unsigned next_filled(const struct spill_free_ranges *set, unsigned class)
{
	for (unsigned word = class / 64; word < SPILL_RANGE_CLASSES / 64; word++) {
		uint64_t bits = set->filled[word];
		if (word == class / 64)
			bits &= ~0ull << (class % 64);
		if (bits)
			return word * 64 + (unsigned)__builtin_ctzll(bits);
	}
	return SPILL_RANGE_CLASSES;
}

static void link_free(struct spill_range *range, struct spill_free_ranges *set)
{
	unsigned class = class_of(range->bytes);
	LIST_INSERT_HEAD(&set->lists[class], range, link);
	set->filled[class / 64] |= 1ull << (class % 64);
	set->bytes += range->bytes;
	range->in = set;
}

static void unlink_free(struct spill_range *range)
{
	struct spill_free_ranges *set = range->in;
	unsigned class = class_of(range->bytes);
	LIST_REMOVE(range, link);
	if (LIST_EMPTY(&set->lists[class]))
		set->filled[class / 64] &= ~(1ull << (class % 64));
	set->bytes -= range->bytes;
	range->in = NULL;
}

struct spill_range *spill_free_ranges_add(struct spill_free_ranges *set, uint64_t at, uint64_t bytes,
                                          void *segment)
{
	struct spill_range *range = malloc(sizeof(*range));
	if (!range)
		return NULL;
	*range = (struct spill_range){.at = at, .bytes = bytes, .segment = segment};
	link_free(range, set);
	return range;
}

struct spill_range *spill_free_ranges_cut(struct spill_range *range, uint64_t wanted)
{
	struct spill_free_ranges *set = range->in;
	uint64_t bytes = spill_round_up(wanted, SPILL_RANGE_UNIT);
	unlink_free(range);
	struct spill_range *rest = range->bytes > bytes ? malloc(sizeof(*rest)) : NULL;
	if (!rest)
		return range;
	*rest = (struct spill_range){.at = range->at + bytes,
	                             .bytes = range->bytes - bytes,
	                             .before = range,
	                             .after = range->after,
	                             .number = range->number,
	                             .segment = range->segment};
	if (rest->after)
		rest->after->before = rest;
	range->after = rest;
	range->bytes = bytes;
	link_free(rest, set);
	return range;
}

static bool is_better(const struct spill_range *range, const struct spill_range *than)
{
	return !than || range->bytes < than->bytes || (range->bytes == than->bytes && range->at < than->at);
}

struct spill_range *spill_range_better(struct spill_range *one, struct spill_range *other)
{
	return one && is_better(one, other) ? one : other;
}

/* Not by the order of the list, which would give other addresses each time. */
static struct spill_range *find_in_class(const struct spill_free_ranges *set, unsigned class, uint64_t bytes,
                                         bool (*usable)(const struct spill_range *range, uint64_t bytes),
                                         unsigned *looks)
{
	struct spill_range *range, *best = NULL;
	LIST_FOREACH(range, &set->lists[class], link)
	{
		if ((*looks)++ == MOST_LOOKS)
			break;
		if (range->bytes >= bytes && is_better(range, best) && (!usable || usable(range, bytes)))
			best = range;
	}
	return best;
}

struct spill_range *spill_free_ranges_find(const struct spill_free_ranges *set, uint64_t bytes,
                                           bool (*usable)(const struct spill_range *range, uint64_t bytes))
{
	uint64_t whole = spill_round_up(bytes, SPILL_RANGE_UNIT);
	unsigned first = class_of(whole), looks = 0;
	if (whole > set->bytes)
		return NULL;
	for (unsigned class = next_filled(set, first); class < SPILL_RANGE_CLASSES && looks < MOST_LOOKS;
	     class = next_filled(set, class + 1)) {
		struct spill_range *range = find_in_class(set, class, whole, usable, &looks);
		if (range)
			return range;
		/* Sizes of the first class can be too small. Many of them must not hide the larger ones. */
		if (class == first)
			looks = 0;
	}
	return NULL;
}

/* Joins a range with its neighbour after it. Both are free, and in no list. */
static void join_after(struct spill_range *range)
{
	struct spill_range *after = range->after;
	range->bytes += after->bytes;
	range->after = after->after;
	if (range->after)
		range->after->before = range;
	if (range->number < after->number)
		range->number = after->number;
	free(after);
}

static bool joins(const struct spill_range *neighbour, const struct spill_free_ranges *set,
                  const struct spill_free_ranges *join)
{
	return neighbour && neighbour->in && (neighbour->in == set || neighbour->in == join);
}

struct spill_range *spill_free_ranges_give(struct spill_range *range, struct spill_free_ranges *set,
                                           const struct spill_free_ranges *join, uint64_t number)
{
	range->number = number;
	/* Behind a neighbour that is in `join`, there can be one that is in `set`. */
	while (joins(range->after, set, join)) {
		unlink_free(range->after);
		join_after(range);
	}
	while (joins(range->before, set, join)) {
		range = range->before;
		unlink_free(range);
		join_after(range);
	}
	link_free(range, set);
	return range;
}

void spill_free_ranges_settle(struct spill_free_ranges *from, struct spill_free_ranges *to, uint64_t number)
{
	for (unsigned class = next_filled(from, 0); class < SPILL_RANGE_CLASSES;
	     class = next_filled(from, class + 1)) {
		struct spill_range *next, *range = LIST_FIRST(&from->lists[class]);
		for (; range; range = next) {
			next = LIST_NEXT(range, link);
			if (range->number > number)
				continue;
			unlink_free(range);
			spill_free_ranges_give(range, to, to, range->number);
		}
	}
}

void spill_free_ranges_remove(struct spill_range *range)
{
	unlink_free(range);
	free(range);
}

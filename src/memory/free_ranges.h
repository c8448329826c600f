/*
 * Free ranges: cuts segments of addresses into ranges of any size, and joins free neighbours again.
 * Lists by size class make that a few steps, however many ranges there are (two levels of classes:
 * Masmano et al., "TLSF: a new dynamic memory allocator for real-time systems", 2004).
 *
 * A caller can have several sets of free ranges, for instance one for each stream. A free range is
 * in one of them. The caller locks. Sizes are bytes.
 */
#ifndef SPILL_FREE_RANGES_H
#define SPILL_FREE_RANGES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Ranges are multiples of it, and aligned to it, as the driver's are (docs/measurements.md). */
#define SPILL_RANGE_UNIT 512ull
#define SPILL_RANGE_CLASSES 256

struct spill_range {
	uint64_t at, bytes;
	struct spill_range *before, *after; /* neighbours in the segment, by address. */
	struct spill_free_ranges *in;       /* the set that it is free in; NULL: in use. */
	uint64_t number;                    /* of its free: the caller's. The larger one, if joined. */
	void *segment;                      /* the caller's. */
	LIST_ENTRY(spill_range) link;
};

/* A set of free ranges. All zero: empty. */
struct spill_free_ranges {
	LIST_HEAD(spill_range_list, spill_range) lists[SPILL_RANGE_CLASSES];
	uint64_t filled[SPILL_RANGE_CLASSES / 64]; /* a bit for each list that is not empty. */
	uint64_t bytes;
};

/* Adds a segment as one free range, and returns it. NULL: no memory. pre: whole units */
struct spill_range *spill_free_ranges_add(struct spill_free_ranges *set, uint64_t at, uint64_t bytes,
                                          void *segment);

/*
 * The smallest free range of at least `bytes`, the lowest of these; a search looks at a few dozen. So
 * a program that allocates and frees the same again gets the same addresses, and what it uses next
 * can be foreseen. `usable` may refuse a range for its first `bytes`; NULL: all are usable. It sees
 * the best fits first. NULL: none fits.
 */
struct spill_range *spill_free_ranges_find(const struct spill_free_ranges *set, uint64_t bytes,
                                           bool (*usable)(const struct spill_range *range, uint64_t bytes));

/* The one of both that such a search would find first. NULL is allowed. */
struct spill_range *spill_range_better(struct spill_range *one, struct spill_range *other);

/* Takes a free range, cut to at least `bytes` if there is memory for the rest's record. Returns it. */
struct spill_range *spill_free_ranges_cut(struct spill_range *range, uint64_t bytes);

/*
 * Frees a range into `set`. Joins it with free neighbours that are in `set` or in `join`. Returns
 * the joined range.
 */
struct spill_range *spill_free_ranges_give(struct spill_range *range, struct spill_free_ranges *set,
                                           const struct spill_free_ranges *join, uint64_t number);

/* Moves the ranges whose number is at most `number` to another set, and joins them there. */
void spill_free_ranges_settle(struct spill_free_ranges *from, struct spill_free_ranges *to, uint64_t number);

/* True: the range is free and all of its segment. */
static inline bool spill_range_is_segment(const struct spill_range *range)
{
	return range->in && !range->before && !range->after;
}

/* Ends a segment that is one free range. */
void spill_free_ranges_remove(struct spill_range *range);

#endif

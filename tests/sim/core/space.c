/* First-fit allocation of numbers. A sorted array of free spans is enough: there are few. */
#include <stdlib.h>
#include <string.h>

#include "core_internal.h"

bool space_init(struct space *space, uint64_t start, uint64_t size)
{
	space->capacity = 64;
	space->span = malloc(space->capacity * sizeof(*space->span));
	if (!space->span)
		return false;
	space->span[0] = (struct span){start, size};
	space->count = 1;
	return true;
}

static bool grow_spans(struct space *space)
{
	if (space->count < space->capacity)
		return true;
	size_t capacity = 2 * space->capacity + 1;
	struct span *more = realloc(space->span, capacity * sizeof(*more));
	if (!more)
		return false;
	space->span = more;
	space->capacity = capacity;
	return true;
}

/* Takes [start, start + size) out of span `i`. pre: it lies inside, and one more span fits. */
static void carve_span(struct space *space, size_t i, uint64_t start, uint64_t size)
{
	struct span *span = &space->span[i];
	uint64_t before = start - span->start, after = span->start + span->size - (start + size);

	if (before && after) {
		memmove(span + 1, span, (space->count - i) * sizeof(*span));
		space->count++;
		span[0].size = before;
		span[1] = (struct span){start + size, after};
	} else if (before) {
		span->size = before;
	} else if (after) {
		*span = (struct span){start + size, after};
	} else {
		space->count--;
		memmove(span, span + 1, (space->count - i) * sizeof(*span));
	}
}

bool space_take(struct space *space, uint64_t size, uint64_t alignment, uint64_t hint, uint64_t *start)
{
	if (!grow_spans(space))
		return false;
	if (hint && hint % alignment == 0) {
		for (size_t i = 0; i < space->count; i++) {
			const struct span *span = &space->span[i];

			if (hint >= span->start && hint - span->start <= span->size &&
			    size <= span->size - (hint - span->start)) {
				carve_span(space, i, hint, size);
				*start = hint;
				return true;
			}
		}
	}
	for (size_t i = 0; i < space->count; i++) {
		const struct span *span = &space->span[i];
		uint64_t at = round_up(span->start, alignment);

		if (at - span->start <= span->size && size <= span->size - (at - span->start)) {
			carve_span(space, i, at, size);
			*start = at;
			return true;
		}
	}
	return false;
}

void space_give(struct space *space, uint64_t start, uint64_t size)
{
	size_t low = 0, high = space->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (space->span[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}

	struct span *next = &space->span[low], *previous = low ? next - 1 : NULL;
	bool joins_previous = previous && previous->start + previous->size == start;
	bool joins_next = low < space->count && start + size == next->start;

	if (joins_previous && joins_next) {
		previous->size += size + next->size;
		space->count--;
		memmove(next, next + 1, (space->count - low) * sizeof(*next));
	} else if (joins_previous) {
		previous->size += size;
	} else if (joins_next) {
		next->start = start;
		next->size += size;
	} else if (grow_spans(space)) { /* if it fails, these numbers are lost, without harm */
		next = &space->span[low];
		memmove(next + 1, next, (space->count - low) * sizeof(*next));
		*next = (struct span){start, size};
		space->count++;
	}
}

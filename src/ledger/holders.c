#include "holders.h"

#include <string.h>

/*
 * Sums by caller, by the address of its name, which caller.c keeps once. A caller that finds no place among so many is
 * one of the others: only its bytes are told, in what this process holds.
 */
#define CALLERS 1024
#define PROBES 64

static struct spill_group callers[CALLERS], places[SPILL_PLACES];
static struct spill_holder largest[SPILL_HOLDERS];
static uint64_t sizes[SPILL_HOLDERS]; /* of these: of what is on other devices only the host's part */
static unsigned largest_count;
static int here; /* the device that is full; -1: not known */

void spill_holders_begin(int device)
{
	here = device;
	memset(callers, 0, sizeof(callers));
	memset(places, 0, sizeof(places));
	largest_count = 0;
}

static void add(struct spill_group *group, const struct spill_bytes *held)
{
	group->count++;
	spill_bytes_add(&group->held, held);
}

/* Its group, or a free one for it; NULL if there is none where it could be. */
static struct spill_group *group_of(const char *caller)
{
	size_t start = (uintptr_t)caller * 0x9e3779b97f4a7c15ull >> 54;
	for (size_t i = 0; i < PROBES; i++) {
		struct spill_group *group = &callers[(start + i) % CALLERS];
		if (!group->count || group->name == caller)
			return group;
	}
	return NULL;
}
_Static_assert(CALLERS == 1 << (64 - 54), "the shift above keeps 10 bits");

/* Insertion into a list of ten, largest first. */
static void keep(const struct spill_allocation *entry, uint64_t size)
{
	unsigned at = largest_count;
	while (at && sizes[at - 1] < size)
		at--;
	if (at == SPILL_HOLDERS)
		return;
	unsigned last = largest_count < SPILL_HOLDERS ? largest_count : SPILL_HOLDERS - 1;
	for (unsigned i = last; i > at; i--) {
		largest[i] = largest[i - 1];
		sizes[i] = sizes[i - 1];
	}
	sizes[at] = size;
	largest[at] =
	    (struct spill_holder){entry->caller, entry->api, entry->seq, entry->bytes, entry->place};
	largest_count = last + 1;
}

void spill_holders_add(const struct spill_allocation *entry)
{
	struct spill_bytes held = entry->held;
	uint64_t size = entry->bytes;
	if (here >= 0 && entry->device != here) {
		held.device = 0;
		size = spill_bytes_all(&held);
		if (!size)
			return;
	}
	struct spill_group *group = group_of(entry->caller);
	if (group) {
		group->name = entry->caller;
		add(group, &held);
	}
	places[entry->place].name = spill_place_name(entry->place);
	add(&places[entry->place], &held);
	keep(entry, size);
}

/* Those of `groups` that hold most, at most `most` of them, in order; returns how many. */
static unsigned sort(const struct spill_group *groups, unsigned count, struct spill_group *sorted,
                     unsigned most)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++) {
		uint64_t held = spill_bytes_all(&groups[i].held);
		unsigned at = kept;
		if (!groups[i].count)
			continue;
		for (; at && spill_bytes_all(&sorted[at - 1].held) < held; at--)
			if (at < most)
				sorted[at] = sorted[at - 1];
		if (at < most)
			sorted[at] = groups[i];
		kept += kept < most;
	}
	return kept;
}

void spill_holders_end(struct spill_record_oom *record)
{
	record->holders = largest_count;
	memcpy(record->top, largest, sizeof(largest));
	record->callers = sort(callers, CALLERS, record->by_caller, SPILL_CALLERS);
	record->places = sort(places, SPILL_PLACES, record->by_place, SPILL_PLACES);
}

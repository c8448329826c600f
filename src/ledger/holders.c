#include <string.h>

#include "ledger.h"
#include "ledger_totals.h"

/*
 * Sums by requester, or by caller where none is known. The key is the address of the name, because
 * caller.c keeps each name once. A name that finds no free group is not listed. Its bytes are only in the process's total.
 */
#define CALLERS 1024
#define PROBES 64

static struct spill_group callers[CALLERS], places[SPILL_PLACES];
static struct spill_holder largest[SPILL_HOLDERS];
static uint64_t sizes[SPILL_HOLDERS]; /* of `largest`; only the host's part if on another device */
static unsigned largest_count;
static int full_device; /* -1: not known */

void spill_holders_begin(int device)
{
	full_device = device;
	memset(callers, 0, sizeof(callers));
	memset(places, 0, sizeof(places));
	largest_count = 0;
}

static void add_to_group(struct spill_group *group, const struct spill_bytes *held)
{
	group->count++;
	spill_bytes_add(&group->held, held);
}

static const char *key_of_group(const struct spill_group *group)
{
	return group->requester ? group->requester : group->name;
}

/* The group of a requester or caller, or a free one; NULL if there is none. */
static struct spill_group *group_of(const char *key)
{
	size_t start = (uintptr_t)key * 0x9e3779b97f4a7c15ull >> 54;
	for (size_t i = 0; i < PROBES; i++) {
		struct spill_group *group = &callers[(start + i) % CALLERS];
		if (!group->count || key_of_group(group) == key)
			return group;
	}
	return NULL;
}
_Static_assert(CALLERS == 1 << (64 - 54), "the shift above keeps 10 bits");

/* Inserts the entry into the list of the largest, in order. */
static void keep_if_large(const struct spill_allocation *entry, uint64_t size)
{
	unsigned rank = largest_count;
	while (rank && sizes[rank - 1] < size)
		rank--;
	if (rank == SPILL_HOLDERS)
		return;
	unsigned last = largest_count < SPILL_HOLDERS ? largest_count : SPILL_HOLDERS - 1;
	for (unsigned i = last; i > rank; i--) {
		largest[i] = largest[i - 1];
		sizes[i] = sizes[i - 1];
	}
	sizes[rank] = size;
	largest[rank] = (struct spill_holder){entry->caller, entry->api,   entry->seq,
	                                      entry->bytes,  entry->place, entry->requester};
	largest_count = last + 1;
}

void spill_holders_add(const struct spill_allocation *entry)
{
	struct spill_bytes held = entry->held;
	uint64_t size = entry->bytes;
	if (full_device >= 0 && entry->device != full_device) {
		held.device = 0;
		size = spill_bytes_all(&held);
		if (!size)
			return;
	}
	struct spill_group *group = group_of(entry->requester ? entry->requester : entry->caller);
	if (group) {
		group->name = entry->caller;
		group->requester = entry->requester;
		add_to_group(group, &held);
	}
	places[entry->place].name = spill_place_name(entry->place);
	add_to_group(&places[entry->place], &held);
	keep_if_large(entry, size);
}

/* Copies the `most` largest groups, in order, and returns their number. */
static unsigned sort_groups(const struct spill_group *groups, unsigned count, struct spill_group *sorted,
                            unsigned most)
{
	unsigned kept = 0;
	for (unsigned i = 0; i < count; i++) {
		uint64_t held = spill_bytes_all(&groups[i].held);
		unsigned rank = kept;
		if (!groups[i].count)
			continue;
		for (; rank && spill_bytes_all(&sorted[rank - 1].held) < held; rank--)
			if (rank < most)
				sorted[rank] = sorted[rank - 1];
		if (rank < most)
			sorted[rank] = groups[i];
		kept += kept < most;
	}
	return kept;
}

void spill_holders_end(struct spill_record_oom *record)
{
	record->holders = largest_count;
	memcpy(record->top, largest, sizeof(largest));
	record->callers = sort_groups(callers, CALLERS, record->by_caller, SPILL_CALLERS);
	record->places = sort_groups(places, SPILL_PLACES, record->by_place, SPILL_PLACES);
}

#include "site_sums.h"

#include <string.h>

#include "ledger.h"

#define PROBES 64

struct count {
	uint64_t count, bytes;
};

struct site {
	const char *api, *caller, *rule; /* interned: equal names are equal pointers */
	int device;
	bool used, changed;        /* changed: in the list of sites with sums to take */
	unsigned next;             /* in that list; 1 + index, 0: the last one */
	uint64_t entries;          /* live allocations: they point here */
	uint64_t live, peak;       /* their bytes; peak: since the last time */
	struct count added, ended; /* since the last time */
	struct spill_one largest;  /* of `added` */
};

static struct site sites[SPILL_SITE_SUMS];
static unsigned first_changed; /* 1 + index; 0: none */

static bool is_site_of(const struct site *site, const struct spill_allocation *entry)
{
	return site->caller == entry->caller && site->api == entry->api && site->device == entry->device &&
	       site->rule == entry->sum_rule;
}

static size_t home_slot(const struct spill_allocation *entry)
{
	uint64_t mixed = (uintptr_t)entry->caller + 3 * (uintptr_t)entry->api +
	                 5 * (uintptr_t)entry->sum_rule + 7 * (uint64_t)(unsigned)entry->device;
	return mixed * 0x9e3779b97f4a7c15ull >> 54;
}
_Static_assert(SPILL_SITE_SUMS == 1 << (64 - 54), "the shift above keeps 10 bits");

/* The entry's site, or one that no entry needs; NULL: there is none. */
static struct site *find_site(const struct spill_allocation *entry)
{
	size_t start = home_slot(entry);
	struct site *unneeded = NULL;
	for (size_t i = 0; i < PROBES; i++) {
		struct site *site = &sites[(start + i) % SPILL_SITE_SUMS];
		if (site->used && is_site_of(site, entry))
			return site;
		if (!unneeded && !site->entries && !site->changed)
			unneeded = site;
		if (!site->used)
			break; /* a slot never becomes unused, so the site is not further on */
	}
	return unneeded;
}

static void begin_site(struct site *site, const struct spill_allocation *entry)
{
	*site = (struct site){
	    .api = entry->api,
	    .caller = entry->caller,
	    .rule = entry->sum_rule,
	    .device = entry->device,
	    .used = true,
	};
}

static void mark_changed(struct site *site)
{
	if (site->changed)
		return;
	site->changed = true;
	site->next = first_changed;
	first_changed = (unsigned)(site - sites) + 1;
}

void spill_site_sums_add(struct spill_allocation *entry)
{
	struct site *site = find_site(entry);
	if (!site)
		return;
	if (!site->used || !is_site_of(site, entry))
		begin_site(site, entry);
	entry->sum = (unsigned)(site - sites) + 1;
	site->entries++;
	site->live += entry->held.device;
	if (site->peak < site->live)
		site->peak = site->live;
	site->added.count++;
	site->added.bytes += entry->held.device;
	if (site->largest.bytes < entry->held.device)
		site->largest = (struct spill_one){entry->seq, entry->held.device};
	mark_changed(site);
}

void spill_site_sums_end(const struct spill_allocation *entry)
{
	struct site *site = &sites[entry->sum - 1];
	site->entries--;
	site->live -= entry->held.device;
	site->ended.count++;
	site->ended.bytes += entry->held.device;
	mark_changed(site);
}

bool spill_site_sums_take(struct spill_record_sum *record)
{
	if (!first_changed)
		return false;
	struct site *site = &sites[first_changed - 1];
	*record = (struct spill_record_sum){
	    .device = site->device,
	    .api = site->api,
	    .caller = site->caller,
	    .rule = site->rule,
	    .allocs = {site->added.count, {.device = site->added.bytes}},
	    .frees = {site->ended.count, {.device = site->ended.bytes}},
	    .live = site->live,
	    .peak = site->peak,
	    .largest = site->largest,
	};
	first_changed = site->next;
	site->changed = false;
	site->peak = site->live;
	site->added = site->ended = (struct count){0};
	site->largest = (struct spill_one){0};
	return true;
}

void spill_site_sums_reset(void)
{
	memset(sites, 0, sizeof(sites));
	first_changed = 0;
}

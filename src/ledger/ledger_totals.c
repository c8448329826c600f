#include "ledger_totals.h"

#include <stdbool.h>
#include <string.h>

#include "live_page.h"
#include "ledger.h"

static struct spill_device_totals all, devices[SPILL_DEVICES];

static unsigned device_index(int device)
{
	return device >= 0 && device < SPILL_DEVICES ? (unsigned)device : SPILL_DEVICES - 1;
}

/* Runs the body twice: for the sums over all devices, and for those of the device. */
#define FOR_EACH_SUM(sums, device) \
	for (struct spill_device_totals *sums = &all; sums; \
	     sums = sums == &all ? &devices[device_index(device)] : NULL)

static void publish_device(int device, unsigned changed)
{
	spill_live_page_publish(device_index(device), &devices[device_index(device)], changed);
}

static void add_held(struct spill_device_totals *sums, const struct spill_allocation *entry)
{
	spill_bytes_add(&sums->totals.live, &entry->held);
	sums->away += spill_ledger_away(entry);
}

static void subtract_held(struct spill_device_totals *sums, const struct spill_allocation *entry)
{
	spill_bytes_take(&sums->totals.live, &entry->held);
	sums->away -= spill_ledger_away(entry);
}

static bool raise_peak(uint64_t *peak, uint64_t value)
{
	if (*peak >= value)
		return false;
	*peak = value;
	return true;
}

static bool raise_peaks(struct spill_totals *totals)
{
	bool device = raise_peak(&totals->peak.device, totals->live.device);
	bool host = raise_peak(&totals->peak.host, totals->live.host);
	bool managed = raise_peak(&totals->peak.managed, totals->live.managed);
	return device || host || managed;
}

static void count_alloc(struct spill_totals *totals, const struct spill_allocation *entry)
{
	totals->allocs++;
	if (!spill_ledger_is_spill(entry))
		return;
	totals->spills++;
	totals->spilled.host += entry->held.host;
	totals->spilled.managed += entry->held.managed;
}

void spill_ledger_totals_added(const struct spill_allocation *entry)
{
	unsigned changed = SPILL_CHANGED_LIVE | (spill_ledger_is_spill(entry) ? SPILL_CHANGED_RARE : 0);
	FOR_EACH_SUM(sums, entry->device)
	{
		add_held(sums, entry);
		count_alloc(&sums->totals, entry);
		if (raise_peaks(&sums->totals))
			changed |= SPILL_CHANGED_PEAK;
	}
	publish_device(entry->device, changed);
}

void spill_ledger_totals_back(const struct spill_allocation *entry)
{
	FOR_EACH_SUM(sums, entry->device)
	{
		add_held(sums, entry);
	}
	publish_device(entry->device, SPILL_CHANGED_LIVE);
}

void spill_ledger_totals_taken(const struct spill_allocation *entry)
{
	FOR_EACH_SUM(sums, entry->device)
	{
		subtract_held(sums, entry);
	}
	publish_device(entry->device, SPILL_CHANGED_LIVE);
}

void spill_ledger_totals_freed(const struct spill_allocation *entry)
{
	FOR_EACH_SUM(sums, entry->device)
	{
		sums->totals.frees++;
	}
	publish_device(entry->device, 0);
}

static void count_move(struct spill_totals *totals, uint64_t before, uint64_t after)
{
	if (after < before) {
		totals->demotions++;
		totals->demoted += before - after;
	} else if (after > before) {
		totals->promotions++;
		totals->promoted += after - before;
	}
}

/* A move does not change the counts of spills: those are of allocations. */
void spill_ledger_totals_moved(struct spill_allocation *entry, const struct spill_bytes *held)
{
	const struct spill_allocation before = *entry;
	entry->held = *held;
	FOR_EACH_SUM(sums, entry->device)
	{
		count_move(&sums->totals, before.held.device, held->device);
		subtract_held(sums, &before);
		add_held(sums, entry);
		raise_peaks(&sums->totals);
	}
	publish_device(entry->device, SPILL_CHANGED_ALL);
}

void spill_ledger_totals_oom(int device)
{
	FOR_EACH_SUM(sums, device)
	{
		sums->totals.ooms++;
	}
	publish_device(device, SPILL_CHANGED_RARE);
}

const struct spill_totals *spill_ledger_totals_sum(void)
{
	return &all.totals;
}

void spill_ledger_totals_reset(void)
{
	memset(&all, 0, sizeof(all));
	memset(devices, 0, sizeof(devices));
}

#include "ledger_totals.h"

#include <string.h>

#include "live_page.h"
#include "ledger.h"
#include "minmax.h"
#include "metrics.h"

static struct spill_device_totals all, devices[SPILL_DEVICES];
static bool any_summed; /* at least one event had no line */
static bool any_seen;   /* at least one launch told which memory it uses */

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
	spill_metrics_changed();
}

/* The part of its memory off the device that is in chunks, so that launches tell their use of it. */
static uint64_t followed_of(const struct spill_allocation *entry)
{
	bool chunks = entry->place == SPILL_PLACE_SPLIT || entry->place == SPILL_PLACE_MOVABLE;
	return chunks ? spill_ledger_away(entry) : 0;
}

static void add_held(struct spill_device_totals *sums, const struct spill_allocation *entry)
{
	spill_bytes_add(&sums->totals.live, &entry->held);
	sums->away += spill_ledger_away(entry);
	sums->followed += followed_of(entry);
}

static void subtract_held(struct spill_device_totals *sums, const struct spill_allocation *entry)
{
	spill_bytes_take(&sums->totals.live, &entry->held);
	sums->away -= spill_ledger_away(entry);
	sums->followed -= followed_of(entry);
}

static bool raise_peak(uint64_t *peak, uint64_t value)
{
	if (*peak >= value)
		return false;
	*peak = value;
	return true;
}

/* Without a launch that tells its memory, no use of memory is known (spill_ledger_totals_in_place). */
static void tell_followed(struct spill_device_totals *sums)
{
	if (any_seen)
		sums->totals.away.in_place.followed = sums->followed_peak;
}

static bool raise_peaks(struct spill_device_totals *sums)
{
	struct spill_totals *totals = &sums->totals;
	bool device = raise_peak(&totals->peak.device, totals->live.device);
	bool host = raise_peak(&totals->peak.host, totals->live.host);
	bool managed = raise_peak(&totals->peak.managed, totals->live.managed);
	bool away = raise_peak(&totals->away.peak, sums->away);
	bool wanted = raise_peak(&totals->away.wanted, totals->live.device + sums->away);
	if (raise_peak(&sums->followed_peak, sums->followed))
		tell_followed(sums);
	return device || host || managed || away || wanted;
}

/* Before an event with a line. */
static struct spill_level begin_line(int device)
{
	const struct spill_device_totals *own = &devices[device_index(device)];
	if (!own->silent && !all.silent)
		return (struct spill_level){0};
	return (struct spill_level){.device_peak = own->high, .all_peak = all.high};
}

/* After it. */
static void end_line(int device, struct spill_level *level)
{
	FOR_EACH_SUM(sums, device)
	{
		sums->high = sums->totals.live.device;
		sums->silent = false;
	}
	if (!level->all_peak)
		return;
	level->device = devices[device_index(device)].high;
	level->all = all.high;
}

/* An event without a line. */
static void skip_line(int device)
{
	any_summed = true;
	FOR_EACH_SUM(sums, device)
	{
		raise_peak(&sums->high, sums->totals.live.device);
		sums->silent = true;
	}
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

static void end_event(struct spill_allocation *entry)
{
	if (entry->sum)
		skip_line(entry->device);
	else
		end_line(entry->device, &entry->level);
}

void spill_ledger_totals_added(struct spill_allocation *entry)
{
	unsigned changed = SPILL_CHANGED_LIVE | (spill_ledger_is_spill(entry) ? SPILL_CHANGED_RARE : 0);
	entry->level = begin_line(entry->device);
	FOR_EACH_SUM(sums, entry->device)
	{
		add_held(sums, entry);
		count_alloc(&sums->totals, entry);
		if (raise_peaks(sums))
			changed |= SPILL_CHANGED_PEAK;
	}
	end_event(entry);
	publish_device(entry->device, changed);
}

/* The line of its removal is not written, so the next line must tell the level. */
void spill_ledger_totals_back(const struct spill_allocation *entry)
{
	FOR_EACH_SUM(sums, entry->device)
	{
		add_held(sums, entry);
	}
	if (any_summed)
		skip_line(entry->device);
	raise_peak(&devices[device_index(entry->device)].high, entry->level.device_peak);
	raise_peak(&all.high, entry->level.all_peak);
	publish_device(entry->device, SPILL_CHANGED_LIVE);
}

void spill_ledger_totals_taken(struct spill_allocation *entry)
{
	entry->level = begin_line(entry->device);
	FOR_EACH_SUM(sums, entry->device)
	{
		subtract_held(sums, entry);
	}
	end_event(entry);
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
	entry->level = begin_line(entry->device);
	entry->held = *held;
	FOR_EACH_SUM(sums, entry->device)
	{
		count_move(&sums->totals, before.held.device, held->device);
		subtract_held(sums, &before);
		add_held(sums, entry);
		raise_peaks(sums);
	}
	end_line(entry->device, &entry->level);
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

void spill_ledger_totals_held_up(int device, uint64_t us)
{
	FOR_EACH_SUM(sums, device)
	{
		sums->totals.away.moves_us += us;
	}
	publish_device(device, SPILL_CHANGED_RARE);
}

static uint64_t raise_and_tell(uint64_t *sum, uint64_t value)
{
	uint64_t more = spill_minus(value, *sum);
	*sum += more;
	return more;
}

void spill_ledger_totals_in_place(int device, const struct spill_in_place *now)
{
	struct spill_in_place *sum = &all.totals.away.in_place,
	                      *own = &devices[device_index(device)].totals.away.in_place;
	any_seen = true;
	FOR_EACH_SUM(sums, device)
	{
		tell_followed(sums);
	}
	own->bytes += raise_and_tell(&sum->bytes, now->bytes);
	own->us += raise_and_tell(&sum->us, now->us);
	own->most_us += raise_and_tell(&sum->most_us, now->most_us);
	publish_device(device, SPILL_CHANGED_RARE);
}

struct spill_level spill_ledger_totals_level(int device)
{
	struct spill_level level = begin_line(device);
	end_line(device, &level);
	return level;
}

const struct spill_totals *spill_ledger_totals_sum(void)
{
	return &all.totals;
}

uint64_t spill_ledger_totals_away(void)
{
	return all.away;
}

const struct spill_device_totals *spill_ledger_totals_of(unsigned device)
{
	return &devices[device];
}

void spill_ledger_totals_reset(void)
{
	memset(&all, 0, sizeof(all));
	memset(devices, 0, sizeof(devices));
	any_summed = any_seen = false;
}

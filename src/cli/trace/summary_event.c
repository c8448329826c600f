/* What one event changes in a run's sums. */
#include <string.h>

#include "summary.h"

static void raise(uint64_t *peak, uint64_t value)
{
	if (*peak < value)
		*peak = value;
}

void cli_bytes_raise(struct spill_bytes *peak, const struct spill_bytes *live)
{
	raise(&peak->device, live->device);
	raise(&peak->host, live->host);
	raise(&peak->managed, live->managed);
}

static bool is(const struct cli_name *name, const char *text)
{
	return name && !strcmp(name->text, text);
}

/* Placed off the device by us, as docs/log-format.md counts it. */
static bool is_spill(const struct cli_event *event)
{
	return (is(event->reason, "oom") || is(event->reason, "limit") || is(event->reason, "rule")) &&
	       event->held.host + event->held.managed;
}

static void fit(struct cli_device *device, uint64_t refused)
{
	uint64_t host = device->live.host - device->asked;
	uint64_t wanted = device->live.device + host + device->live.managed + refused;

	if (wanted > device->fit.wanted)
		device->fit =
		    (struct cli_fit){wanted, device->live.device, host, device->live.managed, refused};
}

/* One request of 2^60 bytes would hide what was wanted in earnest. */
static void surfaced(struct cli_summary *summary, const struct cli_event *event)
{
	struct cli_device *device = cli_summary_device(summary, event->device);

	if (device->bytes && spill_oom_is_beyond(event->bytes, device->bytes))
		device->beyond++;
	else
		fit(device, event->bytes);
}

/* It is there now, or more of it is; its device's row. */
static struct cli_device *came(struct cli_summary *summary, const struct cli_live_entry *entry)
{
	struct cli_device *device = cli_summary_device(summary, entry->device);

	spill_bytes_add(&summary->totals.live, &entry->held);
	spill_bytes_add(&device->live, &entry->held);
	device->asked += entry->asked ? entry->held.host : 0;
	return device;
}

static void went(struct cli_summary *summary, const struct cli_live_entry *entry)
{
	struct cli_device *device = cli_summary_device(summary, entry->device);

	spill_bytes_take(&summary->totals.live, &entry->held);
	spill_bytes_take(&device->live, &entry->held);
	device->asked -= entry->asked ? entry->held.host : 0;
}

static void new_peaks(struct cli_summary *summary, struct cli_device *device)
{
	cli_bytes_raise(&summary->totals.peak, &summary->totals.live);
	cli_bytes_raise(&device->peak, &device->live);
	fit(device, 0);
}

static void keep_large(struct cli_large_list *largest, const struct cli_event *event)
{
	unsigned at = largest->count, last;

	while (at && largest->list[at - 1].bytes < event->bytes)
		at--;
	if (at == CLI_LARGEST)
		return;
	last = largest->count < CLI_LARGEST ? largest->count++ : CLI_LARGEST - 1;
	memmove(&largest->list[at + 1], &largest->list[at], (last - at) * sizeof(largest->list[0]));
	largest->list[at] = (struct cli_large){event->seq,   event->bytes, event->time_us, event->device,
	                                       event->place, event->api,   event->caller,  false};
}

static void count_in_views(struct cli_summary *summary, struct cli_names *names,
                           const struct cli_event *event, struct cli_live_entry *entry)
{
	const struct cli_name *keys[CLI_VIEWS] = {
	    [CLI_BY_CALLER] = event->caller,
	    [CLI_BY_PLACE] = cli_names_get(names, spill_place_name(event->place)),
	    [CLI_BY_RULE] = event->rule,
	    [CLI_BY_REASON] = event->reason,
	};

	for (unsigned view = 0; view < CLI_VIEWS; view++) {
		struct cli_table *table = &summary->views[view];
		struct cli_row *row;

		entry->rows[view] = cli_table_row(table, keys[view]);
		row = &table->rows[entry->rows[view]];
		row->count++;
		row->bytes += event->bytes;
		row->spilled += is_spill(event) ? event->held.host + event->held.managed : 0;
		row->live += event->bytes;
		raise(&row->peak, row->live);
	}
}

static void forget(struct cli_summary *summary, struct cli_live_entry *entry)
{
	went(summary, entry);
	for (unsigned view = 0; entry->known && view < CLI_VIEWS; view++)
		summary->views[view].rows[entry->rows[view]].live -= entry->bytes;
	cli_moved_free(&summary->moved, entry->seq);
	cli_live_remove(&summary->live, entry);
}

static void alloc(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event)
{
	struct cli_live_entry *entry = cli_live_find(&summary->live, event->seq);

	summary->totals.allocs++;
	if (is_spill(event)) {
		summary->totals.spills++;
		summary->totals.spilled.host += event->held.host;
		summary->totals.spilled.managed += event->held.managed;
	}
	keep_large(&summary->largest, event);
	if (!event->seq)
		return;
	if (entry)
		forget(summary, entry);
	entry = cli_live_add(&summary->live, event->seq);
	entry->bytes = event->bytes;
	entry->held = event->held;
	entry->device = event->device;
	entry->known = true;
	entry->asked = is(event->reason, "asked") && event->place == SPILL_PLACE_HOST;
	count_in_views(summary, names, event, entry);
	new_peaks(summary, came(summary, entry));
}

/* The first that is told of an allocation: its alloc is not in the log (log.level = spills), or in the sums of log.max. */
static struct cli_live_entry *found_moving(struct cli_summary *summary, const struct cli_event *event,
                                           uint64_t left, uint64_t arrived)
{
	struct cli_live_entry *entry = cli_live_add(&summary->live, event->seq);

	entry->device = event->device;
	entry->bytes = spill_bytes_all(&event->held);
	entry->held = event->held;
	entry->held.device += left - arrived;
	entry->held.host += arrived - left;
	came(summary, entry);
	spill_bytes_add(&summary->unannounced, &entry->held);
	return entry;
}

static void count_move(struct cli_table *table, const struct cli_event *event)
{
	struct cli_row *row;
	unsigned at = cli_table_row(table, event->reason);

	row = &table->rows[at];
	row->count++;
	row->bytes += event->bytes;
}

/* Who asked for it: a move's own caller is who asked for the room. */
static const struct cli_name *caller_of(const struct cli_summary *summary, const struct cli_live_entry *entry)
{
	return entry->known ? summary->views[CLI_BY_CALLER].rows[entry->rows[CLI_BY_CALLER]].name : NULL;
}

static void move(struct cli_summary *summary, const struct cli_event *event)
{
	bool demote = event->kind == CLI_EVENT_DEMOTE;
	uint64_t left = demote ? event->bytes : 0, arrived = demote ? 0 : event->bytes;
	struct cli_live_entry *entry = cli_live_find(&summary->live, event->seq);

	*(demote ? &summary->totals.demotions : &summary->totals.promotions) += 1;
	summary->totals.demoted += left;
	summary->totals.promoted += arrived;
	count_move(demote ? &summary->demoted : &summary->promoted, event);
	if (!event->seq)
		return;
	if (!entry)
		entry = found_moving(summary, event, left, arrived);
	went(summary, entry);
	entry->held = event->held;
	entry->moves += demote;
	entry->moved += left;
	if (entry->moves)
		cli_moved_note(&summary->moved, entry, caller_of(summary, entry));
	new_peaks(summary, came(summary, entry));
}

static void release(struct cli_summary *summary, const struct cli_event *event)
{
	struct cli_live_entry *entry = cli_live_find(&summary->live, event->seq);

	summary->totals.frees++;
	for (unsigned i = 0; i < summary->largest.count; i++)
		summary->largest.list[i].freed |= summary->largest.list[i].seq == event->seq;
	if (!entry) {
		summary->unknown_frees++;
		return;
	}
	forget(summary, entry);
}

void cli_summary_event(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event)
{
	if (summary->exited) {
		summary->after_exit++;
		return;
	}
	switch (event->kind) {
	case CLI_EVENT_ALLOC:
		return alloc(summary, names, event);
	case CLI_EVENT_FREE:
		return release(summary, event);
	case CLI_EVENT_DEMOTE:
	case CLI_EVENT_PROMOTE:
		return move(summary, event);
	case CLI_EVENT_OOM:
		if (!cli_oom_is_honest(event))
			surfaced(summary, event);
		return;
	}
}

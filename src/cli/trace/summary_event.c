/* Adds one event to a run's sums. */
#include <string.h>

#include "minmax.h"
#include "summary.h"

void cli_bytes_raise(struct spill_bytes *peak, const struct spill_bytes *live)
{
	peak->device = spill_max(peak->device, live->device);
	peak->host = spill_max(peak->host, live->host);
	peak->managed = spill_max(peak->managed, live->managed);
}

struct spill_bytes cli_device_held(const struct cli_device *device)
{
	struct spill_bytes held = device->live;

	held.device = cli_not_below_zero(held.device + device->ahead);
	return held;
}

/* True if libspill placed memory off the device (docs/log-format.md). */
static bool is_spill(const struct cli_event *event)
{
	return (cli_name_is(event->reason, "oom") || cli_name_is(event->reason, "limit") ||
	        cli_name_is(event->reason, "rule")) &&
	       event->held.host + event->held.managed;
}

static void update_fit(struct cli_device *device, const struct spill_bytes *held, uint64_t refused)
{
	uint64_t host = spill_minus(held->host, device->asked);
	uint64_t wanted = held->device + host + held->managed + refused;

	if (wanted > device->fit.wanted)
		device->fit = (struct cli_fit){wanted, held->device, host, held->managed, refused};
}

static bool is_one_of(const struct cli_name *name, const char *const list[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (cli_name_is(name, list[i]))
			return true;
	}
	return false;
}

/* Did the device itself lack memory, and not only a limit or a rule? */
static bool is_short(const struct cli_event *event)
{
	static const char *const moves[] = {"oom", "room", "reserve", "exchange"}, *const limits[] = {
	                                                                               "device.limit",
	                                                                               "rule.place",
	                                                                               "rule.over",
	                                                                               "rule.cap"};

	if (event->kind == CLI_EVENT_ALLOC)
		return cli_name_is(event->reason, "oom");
	if (event->kind == CLI_EVENT_DEMOTE)
		return is_one_of(event->reason, moves, sizeof(moves) / sizeof(moves[0]));
	return event->kind == CLI_EVENT_OOM &&
	       !is_one_of(event->reason, limits, sizeof(limits) / sizeof(limits[0]));
}

/* Keeps the driver's figures of the event. `request`: bytes that were refused. */
static void keep_seen(struct cli_device *device, const struct cli_event *event, uint64_t request)
{
	struct cli_shortage *shortage = &device->shortage;
	struct spill_bytes held = cli_device_held(device);
	uint64_t demand = spill_minus(spill_bytes_all(&held), device->asked) + request;
	uint64_t others = spill_minus(spill_minus(event->seen.total, event->seen.free), event->seen.ours);

	if (!event->seen.total || (shortage->bytes && demand + others <= shortage->demand + shortage->others))
		return;
	shortage->bytes = event->seen.total;
	shortage->free = event->seen.free;
	shortage->others = others;
	shortage->demand = demand;
	shortage->refused = request;
	shortage->time_us = event->time_us;
}

/* A request of 2^60 bytes must not hide the real demand. */
static void add_final_oom(struct cli_summary *summary, const struct cli_event *event)
{
	struct cli_device *device = cli_summary_device(summary, event->device);
	struct spill_bytes held = cli_device_held(device);

	if (device->bytes && spill_oom_is_beyond(event->bytes, device->bytes)) {
		device->beyond++;
		return;
	}
	update_fit(device, &held, event->bytes);
	device->shortage.count += is_short(event);
	keep_seen(device, event, event->bytes);
}

static uint64_t away_of(const struct cli_live_entry *entry)
{
	return entry->ours ? entry->held.host + entry->held.managed : 0;
}

/* After the entry's bytes have changed by `away`, which may wrap around. */
static void count_away(struct cli_summary *summary, const struct cli_live_entry *entry, uint64_t away)
{
	summary->away += away;
	for (unsigned view = 0; entry->known && view < CLI_VIEWS; view++) {
		struct cli_row *row = &summary->views[view].rows[entry->rows[view]];

		row->away += away;
		row->away_peak = spill_max(row->away_peak, row->away);
	}
}

/* Adds the entry's bytes to the run and its device. */
static struct cli_device *add_live(struct cli_summary *summary, const struct cli_live_entry *entry)
{
	struct cli_device *device = cli_summary_device(summary, entry->device);

	spill_bytes_add(&summary->totals.live, &entry->held);
	spill_bytes_add(&device->live, &entry->held);
	device->asked += entry->asked ? entry->held.host : 0;
	count_away(summary, entry, away_of(entry));
	return device;
}

static void take_bytes(struct spill_bytes *live, const struct spill_bytes *freed)
{
	live->device = spill_minus(live->device, freed->device);
	live->host = spill_minus(live->host, freed->host);
	live->managed = spill_minus(live->managed, freed->managed);
}

static void subtract_live(struct cli_summary *summary, const struct cli_live_entry *entry)
{
	struct cli_device *device = cli_summary_device(summary, entry->device);

	take_bytes(&summary->totals.live, &entry->held);
	take_bytes(&device->live, &entry->held);
	device->asked -= entry->asked ? entry->held.host : 0;
	count_away(summary, entry, 0 - away_of(entry));
}

static void raise_peaks(struct cli_summary *summary, struct cli_device *device, const struct spill_bytes *all,
                        const struct spill_bytes *held)
{
	struct spill_away *away = &summary->totals.away;

	cli_bytes_raise(&summary->totals.peak, all);
	away->peak = spill_max(away->peak, summary->away);
	away->wanted = spill_max(away->wanted, all->device + summary->away);
	cli_bytes_raise(&device->peak, held);
	update_fit(device, held, 0);
}

/* Before an event: events without a line may have raised the peaks since the line before. */
static void begin_event(struct cli_summary *summary, const struct cli_event *event)
{
	struct cli_device *device;
	struct spill_bytes all = summary->totals.live, held;

	if (!event->level.all_peak)
		return;
	device = cli_summary_device(summary, event->device);
	held = device->live;
	all.device = event->level.all_peak;
	held.device = event->level.device_peak;
	raise_peaks(summary, device, &all, &held);
}

/* After an event of the device. Only a line with a level, or a sum, changes what is ahead. */
static void end_event(struct cli_summary *summary, struct cli_device *device, const struct cli_event *event)
{
	struct spill_bytes all, held;

	if (event->level.all_peak) {
		device->ahead = event->level.device - device->live.device;
		summary->ahead = event->level.all - summary->totals.live.device;
	}
	all = summary->totals.live;
	all.device = cli_not_below_zero(all.device + summary->ahead);
	held = cli_device_held(device);
	raise_peaks(summary, device, &all, &held);
	device->shortage.count += is_short(event);
	keep_seen(device, event, 0);
}

static void insert_large(struct cli_large_list *largest, const struct cli_event *event)
{
	unsigned index = largest->count, last;

	while (index && largest->list[index - 1].bytes < event->bytes)
		index--;
	if (index == CLI_LARGEST)
		return;
	last = largest->count < CLI_LARGEST ? largest->count++ : CLI_LARGEST - 1;
	memmove(&largest->list[index + 1], &largest->list[index], (last - index) * sizeof(largest->list[0]));
	largest->list[index] = (struct cli_large){
	    .seq = event->seq,
	    .bytes = event->bytes,
	    .time_us = event->time_us,
	    .device = event->device,
	    .place = event->place,
	    .api = event->api,
	    .caller = event->who,
	    .summed = event->kind == CLI_EVENT_SUM,
	};
}

static unsigned moved_index(const struct cli_moved_list *moved, uint64_t seq)
{
	unsigned index = 0;

	while (index < moved->count && moved->list[index].seq != seq)
		index++;
	return index;
}

static void add_moved(struct cli_moved_list *moved, const struct cli_live_entry *entry,
                      const struct cli_name *caller)
{
	unsigned index = moved_index(moved, entry->seq);

	if (index == CLI_MOVED) {
		if (moved->list[--index].moved >= entry->moved)
			return;
	} else if (index == moved->count) {
		moved->count++;
	}
	for (; index && moved->list[index - 1].moved < entry->moved; index--)
		moved->list[index] = moved->list[index - 1];
	moved->list[index] = (struct cli_moved){
	    .seq = entry->seq,
	    .bytes = entry->bytes,
	    .moves = entry->moves,
	    .moved = entry->moved,
	    .host = entry->held.host,
	    .device = entry->device,
	    .caller = caller,
	};
}

static void mark_moved_freed(struct cli_moved_list *moved, uint64_t seq)
{
	unsigned index = moved_index(moved, seq);

	if (index < moved->count)
		moved->list[index].host = 0;
}

/* The rows of the event in all views. */
static void find_rows(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event,
                      unsigned rows[CLI_VIEWS])
{
	const struct cli_name *keys[CLI_VIEWS] = {
	    [CLI_BY_CALLER] = event->who,
	    [CLI_BY_PLACE] = cli_names_get(names, spill_place_name(event->place)),
	    [CLI_BY_RULE] = event->rule,
	    [CLI_BY_REASON] = event->reason,
	};

	for (unsigned view = 0; view < CLI_VIEWS; view++)
		rows[view] = cli_table_row(&summary->views[view], keys[view]);
}

static void count_in_views(struct cli_summary *summary, struct cli_names *names,
                           const struct cli_event *event, struct cli_live_entry *entry)
{
	find_rows(summary, names, event, entry->rows);
	for (unsigned view = 0; view < CLI_VIEWS; view++) {
		struct cli_row *row = &summary->views[view].rows[entry->rows[view]];

		row->count++;
		row->bytes += event->bytes;
		row->spilled += is_spill(event) ? event->held.host + event->held.managed : 0;
		row->live += event->bytes;
		row->peak = spill_max(row->peak, row->live);
	}
}

/* The row's peak counts what others in the row held at their last lines. */
static void count_sum_in_views(struct cli_summary *summary, struct cli_names *names,
                               const struct cli_event *event)
{
	const struct cli_site_sum *sum = &event->sum;
	uint64_t before = sum->live - sum->alloc_bytes + sum->free_bytes;
	unsigned rows[CLI_VIEWS];

	find_rows(summary, names, event, rows);
	for (unsigned view = 0; view < CLI_VIEWS; view++) {
		struct cli_row *row = &summary->views[view].rows[rows[view]];

		row->count += sum->allocs;
		row->bytes += sum->alloc_bytes;
		row->peak = spill_max(row->peak, spill_minus(row->live + sum->peak, before));
		row->live = spill_minus(row->live + sum->alloc_bytes, sum->free_bytes);
	}
}

static void drop_entry(struct cli_summary *summary, struct cli_live_entry *entry)
{
	subtract_live(summary, entry);
	for (unsigned view = 0; entry->known && view < CLI_VIEWS; view++) {
		struct cli_row *row = &summary->views[view].rows[entry->rows[view]];

		row->live = spill_minus(row->live, entry->bytes);
	}
	mark_moved_freed(&summary->moved, entry->seq);
	cli_live_remove(&summary->live, entry);
}

static void count_alloc(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event)
{
	struct cli_live_entry *entry = cli_live_find(&summary->live, event->seq);

	summary->totals.allocs++;
	if (is_spill(event)) {
		summary->totals.spills++;
		summary->totals.spilled.host += event->held.host;
		summary->totals.spilled.managed += event->held.managed;
	}
	insert_large(&summary->largest, event);
	if (!event->seq)
		return;
	if (entry)
		drop_entry(summary, entry);
	entry = cli_live_add(&summary->live, event->seq);
	entry->bytes = event->bytes;
	entry->held = event->held;
	entry->device = event->device;
	entry->known = true;
	entry->ours = !cli_name_is(event->reason, "asked");
	entry->asked = !entry->ours && event->place == SPILL_PLACE_HOST;
	count_in_views(summary, names, event, entry);
	end_event(summary, add_live(summary, entry), event);
}

/* What is ahead becomes less by what the line tells. */
static void add_sum(uint64_t *live, uint64_t *ahead, const struct cli_site_sum *sum)
{
	uint64_t before = *live;

	*live = spill_minus(before + sum->alloc_bytes, sum->free_bytes);
	*ahead -= *live - before;
}

static void count_sum(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event)
{
	const struct cli_site_sum *sum = &event->sum;
	struct cli_device *device = cli_summary_device(summary, event->device);
	struct cli_event largest = *event;

	summary->totals.allocs += sum->allocs;
	summary->totals.frees += sum->frees;
	add_sum(&summary->totals.live.device, &summary->ahead, sum);
	add_sum(&device->live.device, &device->ahead, sum);
	count_sum_in_views(summary, names, event);
	largest.seq = sum->largest.seq;
	largest.bytes = sum->largest.bytes;
	if (largest.bytes)
		insert_large(&summary->largest, &largest);
	end_event(summary, device, event);
}

/* The first event without an alloc line, left out by log.level or log.max. */
static struct cli_live_entry *add_unannounced(struct cli_summary *summary, const struct cli_event *event,
                                              uint64_t left, uint64_t arrived)
{
	struct cli_live_entry *entry = cli_live_add(&summary->live, event->seq);

	entry->device = event->device;
	entry->ours = true;
	entry->bytes = spill_bytes_all(&event->held);
	entry->held = event->held;
	entry->held.device = spill_minus(entry->held.device + left, arrived);
	entry->held.host = spill_minus(entry->held.host + arrived, left);
	add_live(summary, entry);
	spill_bytes_add(&summary->unannounced, &entry->held);
	return entry;
}

static void count_reason(struct cli_table *table, const struct cli_event *event)
{
	struct cli_row *row;
	unsigned index = cli_table_row(table, event->reason);

	row = &table->rows[index];
	row->count++;
	row->bytes += event->bytes;
}

/* Who allocated it. A move's own caller is the one that needed room. */
static const struct cli_name *caller_of_entry(const struct cli_summary *summary,
                                              const struct cli_live_entry *entry)
{
	return entry->known ? summary->views[CLI_BY_CALLER].rows[entry->rows[CLI_BY_CALLER]].name : NULL;
}

/*
 * The lines of one move have its time so far, from the same begin. Moves never run beside each
 * other.
 */
static void count_move_time(struct cli_summary *summary, const struct cli_event *event)
{
	uint64_t start_us = spill_minus(event->time_us, event->took_us);

	if (start_us != summary->move_start_us)
		summary->move_told_us = 0;
	summary->move_start_us = start_us;
	summary->totals.away.moves_us += spill_minus(event->took_us, summary->move_told_us);
	summary->move_told_us = spill_max(event->took_us, summary->move_told_us);
}

static void count_move_event(struct cli_summary *summary, const struct cli_event *event)
{
	bool demote = event->kind == CLI_EVENT_DEMOTE;
	uint64_t left = demote ? event->bytes : 0, arrived = demote ? 0 : event->bytes;
	struct cli_live_entry *entry = cli_live_find(&summary->live, event->seq);

	*(demote ? &summary->totals.demotions : &summary->totals.promotions) += 1;
	summary->totals.demoted += left;
	summary->totals.promoted += arrived;
	count_reason(demote ? &summary->demoted : &summary->promoted, event);
	count_move_time(summary, event);
	if (!event->seq)
		return;
	if (!entry)
		entry = add_unannounced(summary, event, left, arrived);
	subtract_live(summary, entry);
	entry->held = event->held;
	entry->moves += demote;
	entry->moved += left;
	if (entry->moves)
		add_moved(&summary->moved, entry, caller_of_entry(summary, entry));
	end_event(summary, add_live(summary, entry), event);
}

static void count_free(struct cli_summary *summary, const struct cli_event *event)
{
	struct cli_live_entry *entry = cli_live_find(&summary->live, event->seq);
	int device = entry ? entry->device : event->device;

	summary->totals.frees++;
	for (unsigned i = 0; i < summary->largest.count; i++)
		summary->largest.list[i].freed |= summary->largest.list[i].seq == event->seq;
	if (!entry) {
		summary->unknown_frees++;
		return;
	}
	drop_entry(summary, entry);
	end_event(summary, cli_summary_device(summary, device), event);
}

void cli_summary_event(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event)
{
	if (summary->exited) {
		summary->after_exit++;
		return;
	}
	begin_event(summary, event);
	switch (event->kind) {
	case CLI_EVENT_ALLOC:
		return count_alloc(summary, names, event);
	case CLI_EVENT_FREE:
		return count_free(summary, event);
	case CLI_EVENT_DEMOTE:
	case CLI_EVENT_PROMOTE:
		return count_move_event(summary, event);
	case CLI_EVENT_SUM:
		return count_sum(summary, names, event);
	case CLI_EVENT_OOM:
		if (!cli_oom_is_honest(event))
			add_final_oom(summary, event);
		return;
	}
}

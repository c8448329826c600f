/* Sums of a run against all that happened: each figure is worked out a second time, from all allocations. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "minmax.h"
#include "one_summary.h"
#include "roll.h"

enum { EVENTS = 4000, MOST_LIVE = 60, DEVICES = 2, DEVICE_BYTES = 2000 };

struct happened {
	struct cli_event event; /* its alloc; `held` as it is now */
	bool live;
	uint64_t moves, moved;
};

static struct happened all[EVENTS];
static unsigned count, live[MOST_LIVE], live_count;
static uint64_t events;

/* What is expected of the whole run; sums of what is held now are added up anew. */
static struct spill_totals totals;
static struct cli_device devices[DEVICES];
static struct cli_row rows[3]; /* by caller */

static bool is_asked(const struct cli_event *alloc)
{
	return cli_name_is(alloc->reason, "asked");
}

static uint64_t off_device(const struct spill_bytes *held)
{
	return held->host + held->managed;
}

static void raise(struct spill_bytes *peak, const struct spill_bytes *held)
{
	peak->device = spill_max(peak->device, held->device);
	peak->host = spill_max(peak->host, held->host);
	peak->managed = spill_max(peak->managed, held->managed);
}

/* What a device holds; *asked: the part on the host that the program itself put there. */
static struct spill_bytes held_on(int device, uint64_t *asked)
{
	struct spill_bytes held = {0};

	*asked = 0;
	for (unsigned i = 0; i < live_count; i++) {
		const struct cli_event *alloc = &all[live[i]].event;

		if (alloc->device != device)
			continue;
		spill_bytes_add(&held, &alloc->held);
		if (is_asked(alloc) && alloc->place == SPILL_PLACE_HOST)
			*asked += alloc->held.host;
	}
	return held;
}

static void expect_fit(struct cli_device *device, const struct spill_bytes *held, uint64_t asked,
                       uint64_t refused)
{
	uint64_t wanted = held->device + held->host - asked + held->managed + refused;

	if (wanted > device->fit.wanted)
		device->fit =
		    (struct cli_fit){wanted, held->device, held->host - asked, held->managed, refused};
}

static void expect_seen(struct cli_device *device, const struct cli_event *event, uint64_t refused)
{
	uint64_t asked;
	struct spill_bytes held = held_on(event->device, &asked);
	uint64_t demand = spill_bytes_all(&held) - asked + refused;
	uint64_t taken = event->seen.free + event->seen.ours;
	uint64_t others = event->seen.total > taken ? event->seen.total - taken : 0;
	struct cli_shortage *kept = &device->shortage;

	if (event->seen.total && (!kept->bytes || demand + others > kept->demand + kept->others))
		*kept = (struct cli_shortage){kept->count, event->seen.total, event->seen.free, others,
		                              demand,      refused,           event->time_us};
}

/* After an event that changed what is held. */
static void expect_peaks(const struct cli_event *event)
{
	struct spill_bytes sum = {0};
	uint64_t away = 0;

	for (int i = 0; i < DEVICES; i++) {
		uint64_t asked;
		struct spill_bytes held = held_on(i, &asked);

		devices[i].live = held;
		spill_bytes_add(&sum, &held);
		if (i != event->device)
			continue;
		raise(&devices[i].peak, &held);
		expect_fit(&devices[i], &held, asked, 0);
	}
	for (unsigned row = 0; row < 3; row++)
		rows[row].live = rows[row].away = 0;
	for (unsigned i = 0; i < live_count; i++) {
		const struct cli_event *alloc = &all[live[i]].event;

		for (unsigned row = 0; row < 3; row++) {
			if (alloc->who != rows[row].name)
				continue;
			rows[row].live += alloc->bytes;
			rows[row].away += is_asked(alloc) ? 0 : off_device(&alloc->held);
		}
		away += is_asked(alloc) ? 0 : off_device(&alloc->held);
	}
	for (unsigned row = 0; row < 3; row++) {
		rows[row].peak = spill_max(rows[row].peak, rows[row].live);
		rows[row].away_peak = spill_max(rows[row].away_peak, rows[row].away);
	}
	totals.live = sum;
	raise(&totals.peak, &sum);
	totals.away.peak = spill_max(totals.away.peak, away);
	totals.away.wanted = spill_max(totals.away.wanted, sum.device + away);
	expect_seen(&devices[event->device], event, 0);
}

static struct cli_event any_event(enum cli_event_kind kind)
{
	static const char *const callers[] = {"a", "b", "c"};
	struct cli_event event = {.kind = kind, .device = (int)roll(DEVICES), .time_us = 10 * ++events};

	event.caller = event.who = name(callers[roll(3)]);
	event.api = name("cuMemAlloc_v2");
	event.rule = roll(2) ? name("mine") : NULL;
	if (!roll(3))
		event.seen =
		    (struct spill_seen){.free = roll(500), .total = 1000 + roll(500), .ours = roll(1200)};
	return event;
}

static bool is_short(const char *reason, const char *const list[], unsigned length)
{
	for (unsigned i = 0; i < length; i++) {
		if (!strcmp(reason, list[i]))
			return true;
	}
	return false;
}

static void allocate(void)
{
	static const char *const reasons[] = {"fits", "oom", "limit", "rule", "asked"};
	struct cli_event event = any_event(CLI_EVENT_ALLOC);
	unsigned reason = (unsigned)roll(5), row = 0;

	event.reason = name(reasons[reason]);
	event.place = roll(2) ? SPILL_PLACE_HOST : SPILL_PLACE_MANAGED;
	event.bytes = 1 + roll(100);
	event.held = (struct spill_bytes){roll(50), reason ? roll(50) : 0, reason && !roll(3) ? roll(50) : 0};
	event.seq = count + 1;
	all[count] = (struct happened){event, true, 0, 0};
	live[live_count++] = count++;
	totals.allocs++;
	for (; rows[row].name != event.who; row++)
		;
	rows[row].count++;
	rows[row].bytes += event.bytes;
	if (reason >= 1 && reason <= 3 && off_device(&event.held)) {
		totals.spills++;
		totals.spilled.host += event.held.host;
		totals.spilled.managed += event.held.managed;
		rows[row].spilled += off_device(&event.held);
	}
	devices[event.device].shortage.count += reason == 1;
	expect_peaks(&event);
	tell(&event);
}

static void release(void)
{
	unsigned at = (unsigned)roll(live_count);
	struct happened *freed = &all[live[at]];
	struct cli_event event = any_event(CLI_EVENT_FREE);

	event.seen = (struct spill_seen){0};
	event.device = freed->event.device;
	event.seq = freed->event.seq;
	freed->live = false;
	live[at] = live[--live_count];
	totals.frees++;
	expect_peaks(&event);
	tell(&event);
}

static void move(enum cli_event_kind kind)
{
	static const char *const reasons[] = {"oom", "room", "reserve", "exchange", "use", "limit"};
	struct happened *moved = &all[live[roll(live_count)]];
	struct cli_event event = any_event(kind);
	struct spill_bytes *held = &moved->event.held;
	bool demote = kind == CLI_EVENT_DEMOTE;
	const char *reason = reasons[roll(6)];

	event.device = moved->event.device;
	event.seq = moved->event.seq;
	event.reason = name(reason);
	event.bytes = roll((demote ? held->device : held->host) + 1);
	held->device += demote ? 0 - event.bytes : event.bytes;
	held->host += demote ? event.bytes : 0 - event.bytes;
	event.held = *held;
	event.took_us = roll(9);
	totals.away.moves_us += event.took_us;
	if (demote) {
		totals.demotions++;
		totals.demoted += event.bytes;
		moved->moves++;
		moved->moved += event.bytes;
		devices[event.device].shortage.count += is_short(reason, reasons, 4);
	} else {
		totals.promotions++;
		totals.promoted += event.bytes;
	}
	expect_peaks(&event);
	tell(&event);
}

static void refuse(void)
{
	static const char *const reasons[] = {"device.limit", "rule.place",       "rule.over", "rule.cap",
	                                      "host.limit",   "oom.honest_first", "driver"};
	struct cli_event event = any_event(CLI_EVENT_OOM);
	struct cli_device *device = &devices[event.device];
	const char *reason = reasons[roll(7)];
	uint64_t asked;
	struct spill_bytes held = held_on(event.device, &asked);

	event.reason = name(reason);
	event.bytes = roll(10) ? roll(500) : (uint64_t)DEVICE_BYTES << 20;
	tell(&event);
	if (!strcmp(reason, "oom.honest_first"))
		return;
	if (event.bytes > 500) {
		device->beyond++;
		return;
	}
	expect_fit(device, &held, asked, event.bytes);
	device->shortage.count += !is_short(reason, reasons, 4);
	expect_seen(device, &event, event.bytes);
}

static void check_devices(void)
{
	for (int i = 0; i < DEVICES; i++) {
		const struct cli_device *device = cli_summary_device(&summary, i);
		struct spill_bytes held = cli_device_held(device);
		uint64_t asked;

		assert_memory_equal(&device->live, &devices[i].live, sizeof(held));
		assert_memory_equal(&device->peak, &devices[i].peak, sizeof(held));
		assert_memory_equal(&held, &devices[i].live, sizeof(held));
		assert_memory_equal(&device->fit, &devices[i].fit, sizeof(device->fit));
		assert_memory_equal(&device->shortage, &devices[i].shortage, sizeof(device->shortage));
		assert_int_equal(device->beyond, devices[i].beyond);
		held_on(i, &asked);
		assert_int_equal(device->asked, asked);
	}
}

static void check(void)
{
	assert_memory_equal(&summary.totals, &totals, sizeof(totals));
	check_devices();
	for (unsigned row = 0; row < 3; row++) {
		const struct cli_row *told =
		    cli_table_find(&summary.views[CLI_BY_CALLER], rows[row].name->text);

		if (rows[row].count)
			assert_memory_equal(told, &rows[row], sizeof(*told));
	}
	assert_int_equal(summary.live.count, live_count);
}

/* Is the allocation one of the ten with most of that? Of equal ones the first. */
static unsigned rank_of(const struct happened *one, uint64_t (*of)(const struct happened *one))
{
	unsigned rank = 0;

	for (unsigned i = 0; i < count; i++)
		rank += of(&all[i]) > of(one) || (of(&all[i]) == of(one) && &all[i] < one);
	return rank;
}

static uint64_t bytes_of(const struct happened *one)
{
	return one->event.bytes;
}

static void check_largest(void)
{
	assert_int_equal(summary.largest.count, CLI_LARGEST);
	for (unsigned i = 0; i < CLI_LARGEST; i++) {
		const struct cli_large *large = &summary.largest.list[i];
		const struct happened *one = &all[large->seq - 1];

		assert_int_equal(rank_of(one, bytes_of), i);
		assert_int_equal(large->bytes, one->event.bytes);
		assert_int_equal(large->time_us, one->event.time_us);
		assert_int_equal(large->device, one->event.device);
		assert_ptr_equal(large->caller, one->event.who);
		assert_int_equal(large->freed, !one->live);
		assert_false(large->summed);
	}
}

/* None that moved more is left out, and none is there twice. */
static void check_moved(void)
{
	const struct cli_moved_list *list = &summary.moved;
	unsigned more = 0;

	assert_int_equal(list->count, CLI_MOVED);
	for (unsigned i = 0; i < CLI_MOVED; i++) {
		const struct cli_moved *moved = &list->list[i];
		const struct happened *one = &all[moved->seq - 1];

		assert_true(!i || moved->moved <= moved[-1].moved);
		assert_int_equal(moved->moved, one->moved);
		assert_int_equal(moved->moves, one->moves);
		assert_int_equal(moved->bytes, one->event.bytes);
		assert_int_equal(moved->host, one->live ? one->event.held.host : 0);
		assert_int_equal(moved->device, one->event.device);
		assert_ptr_equal(moved->caller, one->event.who);
		for (unsigned j = 0; j < i; j++)
			assert_int_not_equal(moved->seq, list->list[j].seq);
	}
	for (unsigned i = 0; i < count; i++)
		more += all[i].moved > list->list[CLI_MOVED - 1].moved;
	assert_in_range(more, 0, CLI_MOVED - 1);
}

TEST_WITH(all_that_happens_to_a_run, NULL, forget)
{
	static const char *const callers[] = {"a", "b", "c"};

	for (unsigned i = 0; i < 3; i++)
		rows[i].name = name(callers[i]);
	for (int i = 0; i < DEVICES; i++)
		cli_summary_device(&summary, i)->bytes = DEVICE_BYTES;
	for (unsigned i = 0; i < EVENTS; i++) {
		uint64_t kind = roll(100);

		if (!live_count || (kind < 30 && live_count < MOST_LIVE))
			allocate();
		else if (kind < 55)
			release();
		else if (kind < 75)
			move(CLI_EVENT_DEMOTE);
		else if (kind < 90)
			move(CLI_EVENT_PROMOTE);
		else
			refuse();
		check();
	}
	check_largest();
	check_moved();
	assert_int_equal(summary.unknown_frees, 0);
}

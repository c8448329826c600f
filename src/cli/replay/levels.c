/*
 * Memory that sum lines tell, in a recording. It has no sizes of its own. So each call site's bytes
 * are one allocation, a level, that is replaced when they change. What a device holds beyond these,
 * by other lines, is one more level without a name until the sums come. A log may lack lines, so no
 * difference is less than nothing.
 */
#include "cli.h"
#include "recording.h"
#include "minmax.h"

static struct cli_recorded_device *device_of(struct cli_recording *recording, const struct cli_event *event)
{
	return event->device < 0 || event->device >= SPILL_DEVICES ? NULL
	                                                           : &recording->devices[event->device];
}

/* The site is in the upper half. */
static uint64_t key_of(struct cli_recording *recording, const struct cli_event *sum)
{
	uint64_t rule = sum->rule ? sum->rule->id + (uint64_t)1 : 0;

	return (uint64_t)cli_recording_site(recording, sum) << 32 | rule << 8 | (uint8_t)(sum->device + 2);
}

static uint64_t level_at(const struct cli_recording *recording, uint64_t key)
{
	const struct cli_live_entry *entry = cli_live_find(&recording->levels, key);

	return entry ? entry->held.device : 0;
}

/* Replaces the allocation by one of `bytes`. */
static void set_level(struct cli_recording *recording, uint64_t key, const struct cli_event *at,
                      uint64_t bytes)
{
	const struct cli_recorded_site *site = &recording->sites[key >> 32];
	struct cli_event event = {.kind = CLI_EVENT_SUM,
	                          .device = at->device,
	                          .place = SPILL_PLACE_DEVICE,
	                          .time_us = at->time_us,
	                          .bytes = bytes,
	                          .held = {.device = bytes},
	                          .api = site->api,
	                          .caller = site->caller,
	                          .who = site->caller};
	uint64_t before = level_at(recording, key);

	if (before == bytes)
		return;
	recording->devices[at->device].levels += bytes - before;
	cli_recording_take(recording, &recording->levels, key, &event);
	if (bytes)
		cli_recording_put(recording, &recording->levels, key, &event);
}

/* The level without a name. */
static uint64_t rest_key(struct cli_recording *recording, const struct cli_event *at)
{
	const struct cli_event nameless = {.kind = CLI_EVENT_SUM, .device = at->device};

	return key_of(recording, &nameless);
}

/* The key of the device's largest level but two; 0: there is none. */
static uint64_t largest_level(const struct cli_recording *recording, int device, uint64_t but, uint64_t nor)
{
	const struct cli_live *levels = &recording->levels;
	uint64_t largest = 0, key = 0;

	for (size_t i = 0; i < levels->size; i++) {
		const struct cli_live_entry *entry = &levels->entries[i];

		if (!entry->seq || entry->device != device || entry->seq == but || entry->seq == nor ||
		    entry->held.device <= largest)
			continue;
		largest = entry->held.device;
		key = entry->seq;
	}
	return key;
}

/* Call sites have freed so much, and their next sums will say which. */
static void lower_levels(struct cli_recording *recording, const struct cli_event *at, uint64_t excess,
                         uint64_t but)
{
	uint64_t rest = rest_key(recording, at), key;

	while (excess && (key = largest_level(recording, at->device, rest, but))) {
		uint64_t level = level_at(recording, key), less = level < excess ? level : excess;

		set_level(recording, key, at, level - less);
		excess -= less;
	}
}

/* Makes all levels of the device together what it holds without lines. */
static void match_levels(struct cli_recording *recording, const struct cli_event *at, uint64_t summed)
{
	struct cli_recorded_device *device = device_of(recording, at);
	uint64_t rest = rest_key(recording, at);
	uint64_t named = device->levels - level_at(recording, rest);

	if (named >= summed)
		set_level(recording, rest, at, 0);
	lower_levels(recording, at, spill_minus(named, summed), 0);
	set_level(recording, rest, at, spill_minus(summed, named));
}

/* The device bytes of the event's allocation before it. */
static uint64_t bytes_before(const struct cli_recording *recording, const struct cli_event *event)
{
	const struct cli_live_entry *entry = cli_live_find(&recording->live, event->seq);

	return entry && event->kind != CLI_EVENT_SUM ? entry->held.device : 0;
}

void cli_levels_event(struct cli_recording *recording, const struct cli_event *event)
{
	struct cli_recorded_device *device = device_of(recording, event);
	uint64_t own, peak;

	if (!device || !event->level.all_peak)
		return;
	own = device->held - device->levels;
	peak = spill_minus(event->level.device_peak, own);
	if (peak > device->levels)
		match_levels(recording, event, peak);
	own += event->held.device - bytes_before(recording, event);
	device->summed = spill_minus(event->level.device, own);
	match_levels(recording, event, device->summed);
}

void cli_levels_sum(struct cli_recording *recording, const struct cli_event *event)
{
	struct cli_recorded_device *device = device_of(recording, event);
	uint64_t live = event->sum.live, key;

	if (!device)
		return;
	if (device->summed < live)
		device->summed = live;
	key = key_of(recording, event);
	if (level_at(recording, key) < live) {
		/* First its bytes leave the others. */
		uint64_t rest = rest_key(recording, event);

		set_level(recording, rest, event, 0);
		lower_levels(recording, event,
		             spill_minus(device->levels - level_at(recording, key), device->summed - live),
		             key);
	}
	set_level(recording, key, event, live);
	match_levels(recording, event, device->summed);
}

#include "recording.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "minmax.h"

enum cli_where cli_where_of(enum spill_place place)
{
	switch (place) {
	case SPILL_PLACE_SPLIT:
		return CLI_WHERE_SPLIT;
	case SPILL_PLACE_MANAGED:
		return CLI_WHERE_MANAGED;
	case SPILL_PLACE_HOST:
		return CLI_WHERE_HOST;
	default:
		return CLI_WHERE_DEVICE;
	}
}

/* Derives the kind of memory from the function's name (shim/hooks.def). */
static enum cli_memory memory_of_function(const struct cli_name *function, bool summed)
{
	const char *api = function ? function->text : "";

	if (!*api)
		return summed ? CLI_MEMORY_ORDERED : CLI_MEMORY_PLAIN;
	if (strstr(api, "Async") || strstr(api, "FromPool") || !strcmp(api, "spill_malloc"))
		return CLI_MEMORY_ORDERED;
	if (!strcmp(api, "cuMemCreate") || !strcmp(api, "hipMemCreate"))
		return CLI_MEMORY_PHYSICAL;
	if (strstr(api, "Array") || strstr(api, "Mipmap"))
		return CLI_MEMORY_ARRAY;
	return CLI_MEMORY_PLAIN;
}

/* Memory that the program asked for elsewhere is left alone. pre: `site` is the event's */
static enum cli_memory memory_of(const struct cli_recording *recording, const struct cli_event *event,
                                 uint32_t site)
{
	if (cli_name_is(event->reason, "asked"))
		return event->place == SPILL_PLACE_MANAGED ? CLI_MEMORY_MANAGED : CLI_MEMORY_HOST;
	return recording->sites[site].memory;
}

static uint32_t find_site(struct cli_recording *recording, const struct cli_event *event, uint64_t key)
{
	struct cli_live_entry *entry = cli_live_find(&recording->known_sites, key);
	bool summed = event->kind == CLI_EVENT_SUM;

	if (!entry) {
		recording->sites = cli_grow(recording->sites, recording->site_count, &recording->site_size,
		                            sizeof(*recording->sites));
		entry = cli_live_add(&recording->known_sites, key);
		entry->number = (uint32_t)recording->site_count;
		recording->sites[recording->site_count++] = (struct cli_recorded_site){
		    event->caller, event->api, memory_of_function(event->api, summed), summed};
	}
	return entry->number;
}

/* Sums are apart: their requests say nothing about growth. */
#define SUMMED ((uint64_t)1 << 63)

uint32_t cli_recording_site(struct cli_recording *recording, const struct cli_event *event)
{
	uint64_t caller = event->caller ? event->caller->id + (uint64_t)1 : 0;
	uint64_t api = event->api ? event->api->id + (uint64_t)1 : 0;
	struct cli_recent_site *recent = &recording->recent[(caller + 31 * api) % CLI_RECENT_SITES];

	if (event->kind == CLI_EVENT_SUM)
		return find_site(recording, event, SUMMED | caller << 32 | api);
	if (!recent->number || recent->caller != event->caller || recent->api != event->api)
		*recent = (struct cli_recent_site){event->caller, event->api,
		                                   find_site(recording, event, (caller << 32 | api) + 1) + 1};
	return recent->number - 1;
}

static uint32_t take_slot(struct cli_recording *recording)
{
	return recording->unused_count ? recording->unused[--recording->unused_count]
	                               : (uint32_t)recording->slots++;
}

static void free_slot(struct cli_recording *recording, uint32_t slot)
{
	recording->unused = cli_grow(recording->unused, recording->unused_count, &recording->unused_size,
	                             sizeof(*recording->unused));
	recording->unused[recording->unused_count++] = slot;
}

static struct cli_ask *add_ask(struct cli_recording *recording, const struct cli_event *event,
                               enum cli_ask_kind kind)
{
	struct cli_ask *ask;

	recording->asks = cli_grow(recording->asks, recording->ask_count, &recording->ask_size, sizeof(*ask));
	ask = &recording->asks[recording->ask_count++];
	*ask = (struct cli_ask){.bytes = event->bytes,
	                        .time_us = event->time_us,
	                        .device = (int16_t)event->device,
	                        .kind = (uint8_t)kind};
	return ask;
}

/* Counts device memory as the recorded driver did. */
static void count_device_memory(struct cli_recording *recording, int device, uint64_t bytes, bool back)
{
	uint64_t weight = bytes ? recording->backend->memory->footprint(bytes) : 0;

	if (device < 0 || device >= SPILL_DEVICES)
		return;
	uint64_t *sum = weight < CLI_GRANULE ? &recording->small[device] : &recording->taken[device];
	*sum += back ? 0 - weight : weight;
	recording->devices[device].held += back ? 0 - bytes : bytes;
}

static void drop_entry(struct cli_recording *recording, struct cli_live *table, struct cli_live_entry *entry)
{
	count_device_memory(recording, entry->device, entry->held.device, true);
	free_slot(recording, entry->slot);
	cli_live_remove(table, entry);
}

static struct cli_recorded_alloc *add_allocation(struct cli_recording *recording,
                                                 const struct cli_event *event, struct cli_ask *ask)
{
	struct cli_recorded_alloc *alloc;

	recording->allocs =
	    cli_grow(recording->allocs, recording->alloc_count, &recording->alloc_size, sizeof(*alloc));
	alloc = &recording->allocs[recording->alloc_count];
	ask->allocation = (uint32_t)recording->alloc_count++;
	ask->site = cli_recording_site(recording, event);
	ask->memory = (uint8_t)memory_of(recording, event, ask->site);
	*alloc = (struct cli_recorded_alloc){
	    .seq = event->seq, .bytes = event->bytes, .who = event->who, .site = ask->site};
	return alloc;
}

void cli_recording_put(struct cli_recording *recording, struct cli_live *table, uint64_t key,
                       const struct cli_event *event)
{
	struct cli_live_entry *entry = cli_live_find(table, key);
	struct cli_ask *ask = add_ask(recording, event, CLI_ASK_ALLOC);
	struct cli_recorded_alloc *alloc = add_allocation(recording, event, ask);

	if (entry)
		drop_entry(recording, table, entry);
	ask->slot = take_slot(recording);
	alloc->was =
	    (struct cli_whereabouts){event->held.host + event->held.managed, cli_where_of(event->place)};
	if (!key)
		return;
	entry = cli_live_add(table, key);
	entry->device = event->device;
	entry->held = event->held;
	entry->number = ask->allocation;
	entry->slot = ask->slot;
	count_device_memory(recording, event->device, event->held.device, false);
}

void cli_recording_take(struct cli_recording *recording, struct cli_live *table, uint64_t key,
                        const struct cli_event *event)
{
	struct cli_live_entry *entry = cli_live_find(table, key);
	struct cli_ask *ask;

	if (!entry)
		return;
	ask = add_ask(recording, event, CLI_ASK_FREE);
	ask->allocation = entry->number;
	ask->slot = entry->slot;
	drop_entry(recording, table, entry);
}

/* A move only changes where the allocation was. */
/* The driver's figures of a moment at which the program held so much. */
static void note_other(struct cli_recording *recording, int device, uint64_t total, uint64_t free,
                       uint64_t own)
{
	uint64_t other = spill_minus(spill_minus(total, free), own);

	if (device < 0 || device >= SPILL_DEVICES || !total)
		return;
	recording->devices[device].known = true;
	recording->devices[device].other = spill_max(recording->devices[device].other, other);
}

static void note_other_of_oom(struct cli_recording *recording, int device)
{
	const struct spill_record_oom *oom = &recording->oom;

	if (device >= 0 && device < SPILL_DEVICES && oom->device == device)
		note_other(recording, device, oom->total, oom->free,
		           recording->taken[device] + spill_round_up(recording->small[device], CLI_GRANULE));
}

static void note_move(struct cli_recording *recording, const struct cli_event *event)
{
	struct cli_live_entry *entry = cli_live_find(&recording->live, event->seq);
	struct cli_recorded_alloc *alloc;

	note_other(recording, event->device, event->seen.total, event->seen.free, event->seen.ours);
	if (!entry)
		return;
	alloc = &recording->allocs[entry->number];
	count_device_memory(recording, entry->device, entry->held.device, true);
	entry->held = event->held;
	count_device_memory(recording, entry->device, entry->held.device, false);
	if (alloc->was.where == CLI_WHERE_DEVICE)
		alloc->was.where = CLI_WHERE_LEFT;
	if (alloc->was.away < event->held.host)
		alloc->was.away = event->held.host;
}

static void add_refused(struct cli_recording *recording, const struct cli_event *event)
{
	struct cli_ask *ask;
	bool by_host;

	note_other_of_oom(recording, event->device);
	/* The repeat of the request has its own line. */
	if (cli_name_is(event->reason, "oom.honest_first"))
		return;
	recording->refused++;
	by_host = cli_name_is(event->reason, "host.limit") || cli_name_is(event->reason, "host.reserve") ||
	          cli_name_is(event->reason, "host.pressure");
	recording->host_refused |= by_host;
	ask = add_ask(recording, event, by_host ? CLI_ASK_REFUSED_BY_HOST : CLI_ASK_REFUSED);
	ask->slot = take_slot(recording);
	add_allocation(recording, event, ask)->was.where = CLI_WHERE_NOWHERE;
	free_slot(recording, ask->slot);
}

void cli_recording_oom(struct cli_recording *recording, const struct spill_record_oom *oom)
{
	recording->oom =
	    (struct spill_record_oom){.device = oom->device, .free = oom->free, .total = oom->total};
}

void cli_recording_event(struct cli_recording *recording, const struct cli_event *event)
{
	cli_levels_event(recording, event);
	switch (event->kind) {
	case CLI_EVENT_ALLOC:
		return cli_recording_put(recording, &recording->live, event->seq, event);
	case CLI_EVENT_FREE:
		return cli_recording_take(recording, &recording->live, event->seq, event);
	case CLI_EVENT_SUM:
		return cli_levels_sum(recording, event);
	case CLI_EVENT_DEMOTE:
	case CLI_EVENT_PROMOTE:
		return note_move(recording, event);
	case CLI_EVENT_OOM:
		return add_refused(recording, event);
	}
}

void cli_recording_begin(struct cli_recording *recording, const struct spill_backend *backend)
{
	*recording = (struct cli_recording){.backend = backend};
}

void cli_recording_free(struct cli_recording *recording)
{
	free(recording->asks);
	free(recording->allocs);
	free(recording->sites);
	free(recording->unused);
	cli_live_free(&recording->live);
	cli_live_free(&recording->levels);
	cli_live_free(&recording->known_sites);
	*recording = (struct cli_recording){0};
}

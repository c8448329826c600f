/* Reads a run from its log, keeps its card and policy, and decides it at its end. */
#include <stdlib.h>
#include <string.h>

#include "backend_hip.h"
#include "replay.h"
#include "cli.h"

static bool is_hip(const struct spill_record_start *start)
{
	return start->backend && !strcmp(start->backend, "hip");
}

/* The device's abilities, minus those of --without. The log tells the kind of memory. */
static unsigned capabilities_of(const struct cli_replay *replay, const struct spill_record_start *start,
                                const char *memory)
{
	unsigned can = SPILL_CAN_MANAGED | SPILL_CAN_HOST;

	if (!is_hip(start))
		can |= SPILL_CAN_SPLIT | SPILL_CAN_MOVE;
	else if (start->driver >= SPILL_HIP_SPLITS_FROM)
		can |= SPILL_CAN_SPLIT;
	if (memory && !strcmp(memory, spill_memory_name(SPILL_MEMORY_INTEGRATED)))
		can |= SPILL_IS_INTEGRATED;
	if (memory && !strcmp(memory, spill_memory_name(SPILL_MEMORY_COHERENT)))
		can |= SPILL_IS_COHERENT;
	return can & ~replay->options.without;
}

/* At most 47 bits, because chunks are counted one by one and a log may say anything. */
static uint64_t device_bytes(const struct cli_replay *replay, const struct spill_record_device *device)
{
	uint64_t bytes = replay->options.vram ? replay->options.vram : device->bytes,
	         most = (uint64_t)1 << 47;

	return bytes < most ? bytes : most;
}

static void set_capabilities(const struct cli_replay *replay, struct cli_model_setting *setting,
                             const struct spill_record_start *start)
{
	setting->backend = is_hip(start) ? &spill_backend_hip : &spill_backend_cuda;
	setting->device_count = start->device_count;
	for (unsigned i = 0; i < start->device_count; i++) {
		const struct spill_record_device *device = &start->devices[i];

		if (device->device >= 0 && device->device < SPILL_DEVICES)
			setting->cards[device->device] = (struct cli_card){
			    .total = device_bytes(replay, device),
			    .capabilities = capabilities_of(replay, start, device->memory),
			};
	}
}

/* Reports only the first run without a policy. */
static void read_policy(struct cli_replay *replay, struct cli_replay_run *run, const char *path,
                        unsigned long line, const struct spill_record_start *start)
{
	if (cli_replay_as_recorded(&replay->options) && !replay->problem)
		replay->recorded = cli_replay_recorded(path, line, start, run->missing, sizeof(run->missing),
		                                       &replay->problem);
}

static struct cli_replay_run *last_run(struct cli_replay *replay)
{
	return &replay->runs[replay->count - 1];
}

static struct cli_summary *last_summary(struct cli_replay *replay)
{
	return &replay->report.summaries.runs[replay->count - 1];
}

static void begin_run(void *data, const char *path, unsigned long line,
                      const struct spill_record_start *start)
{
	struct cli_replay *replay = data;
	struct cli_replay_run *run;

	cli_summary_visitor.begin(&replay->report.summaries, path, line, start);
	replay->runs = cli_grow(replay->runs, replay->count, &replay->size, sizeof(*run));
	run = &replay->runs[replay->count++];
	*run =
	    (struct cli_replay_run){.setting = {.backend = &spill_backend_cuda, .host = replay->options.host},
	                            .lists = replay->options.list,
	                            .recording = &replay->recording};
	if (start) {
		set_capabilities(replay, &run->setting, start);
		read_policy(replay, run, path, line, start);
		run->exe = cli_strdup(start->exe);
		run->boot = cli_strdup(start->boot);
	}
	cli_recording_begin(run->recording, run->setting.backend);
}

/* Events after the exit line are frees by other libraries' destructors. */
static void add_event(void *data, const struct cli_event *event)
{
	struct cli_replay *replay = data;

	if (!last_summary(replay)->exited)
		cli_recording_event(&replay->recording, event);
}

static void add_record(void *data, const struct spill_record *record)
{
	struct cli_replay *replay = data;
	struct cli_replay_run *run = last_run(replay);

	if (record->kind == SPILL_KIND_OOM)
		cli_recording_oom(run->recording, &record->oom);
	else if (record->kind == SPILL_KIND_DROP)
		run->log_cut = true;
	else if (record->kind != SPILL_KIND_USE)
		cli_summary_visitor.record(&replay->report.summaries, record);
}

/* -- the end of a run ------------------------------------------------------------------------- */

static void set_cards(struct cli_replay *replay, struct cli_replay_run *run, struct cli_summary *summary)
{
	for (size_t i = 0; i < summary->device_count; i++) {
		struct cli_device *device = &summary->devices[i];
		struct cli_card *card;

		if (device->device < 0 || device->device >= SPILL_DEVICES)
			continue;
		card = &run->setting.cards[device->device];
		card->limit = spill_policy_device_limit(run->setting.policy, device->device, card->total);
		run->other_known[device->device] = run->recording->devices[device->device].known;
		card->other = replay->options.other != SPILL_UNLIMITED
		                  ? replay->options.other
		                  : run->recording->devices[device->device].other;
		device->bytes = card->total;
		device->limit = card->limit;
	}
}

/* Others need not be on another card, and what they held on the recorded one may not even fit there. */
static bool is_crowded(const struct cli_replay_options *options, const struct cli_replay_run *run)
{
	const struct cli_card *cards = run->setting.cards;

	if (!options->vram || options->other != SPILL_UNLIMITED)
		return false;
	for (int i = 0; i < SPILL_DEVICES; i++)
		if (cards[i].total && cards[i].other >= cards[i].total)
			return true;
	return false;
}

static const char *doubt_of(const struct cli_replay_run *run, const struct cli_summary *summary)
{
	if (!summary->started)
		return "the log does not begin with a start line: the devices are not known";
	if (!summary->all_told)
		return "log.level was spills: allocations that fitted are not in the log";
	if (run->log_cut)
		return "log.max left lines out: what was allocated then is not in the log";
	for (size_t i = 0; i < run->recording->ask_count; i++) {
		const struct cli_ask *ask = &run->recording->asks[i];

		if (ask->memory < CLI_MEMORY_MANAGED && ask->kind != CLI_ASK_FREE &&
		    (ask->device < 0 || ask->device >= SPILL_DEVICES ||
		     !run->setting.cards[ask->device].total))
			return "something was allocated on a device that the start line does not have";
	}
	return NULL;
}

/* A run without a start line has no policy and no known device. Any policy will do. */
static const struct spill_policy *policy_of(struct cli_replay *replay, const struct cli_summary *summary)
{
	const struct cli_replay_options defaults = {.profile = "none"};
	bool recorded = cli_replay_as_recorded(&replay->options);

	if (recorded && summary->started)
		return replay->recorded;
	return cli_replay_policy(recorded ? &defaults : &replay->options,
	                         summary->program ? summary->program : "", summary->rank, &replay->problem);
}

/* Decides the run as far as possible, even if it cannot be judged. */
static void decide_run(struct cli_replay *replay, struct cli_replay_run *run, struct cli_summary *summary)
{
	struct cli_site *sites;
	const char *doubt;

	run->setting.policy = policy_of(replay, summary);
	if (!run->setting.policy)
		return;
	sites =
	    cli_replay_sites(run->recording, run->setting.policy, run->exe, run->rules, sizeof(run->rules));
	run->setting.sites = sites;
	set_cards(replay, run, summary);
	doubt = is_crowded(&replay->options, run)
	            ? "other programs held more of the recorded card than --vram has: give --other SIZE"
	            : doubt_of(run, summary);
	run->why = cli_strdup(doubt);
	run->judged = !doubt;
	run->alloc_count = run->recording->alloc_count;
	run->was_refused = run->recording->refused;
	run->host_refused = run->recording->host_refused;
	summary->exited = false;
	cli_replay_decide(run, summary, replay->report.summaries.names);
	if (run->judged)
		cli_replay_limits(run);
	free(sites);
	run->setting.sites = NULL;
	run->setting.policy = NULL;
}

/* What others hold on the device that the run is decided for. */
static uint64_t other_on(const struct cli_replay_run *run, int device)
{
	return device >= 0 && device < SPILL_DEVICES ? run->setting.cards[device].other : 0;
}

static void finish_run(void *data, const struct cli_trace_end *end)
{
	struct cli_replay *replay = data;
	struct cli_replay_run *run = last_run(replay);
	struct cli_summary *summary = last_summary(replay);
	bool exited = summary->exited;

	if (!replay->problem)
		decide_run(replay, run, summary);
	cli_recording_free(run->recording);
	run->recording = NULL;
	for (size_t i = 0; i < summary->device_count; i++)
		summary->devices[i].shortage =
		    (struct cli_shortage){.others = other_on(run, summary->devices[i].device)};
	cli_summary_visitor.end(&replay->report.summaries, end);
	summary->story.foretold = true;
	summary->exited = exited;
}

const struct cli_trace_visitor cli_replay_visitor = {begin_run, add_event, add_record, finish_run};

void cli_replay_free(struct cli_replay *replay)
{
	for (size_t i = 0; i < replay->count; i++) {
		struct cli_replay_run *run = &replay->runs[i];

		free(run->why);
		free(run->exe);
		free(run->boot);
		free(run->list);
		cli_table_free(&run->by_caller);
		cli_table_free(&run->by_rule);
	}
	free(replay->runs);
	cli_summaries_free(&replay->report.summaries);
}

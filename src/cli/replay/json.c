/* spill replay --json: prints one object (docs/commands.md). */
#include <stdlib.h>

#include "json_out.h"
#include "replay.h"

static void put_first(struct spill_json *json, const struct cli_replay_run *run)
{
	const struct cli_replay_refused *refused = &run->first;

	cli_json_key(json, "first");
	if (!run->refused) {
		spill_json_string(json, NULL);
		return;
	}
	spill_json_object(json);
	spill_json_seconds(cli_json_key(json, "t"), refused->time_us);
	cli_json_device(json, refused->device);
	cli_json_name(json, "api", refused->api);
	cli_json_name(json, "caller", refused->who);
	cli_json_number(json, "bytes", refused->bytes);
	cli_json_bytes(json, "live", &refused->live);
	cli_json_name(json, "rule", refused->rule);
	cli_json_name(json, "refused_by", refused->refused_by);
	spill_json_object_end(json);
}

static void put_ways(struct spill_json *json, const struct cli_replay_run *run)
{
	spill_json_array(cli_json_key(json, "ways"));
	for (unsigned from = 0; from < CLI_WHERES; from++) {
		for (unsigned to = 0; to < CLI_WHERES; to++) {
			const struct cli_replay_sum *way = &run->ways[from][to];

			if (!way->count)
				continue;
			spill_json_object(json);
			cli_json_text(json, "from", cli_where_name(from));
			cli_json_text(json, "to", cli_where_name(to));
			cli_json_number(json, "allocs", way->count);
			cli_json_number(json, "bytes", way->bytes);
			spill_json_object_end(json);
		}
	}
	spill_json_array_end(json);
}

static void put_list(struct spill_json *json, const struct cli_replay_run *run)
{
	spill_json_array(cli_json_key(json, "list"));
	for (size_t i = 0; i < run->listed; i++) {
		const struct cli_replay_row *row = &run->list[i];

		spill_json_object(json);
		cli_json_number(json, "seq", row->seq);
		cli_json_number(json, "bytes", row->bytes);
		cli_json_text(json, "from", cli_where_name(row->was.where));
		cli_json_text(json, "to", cli_where_name(row->now.where));
		cli_json_number(json, "off_device", row->now.away);
		cli_json_name(json, "rule", row->rule);
		cli_json_name(json, "caller", row->who);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_table(struct spill_json *json, const char *member, const struct cli_table *table)
{
	spill_json_array(cli_json_key(json, member));
	for (size_t i = 0; i < table->count; i++) {
		spill_json_object(json);
		cli_json_name(json, "name", table->rows[i].name);
		cli_json_number(json, "allocs", table->rows[i].count);
		cli_json_number(json, "bytes", table->rows[i].bytes);
		cli_json_number(json, "off_device", table->rows[i].spilled);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_devices(struct spill_json *json, const struct cli_replay_run *run,
                        const struct cli_summary *summary, uint64_t margin)
{
	spill_json_array(cli_json_key(json, "devices"));
	for (size_t i = 0; i < summary->device_count; i++) {
		const struct cli_device *device = &summary->devices[i];

		if (device->device < 0 || device->device >= SPILL_DEVICES)
			continue;
		spill_json_object(json);
		cli_json_device(json, device->device);
		cli_json_text(json, "uuid", device->uuid);
		cli_json_number(json, "bytes", device->bytes);
		cli_json_number(json, "other", run->setting.cards[device->device].other);
		cli_json_bool(json, "other_told", run->other_known[device->device]);
		cli_json_bytes(json, "peak", &device->peak);
		cli_report_json_fit(json, summary, device, margin);
		for (size_t at = 0; at < run->limit_count; at++) {
			if (run->limits[at].device != device->device)
				continue;
			cli_json_number(json, "limit_all", run->limits[at].all);
			if (run->runs)
				cli_json_number(json, "limit_least", run->limits[at].least);
		}
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_run(struct spill_json *json, const struct cli_replay *replay, size_t at)
{
	const struct cli_replay_run *run = &replay->runs[at];
	const struct cli_summary *summary = &replay->report.summaries.runs[at];

	spill_json_object(json);
	cli_json_text(json, "log", summary->path);
	cli_json_number(json, "line", summary->line);
	cli_json_text(json, "program", summary->program);
	cli_json_text(json, "host", summary->host);
	cli_json_text(json, "rank", summary->rank);
	cli_json_bool(json, "fits", cli_replay_fits(run));
	cli_json_bool(json, "judged", run->judged);
	cli_json_text(json, "why", run->why);
	cli_json_number(json, "allocs", run->alloc_count);
	cli_json_number(json, "refused", run->refused);
	cli_json_number(json, "newly_refused", run->newly_refused);
	put_first(json, run);
	cli_json_number(json, "was_refused", run->was_refused);
	cli_json_number(json, "now_served", run->now_served);
	cli_json_number(json, "honest", run->honest);
	spill_json_object(cli_json_key(json, "elsewhere"));
	cli_json_number(json, "allocs", run->elsewhere.count);
	cli_json_number(json, "bytes", run->elsewhere.bytes);
	put_ways(json, run);
	put_table(json, "by_caller", &run->by_caller);
	put_table(json, "by_rule", &run->by_rule);
	if (run->lists)
		put_list(json, run);
	spill_json_object_end(json);
	cli_json_number(json, "spills", summary->totals.spills);
	cli_json_bytes(json, "spilled", &summary->totals.spilled);
	cli_json_number(json, "demotions", summary->totals.demotions);
	cli_json_number(json, "demoted_bytes", summary->totals.demoted);
	cli_json_number(json, "promoted_bytes", summary->totals.promoted);
	cli_json_bytes(json, "peak", &summary->totals.peak);
	put_devices(json, run, summary, replay->options.margin);
	cli_json_text(json, "rules_not_judged", run->rules);
	cli_json_text(json, "options_not_recorded", run->missing);
	spill_json_object_end(json);
}

void cli_replay_json(const struct cli_replay *replay)
{
	struct cli_replay_shared *list;
	size_t count = cli_replay_shared(replay, &list);
	struct spill_json json;

	cli_json_begin(&json);
	spill_json_object(&json);
	cli_json_bool(&json, "fits", cli_replay_fits_all(replay));
	cli_json_text(&json, "policy", replay->options.policy);
	cli_json_text(&json, "profile", replay->options.profile);
	cli_json_bool(&json, "as_recorded", cli_replay_as_recorded(&replay->options));
	cli_json_number(&json, "margin", replay->options.margin);
	spill_json_array(cli_json_key(&json, "runs"));
	for (size_t i = 0; i < replay->count; i++)
		put_run(&json, replay, i);
	spill_json_array_end(&json);
	spill_json_array(cli_json_key(&json, "shared"));
	for (size_t i = 0; i < count; i++) {
		spill_json_object(&json);
		cli_json_text(&json, "host", list[i].host);
		cli_json_text(&json, "uuid", list[i].uuid);
		cli_json_number(&json, "runs", list[i].runs);
		cli_json_number(&json, "bytes", list[i].total);
		cli_json_number(&json, "peak", list[i].peak);
		spill_json_object_end(&json);
	}
	spill_json_array_end(&json);
	spill_json_object_end(&json);
	cli_json_end(&json);
	free(list);
}

/* spill report --json: prints one object (docs/commands.md). */
#include <string.h>

#include "oom_report.h"
#include "json_out.h"
#include "put.h"
#include "report.h"

void cli_json_name(struct spill_json *json, const char *member, const struct cli_name *name)
{
	cli_json_text(json, member, name ? name->text : NULL);
}

static void put_totals(struct spill_json *json, const char *member, const struct spill_totals *sums)
{
	spill_json_object(cli_json_key(json, member));
	cli_json_number(json, "allocs", sums->allocs);
	cli_json_number(json, "frees", sums->frees);
	cli_json_number(json, "spills", sums->spills);
	cli_json_number(json, "ooms", sums->ooms);
	cli_json_number(json, "demotions", sums->demotions);
	cli_json_number(json, "promotions", sums->promotions);
	cli_json_number(json, "demoted_bytes", sums->demoted);
	cli_json_number(json, "promoted_bytes", sums->promoted);
	cli_json_bytes(json, "live", &sums->live);
	cli_json_bytes(json, "peak", &sums->peak);
	cli_json_bytes(json, "spilled", &sums->spilled);
	spill_json_object(cli_json_key(json, "away"));
	cli_json_number(json, "peak_bytes", sums->away.peak);
	cli_json_number(json, "wanted_bytes", sums->away.wanted);
	cli_json_number(json, "moves_us", sums->away.moves_us);
	spill_json_object_end(json);
	spill_json_object_end(json);
}

static void put_differences(struct spill_json *json, const struct cli_summary *summary)
{
	struct cli_difference list[CLI_DIFFERENCES];
	unsigned count = cli_summary_differences(summary, list);

	spill_json_array(cli_json_key(json, "differences"));
	for (unsigned i = 0; i < count; i++) {
		spill_json_object(json);
		cli_json_text(json, "name", list[i].name);
		cli_json_number(json, "lines", list[i].lines);
		cli_json_number(json, "exit", list[i].exit);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

void cli_report_json_surplus(struct spill_json *json, const struct cli_fit_row *row)
{
	if (row->unknown)
		cli_json_text(json, "surplus", NULL);
	else
		spill_json_i64(cli_json_key(json, "surplus"), row->surplus);
}

void cli_report_json_fit(struct spill_json *json, const struct cli_summary *summary,
                         const struct cli_device *device, uint64_t margin)
{
	struct cli_fit_row row = cli_fit_row(device, margin);

	if (!device->bytes)
		return;
	spill_json_object(cli_json_key(json, "fit"));
	cli_json_number(json, "usable", row.usable);
	cli_json_number(json, "wanted", device->fit.wanted);
	cli_json_number(json, "device_bytes", device->fit.device);
	cli_json_number(json, "host_bytes", device->fit.host);
	cli_json_number(json, "managed_bytes", device->fit.managed);
	cli_json_number(json, "refused", device->fit.refused);
	cli_json_number(json, "others", row.others);
	cli_json_number(json, "free", row.free);
	cli_report_json_surplus(json, &row);
	cli_json_bool(json, "reserved", row.reserved);
	cli_json_number(json, "reserve", cli_report_reserve(summary, device));
	spill_json_object_end(json);
}

/* null: the device never lacked memory. */
static void put_shortage(struct spill_json *json, const struct cli_shortage *shortage)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	if (!shortage->count) {
		cli_json_text(json, "shortage", NULL);
		return;
	}
	spill_json_object(cli_json_key(json, "shortage"));
	cli_json_number(json, "count", shortage->count);
	cli_json_bool(json, "told", shortage->bytes != 0);
	spill_json_seconds(cli_json_key(json, "t"), shortage->time_us);
	cli_json_number(json, "free", shortage->free);
	cli_json_number(json, "total", shortage->bytes);
	cli_json_number(json, "others", shortage->others);
	cli_json_number(json, "demand", shortage->demand);
	cli_report_shortage(&text, shortage);
	cli_json_text(json, "text", buffer);
	spill_json_object_end(json);
}

static void put_devices(struct spill_json *json, const struct cli_summary *summary, uint64_t margin)
{
	spill_json_array(cli_json_key(json, "devices"));
	for (size_t i = 0; i < summary->device_count; i++) {
		const struct cli_device *device = &summary->devices[i];

		spill_json_object(json);
		cli_json_device(json, device->device);
		cli_json_text(json, "name", device->name);
		cli_json_text(json, "uuid", device->uuid);
		cli_json_number(json, "bytes", device->bytes);
		cli_json_bytes(json, "live", &device->live);
		cli_json_bytes(json, "peak", &device->peak);
		put_shortage(json, &device->shortage);
		cli_report_json_fit(json, summary, device, margin);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_view(struct spill_json *json, const char *member, const struct cli_table *table, size_t most)
{
	spill_json_array(cli_json_key(json, member));
	for (size_t i = 0; i < table->count && (!most || i < most); i++) {
		const struct cli_row *row = &table->rows[i];

		spill_json_object(json);
		cli_json_name(json, "name", row->name);
		cli_json_number(json, "allocs", row->count);
		cli_json_number(json, "bytes", row->bytes);
		cli_json_number(json, "peak", row->peak);
		cli_json_number(json, "live", row->live);
		cli_json_number(json, "spilled", row->spilled);
		cli_json_number(json, "away", row->away_peak);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_moves(struct spill_json *json, const char *member, const struct cli_table *table)
{
	spill_json_array(cli_json_key(json, member));
	for (size_t i = 0; i < table->count; i++) {
		spill_json_object(json);
		cli_json_name(json, "name", table->rows[i].name);
		cli_json_number(json, "moves", table->rows[i].count);
		cli_json_number(json, "bytes", table->rows[i].bytes);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_largest(struct spill_json *json, const struct cli_large_list *list)
{
	spill_json_array(cli_json_key(json, "largest"));
	for (unsigned i = 0; i < list->count; i++) {
		const struct cli_large *large = &list->list[i];

		spill_json_object(json);
		cli_json_number(json, "seq", large->seq);
		cli_json_number(json, "bytes", large->bytes);
		spill_json_seconds(cli_json_key(json, "t"), large->time_us);
		cli_json_device(json, large->device);
		cli_json_text(json, "place", spill_place_name(large->place));
		cli_json_name(json, "api", large->api);
		cli_json_name(json, "caller", large->caller);
		cli_json_bool(json, "freed", large->freed);
		cli_json_bool(json, "summed", large->summed);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_moved(struct spill_json *json, const struct cli_moved_list *list)
{
	spill_json_array(cli_json_key(json, "moved"));
	for (unsigned i = 0; i < list->count; i++) {
		const struct cli_moved *entry = &list->list[i];

		spill_json_object(json);
		cli_json_number(json, "seq", entry->seq);
		cli_json_number(json, "bytes", entry->bytes);
		cli_json_number(json, "moves", entry->moves);
		cli_json_number(json, "moved", entry->moved);
		cli_json_number(json, "host_bytes", entry->host);
		cli_json_device(json, entry->device);
		cli_json_name(json, "caller", entry->caller);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_attempts(struct spill_json *json, const struct spill_record_oom *put_oom)
{
	spill_json_array(cli_json_key(json, "tried"));
	for (unsigned i = 0; i < put_oom->attempts; i++) {
		spill_json_object(json);
		cli_json_text(json, "place", put_oom->tried[i].place);
		cli_json_text(json, "error", put_oom->tried[i].error);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_groups(struct spill_json *json, const char *member, const char *member_name,
                       const struct spill_group *list, unsigned count, bool with_requester)
{
	spill_json_array(cli_json_key(json, member));
	for (unsigned i = 0; i < count; i++) {
		spill_json_object(json);
		cli_json_text(json, member_name, list[i].name);
		if (with_requester)
			cli_json_text(json, "requester", list[i].requester);
		cli_json_number(json, "count", list[i].count);
		cli_json_bytes(json, "held", &list[i].held);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_holders(struct spill_json *json, const struct spill_record_oom *put_oom)
{
	put_groups(json, "places", "place", put_oom->by_place, put_oom->places, false);
	put_groups(json, "callers", "caller", put_oom->by_caller, put_oom->callers, true);
	spill_json_array(cli_json_key(json, "holders"));
	for (unsigned i = 0; i < put_oom->holders; i++) {
		const struct spill_holder *holder = &put_oom->top[i];

		spill_json_object(json);
		cli_json_number(json, "seq", holder->seq);
		cli_json_number(json, "bytes", holder->bytes);
		cli_json_text(json, "place", spill_place_name(holder->place));
		cli_json_text(json, "api", holder->api);
		cli_json_text(json, "caller", holder->caller);
		cli_json_text(json, "requester", holder->requester);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

static void put_oom(struct spill_json *json, const struct cli_summary *summary,
                    const struct spill_record_oom *put_oom)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_json_object(json);
	spill_json_seconds(cli_json_key(json, "t"), put_oom->time_us);
	spill_json_i64(cli_json_key(json, "tid"), put_oom->tid);
	cli_json_device(json, put_oom->device);
	cli_json_text(json, "api", put_oom->api);
	cli_json_text(json, "caller", put_oom->caller);
	cli_json_text(json, "requester", put_oom->requester);
	cli_json_number(json, "bytes", put_oom->bytes);
	cli_json_number(json, "free", put_oom->free);
	cli_json_number(json, "total", put_oom->total);
	cli_json_number(json, "ours", put_oom->ours);
	cli_json_bytes(json, "live", &put_oom->live);
	cli_json_text(json, "rule", put_oom->rule);
	cli_json_text(json, "refused_by", put_oom->refused_by);
	spill_record_refusal(json, &put_oom->refusal);
	cli_json_text(json, "would", put_oom->would);
	put_attempts(json, put_oom);
	put_holders(json, put_oom);
	spill_oom_refused(&text, put_oom);
	cli_json_text(json, "refused", buffer);
	text = spill_text_begin(buffer, sizeof(buffer));
	spill_advice_oom(&text, put_oom, summary->program, summary->problem);
	cli_json_text(json, "advice", buffer);
	spill_json_object_end(json);
}

static void put_ooms(struct spill_json *json, const struct cli_summary *summary)
{
	const struct cli_ooms *list = &summary->ooms;

	spill_json_array(cli_json_key(json, "ooms"));
	for (uint64_t i = 0; i < cli_ooms_kept(list); i++)
		put_oom(json, summary, &list->list[i]);
	spill_json_array_end(json);
}

/* False: its function is not known. */
static bool put_function(struct spill_json *json, const struct cli_summary *summary, const char *caller)
{
	char function[PLAIN_NAME];

	cli_run_files_function(&summary->files, caller, function);
	if (!function[0])
		return false;
	spill_json_object(json);
	cli_json_text(json, "caller", caller);
	cli_json_text(json, "function", function);
	spill_json_object_end(json);
	return true;
}

/* True if an out of memory before this one has the same caller. */
static bool came_before(const struct cli_ooms *ooms, uint64_t at)
{
	for (uint64_t i = 0; i < at; i++) {
		if (ooms->list[i].caller && !strcmp(ooms->list[i].caller, ooms->list[at].caller))
			return true;
	}
	return false;
}

/* Functions of callers, each once: of those that allocated, and of those that only were refused. */
static void put_functions(struct spill_json *json, const struct cli_summary *summary, size_t most)
{
	const struct cli_table *callers = &summary->views[CLI_BY_CALLER];
	const struct cli_ooms *ooms = &summary->ooms;
	size_t count = 0;

	spill_json_array(cli_json_key(json, "functions"));
	for (size_t i = 0; i < callers->count && (!most || count < most); i++) {
		if (callers->rows[i].name)
			count += put_function(json, summary, callers->rows[i].name->text);
	}
	for (uint64_t i = 0; i < cli_ooms_kept(ooms); i++) {
		const char *caller = ooms->list[i].caller;

		if (caller && !cli_table_find(callers, caller) && !came_before(ooms, i))
			put_function(json, summary, caller);
	}
	spill_json_array_end(json);
}

static void put_notes(struct spill_json *json, const struct cli_summary *summary)
{
	spill_json_array(cli_json_key(json, "notes"));
	for (unsigned long i = 0; i < summary->note_count && i < CLI_NOTES; i++) {
		spill_json_object(json);
		spill_json_seconds(cli_json_key(json, "t"), summary->notes[i].time_us);
		cli_json_name(json, "code", summary->notes[i].code);
		cli_json_text(json, "text", summary->notes[i].text);
		spill_json_object_end(json);
	}
	spill_json_array_end(json);
}

/* The sentences of the text report and of stderr, for the page and for programs. */
static void put_story(struct spill_json *json, const struct cli_summary *summary)
{
	const struct spill_story *story = &summary->story;
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	spill_json_object(cli_json_key(json, "story"));
	spill_story_size(&text, story);
	cli_json_text(json, "size", buffer);
	text = spill_text_begin(buffer, sizeof(buffer));
	spill_story_cost(&text, story);
	cli_json_text(json, "cost", buffer);
	text = spill_text_begin(buffer, sizeof(buffer));
	spill_story_in_place(&text, story);
	cli_json_text(json, "in_place", buffer);
	text = spill_text_begin(buffer, sizeof(buffer));
	cli_report_refusals(&text, summary);
	cli_json_text(json, "refusals", buffer);
	cli_json_number(json, "peak_bytes", story->away.peak);
	cli_json_number(json, "wanted_bytes", story->away.wanted);
	cli_json_number(json, "device_bytes", story->on_device);
	cli_json_number(json, "moves_us", story->away.moves_us);
	cli_json_number(json, "followed_bytes", story->away.in_place.followed);
	cli_json_number(json, "in_place_bytes", story->away.in_place.bytes);
	cli_json_number(json, "in_place_us", story->away.in_place.us);
	cli_json_number(json, "in_place_most_us", story->away.in_place.most_us);
	spill_json_seconds(cli_json_key(json, "run"), story->run_us);
	cli_json_bool(json, "at_least", story->at_least);
	spill_json_object_end(json);
}

static void put_identity(struct spill_json *json, const struct cli_summary *summary)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	cli_json_text(json, "log", summary->path);
	cli_json_number(json, "line", summary->line);
	cli_json_text(json, "program", summary->program);
	cli_json_text(json, "host", summary->host);
	spill_json_i64(cli_json_key(json, "pid"), summary->pid);
	cli_json_text(json, "rank", summary->rank);
	cli_json_text(json, "job", summary->job);
	cli_json_text(json, "step", summary->step);
	cli_json_text(json, "time", summary->time);
	if (summary->begin_told)
		spill_json_seconds(cli_json_key(json, "begin"), summary->begin_us);
	else
		cli_json_text(json, "begin", NULL);
	cli_json_text(json, "version", summary->version);
	cli_json_text(json, "backend", summary->backend);
	spill_json_i64(cli_json_key(json, "driver"), summary->driver);
	cli_json_text(json, "driver_version",
	              summary->backend ? cli_driver_version(summary->backend, summary->driver).text : NULL);
	cli_json_text(json, "mode", summary->mode);
	cli_json_text(json, "problem", summary->problem);
	cli_json_name(json, "how", summary->exited ? summary->how : NULL);
	spill_json_seconds(cli_json_key(json, "ended"), summary->ended_us);
	cli_report_end(&text, summary);
	cli_json_text(json, "end", buffer);
	cli_json_text(json, "ending", cli_report_ending(summary));
}

static void put_doubts(struct spill_json *json, const struct cli_summary *summary)
{
	const struct spill_sum *left = summary->left_out;

	cli_json_bool(json, "exited", summary->exited);
	cli_json_bool(json, "all_told", summary->all_told);
	cli_json_bool(json, "cut", summary->end.cut);
	cli_json_number(json, "left_out", left[SPILL_DROP_ALLOC].count + left[SPILL_DROP_SPILL].count);
	cli_json_number(json, "bad_lines", summary->end.bad);
	cli_json_number(json, "later_records", summary->end.later);
	cli_json_number(json, "late_events", summary->end.late);
	cli_json_number(json, "missing_lines", summary->end.missing);
	cli_json_number(json, "unknown_frees", summary->unknown_frees);
	cli_json_number(json, "after_exit", summary->after_exit);
}

static void put_run(struct spill_json *json, const struct cli_summary *summary,
                    const struct cli_report *report)
{
	char advice[CLI_ADVICE];

	spill_json_object(json);
	put_identity(json, summary);
	put_doubts(json, summary);
	put_totals(json, "totals", &summary->totals);
	put_differences(json, summary);
	put_story(json, summary);
	cli_advice_run(summary, advice);
	cli_json_text(json, "advice", advice);
	put_moves(json, "demoted", &summary->demoted);
	put_moves(json, "promoted", &summary->promoted);
	cli_json_number(json, "honest", summary->ooms.honest);
	put_devices(json, summary, report->margin);
	put_view(json, "by_caller", &summary->views[CLI_BY_CALLER], report->rows);
	put_view(json, "by_place", &summary->views[CLI_BY_PLACE], report->rows);
	put_view(json, "by_rule", &summary->views[CLI_BY_RULE], report->rows);
	put_view(json, "by_reason", &summary->views[CLI_BY_REASON], report->rows);
	put_largest(json, &summary->largest);
	put_moved(json, &summary->moved);
	put_ooms(json, summary);
	put_functions(json, summary, report->rows);
	put_notes(json, summary);
	cli_json_number(json, "note_count", summary->note_count);
	spill_json_object_end(json);
}

void cli_report_members(struct spill_json *json, const struct cli_report *report)
{
	struct spill_totals sum = cli_report_sum(report);

	cli_json_number(json, "margin", report->margin);
	spill_json_array(cli_json_key(json, "runs"));
	for (size_t i = 0; i < report->summaries.count; i++)
		put_run(json, &report->summaries.runs[i], report);
	spill_json_array_end(json);
	put_totals(json, "sum", &sum);
	cli_report_json_ranks(json, report);
}

void cli_report_json(const struct cli_report *report)
{
	struct spill_json json;

	cli_json_begin(&json);
	spill_json_object(&json);
	cli_report_members(&json, report);
	spill_json_object_end(&json);
	cli_json_end(&json);
}

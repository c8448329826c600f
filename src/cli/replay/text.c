/* Prints a replay: whether it fits, what would be elsewhere, and which limits would do. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oom_report.h"
#include "put.h"
#include "replay.h"
#include "cli.h"

#define ROWS 10

static void put_answer(const struct cli_replay_run *run)
{
	if (!run->judged)
		cli_printf("could not be judged: %s\n", run->why);
	else if (run->refused)
		printf(
		    "would run out of memory: %" PRIu64 " of %" PRIu64 " requests would be refused (%" PRIu64
		    " of them also in the recording); %" PRIu64 " would be elsewhere than they were\n",
		    run->refused, run->alloc_count, run->refused - run->newly_refused, run->elsewhere.count);
	else
		printf("would run: nothing would be out of memory; %" PRIu64 " of %" PRIu64
		       " allocations would be elsewhere than they were\n",
		       run->elsewhere.count, run->alloc_count);
}

static void put_run(const struct cli_summary *summary)
{
	cli_report_label("run");
	cli_report_who(summary);
	cli_printf("; ");
	cli_report_log(summary);
	putchar('\n');
}

static void put_policy(const struct cli_replay_options *options, const struct cli_summary *summary)
{
	cli_report_label("under");
	if (!cli_replay_as_recorded(options))
		cli_printf("%s %s", options->profile ? "profile" : "policy",
		           options->profile ? options->profile : options->policy);
	else
		fputs("its own policy, as recorded", stdout);
	/* Another mode never spills, on any card. */
	if (cli_replay_as_recorded(options) && summary->mode && strcmp(summary->mode, "spill"))
		cli_printf(", spill.mode = %s", summary->mode);
	putchar('\n');
}

static void put_cards(const struct cli_replay_options *options, const struct cli_replay_run *run,
                      const struct cli_summary *summary)
{
	for (size_t i = 0; i < summary->device_count; i++) {
		int device = summary->devices[i].device;
		const struct cli_card *card =
		    device >= 0 && device < SPILL_DEVICES ? &run->setting.cards[device] : NULL;

		if (!card || !card->total)
			continue;
		cli_report_label("on");
		cli_printf("device %d of %s%s, of which %s is not this program's (%s)", device,
		           spill_size(card->total).text, options->vram ? " (--vram)" : "",
		           spill_size(card->other).text,
		           options->other != SPILL_UNLIMITED ? "--other"
		           : run->other_known[device]        ? "as the log tells"
		                                             : "not in the log: counted as 0; --other SIZE");
		if (card->limit != SPILL_UNLIMITED)
			cli_printf("; device.limit %s", spill_size(card->limit).text);
		putchar('\n');
	}
}

static void put_first(const struct cli_replay_run *run, const struct cli_run_files *files)
{
	const struct cli_replay_refused *refused = &run->first;

	if (!run->refused)
		return;
	cli_report_label("the first");
	cli_printf("at %s s: %s asked by %s with %s, device %d; refused by %s, rule %s; held then: %s\n",
	           cli_seconds(refused->time_us).text, spill_size(refused->bytes).text,
	           cli_report_caller(files, refused->who).text, cli_text_of(refused->api), refused->device,
	           cli_text_of(refused->refused_by), cli_text_of(refused->rule),
	           spill_sums(&refused->live).text);
	puts("                 the program's reaction is not known: the rest assumes that it goes on");
}

static void put_elsewhere(const struct cli_replay_run *run)
{
	if (!run->elsewhere.count)
		return;
	cli_printf("\n  %12s%12s  %s\n", "allocations", "bytes",
	           "from where they were, to where they would be");
	for (unsigned from = 0; from < CLI_WHERES; from++) {
		for (unsigned to = 0; to < CLI_WHERES; to++) {
			const struct cli_replay_sum *way = &run->ways[from][to];

			if (!way->count)
				continue;
			cli_printf("  %12" PRIu64 "%12s  %s -> %s%s\n", way->count,
			           cli_size_or_dash(way->bytes).text, cli_where_name(from),
			           cli_where_name(to), from == to ? " (another part of it)" : "");
		}
	}
}

/* files: of callers; NULL for other names. */
static void put_movers(const struct cli_table *table, const struct cli_run_files *files, const char *heading)
{
	if (!table->count)
		return;
	cli_printf("\n  %12s%12s%12s  %s\n", "elsewhere", "bytes", "off device", heading);
	for (size_t i = 0; i < table->count && i < ROWS; i++) {
		const struct cli_row *row = &table->rows[i];

		cli_printf("  %12" PRIu64 "%12s%12s  %s\n", row->count, cli_size_or_dash(row->bytes).text,
		           cli_size_or_dash(row->spilled).text, cli_report_caller(files, row->name).text);
	}
	if (table->count > ROWS)
		cli_printf("  %12s  %zu more, in --json\n", "", table->count - ROWS);
}

static void put_list(const struct cli_replay_run *run, const struct cli_run_files *files)
{
	if (!run->listed)
		return;
	cli_printf("\n  %12s%12s%12s  %s\n", "allocation", "bytes", "off device", "from, to, rule, caller");
	for (size_t i = 0; i < run->listed; i++) {
		const struct cli_replay_row *row = &run->list[i];

		cli_printf("  %12" PRIu64 "%12s%12s  %s -> %s, %s, %s\n", row->seq,
		           cli_size_or_dash(row->bytes).text, cli_size_or_dash(row->now.away).text,
		           cli_where_name(row->was.where), cli_where_name(row->now.where),
		           cli_text_of(row->rule), cli_report_caller(files, row->who).text);
	}
}

static void put_limits(const struct cli_replay_run *run)
{
	if (!run->judged)
		return;
	if (!run->runs) {
		puts("\n  no device.limit would do: a request is refused on a device of any size");
		return;
	}
	for (size_t i = 0; i < run->limit_count; i++) {
		const struct cli_replay_limit *limit = &run->limits[i];
		uint64_t other = run->setting.cards[limit->device].other;

		fputs(i ? "" : "\n", stdout);
		cli_printf(
		    "  device %d: nothing is elsewhere for lack of room if device.limit is at least %" PRIu64
		    " (%s), on a card of at least %s; ",
		    limit->device, limit->all, spill_size(limit->all).text,
		    spill_size(limit->all + limit->reserve + other).text);
		if (limit->least)
			cli_printf("nothing is out of memory if it is at least %" PRIu64 " (%s)\n",
			           limit->least, spill_size(limit->least).text);
		else
			puts("nothing is out of memory whatever it is, because all memory can be elsewhere");
	}
}

/* Limits of the prediction. */
static void put_doubts(const struct cli_replay *replay, const struct cli_replay_run *run,
                       const struct cli_summary *summary)
{
	puts("\n  this predicts where memory would be, not the speed, and assumes the same requests in the "
	     "same order");
	if (!run->judged)
		cli_printf("  %s: sums are too low\n", run->why);
	if (run->missing[0])
		cli_printf("  options that the recorded policy lacks have their defaults: %s\n",
		           run->missing);
	if (replay->options.host == SPILL_UNLIMITED)
		puts("  the log lacks the size of host memory: a host.limit in % and host.reserve never "
		     "refuse here (--host SIZE)");
	if (run->was_refused)
		printf("  of %" PRIu64 " out of memory in the recording, %" PRIu64
		       " would be served; the program's further requests are not known\n",
		       run->was_refused, run->now_served);
	if (replay->options.host == SPILL_UNLIMITED && run->host_refused)
		puts("  requests that were refused for lack of host memory are refused again, unless they "
		     "fit on the device (--host SIZE)");
	if (run->honest)
		printf("  %" PRIu64 " out of memory would surface by oom.honest_first; the memory that the "
		       "program would free is not known\n",
		       run->honest);
	if (run->rules[0])
		cli_printf("  the log has no paths of libraries, so these rules can only match the program "
		           "itself by caller: %s\n",
		           run->rules);
	if (summary->end.bad || summary->end.later || summary->end.late)
		cli_printf(
		    "  figures may be wrong: %s that cannot be read as a record, %s of a later version, %s "
		    "too late for their order\n",
		    cli_count(summary->end.bad, "line").text, cli_count(summary->end.later, "record").text,
		    cli_count(summary->end.late, "event").text);
}

/* -- several runs ----------------------------------------------------------------------------- */

static int compare_devices(const void *left, const void *right)
{
	const struct cli_replay_shared *a = left, *b = right;
	int order = strcmp(a->host, b->host);

	return order ? order : strcmp(a->uuid, b->uuid);
}

static int compare_order(const void *left, const void *right)
{
	const struct cli_replay_shared *a = left, *b = right;

	return a->order < b->order ? -1 : a->order > b->order;
}

/* The device is that of its first run. */
static void add_same(struct cli_replay_shared *sum, const struct cli_replay_shared *same)
{
	sum->peak += same->peak;
	sum->runs++;
	if (same->order < sum->order) {
		sum->order = same->order;
		sum->total = same->total;
	}
}

/* Lists each device of each run that used it. Returns their number. */
static size_t list_devices(const struct cli_summaries *summaries, struct cli_replay_shared *list)
{
	size_t count = 0;

	for (size_t i = 0; i < summaries->count; i++) {
		const struct cli_summary *run = &summaries->runs[i];

		for (size_t at = 0; at < run->device_count; at++) {
			const struct cli_device *device = &run->devices[at];

			if (!run->host || !device->uuid || !device->peak.device)
				continue;
			list[count] = (struct cli_replay_shared){
			    run->host, device->uuid, device->bytes, device->peak.device, 1, count};
			count++;
		}
	}
	return count;
}

size_t cli_replay_shared(const struct cli_replay *replay, struct cli_replay_shared **list)
{
	const struct cli_summaries *summaries = &replay->report.summaries;
	size_t all = 0, count, kept = 0;

	for (size_t i = 0; i < summaries->count; i++)
		all += summaries->runs[i].device_count;
	*list = cli_realloc(NULL, all + 1, sizeof(**list));
	count = list_devices(summaries, *list);
	qsort(*list, count, sizeof(**list), compare_devices);
	for (size_t from = 0, to; from < count; from = to) {
		struct cli_replay_shared sum = (*list)[from];

		for (to = from + 1; to < count && !compare_devices(&sum, &(*list)[to]); to++)
			add_same(&sum, &(*list)[to]);
		if (sum.runs > 1)
			(*list)[kept++] = sum;
	}
	qsort(*list, kept, sizeof(**list), compare_order);
	return kept;
}

static void put_shared(const struct cli_replay *replay)
{
	struct cli_replay_shared *list;
	size_t count = cli_replay_shared(replay, &list);

	for (size_t i = 0; i < count; i++) {
		cli_printf("  %s on %s: %u runs, their peaks together %s of %s%s\n", list[i].uuid,
		           list[i].host, list[i].runs, spill_size(list[i].peak).text,
		           spill_size(list[i].total).text,
		           list[i].peak > list[i].total ? ": too much if they run at once" : "");
	}
	if (count)
		puts("");
	free(list);
}

static void put_runs(const struct cli_replay *replay)
{
	size_t fit = 0;

	for (size_t i = 0; i < replay->count; i++)
		fit += cli_replay_fits(&replay->runs[i]);
	printf("%zu of %zu runs would not run out of memory\n", fit, replay->count);
	for (size_t i = 0; i < replay->count; i++) {
		const struct cli_summary *summary = &replay->report.summaries.runs[i];

		cli_printf("  ");
		cli_report_log(summary);
		if (summary->rank)
			cli_printf(", rank %s", summary->rank);
		fputs(": ", stdout);
		put_answer(&replay->runs[i]);
	}
	putchar('\n');
	put_shared(replay);
}

void cli_replay_text(const struct cli_replay *replay)
{
	if (replay->count > 1)
		put_runs(replay);
	for (size_t i = 0; i < replay->count; i++) {
		const struct cli_replay_run *run = &replay->runs[i];
		const struct cli_summary *summary = &replay->report.summaries.runs[i];

		if (i)
			putchar('\n');
		put_answer(run);
		put_run(summary);
		put_policy(&replay->options, summary);
		put_cards(&replay->options, run, summary);
		put_first(run, &summary->files);
		cli_report_spills(summary);
		put_elsewhere(run);
		put_movers(&run->by_caller, &summary->files, "by caller");
		put_movers(&run->by_rule, NULL, "by rule");
		put_list(run, &summary->files);
		cli_report_devices(summary);
		cli_report_fit(summary, replay->options.margin);
		cli_report_views(summary);
		put_limits(run);
		put_doubts(replay, run, summary);
	}
}

/* Prints a run for people: did anything spill, how much, where, why, and how to avoid it. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "oom_report.h"
#include "put.h"
#include "report.h"

#define NAMES 5

void cli_report_who(const struct cli_summary *summary)
{
	cli_printf("%s (pid %d", summary->program, summary->pid);
	if (summary->rank)
		cli_printf(", rank %s", summary->rank);
	cli_printf(") on %s, %s", summary->host, summary->time);
}

static void put_head(const struct cli_summary *summary)
{
	cli_report_who(summary);
	cli_printf(", libspill %s, %s driver %d\n", summary->version, summary->backend, summary->driver);
	if (!summary->started)
		puts("  the log has no start line: the program is not known");
	if (summary->problem)
		cli_printf("  the policy was refused: %s\n", summary->problem);
	if (summary->mode && strcmp(summary->mode, "spill"))
		cli_printf("  spill.mode = %s: nothing was placed elsewhere\n", summary->mode);
}

static void put_end(const struct cli_summary *summary)
{
	cli_report_label("ended");
	cli_printf("%s; last line at %s%s\n",
	           summary->exited ? cli_report_how(summary)
	                           : "no exit line: the program was killed, has crashed, or still runs; the "
	                             "figures cover its lines",
	           cli_seconds(summary->ended_us).text, summary->end.cut ? " s, cut" : " s");
}

void cli_report_label(const char *label)
{
	cli_printf("  %-15s", label);
}

static uint64_t spilled_of(const struct cli_row *row)
{
	return row->spilled;
}

static uint64_t away_of(const struct cli_row *row)
{
	return row->away_peak;
}

/*
 * "split 2.04 GiB, host 1.00 GiB": the first few rows that have such bytes. files: of callers; NULL
 * for other names.
 */
static void put_rows(const char *label, const struct cli_table *table, const struct cli_run_files *files,
                     uint64_t (*bytes_of)(const struct cli_row *row))
{
	unsigned named = 0;
	const char *comma = "";

	cli_report_label(label);
	for (size_t i = 0; i < table->count; i++) {
		const struct cli_row *row = &table->rows[i];

		if (!bytes_of(row) || named++ >= NAMES)
			continue;
		cli_printf("%s%s %s", comma, cli_caller_text(files, cli_text_of(row->name)).text,
		           spill_size(bytes_of(row)).text);
		comma = ", ";
	}
	if (named > NAMES)
		printf(" and %u more", named - NAMES);
	if (!named)
		fputs("not told: the log lacks these lines", stdout);
	putchar('\n');
}

static void put_moves(const char *label, uint64_t bytes, uint64_t count, const struct cli_table *by_reason)
{
	if (!count)
		return;
	cli_report_label(label);
	cli_printf("%s in %" PRIu64 " move%s", spill_size(bytes).text, count, count == 1 ? "" : "s");
	for (size_t i = 0; i < by_reason->count; i++)
		cli_printf("%s%s %s", i ? ", " : ": ", cli_text_of(by_reason->rows[i].name),
		           spill_size(by_reason->rows[i].bytes).text);
	putchar('\n');
}

/* The story of the run, as on stderr (run_story.h). */
static void put_story(const struct spill_story *story)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	cli_report_label("spilled");
	spill_story_size(&text, story);
	cli_printf("%s%s\n", story->any ? "yes: " : "no: ", buffer);
	if (!story->away.moves_us)
		return;
	text = spill_text_begin(buffer, sizeof(buffer));
	spill_story_cost(&text, story);
	cli_report_label("cost");
	cli_printf("%s\n", buffer);
}

/* "device 0: 12.52 GiB wanted by this process, 128.00 GiB held by others, …; 0.10 GiB free of …" */
static void put_shortage(const struct cli_device *device)
{
	const struct cli_shortage *shortage = &device->shortage;

	cli_report_label("memory lacked");
	if (shortage->bytes)
		cli_printf(
		    "device %d: %s wanted by this process, %s held by others, contexts and code; %s free "
		    "of %s, at %s s\n",
		    device->device, spill_size(shortage->demand).text, spill_size(shortage->others).text,
		    spill_size(shortage->free).text, spill_size(shortage->bytes).text,
		    cli_seconds(shortage->time_us).text);
	else
		cli_printf("device %d: the log does not tell what was free\n", device->device);
}

void cli_report_spills(const struct cli_summary *summary)
{
	const struct spill_totals *totals = &summary->totals;

	put_story(&summary->story);
	for (size_t i = 0; i < summary->device_count; i++) {
		if (summary->devices[i].shortage.count && summary->devices[i].device >= 0)
			put_shortage(&summary->devices[i]);
	}
	if (totals->spills) {
		cli_report_label("placed there");
		cli_printf("%" PRIu64 " of %" PRIu64 " allocations, in all %s\n", totals->spills,
		           totals->allocs, spill_sums(&totals->spilled).text);
		put_rows("where", &summary->views[CLI_BY_PLACE], NULL, spilled_of);
		put_rows("why", &summary->views[CLI_BY_REASON], NULL, spilled_of);
	}
	if (summary->story.any) {
		put_rows("by rule", &summary->views[CLI_BY_RULE], NULL, away_of);
		put_rows("asked by", &summary->views[CLI_BY_CALLER], &summary->files, away_of);
	}
	put_moves("moved to host", totals->demoted, totals->demotions, &summary->demoted);
	put_moves("moved back", totals->promoted, totals->promotions, &summary->promoted);
}

static void put_ooms(const struct cli_summary *summary)
{
	cli_report_label("out of memory");
	printf("%" PRIu64, summary->totals.ooms);
	if (summary->ooms.honest)
		printf(", of which %" PRIu64 " by oom.honest_first, to be asked again", summary->ooms.honest);
	putchar('\n');
	cli_report_cause(summary);
}

static void put_rest(const struct cli_summary *summary)
{
	char advice[CLI_ADVICE];

	cli_advice_run(summary, advice);
	if (*advice) {
		cli_report_label("avoided by");
		cli_printf("%s\n", advice);
	}
	cli_report_label("log");
	cli_printf("%s:%lu\n", summary->path, summary->line);
}

static void put_bytes(const char *label, const struct spill_bytes *bytes)
{
	cli_printf("  %-8s%20" PRIu64 "%20" PRIu64 "%20" PRIu64 "\n", label, bytes->device, bytes->host,
	           bytes->managed);
}

/* The totals in bytes, as in an exit line. */
static void put_totals(const struct spill_totals *totals)
{
	printf("\n  allocs %" PRIu64 ", frees %" PRIu64 ", spills %" PRIu64 ", ooms %" PRIu64
	       ", demotions %" PRIu64 " (%" PRIu64 " bytes), promotions %" PRIu64 " (%" PRIu64 " bytes)\n",
	       totals->allocs, totals->frees, totals->spills, totals->ooms, totals->demotions,
	       totals->demoted, totals->promotions, totals->promoted);
	cli_printf("  %-8s%20s%20s%20s\n", "bytes", "device", "host", "managed");
	put_bytes("live", &totals->live);
	put_bytes("peak", &totals->peak);
	put_bytes("spilled", &totals->spilled);
}

static void put_differences(const struct cli_summary *summary)
{
	struct cli_difference differences[CLI_DIFFERENCES];
	unsigned count = cli_summary_differences(summary, differences);

	if (summary->end.missing) {
		printf("  %" PRIu64 " LINES OF THIS RUN ARE MISSING: its log was rotated, removed or "
		       "truncated while it ran. The figures\n  cover the other lines. Put "
		       "rotated pieces into one folder to read them as one run\n",
		       summary->end.missing);
		return;
	}
	if (!summary->exited)
		return;
	if (!count) {
		puts(summary->all_told ? "  equal to the byte to the program's own count (exit line)"
		                       : "  log.level is spills: the log lacks allocations that did not "
		                         "spill; the others equal the\n  program's own count (exit line)");
		return;
	}
	puts("  THE SUMS OF THE LINES DIFFER FROM THE PROGRAM'S OWN COUNT (exit line):");
	for (unsigned i = 0; i < count; i++)
		cli_printf("    %s: lines %" PRIu64 ", exit line %" PRIu64 "\n", differences[i].name,
		           differences[i].lines, differences[i].exit);
	if (summary->lost)
		puts("    lines were lost: see the log-lost notes");
}

/* Reasons why the tables are incomplete. */
static void put_doubts(const struct cli_summary *summary)
{
	const struct spill_sum *left = summary->left_out;
	const struct cli_trace_end *end = &summary->end;

	if (left[SPILL_DROP_ALLOC].count || left[SPILL_DROP_SPILL].count || left[SPILL_DROP_FREE].count)
		printf("  log.max left out %" PRIu64 " allocations and %" PRIu64
		       " frees: the totals have them, devices and tables do not\n",
		       left[SPILL_DROP_ALLOC].count + left[SPILL_DROP_SPILL].count,
		       left[SPILL_DROP_FREE].count);
	if (end->bad)
		printf("  %lu lines are not records\n", end->bad);
	if (end->later)
		printf("  %lu records of a later version of spill are not counted\n", end->later);
	if (end->late)
		printf("  %lu events came so late that peaks may be too low\n", end->late);
	if (summary->unknown_frees && summary->all_told)
		printf("  %" PRIu64 " frees of allocations that are not in the log\n",
		       summary->unknown_frees);
	if (summary->after_exit)
		printf("  %" PRIu64 " events after the exit line are not counted\n", summary->after_exit);
}

static void put_notes(const struct cli_summary *summary)
{
	if (!summary->note_count)
		return;
	printf("\n  notes: %lu\n", summary->note_count);
	for (unsigned long i = 0; i < summary->note_count && i < CLI_NOTES; i++) {
		const struct cli_note *note = &summary->notes[i];

		cli_printf("  at %s s: %s: %s\n", cli_seconds(note->time_us).text, cli_text_of(note->code),
		           note->text);
	}
	if (summary->note_count > CLI_NOTES)
		printf("  %lu more\n", summary->note_count - CLI_NOTES);
}

void cli_report_text(const struct cli_report *report)
{
	if (report->summaries.count > 1) {
		cli_report_runs(report);
		putchar('\n');
	}
	for (size_t i = 0; i < report->summaries.count; i++) {
		const struct cli_summary *summary = &report->summaries.runs[i];

		if (i)
			putchar('\n');
		put_head(summary);
		put_end(summary);
		if (cli_summary_surfaced(summary))
			put_ooms(summary);
		cli_report_spills(summary);
		if (!cli_summary_surfaced(summary))
			put_ooms(summary);
		put_rest(summary);
		put_totals(&summary->totals);
		put_differences(summary);
		put_doubts(summary);
		cli_report_devices(summary);
		cli_report_fit(summary, report->margin);
		cli_report_views(summary);
		cli_report_largest(summary);
		cli_report_moved(summary);
		cli_report_ooms(summary);
		put_notes(summary);
	}
}

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
	cli_printf(", libspill %s, %s driver %s\n", summary->version, summary->backend,
	           cli_driver_version(summary->backend, summary->driver).text);
	if (!summary->started)
		puts("  the log has no start line: the program is not known");
	if (summary->problem)
		cli_printf("  the policy was refused: %s\n", summary->problem);
	if (summary->mode && strcmp(summary->mode, "spill"))
		cli_printf("  spill.mode = %s: nothing was placed elsewhere\n", summary->mode);
}

static void put_end(const struct cli_summary *summary)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	cli_report_end(&text, summary);
	cli_report_label("ended");
	cli_printf("%s\n", buffer);
}

void cli_report_label(const char *label)
{
	cli_printf("  %-15s", label);
}

/* How the rows of a table are told: which bytes of a row, and in which words. */
struct telling {
	uint64_t (*bytes_of)(const struct cli_row *row);
	void (*put)(const struct cli_row *row, struct spill_word bytes, const struct cli_run_files *files);
	const struct cli_run_files *files; /* of callers; NULL for other names */
};

static uint64_t spilled_of(const struct cli_row *row)
{
	return row->spilled;
}

static uint64_t away_of(const struct cli_row *row)
{
	return row->away_peak;
}

/* Only of a rule that somebody wrote. */
static uint64_t away_by_rule(const struct cli_row *row)
{
	return row->name && !cli_name_is(row->name, "default") ? row->away_peak : 0;
}

/* "libc10_cuda.so+0x2f4cb 3.78 GiB" */
static void put_named(const struct cli_row *row, struct spill_word bytes, const struct cli_run_files *files)
{
	cli_printf("%s %s", cli_report_caller(files, row->name).text, bytes.text);
}

/* "host 1.00 GiB"; "split: 1.61 GiB of it on the host, the rest on the card" */
static void put_place(const struct cli_row *row, struct spill_word bytes, const struct cli_run_files *files)
{
	if (cli_name_is(row->name, spill_place_name(SPILL_PLACE_SPLIT)))
		cli_printf("split: %s of it on the host, the rest on the card", bytes.text);
	else
		put_named(row, bytes, files);
}

/* "1.61 GiB because the card was full" */
static void put_reason(const struct cli_row *row, struct spill_word bytes, const struct cli_run_files *files)
{
	(void)files;
	cli_printf("%s %s", bytes.text, spill_reason_words(cli_text_of(row->name)));
}

/* The row with most of those bytes behind `last` in that order; rows of one size keep theirs. NULL: the first. */
static const struct cli_row *next_largest(const struct cli_table *table, struct telling telling,
                                          const struct cli_row *last)
{
	const struct cli_row *next = NULL;

	for (const struct cli_row *row = table->rows; row < table->rows + table->count; row++) {
		uint64_t bytes = telling.bytes_of(row), least = next ? telling.bytes_of(next) : 0;
		bool behind = !last || bytes < telling.bytes_of(last) ||
		              (bytes == telling.bytes_of(last) && row > last);
		if (behind && bytes > least)
			next = row;
	}
	return next;
}

/* The few rows that have most of such bytes, as on the page (html/verdict.js). */
static void put_rows(const char *label, const struct cli_table *table, struct telling telling)
{
	const struct cli_row *row = NULL;
	size_t count = 0;

	for (size_t i = 0; i < table->count; i++)
		count += telling.bytes_of(&table->rows[i]) != 0;
	cli_report_label(label);
	for (size_t i = 0; i < NAMES && i < count; i++) {
		row = next_largest(table, telling, row);
		cli_printf("%s", i ? "; " : "");
		telling.put(row, spill_size(telling.bytes_of(row)), telling.files);
	}
	if (count > NAMES)
		printf("; and %zu more", count - NAMES);
	if (!count)
		fputs("not told: the log lacks these lines", stdout);
	putchar('\n');
}

static void put_moves(const char *label, uint64_t bytes, uint64_t count, const struct cli_table *by_reason)
{
	if (!count)
		return;
	cli_report_label(label);
	cli_printf("%s in %s", spill_size(bytes).text, cli_count(count, "move").text);
	for (size_t i = 0; i < by_reason->count; i++) {
		cli_printf("%s", i ? "; " : ": ");
		put_reason(&by_reason->rows[i], spill_size(by_reason->rows[i].bytes), NULL);
	}
	putchar('\n');
}

/* A sentence of the story, if there is one. */
static void put_sentence(const char *label,
                         void (*sentence)(struct spill_text *text, const struct spill_story *story),
                         const struct spill_story *story)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	sentence(&text, story);
	if (!text.length)
		return;
	cli_report_label(label);
	cli_printf("%s\n", buffer);
}

/* The story of the run, as on stderr (run_story.h). */
static void put_story(const struct spill_story *story)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	cli_report_label("spilled");
	spill_story_size(&text, story);
	cli_printf("%s%s\n", story->any ? "yes: " : "no: ", buffer);
	put_sentence("cost", spill_story_cost, story);
	put_sentence("read in place", spill_story_in_place, story);
}

static void put_shortage(const struct cli_device *device)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	cli_report_shortage(&text, &device->shortage);
	cli_report_label("memory lacked");
	cli_printf("device %d: %s\n", device->device, buffer);
}

/* Did a rule that somebody wrote put memory off the card? */
static bool is_ruled(const struct cli_table *by_rule)
{
	for (size_t i = 0; i < by_rule->count; i++) {
		if (away_by_rule(&by_rule->rows[i]))
			return true;
	}
	return false;
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
		cli_report_label("placed off");
		cli_printf("%" PRIu64 " of %" PRIu64 " allocations, in all %s\n", totals->spills,
		           totals->allocs, spill_sums(&totals->spilled).text);
		put_rows("where", &summary->views[CLI_BY_PLACE],
		         (struct telling){spilled_of, put_place, NULL});
		put_rows("why", &summary->views[CLI_BY_REASON],
		         (struct telling){spilled_of, put_reason, NULL});
	}
	if (is_ruled(&summary->views[CLI_BY_RULE]))
		put_rows("by rule", &summary->views[CLI_BY_RULE],
		         (struct telling){away_by_rule, put_named, NULL});
	if (summary->story.any)
		put_rows("asked by", &summary->views[CLI_BY_CALLER],
		         (struct telling){away_of, put_named, &summary->files});
	put_moves("moved to host", totals->demoted, totals->demotions, &summary->demoted);
	put_moves("moved back", totals->promoted, totals->promotions, &summary->promoted);
}

static void put_ooms(const struct cli_summary *summary)
{
	char buffer[CLI_ADVICE];
	struct spill_text text = spill_text_begin(buffer, sizeof(buffer));

	cli_report_refusals(&text, summary);
	cli_report_label("out of memory");
	cli_printf("%s\n", buffer);
	cli_report_cause(summary);
}

static void put_rest(const struct cli_summary *summary)
{
	char advice[CLI_ADVICE];

	cli_advice_run(summary, advice);
	if (*advice) {
		cli_report_label("to fit");
		cli_printf("%s\n", advice);
	}
	cli_report_label("log");
	cli_report_log(summary);
	putchar('\n');
}

static void put_bytes(const char *label, const struct spill_bytes *bytes)
{
	cli_printf("  %-12s%20" PRIu64 "%20" PRIu64 "%20" PRIu64 "\n", label, bytes->device, bytes->host,
	           bytes->managed);
}

/* Nothing if there are differences: put_differences tells them. */
static void put_equal(const struct cli_summary *summary)
{
	struct cli_difference differences[CLI_DIFFERENCES];

	if (!summary->exited || summary->end.missing || cli_summary_differences(summary, differences))
		return;
	puts(summary->all_told ? "  each of these figures equals the program's own count (exit line)"
	                       : "  log.level is spills: the log lacks allocations that did not "
	                         "spill; the other figures equal\n  the program's own count (exit line)");
}

/* The totals to the byte, in the words of the first lines. The exit line has the same figures. */
static void put_totals(const struct cli_summary *summary)
{
	const struct spill_totals *totals = &summary->totals;

	printf("\n  allocations %" PRIu64 ", frees %" PRIu64 ", placed off the card %" PRIu64
	       ", refused as out of memory %" PRIu64,
	       totals->allocs, totals->frees, totals->spills, totals->ooms);
	if (summary->ooms.honest)
		printf(" (%" PRIu64 " once on purpose)", summary->ooms.honest);
	putchar('\n');
	cli_printf("  moved to the host %s (%" PRIu64 " bytes), moved back %s (%" PRIu64 " bytes)\n",
	           cli_count(totals->demotions, "time").text, totals->demoted,
	           cli_count(totals->promotions, "time").text, totals->promoted);
	cli_printf("  %-12s%20s%20s%20s\n", "bytes", "device", "host", "managed");
	put_bytes("at the end", &totals->live);
	put_bytes("at most", &totals->peak);
	put_bytes("placed off", &totals->spilled);
	put_equal(summary);
}

static void put_differences(const struct cli_summary *summary)
{
	struct cli_difference differences[CLI_DIFFERENCES];
	unsigned count = cli_summary_differences(summary, differences);

	if (summary->end.missing) {
		cli_printf("  %" PRIu64 " LINE%s OF THIS RUN %s MISSING: its log was rotated, removed or "
		           "truncated while it ran. The figures\n  cover the other lines. Put "
		           "rotated pieces into one folder to read them as one run\n",
		           summary->end.missing, summary->end.missing == 1 ? "" : "S",
		           summary->end.missing == 1 ? "IS" : "ARE");
		return;
	}
	if (!count)
		return;
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
		cli_printf(
		    "  log.max left out %s and %s: the totals have them, devices and tables do not\n",
		    cli_count(left[SPILL_DROP_ALLOC].count + left[SPILL_DROP_SPILL].count, "allocation").text,
		    cli_count(left[SPILL_DROP_FREE].count, "free").text);
	if (end->bad)
		cli_printf("  not counted: %s that cannot be read as a record\n",
		           cli_count(end->bad, "line").text);
	if (end->later)
		cli_printf("  not counted: %s of a later version of spill\n",
		           cli_count(end->later, "record").text);
	if (end->late)
		cli_printf("  %s came so late that peaks may be too low\n",
		           cli_count(end->late, "event").text);
	if (summary->unknown_frees && summary->all_told)
		cli_printf("  the log has %s of memory whose allocation it does not have\n",
		           cli_count(summary->unknown_frees, "free").text);
	if (summary->after_exit)
		cli_printf("  not counted: %s after the exit line\n",
		           cli_count(summary->after_exit, "event").text);
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
		if (summary->ooms.count)
			put_ooms(summary);
		cli_report_spills(summary);
		if (!summary->ooms.count)
			put_ooms(summary);
		put_rest(summary);
		put_differences(summary);
		put_doubts(summary);
		cli_report_devices(summary);
		cli_report_fit(summary, report->margin);
		cli_report_views(summary);
		cli_report_largest(summary);
		cli_report_moved(summary);
		cli_report_ooms(summary);
		put_notes(summary);
		put_totals(summary);
	}
}

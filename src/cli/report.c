/* spill report: what recorded runs did, added up. */
#include <stdlib.h>
#include <string.h>

#include "amount.h"
#include "call.h"
#include "cli.h"
#include "report.h"

#define MARGIN ((uint64_t)1 << 30)

const char *cli_text_of(const struct cli_name *name)
{
	return name ? name->text : "?";
}

const char *cli_report_how(const struct cli_summary *summary)
{
	return summary->exited ? cli_text_of(summary->how) : "none";
}

bool cli_report_findings(const struct cli_summary *summary)
{
	struct cli_difference differences[CLI_DIFFERENCES];

	return cli_summary_surfaced(summary) || cli_summary_differences(summary, differences) ||
	       summary->end.missing || (summary->unknown_frees && summary->all_told);
}

static void add_totals(struct spill_totals *sum, const struct spill_totals *totals)
{
	sum->allocs += totals->allocs;
	sum->frees += totals->frees;
	sum->spills += totals->spills;
	sum->ooms += totals->ooms;
	sum->demotions += totals->demotions;
	sum->promotions += totals->promotions;
	sum->demoted += totals->demoted;
	sum->promoted += totals->promoted;
	cli_bytes_add(&sum->live, &totals->live);
	cli_bytes_add(&sum->peak, &totals->peak);
	cli_bytes_add(&sum->spilled, &totals->spilled);
}

struct spill_totals cli_report_sum(const struct cli_report *report)
{
	struct spill_totals sum = {0};

	for (size_t i = 0; i < report->summaries.count; i++)
		add_totals(&sum, &report->summaries.runs[i].totals);
	return sum;
}

/* By number where all have one, so that rank 10 is behind rank 9; else as they were read. */
static int compare_ranks(const void *left, const void *right)
{
	const struct cli_summary *a = left, *b = right;

	return a->rank && b->rank ? strverscmp(a->rank, b->rank) : 0;
}

static void sort_ranks(struct cli_summaries *summaries)
{
	for (size_t i = 0; i < summaries->count; i++) {
		if (!summaries->runs[i].rank)
			return;
	}
	/* Stable: a job may have been run several times. */
	for (size_t i = 1; i < summaries->count; i++) {
		for (size_t at = i; at && compare_ranks(&summaries->runs[at - 1], &summaries->runs[at]) > 0;
		     at--) {
			struct cli_summary swapped = summaries->runs[at];

			summaries->runs[at] = summaries->runs[at - 1];
			summaries->runs[at - 1] = swapped;
		}
	}
}

static int print_report(struct cli_report *report, bool json)
{
	bool findings = report->unread;

	sort_ranks(&report->summaries);
	for (size_t i = 0; i < report->summaries.count; i++)
		findings |= cli_report_findings(&report->summaries.runs[i]);
	if (json)
		cli_report_json(report);
	else
		cli_report_text(report);
	return findings ? CLI_FINDINGS : CLI_FINE;
}

int cli_report(int argc, char **argv)
{
	struct cli_report report = {.margin = MARGIN};
	struct cli_trace trace = {
	    .command = "report", .visitor = &cli_summary_visitor, .data = &report.summaries};
	struct cli_call call = cli_call(argc, argv);
	bool json = false;
	int status;

	while (cli_call_next(&call)) {
		if (call.option == CLI_report_json)
			json = true;
		else
			cli_call_size(&call, &report.margin);
	}
	if (call.over)
		return call.status;
	if (!call.count)
		return cli_usage(argv[0], "which log, or which folder of logs?");
	report.summaries.names = &trace.names;
	for (int i = 0; i < call.count; i++)
		report.unread |= !cli_trace_read(&trace, call.operand[i]);
	status = print_report(&report, json);
	cli_summaries_free(&report.summaries);
	cli_trace_free(&trace);
	return cli_finish(status);
}

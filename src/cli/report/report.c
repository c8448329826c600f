/* spill report: sums up recorded runs. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "amount.h"
#include "call.h"
#include "cli.h"
#include "find_log.h"
#include "report.h"

const char *cli_text_of(const struct cli_name *name)
{
	return name ? name->text : "?";
}

struct cli_caller_text cli_report_caller(const struct cli_run_files *files, const struct cli_name *who)
{
	return cli_caller_text(files, who ? who->text : NULL);
}

/* True if the run needs attention: out of memory, different sums, or missing lines. */
static bool has_findings(const struct cli_summary *summary)
{
	struct cli_difference differences[CLI_DIFFERENCES];

	return summary->ooms.count || cli_summary_differences(summary, differences) || summary->end.missing ||
	       (summary->unknown_frees && summary->all_told);
}

struct spill_totals cli_report_sum(const struct cli_report *report)
{
	struct spill_totals sum = {0};

	for (size_t i = 0; i < report->summaries.count; i++)
		cli_totals_add(&sum, &report->summaries.runs[i].totals);
	return sum;
}

/* The output. `page` is the file for HTML, or NULL. */
struct form {
	bool json, summary;
	const char *page;
};

static int print_report(struct cli_report *report, const struct cli_stories *stories, const struct form *form)
{
	bool findings = report->unread;

	report->job = cli_job_of(&report->summaries);
	for (size_t i = 0; i < report->summaries.count; i++)
		findings |= has_findings(&report->summaries.runs[i]);
	if (form->page)
		findings |= !cli_report_html(report, stories, form->page);
	else if (form->json)
		cli_report_json(report);
	else if (form->summary)
		cli_report_runs(report);
	else
		cli_report_text(report);
	return findings ? CLI_FINDINGS : CLI_FINE;
}

/* A log in the page's place, as in `--html a.jsonl b.jsonl`. */
static bool begins_as_log(const char *path)
{
	static const char begin[] = "{\"v\"";
	char text[sizeof(begin) - 1] = "";
	int error, fd = cli_open(path, CLI_REGULAR, &error);
	ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return length == sizeof(text) && !memcmp(text, begin, sizeof(text));
}

/* True if the page would overwrite a log. */
static bool is_log(const struct cli_summaries *summaries, const char *page)
{
	struct stat out, log;

	if (stat(page, &out) || !S_ISREG(out.st_mode))
		return false;
	if (begins_as_log(page))
		return true;
	for (size_t i = 0; i < summaries->count; i++) {
		if (!stat(summaries->runs[i].path, &log) && cli_is_same_file(&log, &out))
			return true;
	}
	return false;
}

static int report_on(char **paths, uint64_t margin, const struct form *form)
{
	struct cli_report report = {.margin = margin};
	struct cli_stories stories = {.summaries = &report.summaries};
	struct cli_trace trace = {
	    .command = "report", .visitor = &cli_summary_visitor, .data = &report.summaries};
	int status;

	if (form->page) {
		trace.visitor = &cli_story_visitor;
		trace.data = &stories;
	}
	report.summaries.names = &trace.names;
	bool any = false;
	do {
		char found[PATH_MAX];
		int pid;
		const char *path = cli_find_log("report", *paths, &pid, found);

		report.summaries.pid = pid;
		any |= path != NULL;
		report.unread |= !path || !cli_trace_read(&trace, path);
	} while (*paths && *++paths);
	if (!any)
		status = CLI_FINDINGS;
	else if (form->page && is_log(&report.summaries, form->page))
		status = cli_usage("report", "--html '%s' is a log, and would be lost", form->page);
	else
		status = print_report(&report, &stories, form);
	cli_stories_free(&stories);
	cli_job_free(&report.job);
	cli_summaries_free(&report.summaries);
	cli_trace_free(&trace);
	return status;
}

int cli_report(int argc, char **argv)
{
	struct cli_call call = cli_call(argc, argv);
	uint64_t margin = CLI_MARGIN;
	struct form form = {0};

	while (cli_call_next(&call)) {
		if (call.option == CLI_report_json)
			form.json = true;
		else if (call.option == CLI_report_summary)
			form.summary = true;
		else if (call.option == CLI_report_html)
			form.page = call.value;
		else
			cli_call_size(&call, &margin);
	}
	if (call.over)
		return call.status;
	if (form.json && form.page)
		return cli_usage(argv[0],
		                 "use only one of --json and --html: the page contains the object of --json");
	if (form.summary && (form.json || form.page))
		return cli_usage(argv[0], "--summary is for people: --json and --html have all of it");
	return cli_finish(report_on(call.operand, margin, &form));
}

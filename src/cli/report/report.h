/*
 * report: `spill report`. It prints the sums of recorded runs as text, as JSON, or as one page.
 *
 * It opens no log, and adds nothing up itself: figures come from the trace room's summaries. It
 * never changes one.
 *
 * Begin with cli_report in report.c; text.c and json.c have the order of the output.
 */
#ifndef SPILL_CLI_REPORT_H
#define SPILL_CLI_REPORT_H

#include <stdio.h>

#include "job.h"
#include "json.h"
#include "story.h"

struct cli_report {
	struct cli_summaries summaries;
	struct cli_job job;
	uint64_t margin; /* memory to keep free on each device */
	size_t rows;     /* most rows of a table in JSON; 0: all */
	bool unread;     /* a log could not be read, or has a bad line */
};

/* Sums of all runs, as if their peaks came at once. */
struct spill_totals cli_report_sum(const struct cli_report *report);

/* --margin where it is not given */
#define CLI_MARGIN ((uint64_t)1 << 30)

/* text.c, json.c */
void cli_report_text(const struct cli_report *report);
void cli_report_json(const struct cli_report *report);

/* json.c: writes a name as a member; null for NULL. */
void cli_json_name(struct spill_json *json, const char *member, const struct cli_name *name);

/* json.c: writes the member `fit`, if the device's size is known. */
void cli_report_json_fit(struct spill_json *json, const struct cli_summary *summary,
                         const struct cli_device *device, uint64_t margin);

/* json.c: writes the member `surplus`; null: it is not known. */
struct cli_fit_row;
void cli_report_json_surplus(struct spill_json *json, const struct cli_fit_row *row);

/* Writes the report as members of an object. */
void cli_report_members(struct spill_json *json, const struct cli_report *report);

/* advice.c: device.reserve, if memory moved to keep it free; else 0. */
uint64_t cli_report_reserve(const struct cli_summary *summary, const struct cli_device *device);

/* -- words.c: the sentences that the text, JSON and the page have in common ------------------ */

/* "8.78 GiB needed by this program; 134.42 GiB held by other programs …; 17.56 MiB free of …" */
void cli_report_shortage(struct spill_text *text, const struct cli_shortage *shortage);

/* "none was final; 20 requests were refused once on purpose, so that …". "none": there was none. */
void cli_report_refusals(struct spill_text *text, const struct cli_summary *summary);

/* "by itself after 3.9 s (…)". Without an exit line: the last line of the log. */
void cli_report_end(struct spill_text *text, const struct cli_summary *summary);

/* The same in a word: that of the exit line, "runs", "gone" or "not known". */
const char *cli_report_ending(const struct cli_summary *summary);

/* The log's path; with the line of the start line if runs are before it. */
void cli_report_log(const struct cli_summary *summary);

/* text.c: "llama-server (pid 4711, rank 3) on node7, 2026-11-21T03:50:51.123456Z" */
void cli_report_who(const struct cli_summary *summary);

/* text.c: prints the left column of a line. */
void cli_report_label(const char *label);

/* text.c: prints how much spilled, where and why, and the moves. */
void cli_report_spills(const struct cli_summary *summary);

/* tables.c: each prints a table with its heading, or nothing if it is empty. */
void cli_report_devices(const struct cli_summary *summary);
void cli_report_fit(const struct cli_summary *summary, uint64_t margin);
void cli_report_views(const struct cli_summary *summary);
void cli_report_largest(const struct cli_summary *summary);
void cli_report_moved(const struct cli_summary *summary);
void cli_report_runs(const struct cli_report *report);

/* oom.c */
void cli_report_ooms(const struct cli_summary *summary);

/* The cause of the last out of memory that surfaced, and its remedy. Nothing if there was none. */
void cli_report_cause(const struct cli_summary *summary);

/* advice.c: one line on how to keep everything on the device. Empty if nothing left it. */
#define CLI_ADVICE 2048
void cli_advice_run(const struct cli_summary *summary, char text[CLI_ADVICE]);

/*
 * usable: within the limit, and beyond the margin or others' memory, whichever is more. surplus:
 * usable minus demand, negative if it lacks.
 */
struct cli_fit_row {
	uint64_t usable, free;
	uint64_t others; /* held by other processes, contexts and code when memory lacked; 0: not known */
	int64_t surplus;
	/* Memory lacked, and the log does not tell what others held: `surplus` is not known. */
	bool unknown;
	bool reserved; /* memory lacked although there is a surplus: device.reserve was short */
};
struct cli_fit_row cli_fit_row(const struct cli_device *device, uint64_t margin);

/* "?" for NULL */
const char *cli_text_of(const struct cli_name *name);

/* Who asked, by the one name that all reports have for it (cli_caller_text). */
struct cli_caller_text cli_report_caller(const struct cli_run_files *files, const struct cli_name *who);

/* -- ranks.c: the ranks of jobs together ------------------------------------------------------ */

/* Prints the ranks that stand out. Nothing if the runs are not ranks. */
void cli_report_ranks(const struct cli_report *report);

/* Writes the same as the member `ranks`; null if the runs are not ranks. */
void cli_report_json_ranks(struct spill_json *json, const struct cli_report *report);

/* -- html.c, page.c: the report and charts over time as one self-contained page --------------- */

/* Most rows of each table, for all runs together. */
#define CLI_PAGE_ROWS ((size_t)2000)

/*
 * Writes the page; "-" is standard output. A file appears complete or not at all: it is written
 * under a temporary name and renamed. False: it failed, and the error was printed.
 */
bool cli_report_html(const struct cli_report *report, const struct cli_stories *stories, const char *path);

/* page.c: writes the page to `out`. The caller checks for errors. */
void cli_report_page(FILE *out, const struct cli_report *report, const struct cli_stories *stories);

/* The page around its data (html/gen_page.py). "": built without the charts' library. */
extern const char cli_page_before[], cli_page_after[];

#endif

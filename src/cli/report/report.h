/*
 * report: `spill report`. What recorded runs did, added up: as text, as JSON, and as one page
 * (report_html.h).
 *
 * It opens no log and adds nothing up itself: figures are those of the trace room's summaries.
 * Its parts never change one.
 *
 * Begin with cli_report in report.c; text.c and json.c have the order of what is shown.
 */
#ifndef SPILL_CLI_REPORT_H
#define SPILL_CLI_REPORT_H

#include "json.h"
#include "summary.h"

struct cli_report {
	struct cli_summaries summaries;
	uint64_t margin; /* what is to stay free of each device */
	size_t rows;     /* of each table in JSON at most so many; 0: all */
	bool unread;     /* something could not be read, or is no record */
};

/* What a report is to be looked at for: an out of memory that surfaced, sums that differ, what could not be read. */
bool cli_report_findings(const struct cli_summary *summary);

/* Of all runs, as if all had their peaks at once. */
struct spill_totals cli_report_sum(const struct cli_report *report);

/* --margin where it is not given */
#define CLI_MARGIN ((uint64_t)1 << 30)

/* text.c, json.c */
void cli_report_text(const struct cli_report *report);
void cli_report_json(const struct cli_report *report);

/* json.c: a member; a name NULL is null. */
void cli_json_name(struct spill_json *json, const char *member, const struct cli_name *name);

/* json.c: the member `fit` of a device whose size is known; else nothing. */
void cli_report_json_fit(struct spill_json *json, const struct cli_device *device, uint64_t margin);

/* The same as an object's members, inside another one. */
void cli_report_members(struct spill_json *json, const struct cli_report *report);

/* text.c: "llama-server (pid 4711, rank 3) on node7, 2026-11-21T03:50:51.123456Z" */
void cli_report_who(const struct cli_summary *summary);

/* text.c: whether anything spilled, how much, where, why; what moved. */
void cli_report_spills(const struct cli_summary *summary);

/* tables.c: each with its heading, nothing if it is empty. */
void cli_report_devices(const struct cli_summary *summary);
void cli_report_fit(const struct cli_summary *summary, uint64_t margin);
void cli_report_views(const struct cli_summary *summary);
void cli_report_largest(const struct cli_summary *summary);
void cli_report_moved(const struct cli_summary *summary);
void cli_report_runs(const struct cli_report *report);

/* oom.c */
void cli_report_ooms(const struct cli_summary *summary);

/* advice.c: what would have kept everything on the device, as one line without its end; empty if everything was. */
#define CLI_ADVICE 1024
void cli_advice_run(const struct cli_summary *summary, char text[CLI_ADVICE]);

/* usable: what device.limit and the margin leave of the device; surplus: what was not wanted of it, or (negative) lacked. */
struct cli_fit_row {
	uint64_t usable, free;
	int64_t surplus;
};
struct cli_fit_row cli_fit_row(const struct cli_device *device, uint64_t margin);

/* How it ended: the word of the exit line; "none" without one: it was killed, has crashed, or still runs. */
const char *cli_report_how(const struct cli_summary *summary);

/* "?" of NULL */
const char *cli_text_of(const struct cli_name *name);

#endif

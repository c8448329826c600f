/* spill report --html: writes the report and charts over time as one self-contained page. */
#ifndef SPILL_CLI_REPORT_HTML_H
#define SPILL_CLI_REPORT_HTML_H

#include <stdio.h>

#include "report.h"
#include "story.h"

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

/* spill report --html: the same figures and what was held over time, as one page that needs nothing else. */
#ifndef SPILL_CLI_REPORT_HTML_H
#define SPILL_CLI_REPORT_HTML_H

#include <stdio.h>

#include "report.h"
#include "story.h"

/* Of each table at most so many rows, of all runs together. */
#define CLI_PAGE_ROWS ((size_t)2000)

/*
 * Writes the page; "-" is standard output. A file is there whole or not at all: it is written beside itself and takes its name
 * when it is complete. False if that was not possible, which is said on stderr.
 */
bool cli_report_html(const struct cli_report *report, const struct cli_stories *stories, const char *path);

/* page.c: the page itself; what is wrong with `out` is left to the caller. */
void cli_report_page(FILE *out, const struct cli_report *report, const struct cli_stories *stories);

/* The page before and behind its data, made at build time (html/gen_page.py); "" where the charts' library was not there. */
extern const char cli_page_before[], cli_page_after[];

#endif

/* The sums of one run, and the events that a test tells. */
#ifndef SPILL_TEST_ONE_SUMMARY_H
#define SPILL_TEST_ONE_SUMMARY_H

#include "cli.h"
#include "names.h"
#include "summary.h"

static struct cli_names names;
static struct cli_summary summary;

static inline int forget(void **state)
{
	struct cli_summaries summaries = {.runs = cli_realloc(NULL, 1, sizeof(summary)), .count = 1};

	cli_live_free(&summary.live);
	cli_names_free(&names);
	*summaries.runs = summary;
	cli_summaries_free(&summaries);
	summary = (struct cli_summary){0};
	return 0;
}

static inline const struct cli_name *name(const char *text)
{
	return cli_names_get(&names, text);
}

static inline void tell(const struct cli_event *event)
{
	cli_summary_event(&summary, &names, event);
}

#endif

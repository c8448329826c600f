/*
 * What a chart tells of recorded runs, beside their sums: for each device what was held over time, and what happened to it; and
 * under which policy. Made in the same pass as the summaries, of their own figures.
 */
#ifndef SPILL_CLI_STORY_H
#define SPILL_CLI_STORY_H

#include "summary.h"
#include "timeline.h"

/* Buckets of one device, and of all devices of all runs together: what comes of it goes into one page. */
#define CLI_STORY_BUCKETS ((size_t)2048)
#define CLI_STORY_BUCKETS_IN_ALL ((size_t)16384)

struct cli_lane {
	int device; /* -1: what is on none */
	struct cli_timeline line;
};

struct cli_setting {
	char *name, *value, *source;
};

struct cli_story {
	struct cli_lane *lanes;
	size_t lane_count, lane_size;
	struct cli_setting *policy;
	unsigned policy_count;
	char **args;
	unsigned arg_count;
	bool args_cut;
	bool left_out;     /* by log.max: */
	uint64_t since_us; /* from then on lines are missing, and charts are less than the whole */
};

struct cli_stories {
	struct cli_summaries *summaries; /* its names are set by who reads the trace; so are theirs */
	struct cli_story *runs;          /* by the summary's number */
	size_t count, size;
};

/* Its data is a struct cli_stories; the summaries are made, too. */
extern const struct cli_trace_visitor cli_story_visitor;

void cli_stories_free(struct cli_stories *stories);

#endif

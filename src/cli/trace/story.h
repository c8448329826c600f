/*
 * The data of charts, beside the summaries: for each device the memory over time and its events,
 * and the run's policy. Made in the same pass as the summaries, from their figures.
 */
#ifndef SPILL_CLI_STORY_H
#define SPILL_CLI_STORY_H

#include "summary.h"
#include "timeline.h"

/* Most buckets of one device, and of all devices of all runs: they go into one page. */
#define CLI_STORY_BUCKETS ((size_t)2048)
#define CLI_STORY_BUCKETS_IN_ALL ((size_t)16384)

struct cli_lane {
	int device; /* -1: memory on no device */
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
	bool incomplete;              /* log.max dropped lines */
	uint64_t incomplete_since_us; /* from then on charts are incomplete */
};

struct cli_stories {
	struct cli_summaries *summaries; /* the reader of the trace sets `names` in them */
	struct cli_story *runs;          /* by number of the summary */
	size_t count, size;
	size_t lane_count, lane_buckets; /* of all finished runs; most buckets of each lane */
};

/* A visitor with a struct cli_stories as its data. It fills the summaries too. */
extern const struct cli_trace_visitor cli_story_visitor;

void cli_stories_free(struct cli_stories *stories);

#endif

/*
 * What was held over time, in one pass and bounded memory, without losing a peak. Events that are near each other share a
 * bucket: its least, its most and its last value are exact, and so is what is counted in it. A bucket is 2^shift microseconds
 * of the clock wide, the narrowest at which all events have room; there is none where nothing happened, so a short run, or
 * one that idles for hours, keeps the time of each event.
 */
#ifndef SPILL_CLI_TIMELINE_H
#define SPILL_CLI_TIMELINE_H

#include "names.h"
#include "record.h"

/* What is marked in a chart. */
#define CLI_MARKS(X) \
	X(SPILL, "spill") \
	X(DEMOTE, "demote") \
	X(PROMOTE, "promote") \
	X(OOM, "oom") \
	X(HONEST, "honest")

enum cli_mark {
#define X(id, name) CLI_MARK_##id,
	// clang-format off
	CLI_MARKS(X)
#undef X
	CLI_MARKS_COUNT
	// clang-format on
};

/* What happened in a bucket, of one kind; who: the largest of it, the first of equal ones. */
struct cli_marked {
	uint64_t count, bytes, largest;
	const struct cli_name *api, *caller, *reason;
};

struct cli_bucket {
	uint64_t first_us, last_us; /* of its first and its last event */
	struct spill_bytes least, most, last;
	struct cli_marked marks[CLI_MARKS_COUNT];
};

/* {.most = N} is an empty one, of at most N buckets (2 or more). */
struct cli_timeline {
	struct cli_bucket *buckets;
	size_t count, size, most;
	unsigned shift;
};

/* Where an event of that time belongs, with what is held from then on. One earlier than the last is taken as of its time. */
struct cli_bucket *cli_timeline_put(struct cli_timeline *timeline, uint64_t time_us,
                                    const struct spill_bytes *held);

/* One more of `one`, or all of them: counts and bytes add up, and the larger one is told. */
void cli_marked_add(struct cli_marked *sum, const struct cli_marked *one);

/* From now on at most so many buckets, 2 or more. */
void cli_timeline_narrow(struct cli_timeline *timeline, size_t most);

void cli_timeline_free(struct cli_timeline *timeline);

#endif

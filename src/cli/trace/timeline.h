/*
 * Held bytes over time, in one pass and bounded memory, without losing a peak. Events close
 * together share a bucket. Its least, most and last values are exact, and so are its counts.
 *
 * A bucket is 2^shift microseconds wide, the narrowest width at which all events fit. Times without
 * events have no bucket, so short or idle runs keep exact times.
 */
#ifndef SPILL_CLI_TIMELINE_H
#define SPILL_CLI_TIMELINE_H

#include "names.h"
#include "record.h"

/* Marks in a chart. */
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

/* Events of one kind in a bucket. The names are those of the first largest one. */
struct cli_marked {
	uint64_t count, bytes, largest;
	const struct cli_name *api, *caller, *reason;
};

struct cli_bucket {
	uint64_t first_us, last_us; /* times of its first and last event */
	struct spill_bytes least, most, last;
	struct cli_marked marks[CLI_MARKS_COUNT];
};

/* {.most = N} is empty, for at most N buckets (2 or more). */
struct cli_timeline {
	struct cli_bucket *buckets;
	size_t count, size, most;
	unsigned shift;
};

/* The bucket for an event, with the bytes held from then on. Time never goes back. */
struct cli_bucket *cli_timeline_put(struct cli_timeline *timeline, uint64_t time_us,
                                    const struct spill_bytes *held);

/* Adds counts and bytes. The names become those of the larger one. */
void cli_marked_add(struct cli_marked *sum, const struct cli_marked *one);

/* Limits the buckets to `most`, 2 or more. */
void cli_timeline_narrow(struct cli_timeline *timeline, size_t most);

void cli_timeline_free(struct cli_timeline *timeline);

#endif

/*
 * The story of a run in three sentences, the same in all reports: how much memory was off the device,
 * how long moves held the program up, and the time that kernels lost by reading memory on the host.
 */
#ifndef SPILL_RUN_STORY_H
#define SPILL_RUN_STORY_H

#include <stdbool.h>

#include "record.h"
#include "text.h"

struct spill_story {
	struct spill_away away;
	uint64_t on_device; /* most bytes at one time on the devices */
	uint64_t run_us;    /* from the first GPU memory call to the end, or until now */
	bool any;           /* some memory was placed off the device, or moved there */
	bool managed;       /* managed memory is a part of it */
	bool at_least;      /* the log lacks a part of it */
	bool foretold;      /* a replay, which predicts places and no times */
	bool follow_off;    /* movable.follow is off, so that nobody sees what kernels read */
};

/* pre: `totals` has .away */
struct spill_story spill_story_of(const struct spill_totals *totals, uint64_t run_us);

/* "host memory", or with managed memory "host or managed memory" */
const char *spill_story_where(const struct spill_story *story);

/*
 * "up to 1.28 GiB was in host memory; at most 1.71 GiB was wanted at once, and at most 1.00 GiB was
 * on the card, at different moments". Or "nothing was in host memory".
 */
void spill_story_size(struct spill_text *text, const struct spill_story *story);

/* "moves held the program up for 0.30 s, 2 % of the 15.0 s". Adds nothing if nothing moved. */
void spill_story_cost(struct spill_text *text, const struct spill_story *story);

/*
 * "kernels lost about 9.8 s, 81 % of the 12.1 s, by reading about 118.00 GiB of it over the link"; or
 * "about 3.2 to 9.8 s", of which the share is that of the larger one, or "at most 9.8 s". Or that this
 * is not known. Adds nothing if they read nothing.
 */
void spill_story_in_place(struct spill_text *text, const struct spill_story *story);

/* All sentences, with "; " between them. */
void spill_story_all(struct spill_text *text, const struct spill_story *story);

/* "15.0 s", or "0.30 s" below a second. */
void spill_story_time(struct spill_text *text, uint64_t us);

#endif

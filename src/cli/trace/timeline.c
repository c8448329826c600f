#include "timeline.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cli.h"
#include "summary.h"

void cli_marked_add(struct cli_marked *sum, const struct cli_marked *one)
{
	if (one->count && (!sum->count || one->largest > sum->largest)) {
		sum->largest = one->largest;
		sum->api = one->api;
		sum->caller = one->caller;
		sum->reason = one->reason;
	}
	sum->count += one->count;
	sum->bytes += one->bytes;
}

static void lower(struct spill_bytes *least, const struct spill_bytes *held)
{
	least->device = held->device < least->device ? held->device : least->device;
	least->host = held->host < least->host ? held->host : least->host;
	least->managed = held->managed < least->managed ? held->managed : least->managed;
}

/* `later` is behind it, and becomes part of it. */
static void join(struct cli_bucket *bucket, const struct cli_bucket *later)
{
	bucket->last_us = later->last_us;
	lower(&bucket->least, &later->least);
	cli_bytes_raise(&bucket->most, &later->most);
	bucket->last = later->last;
	for (unsigned mark = 0; mark < CLI_MARKS_COUNT; mark++)
		cli_marked_add(&bucket->marks[mark], &later->marks[mark]);
}

static bool shared(const struct cli_timeline *timeline, const struct cli_bucket *bucket, uint64_t time_us)
{
	return bucket->first_us >> timeline->shift == time_us >> timeline->shift;
}

/* Ends: at a shift of 63 there are two buckets. */
static void make_room(struct cli_timeline *timeline)
{
	struct cli_bucket *buckets = timeline->buckets;

	while (timeline->count > timeline->most && timeline->shift < 63) {
		size_t kept = 0;

		timeline->shift++;
		for (size_t i = 1; i < timeline->count; i++) {
			if (shared(timeline, &buckets[kept], buckets[i].first_us))
				join(&buckets[kept], &buckets[i]);
			else
				buckets[++kept] = buckets[i];
		}
		timeline->count = kept + 1;
	}
}

struct cli_bucket *cli_timeline_put(struct cli_timeline *timeline, uint64_t time_us,
                                    const struct spill_bytes *held)
{
	struct cli_bucket *last = timeline->count ? &timeline->buckets[timeline->count - 1] : NULL;
	struct cli_bucket event = {.least = *held, .most = *held, .last = *held};

	if (last && time_us < last->last_us)
		time_us = last->last_us;
	event.first_us = event.last_us = time_us;
	if (last && shared(timeline, last, time_us)) {
		join(last, &event);
		return last;
	}
	timeline->buckets =
	    cli_grow(timeline->buckets, timeline->count, &timeline->size, sizeof(event));
	timeline->buckets[timeline->count++] = event;
	make_room(timeline);
	return &timeline->buckets[timeline->count - 1];
}

void cli_timeline_narrow(struct cli_timeline *timeline, size_t most)
{
	timeline->most = most;
	make_room(timeline);
}

void cli_timeline_free(struct cli_timeline *timeline)
{
	free(timeline->buckets);
	timeline->buckets = NULL;
	timeline->count = timeline->size = 0;
}

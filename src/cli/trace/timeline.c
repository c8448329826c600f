#include "timeline.h"

#include <stdbool.h>
#include <stdlib.h>

#include "cli.h"
#include "minmax.h"
#include "summary.h"

void cli_marked_add(struct cli_marked *sum, const struct cli_marked *added)
{
	if (added->count && (!sum->count || added->largest > sum->largest)) {
		sum->largest = added->largest;
		sum->api = added->api;
		sum->caller = added->caller;
		sum->reason = added->reason;
	}
	sum->count += added->count;
	sum->bytes += added->bytes;
}

static void lower_to(struct spill_bytes *least, const struct spill_bytes *held)
{
	least->device = spill_min(least->device, held->device);
	least->host = spill_min(least->host, held->host);
	least->managed = spill_min(least->managed, held->managed);
}

static void merge_bucket(struct cli_bucket *bucket, const struct cli_bucket *later)
{
	bucket->last_us = later->last_us;
	lower_to(&bucket->least, &later->least);
	cli_bytes_raise(&bucket->most, &later->most);
	bucket->last = later->last;
	for (unsigned mark = 0; mark < CLI_MARKS_COUNT; mark++)
		cli_marked_add(&bucket->marks[mark], &later->marks[mark]);
}

static bool is_in_bucket(const struct cli_timeline *timeline, const struct cli_bucket *bucket,
                         uint64_t time_us)
{
	return bucket->first_us >> timeline->shift == time_us >> timeline->shift;
}

/* Terminates: at a shift of 63 two buckets remain. */
static void halve_until_fits(struct cli_timeline *timeline)
{
	struct cli_bucket *buckets = timeline->buckets;

	while (timeline->count > timeline->most && timeline->shift < 63) {
		size_t kept = 0;

		timeline->shift++;
		for (size_t i = 1; i < timeline->count; i++) {
			if (is_in_bucket(timeline, &buckets[kept], buckets[i].first_us))
				merge_bucket(&buckets[kept], &buckets[i]);
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
	if (last && is_in_bucket(timeline, last, time_us)) {
		merge_bucket(last, &event);
		return last;
	}
	timeline->buckets = cli_grow(timeline->buckets, timeline->count, &timeline->size, sizeof(event));
	timeline->buckets[timeline->count++] = event;
	halve_until_fits(timeline);
	return &timeline->buckets[timeline->count - 1];
}

void cli_timeline_narrow(struct cli_timeline *timeline, size_t most)
{
	timeline->most = most;
	halve_until_fits(timeline);
}

void cli_timeline_free(struct cli_timeline *timeline)
{
	free(timeline->buckets);
	timeline->buckets = NULL;
	timeline->count = timeline->size = 0;
}

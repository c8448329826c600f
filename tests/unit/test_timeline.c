/* What is kept of a run over time, against all that happened: buckets, extremes and counts are worked out a second time. */
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "timeline.h"
#include "roll.h"

#define EVENTS 3000

struct happened {
	uint64_t time_us;
	struct spill_bytes held;
	int mark; /* -1: none */
	uint64_t bytes;
};

static struct happened events[EVENTS];
static size_t count;

/* Bursts and long silences, and now and then a line that is late. */
static void make_events(size_t most, uint64_t step)
{
	uint64_t now = roll(1000);

	for (count = 0; count < most; count++) {
		struct happened *event = &events[count];

		now += roll(10) ? roll(step) : roll(1000 * step + 1);
		event->time_us = roll(50) || now < step ? now : now - step;
		event->held = (struct spill_bytes){roll(1000), roll(3) ? 0 : roll(1000), roll(7)};
		event->mark = roll(4) ? -1 : (int)roll(CLI_MARKS_COUNT);
		event->bytes = roll(100);
	}
}

static void play(struct cli_timeline *timeline)
{
	for (size_t i = 0; i < count; i++) {
		struct cli_bucket *bucket = cli_timeline_put(timeline, events[i].time_us, &events[i].held);
		struct cli_marked one = {.count = 1, .bytes = events[i].bytes, .largest = events[i].bytes};

		if (events[i].mark >= 0)
			cli_marked_add(&bucket->marks[events[i].mark], &one);
	}
}

/* No event is before the one that was told before it. */
static void put_in_order(void)
{
	for (size_t i = 1; i < count; i++) {
		if (events[i].time_us < events[i - 1].time_us)
			events[i].time_us = events[i - 1].time_us;
	}
}

static size_t buckets_at(unsigned shift)
{
	size_t buckets = count ? 1 : 0;

	for (size_t i = 1; i < count; i++)
		buckets += events[i].time_us >> shift != events[i - 1].time_us >> shift;
	return buckets;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t most(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The bucket of the events from `at` on; how many they are. */
static size_t check_bucket(const struct cli_bucket *bucket, size_t at, unsigned shift)
{
	struct spill_bytes low = events[at].held, high = low;
	struct cli_marked marks[CLI_MARKS_COUNT] = {0};
	size_t end = at;

	for (; end < count && events[end].time_us >> shift == events[at].time_us >> shift; end++) {
		const struct happened *event = &events[end];

		low = (struct spill_bytes){least(low.device, event->held.device),
		                           least(low.host, event->held.host),
		                           least(low.managed, event->held.managed)};
		high = (struct spill_bytes){most(high.device, event->held.device),
		                            most(high.host, event->held.host),
		                            most(high.managed, event->held.managed)};
		if (event->mark < 0)
			continue;
		marks[event->mark].count++;
		marks[event->mark].bytes += event->bytes;
		marks[event->mark].largest = most(marks[event->mark].largest, event->bytes);
	}
	assert_int_equal(bucket->first_us, events[at].time_us);
	assert_int_equal(bucket->last_us, events[end - 1].time_us);
	assert_memory_equal(&bucket->least, &low, sizeof(low));
	assert_memory_equal(&bucket->most, &high, sizeof(high));
	assert_memory_equal(&bucket->last, &events[end - 1].held, sizeof(low));
	assert_memory_equal(bucket->marks, marks, sizeof(marks));
	return end - at;
}

/* The narrowest buckets that have room, and each exactly what happened in it. pre: put_in_order */
static void check(const struct cli_timeline *timeline, size_t room)
{
	unsigned shift = 0;
	size_t at = 0;

	while (buckets_at(shift) > room)
		shift++;
	assert_int_equal(timeline->shift, shift);
	assert_int_equal(timeline->count, buckets_at(shift));
	for (size_t i = 0; i < timeline->count; i++)
		at += check_bucket(&timeline->buckets[i], at, shift);
	assert_int_equal(at, count);
}

TEST(random_traces)
{
	static const uint64_t steps[] = {1, 2, 50, 1000, 1000000};

	for (unsigned i = 0; i < 200; i++) {
		struct cli_timeline timeline = {.most = 2 + roll(300)};

		make_events(roll(EVENTS), steps[i % 5]);
		play(&timeline);
		put_in_order();
		check(&timeline, timeline.most);
		cli_timeline_narrow(&timeline, 2 + roll(timeline.most));
		check(&timeline, timeline.most);
		cli_timeline_free(&timeline);
	}
}

TEST(a_short_run_keeps_each_moment)
{
	struct cli_timeline timeline = {.most = 100};

	for (uint64_t i = 0; i < 100; i++)
		cli_timeline_put(&timeline, i * UINT64_C(3600000000), &(struct spill_bytes){i, 0, 0});
	assert_int_equal(timeline.shift, 0);
	assert_int_equal(timeline.count, 100);
	assert_int_equal(timeline.buckets[99].first_us, 99 * UINT64_C(3600000000));
	cli_timeline_free(&timeline);
}

TEST(times_of_all_sizes)
{
	struct cli_timeline timeline = {.most = 2};

	for (unsigned bit = 0; bit < 64; bit++)
		cli_timeline_put(&timeline, UINT64_C(1) << bit, &(struct spill_bytes){bit, 0, 0});
	assert_int_equal(timeline.count, 2);
	assert_int_equal(timeline.buckets[0].most.device, 62);
	assert_int_equal(timeline.buckets[1].last_us, UINT64_C(1) << 63);
	/* Wider ones there are not. */
	cli_timeline_narrow(&timeline, 1);
	assert_int_equal(timeline.count, 2);
	assert_int_equal(timeline.shift, 63);
	cli_timeline_free(&timeline);
}

TEST(the_largest_is_told)
{
	struct cli_name *name[3];
	struct cli_marked sum = {0};
	static const uint64_t sizes[] = {5, 9, 9};

	for (unsigned i = 0; i < 3; i++) {
		name[i] = calloc(1, sizeof(struct cli_name) + 1);
		cli_marked_add(&sum, &(struct cli_marked){1, sizes[i], sizes[i], NULL, name[i], NULL});
	}
	cli_marked_add(&sum, &(struct cli_marked){0});
	assert_int_equal(sum.count, 3);
	assert_int_equal(sum.bytes, 23);
	assert_int_equal(sum.largest, 9);
	assert_ptr_equal(sum.caller, name[1]);
	for (unsigned i = 0; i < 3; i++)
		free(name[i]);
}

#include "story.h"

#include <stdlib.h>
#include <string.h>

#include "cli.h"

static struct cli_story *story_of(const struct cli_stories *stories)
{
	return &stories->runs[stories->count - 1];
}

static struct cli_summary *summary_of(const struct cli_stories *stories)
{
	return &stories->summaries->runs[stories->count - 1];
}

static void copy_policy(struct cli_story *story, const struct spill_record_start *start)
{
	story->policy = cli_realloc(NULL, start->option_count, sizeof(*story->policy));
	for (unsigned i = 0; i < start->option_count; i++)
		story->policy[story->policy_count++] = (struct cli_setting){
		    cli_strdup(start->policy[i].name), cli_strdup(start->policy[i].value),
		    cli_strdup(start->policy[i].source)};
	story->args = cli_realloc(NULL, start->arg_count, sizeof(*story->args));
	for (unsigned i = 0; i < start->arg_count; i++)
		story->args[story->arg_count++] = cli_strdup(start->args[i]);
	story->args_cut = start->cut;
}

static void begin_story(void *data, const char *path, unsigned long line,
                        const struct spill_record_start *start)
{
	struct cli_stories *stories = data;

	cli_summary_visitor.begin(stories->summaries, path, line, start);
	stories->runs = cli_grow(stories->runs, stories->count, &stories->size, sizeof(*stories->runs));
	stories->runs[stories->count++] = (struct cli_story){0};
	if (start)
		copy_policy(story_of(stories), start);
}

static struct cli_lane *lane_of(struct cli_story *story, int device)
{
	for (size_t i = 0; i < story->lane_count; i++) {
		if (story->lanes[i].device == device)
			return &story->lanes[i];
	}
	story->lanes = cli_grow(story->lanes, story->lane_count, &story->lane_size, sizeof(*story->lanes));
	story->lanes[story->lane_count] = (struct cli_lane){device, {.most = CLI_STORY_BUCKETS}};
	return &story->lanes[story->lane_count++];
}

static struct spill_bytes held_in(const struct cli_lane *lane)
{
	const struct cli_timeline *line = &lane->line;

	return line->count ? line->buckets[line->count - 1].last : (struct spill_bytes){0};
}

/* Adds what the event changed on each device: memory stays on the device where it was allocated. */
static void add_changes(struct cli_story *story, const struct cli_summary *summary, uint64_t time_us)
{
	for (size_t i = 0; i < summary->device_count; i++) {
		const struct cli_device *device = &summary->devices[i];
		struct cli_lane *lane = lane_of(story, device->device);
		struct spill_bytes before = held_in(lane), held = cli_device_held(device);

		if (memcmp(&before, &held, sizeof(held)))
			cli_timeline_put(&lane->line, time_us, &held);
	}
}

/* Events without a line may have had a peak since the line before. */
static void add_peak(struct cli_story *story, const struct cli_event *event)
{
	struct cli_lane *lane;
	struct spill_bytes held;

	if (!event->level.all_peak)
		return;
	lane = lane_of(story, event->device);
	held = held_in(lane);
	held.device = event->level.device_peak;
	cli_timeline_put(&lane->line, event->time_us, &held);
}

/* The event's mark in the chart, and its bytes. False: no mark. */
static bool mark_of(const struct cli_event *event, const struct spill_totals *before,
                    const struct spill_totals *now, enum cli_mark *mark, uint64_t *bytes)
{
	*bytes = event->bytes;
	switch (event->kind) {
	case CLI_EVENT_ALLOC:
		*mark = CLI_MARK_SPILL;
		*bytes =
		    now->spilled.host + now->spilled.managed - before->spilled.host - before->spilled.managed;
		return now->spills != before->spills;
	case CLI_EVENT_DEMOTE:
		*mark = CLI_MARK_DEMOTE;
		return true;
	case CLI_EVENT_PROMOTE:
		*mark = CLI_MARK_PROMOTE;
		return true;
	case CLI_EVENT_OOM:
		*mark = cli_oom_is_honest(event) ? CLI_MARK_HONEST : CLI_MARK_OOM;
		return true;
	case CLI_EVENT_FREE:
	case CLI_EVENT_SUM:
		return false;
	}
	return false;
}

static void add_event(void *data, const struct cli_event *event)
{
	struct cli_stories *stories = data;
	struct cli_story *story = story_of(stories);
	struct cli_summary *summary = summary_of(stories);
	struct spill_totals before = summary->totals;
	struct cli_marked marked = {1, 0, 0, event->api, event->who, event->reason};
	enum cli_mark mark;

	cli_summary_visitor.event(stories->summaries, event);
	if (summary->exited)
		return;
	add_peak(story, event);
	add_changes(story, summary, event->time_us);
	if (!mark_of(event, &before, &summary->totals, &mark, &marked.bytes))
		return;
	marked.largest = marked.bytes;
	struct cli_lane *lane = lane_of(story, event->device);
	struct spill_bytes held = held_in(lane);

	cli_marked_add(&cli_timeline_put(&lane->line, event->time_us, &held)->marks[mark], &marked);
}

static void add_record(void *data, const struct spill_record *record)
{
	struct cli_stories *stories = data;
	struct cli_story *story = story_of(stories);

	cli_summary_visitor.record(stories->summaries, record);
	if (story->incomplete)
		return;
	story->incomplete =
	    record->kind == SPILL_KIND_DROP ||
	    (record->kind == SPILL_KIND_NOTE && record->note.code && !strcmp(record->note.code, "log-max"));
	story->incomplete_since_us = record->time_us;
}

/* Limits the buckets of all runs to a page's size, with an equal share for each device. */
static void share_buckets(struct cli_stories *stories)
{
	struct cli_story *last = story_of(stories);
	size_t each, first;

	stories->lane_count += last->lane_count;
	each = CLI_STORY_BUCKETS_IN_ALL / (stories->lane_count ? stories->lane_count : 1);
	each = each < 16 ? 16 : each > CLI_STORY_BUCKETS ? CLI_STORY_BUCKETS : each;
	/* Where the share did not change, earlier runs have it. */
	first = each == stories->lane_buckets ? stories->count - 1 : 0;
	stories->lane_buckets = each;
	for (size_t run = first; run < stories->count; run++) {
		for (size_t lane = 0; lane < stories->runs[run].lane_count; lane++)
			cli_timeline_narrow(&stories->runs[run].lanes[lane].line, each);
	}
}

static void finish_story(void *data, const struct cli_trace_end *end)
{
	struct cli_stories *stories = data;

	cli_summary_visitor.end(stories->summaries, end);
	share_buckets(stories);
}

const struct cli_trace_visitor cli_story_visitor = {begin_story, add_event, add_record, finish_story};

static void free_story(struct cli_story *story)
{
	for (size_t i = 0; i < story->lane_count; i++)
		cli_timeline_free(&story->lanes[i].line);
	free(story->lanes);
	for (unsigned i = 0; i < story->policy_count; i++) {
		free(story->policy[i].name);
		free(story->policy[i].value);
		free(story->policy[i].source);
	}
	free(story->policy);
	for (unsigned i = 0; i < story->arg_count; i++)
		free(story->args[i]);
	free(story->args);
}

void cli_stories_free(struct cli_stories *stories)
{
	for (size_t i = 0; i < stories->count; i++)
		free_story(&stories->runs[i]);
	free(stories->runs);
	*stories = (struct cli_stories){.summaries = stories->summaries};
}

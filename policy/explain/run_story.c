#include "run_story.h"

struct spill_story spill_story_of(const struct spill_totals *totals, uint64_t run_us)
{
	return (struct spill_story){
	    .away = totals->away,
	    .on_device = totals->peak.device,
	    .run_us = run_us,
	    .any = totals->spills || totals->demotions,
	    .managed = totals->spilled.managed != 0,
	};
}

/* True if the peaks are of different moments: nobody must add them up. */
static bool came_apart(const struct spill_story *story)
{
	return story->away.peak + story->on_device != story->away.wanted;
}

const char *spill_story_where(const struct spill_story *story)
{
	return story->managed ? "host or managed memory" : "host memory";
}

void spill_story_size(struct spill_text *text, const struct spill_story *story)
{
	const char *where = spill_story_where(story);
	const char *most = story->at_least ? "at least" : "at most";

	if (!story->any || (!story->away.peak && !story->at_least)) {
		spill_text_format(text, "nothing was in %s", where);
		return;
	}
	if (!story->away.peak) {
		spill_text_format(text, "memory was in %s, and the log does not tell how much at once",
		                  where);
		return;
	}
	spill_text_format(text, "%s %s was in %s; %s %s was wanted at once, and %s %s was on the card%s",
	                  story->at_least ? most : "up to", spill_size(story->away.peak).text, where, most,
	                  spill_size(story->away.wanted).text, most, spill_size(story->on_device).text,
	                  came_apart(story) ? ", at different moments" : "");
}

/* "0.30 s", rounded to hundredths; "less than 0.01 s". */
static void add_seconds(struct spill_text *text, uint64_t us)
{
	uint64_t hundredths = us / 10000 + (us % 10000 >= 5000);

	if (!hundredths) {
		spill_text_add(text, "less than 0.01 s");
		return;
	}
	spill_text_number(text, hundredths / 100);
	spill_text_add(text, hundredths % 100 < 10 ? ".0" : ".");
	spill_text_number(text, hundredths % 100);
	spill_text_add(text, " s");
}

void spill_story_time(struct spill_text *text, uint64_t us)
{
	uint64_t tenths = us / 100000 + (us % 100000 >= 50000);

	if (us < 1000000) {
		add_seconds(text, us);
		return;
	}
	spill_text_format(text, "%llu.%llu s", (unsigned long long)(tenths / 10),
	                  (unsigned long long)(tenths % 10));
}

/*
 * ", 2 % of the 15.0 s", rounded. Nothing for a run that was too short to tell. pre: both are below
 * 5000 years, so that nothing overflows
 */
static void add_share(struct spill_text *text, uint64_t us, uint64_t run_us)
{
	uint64_t percent = run_us ? (us * 100 + run_us / 2) / run_us : 0;

	if (run_us < 5000 || us > run_us)
		return;
	if (percent)
		spill_text_format(text, ", %llu %% of the ", (unsigned long long)percent);
	else
		spill_text_add(text, ", less than 1 % of the ");
	spill_story_time(text, run_us);
}

void spill_story_cost(struct spill_text *text, const struct spill_story *story)
{
	if (!story->away.moves_us)
		return;
	spill_text_add(text, "moves held the program up for ");
	if (story->at_least)
		spill_text_add(text, "at least ");
	add_seconds(text, story->away.moves_us);
	add_share(text, story->away.moves_us, story->run_us);
}

void spill_story_both(struct spill_text *text, const struct spill_story *story)
{
	spill_story_size(text, story);
	if (story->away.moves_us)
		spill_text_add(text, "; ");
	spill_story_cost(text, story);
}

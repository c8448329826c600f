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

void spill_story_size(struct spill_text *text, const struct spill_story *story)
{
	const char *where = story->managed ? "host or managed memory" : "host memory";

	if (!story->any || (!story->away.peak && !story->at_least)) {
		spill_text_format(text, "nothing was in %s", where);
		return;
	}
	if (!story->away.peak) {
		spill_text_format(text, "memory was in %s, and the log does not tell how much at once",
		                  where);
		return;
	}
	spill_text_format(text, "%s %s was in %s (%s wanted, %s on the card)",
	                  story->at_least ? "at least" : "up to", spill_size(story->away.peak).text, where,
	                  spill_size(story->away.wanted).text, spill_size(story->on_device).text);
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

/* ", 2 %", rounded. pre: both are below 5000 years, so that nothing overflows */
static void add_share(struct spill_text *text, uint64_t us, uint64_t run_us)
{
	uint64_t percent = run_us ? (us * 100 + run_us / 2) / run_us : 0;

	if (!run_us || us > run_us)
		return;
	if (percent)
		spill_text_format(text, ", %llu %%", (unsigned long long)percent);
	else
		spill_text_add(text, ", less than 1 %");
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

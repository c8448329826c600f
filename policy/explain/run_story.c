#include "run_story.h"

#include "minmax.h"

/* A run that was too short to tell shares of it. */
#define SHORT_US 5000

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

/* Less has no figure: it rounds to no hundredth of a second. */
#define LEAST_US 5000

/* "0.30 s", rounded to hundredths; "less than 0.01 s". */
static void add_seconds(struct spill_text *text, uint64_t us)
{
	uint64_t hundredths = us / 10000 + (us % 10000 >= 5000);

	if (us < LEAST_US) {
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

	if (run_us < SHORT_US || us > run_us)
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

/* Bytes off the device whose use nobody saw. A small rest is rounding. */
static uint64_t unseen_bytes(const struct spill_away *away)
{
	uint64_t rest = spill_minus(away->peak, away->in_place.followed);

	return rest > away->peak / 16 ? rest : 0;
}

/*
 * "about 9.8 s", "about 3.2 to 9.8 s", "at most 9.8 s": by how far the figures are apart. "less than
 * 0.01 s".
 */
static void add_range(struct spill_text *text, uint64_t us, uint64_t most_us)
{
	bool low = us < most_us / 4 || us < LEAST_US;

	if (most_us >= LEAST_US)
		spill_text_add(text, low ? "at most " : "about ");
	if (!low && us < most_us - most_us / 5) {
		spill_story_time(text, us);
		spill_text_add(text, " to ");
	}
	spill_story_time(text, most_us);
}

/* "kernels lost about 9.8 s, 81 % of the 12.1 s, by reading about 118.00 GiB of it over the link" */
static void add_lost(struct spill_text *text, const struct spill_story *story)
{
	const struct spill_in_place *in_place = &story->away.in_place;
	/* The program stood still during moves, so kernels cannot have lost that time, too. */
	uint64_t room_us = story->run_us ? spill_minus(story->run_us, story->away.moves_us) : UINT64_MAX;
	uint64_t most_us = spill_min(in_place->most_us, room_us), share;

	spill_text_add(text, "kernels lost ");
	add_range(text, spill_min(in_place->us, most_us), most_us);
	share = text->length;
	add_share(text, most_us, story->run_us);
	spill_text_format(text, "%s by reading about %s of it over the link", text->length > share ? "," : "",
	                  spill_size(in_place->bytes).text);
}

/* "the time that kernels lost by reading it there is not known" */
static void add_unknown(struct spill_text *text, const struct spill_story *story, uint64_t unseen)
{
	const struct spill_in_place *in_place = &story->away.in_place;

	spill_text_add(text, "the time that kernels lost by reading ");
	if (in_place->bytes)
		spill_text_format(text, "about %s of it over the link", spill_size(in_place->bytes).text);
	else if (unseen == story->away.peak)
		spill_text_add(text, "it there");
	else
		spill_text_format(text, "%s of it there", spill_size(unseen).text);
	spill_text_add(text, " is not known");
	if (story->follow_off)
		spill_text_add(text, " (movable.follow = off)");
}

void spill_story_in_place(struct spill_text *text, const struct spill_story *story)
{
	const struct spill_in_place *in_place = &story->away.in_place;
	uint64_t unseen = unseen_bytes(&story->away);

	if (!story->any || story->foretold)
		return;
	if (in_place->most_us) {
		add_lost(text, story);
		if (unseen)
			spill_text_format(text, " (nothing is known of %s more)", spill_size(unseen).text);
	} else if (in_place->bytes || unseen) {
		add_unknown(text, story, unseen);
	}
}

void spill_story_all(struct spill_text *text, const struct spill_story *story)
{
	static void (*const sentences[])(struct spill_text * text, const struct spill_story *story) = {
	    spill_story_size, spill_story_cost, spill_story_in_place};

	for (unsigned i = 0; i < sizeof(sentences) / sizeof(sentences[0]); i++) {
		size_t before = text->length, begin;

		spill_text_add(text, i ? "; " : "");
		begin = text->length;
		sentences[i](text, story);
		if (text->length == begin && text->length < text->size - 1) {
			text->length = before;
			text->buffer[before] = '\0';
		}
	}
}

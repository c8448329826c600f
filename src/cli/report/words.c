/* Sentences that the text, JSON and the page have in common. */
#include <stdio.h>

#include "put.h"
#include "report.h"

void cli_report_shortage(struct spill_text *text, const struct cli_shortage *shortage)
{
	if (!shortage->bytes) {
		spill_text_add(text, "the log does not tell what was free");
		return;
	}
	spill_text_format(text, "%s needed by this program", spill_size(shortage->demand).text);
	if (shortage->refused)
		spill_text_format(text, " (%s of it refused)", spill_size(shortage->refused).text);
	spill_text_format(text, "; %s " SPILL_HELD_BY_OTHERS "; %s free of %s, at ",
	                  spill_size(shortage->others).text, spill_size(shortage->free).text,
	                  spill_size(shortage->bytes).text);
	spill_story_time(text, shortage->time_us);
}

void cli_report_refusals(struct spill_text *text, const struct cli_summary *summary)
{
	unsigned long long final = summary->ooms.count, once = summary->ooms.honest;

	if (!final && !once)
		spill_text_add(text, "none");
	else if (final && !once)
		spill_text_format(text, "%llu request%s refused", final, final == 1 ? " was" : "s were");
	else if (final)
		spill_text_format(text, "%llu %s final; ", final, final == 1 ? "was" : "were");
	else
		spill_text_add(text, "none was final; ");
	if (once)
		spill_text_format(text,
		                  "%llu request%s refused once on purpose, so that the program frees its "
		                  "cache and asks again",
		                  once, once == 1 ? " was" : "s were");
}

/* ", is a move of 32.00 MiB back to the card". Nothing if the last line is of another kind. */
static void add_last_event(struct spill_text *text, const struct cli_summary *summary)
{
	static const char *const events[][2] = {
	    [CLI_EVENT_ALLOC] = {"an allocation", ""},
	    [CLI_EVENT_FREE] = {"a free", ""},
	    [CLI_EVENT_DEMOTE] = {"a move", " to the host"},
	    [CLI_EVENT_PROMOTE] = {"a move", " back to the card"},
	    [CLI_EVENT_OOM] = {"an out of memory", ""},
	};
	const struct cli_last_event *last = &summary->last;

	if (last->bytes && last->time_us == summary->ended_us && last->kind != CLI_EVENT_SUM)
		spill_text_format(text, ", is %s of %s%s", events[last->kind][0],
		                  spill_size(last->bytes).text, events[last->kind][1]);
}

/* By the exit line's word: the function that ended the process. */
static const char *end_of(const struct cli_name *how)
{
	if (cli_name_is(how, "abort"))
		return "by abort()";
	if (cli_name_is(how, "assert"))
		return "by a failed assertion";
	return "by itself";
}

const char *cli_report_ending(const struct cli_summary *summary)
{
	static const char *const words[] = {
	    [CLI_LIFE_UNKNOWN] = "not known", [CLI_LIFE_RUNS] = "runs", [CLI_LIFE_GONE] = "gone"};

	return summary->exited ? cli_text_of(summary->how) : words[summary->life];
}

void cli_report_end(struct spill_text *text, const struct cli_summary *summary)
{
	if (summary->exited) {
		spill_text_format(text, "%s after ", end_of(summary->how));
		spill_story_time(text, summary->run_us);
		spill_text_add(text, " (the log does not know the exit code)");
		return;
	}
	spill_text_format(text, "no exit line: %s; the figures cover its lines; the last one, at %s s",
	                  cli_life_words(summary->life), cli_seconds(summary->ended_us).text);
	add_last_event(text, summary);
	if (summary->end.cut)
		spill_text_add(text, "; a cut line follows");
}

void cli_report_log(const struct cli_summary *summary)
{
	cli_printf("%s", summary->path);
	if (summary->line > 1)
		cli_printf(":%lu", summary->line);
}

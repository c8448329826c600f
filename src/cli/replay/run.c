/* Decides a run again. Gives events to its summary, and compares with the recorded places. */
#include <stdlib.h>
#include <string.h>

#include "replay.h"
#include "cli.h"

struct deciding {
	struct cli_replay_run *run;
	struct cli_summary *summary;
	struct cli_names *names;
	struct cli_whereabouts *now; /* by allocation */
	const char **rules;          /* the deciding rules */
	/* The last names of a rule and of a reason, which mostly repeat. */
	struct {
		const char *word;
		const struct cli_name *name;
	} known[2];
	uint64_t now_us;
};

static const struct cli_name *name_of(struct deciding *deciding, unsigned which, const char *word)
{
	if (deciding->known[which].word != word) {
		deciding->known[which].word = word;
		deciding->known[which].name = cli_names_get(deciding->names, word);
	}
	return deciding->known[which].name;
}

/* A recorded out of memory has no seq. This gives it a unique one. */
static uint64_t seq_of(const struct cli_recorded_alloc *alloc, uint32_t allocation)
{
	return alloc->seq ? alloc->seq : UINT64_MAX - allocation;
}

static struct cli_event event_of(struct deciding *deciding, const struct cli_ask *ask,
                                 enum cli_event_kind kind)
{
	const struct cli_recording *recording = deciding->run->recording;
	const struct cli_recorded_alloc *alloc = &recording->allocs[ask->allocation];

	return (struct cli_event){
	    .kind = kind,
	    .device = ask->device,
	    .time_us = ask->time_us,
	    .seq = seq_of(alloc, ask->allocation),
	    .bytes = alloc->bytes,
	    .api = recording->sites[alloc->site].api,
	    .caller = recording->sites[alloc->site].caller,
	    .who = alloc->who,
	};
}

static void add_served(struct deciding *deciding, const struct cli_ask *ask, const struct cli_answer *answer)
{
	struct cli_event event = event_of(deciding, ask, CLI_EVENT_ALLOC);

	event.place = answer->place;
	event.held = answer->held;
	event.rule = name_of(deciding, 0, answer->rule);
	event.reason = name_of(deciding, 1, answer->reason);
	cli_summary_event(deciding->summary, deciding->names, &event);
	deciding->now[ask->allocation] =
	    (struct cli_whereabouts){answer->held.host + answer->held.managed, cli_where_of(answer->place)};
	if (ask->kind == CLI_ASK_ALLOC)
		return;
	event.kind = CLI_EVENT_FREE;
	cli_summary_event(deciding->summary, deciding->names, &event);
	deciding->run->now_served++;
}

static void add_refused(struct deciding *deciding, const struct cli_ask *ask, const struct cli_answer *answer)
{
	struct cli_event event = event_of(deciding, ask, CLI_EVENT_OOM);
	struct cli_replay_run *run = deciding->run;

	event.rule = cli_names_get(deciding->names, answer->rule);
	event.reason = cli_names_get(deciding->names, answer->refused_by);
	deciding->summary->totals.ooms++;
	cli_summary_event(deciding->summary, deciding->names, &event);
	deciding->now[ask->allocation] = (struct cli_whereabouts){0, CLI_WHERE_NOWHERE};
	run->newly_refused += ask->kind == CLI_ASK_ALLOC;
	if (run->refused++)
		return;
	run->first = (struct cli_replay_refused){
	    .time_us = ask->time_us,
	    .bytes = ask->bytes,
	    .device = ask->device,
	    .live = deciding->summary->totals.live,
	    .api = event.api,
	    .who = event.who,
	    .rule = event.rule,
	    .refused_by = event.reason,
	};
}

static void add_move(void *data, const struct cli_model_slot *slot, bool demoted, uint64_t bytes,
                     const char *reason)
{
	struct deciding *deciding = data;
	const struct cli_recorded_alloc *alloc = &deciding->run->recording->allocs[slot->allocation];
	struct cli_whereabouts *now = &deciding->now[slot->allocation];
	struct cli_event event = {
	    .kind = demoted ? CLI_EVENT_DEMOTE : CLI_EVENT_PROMOTE,
	    .device = slot->device,
	    .place = SPILL_PLACES,
	    .time_us = deciding->now_us,
	    .seq = seq_of(alloc, slot->allocation),
	    .bytes = bytes,
	    .held = slot->held,
	    .reason = cli_names_get(deciding->names, reason),
	};

	cli_summary_event(deciding->summary, deciding->names, &event);
	if (now->where == CLI_WHERE_DEVICE)
		now->where = CLI_WHERE_LEFT;
	if (now->away < slot->held.host)
		now->away = slot->held.host;
}

static void decide_request(struct deciding *deciding, struct cli_model *model, const struct cli_ask *ask)
{
	struct cli_answer answer;
	struct cli_event event;

	deciding->now_us = ask->time_us;
	answer = cli_model_take(model, ask);
	if (ask->kind == CLI_ASK_FREE) {
		event = event_of(deciding, ask, CLI_EVENT_FREE);
		if (deciding->now[ask->allocation].where != CLI_WHERE_NOWHERE)
			cli_summary_event(deciding->summary, deciding->names, &event);
		return;
	}
	deciding->rules[ask->allocation] = answer.rule;
	if (answer.served) {
		add_served(deciding, ask, &answer);
		cli_model_settle(model, ask);
	} else {
		add_refused(deciding, ask, &answer);
	}
}

static void count_elsewhere(struct cli_table *table, const struct cli_name *name, uint64_t bytes,
                            uint64_t away)
{
	unsigned index = cli_table_row(table, name);

	table->rows[index].count++;
	table->rows[index].bytes += bytes;
	table->rows[index].peak += bytes; /* tables are sorted by it */
	table->rows[index].spilled += away;
}

static void list_elsewhere(struct deciding *deciding, size_t allocation)
{
	struct cli_replay_run *run = deciding->run;
	const struct cli_recorded_alloc *alloc = &run->recording->allocs[allocation];

	if (!run->lists)
		return;
	run->list = cli_grow(run->list, run->listed, &run->list_size, sizeof(*run->list));
	run->list[run->listed++] = (struct cli_replay_row){
	    .seq = alloc->seq,
	    .bytes = alloc->bytes,
	    .was = alloc->was,
	    .now = deciding->now[allocation],
	    .who = alloc->who,
	    .rule = name_of(deciding, 0, deciding->rules[allocation]),
	};
}

static void compare_placements(struct deciding *deciding)
{
	struct cli_replay_run *run = deciding->run;
	const struct cli_recording *recording = run->recording;

	for (size_t i = 0; i < recording->alloc_count; i++) {
		const struct cli_recorded_alloc *alloc = &recording->allocs[i];
		const struct cli_whereabouts *now = &deciding->now[i];
		struct cli_replay_sum *way = &run->ways[alloc->was.where][now->where];

		if (alloc->was.where == now->where && alloc->was.away == now->away)
			continue;
		list_elsewhere(deciding, i);
		way->count++;
		way->bytes += alloc->bytes;
		run->elsewhere.count++;
		run->elsewhere.bytes += alloc->bytes;
		count_elsewhere(&run->by_caller, alloc->who, alloc->bytes, now->away);
		count_elsewhere(&run->by_rule, name_of(deciding, 0, deciding->rules[i]), alloc->bytes,
		                now->away);
	}
	cli_table_sort(&run->by_caller);
	cli_table_sort(&run->by_rule);
}

void cli_replay_decide(struct cli_replay_run *run, struct cli_summary *summary, struct cli_names *names)
{
	const struct cli_recording *recording = run->recording;
	struct deciding deciding = {.run = run, .summary = summary, .names = names};
	struct cli_model model;

	deciding.now = cli_realloc(NULL, recording->alloc_count, sizeof(*deciding.now));
	deciding.rules = cli_realloc(NULL, recording->alloc_count, sizeof(*deciding.rules));
	cli_model_begin(&model, &run->setting, recording->slots);
	model.moved = add_move;
	model.data = &deciding;
	for (size_t i = 0; i < recording->ask_count; i++)
		decide_request(&deciding, &model, &recording->asks[i]);
	run->honest = model.honest;
	compare_placements(&deciding);
	cli_model_free(&model);
	free(deciding.now);
	free(deciding.rules);
}

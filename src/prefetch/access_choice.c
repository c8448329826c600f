#include "access_choice.h"

#include "access_model_state.h"
#include "clock.h"
#include "minmax.h"
#include "placement_swap.h"

/* Smaller exchanges do not tell the cost of a move. */
#define MEASURED_BYTES (32ull << 20)
/*
 * An exchange that takes longer counts as so many times the usual cost, or as so many times what its
 * memory cost on the host. The second tells that the exchange did not pay: the link is slow.
 */
#define TIMES_USUAL 4

/* Keeps the verdict, and when an exchange for the needed chunks is considered again. pre: locked */
static void keep_verdict(struct spill_access_model *model, const struct spill_exchange_choice *choice,
                         uint16_t site)
{
	uint64_t now = spill_clock_ns();
	model->moves[site] = choice->pays;
	for (unsigned i = 0; i < choice->count; i++) {
		const struct spill_exchange_chunk *chunk = &choice->chunks[i];
		bool accessed = chunk->needed || chunk->maybe;
		if (!chunk->on_host || !(accessed || chunk->verdict == SPILL_EXCHANGE_COMES))
			continue;
		spill_chunk_stay_whole(&model->stays, chunk->key, model->chunk_accesses, chunk->excess_ns);
		if (accessed)
			spill_chunk_stay_verdict(&model->stays, chunk->key, choice->pays, now);
	}
}

/* Chunks come in place of idle ones. pre: locked */
static bool choose_idle(struct spill_access_model *model, struct spill_exchange_choice *choice, uint64_t now)
{
	const struct spill_access_history *history = &model->history;
	if (!spill_idle_window_is_due(&model->idle, spill_access_model_point(model), now))
		return false;
	choice->idle_only = true;
	choice->swaps = spill_placement_swap(choice, history, model->idle.first.access, &model->benefit);
	spill_idle_window_looked(&model->idle, spill_access_model_point(model), choice->whole, choice->swaps,
	                         now);
	choice->idle_only = choice->swaps; /* else another swap is chosen, by which any chunk may leave */
	return choice->swaps;
}

/* Chunks swap, if that is better than an exchange. pre: locked */
static bool choose_swap(struct spill_access_model *model, struct spill_exchange_choice *choice)
{
	const struct spill_access_history *history = &model->history;
	uint64_t now = spill_clock_ns();
	if (choice->graph || !spill_access_model_is_auto())
		return false;
	if (choose_idle(model, choice, now))
		return true;
	struct spill_access_point at = spill_access_model_now(model, now);
	if (!spill_swap_window_tells(&model->swaps, &at))
		return false;
	for (unsigned i = 0; i < choice->count; i++)
		choice->chunks[i].swapped =
		    !spill_chunk_stay_may_swap(&model->stays, choice->chunks[i].key, now);
	choice->swaps = spill_placement_swap(choice, history, spill_swap_window_first(&model->swaps, history),
	                                     &model->benefit);
	spill_swap_window_looked(&model->swaps, history, now);
	return choice->swaps;
}

/* Chunks have come in place of idle ones. pre: locked */
static void note_idle_swap(struct spill_access_model *model, const struct spill_exchange_choice *choice,
                           uint64_t now)
{
	uint64_t paid = 0, vain = 0, longest_ns = 0, copies_ns = 2 * spill_benefit_copy_cost(&model->benefit);
	for (unsigned i = 0; i < choice->count; i++) {
		const struct spill_exchange_chunk *chunk = &choice->chunks[i];
		bool pays;
		if (chunk->verdict == SPILL_EXCHANGE_COMES)
			spill_chunk_stay_came(
			    &model->stays, chunk->key,
			    spill_idle_window_pays_at(&model->idle, spill_access_model_point(model),
			                              copies_ns, spill_max(chunk->excess_ns, 1)),
			    now);
		if (chunk->verdict != SPILL_EXCHANGE_GOES)
			continue;
		uint64_t ns =
		    spill_chunk_stay_left(&model->stays, chunk->key, model->idle.first.access, now, &pays);
		paid += pays ? chunk->bytes : 0;
		vain += ns ? chunk->bytes : 0;
		longest_ns = spill_max(longest_ns, ns);
	}
	spill_idle_window_swapped(&model->idle, paid, vain, longest_ns, now);
}

void spill_access_model_swapped(const struct spill_exchange_choice *choice)
{
	uint64_t now = spill_clock_ns();
	struct spill_access_model *model = spill_access_model_lock();
	if (model) {
		model->disturbed = true;
		spill_swap_window_swapped(&model->swaps, now);
		spill_exchange_pause_swapped(&model->pause, &model->history);
	}
	if (model && choice->idle_only)
		note_idle_swap(model, choice, now);
	for (unsigned i = 0; model && !choice->idle_only && i < choice->count; i++)
		if (choice->chunks[i].verdict != SPILL_EXCHANGE_STAYS)
			spill_chunk_stay_swapped(&model->stays, choice->chunks[i].key, now);
	spill_access_model_unlock();
}

/* True: from now on exchanges pause for a while, to see whether the program is faster. pre: locked */
static bool begins_pause(struct spill_access_model *model, struct spill_exchange_choice *choice)
{
	const struct spill_access_history *history = &model->history;
	struct spill_exchange_pause *pause = &model->pause;
	if (!pause->asks)
		return false;
	uint64_t since = history->count - spill_min(pause->period, SPILL_ACCESS_USES - 1);
	struct spill_access_point at = spill_access_model_now(model, spill_clock_ns());
	spill_exchange_pause_told(pause, &at,
	                          spill_placement_home_cost(choice, history, since, &model->benefit));
	if (!spill_exchange_pauses(pause))
		return false;
	spill_swap_window_interrupted(&model->swaps); /* it has exchanges */
	return true;
}

bool spill_access_model_choose(struct spill_exchange_choice *choice, uint16_t site, uint64_t *cost_ns)
{
	struct spill_access_model *model = spill_access_model_lock();
	bool comes = choose_swap(model, choice);
	if (!comes && !choice->swaps_only && !begins_pause(model, choice)) {
		comes =
		    spill_exchange_choose(choice, &model->history, &model->benefit, site, model->moves[site]);
		if (!choice->ahead)
			keep_verdict(model, choice, site);
	}
	*cost_ns = spill_benefit_copy_cost(&model->benefit);
	spill_access_model_unlock();
	return comes;
}

void spill_access_model_end_lead(struct spill_access_model *model)
{
	if (model->lead.bytes >= MEASURED_BYTES)
		spill_benefit_add_lead(&model->benefit, model->lead.bytes, model->lead.idle_ns);
	model->lead = (struct spill_exchange_lead){0};
}

void spill_access_model_moved(const struct spill_exchange_choice *choice, uint64_t bytes, uint64_t ns,
                              uint64_t waited_ns)
{
	uint64_t excess_ns = choice->swaps ? 0 : choice->excess_ns; /* a swap's is of a whole window */
	uint64_t usual_ns = spill_max(excess_ns, SPILL_BENEFIT_COPY_NS_PER_MIB);
	uint64_t most_ns = TIMES_USUAL * usual_ns * (bytes >> 20);
	struct spill_access_model *model = spill_access_model_lock();
	model->disturbed = true;
	if (!choice->swaps) {
		model->swaps.moves_ns += ns;
		model->idle.moves_ns += ns;
		spill_exchange_pause_moved(&model->pause, ns);
	}
	if (bytes >= MEASURED_BYTES)
		spill_benefit_add_copy(&model->benefit, bytes, spill_min(ns, most_ns));
	spill_access_model_end_lead(model);
	model->read_ns = spill_clock_ns(); /* what it took is no idle time */
	spill_exchange_lead_begin(&model->lead, bytes, waited_ns + spill_min(ns, most_ns), model->read_ns);
	spill_access_model_unlock();
}

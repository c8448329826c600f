#include "placement_swap.h"

/* Of the bytes that the window accesses, at most this part for the first time in its second half. */
#define LATE_SHARE 8
/* Chunks of all accesses together: some 10 ms. */
#define MOST_STEPS (1u << 19)
/* A unit of the history (access_history.h). */
#define UNIT_MIB 2

/* The one that comes has to cost so much more, because costs are measured to some per cent, or only guessed. */
static uint64_t with_margin(uint64_t ns)
{
	return ns + ns / 2;
}

static void forget_results(struct spill_exchange_choice *choice)
{
	choice->comes = choice->goes = choice->excess_ns = 0;
	for (unsigned i = 0; i < choice->count; i++) {
		struct spill_exchange_chunk *chunk = &choice->chunks[i];

		chunk->verdict = SPILL_EXCHANGE_STAYS;
		chunk->excess_ns = chunk->launch = 0;
		chunk->last = UINT64_MAX;
	}
}

/* MiB of the buffers that the launch names which begins with that access. */
static uint64_t named_mib(const struct spill_access_history *history, uint64_t number)
{
	uint64_t units = spill_access_at(history, number)->units;

	while (++number < history->count && spill_access_at(history, number)->place)
		units += spill_access_at(history, number)->units;
	return UNIT_MIB * spill_max(units, 1);
}

/*
 * Sums what a MiB of each chunk cost in place since that access, or would have cost. `last` of a chunk becomes the number of its
 * first access. False: there are too many chunks in all accesses for one look. pre: forget_results
 */
static bool sum_costs(struct spill_exchange_choice *choice, const struct spill_access_history *history,
                      uint64_t since, const struct spill_migration_benefit *benefit)
{
	struct spill_exchange_chunk *chunk;
	uint64_t launches = 1, steps = 0, mib = 1;

	for (uint64_t number = since; number < history->count && steps <= MOST_STEPS; number++) {
		const struct spill_access *use = spill_access_at(history, number);
		struct spill_access_range range = {use->first, use->units};

		if (!use->place || number == since)
			mib = named_mib(history, number);
		launches += !use->place;
		while ((chunk = spill_exchange_next_chunk(choice, &range))) {
			/* One launch can have several buffers in a chunk, and costs it once. */
			if (chunk->launch != launches)
				chunk->excess_ns +=
				    spill_benefit_guessed_excess(benefit, use->site, chunk->key, mib);
			chunk->launch = launches;
			chunk->last = spill_min(chunk->last, number);
			steps++;
		}
	}
	return steps <= MOST_STEPS;
}

/*
 * True: the second half of the window accessed little that the first half had not, so the window has whole periods of the
 * program. In its first step, layer by layer, what is not yet accessed would count as unused.
 */
static bool is_whole(const struct spill_exchange_choice *choice, uint64_t since, uint64_t end)
{
	uint64_t all = 0, late = 0, middle = since + (end - since) / 2;

	for (unsigned i = 0; i < choice->count; i++) {
		const struct spill_exchange_chunk *chunk = &choice->chunks[i];

		if (chunk->last == UINT64_MAX)
			continue;
		all += chunk->bytes;
		late += chunk->last < middle ? 0 : chunk->bytes;
	}
	return LATE_SHARE * late <= all;
}

static bool is_candidate(const struct spill_exchange_choice *choice, const struct spill_exchange_chunk *chunk,
                         bool on_host)
{
	bool may_leave = !chunk->needed && (!choice->idle_only || chunk->last == UINT64_MAX);

	return chunk->on_host == on_host && !chunk->fixed && !chunk->swapped &&
	       chunk->verdict == SPILL_EXCHANGE_STAYS && (on_host || may_leave);
}

/*
 * The dearest one on the host, or the cheapest one on the device, of those without a verdict. NULL: none. A slice has few
 * chunks, so they need not be sorted.
 */
static struct spill_exchange_chunk *next_candidate(const struct spill_exchange_choice *choice, bool on_host)
{
	struct spill_exchange_chunk *found = NULL;

	for (unsigned i = 0; i < choice->count; i++) {
		struct spill_exchange_chunk *chunk = &choice->chunks[i];

		if (is_candidate(choice, chunk, on_host) &&
		    (!found ||
		     (on_host ? chunk->excess_ns > found->excess_ns : chunk->excess_ns < found->excess_ns)))
			found = chunk;
	}
	return found;
}

static uint64_t cost_of(const struct spill_exchange_chunk *chunk, uint64_t ns_per_mib)
{
	return (chunk->bytes >> 20) * ns_per_mib;
}

/*
 * Lets cheap chunks go until there is room for a dear one. False, and none of them goes: there are too few, or together they
 * would cost too much. *room: bytes that are free, or were left for earlier ones and are not used. price_ns: what the copies of
 * a MiB have to save.
 */
static bool make_room(struct spill_exchange_choice *choice, uint64_t *room,
                      const struct spill_exchange_chunk *for_it, uint64_t price_ns)
{
	uint64_t bytes = *room, cost = cost_of(for_it, price_ns);
	struct spill_exchange_chunk *victim;
	unsigned taken = 0;

	while (bytes < for_it->bytes && (victim = next_candidate(choice, false))) {
		victim->verdict = SPILL_EXCHANGE_GOES;
		choice->ranks[taken++] = (unsigned)(victim - choice->chunks);
		bytes += victim->bytes;
		cost += cost_of(victim, with_margin(victim->excess_ns));
	}
	if (bytes < for_it->bytes || cost > cost_of(for_it, for_it->excess_ns)) {
		while (taken)
			choice->chunks[choice->ranks[--taken]].verdict = SPILL_EXCHANGE_STAYS;
		return false;
	}
	choice->goes += bytes - *room;
	*room = bytes - for_it->bytes;
	return true;
}

bool spill_placement_swap(struct spill_exchange_choice *choice, const struct spill_access_history *history,
                          uint64_t since, const struct spill_migration_benefit *benefit)
{
	uint64_t room = choice->room, price_ns = spill_benefit_copy_cost(benefit);
	struct spill_exchange_chunk *next;

	forget_results(choice);
	choice->whole = sum_costs(choice, history, since, benefit) && is_whole(choice, since, history->count);
	if (!choice->whole)
		return false;
	while ((next = next_candidate(choice, true)) &&
	       (!choice->comes || choice->comes + next->bytes <= choice->slice) &&
	       make_room(choice, &room, next, price_ns)) {
		next->verdict = SPILL_EXCHANGE_COMES;
		choice->excess_ns = choice->comes ? choice->excess_ns : next->excess_ns;
		choice->comes += next->bytes;
	}
	return choice->comes != 0;
}

uint64_t spill_placement_home_cost(struct spill_exchange_choice *choice,
                                   const struct spill_access_history *history, uint64_t since,
                                   const struct spill_migration_benefit *benefit)
{
	uint64_t cost_ns = 0;

	forget_results(choice);
	if (!sum_costs(choice, history, since, benefit))
		return UINT64_MAX;
	for (unsigned i = 0; i < choice->count; i++) {
		const struct spill_exchange_chunk *chunk = &choice->chunks[i];

		cost_ns += chunk->on_host != chunk->displaced ? cost_of(chunk, chunk->excess_ns) : 0;
	}
	return cost_ns;
}

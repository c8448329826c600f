#include <stddef.h>

#include "exchange_choice.h"
#include "minmax.h"

/* Accesses to search for the age of chunks without a prediction: at worst some 50 us. */
#define PAST 4096
/*
 * A predicted chunk replaces a victim only if the victim's next use is so many times later. A chunk
 * that waits on the device for its use keeps the victim away. In a sweep over a hundred chunks,
 * each chunk that comes a tenth too early adds a tenth to the moves.
 */
#define SOONER 8
/* Slices of chunks that are perhaps needed. */
#define MAYBE 4

/*
 * A stay is wide if the program uses no more than the device can hold for so many times as long as it takes to use half of that. It goes to and fro
 * between things, each of which fits, such as its models (docs/adr/0048-wide-stays.md). Then a chunk stays until the program goes on
 * with something else. In a sweep over all memory it is twice as long.
 */
#define WIDE 4
/*
 * So many quarters of what is lost by chunks that leave are added to the price. In a sweep half of it, because some of them came by an exchange,
 * and would leave for another one. In turns all of them come back, but by exchanges that save something as well.
 */
#define RENT_QUARTERS 2
#define WIDE_RENT_QUARTERS 3

#define MIB ((uint64_t)1 << 20)

static bool may_come(const struct spill_exchange_chunk *chunk)
{
	return chunk->on_host && !chunk->fixed;
}

static bool may_go(const struct spill_exchange_chunk *chunk)
{
	return !chunk->on_host && !chunk->fixed && !chunk->needed;
}

static bool is_needed_or_maybe(const struct spill_exchange_chunk *chunk)
{
	return chunk->needed || chunk->maybe;
}

static uint64_t chunk_excess(const struct spill_migration_benefit *benefit, uint16_t site, uint32_t key)
{
	return benefit ? spill_benefit_chunk_excess(benefit, site, key) : 0;
}

static bool migration_pays(const struct spill_exchange_choice *choice,
                           const struct spill_migration_benefit *benefit, uint64_t excess_ns,
                           bool moved_so_far)
{
	return !benefit ||
	       spill_benefit_pays(benefit, excess_ns - spill_min(excess_ns, choice->rent_ns), moved_so_far);
}

static void begin_choice(struct spill_exchange_choice *choice, const struct spill_migration_benefit *benefit,
                         uint16_t site)
{
	choice->comes = choice->goes = 0;
	choice->pays = false;
	choice->rent_ns = 0;
	for (unsigned i = 0; i < choice->count; i++) {
		struct spill_exchange_chunk *chunk = &choice->chunks[i];

		chunk->verdict = SPILL_EXCHANGE_STAYS;
		chunk->next = chunk->needed ? 0 : chunk->maybe ? 1 : UINT64_MAX;
		chunk->last = UINT64_MAX;
		chunk->launch = 0;
		chunk->excess_ns = is_needed_or_maybe(chunk) ? chunk_excess(benefit, site, chunk->key) : 0;
		chunk->wide_ns = chunk->excess_ns;
	}
}

static uint64_t bytes_to_copy(const struct spill_exchange_chunk *chunk)
{
	return chunk->dead ? 0 : chunk->bytes;
}

static uint64_t mib_of(const struct spill_exchange_chunk *chunk)
{
	return (chunk->bytes + MIB - 1) / MIB;
}

/*
 * What is lost by the chunks that leave: their accesses in place as long as the stay lasts, which is
 * `stay` of a period's `steps`, or their way back. Without it, chunks change places although those that
 * leave are worth as much (docs/adr/0021-stop-exchange-go.md).
 */
static uint64_t rent(const struct spill_exchange_choice *choice,
                     const struct spill_migration_benefit *benefit, uint64_t stay, uint64_t steps)
{
	uint64_t mib = 0, ns = 0;

	for (unsigned i = 0; i < choice->count; i++) {
		const struct spill_exchange_chunk *chunk = &choice->chunks[i];

		if (may_go(chunk) && chunk->next > stay) {
			mib += mib_of(chunk);
			ns += mib_of(chunk) * chunk->excess_ns;
		}
	}
	return mib && steps ? spill_min(ns / mib * stay / steps, spill_benefit_copy_cost(benefit)) : 0;
}

/* What look_forward has seen so far. A step is the access of one chunk: a buffer is used from its begin on. */
struct forward {
	uint64_t steps;
	uint64_t used;       /* bytes of all accessed chunks, each once */
	uint64_t stay, wide; /* steps: until `horizon` was used, and until all of the resident bytes were */
	uint64_t launches;   /* one launch can have several buffers in a chunk, and costs it once */
};

/* An access within the stay counts for a chunk that may come, and one behind it for a chunk that may go. */
static inline bool does_count(const struct spill_exchange_chunk *chunk, bool stays)
{
	return stays ? may_come(chunk) : may_go(chunk);
}

static inline void add_step(const struct spill_exchange_choice *choice, struct forward *seen,
                            struct spill_exchange_chunk *chunk, const struct spill_migration_benefit *benefit,
                            uint16_t site)
{
	seen->steps++;
	if (chunk->next == UINT64_MAX) {
		chunk->next = seen->steps;
		seen->used += chunk->bytes;
	}
	uint64_t others = seen->used - chunk->bytes;
	bool stays = others < choice->horizon, wide = others / 2 < choice->horizon;
	seen->stay = stays ? seen->steps : seen->stay;
	seen->wide = wide ? seen->steps : seen->wide;
	bool counts = does_count(chunk, stays), counts_wide = does_count(chunk, wide);
	if (chunk->launch != seen->launches && (counts || counts_wide)) {
		uint64_t ns = chunk_excess(benefit, site, chunk->key);
		chunk->excess_ns += counts ? ns : 0;
		chunk->wide_ns += counts_wide ? ns : 0;
	}
	chunk->launch = seen->launches;
}

/* True: the stay is wide, and everything counts accordingly. */
static bool widen(struct spill_exchange_choice *choice, struct forward *seen)
{
	if (!seen->stay || seen->wide / WIDE < seen->stay)
		return false;
	seen->stay = seen->wide;
	for (unsigned i = 0; i < choice->count; i++)
		choice->chunks[i].excess_ns = choice->chunks[i].wide_ns;
	return true;
}

/*
 * Finds each chunk's next access, and what its accesses cost: until the stay would end for those that
 * may come, behind that for those that may leave.
 */
static void look_forward(struct spill_exchange_choice *choice, const struct spill_access_history *history,
                         const struct spill_migration_benefit *benefit)
{
	struct spill_exchange_chunk *chunk;
	struct forward seen = {.launches = 1};
	struct spill_access use;

	for (unsigned i = 0; i < choice->count; i++)
		seen.used += is_needed_or_maybe(&choice->chunks[i]) ? choice->chunks[i].bytes : 0;
	for (uint64_t i = 0; spill_access_history_next(history, i, &use); i++) {
		struct spill_access_range range = {use.first, use.units};

		seen.launches += !use.place;
		while ((chunk = spill_exchange_next_chunk(choice, &range)))
			add_step(choice, &seen, chunk, benefit, use.site);
	}
	unsigned quarters = widen(choice, &seen) ? WIDE_RENT_QUARTERS : RENT_QUARTERS;
	if (benefit && !choice->always)
		choice->rent_ns = rent(choice, benefit, seen.stay, seen.steps) * quarters / 4;
}

/* Finds the age of possible victims without a prediction, for the eviction order. */
static void look_back(struct spill_exchange_choice *choice, const struct spill_access_history *history)
{
	struct spill_exchange_chunk *chunk;
	struct spill_access use;
	unsigned left = 0;

	for (unsigned i = 0; i < choice->count; i++)
		left += may_go(&choice->chunks[i]) && choice->chunks[i].next == UINT64_MAX;
	for (uint64_t ago = 0; left && ago < PAST && spill_access_history_past(history, ago, &use); ago++) {
		struct spill_access_range range = {use.first, use.units};

		while ((chunk = spill_exchange_next_chunk(choice, &range)))
			if (may_go(chunk) && chunk->next == UINT64_MAX && chunk->last == UINT64_MAX) {
				chunk->last = ago;
				left--;
			}
	}
}

/*
 * Does `a` come, or go, before `b`? Both are on the host, or both on the device. No two are equal.
 */
static bool is_before(const struct spill_exchange_chunk *a, const struct spill_exchange_chunk *b)
{
	if (a->next != b->next)
		return a->on_host ? a->next < b->next : a->next > b->next;
	if (a->last != b->last)
		return a->last > b->last;
	return a->key < b->key;
}

static void sift_down(const struct spill_exchange_chunk *chunks, unsigned *heap, unsigned count, unsigned at)
{
	for (unsigned child; (child = 2 * at + 1) < count; at = child) {
		unsigned swapped = heap[at];

		if (child + 1 < count && is_before(&chunks[heap[child]], &chunks[heap[child + 1]]))
			child++;
		if (!is_before(&chunks[swapped], &chunks[heap[child]]))
			return;
		heap[at] = heap[child];
		heap[child] = swapped;
	}
}

static void sort_ranks(const struct spill_exchange_chunk *chunks, unsigned *ranks, unsigned count)
{
	for (unsigned i = count / 2; i-- > 0;)
		sift_down(chunks, ranks, count, i);
	while (count > 1) {
		unsigned last = ranks[--count];

		ranks[count] = ranks[0];
		ranks[0] = last;
		sift_down(chunks, ranks, count, 0);
	}
}

/* Does the promotion of all needed chunks on the host pay? Each byte counts the same. */
static bool needed_pays(struct spill_exchange_choice *choice, const struct spill_migration_benefit *benefit,
                        bool moved_so_far)
{
	uint64_t mib = 0, cost = 0;

	for (unsigned i = 0; i < choice->count; i++) {
		const struct spill_exchange_chunk *chunk = &choice->chunks[i];

		if (may_come(chunk) && is_needed_or_maybe(chunk)) {
			mib += mib_of(chunk);
			cost += mib_of(chunk) * chunk->excess_ns;
		}
	}
	choice->excess_ns = mib ? cost / mib : 0;
	return mib && (choice->always || migration_pays(choice, benefit, choice->excess_ns, moved_so_far));
}

static bool comes_early(const struct spill_exchange_choice *choice,
                        const struct spill_migration_benefit *benefit,
                        const struct spill_exchange_chunk *chunk, bool moved_so_far)
{
	return chunk->next != UINT64_MAX && (chunk->dead || (chunk->maybe && choice->always) ||
	                                     migration_pays(choice, benefit, chunk->excess_ns, moved_so_far));
}

/* Possible victims in eviction history, and the number that is taken. */
struct victims {
	unsigned *ranks;
	unsigned count, taken;
	uint64_t room; /* free bytes when the taken ones are gone */
};

/* Makes room for the chunk. False, and no victim taken: they are too small, or needed too soon. */
static bool make_room(struct spill_exchange_choice *choice, struct victims *victims,
                      const struct spill_exchange_chunk *for_it)
{
	uint64_t room = victims->room;
	unsigned taken = victims->taken;

	while (room < for_it->bytes) {
		if (taken == victims->count)
			return false;

		const struct spill_exchange_chunk *victim = &choice->chunks[victims->ranks[taken]];

		if (victim->next / SOONER < for_it->next)
			return false;
		room += victim->bytes;
		taken++;
	}
	victims->room = room - for_it->bytes;
	victims->taken = taken;
	return true;
}

/* Takes victims until `spare` is free for the next exchange. */
static void leave_spare(struct spill_exchange_choice *choice, struct victims *victims)
{
	while (victims->room < choice->spare && victims->taken < victims->count) {
		const struct spill_exchange_chunk *victim = &choice->chunks[victims->ranks[victims->taken]];

		if (victim->next < SOONER)
			break;
		victims->room += victim->bytes;
		victims->taken++;
	}
	victims->room -= victims->room < choice->spare ? victims->room : choice->spare;
}

/*
 * Marks the taken victims. Those that fit into the remaining room stay, the soonest needed first.
 */
static void mark_victims(struct spill_exchange_choice *choice, struct victims *victims)
{
	for (unsigned i = victims->taken; i-- > 0;) {
		struct spill_exchange_chunk *victim = &choice->chunks[victims->ranks[i]];

		if (victim->bytes <= victims->room) {
			victims->room -= victim->bytes;
			continue;
		}
		victim->verdict = SPILL_EXCHANGE_GOES;
		choice->goes += victim->bytes;
	}
}

bool spill_exchange_choose(struct spill_exchange_choice *choice, const struct spill_access_history *history,
                           const struct spill_migration_benefit *benefit, uint16_t site, bool moved_so_far)
{
	struct victims victims = {.room = choice->room};
	uint64_t copied = 0;
	unsigned coming = 0;

	if (choice->ahead)
		benefit = NULL;
	begin_choice(choice, benefit, site);
	look_forward(choice, history, benefit);
	if (!choice->ahead && !needed_pays(choice, benefit, moved_so_far))
		return false;
	choice->pays = true;
	look_back(choice, history);

	for (unsigned i = 0; i < choice->count; i++) {
		const struct spill_exchange_chunk *chunk = &choice->chunks[i];

		if (may_come(chunk) && (chunk->needed || comes_early(choice, benefit, chunk, moved_so_far)))
			choice->ranks[coming++] = i;
	}
	victims.ranks = choice->ranks + coming;
	for (unsigned i = 0; i < choice->count; i++) {
		if (may_go(&choice->chunks[i]))
			victims.ranks[victims.count++] = i;
	}
	sort_ranks(choice->chunks, choice->ranks, coming);
	sort_ranks(choice->chunks, victims.ranks, victims.count);

	for (unsigned i = 0; i < coming; i++) {
		struct spill_exchange_chunk *chunk = &choice->chunks[choice->ranks[i]];

		if (!chunk->needed &&
		    copied + bytes_to_copy(chunk) > (chunk->maybe ? MAYBE : 1) * choice->slice)
			break;
		if (make_room(choice, &victims, chunk)) {
			chunk->verdict = SPILL_EXCHANGE_COMES;
			choice->comes += chunk->bytes;
			copied += bytes_to_copy(chunk);
		} else if (!chunk->needed) {
			break;
		}
	}
	if (choice->comes)
		leave_spare(choice, &victims);
	mark_victims(choice, &victims);
	return choice->comes != 0;
}

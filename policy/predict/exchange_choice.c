#include <stddef.h>

#include "exchange_choice.h"

/* Uses that are looked back on for the age of what is not foreseen: some 50 us where something was never used. */
#define PAST 4096
/*
 * What is foreseen makes something leave only if that is needed so many times later: time on the device before its use is
 * time that the other one was not there, and in a sweep each of a hundred chunks that come a tenth of it early adds a tenth.
 */
#define SOONER 8
/* So many slices of what is perhaps needed come at once. */
#define MAYBE 4

#define MIB ((uint64_t)1 << 20)

int spill_exchange_chunk_compare(const void *left, const void *right)
{
	const struct spill_exchange_chunk *a = left, *b = right;

	return (a->key > b->key) - (a->key < b->key);
}

static struct spill_exchange_chunk *find(const struct spill_exchange_choice *window, uint32_t key)
{
	struct spill_exchange_chunk *low = window->chunks;
	unsigned count = window->count;

	while (count > 1) {
		unsigned half = count / 2;

		low += low[half].key <= key ? half : 0;
		count -= half;
	}
	return count && low->key == key ? low : NULL;
}

static bool may_come(const struct spill_exchange_chunk *chunk)
{
	return chunk->on_host && !chunk->fixed;
}

static bool may_go(const struct spill_exchange_chunk *chunk)
{
	return !chunk->on_host && !chunk->fixed && !chunk->needed;
}

static bool is_asked(const struct spill_exchange_chunk *chunk)
{
	return chunk->needed || chunk->maybe;
}

static uint64_t excess(const struct spill_migration_benefit *reuse, uint16_t site, uint32_t key)
{
	return reuse ? spill_benefit_chunk_excess(reuse, site, key) : 0;
}

static bool pays(const struct spill_migration_benefit *reuse, uint64_t excess_ns, bool moved_so_far)
{
	return !reuse || spill_benefit_pays(reuse, excess_ns, moved_so_far);
}

static void begin(struct spill_exchange_choice *window, const struct spill_migration_benefit *reuse,
                  uint16_t site)
{
	window->comes = window->goes = 0;
	window->pays = false;
	for (unsigned i = 0; i < window->count; i++) {
		struct spill_exchange_chunk *chunk = &window->chunks[i];

		chunk->verdict = SPILL_EXCHANGE_STAYS;
		chunk->next = chunk->needed ? 0 : chunk->maybe ? 1 : UINT64_MAX;
		chunk->last = UINT64_MAX;
		chunk->excess_ns = is_asked(chunk) ? excess(reuse, site, chunk->key) : 0;
	}
}

/* Each chunk's next use, and what its uses cost until its stay would end. */
static void look_forward(struct spill_exchange_choice *window, const struct spill_access_history *order,
                         const struct spill_migration_benefit *reuse)
{
	struct spill_access_walk walk = {0};
	struct spill_access use;
	uint64_t used = 0; /* bytes of all that were met, each once */

	for (unsigned i = 0; i < window->count; i++)
		used += is_asked(&window->chunks[i]) ? window->chunks[i].bytes : 0;
	while (spill_access_history_next(order, &walk, &use)) {
		struct spill_exchange_chunk *chunk = find(window, use.key);

		if (!chunk)
			continue;
		if (chunk->next == UINT64_MAX) {
			chunk->next = walk.steps;
			used += chunk->bytes;
		}
		if (may_come(chunk) && used - chunk->bytes < window->horizon)
			chunk->excess_ns += excess(reuse, use.site, use.key);
	}
}

/* The age of what could go and is not foreseen: the order in which it goes. */
static void look_back(struct spill_exchange_choice *window, const struct spill_access_history *order)
{
	struct spill_access use;
	unsigned left = 0;

	for (unsigned i = 0; i < window->count; i++)
		left += may_go(&window->chunks[i]) && window->chunks[i].next == UINT64_MAX;
	for (uint64_t ago = 0; left && ago < PAST && spill_access_history_past(order, ago, &use); ago++) {
		struct spill_exchange_chunk *chunk = find(window, use.key);

		if (chunk && may_go(chunk) && chunk->next == UINT64_MAX && chunk->last == UINT64_MAX) {
			chunk->last = ago;
			left--;
		}
	}
}

/* Does `a` come, or go, before `b`? Both are on the host, or both on the device. No two are equal. */
static bool before(const struct spill_exchange_chunk *a, const struct spill_exchange_chunk *b)
{
	if (a->next != b->next)
		return a->on_host ? a->next < b->next : a->next > b->next;
	if (a->last != b->last)
		return a->last > b->last;
	return a->key < b->key;
}

static void sift(const struct spill_exchange_chunk *chunks, unsigned *heap, unsigned count, unsigned at)
{
	for (unsigned child; (child = 2 * at + 1) < count; at = child) {
		unsigned swapped = heap[at];

		if (child + 1 < count && before(&chunks[heap[child]], &chunks[heap[child + 1]]))
			child++;
		if (!before(&chunks[swapped], &chunks[heap[child]]))
			return;
		heap[at] = heap[child];
		heap[child] = swapped;
	}
}

static void sort(const struct spill_exchange_chunk *chunks, unsigned *ranks, unsigned count)
{
	for (unsigned i = count / 2; i-- > 0;)
		sift(chunks, ranks, count, i);
	while (count > 1) {
		unsigned last = ranks[--count];

		ranks[count] = ranks[0];
		ranks[0] = last;
		sift(chunks, ranks, count, 0);
	}
}

/* Do the needed ones that are on the host pay, each byte of them counting the same? */
static bool needed_pays(struct spill_exchange_choice *window, const struct spill_migration_benefit *reuse,
                        bool moved_so_far)
{
	uint64_t mib = 0, cost = 0;

	for (unsigned i = 0; i < window->count; i++) {
		const struct spill_exchange_chunk *chunk = &window->chunks[i];

		if (may_come(chunk) && is_asked(chunk)) {
			uint64_t part = (chunk->bytes + MIB - 1) / MIB;

			mib += part;
			cost += part * chunk->excess_ns;
		}
	}
	window->excess_ns = mib ? cost / mib : 0;
	return mib && (window->always || pays(reuse, window->excess_ns, moved_so_far));
}

static bool comes_ahead(const struct spill_exchange_choice *window,
                        const struct spill_migration_benefit *reuse, const struct spill_exchange_chunk *chunk,
                        bool moved_so_far)
{
	return chunk->next != UINT64_MAX &&
	       ((chunk->maybe && window->always) || pays(reuse, chunk->excess_ns, moved_so_far));
}

/* Those that could leave, in `ranks`, and how many of them are taken. */
struct victims {
	unsigned *ranks;
	unsigned count, taken;
	uint64_t room; /* that is left, with the taken ones gone */
};

/* Makes room for the chunk. False: what could leave is needed too soon, or is too little; then nothing is taken. */
static bool make_room(struct spill_exchange_choice *window, struct victims *victims,
                      const struct spill_exchange_chunk *for_it)
{
	uint64_t room = victims->room;
	unsigned taken = victims->taken;

	while (room < for_it->bytes) {
		if (taken == victims->count)
			return false;

		const struct spill_exchange_chunk *victim = &window->chunks[victims->ranks[taken]];

		if (victim->next / SOONER < for_it->next)
			return false;
		room += victim->bytes;
		taken++;
	}
	victims->room = room - for_it->bytes;
	victims->taken = taken;
	return true;
}

/* What the next exchange begins with. */
static void leave_spare(struct spill_exchange_choice *window, struct victims *victims)
{
	while (victims->room < window->spare && victims->taken < victims->count) {
		const struct spill_exchange_chunk *victim = &window->chunks[victims->ranks[victims->taken]];

		if (victim->next < SOONER)
			break;
		victims->room += victim->bytes;
		victims->taken++;
	}
	victims->room -= victims->room < window->spare ? victims->room : window->spare;
}

/* Of the taken ones, those stay that were taken for little: the ones that are needed soonest first. */
static void let_go(struct spill_exchange_choice *window, struct victims *victims)
{
	for (unsigned i = victims->taken; i-- > 0;) {
		struct spill_exchange_chunk *victim = &window->chunks[victims->ranks[i]];

		if (victim->bytes <= victims->room) {
			victims->room -= victim->bytes;
			continue;
		}
		victim->verdict = SPILL_EXCHANGE_GOES;
		window->goes += victim->bytes;
	}
}

bool spill_exchange_choose(struct spill_exchange_choice *window, const struct spill_access_history *order,
                           const struct spill_migration_benefit *reuse, uint16_t site, bool moved_so_far)
{
	struct victims victims = {.room = window->room};
	unsigned coming = 0;

	begin(window, reuse, site);
	look_forward(window, order, reuse);
	if (!needed_pays(window, reuse, moved_so_far))
		return false;
	window->pays = true;
	look_back(window, order);

	for (unsigned i = 0; i < window->count; i++) {
		const struct spill_exchange_chunk *chunk = &window->chunks[i];

		if (may_come(chunk) && (chunk->needed || comes_ahead(window, reuse, chunk, moved_so_far)))
			window->ranks[coming++] = i;
	}
	victims.ranks = window->ranks + coming;
	for (unsigned i = 0; i < window->count; i++) {
		if (may_go(&window->chunks[i]))
			victims.ranks[victims.count++] = i;
	}
	sort(window->chunks, window->ranks, coming);
	sort(window->chunks, victims.ranks, victims.count);

	for (unsigned i = 0; i < coming; i++) {
		struct spill_exchange_chunk *chunk = &window->chunks[window->ranks[i]];

		if (!chunk->needed &&
		    window->comes + chunk->bytes > (chunk->maybe ? MAYBE : 1) * window->slice)
			break;
		if (make_room(window, &victims, chunk)) {
			chunk->verdict = SPILL_EXCHANGE_COMES;
			window->comes += chunk->bytes;
		} else if (!chunk->needed) {
			break;
		}
	}
	if (window->comes)
		leave_spare(window, &victims);
	let_go(window, &victims);
	return window->comes != 0;
}

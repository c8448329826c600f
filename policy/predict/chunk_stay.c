#include "chunk_stay.h"

#include "hash.h"
#include "minmax.h"

#define MS 1000000ull
/* A chunk whose exchange would not pay pauses this long, and then twice as long each time. */
#define PAUSE_NS (10 * MS)
#define PAUSE_MOST_NS (2000 * MS)
#define SWAP_PAUSE_NS (1000 * MS)
#define SWAP_PAUSE_MOST_NS (600000 * MS)

static unsigned place_of(uint32_t key)
{
	return spill_hash_key(key, SPILL_CHUNK_STAY_BITS);
}

uint64_t spill_chunk_stay_gap(const struct spill_chunk_stays *stays, uint32_t key, uint64_t use)
{
	const struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	return stay->key == key ? use - stay->last_use : UINT64_MAX;
}

uint64_t spill_chunk_stay_add(struct spill_chunk_stays *stays, uint32_t key, uint64_t use, uint64_t gap,
                              uint64_t cost_ns)
{
	struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	if (stay->key != key)
		*stay = (struct spill_chunk_stay){.key = key, .last_use = use};
	if (use - stay->last_use > gap) {
		if (!stay->whole_known)
			stay->whole_ns = stay->cost_ns;
		stay->cost_ns = 0;
		stay->whole_known = false;
	}
	stay->last_use = use;
	stay->last_ns = cost_ns;
	stay->cost_ns += cost_ns;
	return spill_max(stay->cost_ns, stay->whole_ns);
}

void spill_chunk_stay_whole(struct spill_chunk_stays *stays, uint32_t key, uint64_t use, uint64_t rest_ns)
{
	struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	if (stay->key != key)
		return;
	stay->whole_ns = rest_ns + (stay->last_use == use ? stay->cost_ns - stay->last_ns : 0);
	stay->whole_known = true;
}

bool spill_chunk_stay_may_try(const struct spill_chunk_stays *stays, uint32_t key, uint64_t now_ns)
{
	const struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	return stay->key != key || now_ns >= stay->next_try_ns;
}

void spill_chunk_stay_verdict(struct spill_chunk_stays *stays, uint32_t key, bool pays, uint64_t now_ns)
{
	struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	if (stay->key != key)
		return;
	stay->pause_ns = pays ? 0 : spill_longer_wait(stay->pause_ns, PAUSE_NS, PAUSE_MOST_NS);
	stay->next_try_ns = pays ? 0 : now_ns + stay->pause_ns;
}

void spill_chunk_stay_swapped(struct spill_chunk_stays *stays, uint32_t key, uint64_t now_ns)
{
	struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	if (stay->key != key)
		*stay = (struct spill_chunk_stay){.key = key};
	stay->swap_pause_ns = spill_longer_wait(stay->swap_pause_ns, SWAP_PAUSE_NS, SWAP_PAUSE_MOST_NS);
	stay->next_swap_ns = now_ns + stay->swap_pause_ns;
}

bool spill_chunk_stay_may_swap(const struct spill_chunk_stays *stays, uint32_t key, uint64_t now_ns)
{
	const struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	return stay->key != key || now_ns >= stay->next_swap_ns;
}

void spill_chunk_stay_came(struct spill_chunk_stays *stays, uint32_t key, uint64_t pays_at, uint64_t now_ns)
{
	struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	if (stay->key != key)
		*stay = (struct spill_chunk_stay){.key = key};
	stay->pays_at = pays_at;
	stay->came_ns = now_ns;
}

uint64_t spill_chunk_stay_left(struct spill_chunk_stays *stays, uint32_t key, uint64_t since, uint64_t now_ns,
                               bool *paid)
{
	struct spill_chunk_stay *stay = &stays->stays[place_of(key)];
	bool came = stay->key == key && stay->pays_at;
	*paid = came && since >= stay->pays_at;
	if (!came)
		return 0;
	stay->pays_at = 0;
	return *paid ? 0 : spill_max(now_ns - stay->came_ns, 1);
}

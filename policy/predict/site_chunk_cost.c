#include "site_chunk_cost.h"

#include <stddef.h>

/* Places that a pair can have. Few, so that a miss in a full table is cheap. */
#define PLACES 16
/* Before the first sample: the first access, then ever fewer, and one of so many. */
#define SELDOM 16
#define RARELY 64

static unsigned place_of(uint16_t site, uint32_t key, unsigned nth)
{
	uint64_t hash = ((uint64_t)key << 16 | site) * UINT64_C(0x9e3779b97f4a7c15);
	return (unsigned)(((hash >> 32) + nth) % SPILL_SITE_CHUNK_COSTS);
}

/* The pair, a free place for it (key 0), or NULL: there is none. */
static const struct spill_site_chunk_cost *find_place(const struct spill_site_chunk_costs *costs,
                                                      uint16_t site, uint32_t key)
{
	for (unsigned i = 0; i < PLACES; i++) {
		const struct spill_site_chunk_cost *pair = &costs->pairs[place_of(site, key, i)];
		if (!pair->key || (pair->key == key && pair->site == site))
			return pair;
	}
	return NULL;
}

/* Finds or adds the pair. Without a free place it replaces another: pairs of freed memory stay. */
static struct spill_site_chunk_cost *find_or_add(struct spill_site_chunk_costs *costs, uint16_t site,
                                                 uint32_t key)
{
	struct spill_site_chunk_cost *pair = (struct spill_site_chunk_cost *)find_place(costs, site, key);
	if (!pair)
		pair = &costs->pairs[place_of(site, key, costs->turn++ % PLACES)];
	if (pair->key != key || pair->site != site)
		*pair = (struct spill_site_chunk_cost){.key = key, .site = site};
	return pair;
}

const struct spill_site_chunk_cost *spill_site_chunk_cost_find(const struct spill_site_chunk_costs *costs,
                                                               uint16_t site, uint32_t key)
{
	const struct spill_site_chunk_cost *pair = find_place(costs, site, key);
	return pair && pair->measured ? pair : NULL;
}

/* Was the pair measured with half or twice as much on the host? */
static bool differs(const struct spill_site_chunk_cost *pair, uint64_t kib)
{
	return kib > 2 * pair->kib || 2 * kib < pair->kib;
}

bool spill_site_chunk_cost_wants_sample(struct spill_site_chunk_costs *costs, uint16_t site, uint32_t key,
                                        uint64_t kib, bool *known)
{
	struct spill_site_chunk_cost *pair = find_or_add(costs, site, key);
	if (pair->measured && !pair->stale && differs(pair, kib)) {
		pair->stale = true;
		pair->wanted = 0;
	}
	*known &= pair->measured && !pair->stale;
	uint8_t use = pair->wanted++;
	if ((!pair->measured || pair->stale) && (!(use & (use - 1)) || use % SELDOM == 0))
		return true;
	return use % RARELY == 0;
}

void spill_site_chunk_cost_add(struct spill_site_chunk_costs *costs, uint16_t site, uint32_t key,
                               uint64_t kib, uint64_t ns)
{
	struct spill_site_chunk_cost *pair = find_or_add(costs, site, key);
	bool first = !pair->measured || differs(pair, kib);
	pair->measured += pair->measured < INT8_MAX;
	pair->stale = false;
	pair->ns = first ? ns : pair->ns / 2 + ns / 2;
	pair->kib = first ? kib : pair->kib / 2 + kib / 2;
	pair->kib += !pair->kib;
}

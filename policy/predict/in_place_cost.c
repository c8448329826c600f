#include "in_place_cost.h"

#include "minmax.h"

/* No link of a card is faster: 64 GB/s, PCIe 5.0 with 16 lanes. */
#define LINK_BYTES_PER_NS 64

static uint64_t carried_bytes(uint64_t ns)
{
	return ns > UINT64_MAX / LINK_BYTES_PER_NS ? UINT64_MAX : ns * LINK_BYTES_PER_NS;
}

/* Launches that take `ns` together, and on the device `resident_ns` if that is known. */
static void add_known(struct spill_in_place_cost *cost, const struct spill_migration_benefit *benefit,
                      uint16_t site, uint64_t on_host, uint64_t ns, uint64_t resident_ns)
{
	uint64_t carried = carried_bytes(ns), most_ns = spill_minus(ns, resident_ns);

	cost->named_kib += on_host >> 10;
	cost->bytes += spill_min(on_host, carried);
	cost->most_ns += most_ns;
	if (benefit->sites[site].resident.measured)
		cost->ns += most_ns;
	else if (on_host <= carried) /* it may have read all of that, which takes so long */
		cost->ns += spill_min((on_host >> 10) * spill_benefit_copy_cost(benefit) >> 10, ns);
}

void spill_in_place_cost_add(struct spill_in_place_cost *cost, struct spill_migration_benefit *benefit,
                             uint16_t site, uint64_t on_host, uint64_t ns, bool known)
{
	struct spill_benefit_site *one = &benefit->sites[site];

	if (known) {
		add_known(cost, benefit, site, on_host, ns, one->resident_ns);
		return;
	}
	one->waiting.launches++;
	one->waiting.kib += on_host >> 10;
	cost->unknown_kib += on_host >> 10;
}

/* Launches of the site that waited took so long each. */
static void count_waiting(struct spill_in_place_cost *cost, struct spill_migration_benefit *benefit,
                          uint16_t site, struct spill_benefit_waiting count, uint64_t ns)
{
	struct spill_benefit_site *one = &benefit->sites[site];

	add_known(cost, benefit, site, count.kib << 10, count.launches * ns,
	          count.launches * one->resident_ns);
	one->counted.launches += count.launches;
	one->counted.kib += count.kib;
	cost->unknown_kib = spill_minus(cost->unknown_kib, count.kib);
}

void spill_in_place_cost_measured(struct spill_in_place_cost *cost, struct spill_migration_benefit *benefit,
                                  uint16_t site, struct spill_benefit_waiting waited, uint64_t ns)
{
	const struct spill_benefit_waiting *counted = &benefit->sites[site].counted;

	/* Times may arrive in another order. */
	if (waited.launches > counted->launches)
		count_waiting(cost, benefit, site,
		              (struct spill_benefit_waiting){waited.launches - counted->launches,
		                                             waited.kib - counted->kib},
		              ns);
}

void spill_in_place_cost_end(struct spill_in_place_cost *cost, struct spill_migration_benefit *benefit)
{
	for (unsigned site = 0; site < SPILL_BENEFIT_SITES; site++) {
		const struct spill_benefit_site *one = &benefit->sites[site];

		if (one->in_place.measured)
			spill_in_place_cost_measured(cost, benefit, (uint16_t)site, one->waiting,
			                             one->in_place_ns);
	}
}

/* value * more / of, or the largest number. pre: of != 0 */
static uint64_t share_of(uint64_t value, uint64_t more, uint64_t of)
{
	uint64_t share;

	if (!__builtin_mul_overflow(value, more, &share))
		return share / of;
	return __builtin_mul_overflow(value / of, more, &share) ? UINT64_MAX : share;
}

/* value * (1 + more / of), or the largest number. pre: of != 0 */
static uint64_t in_proportion(uint64_t value, uint64_t more, uint64_t of)
{
	return spill_plus(value, share_of(value, more, of));
}

void spill_in_place_cost_rested(struct spill_in_place_cost *cost, const struct spill_in_place_cost *since,
                                uint64_t lost_ns, uint64_t watched_ns, uint64_t rested_ns)
{
	/* A launch whose time becomes known in the window leaves this sum as it is. */
	uint64_t kib =
	    spill_minus(cost->named_kib + cost->unknown_kib, since->named_kib + since->unknown_kib);
	uint64_t missed_kib = share_of(kib, rested_ns, watched_ns);
	uint64_t missed_ns = share_of(lost_ns, rested_ns, watched_ns);

	cost->named_kib += missed_kib;
	cost->bytes += spill_min(missed_kib << 10, carried_bytes(missed_ns));
	cost->ns += missed_ns;
	cost->most_ns += missed_ns;
}

struct spill_in_place_sums spill_in_place_cost_sums(const struct spill_in_place_cost *cost, uint64_t run_ns,
                                                    bool all)
{
	uint64_t unknown_kib = all ? cost->unknown_kib : 0;
	struct spill_in_place_sums sums = {.bytes = unknown_kib << 10};

	if (cost->named_kib) {
		sums.bytes = in_proportion(cost->bytes, unknown_kib, cost->named_kib);
		sums.most_ns = in_proportion(cost->most_ns, unknown_kib, cost->named_kib);
		sums.most_ns = spill_max(spill_min(sums.most_ns, run_ns), 1); /* known, even if it is 0 */
		sums.ns = spill_min(in_proportion(cost->ns, unknown_kib, cost->named_kib), sums.most_ns);
	}
	sums.bytes = spill_min(sums.bytes, carried_bytes(run_ns));
	return sums;
}

#include "migration_benefit.h"

#include "minmax.h"

/* Places that a hash can have. Few, so that a miss in a full table is cheap. */
#define PLACES 32
/*
 * Samples that are wanted at once in each state: of the first FEW launches, then of ever fewer until
 * they arrive. A program submits a whole step before the first time is known, and the stopwatches
 * must last for all its sites. With FEW samples, see rarely().
 */
#define FEW 4
#define SELDOM 64
#define RARELY 256
#define RARELY_RESIDENT 64
#define RARELY_LONG 8
#define LONG_NS 100000
/* Launches that are timed behind one that nothing explains. */
#define CLOSER 8
/*
 * A sample moves the mean by an eighth of the difference. An outlier counts as at most 8 times the
 * mean, and moves it by an eighth of that.
 */
#define SHARE 8
/* The default counts as so many samples: the first moves also make streams and events. */
#define KNOWN 4
/*
 * After so many moves the slow ones count as they are, and one sample counts less. What is still slow
 * now and then is part of the price: in programs with buffers of many sizes the driver goes on making
 * device memory (docs/measurements.md, Usual programs).
 */
#define SETTLED 64
#define SETTLED_SHARE 32
#define OUTLIER 8
#define OUTLIERS_AT_MOST 3
/*
 * A launch is unexplained from so many times the least time on, and so much longer: the time of some
 * 25 MiB over the link. Measured (H200, PyTorch): a product took 21.3 ms instead of 0.5, because 40 of
 * its 128 MiB were on the host, and not known; an activation took 1.25 ms instead of 0.09.
 */
#define UNEXPLAINED 8
#define UNEXPLAINED_NS 500000ull
/* Longer than any launch. Times up to it can be multiplied by 2^20. */
#define LONGEST_NS (3600ull * 1000000000)
/* The cost of copies is forgotten after that time. */
#define DOUBT_NS (10ull * 1000000000)
#define DOUBT_MOST_NS (600ull * 1000000000)
/* The link takes so many times as long as the device for the same bytes: 90 for an H200, 40 to 150 for other cards. */
#define LINK_SLOWER 100
/* A launch that reads next to nothing takes so long by its events: 2.0 to 3.1 us were the shortest of two programs (measured, H200). */
#define EMPTY_MOST_NS 3000
#define MIB (1ull << 20)
#define KIB_MOST (1ull << 40)

uint16_t spill_benefit_site(struct spill_migration_benefit *benefit, uint64_t hash)
{
	const unsigned places = SPILL_BENEFIT_SITES - 1;
	hash += !hash; /* 0 is a free place */
	unsigned place = (unsigned)(hash * 0x9e3779b97f4a7c15u >> 32) % places;
	for (unsigned i = 0; i < PLACES; i++) {
		struct spill_benefit_site *site = &benefit->sites[place];
		if (!site->hash)
			site->hash = hash;
		if (site->hash == hash)
			return (uint16_t)place;
		place = place + 1 == places ? 0 : place + 1;
	}
	return (uint16_t)places;
}

/* One launch of so many is timed for ever. To time a long one costs little of its time. */
static unsigned rarely(const struct spill_benefit_site *site, uint64_t on_host)
{
	if (on_host || site->resident.measured < FEW)
		return RARELY;
	return site->resident_ns < LONG_NS ? RARELY_RESIDENT : RARELY_LONG;
}

bool spill_benefit_wants_sample(struct spill_migration_benefit *benefit, uint16_t site, uint64_t on_host)
{
	/*
	 * Each state has its own count: the number of layers that share a site often divides 256.
	 */
	struct spill_benefit_samples *seen =
	    on_host ? &benefit->sites[site].in_place : &benefit->sites[site].resident;
	uint32_t use = seen->uses++;
	if (!on_host && benefit->sites[site].closer) {
		benefit->sites[site].closer--;
		return true;
	}
	if (seen->measured < FEW && (use < FEW || !(use & (use - 1)) || use % SELDOM == 0))
		return true;
	return use % rarely(&benefit->sites[site], on_host) == 0;
}

/* value * by / of, at most LONGEST_NS; inexact for large values. pre: of != 0 */
static uint64_t scaled(uint64_t value, uint64_t by, uint64_t of)
{
	uint64_t product;
	if (!__builtin_mul_overflow(value, by, &product))
		product /= of;
	else if (__builtin_mul_overflow(value / of, by, &product))
		return LONGEST_NS;
	return spill_min(product, LONGEST_NS);
}

/*
 * The divisor by which the mean approaches the sample. 1: the mean becomes the sample, which is the
 * first one or the last of too many outliers. Counts the sample, and bounds an outlier.
 */
static unsigned weigh_sample(struct spill_benefit_samples *seen, uint64_t expected, uint64_t *sample)
{
	uint64_t low = expected / OUTLIER, high = spill_max(expected, 1) * OUTLIER;
	bool is_low = *sample <= low, is_high = *sample >= high;
	if (!seen->measured++)
		return 1;
	seen->measured += !seen->measured; /* never 0 again */
	if (!is_low && !is_high) {
		seen->odd = 0;
		return (unsigned)spill_min(seen->measured, SHARE);
	}
	if (is_low)
		seen->odd = seen->odd < 0 ? seen->odd - 1 : -1;
	else
		seen->odd = seen->odd > 0 ? seen->odd + 1 : 1;
	if (seen->odd == OUTLIERS_AT_MOST || seen->odd == -OUTLIERS_AT_MOST) {
		*seen = (struct spill_benefit_samples){.measured = 1, .uses = seen->uses};
		return 1;
	}
	*sample = is_low ? low : high;
	return SHARE * OUTLIER;
}

/* pre: both below 2^63 */
static void approach(uint64_t *mean, uint64_t sample, unsigned divisor)
{
	*mean = (uint64_t)((int64_t)*mean + ((int64_t)sample - (int64_t)*mean) / (int64_t)divisor);
}

/* Extra time of a launch in place. */
static uint64_t extra_ns(const struct spill_benefit_site *site)
{
	return site->in_place_ns > site->resident_ns ? site->in_place_ns - site->resident_ns : 0;
}

/* The size on the host differs from launch to launch: the mean is scaled to this size first. */
static void add_in_place(struct spill_benefit_site *site, uint64_t kib, uint64_t ns)
{
	uint64_t expected = 0;
	if (site->in_place.measured)
		expected =
		    site->in_place_ns - extra_ns(site) + scaled(extra_ns(site), kib, site->in_place_kib);
	unsigned divisor = weigh_sample(&site->in_place, expected, &ns);
	approach(&site->in_place_ns, ns, divisor);
	approach(&site->in_place_kib, kib, divisor);
}

void spill_benefit_add_use(struct spill_migration_benefit *benefit, uint16_t site, uint64_t on_host,
                           uint64_t ns)
{
	struct spill_benefit_site *one = &benefit->sites[site];
	ns = spill_min(spill_max(ns, 1), LONGEST_NS);
	if (on_host) {
		add_in_place(one, spill_min(spill_max(on_host >> 10, 1), KIB_MOST), ns);
	} else {
		one->least_ns = one->least_ns ? spill_min(one->least_ns, ns) : ns;
		benefit->shortest_ns = benefit->shortest_ns ? spill_min(benefit->shortest_ns, ns) : ns;
		unsigned divisor = weigh_sample(&one->resident, one->resident_ns, &ns);
		approach(&one->resident_ns, ns, divisor);
	}
}

void spill_benefit_add_bound(struct spill_migration_benefit *benefit, uint16_t site, uint64_t on_host,
                             uint64_t ns)
{
	struct spill_benefit_site *one = &benefit->sites[site];
	uint64_t *bound = on_host ? &one->bound_ns : &one->brief_ns;
	ns = spill_max(spill_min(ns, LONGEST_NS), 1);
	*bound = *bound ? *bound - *bound / SHARE + ns / SHARE : ns;
}

uint64_t spill_benefit_most_lost(const struct spill_migration_benefit *benefit, uint16_t site)
{
	const struct spill_benefit_site *one = &benefit->sites[site];
	bool known = one->bound_ns && !one->in_place.measured && site != SPILL_BENEFIT_SITES - 1;
	return known ? one->bound_ns : UINT64_MAX;
}

uint64_t spill_benefit_most_resident(const struct spill_migration_benefit *benefit, uint16_t site)
{
	const struct spill_benefit_site *one = &benefit->sites[site];
	if (one->resident.measured)
		return one->resident_ns;
	return one->brief_ns ? one->brief_ns : UINT64_MAX;
}

bool spill_benefit_is_unexplained(const struct spill_migration_benefit *benefit, uint16_t site, uint64_t ns)
{
	uint64_t least_ns = benefit->sites[site].least_ns;
	return least_ns && ns / UNEXPLAINED > least_ns && ns - least_ns > UNEXPLAINED_NS;
}

void spill_benefit_look_closer(struct spill_migration_benefit *benefit, uint16_t site)
{
	benefit->sites[site].closer = CLOSER;
}

void spill_benefit_add_chunk_use(struct spill_migration_benefit *benefit, uint16_t site, uint32_t key,
                                 uint64_t on_host, uint64_t ns)
{
	spill_site_chunk_cost_add(&benefit->pairs, site, key,
	                          spill_min(spill_max(on_host >> 10, 1), KIB_MOST),
	                          spill_min(ns, LONGEST_NS));
}

void spill_benefit_add_copy(struct spill_migration_benefit *benefit, uint64_t bytes, uint64_t ns)
{
	if (!bytes)
		return;
	if (!benefit->copies.measured) {
		benefit->copies.measured = KNOWN;
		benefit->copy_ns_per_mib = SPILL_BENEFIT_COPY_NS_PER_MIB;
	}
	uint64_t sample = spill_max(scaled(spill_min(ns, LONGEST_NS), MIB, bytes), 1);
	/*
	 * At first one exchange of five takes two or three times as long, because the driver makes
	 * device memory (measured, H200). Mostly that becomes rarer, so the usual time counts.
	 */
	bool settled = benefit->copies.measured >= SETTLED;
	if (!settled && sample < OUTLIER * benefit->copy_ns_per_mib)
		sample = spill_min(sample, benefit->copy_ns_per_mib * 3 / 2);
	unsigned divisor = weigh_sample(&benefit->copies, benefit->copy_ns_per_mib, &sample);
	if (settled && divisor == SHARE)
		divisor = SETTLED_SHARE;
	approach(&benefit->copy_ns_per_mib, sample, divisor);
	benefit->forget_ns = 0;
}

void spill_benefit_add_lead(struct spill_migration_benefit *benefit, uint64_t bytes, uint64_t ns)
{
	if (bytes)
		approach(&benefit->lead_ns_per_mib, scaled(spill_min(ns, LONGEST_NS), MIB, bytes), SHARE);
}

void spill_benefit_doubt_copies(struct spill_migration_benefit *benefit, uint64_t now_ns)
{
	if (spill_benefit_copy_cost(benefit) <= SPILL_BENEFIT_COPY_NS_PER_MIB)
		return;
	if (!benefit->forget_ns) {
		benefit->doubted_ns = spill_max(benefit->doubted_ns, DOUBT_NS);
		benefit->forget_ns = now_ns + benefit->doubted_ns;
	} else if (now_ns >= benefit->forget_ns) {
		benefit->copy_ns_per_mib = benefit->lead_ns_per_mib = 0;
		benefit->copies = (struct spill_benefit_samples){0};
		benefit->forget_ns = 0;
		benefit->doubted_ns = spill_min(2 * benefit->doubted_ns, DOUBT_MOST_NS);
	}
}

uint64_t spill_benefit_excess(const struct spill_migration_benefit *benefit, uint16_t site)
{
	const struct spill_benefit_site *one = &benefit->sites[site];
	if (!one->in_place.measured)
		return spill_benefit_copy_cost(benefit);
	return scaled(extra_ns(one), MIB >> 10, one->in_place_kib);
}

uint64_t spill_benefit_chunk_excess(const struct spill_migration_benefit *benefit, uint16_t site,
                                    uint32_t key)
{
	const struct spill_site_chunk_cost *pair = spill_site_chunk_cost_find(&benefit->pairs, site, key);
	uint64_t resident = benefit->sites[site].resident_ns;
	if (!pair)
		return spill_benefit_excess(benefit, site);
	return pair->ns > resident ? scaled(pair->ns - resident, MIB >> 10, pair->kib) : 0;
}

uint64_t spill_benefit_guessed_excess(const struct spill_migration_benefit *benefit, uint16_t site,
                                      uint32_t key, uint64_t mib)
{
	const struct spill_benefit_site *one = &benefit->sites[site];
	uint64_t excess = spill_benefit_chunk_excess(benefit, site, key);
	if (one->in_place.measured || spill_site_chunk_cost_find(&benefit->pairs, site, key))
		return excess;
	uint64_t most_ns = spill_benefit_most_lost(benefit, site);
	if (one->resident.measured) {
		uint64_t empty_ns = spill_min(benefit->shortest_ns, EMPTY_MOST_NS);
		most_ns = spill_min(most_ns, scaled(one->resident_ns - empty_ns, LINK_SLOWER, 1));
	}
	return spill_min(excess, most_ns / mib);
}

uint64_t spill_benefit_expected(const struct spill_migration_benefit *benefit, uint16_t site,
                                uint64_t on_host, uint64_t excess_ns)
{
	return benefit->sites[site].resident_ns + scaled(excess_ns, on_host, MIB);
}

uint64_t spill_benefit_copy_cost(const struct spill_migration_benefit *benefit)
{
	uint64_t copy_ns =
	    benefit->copy_ns_per_mib ? benefit->copy_ns_per_mib : SPILL_BENEFIT_COPY_NS_PER_MIB;
	return copy_ns + benefit->lead_ns_per_mib;
}

bool spill_benefit_pays(const struct spill_migration_benefit *benefit, uint64_t excess_ns, bool moved_so_far)
{
	uint64_t cost = spill_benefit_copy_cost(benefit);
	if (moved_so_far || excess_ns > UINT64_MAX / 5)
		return excess_ns > cost;
	return 5 * excess_ns >= 6 * cost;
}

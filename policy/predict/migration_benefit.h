/*
 * Does it pay to migrate memory to the device? Learned from measured times. A site is code that
 * accesses memory: a kernel with its grid, named by the caller's hash. The model has the time of a
 * site with some of its memory on the host, and with none. Memory that is read once costs the time
 * of the link in place, and a migration gains nothing. Memory that is read again costs many times
 * that.
 *
 * All memory is in the struct. Zeroed, it knows nothing. Times are ns, sizes bytes.
 */
#ifndef SPILL_MIGRATION_BENEFIT_H
#define SPILL_MIGRATION_BENEFIT_H

#include "site_chunk_cost.h"

/*
 * Most sites. The last one stands for all that find no free place: none before some 1,500 are
 * known. A site's number has 16 bits (access_history.h).
 */
#define SPILL_BENEFIT_SITES 2048
/* Default: an exchange of 128 MiB each way takes 3.7 ms (H200; docs/measurements.md). */
#define SPILL_BENEFIT_COPY_NS_PER_MIB 29000

/* The samples of a running mean. */
struct spill_benefit_samples {
	uint32_t measured; /* number of samples; 0: no mean yet */
	uint32_t uses;     /* launches so far */
	int32_t odd;       /* outliers in a row; negative: far too short */
};

/* Launches, and their memory on the host. */
struct spill_benefit_waiting {
	uint64_t launches, kib;
};

struct spill_benefit_site {
	uint64_t hash;         /* 0: free */
	uint64_t resident_ns;  /* mean time of a launch with all memory on the device */
	uint64_t least_ns;     /* least time of such a launch */
	uint64_t in_place_ns;  /* mean time of a launch with some memory on the host */
	uint64_t in_place_kib; /* mean size of that memory */
	uint64_t bound_ns;     /* spill_benefit_add_bound, in place: a mean; 0: none */
	uint64_t brief_ns;     /* the same with all memory on the device */
	uint32_t closer;       /* so many launches are timed, because one took unexplained time */
	/* in_place_cost.h: launches in place without a known time, and those of them that count by now. */
	struct spill_benefit_waiting waiting, counted;
	struct spill_benefit_samples resident, in_place;
};

struct spill_migration_benefit {
	struct spill_benefit_site sites[SPILL_BENEFIT_SITES];
	struct spill_site_chunk_costs pairs;
	uint64_t shortest_ns;     /* least time of any launch with all memory on the device; 0: none */
	uint64_t copy_ns_per_mib; /* measured; 0: SPILL_BENEFIT_COPY_NS_PER_MIB */
	uint64_t lead_ns_per_mib; /* spill_benefit_add_lead: a mean */
	struct spill_benefit_samples copies;
	uint64_t forget_ns, doubted_ns; /* spill_benefit_doubt_copies: when, and how long; 0: unknown */
};

/*
 * The site of that hash, added if new. Always below SPILL_BENEFIT_SITES. Takes a few ns if known.
 */
uint16_t spill_benefit_site(struct spill_migration_benefit *benefit, uint64_t hash);

/*
 * Should this launch be timed? The two states, with `on_host` bytes on the host or with none, are
 * counted apart. Yes for the first few of a state, then rarely, because times change: every 256th, and
 * more often with all memory on the device, because then something unknown may be on the host.
 * If the samples do not arrive, it asks less and less often. Counts the launch.
 * pre: site < SPILL_BENEFIT_SITES
 */
bool spill_benefit_wants_sample(struct spill_migration_benefit *benefit, uint16_t site, uint64_t on_host);

/*
 * Adds a sample: a launch took `ns` with `on_host` bytes on the host (0: all resident). It moves a
 * running mean. An outlier, an eighth or 8 times the mean, moves it less. The third outlier in a
 * row becomes the mean. pre: site < SPILL_BENEFIT_SITES
 */
void spill_benefit_add_use(struct spill_migration_benefit *benefit, uint16_t site, uint64_t on_host,
                           uint64_t ns);

/*
 * A launch with `on_host` bytes on the host (0: all resident) took `ns` at most. For spill_benefit_most_lost and
 * spill_benefit_most_resident only: no time is compared with it.
 * pre: as above
 */
void spill_benefit_add_bound(struct spill_migration_benefit *benefit, uint16_t site, uint64_t on_host,
                             uint64_t ns);

/*
 * ns that such a launch lost at most, as a mean of bounds, with its time on the device. UINT64_MAX: nobody knows, its time in place was measured,
 * or the site stands for many. pre: as above
 */
uint64_t spill_benefit_most_lost(const struct spill_migration_benefit *benefit, uint16_t site);

/* ns of such a launch with all memory on the device, at most if it was never measured; UINT64_MAX: nobody knows. pre: as above */
uint64_t spill_benefit_most_resident(const struct spill_migration_benefit *benefit, uint16_t site);

/*
 * A launch took far longer than others of its site, though all memory that it is known to access was
 * on the device. So it accessed more, or does other work. pre: as above
 */
bool spill_benefit_is_unexplained(const struct spill_migration_benefit *benefit, uint16_t site, uint64_t ns);

/* The next launches of the site with all memory on the device are timed. pre: as above */
void spill_benefit_look_closer(struct spill_migration_benefit *benefit, uint16_t site);

/*
 * Adds the sample for one chunk on the host (site_chunk_cost.h). pre: as above; on_host, key != 0
 */
void spill_benefit_add_chunk_use(struct spill_migration_benefit *benefit, uint16_t site, uint32_t key,
                                 uint64_t on_host, uint64_t ns);

/* Adds a sample of the copy: `bytes` to the device, and as many back, took `ns`. */
void spill_benefit_add_copy(struct spill_migration_benefit *benefit, uint64_t bytes, uint64_t ns);

/* The same: the device was idle for so long behind such a copy (exchange_lead.h). */
void spill_benefit_add_lead(struct spill_migration_benefit *benefit, uint64_t bytes, uint64_t ns);

/*
 * ns by which a MiB on the host makes a launch of the site slower. Without a sample in place: the
 * time of one read over the link. Without a resident sample: the whole time in place, so the real
 * gain may be smaller.
 */
uint64_t spill_benefit_excess(const struct spill_migration_benefit *benefit, uint16_t site);

/* The same for one chunk if it was measured, else for the site. pre: key != 0 */
uint64_t spill_benefit_chunk_excess(const struct spill_migration_benefit *benefit, uint16_t site,
                                    uint32_t key);

/*
 * The same, of a launch that names `mib` of memory. If its code was only seen with all memory on the device, it read no more than
 * the device can read in the time by which it is longer than an empty launch: a kernel of a few us reads little of a large table.
 * And it lost no more than spill_benefit_most_lost. pre: key != 0, mib != 0
 */
uint64_t spill_benefit_guessed_excess(const struct spill_migration_benefit *benefit, uint16_t site,
                                      uint32_t key, uint64_t mib);

/*
 * ns of a launch with `on_host` bytes on the host, at `excess_ns` a MiB. Unknown times count as 0.
 */
uint64_t spill_benefit_expected(const struct spill_migration_benefit *benefit, uint16_t site,
                                uint64_t on_host, uint64_t excess_ns);

/*
 * By what copies cost, memory stays on the host. Without exchanges the cost is not measured again,
 * and the link may only have been busy. So it is forgotten some time after the last sample, each
 * time later: 10 s at first, 10 minutes at most. A cost below the default is kept.
 */
void spill_benefit_doubt_copies(struct spill_migration_benefit *benefit, uint64_t now_ns);

/* ns to bring a MiB to the device, with the lead that the program loses. */
uint64_t spill_benefit_copy_cost(const struct spill_migration_benefit *benefit);

/*
 * Does it pay to promote memory that costs `excess_ns` a MiB, over all predicted accesses of its
 * stay? With hysteresis: it must cost 1.2 times the copy if it stayed in place so far, and more
 * than the copy if it was moved so far. Both times are measured to some per cent, so this is
 * enough.
 */
bool spill_benefit_pays(const struct spill_migration_benefit *benefit, uint64_t excess_ns, bool moved_so_far);

#endif

/*
 * Whether it pays to have memory on the device, learned from measured times: of each site that uses memory
 * (a kernel with its grid, told by the caller's hash) how long it took with some of its memory on the host,
 * and with none. What is read once takes the link's time in place and gains nothing by being copied; what
 * is read again and again takes many times that.
 *
 * Pure: the memory is the caller's, all of it in the struct; zeroed, it knows nothing. Times are ns, sizes
 * bytes.
 */
#ifndef SPILL_MIGRATION_BENEFIT_H
#define SPILL_MIGRATION_BENEFIT_H

#include "site_chunk_cost.h"

/*
 * Sites that can be told apart. The last stands for all that came when the places that they could have had
 * were taken: none before some 1,500 are known. 16 bits (order.h).
 */
#define SPILL_BENEFIT_SITES 2048
/*
 * Until something is measured: an exchange of 128 MiB each way takes 3.7 ms, half as long again as the copy (measured, H200; docs/measurements.md).
 */
#define SPILL_BENEFIT_COPY_NS_PER_MIB 29000

/* How a running mean came to be. */
struct spill_benefit_samples {
	uint32_t measured; /* how often; 0: the mean is not known */
	uint32_t uses;     /* so far */
	int32_t odd;       /* outliers in a row by now; negative: far too short */
};

struct spill_benefit_site {
	uint64_t hash;        /* 0: free */
	uint64_t resident_ns; /* the whole launch, with nothing on host */
	uint64_t in_place_ns; /* likewise, with so much on host, in KiB: both are means */
	uint64_t in_place_kib;
	struct spill_benefit_samples resident, in_place;
};

struct spill_migration_benefit {
	struct spill_benefit_site sites[SPILL_BENEFIT_SITES];
	struct spill_site_chunk_costs pairs;
	uint64_t copy_ns_per_mib; /* of the link, as moves were seen; 0: SPILL_BENEFIT_COPY_NS_PER_MIB */
	struct spill_benefit_samples copies;
};

/*
 * The site of that hash, made if it is new: always below SPILL_BENEFIT_SITES. Constant time, a few ns when it
 * is known.
 */
uint16_t spill_benefit_site(struct spill_migration_benefit *reuse, uint64_t hash);

/*
 * Should this use be timed? Yes for the first few in each state (with `on_host` bytes of its memory on
 * host, or with 0), and then rarely (every 256th): times change with what else runs. The first few are over
 * when as many are measured; if that does not happen, because what is timed is not told, it is asked for
 * less and less. Counts the use. pre: site < SPILL_BENEFIT_SITES
 */
bool spill_benefit_wants_sample(struct spill_migration_benefit *reuse, uint16_t site, uint64_t on_host);

/*
 * It took `ns` with so many bytes on host (0: all resident). A running mean that forgets; an outlier (an
 * eighth or 8 times of the mean) moves it less, until a third in a row says that it is the mean that is
 * wrong. pre: site < SPILL_BENEFIT_SITES
 */
void spill_benefit_add_use(struct spill_migration_benefit *reuse, uint16_t site, uint64_t on_host,
                           uint64_t ns);

/*
 * The same use, of one of the chunks that it had on host (pairs.h). pre: site < SPILL_BENEFIT_SITES, on_host and key are not 0
 */
void spill_benefit_add_chunk_use(struct spill_migration_benefit *reuse, uint16_t site, uint32_t key,
                                 uint64_t on_host, uint64_t ns);

/* Moves took `ns` for `bytes` to the device (with as much the other way). Likewise a running mean. */
void spill_benefit_add_copy(struct spill_migration_benefit *reuse, uint64_t bytes, uint64_t ns);

/*
 * ns that a MiB on host costs a use at that site beyond what it costs on the device. Not measured in place
 * yet: what reading it once costs, which is the link's time. Not measured on the device yet: as if it took
 * no time there, so the gain may turn out smaller.
 */
uint64_t spill_benefit_excess(const struct spill_migration_benefit *reuse, uint16_t site);

/* The same of one chunk, if that was measured; else the site's. pre: key is not 0 */
uint64_t spill_benefit_chunk_excess(const struct spill_migration_benefit *reuse, uint16_t site, uint32_t key);

/* ns that a use at that site takes with so much on host, of which a MiB costs `excess_ns`; what is not known counts nothing. */
uint64_t spill_benefit_expected(const struct spill_migration_benefit *reuse, uint16_t site, uint64_t on_host,
                                uint64_t excess_ns);

/* ns to bring a MiB to the device. */
uint64_t spill_benefit_copy_cost(const struct spill_migration_benefit *reuse);

/*
 * Does it pay to bring memory that costs `excess_ns` a MiB (all foreseen uses of one stay together)?
 * Hysteresis: from 1.2 times the cost on if it stayed in place so far; as long as it is more than once the
 * cost if it was moved so far. No more than that: times in place and of moves both are measured, to some per cent.
 */
bool spill_benefit_pays(const struct spill_migration_benefit *reuse, uint64_t excess_ns, bool moved_so_far);

#endif

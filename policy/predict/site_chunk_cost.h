/*
 * Measured times of in-place access, for each pair of a site and a chunk on the host. A mean for
 * the site is not enough: one kernel serves many layers and operands. It may read one chunk once,
 * another one many times, and a third not at all (shim/hints.h). For one kernel in a step of
 * training, 16 MiB on the host cost 0.2 ms or 10.3 ms more than on the device.
 *
 * All memory is in the struct. Zeroed, it is empty. Times are ns.
 */
#ifndef SPILL_SITE_CHUNK_COST_H
#define SPILL_SITE_CHUNK_COST_H

#include <stdbool.h>
#include <stdint.h>

/* Pairs that are kept. If there is no free place, a new pair replaces another one. */
#define SPILL_SITE_CHUNK_COSTS 32768

struct spill_site_chunk_cost {
	uint32_t key; /* of the chunk; 0: free */
	uint16_t site;
	uint8_t measured : 7; /* number of samples; it stops at 127 */
	uint8_t stale : 1;    /* the next sample replaces them */
	uint8_t wanted;       /* calls of wants_sample, modulo 256 */
	uint64_t ns;          /* running mean of the time of the whole launch */
	uint64_t kib;         /* and of all its memory on the host */
};

struct spill_site_chunk_costs {
	struct spill_site_chunk_cost pairs[SPILL_SITE_CHUNK_COSTS];
	uint32_t turn; /* the place to replace next */
};

/* NULL: it was never measured. pre for all functions: key != 0 */
const struct spill_site_chunk_cost *spill_site_chunk_cost_find(const struct spill_site_chunk_costs *costs,
                                                               uint16_t site, uint32_t key);

/*
 * Should this access be timed? `kib`: all its memory on the host. Yes until there is a sample, but
 * less and less often. Then rarely (every 64th), because the contents of a chunk change. Yes, too, if
 * the sample was with half or twice as much on the host: the first launches name the whole rest of an
 * allocation, until other buffers are known to begin in it (shim/hints.h). Counts the access. Clears
 * *known if there is no such sample.
 */
bool spill_site_chunk_cost_wants_sample(struct spill_site_chunk_costs *costs, uint16_t site, uint32_t key,
                                        uint64_t kib, bool *known);

/*
 * Adds a sample: a launch took `ns` with `kib` on the host, this chunk among them. With half or twice as
 * much as before it replaces the mean.
 */
void spill_site_chunk_cost_add(struct spill_site_chunk_costs *costs, uint16_t site, uint32_t key,
                               uint64_t kib, uint64_t ns);

#endif

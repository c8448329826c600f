/*
 * How long uses took in place, of each pair of a site and a chunk that was on host. A site alone says too little: one kernel
 * serves many layers and operands, of which one is read once, one again and again, and one not at all (it lies beside what is:
 * shim/hints.h). Measured of one kernel in a step of training, 16 MiB on host: 0.2 ms more than on the device, or 10.3 ms.
 *
 * Pure: the memory is the caller's, all of it in the struct; zeroed, it is empty. Times are ns.
 */
#ifndef SPILL_SITE_CHUNK_COST_H
#define SPILL_SITE_CHUNK_COST_H

#include <stdbool.h>
#include <stdint.h>

/* That can be told apart; where the places that a new one could have are taken it takes another's. */
#define SPILL_SITE_CHUNK_COSTS 32768

struct spill_site_chunk_cost {
	uint32_t key; /* of the chunk; 0: free */
	uint16_t site;
	uint8_t measured; /* more than once, 255 stands for all */
	uint8_t wanted;   /* how often it was asked, modulo 256 */
	uint64_t ns;      /* the whole use, and */
	uint64_t kib;     /* all that it had on host: running means that forget fast */
};

struct spill_site_chunk_costs {
	struct spill_site_chunk_cost pairs[SPILL_SITE_CHUNK_COSTS];
	uint32_t turn; /* which of the places is taken next */
};

/* NULL: it was never measured. pre, of all: key is not 0 */
const struct spill_site_chunk_cost *spill_site_chunk_cost_find(const struct spill_site_chunk_costs *pairs,
                                                               uint16_t site, uint32_t key);

/*
 * Should this use be timed? Until it is measured, but less and less if that does not happen; then rarely (every 64th): where
 * things lie in a chunk changes. Counts the use.
 */
bool spill_site_chunk_cost_wants_sample(struct spill_site_chunk_costs *pairs, uint16_t site, uint32_t key);

/* A use took `ns` with `kib` on host, this chunk among it. */
void spill_site_chunk_cost_add(struct spill_site_chunk_costs *pairs, uint16_t site, uint32_t key,
                               uint64_t kib, uint64_t ns);

#endif

/*
 * Estimates how much memory on the host launches used where it is, and by how much they took longer.
 * For reports, and to compare it with the time of moves (swap_window.h). A launch whose time is known from its chunks
 * (migration_benefit.h) counts at once. The others wait for the next launch of their site that is
 * measured, and count with its time.
 *
 * Two things are not known, so the time is a range. If a site never ran with all memory on the device,
 * nobody knows how long it takes there. And a launch names whole buffers, but may read a small part of
 * them. Then its bytes are at most what a link carries in its time.
 *
 * A graph is one launch. Copies and sets do not count, because they name whole chunks.
 */
#ifndef SPILL_IN_PLACE_COST_H
#define SPILL_IN_PLACE_COST_H

#include <stdbool.h>

#include "migration_benefit.h"

struct spill_in_place_cost {
	uint64_t named_kib;   /* on the host, of launches with a known time */
	uint64_t bytes;       /* used by them */
	uint64_t ns, most_ns; /* by which they took longer, and at most */
	uint64_t unknown_kib; /* on the host, of launches that wait */
};

/*
 * Adds a launch with `on_host` bytes on the host, which is expected to take `ns`
 * (spill_benefit_expected). `known`: this is known of all of its chunks that are looked at. If not, it
 * waits. pre: as in migration_benefit.h; on_host != 0
 */
void spill_in_place_cost_add(struct spill_in_place_cost *cost, struct spill_migration_benefit *benefit,
                             uint16_t site, uint64_t on_host, uint64_t ns, bool known);

/* A launch of the site took `ns`. Those that waited when it was submitted count as such. */
void spill_in_place_cost_measured(struct spill_in_place_cost *cost, struct spill_migration_benefit *benefit,
                                  uint16_t site, struct spill_benefit_waiting waited, uint64_t ns);

/*
 * For `rested_ns` no launches were added. They count as if in each ns as much had been used in place, and lost, as in the
 * `watched_ns` before: `*since` was *cost then, and launches lost `lost_ns` at most since then. pre: watched_ns != 0
 */
void spill_in_place_cost_rested(struct spill_in_place_cost *cost, const struct spill_in_place_cost *since,
                                uint64_t lost_ns, uint64_t watched_ns, uint64_t rested_ns);

/* The process ends: launches that still wait count with the mean time of their site, if it has one. */
void spill_in_place_cost_end(struct spill_in_place_cost *cost, struct spill_migration_benefit *benefit);

struct spill_in_place_sums {
	uint64_t bytes, ns, most_ns; /* most_ns == 0 with bytes: not known */
};

/*
 * The sums so far, and no more than fits into `run_ns`, the time since the first such launch. `all`: also
 * of launches without a known time, in proportion. If none is known, there are only bytes.
 */
struct spill_in_place_sums spill_in_place_cost_sums(const struct spill_in_place_cost *cost, uint64_t run_ns,
                                                    bool all);

#endif

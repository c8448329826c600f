/*
 * Swaps: chunks change places for good. An exchange (exchange_choice.h) brings what is needed now, and what leaves for it is
 * needed again. Where memory is read only a few times in a row, that costs more than reading it in place. But chunks differ
 * in what they cost in place. So the dearest ones on the host take the places of the cheapest ones on the device. Memory
 * that the program holds and does not use costs nothing in place, so it goes first.
 *
 * A chunk that was never on the host is judged by the code that accesses it (site_chunk_cost.h), and by how long that takes on the
 * device: a launch that names a large table and takes a few us reads little of it. If that was wrong, its cost is known once it is
 * there, and a swap brings it back.
 */
#ifndef SPILL_PLACEMENT_SWAP_H
#define SPILL_PLACEMENT_SWAP_H

#include "exchange_choice.h"

/*
 * Chooses among the chunks of an exchange, up to its slice or one chunk, no matter what is needed; true if a chunk comes. No
 * needed chunk leaves. `since`: the first access of the window that is looked at (swap_window.h). What swaps would have saved
 * its copies in it. Overwrites the results of spill_exchange_choose. Sets the verdicts, comes, goes, and excess_ns: of the
 * choice, what a MiB of the dearest chunk cost in the window; of each chunk, what a MiB of it cost there, or would have cost.
 * Time: the accesses of the window.
 */
bool spill_placement_swap(struct spill_exchange_choice *choice, const struct spill_access_history *history,
                          uint64_t since, const struct spill_migration_benefit *benefit);

/*
 * ns that accesses since that one would have cost in place, had no exchange displaced any chunk. UINT64_MAX: they have too
 * many chunks to tell. Overwrites the results of a choice, as above.
 */
uint64_t spill_placement_home_cost(struct spill_exchange_choice *choice,
                                   const struct spill_access_history *history, uint64_t since,
                                   const struct spill_migration_benefit *benefit);

#endif

/*
 * The allocations that could move, in the order in which they would (policy/decide/victim.h).
 */
#ifndef SPILL_VICTIM_LIST_H
#define SPILL_VICTIM_LIST_H

#include "chunked.h"
#include "victim.h"

/*
 * Those of a device with something on the device, who leaves first first; or, on_host, with something on host, who comes back
 * first first; of a vendor whose memory can move. `before`: only those of a lower seq; 0: all. What is pinned is none. Their .data is the struct spill_chunked.
 * The list is the caller's to free(3); NULL, with *count 0, if there is none. pre: the mover is held
 */
struct spill_victim *spill_victim_list(int device, bool on_host, uint64_t before, unsigned *count);

#endif

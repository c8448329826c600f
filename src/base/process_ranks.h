/* The rank and the job of this process, from its environment. */
#ifndef SPILL_PROCESS_RANKS_H
#define SPILL_PROCESS_RANKS_H

#include "ranks.h"

/* Longer values are cut where they are written or become a part of a file's name. */
#define SPILL_RANK_BYTES 64

/*
 * The values of the variables. They point into the environment, so use them at once. In a
 * privileged program (AT_SECURE) all are NULL.
 */
struct spill_record_ranks spill_process_ranks(void);

#endif

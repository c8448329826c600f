/*
 * The mover's lock (SPILL_RANK_MOVER). It has the lowest rank, and no other lock is held across
 * vendor calls. The thread that holds it may move chunks, and meanwhile no enlisted allocation
 * (chunked.h) is released. That thread cannot be cancelled.
 */
#ifndef SPILL_MOVER_H
#define SPILL_MOVER_H

#include <stdbool.h>

void spill_mover_lock(void);
bool spill_mover_trylock(void); /* false if another thread has it */
void spill_mover_unlock(void);
bool spill_mover_wanted(void);  /* other threads wait for it: a holder that waits gives up */
bool spill_mover_busy(void);    /* some thread holds it now */
bool spill_mover_is_mine(void); /* the calling thread holds it, perhaps below a signal handler */

void spill_mover_fork_child(void);

#endif

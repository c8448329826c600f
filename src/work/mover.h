/*
 * The mover's lock, SPILL_RANK_MOVER: the lowest, and the only one that is held across vendor calls. The thread that holds it may
 * move chunks, and nothing that is enlisted (chunked.h) is released meanwhile. That thread cannot be cancelled.
 */
#ifndef SPILL_MOVER_H
#define SPILL_MOVER_H

#include <stdbool.h>

void spill_mover_lock(void);
bool spill_mover_trylock(void); /* false if another thread has it */
void spill_mover_unlock(void);
bool spill_mover_wanted(void);  /* others wait for it: a holder that waits for something else gives up */
bool spill_mover_busy(void);    /* somebody holds it at this moment */
bool spill_mover_is_mine(void); /* the calling thread holds it: a fork in a signal handler may find it so */

void spill_mover_fork_child(void);

#endif

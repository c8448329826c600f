/*
 * The mover's lock (SPILL_RANK_MOVER). Only the lock of trials has a lower rank, and no third one is
 * held across vendor calls. The thread that holds it may move chunks, and meanwhile no enlisted
 * allocation (chunked.h) is released. That thread cannot be cancelled.
 */
#ifndef SPILL_MOVER_H
#define SPILL_MOVER_H

#include <stdbool.h>

void spill_mover_lock(void);
bool spill_mover_trylock(void); /* false if another thread has it */
/* The same, and a flight goes on. For those who begin and end flights (gate.h). */
bool spill_mover_trylock_in_flight(void);
void spill_mover_unlock(void);
bool spill_mover_wanted(void);  /* other threads wait for it: a holder that waits gives up */
bool spill_mover_busy(void);    /* some thread holds it now */
bool spill_mover_is_mine(void); /* the calling thread holds it, perhaps below a signal handler */

/* From now on each thread that has taken the lock calls `land`, but for those above. It keeps errno. */
void spill_mover_use_landing(void (*land)(void));

void spill_mover_fork_child(void);

#endif

/*
 * Room for what is too much for a host program's smallest stack: a line of the log, a file of the kernel's. Not malloc, which may
 * be the program's own; no lock, so that a signal handler may have some in the middle of another's.
 */
#ifndef SPILL_SCRATCH_H
#define SPILL_SCRATCH_H

#include <stddef.h>

#define SPILL_SCRATCH ((size_t)12 << 10)

/* SPILL_SCRATCH bytes of no known content, for anything; NULL if the process may have no more pages. */
void *spill_scratch_take(void);

/* pre: taken, or NULL. What a thread never gives back is lost, as with a longjmp over us, and costs the others only speed. */
void spill_scratch_give_back(void *room);

#endif

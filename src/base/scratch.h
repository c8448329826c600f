/*
 * Memory for data that is too large for the program's smallest stack: a line of the log, a file of
 * the kernel's. It does not come from malloc, which may be the program's own. It takes no lock, so
 * a signal handler can take some while it interrupts another taker.
 */
#ifndef SPILL_SCRATCH_H
#define SPILL_SCRATCH_H

#include <stddef.h>

#define SPILL_SCRATCH ((size_t)12 << 10)

/* SPILL_SCRATCH bytes with undefined content; NULL if the process gets no more pages. */
void *spill_scratch_take(void);

/* pre: from spill_scratch_take, or NULL. A longjmp over us loses the block: takers get slower. */
void spill_scratch_give_back(void *room);

#endif

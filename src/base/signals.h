/* Blocks all signals of this thread, so that no handler of the program runs in between. */
#ifndef SPILL_SIGNALS_H
#define SPILL_SIGNALS_H

#include <pthread.h>
#include <signal.h>

/* `*before`: the signals that were blocked, for the restore. */
static inline void spill_signals_block(sigset_t *before)
{
	sigset_t all;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

static inline void spill_signals_restore(const sigset_t *before)
{
	pthread_sigmask(SIG_SETMASK, before, NULL);
}

#endif

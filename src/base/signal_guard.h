/*
 * A section in which we may write to a descriptor inside somebody else's program: what a write can do to its
 * thread besides writing is undone. No cancellation, no SIGPIPE, no SIGXFSZ, errno as it was.
 */
#ifndef SPILL_SIGNAL_GUARD_H
#define SPILL_SIGNAL_GUARD_H

#include <signal.h>
#include <stdbool.h>

struct spill_signal_guard {
	sigset_t mask;    /* the thread's own */
	sigset_t pending; /* of our two signals: those that were there before us and are not ours to take */
	int cancel, error;
};

/* Five system calls at most for the pair. Sections nest. Async-signal-safe where glibc's primitives are. */
void spill_signal_guard_enter(struct spill_signal_guard *quiet);
void spill_signal_guard_leave(struct spill_signal_guard *quiet);

#endif

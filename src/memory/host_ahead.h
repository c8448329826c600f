/*
 * The thread that makes host chunks ahead of need (host.ahead): started when there is something to be made, gone again when
 * nothing was for a while, so that it keeps no process alive whose own threads have ended. No signal is ever delivered to
 * it. At exit it has left the vendor's calls, and has ended, before the handlers run that were there before it, the vendor's
 * among them.
 */
#ifndef SPILL_HOST_AHEAD_H
#define SPILL_HOST_AHEAD_H

#include <stdbool.h>

/* Has the thread call spill_host_chunks_make (host_chunks.h) until that returns false. pre: no lock of ours is held */
void spill_host_ahead_wake(void);

/* In a forked child there is no such thread; it gets its own. */
void spill_host_ahead_fork_child(void);

#endif

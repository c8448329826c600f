/*
 * base: safe primitives inside somebody else's process: files, locks' ranks, the clock, names, what is loaded. This header: the
 * policy in force and what each thread is doing, set once by the runtime (runtime.c).
 *
 * It calls no vendor, keeps no account of memory and writes no log. Begin with this header, then lock.h and fd.h.
 */
#ifndef SPILL_PROCESS_H
#define SPILL_PROCESS_H

#include <pthread.h>
#include <stdbool.h>

#include "policy.h"

struct spill_request;

struct spill_thread {
	unsigned depth;              /* > 0: inside a request of ours, or switched off for this thread */
	struct spill_request *frame; /* innermost runtime call on this thread's stack */
};

extern __thread struct spill_thread spill_thread __attribute__((tls_model("initial-exec")));

/*
 * Calls that this thread makes until the end are ours: they pass through, and the thread cannot be cancelled there.
 * Returns the value that spill_ours_end takes.
 */
static inline int spill_ours_begin(void)
{
	int cancel;
	spill_thread.depth++;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	return cancel;
}

static inline void spill_ours_end(int cancel)
{
	pthread_setcancelstate(cancel, NULL);
	if (spill_thread.depth) /* after a fork in between it is 0 */
		spill_thread.depth--;
}

/* The policy in force. Before the start an empty one: every member is 0. */
const struct spill_policy *spill_process_policy(void);

/* Sets it. `policy` must live as long as the process. */
void spill_process_use_policy(const struct spill_policy *policy);

static inline bool spill_process_observes(void)
{
	return spill_process_policy()->mode == SPILL_MODE_OBSERVE;
}

#endif

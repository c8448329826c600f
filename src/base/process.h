/*
 * base: safe primitives inside a foreign process: files, lock ranks, the clock, names, loaded
 * objects. This header has the facts of the process: its policy, its program's name, and the state
 * of each thread.
 *
 * base calls no vendor, keeps no account of memory and writes no log. Begin with this header, then
 * lock.h and fd.h.
 */
#ifndef SPILL_PROCESS_H
#define SPILL_PROCESS_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "policy.h"

struct spill_request;

struct spill_thread {
	unsigned depth;              /* > 0: in a call of ours, or switched off for this thread */
	struct spill_request *frame; /* innermost runtime call on this thread's stack */
};

extern __thread struct spill_thread spill_thread __attribute__((tls_model("initial-exec")));

/*
 * Marks the calls of this thread as our own until the end: they pass through, and the thread is not
 * cancelled. Returns the value for spill_ours_end.
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
	if (spill_thread.depth) /* 0 if the process forked since the begin */
		spill_thread.depth--;
}

extern const struct spill_policy *_Atomic spill_policy_in_force;

/*
 * The policy in force. Before the start an empty one: every member is 0. Inline, because a request
 * asks several times.
 */
static inline const struct spill_policy *spill_process_policy(void)
{
	return atomic_load_explicit(&spill_policy_in_force, memory_order_acquire);
}

/* Sets the policy in force. `policy` must live as long as the process. */
void spill_process_use_policy(const struct spill_policy *policy);

static inline bool spill_process_observes(void)
{
	return spill_process_policy()->mode == SPILL_MODE_OBSERVE;
}

/*
 * Writes the path of the program's executable file into path[size]; "" if it cannot be told. The
 * kernel ends it with " (deleted)" if the file is gone. Keeps errno.
 */
void spill_program_path(char *path, size_t size);

/*
 * Writes the program's name into name[size]: the file name of the executable, or of the script or
 * -m module that an interpreter runs. PROGRAM.conf, [app NAME], %e and the loud line use it.
 */
void spill_program_name(char *name, size_t size);

/* Bytes of a command line that are searched for a script. */
#define SPILL_PROGRAM_WORDS 4096

/*
 * The part of it for interpreters. `name` is an executable's file name; `words` is its command
 * line, each word with its NUL. If it is an interpreter that runs a script or module, `name`
 * becomes that one's.
 */
void spill_program_script(char *name, size_t size, const char *words, size_t length);

#endif

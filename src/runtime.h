/*
 * The library's life in a process: started lazily at the first hooked call (other libraries' constructors may
 * come before ours), per-thread guard, fork, exit. Nothing here ends or harms the host program: what cannot be
 * done is passed through.
 */
#ifndef SPILL_RUNTIME_H
#define SPILL_RUNTIME_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backend.h"
#include "config.h"
#include "request.h"

/* What the engine needs of the shim; given at the first call, so that no arrow points from src to shim. */
struct spill_shim {
	spill_resolve_fn *resolve;
	/*
	 * Puts the true counts of calls by row and way in into exit_hits, as the exit line prints them; returns how
	 * many. Both buffers are as large as the table needs, static because _exit may be called on a signal
	 * handler's small stack, and used once: by the exit line.
	 */
	unsigned (*hits)(void);
	const struct spill_hits *exit_hits;
	char *exit_line;
	size_t exit_line_size;
	unsigned counters; /* of calls that pass the gate, for each thread (gate.h) */
	/* The function `symbol` of the library that has the vendor's function `real`, never one of ours; NULL if it has none. */
	void *(*beside)(const void *real, const char *symbol);
	void (*note_bypass)(void); /* notes what takes calls past us; asks the loader */
};

struct spill_thread {
	unsigned depth;              /* > 0: inside a request of ours, or switched off for this thread */
	struct spill_request *frame; /* innermost runtime call on this thread's stack */
};

extern __thread struct spill_thread spill_thread __attribute__((tls_model("initial-exec")));

/* What this thread calls until the end is ours: passed through, and not where it can be cancelled. Returns what the end takes. */
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
	if (spill_thread.depth) /* a fork in there began at 0 */
		spill_thread.depth--;
}

/* Starts the library if need be. False: it is off, or starting right now on this thread: pass through. */
bool spill_runtime_ready(const struct spill_shim *shim);

/* True once that was so: for calls that start nothing, because programs make them that use no GPU. */
bool spill_runtime_started(void);

unsigned spill_runtime_counters(void); /* as the shim says */
void *spill_runtime_beside(const void *real, const char *symbol);

const struct spill_policy *spill_runtime_policy(void);
static inline bool spill_runtime_observes(void)
{
	return spill_runtime_policy()->mode == SPILL_MODE_OBSERVE;
}

/* The vendor's functions, started at first use; NULL if the domain has none (CUDA_RUNTIME) or they are missing. */
const struct spill_backend *spill_runtime_backend(enum spill_domain domain);

/* The same if it was started before; so the program works with that vendor's GPUs. */
const struct spill_backend *spill_runtime_backend_in_use(enum spill_domain domain);

/* Opens the log with its start line at the first GPU memory call. pre: the vendor's driver is initialised */
void spill_runtime_log(const struct spill_backend *backend);

/* Writes the totals once, to stderr too where log.stderr says so, and what is buffered; `how` is "exit", "abort" …: the last line of the run. */
void spill_runtime_exit(const char *how);

/* Device bytes that this process may still take on `device` by its limit; SPILL_UNLIMITED without one. */
uint64_t spill_runtime_device_limit(const struct spill_backend *backend, int device);

#endif

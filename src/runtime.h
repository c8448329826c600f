/*
 * The library's life in a process: started lazily at the first hooked call (other libraries' constructors may
 * come before ours), per-thread guard, fork, exit. Nothing here ends or harms the host program: what cannot be
 * done is passed through.
 */
#ifndef SPILL_RUNTIME_H
#define SPILL_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "process.h"
#include "registry.h"

/* What the engine needs of the shim; given at the first call, so that no arrow points from src to shim. */
struct spill_hits;

struct spill_shim {
	struct spill_vendor_symbols symbols;
	/*
	 * Puts the true counts of calls by row and way in into exit_hits, as the exit line prints them; returns how
	 * many. Both buffers are as large as the table needs, static because _exit may be called on a signal
	 * handler's small stack, and used once: by the exit line.
	 */
	unsigned (*hits)(void);
	const struct spill_hits *exit_hits;
	char *exit_line;
	size_t exit_line_size;
	unsigned counters;         /* of calls that pass the gate, for each thread (gate.h) */
	void (*note_bypass)(void); /* notes what takes calls past us; asks the loader */
};

/* Starts the library if need be. False: it is off, or starting right now on this thread: pass through. */
bool spill_runtime_ready(const struct spill_shim *shim);

/* True once that was so: for calls that start nothing, because programs make them that use no GPU. */
bool spill_runtime_started(void);

/* Writes the totals once, to stderr too where log.stderr says so, and what is buffered; `how` is "exit", "abort" …: the last line of the run. */
void spill_runtime_exit(const char *how);

#endif

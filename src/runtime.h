/*
 * The library's life in a process: start, fork and exit, and a guard in each thread.
 *
 * The library starts at the first hooked call, because constructors of other libraries may run
 * before ours. Nothing here ends or harms the host program: if a step fails, calls are passed
 * through.
 */
#ifndef SPILL_RUNTIME_H
#define SPILL_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>

#include "process.h"
#include "registry.h"

/* The shim's part, given at the first call: src/ must not include headers of shim/. */
struct spill_hits;

struct spill_shim {
	struct spill_vendor_symbols symbols;
	/*
	 * Stores the counts of calls by row and way in exit_hits, as the exit line prints them, and
	 * returns their number. Both buffers are as large as the table needs. They are static,
	 * because _exit may be called on a signal handler's small stack, and only the exit line
	 * uses them.
	 */
	unsigned (*hits)(void);
	const struct spill_hits *exit_hits;
	char *exit_line;
	size_t exit_line_size;
	unsigned counters; /* counters of gated calls in each thread (gate.h) */
	/* notes wrappers that hide calls from libspill; asks the loader */
	void (*note_bypass)(void);
};

/*
 * Starts the library if necessary. False: pass the call through. The library is off, or is starting
 * on this thread right now.
 */
bool spill_runtime_ready(const struct spill_shim *shim);

/*
 * Has the library started? For calls that must not start it, because programs without a GPU make
 * them, too.
 */
bool spill_runtime_started(void);

/*
 * Writes the exit line with the totals, once, and all buffered lines. With log.stderr = all the
 * totals go to stderr, too. `how` is "exit", "abort" …
 */
void spill_runtime_exit(const char *how);

#endif

/*
 * Measures how long the work of a launch takes on the device, for
 * policy/predict/migration_benefit.h. The vendor's timers are recorded before and after the launch
 * on its stream, and polled later. No function waits or holds a lock across a vendor's call. A time
 * that may be wrong is dropped.
 *
 * pre, of all: no lock of ours but the mover is held; vendor calls from here are not the program's
 * (spill_thread.depth is raised). They may change errno.
 */
#ifndef SPILL_STOPWATCH_H
#define SPILL_STOPWATCH_H

#include "backend.h"
#include "migration_benefit.h"

/* The launch that is measured. It is returned together with its time. */
#define SPILL_STOPWATCH_KEYS 32
struct spill_stopwatch_access {
	uint16_t site;
	uint8_t count; /* number of keys */
	uint64_t on_host;
	uint32_t keys[SPILL_STOPWATCH_KEYS]; /* the first few chunks on the host */
	uint64_t number;                     /* of the launch, in a recording */
	uint64_t work_ns;                    /* the caller's: estimated work up to this launch */
	struct spill_benefit_waiting waited; /* the caller's: launches without a known time */
	uint64_t placement;                  /* the caller's: where its memory was (trial.h) */
	uint64_t graph;                      /* the caller's: its site if it is a graph's (graph_modes.h) */
	bool by_nodes;                       /* with graph: the launches of all its nodes */
};

/*
 * Stopwatches that can run at a time. A program submits a step of a thousand launches before the
 * device has done the first few, and their times arrive together at its end. Each stopwatch keeps
 * two timers of the context that it was last used for.
 */
#define SPILL_STOPWATCHES 512

/*
 * Called before the launch, with the device and context of the stream. `access` is copied. NULL: no
 * stopwatch is free, the vendor has no timers or refuses them now, or a stream captures. Pass the
 * result to spill_stopwatch_stop, NULL too. A stopwatch that is not stopped in 10 s is reused, and
 * a later stop does nothing.
 */
void *spill_stopwatch_start(const struct spill_backend *backend, int device, void *context, void *stream,
                            bool per_thread, const struct spill_stopwatch_access *access);

/* Called after the launch, by the same thread. */
void spill_stopwatch_stop(void *stopwatch);

struct spill_stopwatch_time {
	uint64_t ns; /* how long the work took */
	/* It took that at most: on an idle stream the time includes the submission, which took a good part of it. */
	bool at_most;
	/*
	 * How long after its submission the work was last seen unfinished, so the program runs at least
	 * that far ahead of the device.
	 */
	uint64_t behind_ns;
};

/*
 * Calls `done` for each stopwatch whose work is done, with no lock held. Each call asks the vendor about
 * at most one stopwatch that is not done, in turns.
 */
void spill_stopwatch_collect(void (*done)(const struct spill_stopwatch_access *access,
                                          const struct spill_stopwatch_time *time));

/* Number of stopwatches that wait for work that was not done at the last look. Approximate. */
unsigned spill_stopwatch_pending(void);

/* In a forked child nothing runs: forgets all. */
void spill_stopwatch_reset(void);

#endif

/*
 * How long a call's work takes on the device, for what learns from it (policy/predict/migration_benefit.h): the vendor's timers
 * on both sides of the call on its stream, asked later whether they have passed. Nothing waits, nothing is
 * held across a vendor's call, and what may be wrong is not told: better no time than a wrong one.
 *
 * pre, of all: no lock of ours is held, but perhaps the mover; calls of the vendor from here are not the program's
 * (spill_thread.depth is raised). They may change errno.
 */
#ifndef SPILL_STOPWATCH_H
#define SPILL_STOPWATCH_H

#include "backend.h"

/* The use that is measured, handed back with its time. */
#define SPILL_STOPWATCH_KEYS 32
struct spill_stopwatch_use {
	uint16_t site;
	uint8_t count; /* of keys */
	uint64_t on_host;
	uint32_t keys[SPILL_STOPWATCH_KEYS]; /* of chunks on host, the first few */
};

/*
 * That run at a time: a program submits a step of a thousand launches before the device has done the first few, and all that are timed
 * are told when it has. Each keeps two timers of the context that it was used for last.
 */
#define SPILL_STOPWATCHES 256

/*
 * Before the call: `use` is copied, and handed back with its time. NULL, which spill_stopwatch_stop
 * takes: none is free, the vendor has no timers or not now, or some stream captures. `device`, `context`:
 * of the stream. A stopwatch that is not stopped in 10 s is taken by others, and stopping it then does
 * nothing.
 */
void *spill_stopwatch_start(const struct spill_backend *backend, int device, void *context, void *stream,
                            bool per_thread, const struct spill_stopwatch_use *use);

/* Behind the call, by the same thread. */
void spill_stopwatch_stop(void *stopwatch);

/*
 * Tells the times of those whose work is done, outside of any lock: how long it took, and how long after it was submitted it was
 * looked for in vain the last time, which is how far the program runs ahead of the device at least. Asks the vendor about one that is
 * not done at most, another one each time.
 */
void spill_stopwatch_collect(void (*done)(const struct spill_stopwatch_use *use, uint64_t ns,
                                          uint64_t behind_ns));

/* Some have work that was not done when it was last looked. */
bool spill_stopwatch_any(void);

/* In a forked child there is nothing to measure: what ran is forgotten. */
void spill_stopwatch_reset(void);

#endif

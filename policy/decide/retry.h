/*
 * oom.honest_first, the pure part: allocators that ask again after an out of memory, and the
 * request that repeats a failure. retry_state.c has the clock, and the failures of each thread.
 */
#ifndef SPILL_RETRY_H
#define SPILL_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "policy.h"

/* Kinds of request. Allocators treat their failures differently. */
enum spill_retry {
	SPILL_RETRY_PLAIN = 1u << 0,
	SPILL_RETRY_PHYSICAL =
	    1u << 1, /* memory without an address, made in runs that are mapped when complete */
	SPILL_RETRY_STREAM_ORDERED = 1u << 2, /* and graph nodes */
};

struct spill_retrier {
	const char *caller;
	unsigned operations; /* enum spill_retry */
	const char *unless;
};

/*
 * The row of retriers.def for a library, by its path as loaded, and a kind of request; or NULL. "",
 * the main program, has no row. The caller checks the variable `unless`.
 */
const struct spill_retrier *spill_retrier_find(const char *path, enum spill_retry operation);

/* A request; or a failure that surfaced and is remembered, where bytes == 0 means none. */
struct spill_failure {
	uint64_t bytes;
	uint64_t time_us; /* of a monotonic clock */
	uintptr_t caller; /* the calling library */
	int device;
	enum spill_retry operation;
};

/* Does `now` repeat the failure? Same caller, device, operation, no smaller, within the window. */
bool spill_failure_repeats(const struct spill_failure *pending, const struct spill_failure *now,
                           uint64_t window_us);

/*
 * Failures that a thread remembers, each of another caller, device or operation. One is not enough:
 * two allocators that fail in turn on one thread would forget each other's failure. No repeat would
 * be recognised then, and the program would end.
 */
#define SPILL_FAILURES 4

/* The slot for the new failure `now`: of the same kind, else a free one, else the oldest. */
struct spill_failure *spill_failure_slot(struct spill_failure pending[SPILL_FAILURES],
                                         const struct spill_failure *now);

/*
 * Forgets the failure if `now`, which was served, is its repeat. Not for PHYSICAL: the later
 * requests of its run have not failed before, and would surface again. See spill_failure_mapped.
 */
void spill_failure_served(struct spill_failure *pending, const struct spill_failure *now, uint64_t window_us);

/* Forgets a PHYSICAL failure of `caller`, who maps memory now: its run is complete. */
void spill_failure_mapped(struct spill_failure *pending, uintptr_t caller);

#endif

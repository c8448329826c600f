/*
 * Honest first, the pure part: who asks again after an out of memory, and which request is the repeat of which failure.
 * src/honest.c keeps one struct spill_failure a thread and the clock.
 */
#ifndef SPILL_RETRY_H
#define SPILL_RETRY_H

#include <stdbool.h>
#include <stdint.h>

#include "policy.h"

/* Kinds of request, as far as allocators treat their failures differently. */
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
 * The row of retriers.def for a library, by its path as loaded ("" for the main program, which is never one), and a kind of
 * request; NULL if there is none. Whether the variable `unless` is set is for the caller to look.
 */
const struct spill_retrier *spill_retrier_find(const char *path, enum spill_retry operation);

/* A request, as far as it matters here; as the memory of a failure that surfaced: bytes is 0 if there is none. */
struct spill_failure {
	uint64_t bytes;
	uint64_t time_us; /* of any clock that does not go back */
	uintptr_t caller; /* the calling library */
	int device;
	enum spill_retry operation;
};

/* True if `now` repeats what failed: same caller, device and operation, at least as large, within the window. */
bool spill_failure_repeats(const struct spill_failure *pending, const struct spill_failure *now,
                           uint64_t window_us);

/*
 * Failures that surfaced and may be repeated, that a thread remembers at a time: each of another caller, device or operation.
 * With one alone, two allocators that fail in turn on one thread would each forget the other's, and the repeat fail for good.
 */
#define SPILL_FAILURES 4

/* Where `now`, which surfaces, is to be remembered: in place of one of the same kind, else where none is, else of the oldest. */
struct spill_failure *spill_failure_slot(struct spill_failure pending[SPILL_FAILURES],
                                         const struct spill_failure *now);

/*
 * `now` was served: if it is the repeat, the failure is forgotten. PHYSICAL: not yet, as it is one of a run, whose later
 * requests have not failed before and would surface again; see spill_failure_mapped.
 */
void spill_failure_served(struct spill_failure *pending, const struct spill_failure *now, uint64_t window_us);

/* `caller` maps physical memory: its run is complete. */
void spill_failure_mapped(struct spill_failure *pending, uintptr_t caller);

#endif

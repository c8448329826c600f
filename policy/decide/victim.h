/*
 * Eviction order of movable allocations, and the order of promotion. The caller sorts its array
 * with qsort(3): pure code may use only mem* and str* of libc.
 *
 * Measurements are the reason for the order (docs/measurements.md). Weights are large, allocated
 * early, and read once a step: they cost least on the host. KV cache and scratch memory are
 * allocated last and read most. So the order is:
 * 1. Dead cache.
 * 2. Priority, cold to hot.
 * 3. The newest of a priority is the last.
 * 4. Larger allocations first, by powers of two. So the age decides among PyTorch's segments of 20
 *    to 32 MiB.
 * 5. Older allocations first.
 * Age before size was tried, for the older half of all bytes. Decode loops were as fast, and
 * training was a fifth to a third slower (docs/adr/0019-who-gives-way.md).
 */
#ifndef SPILL_VICTIM_H
#define SPILL_VICTIM_H

#include "policy.h"

struct spill_victim {
	enum spill_priority priority;
	uint64_t bytes; /* on device and host together, so that its rank stays the same while it leaves. */
	uint64_t seq;   /* its age: the ledger's number, which is unique. */
	bool dead;      /* cache that is never reused (growth.h) */
	bool newest;    /* spill_victim_mark */
	void *data;     /* the caller's */
};

/* Marks the newest of each priority in the list. Call it before sorting. */
void spill_victim_mark(struct spill_victim *list, unsigned count);

/*
 * For qsort: eviction order. No two are equal, because qsort is not stable, and the previous order
 * of the array must not decide.
 */
int spill_victim_compare(const void *left, const void *right);

/* For qsort: the order of promotion, which is the opposite. */
int spill_victim_compare_back(const void *left, const void *right);

#endif

/*
 * Which movable allocation leaves the device first, and which comes back first. Pure: the arrays are the caller's, who sorts
 * them with qsort(3), since the archive may use none of libc but mem* and str*.
 *
 * What this rests on (docs/measurements.md): what is read once a step (weights: large, allocated early) costs least on the
 * host, what is allocated last (KV cache, scratch) is read most. So dead cache leaves first; then by priority, cold to hot; of
 * equal priority the newest is the last; then the larger go first, told apart only by powers of two, so that among PyTorch's
 * segments of 20 to 32 MiB the age decides and not their exact size; then the older. Age before size, for the older half of all
 * bytes, was tried: the same for decode loops, a fifth to a third slower for training (docs/adr/0019-who-gives-way.md).
 */
#ifndef SPILL_VICTIM_H
#define SPILL_VICTIM_H

#include "policy.h"

struct spill_victim {
	enum spill_priority priority;
	uint64_t bytes; /* in all, wherever they are: what has begun to leave goes on leaving */
	uint64_t seq;   /* its age: the ledger's number, of which no two have the same */
	bool dead;      /* cache that nothing reuses (growth.h) */
	bool newest;    /* spill_victim_mark */
	void *data;     /* the caller's */
};

/* Marks the newest of each priority in the list: call it before sorting, in either direction. */
void spill_victim_mark(struct spill_victim *list, unsigned count);

/*
 * qsort's order: who leaves first comes first. A total order, no two are equal: qsort is not stable, and what an array looked
 * like before must not decide.
 */
int spill_victim_compare(const void *left, const void *right);

/* Exactly the opposite, hottest first: what left last was missed most, and what comes back is the last to leave again. */
int spill_victim_compare_back(const void *left, const void *right);

#endif

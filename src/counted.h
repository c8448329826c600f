/*
 * What the ledger has counted: sums over all devices and of each, told to the counters (counters.h) whenever they change.
 * pre: of all: the ledger is locked.
 */
#ifndef SPILL_COUNTED_H
#define SPILL_COUNTED_H

#include "record.h"

struct spill_counted {
	struct spill_totals totals;
	uint64_t away; /* of what is live: off the device by our doing */
};

struct spill_allocation;

/* A new entry; one that was taken and is back; one that is taken; one that is freed behind that. */
void spill_counted_added(const struct spill_allocation *entry);
void spill_counted_back(const struct spill_allocation *entry);
void spill_counted_taken(const struct spill_allocation *entry);
void spill_counted_freed(const struct spill_allocation *entry);

/* It holds `held` now: counts the move, and stores it in the entry. */
void spill_counted_moved(struct spill_allocation *entry, const struct spill_bytes *held);

void spill_counted_oom(int device);

/* Over all devices. */
const struct spill_totals *spill_counted_totals(void);

void spill_counted_reset(void);

#endif

/*
 * What the ledger has counted: sums over all devices and of each, told to the counters (live_page.h) whenever they change.
 * pre: of all: the ledger is locked.
 */
#ifndef SPILL_LEDGER_TOTALS_H
#define SPILL_LEDGER_TOTALS_H

#include "record.h"

struct spill_device_totals {
	struct spill_totals totals;
	uint64_t away; /* of what is live: off the device by our doing */
};

struct spill_allocation;

/* A new entry; one that was taken and is back; one that is taken; one that is freed behind that. */
void spill_ledger_totals_added(const struct spill_allocation *entry);
void spill_ledger_totals_back(const struct spill_allocation *entry);
void spill_ledger_totals_taken(const struct spill_allocation *entry);
void spill_ledger_totals_freed(const struct spill_allocation *entry);

/* It holds `held` now: counts the move, and stores it in the entry. */
void spill_ledger_totals_moved(struct spill_allocation *entry, const struct spill_bytes *held);

void spill_ledger_totals_oom(int device);

/* Over all devices. */
const struct spill_totals *spill_ledger_totals_sum(void);

void spill_ledger_totals_reset(void);

#endif

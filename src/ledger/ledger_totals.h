/*
 * The sums over the ledger: running totals over all devices and of each, and the largest holders at
 * an out of memory. The live page (live_page.h) gets each change of the totals. pre of all
 * functions: the ledger is locked.
 */
#ifndef SPILL_LEDGER_TOTALS_H
#define SPILL_LEDGER_TOTALS_H

#include <stdbool.h>

#include "record.h"

struct spill_device_totals {
	struct spill_totals totals;
	uint64_t away;                    /* live bytes that we put off the device */
	uint64_t followed, followed_peak; /* those in chunks, now and at most */
	/* Since the last event with a line: the most device bytes, and had another event none? */
	uint64_t high;
	bool silent;
};

struct spill_allocation;

/* A new entry. Stores its level, if its events have lines. */
void spill_ledger_totals_added(struct spill_allocation *entry);
/* The same for an entry that is taken out of the ledger. Then it is either put back or freed. */
void spill_ledger_totals_taken(struct spill_allocation *entry);
void spill_ledger_totals_back(const struct spill_allocation *entry);
void spill_ledger_totals_freed(const struct spill_allocation *entry);

/* A move: the entry holds `held` now. Stores that and its level in the entry. */
void spill_ledger_totals_moved(struct spill_allocation *entry, const struct spill_bytes *held);

void spill_ledger_totals_oom(int device);
void spill_ledger_totals_held_up(int device, uint64_t us);

/*
 * Memory that launches have used in place, on all devices; .followed is kept here. What is new of it
 * counts for the device.
 */
void spill_ledger_totals_in_place(int device, const struct spill_in_place *now);

/* The level of a line that is no event of an entry. */
struct spill_level spill_ledger_totals_level(int device);

/* Over all devices. */
const struct spill_totals *spill_ledger_totals_sum(void);
/* Bytes that we have put off the device, now. */
uint64_t spill_ledger_totals_away(void);

/* Of a device. pre: device < SPILL_DEVICES */
const struct spill_device_totals *spill_ledger_totals_of(unsigned device);

void spill_ledger_totals_reset(void);

/*
 * Holders: live allocations summed by caller and by place, and the largest ones, for an out of
 * memory (holders.c). Begin, add each entry, end. Memory on other devices does not count, but the
 * host's part of such an entry does. Uses memory of fixed size, because there may be none to
 * allocate. `device`: the full one; -1: not known, and everything counts.
 */
void spill_holders_begin(int device);
void spill_holders_add(const struct spill_allocation *entry);

/* Stores holders, callers and places, the largest first. Smaller callers are left out. */
void spill_holders_end(struct spill_record_oom *record);

#endif

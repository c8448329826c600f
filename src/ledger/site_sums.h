/*
 * Sums by call site, for the log: allocations and frees that have no lines of their own. A program
 * may make thousands of small allocations a second, and each costs less than a line. A call site is
 * a device, a function of the vendor, a caller and a rule. The table has a fixed size. pre of all
 * functions: the ledger is locked.
 */
#ifndef SPILL_SITE_SUMS_H
#define SPILL_SITE_SUMS_H

#include <stdbool.h>

#include "record.h"

struct spill_allocation;

/*
 * Counts the new entry at its call site, and stores the site in entry->sum. The table may be full
 * of call sites that hold memory: then entry->sum stays 0, and the entry has lines of its own.
 * pre: entry->sum_rule is set
 */
void spill_site_sums_add(struct spill_allocation *entry);

/* Counts the end of the entry. pre: entry->sum is not 0 */
void spill_site_sums_end(const struct spill_allocation *entry);

/*
 * Stores the sums of a call site since the last time, except for time, order and level. False if
 * no site has any.
 */
bool spill_site_sums_take(struct spill_record_sum *record);

/* Most call sites: so often can spill_site_sums_take succeed if nothing is added meanwhile. */
#define SPILL_SITE_SUMS 1024

void spill_site_sums_reset(void);

#endif

/*
 * Who holds what: live allocations summed by caller and by place, and the largest of them, for an out of memory. What is on other
 * devices than the one that is full is in nobody's way, and left out; the host's memory is one for all. In memory of fixed size, so
 * that no memory is asked for when there is none. pre of all: the ledger's lock is held.
 */
#ifndef SPILL_HOLDERS_H
#define SPILL_HOLDERS_H

#include "ledger.h"

/* `device`: the one that is full; -1: not known, and nothing is left out. */
void spill_holders_begin(int device);
void spill_holders_add(const struct spill_allocation *entry);

/* Stores holders, callers and places, those that hold most first; what is not among the callers is held by others. */
void spill_holders_end(struct spill_record_oom *record);

#endif

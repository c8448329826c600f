/*
 * Honest first: some allocators answer an out of memory by freeing their caches and asking again; for those the first
 * failure surfaces and the repeat is served (contract.md, oom.honest_first; pitfall 12). What decides is in policy/retry.h;
 * here are the thread's memory of its last such failure, who the caller is, and the clock.
 */
#ifndef SPILL_HONEST_H
#define SPILL_HONEST_H

#include "request.h"

/*
 * The device is full for `request`: true if this failure is to surface. Never in observe mode's place, never in a
 * capture: callers ask only where something would be placed instead. Asked more than once for one request, it
 * answers the same. A repeat gets an entry in request->tried that says so.
 */
bool spill_honest_surfaces(struct spill_request *request);

/* `request` was served, by the driver or by a place; clears what a failure of this thread left, if this was its repeat. */
void spill_honest_succeeded(const struct spill_request *request);

/* A MAP succeeded: the run of CREATE that led to it is complete, so a later failure is a new one. */
void spill_honest_mapped(const struct spill_request *request);

#endif

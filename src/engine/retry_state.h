/*
 * Honest first: some allocators answer an out of memory by freeing their caches and asking again; for those the first
 * failure surfaces and the repeat is served (contract.md, oom.honest_first; pitfall 12). What decides is in policy/decide/decide.c, what a
 * repeat is in policy/decide/retry.h; here are the thread's memory of its last such failure, who the caller is, and the clock.
 */
#ifndef SPILL_RETRY_STATE_H
#define SPILL_RETRY_STATE_H

#include "request.h"

/* The device is full for `request`: fills in what spill_decide_full wants to know of it, asks_again and repeats. Changes nothing. */
void spill_retry_state_view(const struct spill_request *request, struct spill_full_view *view);

/* Its failure surfaces although it could be served: remembered until the repeat. */
void spill_retry_state_surfaced(const struct spill_request *request);

/* `request` was served, by the driver or by a place; clears what a failure of this thread left, if this was its repeat. */
void spill_retry_state_succeeded(const struct spill_request *request);

/* A MAP succeeded: the run of CREATE that led to it is complete, so a later failure is a new one. */
void spill_retry_state_mapped(const struct spill_request *request);

#endif

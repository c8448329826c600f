/*
 * The library's state for oom.honest_first.
 *
 * Some allocators answer an out of memory by freeing their caches and asking again. For those the
 * first failure surfaces, and the repeat is served. policy/decide/decide.c decides, and
 * policy/decide/retry.h says which request is a repeat. Here are the failures of each thread, the
 * caller of a request, and the clock.
 */
#ifndef SPILL_RETRY_STATE_H
#define SPILL_RETRY_STATE_H

#include "request.h"

/*
 * The device is full for `request`: fills in asks_again and repeats of the view. Changes nothing
 * else.
 */
void spill_retry_state_view(const struct spill_request *request, struct spill_full_view *view);

/* The failure surfaces although the request could be served. It is remembered until the repeat. */
void spill_retry_state_surfaced(const struct spill_request *request);

/* `request` was served. Forgets the failure of this thread that it repeats, if any. */
void spill_retry_state_succeeded(const struct spill_request *request);

/* A MAP succeeded: the run of CREATE before it is complete, so a later failure is a new one. */
void spill_retry_state_mapped(const struct spill_request *request);

#endif

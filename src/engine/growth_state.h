/*
 * The process's one state of growing pools (policy/predict/growth.h): for the rules that ask about growth before a request is decided,
 * and for the movable memory that a growing pool leaves behind. Both see the same sequence of requests: each is told once, when
 * it is served.
 */
#ifndef SPILL_GROWTH_STATE_H
#define SPILL_GROWTH_STATE_H

#include "growth.h"
#include "request.h"

/* Is it one of a run of ever larger ones, if it is served? Changes nothing. pre: bytes and device are known */
bool spill_growth_state_asked(const struct spill_request *request);

/* It is served: run and growth, kept in the request, so that whoever comes later hears the same. */
struct spill_growth_answer spill_growth_state_served(struct spill_request *request);

void spill_growth_state_fork_prepare(void);
void spill_growth_state_fork_done(bool child);

#endif

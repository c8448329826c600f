/*
 * The fallback (decide.h) for a request that the device cannot hold: its steps, one after the
 * other. Each failed step is added to admission.tried.
 */
#ifndef SPILL_FALLBACK_CHAIN_H
#define SPILL_FALLBACK_CHAIN_H

#include "admit.h"

enum spill_outcome {
	SPILL_REFUSED, /* by all steps */
	SPILL_SERVED,
	SPILL_AGAIN, /* there is room now, and the request is charged: ask the driver again */
};

/* Takes the next steps until one succeeds. pre: admission.fallback is set */
enum spill_outcome spill_fallback_chain_place(struct spill_request *request,
                                              struct spill_place_request *place_request);

/*
 * Places the request where its rule says (admission.decision), before the driver is asked. False,
 * with an entry in tried: the place is not available. pre: the kind of request can be placed
 */
bool spill_fallback_chain_at_once(struct spill_request *request);

#endif

/*
 * The steps of a remedy (policy.h) for one request that the device cannot hold, each refusal noted in request->tried.
 */
#ifndef SPILL_FALLBACK_CHAIN_H
#define SPILL_FALLBACK_CHAIN_H

#include "admit.h"

enum spill_outcome {
	SPILL_REFUSED, /* by all steps */
	SPILL_SERVED,
	SPILL_AGAIN, /* there is room now, and admitted it is: the driver is to be asked again */
};

/* The next steps, until one is no refusal. pre: request->remedy is set */
enum spill_outcome spill_fallback_chain_place(struct spill_request *request,
                                              const struct spill_alloc_kind_ops *demand,
                                              struct spill_place_request *want);

/*
 * Makes it where its rule says (request->decision), without asking the driver first. False, with an entry in tried: that cannot be
 * had. pre: demand->place
 */
bool spill_fallback_chain_at_once(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                                  const struct spill_backend *backend);

#endif

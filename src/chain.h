/*
 * The steps of oom.chain for one request that the device cannot hold, each refusal noted in request->tried.
 */
#ifndef SPILL_CHAIN_H
#define SPILL_CHAIN_H

#include "admit.h"

enum spill_outcome {
	SPILL_REFUSED, /* by all steps */
	SPILL_SERVED,
	SPILL_AGAIN, /* there is room now, and admitted it is: the driver is to be asked again */
};

/* The next steps, until one is no refusal. pre: request->chain is set */
enum spill_outcome spill_chain_place(struct spill_request *request, const struct spill_demand *demand,
                                     struct spill_want *want);

/* Free device bytes less device.reserve. */
uint64_t spill_chain_device_room(const struct spill_backend *backend, const struct spill_policy *policy,
                                 int device);

#endif

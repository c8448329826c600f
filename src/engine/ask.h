/*
 * The two questions to the policy about a request (policy.h), with all that they are asked by, and what is charged by the answer.
 */
#ifndef SPILL_ASK_H
#define SPILL_ASK_H

#include "admit.h"

/*
 * Before the driver is asked, and once more behind room that was made: request->decision. True: it is the driver's, and charged by
 * demand->admit.
 */
bool spill_ask(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
               const struct spill_backend *backend);

/* The same by ask->weight and a limit; what is charged to the device is in request->charged. */
bool spill_ask_weight(struct spill_request *request, struct spill_ask *ask, uint64_t limit);

/* When the device is full: what to do. Sets request->repeats at the first failure. */
struct spill_fallback spill_ask_full(struct spill_request *request, const struct spill_alloc_kind_ops *demand,
                                     const struct spill_backend *backend);

#endif

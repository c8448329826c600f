/*
 * Rules in the library: which of the policy's is about a request, and what each rule with a cap holds of the device. Nobody comes
 * here where the policy has no rules.
 */
#ifndef SPILL_RULES_H
#define SPILL_RULES_H

#include "ledger.h"
#include "request.h"
#include "rule.h"

/*
 * Finds the rule that counts: request->applied, or NULL. What a call site decides is looked up once a site; no lock, unless a
 * rule asks for growth. pre: the policy has rules; bytes, device and the frames above are known
 */
void spill_rules_find(struct spill_request *request);

/*
 * The question of policy.h, and the charges that go with it: where the answer is the driver, ask->weight is charged to the device
 * and ask->bytes to the rule's cap (request->charged_rule), both or none. False: others have charged meanwhile; ask again.
 * view: device_limit is the caller's, the rest is filled in. ask->weight may depend on view->device_used.
 */
void spill_rules_view(const struct spill_request *request, struct spill_view *view);
bool spill_rules_charge(struct spill_request *request, const struct spill_ask *ask, struct spill_view *view);

/*
 * For memory that is on the device in part or not at all: takes what the cap leaves, up to `bytes`, and returns it; what is not
 * used is returned by spill_rules_return. SPILL_UNLIMITED: there is no cap.
 */
uint64_t spill_rules_reserve(struct spill_request *request, uint64_t bytes);

/* The ledger's entry takes over what the request has been charged with, as far as it is on the device. */
void spill_rules_take_over(struct spill_request *request, struct spill_allocation *allocation);

/* What the request has been charged with and nobody has taken over. */
void spill_rules_return(struct spill_request *request);

/* After a fork, in the child. */
void spill_rules_reset(void);

#endif

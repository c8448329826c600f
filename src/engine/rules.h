/*
 * Rules in the library: which of the policy's is about a request, and what each rule with a cap holds of the device. Nobody comes
 * here where the policy has no rules.
 */
#ifndef SPILL_RULES_H
#define SPILL_RULES_H

#include "account.h"
#include "ledger.h"
#include "request.h"
#include "rule.h"

/*
 * Finds the rule that counts: request->applied, or NULL. What a call site decides is looked up once a site; no lock, unless a
 * rule asks for growth. pre: the policy has rules; bytes, device and the frames above are known
 */
void spill_rules_find(struct spill_request *request);

/* For the functions below, where there is a rule, or a charge. */
uint64_t spill_rules_held(const struct spill_request *request);
bool spill_rules_charge_cap(struct spill_request *request, const struct spill_ask *ask,
                            struct spill_view *view);
void spill_rules_hand_over(struct spill_request *request, struct spill_allocation *allocation);
void spill_rules_give_back(struct spill_request *request);

/* What the request has been charged with and nobody has taken over. */
static inline void spill_rules_return(struct spill_request *request)
{
	if (request->charged_rule)
		spill_rules_give_back(request);
}

/* What the accounts say now; device_limit is the caller's. */
static inline void spill_rules_view(const struct spill_request *request, struct spill_view *view)
{
	view->device_used = spill_account_device_held(request->device);
	view->rule_used = request->applied ? spill_rules_held(request) : 0;
}

/*
 * A decision for the driver was made by `view`: ask->weight is charged to the device and ask->bytes to the rule's cap
 * (request->charged_rule), both or none. False: others have charged meanwhile, and `view` is what there is now: to be decided again.
 */
static inline bool spill_rules_charge(struct spill_request *request, const struct spill_ask *ask,
                                      struct spill_view *view)
{
	if (request->applied && !spill_rules_charge_cap(request, ask, view))
		return false;
	if (!ask->weight || spill_account_device_charge(request->device, &view->device_used, ask->weight))
		return true;
	spill_rules_return(request);
	spill_rules_view(request, view);
	return false;
}

/*
 * For memory that is on the device in part or not at all: takes what the cap leaves, up to `bytes`, and returns it; what is not
 * used is returned by spill_rules_return. SPILL_UNLIMITED: there is no cap.
 */
uint64_t spill_rules_reserve(struct spill_request *request, uint64_t bytes);

/* The ledger's entry takes over what the request has been charged with, as far as it is on the device. */
static inline void spill_rules_take_over(struct spill_request *request, struct spill_allocation *allocation)
{
	if (request->charged_rule)
		spill_rules_hand_over(request, allocation);
}

/* After a fork, in the child. */
void spill_rules_reset(void);

#endif

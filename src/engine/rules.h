/*
 * Rules in the library: the rule that counts for a request, and the device bytes that each rule
 * with a cap holds. Without rules nothing here is called.
 *
 * The state of growing pools (policy/predict/growth.h) is here, too. Rules ask about growth before
 * a request is decided. Movable memory keeps the run of a growing pool that it belongs to.
 */
#ifndef SPILL_RULES_H
#define SPILL_RULES_H

#include "account.h"
#include "growth.h"
#include "ledger.h"
#include "request.h"
#include "rule.h"

/*
 * Sets admission.applied to the rule that counts, or NULL. The part that depends on the call site
 * is found once for each site. Takes no lock, unless a rule asks about growth. pre: the policy has
 * rules; bytes and device are set
 */
void spill_rules_find(struct spill_request *request);

/* For the functions below, if there is a rule, or a charge. */
uint64_t spill_rules_held(const struct spill_request *request);
bool spill_rules_charge_cap(struct spill_request *request, const struct spill_ask *ask,
                            struct spill_view *view);
void spill_rules_hand_over(struct spill_request *request, struct spill_allocation *allocation);
void spill_rules_give_back(struct spill_request *request);

/* Returns the charge of the request that the ledger has not taken over. */
static inline void spill_rules_return(struct spill_request *request)
{
	if (request->admission.charged_rule)
		spill_rules_give_back(request);
}

/* Fills in the accounts' figures. The caller sets device_limit. */
static inline void spill_rules_view(const struct spill_request *request, struct spill_view *view)
{
	view->device_used = spill_account_device_held(request->device);
	view->rule_used = request->admission.applied ? spill_rules_held(request) : 0;
}

/*
 * The policy has decided for the driver by `view`. Charges ask->weight to the device and ask->bytes
 * to the rule's cap (admission.charged_rule), both or none. False: another thread has charged
 * meanwhile. `view` is up to date then, and the policy decides again.
 */
static inline bool spill_rules_charge(struct spill_request *request, const struct spill_ask *ask,
                                      struct spill_view *view)
{
	if (request->admission.applied && !spill_rules_charge_cap(request, ask, view))
		return false;
	if (!ask->weight || spill_account_device_charge(request->device, &view->device_used, ask->weight))
		return true;
	spill_rules_return(request);
	spill_rules_view(request, view);
	return false;
}

/*
 * For memory that may be on the device in part: charges up to `bytes` within the cap, and returns
 * the charge. spill_rules_return gives back the unused part. SPILL_UNLIMITED: there is no cap.
 */
uint64_t spill_rules_reserve(struct spill_request *request, uint64_t bytes);

/* The ledger's entry takes over the charge, as far as its memory is on the device. */
static inline void spill_rules_take_over(struct spill_request *request, struct spill_allocation *allocation)
{
	if (request->admission.charged_rule)
		spill_rules_hand_over(request, allocation);
}

/* The request is served: its run and growth. Keeps them, so a second call changes nothing. */
struct spill_growth_answer spill_growth_state_served(struct spill_request *request);

extern const struct spill_fork_lock spill_growth_state_fork_lock;

/* After a fork, in the child. */
void spill_rules_reset(void);

#endif

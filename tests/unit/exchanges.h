/* What each test of exchanges begins with: a policy of small chunks without reserves, and a vendor that moves. */
#ifndef SPILL_TEST_EXCHANGES_H
#define SPILL_TEST_EXCHANGES_H

#include "account.h"
#include "contexts.h"
#include "copier.h"
#include "exchange.h"
#include "fake_clock.h"
#include "fake_vendor.h"
#include "process.h"

/* The device has `free` bytes. `context` lives on it. */
static inline void begin_exchanges(struct spill_policy *policy, void *context, uint64_t chunk, uint64_t free,
                                   uint64_t clock_ns)
{
	spill_policy_default(policy);
	policy->movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, chunk};
	policy->device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy->host_limit = policy->host_reserve = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	fake_clock_use(clock_ns);
	spill_process_use_policy(policy);
	fake_vendor_reset_mover(free);
	spill_account_reset();
	spill_copier_reset();
	spill_exchange_reset();
	spill_contexts_made(&fake_vendor_backend, 0, context);
}

#endif

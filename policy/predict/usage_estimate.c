#include "usage_estimate.h"

#include "amount.h"

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Bytes in use now: by others at the last query, and by this process now. */
static uint64_t bytes_in_use(const struct spill_usage_estimate *estimate, uint64_t own)
{
	if (own >= estimate->own)
		return add_saturating(estimate->used, own - estimate->own);
	return estimate->used > estimate->own - own ? estimate->used - (estimate->own - own) : 0;
}

enum spill_usage_answer spill_usage_estimate(const struct spill_usage_estimate *estimate, uint32_t share,
                                             uint64_t own, uint64_t bytes, uint64_t now_us)
{
	if (!estimate->seen || now_us - estimate->at_us >= SPILL_USAGE_VALID_US)
		return SPILL_USAGE_STALE;

	struct spill_amount amount = {SPILL_AMOUNT_PERCENT, share};
	uint64_t line = spill_amount_resolve(amount, estimate->total, 0),
	         with = add_saturating(bytes_in_use(estimate, own), bytes);
	bool fresh = own == estimate->own && now_us == estimate->at_us;

	if (with > line)
		return fresh || estimate->used > line ? SPILL_USAGE_ABOVE : SPILL_USAGE_STALE;
	if (fresh || estimate->used > line || with <= estimate->used + (line - estimate->used) / 2)
		return SPILL_USAGE_BELOW;
	return SPILL_USAGE_STALE;
}

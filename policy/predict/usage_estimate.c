#include "usage_estimate.h"

#include "amount.h"
#include "minmax.h"

/* Bytes in use now: by others at the last query, and by this process now. */
static uint64_t bytes_in_use(const struct spill_usage_estimate *estimate, uint64_t own)
{
	if (own >= estimate->own)
		return spill_plus(estimate->used, own - estimate->own);
	return spill_minus(estimate->used, estimate->own - own);
}

enum spill_usage_answer spill_usage_estimate(const struct spill_usage_estimate *estimate, uint32_t share,
                                             uint64_t own, uint64_t bytes, uint64_t now_us)
{
	if (!estimate->seen || now_us - estimate->at_us >= SPILL_USAGE_VALID_US)
		return SPILL_USAGE_STALE;

	struct spill_amount amount = {SPILL_AMOUNT_PERCENT, share};
	uint64_t line = spill_amount_resolve(amount, estimate->total, 0),
	         with = spill_plus(bytes_in_use(estimate, own), bytes);
	bool fresh = own == estimate->own && now_us == estimate->at_us;

	if (with > line)
		return fresh || estimate->used > line ? SPILL_USAGE_ABOVE : SPILL_USAGE_STALE;
	if (fresh || estimate->used > line || with <= estimate->used + (line - estimate->used) / 2)
		return SPILL_USAGE_BELOW;
	return SPILL_USAGE_STALE;
}

#include "usage_estimate.h"

#include "amount.h"

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Of what others use and what this process holds now. */
static uint64_t in_use(const struct spill_usage_estimate *look, uint64_t own)
{
	if (own >= look->own)
		return add(look->used, own - look->own);
	return look->used > look->own - own ? look->used - (look->own - own) : 0;
}

enum spill_usage_answer spill_usage_estimate(const struct spill_usage_estimate *look, uint32_t share,
                                             uint64_t own, uint64_t bytes, uint64_t now_us)
{
	if (!look->seen || now_us - look->at_us >= SPILL_USAGE_VALID_US)
		return SPILL_USAGE_STALE;

	struct spill_amount amount = {SPILL_AMOUNT_PERCENT, share};
	uint64_t line = spill_amount_resolve(amount, look->total, 0), with = add(in_use(look, own), bytes);
	bool fresh = own == look->own && now_us == look->at_us;

	if (with > line)
		return fresh || look->used > line ? SPILL_USAGE_ABOVE : SPILL_USAGE_STALE;
	if (fresh || look->used > line || with <= look->used + (line - look->used) / 2)
		return SPILL_USAGE_BELOW;
	return SPILL_USAGE_STALE;
}

#include "look.h"

#include "policy.h"

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Of what others use and what this process holds now. */
static uint64_t in_use(const struct spill_look *look, uint64_t own)
{
	if (own >= look->own)
		return add(look->used, own - look->own);
	return look->used > look->own - own ? look->used - (look->own - own) : 0;
}

enum spill_look_answer spill_look(const struct spill_look *look, uint32_t share, uint64_t own, uint64_t bytes,
                                  uint64_t now_us)
{
	if (!look->seen || now_us - look->at_us >= SPILL_LOOK_US)
		return SPILL_LOOK_AGAIN;

	struct spill_amount amount = {SPILL_AMOUNT_PERCENT, share};
	uint64_t line = spill_amount_resolve(amount, look->total, 0), with = add(in_use(look, own), bytes);
	bool fresh = own == look->own && now_us == look->at_us;

	if (with > line)
		return fresh || look->used > line ? SPILL_LOOK_ABOVE : SPILL_LOOK_AGAIN;
	if (fresh || look->used > line || with <= look->used + (line - look->used) / 2)
		return SPILL_LOOK_BELOW;
	return SPILL_LOOK_AGAIN;
}

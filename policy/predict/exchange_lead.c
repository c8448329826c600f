#include "exchange_lead.h"

void spill_exchange_lead_begin(struct spill_exchange_lead *lead, uint64_t bytes, uint64_t held_ns,
                               uint64_t now_ns)
{
	*lead = (struct spill_exchange_lead){bytes, 0, now_ns + held_ns};
}

bool spill_exchange_lead_follow(struct spill_exchange_lead *lead, uint64_t idle_ns, uint64_t now_ns)
{
	bool over = now_ns > lead->until_ns;

	/* Nobody knows how much of a longer time was idle before the end. */
	lead->idle_ns += over ? 0 : idle_ns;
	return over && lead->bytes;
}

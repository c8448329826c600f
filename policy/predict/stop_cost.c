#include "stop_cost.h"

void spill_stop_cost_begin(struct spill_stop_cost *cost, uint64_t bytes, uint64_t held_ns, uint64_t now_ns)
{
	*cost = (struct spill_stop_cost){bytes, 0, now_ns + held_ns};
}

bool spill_stop_cost_follow(struct spill_stop_cost *cost, uint64_t idle_ns, uint64_t now_ns)
{
	bool over = now_ns > cost->until_ns;

	/* Nobody knows how much of a longer time was idle before the end. */
	cost->idle_ns += over ? 0 : idle_ns;
	return over && cost->bytes;
}

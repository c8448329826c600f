#include "tick.h"

#include "follow.h"
#include "gate.h"
#include "promote.h"
#include "reserve_keeper.h"
#include "process.h"

void spill_tick(void)
{
	int cancel = spill_ours_begin();
	bool reserve = spill_reserve_tick(), promote = spill_promote_tick(), follow = spill_follow_tick();
	spill_ours_end(cancel);
	if (reserve || promote || follow)
		spill_gate_call_me();
}

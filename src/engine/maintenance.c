#include "maintenance.h"

#include "follow.h"
#include "gate.h"
#include "promote.h"
#include "reserve_keeper.h"
#include "process.h"

void spill_maintain(void)
{
	int cancel = spill_ours_begin();
	bool reserve = spill_reserve_maintain(), promote = spill_promote_maintain(),
	     follow = spill_follow_maintain();
	spill_ours_end(cancel);
	if (reserve || promote || follow)
		spill_gate_want_maintenance();
}

#include "tick.h"

#include <pthread.h>

#include "follow.h"
#include "gate.h"
#include "promote.h"
#include "reserve.h"
#include "runtime.h"

void spill_tick(void)
{
	int cancel;
	spill_thread.depth++; /* its calls are ours */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	bool reserve = spill_reserve_tick(), promote = spill_promote_tick(), follow = spill_follow_tick();
	pthread_setcancelstate(cancel, NULL);
	if (spill_thread.depth) /* a fork in there began at 0 */
		spill_thread.depth--;
	if (reserve || promote || follow)
		spill_gate_call_me();
}

/*
 * SPILL_SIM_JITTER: random pauses between the steps of one call. They give time to events that must
 * not happen there. No test depends on their place and length.
 */
#include <time.h>

#include "core_internal.h"

#define LONG 64

void jitter(unsigned one_in)
{
	static __thread uint64_t random;
	const unsigned most = sim_config()->jitter;

	if (!most)
		return;
	if (!random)
		random = sim_next_id() * 0x9e3779b97f4a7c15ull;
	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	if (random % one_in)
		return;
	uint64_t ns = (random >> 16) % ((uint64_t)most * 1000);
	if (one_in > 1 && (random >> 8) % 8 == 0)
		ns *= LONG; /* as long as a whole move of another thread */
	nanosleep(&(struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)},
	          NULL);
}

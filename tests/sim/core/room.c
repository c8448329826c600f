/* SPILL_SIM_ROOM: device bytes of objects other than allocations. A context knows its part. */
#include "core_internal.h"

/* pre: the lock is held. */
static enum sim_status take_room(struct sim_context *context, uint64_t bytes)
{
	enum sim_status status = bytes ? device_charge(context->device, bytes) : SIM_OK;

	if (!status)
		context->room += bytes;
	return status;
}

enum sim_status room_take(struct sim_context *context, enum sim_room what, uint64_t more, uint64_t *held)
{
	uint64_t bytes = sim_config()->room[what];

	*held = bytes ? bytes + more : 0;
	if (!bytes)
		return SIM_OK;
	pthread_mutex_lock(&sim_memory_lock);
	enum sim_status status = take_room(context, *held);
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

void room_give(struct sim_context *context, uint64_t id, uint64_t held)
{
	if (!held)
		return;
	pthread_mutex_lock(&sim_memory_lock);
	if (sim_context_alive(context) && context->id == id && held <= context->room) {
		context->room -= held;
		device_discharge(context->device, held);
	}
	pthread_mutex_unlock(&sim_memory_lock);
}

#define LOCAL 1024 /* bytes per thread that every context has */

enum sim_status sim_context_local(struct sim_context *context, uint64_t bytes)
{
	const uint64_t threads = sim_config()->room[SIM_ROOM_THREADS];
	enum sim_status status = SIM_OK;
	uint64_t more;

	if (!threads || bytes <= LOCAL)
		return SIM_OK;
	pthread_mutex_lock(&sim_memory_lock);
	uint64_t before = context->local ? context->local : LOCAL;
	if (bytes > before) {
		status = __builtin_mul_overflow(bytes - before, threads, &more) ? SIM_NO_MEMORY
		                                                                : take_room(context, more);
		if (!status)
			context->local = bytes;
	}
	pthread_mutex_unlock(&sim_memory_lock);
	return status;
}

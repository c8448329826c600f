#include "demote.h"

#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "victim_list.h"
#include "capture.h"
#include "clock.h"
#include "process.h"
#include "exchange.h"
#include "host_chunks.h"
#include "movable.h"
#include "move_batch.h"
#include "chunked.h"
#include "promote.h"
#include "gate.h"
#include "reserve.h"
#include "victim.h"

/* Sizes that the thread of host.ahead is told. */
#define NEXT 64

static struct spill_shortfall missing_for(const struct spill_demotion *demotion)
{
	uint64_t free = 0, total = 0;
	demotion->backend->devices->memory(demotion->device, &free, &total);
	struct spill_shortfall missing =
	    spill_policy_shortfall(spill_reserve_size(demotion->device), demotion->bytes, free,
	                           spill_account_device_held(demotion->device),
	                           spill_device_limit(demotion->backend, demotion->device));
	if (demotion->keeps_reserve)
		missing.least = missing.wanted;
	return missing;
}

static const char *forbidden(const struct spill_demotion *demotion)
{
	if (!demotion->backend->moves)
		return "not possible here";
	if (spill_capture_any())
		return "stream capture";
	return spill_movable_may_move(demotion->backend, demotion->device) ? NULL : "movable memory is off";
}

/* Chunks of one victim, from its tail; their new homes are made here, while the program goes on. */
static const char *plan_one(struct spill_move_batch *plan, struct spill_chunked *victim, uint64_t missing)
{
	for (unsigned i = victim->count; i-- && plan->bytes < missing;) {
		if (victim->chunks[i].on_host)
			continue;
		struct spill_host_chunk home;
		const char *error = spill_host_chunk_get(victim->base.backend, victim->base.device,
		                                         victim->chunks[i].bytes, &home);
		if (error)
			return error;
		struct spill_move move = {.of = victim, .chunk = i, .handle = home.handle, .view = home.view};
		if (spill_move_batch_add(plan, &move))
			continue;
		spill_host_chunk_put(victim->base.backend, victim->base.device, &home, true);
		return "no memory for bookkeeping";
	}
	return NULL;
}

/* What could leave, all together. */
static uint64_t movable_bytes(const struct spill_victim *list, unsigned count)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += ((const struct spill_chunked *)list[i].data)->base.held.device;
	return sum;
}

/* Nothing moves for a request that does not fit all the same, unless a part of the room helps, too. */
static void make_plan(struct spill_move_batch *plan, struct spill_demotion *demotion,
                      struct spill_shortfall missing)
{
	unsigned count;
	struct spill_victim *list = spill_victim_list(demotion->device, false, demotion->before, &count);
	uint64_t there = movable_bytes(list, count);
	demotion->vain = there < (demotion->part_helps ? 1 : missing.least);
	if (demotion->vain)
		demotion->error = there ? "not enough movable memory" : "no movable memory";
	for (unsigned i = 0; i < count && plan->bytes < missing.wanted && !demotion->error; i++)
		demotion->error = plan_one(plan, list[i].data, missing.wanted);
	if (plan->bytes >= missing.least)
		demotion->error = NULL; /* of what would have been the reserve */
	else if (!demotion->error)
		demotion->error = "not enough movable memory";
	free(list);
}

/* Homes for which there is no use after all. */
static void abandon(const struct spill_move_batch *plan, const struct spill_demotion *demotion)
{
	for (unsigned i = 0; i < plan->count; i++) {
		const struct spill_move *move = &plan->moves[i];
		struct spill_host_chunk unused = {move->handle, spill_move_chunk(move)->bytes, move->view};
		if (!move->moved)
			spill_host_chunk_put(demotion->backend, demotion->device, &unused, true);
	}
}

/* The old homes are given back. Returns the bytes that left the device. */
static uint64_t settle(const struct spill_move_batch *plan, const struct spill_demotion *demotion)
{
	uint64_t freed = 0;
	for (unsigned i = 0; i < plan->count; i++) {
		const struct spill_move *move = &plan->moves[i];
		if (!move->moved)
			continue;
		uint64_t bytes = spill_move_chunk(move)->bytes;
		spill_device_chunk_put(demotion->backend, demotion->device, bytes, move->handle);
		freed += bytes;
	}
	return freed;
}

/* What would leave next, so that its new home can be made ahead of need. */
static void tell_ahead(const struct spill_backend *backend, int device)
{
	if (!spill_amount_resolve(spill_process_policy()->host_ahead, 0, 0))
		return;
	uint64_t sizes[NEXT];
	unsigned count, known = 0;
	struct spill_victim *list = spill_victim_list(device, false, 0, &count);
	for (unsigned i = 0; i < count && known < NEXT; i++) {
		const struct spill_chunked *victim = list[i].data;
		for (unsigned chunk = victim->count; chunk-- && known < NEXT;)
			if (!victim->chunks[chunk].on_host)
				sizes[known++] = victim->chunks[chunk].bytes;
	}
	free(list);
	if (known)
		spill_host_chunks_ahead(backend, device, sizes, known);
}

/* pre: the mover is held */
static void demote(struct spill_demotion *demotion, struct spill_shortfall missing)
{
	struct spill_move_batch plan = {0};
	struct spill_move_reason why = {"demote", demotion->reason, demotion->api, demotion->caller,
	                                spill_log_now_us()};
	if (spill_move_batch_has_a_chance(demotion->backend, demotion->device,
	                                  spill_process_policy()->movable_wait_us))
		make_plan(&plan, demotion, missing);
	else
		demotion->error = "movable.wait: the device is busy";
	if (plan.count && (!demotion->error || demotion->part_helps)) {
		const char *error = spill_move_batch_carry_out(&plan, demotion->backend, demotion->device,
		                                               spill_process_policy()->movable_wait_us);
		demotion->error = error ? error : demotion->error;
		demotion->freed = settle(&plan, demotion);
		spill_move_batch_report(&plan, &why);
	}
	abandon(&plan, demotion);
	if (plan.count)
		tell_ahead(demotion->backend, demotion->device);
	spill_move_batch_end(&plan);
}

void spill_demote_foresee(const struct spill_backend *backend, int device)
{
	if (!spill_mover_trylock())
		return;
	tell_ahead(backend, device);
	spill_mover_unlock();
}

bool spill_demote_held(struct spill_demotion *demotion, bool recheck)
{
	/* What exchanges keep for themselves is the first to go, also where nothing may move. */
	bool dropped = !spill_capture_any() && spill_exchange_drop();
	demotion->freed = 0;
	demotion->error = forbidden(demotion);
	demotion->vain = demotion->error && !dropped;
	if (demotion->error)
		return dropped && !missing_for(demotion).least;
	recheck = dropped || recheck;
	struct spill_shortfall missing = missing_for(demotion);
	/* The driver has refused what there seems to be room for; unless another thread has made that room meanwhile. */
	if (!missing.wanted && !recheck)
		missing.least = missing.wanted = demotion->bytes;
	if (missing.wanted)
		demote(demotion, missing);
	return !demotion->error;
}

bool spill_demote(struct spill_demotion *demotion)
{
	bool waited = !spill_mover_trylock();
	if (waited)
		spill_mover_lock();
	bool enough = spill_demote_held(demotion, waited);
	if (demotion->freed) {
		spill_promote_hold();
		/* Below a limit the device itself has room. */
		if (strcmp(demotion->reason, "limit") != 0)
			if (spill_reserve_begin(demotion->device))
				spill_gate_want_maintenance();
	}
	spill_mover_unlock();
	return enough;
}

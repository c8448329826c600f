#include "back.h"

#include "account.h"
#include "process.h"
#include "host_chunks.h"
#include "minmax.h"
#include "chunked.h"
#include "move_batch.h"
#include "reserve.h"

uint64_t spill_back_room(const struct spill_backend *backend, int device)
{
	uint64_t free = 0, total = 0;
	if (backend->devices->memory(device, &free, &total))
		return 0;
	return spill_policy_device_room(spill_reserve_size(device), free, spill_account_device_held(device),
	                                spill_device_limit(backend, device));
}

uint64_t spill_back_smallest(const struct spill_victim *list, unsigned count)
{
	uint64_t least = UINT64_MAX;
	for (unsigned i = 0; i < count; i++) {
		const struct spill_chunked *of = list[i].data;
		for (unsigned chunk = 0; chunk < of->count; chunk++)
			if (spill_chunk_may_come(of, chunk) && of->chunks[chunk].bytes < least)
				least = of->chunks[chunk].bytes;
	}
	return least;
}

/* A home on the device for one chunk. False: the device has no more to give. */
static bool plan_chunk(struct spill_move_batch *plan, struct spill_chunked *of, unsigned chunk)
{
	const struct spill_backend *backend = of->base.backend;
	uint64_t bytes = of->chunks[chunk].bytes;
	struct spill_move move = {.of = of, .chunk = chunk};
	if (!spill_device_chunk_get(backend, of->base.device, bytes, &move.handle))
		return false;
	if (spill_move_batch_add(plan, &move))
		return true;
	spill_device_chunk_put(backend, of->base.device, bytes, move.handle);
	return false;
}

/* A chunk moves whole. */
static uint64_t largest_chunk(void)
{
	return spill_amount_resolve(spill_process_policy()->movable_chunk, 0, 0);
}

/* From the head, as the tail leaves first. */
static void make_plan(struct spill_move_batch *plan, const struct spill_victim *list, unsigned count)
{
	const struct spill_placement *hottest = &((const struct spill_chunked *)list[0].data)->base;
	uint64_t left = spill_back_room(hottest->backend, hottest->device);
	uint64_t slice = largest_chunk() > SPILL_BACK_SLICE ? largest_chunk() : SPILL_BACK_SLICE;
	left = spill_min(left, slice);
	for (unsigned i = 0; i < count; i++) {
		struct spill_chunked *of = list[i].data;
		for (unsigned chunk = 0; chunk < of->count; chunk++) {
			uint64_t bytes = of->chunks[chunk].bytes;
			if (!spill_chunk_may_come(of, chunk))
				continue;
			/* One that is too large leaves the room to a smaller one behind it. */
			if (plan->bytes + bytes > left)
				continue;
			if (!plan_chunk(plan, of, chunk))
				return;
		}
	}
}

/* The old homes on host are kept for the next demotion; new ones that were not moved into are given back. */
static void settle(const struct spill_move_batch *plan, const struct spill_backend *backend, int device)
{
	for (unsigned i = 0; i < plan->count; i++) {
		const struct spill_move *move = &plan->moves[i];
		uint64_t bytes = spill_move_chunk(move)->bytes;
		if (move->moved) {
			struct spill_host_chunk old = {
			    .handle = move->handle, .bytes = bytes, .view = move->view};
			spill_host_chunk_put(backend, device, &old, true);
			continue;
		}
		spill_device_chunk_put(backend, device, bytes, move->handle);
	}
}

static uint64_t carry_out(struct spill_move_batch *plan)
{
	struct spill_move_reason why = {"promote", "free", "", "", spill_log_now_us()};
	const struct spill_placement *first = &plan->moves[0].of->base;
	uint64_t moved = 0;
	spill_move_batch_carry_out(plan, first->backend, first->device,
	                           spill_process_policy()->movable_wait_us);
	for (unsigned i = 0; i < plan->count; i++)
		moved += plan->moves[i].moved ? spill_move_chunk(&plan->moves[i])->bytes : 0;
	settle(plan, first->backend, first->device);
	spill_move_batch_report(plan, &why);
	return moved;
}

uint64_t spill_back_bring(const struct spill_victim *list, unsigned count)
{
	struct spill_move_batch plan = {0};
	uint64_t moved = 0;
	make_plan(&plan, list, count);
	if (plan.count)
		moved = carry_out(&plan);
	spill_move_batch_end(&plan);
	return moved;
}

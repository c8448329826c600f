#include "demote.h"

#include <stdlib.h>

#include "capture.h"
#include "clock.h"
#include "device_memory.h"
#include "process.h"
#include "exchange.h"
#include "host_chunks.h"
#include "movable.h"
#include "move_batch.h"
#include "chunked.h"
#include "promote.h"
#include "reserve.h"

/* Chunk sizes that the thread of host.ahead gets. */
#define NEXT_SIZES 64

/* -- victims ----------------------------------------------------------------------------------- */

static bool is_candidate(const struct spill_chunked *chunked, int device, bool on_host, uint64_t older_than)
{
	const struct spill_bytes *held = &chunked->base.held;
	return chunked->base.backend->moves && chunked->base.device == device && !chunked->pinned &&
	       (on_host ? spill_chunked_away(chunked) && !spill_chunked_is_dead(chunked) : held->device) &&
	       (!older_than || chunked->seq < older_than);
}

struct spill_victim *spill_victim_list(int device, bool on_host, uint64_t older_than, unsigned *count)
{
	unsigned enlisted = 0;
	for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
	     chunked = spill_chunked_next(chunked))
		enlisted++;
	struct spill_victim *list = enlisted ? calloc(enlisted, sizeof(*list)) : NULL;
	*count = 0;
	if (!list)
		return NULL;
	/* The list may have grown since. */
	for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
	     chunked = spill_chunked_next(chunked))
		if (is_candidate(chunked, device, on_host, older_than) && *count < enlisted)
			list[(*count)++] = (struct spill_victim){
			    .priority = chunked->priority,
			    .bytes = chunked->base.bytes,
			    .seq = chunked->seq,
			    .dead = chunked->dead || spill_chunked_is_dead(chunked),
			    .data = chunked,
			};
	spill_victim_mark(list, *count);
	qsort(list, *count, sizeof(*list), on_host ? spill_victim_compare_back : spill_victim_compare);
	return list;
}

/* -- demotion ---------------------------------------------------------------------------------- */

static struct spill_shortfall shortfall_of(const struct spill_demotion *demotion)
{
	uint64_t free = 0, total = 0;
	spill_device_memory(demotion->backend, demotion->device, &free, &total);
	struct spill_shortfall shortfall =
	    spill_policy_shortfall(spill_reserve_size(demotion->device), demotion->bytes, free,
	                           spill_device_memory_held(demotion->device),
	                           spill_device_limit(demotion->backend, demotion->device));
	if (demotion->keeps_reserve)
		shortfall.least = shortfall.wanted;
	return shortfall;
}

static const char *refusal(const struct spill_demotion *demotion)
{
	if (!demotion->backend->moves)
		return "not possible here";
	if (spill_capture_any())
		return spill_refused_by_name(SPILL_REFUSED_BY_CAPTURE);
	return spill_movable_may_move(demotion->backend, demotion->device) ? NULL : "movable memory is off";
}

/*
 * Adds chunks of one victim, from its end. Their host memory is made here, while the program goes
 * on.
 */
static const char *add_victim(struct spill_move_batch *batch, struct spill_chunked *victim,
                              uint64_t shortfall)
{
	for (unsigned i = victim->count; i-- && batch->bytes < shortfall;) {
		if (victim->chunks[i].on_host)
			continue;
		struct spill_host_chunk memory;
		const char *error = spill_host_chunk_get(victim->base.backend, victim->base.device,
		                                         victim->chunks[i].bytes, &memory);
		if (error)
			return error;
		struct spill_move move = {
		    .chunked = victim, .index = i, .handle = memory.handle, .view = memory.view};
		if (spill_move_batch_add(batch, &move))
			continue;
		spill_host_chunk_put(victim->base.backend, victim->base.device, &memory, true);
		return "no memory for bookkeeping";
	}
	return NULL;
}

/* Bytes that could leave. */
static uint64_t bytes_on_device(const struct spill_victim *list, unsigned count)
{
	uint64_t sum = 0;
	for (unsigned i = 0; i < count; i++)
		sum += ((const struct spill_chunked *)list[i].data)->base.held.device;
	return sum;
}

/*
 * Fills the batch. No chunk leaves for a request that would not fit even then, unless a part of the
 * room helps.
 */
static void fill_batch(struct spill_move_batch *batch, struct spill_demotion *demotion,
                       struct spill_shortfall shortfall)
{
	unsigned count;
	struct spill_victim *list = spill_victim_list(demotion->device, false, demotion->older_than, &count);
	uint64_t movable = bytes_on_device(list, count);
	demotion->hopeless = movable < (demotion->part_helps ? 1 : shortfall.least);
	if (demotion->hopeless)
		demotion->error = movable ? "not enough movable memory" : "no movable memory";
	for (unsigned i = 0; i < count && batch->bytes < shortfall.wanted && !demotion->error; i++)
		demotion->error = add_victim(batch, list[i].data, shortfall.wanted);
	if (batch->bytes >= shortfall.least)
		demotion->error = NULL; /* only the reserve lacks some bytes */
	else if (!demotion->error)
		demotion->error = "not enough movable memory";
	free(list);
}

/* Passes the sizes of the next chunks to leave to the thread of host.ahead. */
static void want_sizes_ahead(const struct spill_backend *backend, int device)
{
	if (!spill_amount_resolve(spill_process_policy()->host_ahead, 0, 0))
		return;
	uint64_t sizes[NEXT_SIZES];
	unsigned count, known = 0;
	struct spill_victim *list = spill_victim_list(device, false, 0, &count);
	for (unsigned i = 0; i < count; i++) {
		const struct spill_chunked *victim = list[i].data;
		for (unsigned index = victim->count; index-- && known < NEXT_SIZES;)
			if (!victim->chunks[index].on_host)
				sizes[known++] = victim->chunks[index].bytes;
	}
	free(list);
	if (known)
		spill_host_chunks_ahead(backend, device, sizes, known);
}

/* pre: the mover is held */
static void demote_shortfall(struct spill_demotion *demotion, struct spill_shortfall shortfall)
{
	struct spill_move_batch batch = {0};
	struct spill_move_reason why = {
	    .kind = SPILL_MOVE_DEMOTE,
	    .reason = demotion->reason,
	    .api = demotion->api,
	    .caller = demotion->caller,
	    .start_us = spill_log_now_us(),
	    .seen = spill_device_seen(demotion->device),
	};
	if (spill_move_batch_has_a_chance(demotion->backend, demotion->device,
	                                  spill_process_policy()->movable_wait_us))
		fill_batch(&batch, demotion, shortfall);
	else
		demotion->error = "movable.wait: the device is busy";
	if (batch.count && (!demotion->error || demotion->part_helps)) {
		const char *error = spill_move_batch_carry_out(&batch, demotion->backend, demotion->device,
		                                               spill_process_policy()->movable_wait_us);
		demotion->error = error ? error : demotion->error;
	}
	demotion->freed = spill_move_batch_settle(&batch, demotion->backend, demotion->device).host;
	spill_move_batch_report(&batch, &why);
	if (batch.count)
		want_sizes_ahead(demotion->backend, demotion->device);
	spill_move_batch_end(&batch);
}

void spill_demote_foresee(const struct spill_backend *backend, int device)
{
	if (!spill_mover_trylock())
		return;
	want_sizes_ahead(backend, device);
	spill_mover_unlock();
}

bool spill_demote_held(struct spill_demotion *demotion, bool recheck)
{
	/* The memory that exchanges keep is released first, even if no chunk may leave. */
	bool dropped = !spill_capture_any() && spill_exchange_drop();
	demotion->freed = 0;
	demotion->error = refusal(demotion);
	demotion->hopeless = demotion->error && !dropped;
	if (demotion->error)
		return dropped && !shortfall_of(demotion).least;
	recheck = dropped || recheck;
	struct spill_shortfall shortfall = shortfall_of(demotion);
	/* The driver has refused the request although there seems to be room. */
	if (!shortfall.wanted && !recheck)
		shortfall.least = shortfall.wanted = demotion->bytes;
	if (shortfall.wanted)
		demote_shortfall(demotion, shortfall);
	return !demotion->error;
}

bool spill_demote(struct spill_demotion *demotion)
{
	bool waited = !spill_mover_trylock();
	if (waited)
		spill_mover_lock();
	bool enough = spill_demote_held(demotion, waited);
	if (demotion->freed) {
		spill_promote_hold(); /* wants the maintenance that the reserve needs as well */
		/* A demotion for a limit says nothing about the device's room. */
		if (demotion->reason != SPILL_REASON_LIMIT)
			spill_reserve_begin(demotion->device);
	}
	spill_mover_unlock();
	return enough;
}

#include "exchange.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "promote.h"
#include "device_memory.h"
#include "chunked.h"
#include "process.h"
#include "host_chunks.h"

/*
 * The kept memory, of the last device that had an exchange. The mover's lock guards all but the
 * sum.
 */
#define KEPT_SPARES 64
static struct {
	const struct spill_backend *backend;
	int device;
	struct spill_spare spares[KEPT_SPARES];
	unsigned count;
	_Atomic uint64_t bytes;
} kept_memory;

bool spill_exchange_add(struct spill_exchange *exchange, struct spill_chunked *chunked, unsigned index)
{
	struct spill_move move = {.chunked = chunked, .index = index};
	struct spill_host_chunk memory;
	if (chunked->chunks[index].on_host)
		return spill_move_batch_add(&exchange->comes, &move);
	if (spill_host_chunk_get(exchange->backend, exchange->device, chunked->chunks[index].bytes, &memory))
		return false;
	move.handle = memory.handle;
	move.view = memory.view;
	exchange->fresh |= !memory.view;
	if (spill_move_batch_add(&exchange->goes, &move))
		return true;
	spill_host_chunk_put(exchange->backend, exchange->device, &memory, true);
	return false;
}

/* -- kept memory ------------------------------------------------------------------------------- */

uint64_t spill_exchange_kept(void)
{
	return atomic_load_explicit(&kept_memory.bytes, memory_order_relaxed);
}

uint64_t spill_exchange_drop(void)
{
	uint64_t bytes = spill_exchange_kept();
	while (kept_memory.count) {
		const struct spill_spare *spare = &kept_memory.spares[--kept_memory.count];
		spill_device_chunk_put(kept_memory.backend, kept_memory.device, spare->bytes, spare->handle);
	}
	atomic_store(&kept_memory.bytes, 0);
	return bytes;
}

void spill_exchange_forget(const struct spill_backend *backend, int device)
{
	if (!spill_exchange_kept())
		return;
	spill_mover_lock();
	if (kept_memory.backend == backend && kept_memory.device == device)
		spill_exchange_drop();
	spill_mover_unlock();
}

void spill_exchange_reset(void)
{
	kept_memory.count = 0;
	atomic_store(&kept_memory.bytes, 0);
}

/* Moves the kept memory into the exchange. Returns its bytes. */
static uint64_t use_kept(struct spill_exchange *exchange)
{
	uint64_t bytes = spill_exchange_kept();
	if (kept_memory.backend != exchange->backend || kept_memory.device != exchange->device) {
		spill_exchange_drop();
		return 0;
	}
	for (unsigned i = 0; i < kept_memory.count; i++)
		exchange->spares[exchange->spare_count++] = kept_memory.spares[i];
	spill_exchange_reset();
	return bytes;
}

/* Keeps spares for the next exchange, up to exchange->keep. */
static void keep_spares(struct spill_exchange *exchange)
{
	if (!exchange->spare_count)
		return;
	kept_memory.backend = exchange->backend;
	kept_memory.device = exchange->device;
	for (unsigned i = exchange->spare_count; i-- && kept_memory.count < KEPT_SPARES;) {
		uint64_t bytes = exchange->spares[i].bytes;
		if (spill_exchange_kept() + bytes > exchange->keep)
			continue;
		kept_memory.spares[kept_memory.count++] = exchange->spares[i];
		exchange->spares[i] = exchange->spares[--exchange->spare_count];
		atomic_fetch_add(&kept_memory.bytes, bytes);
	}
}

/* -- while the gate is closed ------------------------------------------------------------------ */

static void release_spare(struct spill_exchange *exchange, unsigned spare)
{
	uint64_t bytes = exchange->spares[spare].bytes;
	spill_device_chunk_put(exchange->backend, exchange->device, bytes, exchange->spares[spare].handle);
	exchange->spares[spare] = exchange->spares[--exchange->spare_count];
	exchange->room += bytes;
}

/* Uses a spare of exactly that size, with its charge. */
static bool use_spare(struct spill_exchange *exchange, struct spill_move *move)
{
	for (unsigned i = 0; i < exchange->spare_count; i++)
		if (exchange->spares[i].bytes == spill_move_chunk(move)->bytes) {
			move->handle = exchange->spares[i].handle;
			exchange->spares[i] = exchange->spares[--exchange->spare_count];
			return true;
		}
	return false;
}

/*
 * Gets device memory for a chunk that comes. Spares are used as they are: on a full device the
 * driver takes 3 ms to make 64 MiB again that were just released (measured, H200).
 */
static bool get_device_memory(struct spill_move *move, void *data)
{
	struct spill_exchange *exchange = data;
	uint64_t bytes = spill_move_chunk(move)->bytes;
	if (use_spare(exchange, move))
		return true;
	while (exchange->room < bytes && exchange->spare_count)
		release_spare(exchange, exchange->spare_count - 1);
	if (exchange->room < bytes ||
	    !spill_device_chunk_get(exchange->backend, exchange->device, bytes, &move->handle))
		return false;
	exchange->room -= bytes;
	return true;
}

/* Notes a finished move. Old host memory waits for spill_move_batch_settle. */
static void note_move(struct spill_move *move, void *data)
{
	struct spill_exchange *exchange = data;
	struct spill_chunk *chunk = spill_move_chunk(move);
	chunk->displaced = !chunk->displaced;
	if (!chunk->on_host)
		return;
	exchange->spares[exchange->spare_count++] =
	    (struct spill_spare){.handle = move->handle, .bytes = chunk->bytes};
	move->handle = 0;
}

/*
 * Swaps forward the next chunk to leave of that size, because its memory fits the chunk that comes
 * next.
 */
static void swap_forward(struct spill_move_batch *goes, unsigned first, uint64_t bytes)
{
	for (unsigned i = first; i < goes->count; i++)
		if (spill_move_chunk(&goes->moves[i])->bytes == bytes) {
			struct spill_move move = goes->moves[i];
			goes->moves[i] = goes->moves[first];
			goes->moves[first] = move;
			return;
		}
}

/*
 * Merges both ways into one order, in turns. A chunk comes as soon as there is room for it: free
 * now, or left by earlier moves. Without room to spare, one chunk leaves ahead of it, so that
 * neither way waits for the other. False: no memory for the order.
 */
static bool merge_ways(struct spill_exchange *exchange, uint64_t room, struct spill_move_batch *batch)
{
	uint64_t ahead = 0;
	unsigned come = 0, go = 0;
	bool turn = false; /* chunks that leave are copied at once; others need a mapping first */
	while (come < exchange->comes.count || go < exchange->goes.count) {
		const struct spill_move *next =
		    come < exchange->comes.count ? &exchange->comes.moves[come] : NULL;
		bool comes = next && (go == exchange->goes.count ||
		                      (turn && spill_move_chunk(next)->bytes + ahead <= room));
		if (!comes && next)
			swap_forward(&exchange->goes, go, spill_move_chunk(next)->bytes);
		const struct spill_move *move = comes ? next : &exchange->goes.moves[go];
		uint64_t bytes = spill_move_chunk(move)->bytes;
		if (!spill_move_batch_add(batch, move))
			return false;
		turn = !comes;
		if (comes) {
			come++;
			room -= bytes < room ? bytes : room;
		} else {
			go++;
			room += bytes;
			ahead = bytes;
		}
	}
	return true;
}

/* Prepares the exchange. False: no memory for its lists. */
static bool begin_exchange(struct spill_exchange *exchange, struct spill_move_batch *batch)
{
	exchange->spares = calloc(exchange->goes.count + KEPT_SPARES, sizeof(*exchange->spares));
	exchange->spare_count = 0;
	if (!exchange->spares)
		return false;
	exchange->room = spill_promote_room(exchange->backend, exchange->device);
	uint64_t room = exchange->room + use_kept(exchange);
	return merge_ways(exchange, room, batch);
}

static void finish_exchange(struct spill_exchange *exchange)
{
	keep_spares(exchange);
	while (exchange->spare_count)
		release_spare(exchange, exchange->spare_count - 1);
	free(exchange->spares);
	exchange->spares = NULL;
}

/* -- afterwards -------------------------------------------------------------------------------- */

/* Sorts chunks that left to the front, and groups them by allocation, as the report needs. */
static int compare_for_report(const void *left, const void *right)
{
	const struct spill_move *a = left, *b = right;
	bool a_leaves = spill_move_leaves(a), b_leaves = spill_move_leaves(b);
	if (a_leaves != b_leaves)
		return a_leaves ? -1 : 1;
	if (a->chunked != b->chunked)
		return (uintptr_t)a->chunked < (uintptr_t)b->chunked ? -1 : 1;
	return (a->index > b->index) - (a->index < b->index);
}

static void report_exchange(const struct spill_move_batch *batch, struct spill_move_reason why)
{
	struct spill_move_batch part = {.moves = batch->moves};
	qsort(batch->moves, batch->count, sizeof(*batch->moves), compare_for_report);
	while (part.count < batch->count && spill_move_leaves(&batch->moves[part.count]))
		part.count++;
	part.later = batch->count - part.count; /* an allocation can have chunks of both ways */
	why.kind = SPILL_MOVE_DEMOTE;
	spill_move_batch_report(&part, &why);
	why.kind = SPILL_MOVE_PROMOTE;
	part =
	    (struct spill_move_batch){.moves = batch->moves + part.count, .count = batch->count - part.count};
	spill_move_batch_report(&part, &why);
}

void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns)
{
	struct spill_move_batch batch = {0};
	struct spill_move_helper helper = {get_device_memory, note_move, exchange};
	struct spill_move_reason why = {.reason = SPILL_REASON_USE, .start_us = spill_log_now_us()};
	exchange->came = 0;
	exchange->ns = 0;
	spill_move_stage(exchange->backend, exchange->device, exchange->goes.moves, exchange->goes.count);
	if (begin_exchange(exchange, &batch)) {
		why.seen = spill_device_seen(exchange->device);
		spill_move_batch_attempt(&batch, exchange->backend, exchange->device, deadline_ns, &helper,
		                         &exchange->ns);
		exchange->came = spill_move_batch_settle(&batch, exchange->backend, exchange->device).device;
		report_exchange(&batch, why);
	} else {
		spill_move_batch_settle(&exchange->goes, exchange->backend, exchange->device);
	}
	finish_exchange(exchange);
	spill_move_batch_end(&batch);
	spill_move_batch_end(&exchange->comes);
	spill_move_batch_end(&exchange->goes);
}

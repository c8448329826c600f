#include "exchange.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "minmax.h"
#include "promote.h"
#include "device_memory.h"
#include "chunked.h"
#include "exchange_order.h"
#include "parking.h"
#include "process.h"
#include "remap.h"
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

/*
 * Bytes that exchanges had to make lately, because nothing of their size left. Twice as much of what could be kept is
 * left free instead: the driver makes memory fast of what it got back some time ago, and takes 3 ms for 64 MiB that it
 * got back just now (measured, H200). The mover's lock guards it.
 */
static uint64_t made_lately;

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

/* Takes the first spare of exactly that size out of a list. False: there is none. */
static bool take_spare(struct spill_spare *spares, unsigned *count, uint64_t bytes, struct spill_spare *taken)
{
	for (unsigned i = 0; i < *count; i++)
		if (spares[i].bytes == bytes) {
			*taken = spares[i];
			spares[i] = spares[--*count];
			return true;
		}
	return false;
}

/* Gives a chunk that comes such a spare. */
static bool give_spare(struct spill_spare *spares, unsigned *count, struct spill_move *move)
{
	struct spill_spare spare;
	if (!take_spare(spares, count, spill_move_chunk(move)->bytes, &spare))
		return false;
	move->handle = spare.handle;
	move->view = spare.view;
	return true;
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
		spill_device_chunk_put(kept_memory.backend, kept_memory.device, spare->bytes, spare->handle,
		                       spare->view);
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

static void forget_kept(void)
{
	kept_memory.count = 0;
	atomic_store(&kept_memory.bytes, 0);
}

void spill_exchange_reset(void)
{
	forget_kept();
	made_lately = 0;
}

/* Moves the kept memory into the exchange. */
static void use_kept(struct spill_exchange *exchange)
{
	if (kept_memory.backend != exchange->backend || kept_memory.device != exchange->device) {
		spill_exchange_drop();
		return;
	}
	for (unsigned i = 0; i < kept_memory.count; i++)
		exchange->spares[exchange->spare_count++] = kept_memory.spares[i];
	forget_kept();
}

/* For one chunk, without an exchange. False: none of its size is kept for the device. */
static bool use_kept_spare(const struct spill_backend *backend, int device, struct spill_move *move)
{
	if (kept_memory.backend != backend || kept_memory.device != device ||
	    !give_spare(kept_memory.spares, &kept_memory.count, move))
		return false;
	atomic_fetch_sub(&kept_memory.bytes, spill_move_chunk(move)->bytes);
	return true;
}

/*
 * Memory that one of them has left is the place of all parked chunks from now on. An exchange that keeps nothing
 * makes none: its memory is wanted elsewhere.
 */
static void make_parking(struct spill_exchange *exchange)
{
	uint64_t bytes = exchange->can_be_dead;
	struct spill_spare spare;
	if (!bytes || !exchange->keep || !spill_parking_needs(exchange->backend, exchange->device, bytes) ||
	    !take_spare(exchange->spares, &exchange->spare_count, bytes, &spare))
		return;
	spill_view_end(exchange->backend, spare.view, bytes);
	spill_parking_take(exchange->backend, exchange->device, spare.handle, bytes);
}

/* Keeps spares for the next exchange, up to exchange->keep with what is left free. */
static void keep_spares(struct spill_exchange *exchange)
{
	made_lately = spill_max(exchange->made, made_lately - made_lately / 8);
	make_parking(exchange);
	uint64_t most = spill_minus(exchange->keep, 2 * made_lately);
	if (!exchange->spare_count)
		return;
	kept_memory.backend = exchange->backend;
	kept_memory.device = exchange->device;
	for (unsigned i = exchange->spare_count; i-- && kept_memory.count < KEPT_SPARES;) {
		uint64_t bytes = exchange->spares[i].bytes;
		if (spill_exchange_kept() + bytes > most)
			continue;
		kept_memory.spares[kept_memory.count++] = exchange->spares[i];
		exchange->spares[i] = exchange->spares[--exchange->spare_count];
		atomic_fetch_add(&kept_memory.bytes, bytes);
	}
}

/* -- while the gate is closed ------------------------------------------------------------------ */

static void release_spare(struct spill_exchange *exchange, unsigned spare)
{
	struct spill_spare gone = exchange->spares[spare];
	spill_device_chunk_put(exchange->backend, exchange->device, gone.bytes, gone.handle, gone.view);
	exchange->spares[spare] = exchange->spares[--exchange->spare_count];
	exchange->room += gone.bytes;
}

static unsigned spares_of(const struct spill_exchange *exchange, uint64_t bytes)
{
	unsigned count = 0;
	for (unsigned i = 0; i < exchange->spare_count; i++)
		count += exchange->spares[i].bytes == bytes;
	return count;
}

/* Of exactly that size, with its charge. */
bool spill_exchange_use_spare(struct spill_exchange *exchange, struct spill_move *move)
{
	return give_spare(exchange->spares, &exchange->spare_count, move);
}

/* Is a chunk of the size of `next` on its way out, ahead of it? */
static bool is_size_leaving(const struct spill_exchange *exchange, struct spill_move *next)
{
	for (struct spill_move *move = exchange->order + exchange->finished; move < next; move++)
		if (spill_move_leaves(move) && spill_move_chunk(move)->bytes == spill_move_chunk(next)->bytes)
			return true;
	return false;
}

/* The spare to release first: the last one that no later chunk can use. */
static unsigned least_wanted_spare(const struct spill_exchange *exchange, struct spill_move *next)
{
	for (unsigned i = exchange->spare_count; i-- > 0;) {
		uint64_t bytes = exchange->spares[i].bytes;
		unsigned wanted = 0;
		for (struct spill_move *move = next; move < exchange->order + exchange->order_count; move++)
			wanted += !spill_move_leaves(move) && spill_move_chunk(move)->bytes == bytes;
		if (spares_of(exchange, bytes) > wanted)
			return i;
	}
	return exchange->spare_count - 1;
}

bool spill_exchange_make(struct spill_exchange *exchange, struct spill_move *move)
{
	uint64_t bytes = spill_move_chunk(move)->bytes;
	if (exchange->room < bytes ||
	    !spill_device_chunk_get(exchange->backend, exchange->device, bytes, &move->handle))
		return false;
	exchange->room -= bytes;
	exchange->made += bytes;
	return true;
}

/*
 * Gets device memory for a chunk that comes. Spares are used as they are: on a full device the
 * driver takes 3 ms to make 64 MiB again that were just released (measured, H200). So a chunk waits
 * for one of its size that is leaving.
 */
static bool get_device_memory(struct spill_move *move, void *data)
{
	struct spill_exchange *exchange = data;
	uint64_t bytes = spill_move_chunk(move)->bytes;
	if (spill_exchange_use_spare(exchange, move))
		return true;
	if (is_size_leaving(exchange, move))
		return false;
	while (exchange->room < bytes && exchange->spare_count)
		release_spare(exchange, least_wanted_spare(exchange, move));
	return spill_exchange_make(exchange, move);
}

/* Old host memory waits for spill_move_batch_settle. */
void spill_exchange_note(struct spill_exchange *exchange, struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	exchange->finished++;
	if (move->chunked->live && chunk->bytes <= SPILL_PARKING_MOST)
		exchange->can_be_dead = spill_max(exchange->can_be_dead, chunk->bytes);
	chunk->displaced = !chunk->displaced;
	if (!chunk->on_host || !move->handle)
		return;
	exchange->spares[exchange->spare_count++] =
	    (struct spill_spare){.handle = move->handle, .bytes = chunk->bytes, .view = move->view};
	move->handle = move->view = 0;
}

static void note_move(struct spill_move *move, void *data)
{
	spill_exchange_note(data, move);
}

/* -- begin and end ----------------------------------------------------------------------------- */

bool spill_exchange_open(struct spill_exchange *exchange)
{
	exchange->spares = calloc(exchange->goes.count + KEPT_SPARES, sizeof(*exchange->spares));
	exchange->spare_count = exchange->finished = 0;
	exchange->made = 0;
	if (!exchange->spares)
		return false;
	exchange->room = spill_promote_room(exchange->backend, exchange->device);
	use_kept(exchange);
	return true;
}

/* Prepares the exchange. False: no memory for its lists. */
static bool begin_exchange(struct spill_exchange *exchange, struct spill_move_batch *batch)
{
	bool made = spill_exchange_open(exchange) && spill_exchange_make_order(exchange, batch);
	exchange->order = batch->moves;
	exchange->order_count = batch->count;
	return made;
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
	if (a->chunked == b->chunked)
		return 0;
	return (uintptr_t)a->chunked < (uintptr_t)b->chunked ? -1 : 1;
}

static void report_exchange(const struct spill_move_batch *batch, struct spill_move_reason why)
{
	struct spill_move_batch part = {.moves = batch->moves};
	if (!batch->count)
		return;
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

void spill_exchange_close(struct spill_exchange *exchange, struct spill_move_batch *batch,
                          struct spill_move_reason why)
{
	exchange->came = spill_move_batch_settle(batch, exchange->backend, exchange->device).device;
	report_exchange(batch, why);
	finish_exchange(exchange);
	spill_move_batch_end(batch);
	spill_move_batch_end(&exchange->comes);
	spill_move_batch_end(&exchange->goes);
}

void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns)
{
	struct spill_move_batch batch = {0};
	struct spill_move_helper helper = {get_device_memory, note_move, exchange};
	struct spill_move_reason why = {.reason = SPILL_REASON_USE, .start_us = spill_log_now_us()};
	exchange->came = exchange->ns = 0;
	spill_move_stage(exchange->backend, exchange->device, exchange->goes.moves, exchange->goes.count);
	if (begin_exchange(exchange, &batch)) {
		why.seen = spill_device_seen(exchange->device);
		spill_move_batch_attempt(&batch, exchange->backend, exchange->device, deadline_ns, &helper,
		                         &exchange->ns);
	} else {
		spill_move_batch_settle(&exchange->goes, exchange->backend, exchange->device);
		spill_move_batch_end(&batch);
	}
	spill_exchange_close(exchange, &batch, why);
}

bool spill_exchange_bring_parked(struct spill_chunked *chunked, unsigned index)
{
	const struct spill_backend *backend = chunked->base.backend;
	int device = chunked->base.device;
	struct spill_move_reason why = {
	    .kind = SPILL_MOVE_PROMOTE, .reason = SPILL_REASON_USE, .start_us = spill_log_now_us()};
	struct spill_move move = {.chunked = chunked, .index = index};
	struct spill_move_batch batch = {.moves = &move, .count = 1};
	if (chunked->pinned || !use_kept_spare(backend, device, &move))
		return false;
	if (spill_remap_new(backend, device, &move)) {
		spill_move_done(&move);
		spill_move_chunk(&move)->displaced = !spill_move_chunk(&move)->displaced;
	}
	why.seen = spill_device_seen(device);
	bool came = spill_move_batch_settle(&batch, backend, device).device;
	spill_move_batch_report(&batch, &why);
	return came;
}

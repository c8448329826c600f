#include "exchange.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "back.h"
#include "chunked.h"
#include "process.h"
#include "host_chunks.h"

/* What is kept of one device, the last that had an exchange. The mover's, but for the sum. */
#define KEPT 64
static struct {
	const struct spill_backend *backend;
	int device;
	struct spill_spare spares[KEPT];
	unsigned count;
	_Atomic uint64_t bytes;
} kept;

bool spill_exchange_add(struct spill_exchange *exchange, struct spill_chunked *of, unsigned chunk)
{
	struct spill_move move = {.of = of, .chunk = chunk};
	struct spill_host_chunk home;
	if (of->chunks[chunk].on_host)
		return spill_move_batch_add(&exchange->comes, &move);
	if (spill_host_chunk_get(exchange->backend, exchange->device, of->chunks[chunk].bytes, &home))
		return false;
	move.handle = home.handle;
	move.view = home.view;
	exchange->fresh |= !home.view;
	if (spill_move_batch_add(&exchange->goes, &move))
		return true;
	spill_host_chunk_put(exchange->backend, exchange->device, &home, true);
	return false;
}

/* -- what is kept ------------------------------------------------------------------------------ */

uint64_t spill_exchange_kept(void)
{
	return atomic_load_explicit(&kept.bytes, memory_order_relaxed);
}

uint64_t spill_exchange_drop(void)
{
	uint64_t bytes = spill_exchange_kept();
	while (kept.count) {
		const struct spill_spare *one = &kept.spares[--kept.count];
		spill_device_chunk_put(kept.backend, kept.device, one->bytes, one->handle);
	}
	atomic_store(&kept.bytes, 0);
	return bytes;
}

void spill_exchange_forget(const struct spill_backend *backend, int device)
{
	if (!spill_exchange_kept())
		return;
	spill_mover_lock();
	if (kept.backend == backend && kept.device == device)
		spill_exchange_drop();
	spill_mover_unlock();
}

void spill_exchange_reset(void)
{
	kept.count = 0;
	atomic_store(&kept.bytes, 0);
}

/* Into the hands of this exchange. Returns the bytes. */
static uint64_t take_kept(struct spill_exchange *exchange)
{
	uint64_t bytes = spill_exchange_kept();
	if (kept.backend != exchange->backend || kept.device != exchange->device) {
		spill_exchange_drop();
		return 0;
	}
	for (unsigned i = 0; i < kept.count; i++)
		exchange->spares[exchange->spare_count++] = kept.spares[i];
	spill_exchange_reset();
	return bytes;
}

/* What is left of the spares, as far as it is to be kept. */
static void keep(struct spill_exchange *exchange)
{
	if (!exchange->spare_count)
		return;
	kept.backend = exchange->backend;
	kept.device = exchange->device;
	for (unsigned i = exchange->spare_count; i-- && kept.count < KEPT;) {
		uint64_t bytes = exchange->spares[i].bytes;
		if (spill_exchange_kept() + bytes > exchange->keep)
			continue;
		kept.spares[kept.count++] = exchange->spares[i];
		exchange->spares[i] = exchange->spares[--exchange->spare_count];
		atomic_fetch_add(&kept.bytes, bytes);
	}
}

/* -- while the gate is closed ------------------------------------------------------------------ */

static void give_back(struct spill_exchange *exchange, unsigned spare)
{
	uint64_t bytes = exchange->spares[spare].bytes;
	spill_device_chunk_put(exchange->backend, exchange->device, bytes, exchange->spares[spare].handle);
	exchange->spares[spare] = exchange->spares[--exchange->spare_count];
	exchange->room += bytes;
}

/* One that was left, of just that size; its account goes with it. */
static bool take_over(struct spill_exchange *exchange, struct spill_move *move)
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
 * Device memory for what comes. What was left is handed on as it is: on a full device the driver takes 3 ms to make 64 MiB out
 * of 64 MiB that were given back just now (measured, H200).
 */
static bool home(struct spill_move *move, void *data)
{
	struct spill_exchange *exchange = data;
	uint64_t bytes = spill_move_chunk(move)->bytes;
	if (take_over(exchange, move))
		return true;
	while (exchange->room < bytes && exchange->spare_count)
		give_back(exchange, exchange->spare_count - 1);
	if (exchange->room < bytes ||
	    !spill_device_chunk_get(exchange->backend, exchange->device, bytes, &move->handle))
		return false;
	exchange->room -= bytes;
	return true;
}

/* Old homes on host wait for settle. */
static void landed(struct spill_move *move, void *data)
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

/* Puts one of that size in the place of `at`, if there is one further on: its home fits what comes next. */
static void prefer(struct spill_move_batch *goes, unsigned at, uint64_t bytes)
{
	for (unsigned i = at; i < goes->count; i++)
		if (spill_move_chunk(&goes->moves[i])->bytes == bytes) {
			struct spill_move one = goes->moves[i];
			goes->moves[i] = goes->moves[at];
			goes->moves[at] = one;
			return;
		}
}

/*
 * One order for both ways, in turns: what comes, as soon as the room is there that is free now or was made by those before; where
 * there is none to spare, one that leaves is always a step ahead, so that neither way waits for the other. False: no memory
 * for it.
 */
static bool merge(struct spill_exchange *exchange, uint64_t room, struct spill_move_batch *plan)
{
	uint64_t ahead = 0;
	unsigned come = 0, go = 0;
	bool turn = false; /* what leaves is copied at once, what comes must be mapped first */
	while (come < exchange->comes.count || go < exchange->goes.count) {
		const struct spill_move *next =
		    come < exchange->comes.count ? &exchange->comes.moves[come] : NULL;
		bool comes = next && (go == exchange->goes.count ||
		                      (turn && spill_move_chunk(next)->bytes + ahead <= room));
		if (!comes && next)
			prefer(&exchange->goes, go, spill_move_chunk(next)->bytes);
		const struct spill_move *one = comes ? next : &exchange->goes.moves[go];
		uint64_t bytes = spill_move_chunk(one)->bytes;
		if (!spill_move_batch_add(plan, one))
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

/* What is there to begin with. False: no memory for it. */
static bool begin(struct spill_exchange *exchange, struct spill_move_batch *plan)
{
	exchange->spares = calloc(exchange->goes.count + KEPT, sizeof(*exchange->spares));
	exchange->spare_count = 0;
	if (!exchange->spares)
		return false;
	exchange->room = spill_back_room(exchange->backend, exchange->device);
	uint64_t room = exchange->room + take_kept(exchange);
	return merge(exchange, room, plan);
}

static void finish(struct spill_exchange *exchange)
{
	keep(exchange);
	while (exchange->spare_count)
		give_back(exchange, exchange->spare_count - 1);
	free(exchange->spares);
	exchange->spares = NULL;
}

/* -- afterwards -------------------------------------------------------------------------------- */

/* To the host or to the device: where it is now, or was to go. */
static bool was_to_leave(const struct spill_move *move)
{
	return move->moved == spill_move_chunk(move)->on_host;
}

/* Homes that nothing moved into are given back, and what came leaves its home on host for the next that goes. */
static void settle(struct spill_exchange *exchange, const struct spill_move_batch *plan)
{
	for (unsigned i = 0; i < plan->count; i++) {
		const struct spill_move *move = &plan->moves[i];
		uint64_t bytes = spill_move_chunk(move)->bytes;
		struct spill_host_chunk spare = {.handle = move->handle, .bytes = bytes, .view = move->view};
		bool leaves = was_to_leave(move);
		if (leaves != move->moved) {
			spill_host_chunk_put(exchange->backend, exchange->device, &spare, true);
			exchange->came += leaves ? 0 : bytes;
		} else if (!leaves && move->handle) {
			spill_device_chunk_put(exchange->backend, exchange->device, bytes, move->handle);
		}
	}
}

/* Those that left first; those of one allocation next to each other, as the report wants them. */
static int compare(const void *left, const void *right)
{
	const struct spill_move *a = left, *b = right;
	bool a_leaves = was_to_leave(a), b_leaves = was_to_leave(b);
	if (a_leaves != b_leaves)
		return a_leaves ? -1 : 1;
	if (a->of != b->of)
		return (uintptr_t)a->of < (uintptr_t)b->of ? -1 : 1;
	return (a->chunk > b->chunk) - (a->chunk < b->chunk);
}

static void report(const struct spill_move_batch *plan, uint64_t start_us)
{
	struct spill_move_reason why = {"demote", "use", "", "", start_us};
	struct spill_move_batch part = {.moves = plan->moves};
	qsort(plan->moves, plan->count, sizeof(*plan->moves), compare);
	while (part.count < plan->count && was_to_leave(&plan->moves[part.count]))
		part.count++;
	part.later = plan->count - part.count; /* one allocation can have some of either */
	spill_move_batch_report(&part, &why);
	why.what = "promote";
	part =
	    (struct spill_move_batch){.moves = plan->moves + part.count, .count = plan->count - part.count};
	spill_move_batch_report(&part, &why);
}

void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns)
{
	struct spill_move_batch plan = {0};
	struct spill_move_helper helper = {home, landed, exchange};
	uint64_t start_us = spill_log_now_us();
	exchange->came = 0;
	exchange->ns = 0;
	spill_move_stage(exchange->backend, exchange->device, exchange->goes.moves, exchange->goes.count);
	if (begin(exchange, &plan)) {
		spill_move_batch_attempt(&plan, exchange->backend, exchange->device, deadline_ns, &helper,
		                         &exchange->ns);
		settle(exchange, &plan);
		report(&plan, start_us);
	} else {
		settle(exchange, &exchange->goes);
	}
	finish(exchange);
	spill_move_batch_end(&plan);
	spill_move_batch_end(&exchange->comes);
	spill_move_batch_end(&exchange->goes);
}

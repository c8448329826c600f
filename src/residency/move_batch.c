#include "move_batch.h"

#include <stdlib.h>

#include "capture.h"
#include "clock.h"
#include "contexts.h"
#include "device_memory.h"
#include "live_page.h"
#include "metrics.h"
#include "gate.h"
#include "host_chunks.h"
#include "quiesce.h"
#include "ledger.h"
#include "stderr.h"
#include "chunked.h"
#include "scratch.h"

/* The shortest wait. */
#define LEAST_US 5000ull

bool spill_move_batch_add(struct spill_move_batch *batch, const struct spill_move *move)
{
	if (batch->count == batch->capacity) {
		unsigned capacity = batch->capacity ? 2 * batch->capacity : 64;
		struct spill_move *larger = realloc(batch->moves, capacity * sizeof(*larger));
		if (!larger)
			return false;
		batch->moves = larger;
		batch->capacity = capacity;
	}
	batch->moves[batch->count++] = *move;
	batch->bytes += spill_move_chunk(move)->bytes;
	return true;
}

/*
 * How often the device was busy in a row. Each time halves the next wait, and before new memory is
 * made the device is looked at. So a program that allocates again and again beside endless work is
 * not stopped for long each time. The mover's lock guards it.
 */
static unsigned busy_in_row;

static uint64_t patience_us(uint64_t wait_us)
{
	uint64_t us = busy_in_row < 16 ? wait_us >> busy_in_row : 0;
	return us > LEAST_US ? us : wait_us < LEAST_US ? wait_us : LEAST_US;
}

bool spill_move_batch_has_a_chance(const struct spill_backend *backend, int device, uint64_t wait_us)
{
	uint64_t deadline_ns = spill_clock_ns() + patience_us(wait_us) * 1000;
	if (!busy_in_row)
		return true;
	bool idle = spill_quiesce_look(backend, device, deadline_ns, deadline_ns);
	busy_in_row = idle ? 0 : busy_in_row + 1;
	return idle;
}

/*
 * The context for the copies: that of the first chunk, or any of the device. Segments and sets outlive
 * theirs.
 */
static void *live_context(const struct spill_backend *backend, int device,
                          const struct spill_move_batch *batch)
{
	void *own = batch->moves[0].chunked->base.context, *list[SPILL_CONTEXTS];
	unsigned count = spill_contexts_of(backend, device, list);
	for (unsigned i = 0; i < count && count <= SPILL_CONTEXTS; i++)
		if (list[i] == own)
			return own;
	return count && count <= SPILL_CONTEXTS ? list[0] : own;
}

const char *spill_move_batch_attempt(struct spill_move_batch *batch, const struct spill_backend *backend,
                                     int device, uint64_t deadline_ns, const struct spill_move_helper *helper,
                                     uint64_t *moving_ns)
{
	const char *error = NULL;
	*moving_ns = 0;
	if (!spill_gate_close(deadline_ns))
		return "movable.wait: a call does not return";
	/*
	 * Marks break a capture. One that begins after this look is refused, or does not disturb
	 * the moves.
	 */
	if (spill_capture_any()) {
		error = spill_refused_by_name(SPILL_REFUSED_BY_CAPTURE);
	} else if (!spill_quiesce_wait(backend, device, deadline_ns)) {
		error = "movable.wait: the device is busy";
	} else {
		uint64_t start_ns = spill_clock_ns();
		void *context = live_context(backend, device, batch);
		if (spill_move(backend, device, context, batch->moves, batch->count, helper) < batch->count)
			error = "the driver refused to move";
		*moving_ns = spill_clock_ns() - start_ns + 1;
	}
	spill_gate_open();
	return error;
}

const char *spill_move_batch_carry_out(struct spill_move_batch *batch, const struct spill_backend *backend,
                                       int device, uint64_t wait_us)
{
	uint64_t moving_ns;
	spill_move_stage(backend, device, batch->moves, batch->count);
	uint64_t deadline_ns = spill_clock_ns() + patience_us(wait_us) * 1000;
	const char *error = spill_move_batch_attempt(batch, backend, device, deadline_ns, NULL, &moving_ns);
	busy_in_row = moving_ns ? 0 : busy_in_row + 1;
	for (unsigned i = 0; i < batch->count; i++)
		if (batch->moves[i].moved)
			spill_move_chunk(&batch->moves[i])->displaced = false;
	return error;
}

struct spill_bytes spill_move_batch_settle(const struct spill_move_batch *batch,
                                           const struct spill_backend *backend, int device)
{
	struct spill_bytes moved = {0};
	for (unsigned i = 0; i < batch->count; i++) {
		const struct spill_move *move = &batch->moves[i];
		uint64_t bytes = spill_move_chunk(move)->bytes;
		bool leaves = spill_move_leaves(move);
		if (move->moved)
			*(leaves ? &moved.host : &moved.device) += bytes;
		if (leaves != move->moved)
			spill_host_chunk_put(backend, device,
			                     &(struct spill_host_chunk){move->handle, bytes, move->view},
			                     true);
		else if (move->handle)
			spill_device_chunk_put(backend, device, bytes, move->handle, move->view);
	}
	return moved;
}

/* The bytes that the allocation held before the later moves. */
static struct spill_bytes held_before(const struct spill_chunked *chunked, const struct spill_move *later,
                                      unsigned count)
{
	struct spill_bytes held = chunked->base.held;
	for (unsigned i = 0; i < count; i++)
		if (later[i].chunked == chunked && later[i].moved) {
			held.device -= chunked->chunks[later[i].index].bytes;
			held.host += chunked->chunks[later[i].index].bytes;
		}
	return held;
}

/* The moved part of an allocation. */
struct moved_part {
	uint64_t seq, order; /* of its alloc; of this event */
	struct spill_level level;
	int device;
	uint64_t bytes; /* bytes that moved */
	unsigned chunks;
	struct spill_bytes held; /* by the whole allocation, afterwards */
};

static void write_loud_line(const struct moved_part *moved, bool at_limit)
{
	char line[1024];
	struct spill_text text;
	if (!spill_loud_line_begin(&text, line, sizeof(line), moved->bytes,
	                           moved->held.device + moved->held.host, spill_ledger_away_now()))
		return;
	spill_text_add(&text, " moved to host memory to make room");
	spill_loud_line_device(&text, moved->device, at_limit);
	spill_loud_line_end(&text, line);
}

/* The lines of one move tell its time together: each adds what passed since the line before. */
static uint64_t tell_time(const struct moved_part *moved, struct spill_move_reason *why)
{
	uint64_t took_us = spill_log_now_us() - why->start_us;
	spill_ledger_held_up(moved->device, took_us - why->told_us);
	why->told_us = took_us;
	return took_us;
}

static void report_part(const struct moved_part *moved, struct spill_move_reason *why)
{
	bool demoted = why->kind == SPILL_MOVE_DEMOTE;
	uint64_t took_us = tell_time(moved, why);
	if (spill_log_active()) {
		char *line = spill_scratch_take();
		struct spill_record_move record = {
		    .time_us = why->start_us + took_us,
		    .seq = moved->seq,
		    .order = moved->order,
		    .level = moved->level,
		    .tid = spill_log_tid(),
		    .device = moved->device,
		    .what = spill_move_name(why->kind),
		    .api = why->api && why->api[0] ? why->api : NULL,
		    .caller = why->caller && why->caller[0] ? why->caller : NULL,
		    .bytes = moved->bytes,
		    .chunks = moved->chunks,
		    .held = moved->held,
		    .reason = spill_reason_name(why->reason),
		    .seen = why->seen,
		    .took_us = took_us,
		};
		size_t length = line ? spill_record_move(&record, line, SPILL_LOG_LINE) : 0;
		const struct spill_bytes came = {.device = demoted ? 0 : moved->bytes,
		                                 .host = demoted ? moved->bytes : 0};
		spill_ledger_offer(line, length, SPILL_LOG_SOON,
		                   demoted ? SPILL_DROP_DEMOTE : SPILL_DROP_PROMOTE, &came);
		spill_scratch_give_back(line);
	}
	spill_live_page_decided(moved->device, moved->bytes,
	                        &(struct spill_live_page_text){
	                            .what = spill_move_name(why->kind),
	                            .place = demoted ? "host" : "device",
	                            .reason = spill_reason_name(why->reason),
	                            .api = why->api,
	                            .caller = why->caller,
	                        });
	if (demoted)
		write_loud_line(moved, why->reason == SPILL_REASON_LIMIT);
}

void spill_move_batch_report(const struct spill_move_batch *batch, struct spill_move_reason *why)
{
	bool told = false;
	for (unsigned i = 0, end; i < batch->count; i = end) {
		struct spill_chunked *chunked = batch->moves[i].chunked;
		struct moved_part moved = {
		    .device = chunked->base.device,
		    .seq = chunked->seq,
		    .held = held_before(chunked, batch->moves + batch->count, batch->later)};
		for (end = i; end < batch->count && batch->moves[end].chunked == chunked; end++)
			if (batch->moves[end].moved) {
				moved.chunks++;
				moved.bytes += spill_move_chunk(&batch->moves[end])->bytes;
			}
		/* An allocation that is just being freed has had its last line. */
		if (moved.chunks && spill_ledger_moved(spill_chunked_name(chunked), chunked->seq, &moved.held,
		                                       &moved.order, &moved.level)) {
			report_part(&moved, why);
			told = true;
		}
	}
	/* A write for each line would take longer than the line: up to 30 leave and come together. */
	if (told)
		spill_log_flush();
	spill_metrics_look();
}

void spill_move_batch_end(struct spill_move_batch *batch)
{
	free(batch->moves);
	*batch = (struct spill_move_batch){0};
}

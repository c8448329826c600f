#include "move_batch.h"

#include <stdlib.h>

#include "capture.h"
#include "clock.h"
#include "live_page.h"
#include "gate.h"
#include "quiesce.h"
#include "ledger.h"
#include "loud_line.h"
#include "chunked.h"
#include "scratch.h"

/* The shortest wait. */
#define LEAST_US 5000ull

bool spill_move_batch_add(struct spill_move_batch *plan, const struct spill_move *move)
{
	if (plan->count == plan->room) {
		unsigned room = plan->room ? 2 * plan->room : 64;
		struct spill_move *larger = realloc(plan->moves, room * sizeof(*larger));
		if (!larger)
			return false;
		plan->moves = larger;
		plan->room = room;
	}
	plan->moves[plan->count++] = *move;
	plan->bytes += spill_move_chunk(move)->bytes;
	return true;
}

/*
 * A device that was busy is waited for half as long the next time, and looked at before new homes are made: who allocates again
 * and again beside work without end is not stopped for long each time. The mover's.
 */
static unsigned vain;

static uint64_t patience_us(uint64_t wait_us)
{
	uint64_t us = vain < 16 ? wait_us >> vain : 0;
	return us > LEAST_US ? us : wait_us < LEAST_US ? wait_us : LEAST_US;
}

bool spill_move_batch_has_a_chance(const struct spill_backend *backend, int device, uint64_t wait_us)
{
	uint64_t deadline_ns = spill_clock_ns() + patience_us(wait_us) * 1000;
	if (!vain)
		return true;
	bool idle = spill_quiesce_look(backend, device, deadline_ns, deadline_ns);
	vain = idle ? 0 : vain + 1;
	return idle;
}

const char *spill_move_batch_attempt(struct spill_move_batch *plan, const struct spill_backend *backend,
                                     int device, uint64_t deadline_ns, const struct spill_move_helper *helper,
                                     uint64_t *moving_ns)
{
	const char *error = NULL;
	*moving_ns = 0;
	if (!spill_gate_close(deadline_ns))
		return "movable.wait: a call does not return";
	/* Marks are refused in a capture; one that begins behind this look is refused there, or leaves the moves alone. */
	if (spill_capture_any()) {
		error = spill_refused_by_name(SPILL_REFUSED_BY_CAPTURE);
	} else if (!spill_quiesce_wait(backend, device, deadline_ns)) {
		error = "movable.wait: the device is busy";
	} else {
		uint64_t start_ns = spill_clock_ns();
		void *context = plan->moves[0].of->base.context;
		if (spill_move(backend, device, context, plan->moves, plan->count, helper) < plan->count)
			error = "the driver refused to move";
		*moving_ns = spill_clock_ns() - start_ns + 1;
	}
	spill_gate_open();
	return error;
}

const char *spill_move_batch_carry_out(struct spill_move_batch *plan, const struct spill_backend *backend,
                                       int device, uint64_t wait_us)
{
	uint64_t moving_ns;
	spill_move_stage(backend, device, plan->moves, plan->count);
	uint64_t deadline_ns = spill_clock_ns() + patience_us(wait_us) * 1000;
	const char *error = spill_move_batch_attempt(plan, backend, device, deadline_ns, NULL, &moving_ns);
	vain = moving_ns ? 0 : vain + 1;
	for (unsigned i = 0; i < plan->count; i++)
		if (plan->moves[i].moved)
			spill_move_chunk(&plan->moves[i])->displaced = false;
	return error;
}

/* What it held before those that came later. */
static struct spill_bytes held_before(const struct spill_chunked *of, const struct spill_move *later,
                                      unsigned count)
{
	struct spill_bytes held = of->base.held;
	for (unsigned i = 0; i < count; i++)
		if (later[i].of == of && later[i].moved) {
			held.device -= of->chunks[later[i].chunk].bytes;
			held.host += of->chunks[later[i].chunk].bytes;
		}
	return held;
}

/* What has moved of an allocation. */
struct moved {
	uint64_t seq, order; /* of its alloc; of this event */
	int device;
	uint64_t bytes; /* that moved, in so many chunks */
	unsigned chunks;
	struct spill_bytes held; /* by all of it afterwards */
};

static void loud_move(const struct moved *moved, bool at_limit)
{
	char line[1024];
	struct spill_text text;
	if (!spill_loud_line_begin(&text, line, sizeof(line), moved->bytes,
	                           moved->held.device + moved->held.host))
		return;
	spill_text_add(&text, " moved to host memory to make room");
	spill_loud_line_device(&text, moved->device, at_limit);
	spill_loud_line_end(&text, line);
}

static void report(const struct moved *moved, const struct spill_move_reason *why)
{
	bool demoted = why->kind == SPILL_MOVE_DEMOTE;
	if (spill_log_active()) {
		char *line = spill_scratch_take();
		struct spill_record_move record = {
		    .time_us = spill_log_now_us(),
		    .seq = moved->seq,
		    .order = moved->order,
		    .tid = spill_log_tid(),
		    .device = moved->device,
		    .what = spill_move_name(why->kind),
		    .api = why->api && why->api[0] ? why->api : NULL,
		    .caller = why->caller && why->caller[0] ? why->caller : NULL,
		    .bytes = moved->bytes,
		    .chunks = moved->chunks,
		    .held = moved->held,
		    .reason = spill_reason_name(why->reason),
		};
		record.took_us = record.time_us - why->start_us;
		size_t length = line ? spill_record_move(&record, line, SPILL_LOG_LINE) : 0;
		const struct spill_bytes came = {.device = demoted ? 0 : moved->bytes,
		                                 .host = demoted ? moved->bytes : 0};
		spill_ledger_offer(line, length, SPILL_LOG_NOW,
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
		loud_move(moved, why->reason == SPILL_REASON_LIMIT);
}

void spill_move_batch_report(const struct spill_move_batch *plan, const struct spill_move_reason *why)
{
	for (unsigned i = 0, end; i < plan->count; i = end) {
		struct spill_chunked *of = plan->moves[i].of;
		struct moved moved = {.device = of->base.device,
		                      .seq = of->seq,
		                      .held = held_before(of, plan->moves + plan->count, plan->later)};
		for (end = i; end < plan->count && plan->moves[end].of == of; end++)
			if (plan->moves[end].moved) {
				moved.chunks++;
				moved.bytes += spill_move_chunk(&plan->moves[end])->bytes;
			}
		/* One that is being freed at this moment has had its last line. */
		if (moved.chunks && spill_ledger_moved(of->base.ptr, of->seq, &moved.held, &moved.order))
			report(&moved, why);
	}
}

void spill_move_batch_end(struct spill_move_batch *plan)
{
	free(plan->moves);
	*plan = (struct spill_move_batch){0};
}

/* What is told of a batch of moves, and where: lines of the log, the loud line, the live page, the time. */
#define SETUP setup
#include "unit.h"

#include "move_batch_world.h"

static struct spill_move_reason reason(enum spill_move_kind kind, enum spill_reason why)
{
	return (struct spill_move_reason){
	    .kind = kind, .reason = why, .api = "cudaMalloc", .caller = "train+0x10", .start_us = BEGAN};
}

/* One line for each allocation. Their times are the whole, and are told once. */
TEST(what_leaves_is_told)
{
	struct spill_chunked *first = allocation(false), *second = allocation(false);
	struct spill_move_reason why = reason(SPILL_MOVE_DEMOTE, SPILL_REASON_OOM);
	plan(first, 2)->moved = true;
	plan(first, 1)->moved = true;
	plan(first, 0);
	plan(second, 2)->moved = true;
	second->base.held = (struct spill_bytes){.device = 2 * CHUNK, .host = CHUNK};
	world.log = world.loud = true;
	why.seen = (struct spill_seen){.free = 5, .total = 6};
	spill_move_batch_report(&batch, &why);
	assert_string_equal(what_was_said(),
	                    "moved:1 held up:500 offer:33 back:1 demote/host/oom/cudaMalloc/train+0x10:8192 "
	                    "loud:8192  moved to host memory to make room (full:0 "
	                    "moved:2 held up:10 offer:33 back:1 demote/host/oom/cudaMalloc/train+0x10:4096 "
	                    "loud:4096  moved to host memory to make room (full:0 flush:0");
	assert_int_equal(record.time_us, NOW + 10);
	assert_int_equal(record.took_us, NOW + 10 - BEGAN);
	assert_int_equal(record.seq, 2);
	assert_int_equal(record.order, 52);
	assert_int_equal(record.tid, 11);
	assert_int_equal(record.device, DEVICE);
	assert_string_equal(record.what, "demote");
	assert_string_equal(record.reason, "oom");
	assert_string_equal(record.api, "cudaMalloc");
	assert_string_equal(record.caller, "train+0x10");
	assert_int_equal(record.bytes, CHUNK);
	assert_int_equal(record.chunks, 1);
	assert_int_equal(record.held.device, 2 * CHUNK);
	assert_int_equal(record.held.host, CHUNK);
	assert_int_equal(record.seen.free, 5);
	assert_int_equal(offered.host, CHUNK);
	assert_int_equal(offered.device, 0);
	assert_int_equal(dropped, SPILL_DROP_DEMOTE);
}

/* There is nothing loud about it. A call that is not known has no name in the log. */
TEST(what_comes_is_told_quietly)
{
	struct spill_move_reason why = reason(SPILL_MOVE_PROMOTE, SPILL_REASON_FREE);
	struct spill_chunked *chunked = allocation(true);
	why.api = "";
	why.caller = NULL;
	plan(chunked, 0)->moved = true;
	world.log = true;
	spill_move_batch_report(&batch, &why);
	assert_string_equal(what_was_said(), "moved:1 held up:500 offer:33 back:1 "
	                                     "promote/device/free//(null):4096 flush:0");
	assert_null(record.api);
	assert_null(record.caller);
	assert_int_equal(offered.device, CHUNK);
	assert_int_equal(offered.host, 0);
	assert_int_equal(dropped, SPILL_DROP_PROMOTE);
}

/* Without memory for a line the log counts it as left out. */
TEST(a_line_without_memory)
{
	struct spill_move_reason why = reason(SPILL_MOVE_DEMOTE, SPILL_REASON_LIMIT);
	plan(allocation(false), 0)->moved = true;
	world.log = world.no_scratch = true;
	spill_move_batch_report(&batch, &why);
	assert_string_equal(what_was_said(),
	                    "moved:1 held up:500 offer:0 "
	                    "demote/host/limit/cudaMalloc/train+0x10:4096 loud:4096 flush:0");
	assert_int_equal(offered.host, CHUNK);
}

TEST(a_limit_is_told_as_such)
{
	struct spill_move_reason why = reason(SPILL_MOVE_DEMOTE, SPILL_REASON_LIMIT);
	plan(allocation(false), 0)->moved = true;
	world.loud = true;
	spill_move_batch_report(&batch, &why);
	assert_string_equal(what_was_said(), "moved:1 held up:500 "
	                                     "demote/host/limit/cudaMalloc/train+0x10:4096 loud:4096 "
	                                     " moved to host memory to make room (limit:0 flush:0");
}

/* Nothing moved, or the allocation is just being freed. The figures are looked at all the same. */
TEST(nothing_is_told)
{
	struct spill_move_reason why = reason(SPILL_MOVE_DEMOTE, SPILL_REASON_OOM);
	struct spill_chunked *stays = allocation(false), *freed = allocation(false);
	plan(stays, 0);
	plan(freed, 0)->moved = true;
	world.freed = true;
	spill_metrics_state = SPILL_METRICS_CHANGED;
	spill_move_batch_report(&batch, &why);
	assert_string_equal(what_was_said(), "moved:2 metrics:0");
}

/* An exchange logs what came before what left. The first line tells what was held between the two. */
TEST(later_moves_are_told_later)
{
	struct spill_move_reason why = reason(SPILL_MOVE_PROMOTE, SPILL_REASON_ROOM);
	struct spill_chunked *both = allocation(false), *other = allocation(false);
	both->base.held = (struct spill_bytes){.device = CHUNK, .host = 2 * CHUNK};
	plan(both, 0)->moved = true;
	plan(both, 1)->moved = both->chunks[1].on_host = true;
	plan(both, 2); /* did not leave */
	plan(other, 0)->moved = true;
	plan(both, 2)->moved = true; /* behind the later ones: another's */
	batch.count = 1;
	batch.later = 3;
	spill_move_batch_report(&batch, &why);
	assert_int_equal(told_held.device, 0);
	assert_int_equal(told_held.host, 3 * CHUNK);
}

/*
 * A batch of moves: how long it waits, in which context it copies, where memory goes afterwards, and what is told of it.
 * All that it calls is replaced, and tells its name.
 */
#define SETUP setup
#include "unit.h"

#include "capture.h"
#include "contexts.h"
#include "fake_clock.h"
#include "host_chunks.h"
#include "ledger.h"
#include "live_page.h"
#include "metrics.h"
#include "move_batch.h"
#include "quiesce.h"
#include "said.h"
#include "scratch.h"
#include "stderr.h"
#include "walked_chunks.h"

#define US 1000ull
#define LEAST 5000ull /* us: the shortest wait */

enum { DEVICE = 2, CHUNK = 4096, BEGAN = 400, NOW = 900 };

static const struct spill_backend vendor;
static int other_context, own_context;
static struct {
	bool capturing, busy, shut, refuses, log, no_scratch, loud, freed;
	uint64_t waited_ns; /* the time to the last deadline */
	void *list[SPILL_CONTEXTS + 1], *copies_in;
	unsigned contexts;
} world;

/* -- in place of the gate and the device ------------------------------------------------------- */

bool spill_capture_any(void)
{
	return world.capturing;
}

bool spill_gate_close(uint64_t deadline_ns)
{
	world.waited_ns = deadline_ns - fake_clock.ns;
	say("close", !world.shut);
	return !world.shut;
}

void spill_gate_open(void)
{
	say("open", 0);
}

bool spill_quiesce_wait(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	assert_int_equal(deadline_ns - fake_clock.ns, world.waited_ns);
	say("wait", !world.busy);
	return !world.busy;
}

bool spill_quiesce_look(const struct spill_backend *backend, int device, uint64_t gate_ns,
                        uint64_t deadline_ns)
{
	assert_int_equal(gate_ns, deadline_ns);
	world.waited_ns = deadline_ns - fake_clock.ns;
	say("look", !world.busy);
	return !world.busy;
}

unsigned spill_contexts_of(const struct spill_backend *backend, int device, void *list[SPILL_CONTEXTS])
{
	assert_int_equal(device, DEVICE);
	memcpy(list, world.list, SPILL_CONTEXTS * sizeof(list[0]));
	return world.contexts;
}

void spill_move_stage(const struct spill_backend *backend, int device, struct spill_move *moves,
                      unsigned count)
{
	say("stage", count);
}

unsigned spill_move(const struct spill_backend *backend, int device, void *context, struct spill_move *moves,
                    unsigned count, const struct spill_move_helper *helper)
{
	world.copies_in = context;
	say("move", count);
	fake_clock.ns += 7;
	for (unsigned i = 0; i < count - world.refuses; i++) {
		spill_move_chunk(&moves[i])->on_host = !spill_move_chunk(&moves[i])->on_host;
		moves[i].moved = true;
	}
	return count - world.refuses;
}

void spill_host_chunk_put(const struct spill_backend *backend, int device,
                          const struct spill_host_chunk *chunk, bool keep)
{
	assert_int_equal(device, DEVICE);
	assert_true(keep && chunk->bytes == CHUNK && chunk->view == chunk->handle + 1);
	say("host", chunk->handle);
}

void spill_device_chunk_put(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t handle,
                            uint64_t view)
{
	assert_int_equal(device, DEVICE);
	assert_true(bytes == CHUNK && view == handle + 1);
	say("device", handle);
}

/* -- in place of what is told ------------------------------------------------------------------ */

_Atomic int spill_metrics_state;

void spill_metrics_start(void)
{
	say("metrics", 0);
}

bool spill_log_active(void)
{
	return world.log;
}

uint64_t spill_log_now_us(void)
{
	return fake_clock.ns / US;
}

int spill_log_tid(void)
{
	return 11;
}

void spill_log_flush(void)
{
	say("flush", 0);
}

static char line[SPILL_LOG_LINE];

void *spill_scratch_take(void)
{
	return world.no_scratch ? NULL : line;
}

void spill_scratch_give_back(void *room)
{
	if (room && said[0]) /* the frame of the tests looks for memory that was not given back, too */
		say("back", room == line);
}

static struct spill_record_move record;

size_t spill_record_move(const struct spill_record_move *told, char *buffer, size_t size)
{
	assert_true(buffer == line && size == SPILL_LOG_LINE);
	record = *told;
	return 33;
}

static struct spill_bytes offered;
static enum spill_drop dropped;

void spill_ledger_offer(const char *text, size_t length, enum spill_log_when when, enum spill_drop kind,
                        const struct spill_bytes *bytes)
{
	assert_ptr_equal(text, world.no_scratch ? NULL : line);
	assert_int_equal(when, SPILL_LOG_SOON);
	offered = *bytes;
	dropped = kind;
	say("offer", length);
}

uint64_t spill_ledger_away_now(void)
{
	return 77;
}

void spill_ledger_held_up(int device, uint64_t us)
{
	assert_int_equal(device, DEVICE);
	say("held up", us);
	fake_clock.ns += 10 * US;
}

static struct spill_bytes told_held;

bool spill_ledger_moved(uint64_t ptr, uint64_t seq, const struct spill_bytes *held, uint64_t *order,
                        struct spill_level *level)
{
	say("moved", seq);
	assert_int_equal(ptr, walked[seq - 1].chunked.base.ptr);
	told_held = *held;
	*order = 50 + seq;
	return !world.freed;
}

void spill_live_page_decided(int device, uint64_t bytes, const struct spill_live_page_text *text)
{
	char words[128];
	assert_int_equal(device, DEVICE);
	snprintf(words, sizeof(words), "%s/%s/%s/%s/%s", text->what, text->place, text->reason, text->api,
	         text->caller);
	say(words, bytes);
}

bool spill_loud_line_begin(struct spill_text *text, char *buffer, size_t size, uint64_t part, uint64_t whole,
                           uint64_t away)
{
	assert_int_equal(whole, 3 * CHUNK);
	assert_int_equal(away, 77);
	say("loud", part);
	*text = spill_text_begin(buffer, size);
	return world.loud;
}

void spill_loud_line_device(struct spill_text *text, int device, bool at_limit)
{
	assert_int_equal(device, DEVICE);
	spill_text_add(text, at_limit ? " (limit" : " (full");
}

void spill_loud_line_end(struct spill_text *text, const char *buffer)
{
	say(text->buffer, 0);
}

/* ---------------------------------------------------------------------------------------------- */

static struct spill_move moves[8];
static struct spill_move_batch batch;

static struct spill_chunked *allocation(bool on_host)
{
	struct spill_chunked *chunked = walk_one_more(&vendor, 3, CHUNK, on_host);
	chunked->base.device = DEVICE;
	chunked->base.context = &own_context;
	return chunked;
}

/* One more move of the batch. The new memory is 10, 12, 14 …, and its view is the next number. */
static struct spill_move *plan(struct spill_chunked *chunked, unsigned index)
{
	struct spill_move *move = &moves[batch.count];
	uint64_t handle = 10 + 2 * batch.count++;
	*move = (struct spill_move){.chunked = chunked, .index = index, .handle = handle, .view = handle + 1};
	return move;
}

static const char *carry_out(uint64_t wait_us)
{
	return spill_move_batch_carry_out(&batch, &vendor, DEVICE, wait_us);
}

static int setup(void **state)
{
	memset(&world, 0, sizeof(world));
	fake_clock_use(NOW * US);
	walk_nothing();
	spill_metrics_state = SPILL_METRICS_OFF;
	world.contexts = 1;
	world.list[0] = &own_context;
	/* Moves begin. So the device is not known as busy. */
	memset(moves, 0, sizeof(moves));
	batch = (struct spill_move_batch){.moves = moves};
	plan(allocation(false), 0);
	assert_null(carry_out(1));
	memset(moves, 0, sizeof(moves));
	batch.count = 0;
	walk_nothing();
	fake_clock_use(NOW * US);
	what_was_said();
	return 0;
}

/* -- carrying out ------------------------------------------------------------------------------ */

/* Host memory is mapped before the program is stopped. */
TEST(moves_are_carried_out_behind_a_closed_gate)
{
	struct spill_chunked *chunked = allocation(false);
	chunked->chunks[0].displaced = chunked->chunks[1].displaced = true;
	plan(chunked, 0);
	plan(chunked, 1);
	world.refuses = true;
	assert_string_equal(carry_out(20000), "the driver refused to move");
	assert_string_equal(what_was_said(), "stage:2 close:1 wait:1 move:2 open:0");
	assert_int_equal(world.waited_ns, 20000 * US);
	/* What has moved is where this move wants it. */
	assert_false(chunked->chunks[0].displaced);
	assert_true(chunked->chunks[1].displaced);
	world.refuses = false;
	assert_null(carry_out(20000));
}

/* A move behind the batch is another's. */
TEST(only_the_moves_of_the_batch_count)
{
	struct spill_chunked *chunked = allocation(false);
	chunked->chunks[1].displaced = true;
	plan(chunked, 0);
	plan(chunked, 1)->moved = true;
	batch.count = 1;
	assert_null(carry_out(1));
	assert_true(chunked->chunks[1].displaced);
}

TEST(moves_that_may_not_begin)
{
	static const struct {
		bool capturing, busy, shut;
		const char *error, *said;
	} cases[] = {
	    {true, false, false, "capture", "stage:1 close:1 open:0"},
	    {false, true, false, "movable.wait: the device is busy", "stage:1 close:1 wait:0 open:0"},
	    {false, false, true, "movable.wait: a call does not return", "stage:1 close:0"},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		setup(NULL);
		plan(allocation(false), 0);
		world.capturing = cases[i].capturing;
		world.busy = cases[i].busy;
		world.shut = cases[i].shut;
		assert_string_equal(carry_out(1),
		                    i ? cases[i].error : spill_refused_by_name(SPILL_REFUSED_BY_CAPTURE));
		assert_string_equal(what_was_said(), cases[i].said);
	}
}

/* The time of the moves is never 0, even if the clock does not go on. */
TEST(an_attempt_tells_its_time)
{
	uint64_t ns = 99;
	plan(allocation(false), 0);
	assert_null(spill_move_batch_attempt(&batch, &vendor, DEVICE, fake_clock.ns + 5, NULL, &ns));
	assert_int_equal(ns, 7 + 1);
	assert_int_equal(world.waited_ns, 5);
	world.busy = true;
	assert_non_null(spill_move_batch_attempt(&batch, &vendor, DEVICE, fake_clock.ns + 5, NULL, &ns));
	assert_int_equal(ns, 0);
}

static uint64_t next_wait_us(uint64_t wait_us)
{
	carry_out(wait_us);
	return world.waited_ns / US;
}

/* A program beside endless work is stopped for a shorter and shorter time. */
TEST(each_busy_time_halves_the_wait)
{
	plan(allocation(false), 0);
	world.busy = true;
	for (uint64_t wait_us = 64 * LEAST; wait_us >= LEAST; wait_us /= 2)
		assert_int_equal(next_wait_us(64 * LEAST), wait_us);
	assert_int_equal(next_wait_us(64 * LEAST), LEAST);
	assert_int_equal(next_wait_us(100), 100); /* which is all that the user allows */
	world.busy = false;
	assert_int_equal(next_wait_us(64 * LEAST), LEAST);
	assert_int_equal(next_wait_us(64 * LEAST), 64 * LEAST);
}

/* Sixteen times in a row are enough for any wait. */
TEST(the_longest_wait_becomes_the_shortest)
{
	const uint64_t long_us = LEAST << 18;
	plan(allocation(false), 0);
	world.busy = true;
	for (unsigned i = 0; i < 16; i++)
		assert_int_equal(next_wait_us(long_us), long_us >> i);
	for (unsigned i = 16; i < 70; i++)
		assert_int_equal(next_wait_us(long_us), LEAST);
}

/* A device that was busy is looked at before memory is made for it. */
TEST(a_device_that_was_busy_is_looked_at_first)
{
	assert_true(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_string_equal(what_was_said(), "");
	plan(allocation(false), 0);
	world.busy = true;
	carry_out(64 * LEAST);
	what_was_said();
	assert_false(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_int_equal(world.waited_ns, 32 * LEAST * US);
	assert_false(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_int_equal(world.waited_ns, 16 * LEAST * US);
	world.busy = false;
	assert_true(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_string_equal(what_was_said(), "look:0 look:0 look:1");
	assert_true(spill_move_batch_has_a_chance(&vendor, DEVICE, 64 * LEAST));
	assert_string_equal(what_was_said(), "");
}

/* In that of the first chunk, if it lives. Else in any. If not all are known, its own is as good as any. */
TEST(the_context_of_the_copies)
{
	enum { NONE = SPILL_CONTEXTS + 1 };
	static const struct {
		unsigned count, own_at; /* its own context is in the list there */
		const void *copies_in;
	} cases[] = {
	    {0, NONE, &own_context},
	    {1, NONE, &other_context},
	    {2, 1, &own_context},
	    {2, 2, &other_context}, /* left over behind the list */
	    {SPILL_CONTEXTS, SPILL_CONTEXTS - 1, &own_context},
	    {SPILL_CONTEXTS, NONE, &other_context},
	    {SPILL_CONTEXTS + 1, NONE, &own_context},
	};
	plan(allocation(false), 0);
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (unsigned at = 0; at < SPILL_CONTEXTS; at++)
			world.list[at] = at == cases[i].own_at ? &own_context : &other_context;
		world.contexts = cases[i].count;
		carry_out(1);
		assert_ptr_equal(world.copies_in, cases[i].copies_in);
	}
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Host memory is kept: that of chunks that came, and of those that did not leave. */
TEST(memory_that_is_left_over)
{
	struct spill_chunked *goes = allocation(false), *comes = allocation(true);
	plan(goes, 0)->moved = goes->chunks[0].on_host = true;
	plan(goes, 1); /* stays */
	plan(comes, 0)->moved = true;
	comes->chunks[0].on_host = false;
	plan(comes, 1);             /* stays */
	plan(comes, 2)->handle = 0; /* and never had new memory */
	struct spill_bytes moved = spill_move_batch_settle(&batch, &vendor, DEVICE);
	assert_int_equal(moved.host, CHUNK);
	assert_int_equal(moved.device, CHUNK);
	assert_string_equal(what_was_said(), "device:10 host:12 host:14 device:16");
}

/* A batch grows with its moves. */
TEST(any_number_of_moves)
{
	struct spill_move_batch grows = {0};
	const struct spill_move move = {.chunked = allocation(false), .index = 1};
	for (unsigned i = 1; i <= 200; i++) {
		assert_true(spill_move_batch_add(&grows, &move));
		assert_int_equal(grows.count, i);
		assert_int_equal(grows.bytes, i * CHUNK);
	}
	assert_memory_equal(&grows.moves[0], &move, sizeof(move));
	assert_memory_equal(&grows.moves[199], &move, sizeof(move));
	spill_move_batch_end(&grows);
	assert_null(grows.moves);
	assert_int_equal(grows.count + grows.capacity + grows.bytes, 0);
}

/* -- what is told ------------------------------------------------------------------------------ */

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

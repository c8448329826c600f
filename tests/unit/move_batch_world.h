/*
 * A batch of moves alone: all that move_batch.c calls is replaced, and tells its name. A test includes this behind unit.h.
 */
#ifndef SPILL_TEST_MOVE_BATCH_WORLD_H
#define SPILL_TEST_MOVE_BATCH_WORLD_H

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
#include "unit.h"
#include "walked_chunks.h"

#define US 1000ull

enum { DEVICE = 2, CHUNK = 4096, BEGAN = 400, NOW = 900 };

static const struct spill_backend vendor;
static int own_context;
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
static inline struct spill_move *plan(struct spill_chunked *chunked, unsigned index)
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

#endif

/*
 * All that flight.c calls, replaced: each function tells its name, and a test says which one refuses. A view's address is a
 * thousand times its memory's handle. Device memory of a chunk has the handle 10 + its index, host memory for it 100 + its
 * index, and memory that is made on the device 300 + its index.
 */
#ifndef SPILL_TEST_FLIGHT_CALLS_H
#define SPILL_TEST_FLIGHT_CALLS_H

#include <string.h>

#include "capture.h"
#include "chunk_map.h"
#include "contexts.h"
#include "copier.h"
#include "device_memory.h"
#include "fake_clock.h"
#include "flight.h"
#include "note.h"
#include "peer.h"
#include "remap.h"
#include "said.h"
#include "unit.h"

#define UNIT SPILL_CHUNK_MAP_UNIT
#define FIRST_KEY 4096
#define CLOSE_NS 200000ull
#define PATIENCE_NS 100000000ull

enum { MOST = 4096, MANY = MOST + 2, DEVICE = 2, SPARE = 70 };

static struct {
	struct spill_chunked chunked;
	struct spill_chunk chunks[MANY];
} made;
static struct spill_chunked *const of = &made.chunked;
static struct spill_backend vendor;
static int context, stream[2], event[2];
static struct spill_copier copier = {.backend = &vendor, .device = DEVICE, .context = &context};
static struct spill_exchange exchange;
static struct spill_move goes[SPILL_FLIGHT_CHUNKS], comes[SPILL_FLIGHT_CHUNKS + 1];

static struct {
	bool quiet; /* of many chunks nothing is told */
	bool no_context, no_copier, no_lists, no_room, stays_open, captures, no_unmap, no_map, broken,
	    no_event[2];
	uint64_t no_view;                       /* the handle of memory for which there is none */
	uint64_t spare_bytes;                   /* of the one spare; 0: there is none */
	unsigned copies_left, adds_left, peers; /* until one is refused */
	bool arrived[2];                        /* the copies of each stream */
	int error;                              /* of the context */
	unsigned used;                          /* the chunk that work uses */
	unsigned returned, makes;
	struct spill_move_reason why;
	char note[256];
} world;

static void tell(const char *word, uint64_t number)
{
	if (!world.quiet)
		say(word, number);
}

/* "WORDindex:NUMBER" */
static void tell_of(const char *word, uint64_t index, uint64_t number)
{
	char text[64];
	snprintf(text, sizeof(text), "%s%llu", word, (unsigned long long)index);
	tell(text, number);
}

/* -- in place of exchanges and moves ------------------------------------------------------------ */

void spill_move_stage(const struct spill_backend *backend, int device, struct spill_move *moves,
                      unsigned count)
{
	assert_int_equal(device, DEVICE);
	tell("stage", count);
}

bool spill_exchange_open(struct spill_exchange *opened)
{
	return !world.no_lists;
}

bool spill_exchange_use_spare(struct spill_exchange *opened, struct spill_move *move)
{
	if (world.spare_bytes != spill_move_chunk(move)->bytes)
		return false;
	world.spare_bytes = 0;
	move->handle = SPARE;
	return true;
}

bool spill_exchange_make(struct spill_exchange *opened, struct spill_move *move)
{
	if (world.no_room)
		return false;
	world.makes++;
	move->handle = 300 + move->index;
	tell_of("make", move->index, move->handle);
	return true;
}

/* Memory that a chunk has left on the device becomes a spare. */
void spill_exchange_note(struct spill_exchange *opened, struct spill_move *move)
{
	tell_of("note", move->index, move->handle);
	if (spill_move_chunk(move)->on_host)
		move->handle = move->view = 0;
}

bool spill_move_batch_add(struct spill_move_batch *batch, const struct spill_move *move)
{
	if (!world.adds_left)
		return false;
	world.adds_left--;
	assert_int_equal(move->view, move->handle * 1000);
	tell_of(move->moved ? "moved" : "stayed", move->index, move->handle);
	batch->count++;
	return true;
}

void spill_exchange_close(struct spill_exchange *opened, struct spill_move_batch *batch,
                          struct spill_move_reason why)
{
	assert_int_equal(opened->device, DEVICE);
	world.why = why;
	opened->came = batch->count * UNIT;
	tell("end", batch->count);
}

struct spill_bytes spill_move_batch_settle(const struct spill_move_batch *batch,
                                           const struct spill_backend *backend, int device)
{
	world.returned += batch->count;
	for (unsigned i = 0; i < batch->count; i++)
		tell_of("return", batch->moves[i].index, batch->moves[i].handle);
	return (struct spill_bytes){0};
}

void spill_move_done(struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	struct spill_move before = *move;
	tell_of("done", move->index, move->handle);
	move->handle = chunk->handle;
	move->view = chunk->view;
	move->moved = true;
	chunk->handle = before.handle;
	chunk->view = before.view;
	chunk->on_host = !chunk->on_host;
}

uint64_t spill_log_now_us(void)
{
	return 77;
}

struct spill_seen spill_device_seen(int device)
{
	return (struct spill_seen){.free = 5 + (uint64_t)device};
}

/* -- in place of chunks and their mappings ------------------------------------------------------ */

uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned index)
{
	return chunked->base.ptr + index * UNIT;
}

/* Two parts. */
unsigned spill_chunked_live(const struct spill_chunked *chunked, unsigned index,
                            struct spill_span spans[SPILL_SPANS])
{
	spans[0] = (struct spill_span){1, 5};
	spans[1] = (struct spill_span){20, 6};
	return 2;
}

uint64_t spill_view_make(const struct spill_backend *backend, int device, uint64_t handle, uint64_t bytes)
{
	assert_int_equal(device, DEVICE);
	tell("view", handle);
	return handle == world.no_view ? 0 : handle * 1000;
}

bool spill_remap_none(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	tell("unmap", move->index);
	if (world.no_unmap || chunk->unmapped)
		return false;
	chunk->unmapped = true;
	return true;
}

static bool map_again(const char *word, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	tell_of(word, move->index, chunk->handle);
	chunk->unmapped = chunk->unmapped && world.no_map;
	return !chunk->unmapped;
}

void spill_remap_own(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	map_again("map", move);
}

bool spill_remap_lost(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	return map_again("try", move);
}

unsigned spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	assert_int_equal(device, DEVICE);
	return world.peers;
}

/* -- in place of the gate ----------------------------------------------------------------------- */

bool spill_gate_close(uint64_t deadline_ns)
{
	assert_int_equal(deadline_ns - fake_clock.ns, CLOSE_NS);
	tell("close", !world.stays_open);
	return !world.stays_open;
}

void spill_gate_open(void)
{
	tell("open", 0);
}

void spill_gate_begin_flight(void)
{
	tell("flight", 1);
}

void spill_gate_end_flight(void)
{
	tell("flight", 0);
}

bool spill_capture_any(void)
{
	return world.captures;
}

/* -- in place of the copies --------------------------------------------------------------------- */

void *spill_contexts_only(const struct spill_backend *backend, int device)
{
	return world.no_context ? NULL : &context;
}

struct spill_copier *spill_copier_of(const struct spill_backend *backend, int device, void *which,
                                     uint64_t view)
{
	assert_ptr_equal(which, &context);
	return world.no_copier ? NULL : &copier;
}

void *spill_copier_stream(const struct spill_copier *which, bool to_device)
{
	return &stream[to_device];
}

static unsigned number_of(const void *which)
{
	return which == &event[1] || which == &stream[1];
}

bool spill_copier_wait_for(const struct spill_copier *which, void *waited, uint64_t patience_ns)
{
	assert_int_equal(patience_ns, PATIENCE_NS);
	tell("wait", waited ? (int)number_of(waited) : -1);
	return !world.broken;
}

/* "copySTREAM:BYTES from>to" */
static int copy_part(int device, void *in, void *on, uint64_t to, uint64_t from, uint64_t bytes)
{
	char word[64];
	assert_int_equal(device, DEVICE);
	assert_ptr_equal(in, &context);
	if (!world.copies_left)
		return 1;
	world.copies_left--;
	snprintf(word, sizeof(word), "copy%u:%llu>%llu", number_of(on), (unsigned long long)from,
	         (unsigned long long)to);
	tell(word, bytes);
	return 0;
}

static int record(int device, void *in, void *on, bool per_thread, void **recorded)
{
	unsigned number = number_of(on);
	tell("record", number);
	*recorded = &event[number];
	return world.no_event[number];
}

static bool passed(int device, void *in, void *asked)
{
	tell("ask", number_of(asked));
	return world.arrived[number_of(asked)];
}

static int wait_all(int device, void *in)
{
	tell("error", (unsigned)world.error);
	return world.error;
}

static const char *error_name(int error)
{
	return error == 7 ? "SEVEN" : "OTHER";
}

void spill_note(const char *code, const char *text)
{
	assert_string_equal(code, "overlap");
	strcpy(world.note, text);
}

/* -- an exchange -------------------------------------------------------------------------------- */

static int setup(void **state)
{
	static const struct spill_vendor_moves moves = {.copy = copy_part};
	static const struct spill_vendor_events events = {.record = record, .passed = passed};
	static const struct spill_vendor_devices devices = {.wait = wait_all};
	vendor = (struct spill_backend){
	    .moves = &moves, .events = &events, .devices = &devices, .error_name = error_name};
	fake_clock_use(1000000000);
	memset(&made, 0, sizeof(made));
	of->base.backend = &vendor;
	of->base.device = DEVICE;
	of->base.ptr = (uint64_t)FIRST_KEY << SPILL_CHUNK_MAP_UNIT_SHIFT;
	of->count = MANY;
	of->range = MANY * UNIT;
	of->exact_begins = true;
	for (unsigned i = 0; i < MANY; i++)
		of->chunks[i] = (struct spill_chunk){.bytes = UNIT, .handle = 10 + i};
	memset(&world, 0, sizeof(world));
	world.copies_left = world.adds_left = UINT32_MAX;
	world.used = MANY;
	exchange = (struct spill_exchange){.backend = &vendor, .device = DEVICE};
	spill_flight_reset();
	what_was_said();
	return 0;
}

static void leaves(unsigned index)
{
	exchange.goes.moves = goes;
	goes[exchange.goes.count++] =
	    (struct spill_move){.chunked = of, .index = index, .handle = 100 + index};
}

static void comes_in(unsigned index)
{
	of->chunks[index].on_host = true;
	exchange.comes.moves = comes;
	comes[exchange.comes.count++] = (struct spill_move){.chunked = of, .index = index};
}

static bool is_used(const struct spill_chunked *chunked, unsigned index)
{
	return index == world.used;
}

static const char *begin(bool expected)
{
	assert_int_equal(spill_flight_begin(&exchange, is_used), expected);
	assert_int_equal(spill_flight_is_up(), expected);
	assert_int_equal(exchange.goes.count + exchange.comes.count, 0);
	assert_int_equal(exchange.device, DEVICE);
	return what_was_said();
}

static const char *land(uint64_t moves)
{
	assert_int_equal(spill_flight_land(), moves * UNIT);
	assert_false(spill_flight_is_up());
	assert_int_equal(world.why.reason, SPILL_REASON_USE);
	assert_int_equal(world.why.start_us, 77);
	assert_int_equal(world.why.seen.free, 5 + DEVICE);
	return what_was_said();
}

static bool touches(unsigned index)
{
	/* The chunk behind it is no part of the question. */
	const uint32_t keys[] = {FIRST_KEY + index, FIRST_KEY + index + 1};
	return spill_flight_touches(keys, 1);
}

static const char *end_all(void)
{
	assert_int_equal(spill_flight_end(), 0);
	return what_was_said();
}

static void hide(unsigned index)
{
	const struct spill_move move = {.chunked = of, .index = index};
	spill_flight_hide(&vendor, DEVICE, &move);
}

#endif

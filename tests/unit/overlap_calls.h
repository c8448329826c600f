/* All that overlap.c calls, replaced: each function tells its name, and a test says what it answers. */
#ifndef SPILL_TEST_OVERLAP_CALLS_H
#define SPILL_TEST_OVERLAP_CALLS_H

#include <stdlib.h>
#include <string.h>

#include "access_choice.h"
#include "captures.h"
#include "chunk_list.h"
#include "chunk_map.h"
#include "contexts.h"
#include "fake_clock.h"
#include "flight.h"
#include "hash.h"
#include "movable.h"
#include "overlap.h"
#include "prefetch.h"
#include "process.h"
#include "promote.h"
#include "said.h"
#include "unit.h"

#define CHUNK SPILL_CHUNK_MAP_UNIT
#define FIRST_KEY 4096
#define US 1000ull
#define USED_BITS 13 /* of the entries that chunks share */

enum { CHUNKS = 4 };

static struct spill_policy policy;
static struct spill_backend vendor;
static struct {
	struct spill_chunked chunked;
	struct spill_chunk chunks[CHUNKS];
} made;
static int context, mark_event;

static struct {
	bool busy, up, touches, arrived, refuses, gone, only, may_move, no_memory, chooses, begins,
	    away_after;
	bool closes, others_clear, mark_fails, passes;
	uint64_t flight, unclear, came, birth, on_host;
	unsigned free_calls, looks; /* at marks */
	char fixed[CHUNKS + 1];     /* as the choice saw them */
	struct spill_exchange_choice asked;
	spill_flight_used_fn *is_used;
	void (*land)(void);
} world;

/* -- in place of the gate and the mover -------------------------------------------------------- */

void spill_gate_use_flights(void (*land)(void))
{
	world.land = land;
}

uint64_t spill_gate_flight(void)
{
	return world.flight;
}

uint64_t spill_gate_unclear(void)
{
	return world.unclear;
}

void spill_gate_clear(uint64_t flight)
{
	say("clear", flight == SPILL_GATE_UNCLEAR ? 99 : flight);
}

bool spill_gate_others_clear(void)
{
	return world.others_clear;
}

bool spill_gate_close(uint64_t deadline_ns)
{
	assert_int_equal(deadline_ns - fake_clock.ns, 100 * US);
	say("close", world.closes);
	return world.closes;
}

void spill_gate_open(void)
{
	say("open", 0);
}

bool spill_mover_trylock_in_flight(void)
{
	if (world.busy)
		return false;
	say("lock", 0);
	return true;
}

void spill_mover_unlock(void)
{
	say("unlock", 0);
}

/* -- in place of flights ----------------------------------------------------------------------- */

bool spill_flight_is_up(void)
{
	return world.up;
}

bool spill_flight_touches(const uint32_t *keys, unsigned count)
{
	return world.touches;
}

bool spill_flight_has_arrived(void)
{
	return world.arrived;
}

uint64_t spill_flight_land(void)
{
	world.up = false;
	say("land", world.came);
	return world.came;
}

void spill_flight_map(const uint32_t *keys, unsigned count)
{
	world.flight++;
	say("map", count);
}

uint64_t spill_flight_end(void)
{
	say("end", world.came);
	return world.came;
}

bool spill_flight_takes(const struct spill_backend *backend, const struct spill_chunked *chunked,
                        unsigned index)
{
	return index != CHUNKS - 1;
}

struct spill_span spill_flight_reach(const struct spill_chunked *chunked, unsigned index)
{
	return chunked->exact_begins ? (struct spill_span){chunked->base.ptr + index * CHUNK, CHUNK}
	                             : (struct spill_span){chunked->base.ptr, CHUNKS * CHUNK};
}

bool spill_flight_begin(struct spill_exchange *exchange, spill_flight_used_fn *is_used)
{
	world.is_used = is_used;
	say("begin", world.begins);
	world.up = world.begins;
	world.flight += world.begins;
	return world.begins;
}

void spill_flight_reset(void)
{
	say("reset", 0);
}

/* -- in place of the rest ---------------------------------------------------------------------- */

void spill_prefetch_exchanged(void)
{
	say("exchanged", 0);
}

bool spill_movable_may_move(const struct spill_backend *backend, int device)
{
	return world.may_move;
}

void *spill_contexts_only(const struct spill_backend *backend, int device)
{
	return world.only ? &context : NULL;
}

uint64_t spill_contexts_birth(const struct spill_backend *backend, const void *which)
{
	return world.birth;
}

uint64_t spill_promote_room(const struct spill_backend *backend, int device)
{
	return 5;
}

uint64_t spill_exchange_kept(void)
{
	return 6;
}

uint64_t spill_chunked_on_host(void)
{
	return world.on_host;
}

uint64_t spill_chunked_address(const struct spill_chunked *chunked, unsigned index)
{
	assert_true(index < chunked->count);
	return chunked->base.ptr + index * CHUNK;
}

struct spill_chunked *spill_chunk_list_allocation(const struct spill_launch_access *access)
{
	return world.gone ? NULL : &made.chunked;
}

bool spill_chunk_list_make(struct spill_chunk_list *list, int device,
                           const struct spill_launch_access *access)
{
	*list = (struct spill_chunk_list){
	    .chunks = calloc(CHUNKS, sizeof(*list->chunks)), .count = CHUNKS, .resident = 20};
	for (unsigned i = 0; i < CHUNKS; i++)
		list->chunks[i] = (struct spill_exchange_chunk){.data = &made.chunked, .index = i};
	return !world.no_memory;
}

void spill_chunk_list_free(struct spill_chunk_list *list)
{
	world.free_calls += list->chunks != NULL;
	free(list->chunks);
}

bool spill_access_model_choose(struct spill_exchange_choice *choice, uint16_t site, uint64_t *cost_ns)
{
	assert_int_equal(site, 3);
	world.asked = *choice;
	for (unsigned i = 0; i < CHUNKS; i++)
		world.fixed[i] = choice->chunks[i].fixed ? 'f' : '.';
	say("choose", world.chooses);
	return world.chooses;
}

bool spill_chunk_list_add_chosen(const struct spill_exchange_choice *choice, struct spill_exchange *exchange)
{
	assert_int_equal(exchange->keep, SPILL_EXCHANGE_KEPT);
	return true;
}

static int mark_work(int device, void *which, void **event)
{
	*event = &mark_event;
	say("mark", world.mark_fails);
	return world.mark_fails;
}

static bool mark_passed(int device, void *which, void *event)
{
	assert_ptr_equal(event, &mark_event);
	world.looks++;
	return world.passes;
}

static void end_mark(int device, void *which, void *event)
{
	say("destroy", 0);
}

static const struct spill_vendor_moves moves = {.mark = mark_work};
static const struct spill_vendor_events events = {.passed = mark_passed, .destroy = end_mark};

static int setup(void **state)
{
	fake_clock_use(1000000000);
	policy = (struct spill_policy){.movable_follow = SPILL_FOLLOW_OVERLAP};
	spill_process_use_policy(&policy);
	vendor = (struct spill_backend){.moves = &moves, .events = &events};
	memset(&made, 0, sizeof(made));
	made.chunked.base.backend = &vendor;
	made.chunked.base.ptr = (uint64_t)FIRST_KEY << SPILL_CHUNK_MAP_UNIT_SHIFT;
	made.chunked.count = CHUNKS;
	memset(&world, 0, sizeof(world));
	world.only = world.may_move = world.chooses = world.begins = world.closes = world.passes = true;
	world.birth = 1;
	world.came = world.on_host = CHUNK;
	spill_overlap_reset();
	what_was_said();
	return 0;
}

static int teardown(void **state)
{
	set_capturing(false);
	return 0;
}

/* A launch that names one chunk; -1: none. */
static struct spill_launch_access launch_of(int chunk)
{
	struct spill_launch_access access = {.site = 1};
	if (chunk >= 0)
		access.keys[access.count++] = FIRST_KEY + (unsigned)chunk;
	return access;
}

static const struct spill_access_advice advice = {.site = 3};

static const char *ahead(int chunk)
{
	const struct spill_launch_access access = launch_of(chunk);
	spill_overlap_ahead(&access, &advice);
	return what_was_said();
}

static const char *bring(int chunk, bool expected)
{
	const struct spill_launch_access access = launch_of(chunk);
	assert_int_equal(spill_overlap_bring(&access, &advice), expected);
	return what_was_said();
}

static const char *look(int chunk, bool expected)
{
	const struct spill_launch_access access = launch_of(chunk);
	assert_int_equal(spill_overlap_look(&access), expected);
	return what_was_said();
}

#endif

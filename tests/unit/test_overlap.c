/*
 * When memory flies in: what a launch waits for, which chunks may fly beside the work that is not done, and what the gate is told.
 * Flights, the gate and the model are replaced. They tell their names.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "captures.h"
#include "chunk_list.h"
#include "chunk_map.h"
#include "contexts.h"
#include "fake_clock.h"
#include "flight.h"
#include "movable.h"
#include "overlap.h"
#include "prefetch.h"
#include "process.h"
#include "promote.h"
#include "said.h"

#define CHUNK SPILL_CHUNK_MAP_UNIT
#define FIRST_KEY 4096
#define US 1000ull

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
	unsigned free_calls;
	char fixed[CHUNKS + 1]; /* as the choice saw them */
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

TEST(only_by_the_policy)
{
	assert_true(spill_overlap_wanted());
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	assert_false(spill_overlap_wanted());
	assert_false(spill_overlap_away());
	world.flight = 4;
	assert_true(spill_overlap_away());
}

/* -- looking ------------------------------------------------------------------------------------ */

TEST(a_launch_lands_what_it_needs)
{
	assert_string_equal(look(0, false), "");
	world.flight = 4;
	assert_string_equal(look(0, false), "lock:0 unlock:0");
	world.touches = true;
	assert_string_equal(look(0, false), "lock:0 unlock:0");
	world.up = true;
	assert_string_equal(look(0, true), "lock:0 land:2097152 exchanged:0 unlock:0");
	world.up = world.arrived = true;
	world.touches = false;
	world.came = 0;
	assert_string_equal(look(0, true), "lock:0 land:0 unlock:0");
	world.up = true;
	world.arrived = false;
	assert_string_equal(look(0, false), "lock:0 unlock:0");
	world.touches = world.busy = true;
	assert_string_equal(look(0, false), "");
}

/* The gate has such a launch wait for everything. */
TEST(a_launch_that_nobody_knows_looks_at_nothing)
{
	struct spill_launch_access access = launch_of(0);
	world.flight = world.touches = world.up = true;
	access.unknown = true;
	assert_false(spill_overlap_look(&access));
	assert_false(spill_overlap_bring(&access, &advice));
	access.unknown = false;
	access.count = SPILL_LAUNCH_ACCESS_KEYS;
	assert_false(spill_overlap_look(&access));
	assert_false(spill_overlap_bring(&access, &advice));
	assert_string_equal(what_was_said(), "");
	access.unknown = true;
	access.count = 1;
	spill_overlap_ahead(&access, &advice);
	assert_string_equal(what_was_said(), "clear:99");
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:99");
}

TEST(who_wants_the_mover_ends_the_flight)
{
	look(0, false);
	world.land();
	assert_string_equal(what_was_said(), "end:2097152 exchanged:0");
	world.came = 0;
	world.land();
	assert_string_equal(what_was_said(), "end:0");
}

/* What has left and did not come is mapped for the launch. The number that the gate gets is that behind it. */
TEST(what_is_away_is_mapped)
{
	const struct spill_launch_access access = launch_of(0);
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:0");
	world.flight = 4;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:4");
	world.touches = true;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "lock:0 map:1 unlock:0 clear:5");
	world.up = true;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "lock:0 land:2097152 exchanged:0 map:1 unlock:0 clear:6");
	world.busy = true;
	spill_overlap_names_nothing(&access);
	assert_string_equal(what_was_said(), "clear:99");
}

/* -- flights ------------------------------------------------------------------------------------ */

static const char marked[] =
    "clear:0 lock:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 clear:1 unlock:0";

TEST(a_flight_ahead)
{
	assert_string_equal(ahead(0), marked);
	assert_true(world.asked.ahead);
	assert_int_equal(world.asked.slice, 128 << 20);
	assert_int_equal(world.asked.room, 11);
	assert_int_equal(world.asked.spare, SPILL_EXCHANGE_KEPT);
	assert_int_equal(world.asked.horizon, 10);
	assert_int_equal(world.asked.count, CHUNKS);
	/* One at a time. */
	assert_string_equal(ahead(0), "clear:1 lock:0 unlock:0");
	world.up = false;
	world.on_host = 0;
	assert_string_equal(ahead(0), "clear:1");
	world.on_host = 1;
	world.busy = true;
	assert_string_equal(ahead(0), "clear:1");
	assert_int_equal(world.free_calls, 1);
}

/* Then it is not tried again at once. */
TEST(a_flight_that_cannot_begin)
{
	bool *const reasons[] = {&world.only, &world.may_move, &world.chooses, &world.begins};
	for (unsigned i = 0; i < 4; i++) {
		setup(NULL);
		*reasons[i] = false;
		ahead(0);
		assert_false(world.up);
		assert_string_equal(ahead(0), "clear:0 lock:0 unlock:0");
		fake_clock.ns += 300 * US - 1;
		*reasons[i] = true;
		assert_string_equal(ahead(0), "clear:0 lock:0 unlock:0");
		fake_clock.ns++;
		ahead(0);
		assert_true(world.up);
	}
	setup(NULL);
	world.gone = true;
	assert_string_equal(ahead(0), "clear:0 lock:0 unlock:0");
	setup(NULL);
	world.no_memory = true;
	assert_string_equal(ahead(0), "clear:0 lock:0 close:1 mark:0 open:0 destroy:0 unlock:0");
	assert_int_equal(world.free_calls, 1);
}

/* For a launch that needs it now: all that it needs, and no more. */
TEST(a_flight_for_a_launch)
{
	assert_string_equal(
	    bring(0, true),
	    "lock:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 land:2097152 exchanged:0 unlock:0");
	assert_false(world.asked.ahead);
	assert_int_equal(world.asked.slice, 0);
	world.up = true;
	world.came = 0;
	assert_string_equal(bring(0, false), "lock:0 land:0 choose:1 begin:1 land:0 unlock:0");
	world.begins = false;
	assert_string_equal(bring(0, false), "lock:0 choose:1 begin:0 unlock:0");
	world.busy = true;
	assert_string_equal(bring(0, false), "");
}

/* -- work that is done -------------------------------------------------------------------------- */

/* The last launch is not submitted yet, so nothing that it names flies; by its allocation, or by its chunk. */
TEST(what_work_uses_stays)
{
	ahead(0);
	assert_string_equal(world.fixed, "ffff");
	made.chunked.exact_begins = true;
	world.up = false;
	ahead(1);
	assert_string_equal(world.fixed, ".f.f"); /* the last one never flies */
	assert_true(world.is_used(&made.chunked, 1));
	assert_false(world.is_used(&made.chunked, 0));
	world.up = false;
	ahead(2);
	assert_string_equal(world.fixed, "..ff");
	/* An entry that names nothing may use everything. */
	world.unclear++;
	assert_true(world.is_used(&made.chunked, 0));
}

/* A launch that waited for its memory is not submitted, and none is at first: the next launch is the first one. */
TEST(work_behind_the_last_mark_is_not_done)
{
	made.chunked.exact_begins = true;
	bring(0, true);
	world.up = false;
	assert_string_equal(ahead(1), "clear:1 lock:0 choose:1 begin:1 clear:2 unlock:0");
	assert_string_equal(world.fixed, ".f.f");
}

/* As long as a mark has not passed, work behind the mark before counts as not done. */
TEST(a_mark_that_has_not_passed)
{
	made.chunked.exact_begins = true;
	world.passes = false;
	assert_string_equal(ahead(0),
	                    "clear:0 lock:0 close:1 mark:0 open:0 unlock:0"); /* no mark has ever passed */
	fake_clock.ns += 300 * US;
	assert_string_equal(ahead(1), "clear:0 lock:0 unlock:0");
	fake_clock.ns += 300 * US;
	world.passes = true;
	/* That mark was placed before the launch of chunk 0 was submitted; the next one is placed by the next try. */
	assert_string_equal(
	    ahead(2),
	    "clear:0 lock:0 destroy:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 clear:1 unlock:0");
	assert_string_equal(world.fixed, "..ff");
	world.up = false;
	world.passes = false;
	ahead(3);
	assert_string_equal(world.fixed, "..ff");
}

TEST(marks_that_would_tell_too_much)
{
	static const char none[] = "clear:0 lock:0 close:1 open:0 unlock:0";
	world.others_clear = true;
	assert_string_equal(ahead(0), none);
	setup(NULL);
	set_capturing(true);
	assert_string_equal(ahead(0), none);
	set_capturing(false);
	setup(NULL);
	world.mark_fails = true;
	assert_string_equal(ahead(0), "clear:0 lock:0 close:1 mark:1 open:0 unlock:0");
	setup(NULL);
	world.closes = false;
	assert_string_equal(ahead(0), "clear:0 lock:0 close:0 unlock:0");
}

/* Its event ended with it. */
TEST(a_mark_of_a_context_that_ended)
{
	world.passes = false;
	ahead(0);
	world.birth = 2;
	world.passes = true;
	fake_clock.ns += 300 * US;
	assert_string_equal(
	    ahead(0), "clear:0 lock:0 close:1 mark:0 open:0 destroy:0 choose:1 begin:1 clear:1 unlock:0");
}

TEST(a_child_begins_anew)
{
	ahead(0);
	world.up = false;
	what_was_said();
	spill_overlap_reset();
	assert_string_equal(what_was_said(), "reset:0");
	world.flight = 0;
	assert_string_equal(ahead(0), marked);
}

int main(void)
{
	return run_unit_tests(NULL, NULL);
}

/*
 * Calls that take device memory for themselves, made as the stubs make them. The driver refuses some: how much room is
 * made then? It serves others: what is recorded?
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <pthread.h>
#include <string.h>

#include "account.h"
#include "captures.h"
#include "chunked.h"
#include "contexts.h"
#include "deferred.h"
#include "ended.h"
#include "exchange.h"
#include "fake_clock.h"
#include "fake_objects.h"
#include "fake_vendor.h"
#include "gate.h"
#include "host_chunks.h"
#include "ledger.h"
#include "make_room.h"
#include "movable.h"
#include "copier.h"
#include "movable_allocation.h"
#include "note.h"
#include "place.h"
#include "process.h"
#include "promote.h"
#include "registry.h"
#include "request.h"
#include "reserve_keeper.h"

#define MIB (1ull << 20)
#define CHUNK (2 * MIB)

enum { CHUNKS = 16 };

static struct spill_policy policy;
static struct spill_backend backend;
static struct spill_request model; /* of the next calls */
static int context, made_context;
static struct spill_chunked *chunked; /* fills the device, but for what a test leaves */
static char forbidden[32];            /* the code of the last note */
static uint64_t code;                 /* device bytes that the driver's call takes */

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	strncpy(forbidden, code, sizeof(forbidden) - 1);
}

/* In place of probe.c, whose trial needs memory of the host with bytes. */
enum spill_probe spill_probe(const struct spill_backend *vendor, int device)
{
	return spill_gate_prepare() ? SPILL_PROBE_WORKS : SPILL_PROBE_FAILS;
}

static const void *retained;

static void primary_retained(int device, void *primary)
{
	assert_int_equal(device, 0);
	retained = primary;
}

static bool no_primary(int device, void **primary)
{
	return false;
}

static bool knows_green;

static bool green_made(void *green, int device)
{
	return knows_green && green == &made_context && device == 0;
}

static const struct spill_vendor_contexts contexts = {
    .primary = no_primary, .primary_retained = primary_retained, .green_made = green_made};

static struct spill_vendor_devices devices;
static unsigned questions, cancellable; /* and those of a thread that could be cancelled in them */

static bool current(int *device, void **current_context)
{
	int cancel;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	pthread_setcancelstate(cancel, NULL);
	questions++;
	cancellable += cancel == PTHREAD_CANCEL_ENABLE;
	return fake_vendor_backend.devices->current(device, current_context);
}

static struct spill_chunked *make(void)
{
	struct spill_place_request want = {&backend, &policy,        0, &context, CHUNKS * CHUNK,
	                                   0,        SPILL_UNLIMITED};
	struct spill_chunked *made = make_allocation(&spill_place_movable, &want);
	spill_chunked_enlist(made);
	return made;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.host_limit = policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	policy.log_stderr = SPILL_STDERR_OFF;
	spill_process_use_policy(&policy);
	fake_clock_use(1000000000);
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	fake_vendor_reset_mover(CHUNKS * CHUNK);
	fake_vendor.granule = fake_vendor.host_granule = CHUNK;
	fake_vendor.context = &context;
	fake_vendor.total = 1024 * CHUNK;
	backend = fake_vendor_backend;
	backend.contexts = &contexts;
	devices = *fake_vendor_backend.devices;
	devices.current = current;
	backend.devices = &devices;
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	spill_account_reset();
	spill_copier_reset();
	spill_exchange_reset();
	spill_reserve_keeper_reset();
	spill_movable_reset();
	spill_promote_reset();
	spill_contexts_made(&backend, 0, &context);
	chunked = make();
	model = (struct spill_request){0};
	forbidden[0] = '\0';
	retained = NULL;
	code = questions = cancellable = 0;
	return 0;
}

static int teardown(void **state)
{
	spill_ledger_end(spill_ledger_take(chunked->base.ptr));
	spill_placement_release(&chunked->base, false);
	spill_host_chunks_drop(&backend);
	spill_contexts_ended(ENDED(&backend, 0, &made_context));
	assert_int_equal(fake_vendor.broken, 0);
	spill_movable_reset();
	spill_promote_reset();
	spill_reserve_keeper_reset();
	return 0;
}

static unsigned away(void)
{
	return (unsigned)(spill_chunked_away(chunked) / CHUNK);
}

static unsigned asked; /* how often the driver was */

/* The driver refuses the first calls with that error. Returns the result that the program gets. */
static int call(enum spill_op op, unsigned refusals, int error)
{
	void *made = NULL;
	struct spill_request request = model;
	request.op = op;
	request.api = "room";
	request.out = &made;
	asked = 0;
	while (spill_request_next(&request)) {
		request.result = asked++ < refusals ? error : 0;
		made = request.result ? NULL : &made_context;
		fake_vendor.device_free -= request.result ? 0 : code;
	}
	assert_int_equal(spill_thread.depth, 0);
	return request.result;
}

/* -- room ------------------------------------------------------------------------------------------- */

TEST(each_refusal_makes_twice_as_much_room)
{
	for (unsigned refusals = 0; refusals <= SPILL_ROOM_ATTEMPTS; refusals++) {
		assert_int_equal(call(SPILL_OP_ROOM, refusals, FAKE_OUT_OF_MEMORY), 0);
		assert_int_equal(asked, refusals + 1);
		assert_int_equal(away(), refusals ? 1u << (refusals - 1) : 0);
		teardown(NULL);
		setup(NULL);
	}
	assert_int_equal(call(SPILL_OP_ROOM, SPILL_ROOM_ATTEMPTS + 1, FAKE_OUT_OF_MEMORY),
	                 FAKE_OUT_OF_MEMORY);
	assert_int_equal(asked, SPILL_ROOM_ATTEMPTS + 1);
}

/* Some of it may be all that there is. */
TEST(a_part_of_the_room_is_tried)
{
	policy.movable_chunk.value = 2 * CHUNKS * CHUNK;
	assert_int_equal(call(SPILL_OP_ROOM, 1, FAKE_OUT_OF_MEMORY), 0);
	assert_int_equal(away(), CHUNKS);
	assert_int_equal(call(SPILL_OP_ROOM, 1, FAKE_OUT_OF_MEMORY), FAKE_OUT_OF_MEMORY);
	assert_int_equal(asked, 1);
}

/* Without the option a chunk has 64 MiB. */
TEST(the_first_room_without_an_option_of_chunks)
{
	policy.movable_chunk.kind = SPILL_AMOUNT_NONE;
	call(SPILL_OP_ROOM, 1, FAKE_OUT_OF_MEMORY);
	assert_int_equal(away(), CHUNKS);
}

/* That can be given back at once. */
static void leave_unused(void)
{
	static const bool passed = true;
	const char *error;
	struct spill_place_request want = {&backend, &policy, 0, &context, CHUNK, CHUNK, SPILL_UNLIMITED};
	fake_vendor.device_free = CHUNK;
	struct spill_placement *freed = spill_place_make(&spill_place_split, &want, &error);
	assert_int_equal(freed->held.device, CHUNK);
	freed->event = fake_vendor_event(&passed);
	freed->event_context = &context;
	freed->event_generation = spill_context_generation();
	spill_deferred_add(freed);
}

/* Nothing moves if there is some. */
TEST(unused_memory_is_given_back_first)
{
	leave_unused();
	assert_int_equal(call(SPILL_OP_ROOM, 1, FAKE_OUT_OF_MEMORY), 0);
	assert_int_equal(asked, 2);
	assert_int_equal(away(), 0);
	assert_int_equal(fake_vendor.device_free, CHUNK);
	fake_vendor.device_free = 0;
	leave_unused();
	assert_true(spill_make_room_for(SPILL_CUDA_DRIVER, FAKE_OUT_OF_MEMORY, "room", NULL, 0, CHUNK));
	assert_int_equal(away(), 0);
}

/* A call for a context names its device. Others mean that of the current context. */
TEST(room_is_made_on_the_device_of_the_call)
{
	model.device = 1; /* nothing can move there */
	assert_int_equal(call(SPILL_OP_CONTEXT_CREATE, 1, FAKE_OUT_OF_MEMORY), FAKE_OUT_OF_MEMORY);
	assert_int_equal(call(SPILL_OP_PRIMARY_RETAIN, 1, FAKE_OUT_OF_MEMORY), FAKE_OUT_OF_MEMORY);
	assert_int_equal(away(), 0);
	assert_int_equal(call(SPILL_OP_ROOM, 1, FAKE_OUT_OF_MEMORY), 0);
	assert_int_equal(away(), 1);
}

TEST(a_call_without_our_memory_costs_no_question)
{
	spill_chunked_delist(chunked);
	questions = 0;
	assert_int_equal(call(SPILL_OP_ROOM, 0, 0), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(questions, 0);
	spill_chunked_enlist(chunked);
}

/* Of a driver that is not there. */
TEST(a_call_without_a_backend_is_the_drivers)
{
	model.domain = SPILL_NVML;
	assert_int_equal(call(SPILL_OP_ROOM, 1, FAKE_OUT_OF_MEMORY), FAKE_OUT_OF_MEMORY);
	assert_int_equal(asked, 1);
	assert_false(spill_make_room_for(SPILL_NVML, FAKE_OUT_OF_MEMORY, "room", NULL, 0, 0));
}

static void nothing_moves_for(int error)
{
	assert_int_equal(call(SPILL_OP_ROOM, 1, error), error);
	assert_int_equal(asked, 1);
	assert_int_equal(away(), 0);
	assert_false(spill_make_room_for(SPILL_CUDA_DRIVER, error, "room", NULL, 0, 0));
	assert_false(spill_make_room_for(SPILL_CUDA_DRIVER, error, "room", NULL, 0, CHUNK));
	assert_int_equal(away(), 0);
	assert_int_equal(spill_thread.depth, 0);
}

TEST(no_room_is_made)
{
	nothing_moves_for(FAKE_INVALID);
	policy.mode = SPILL_MODE_OBSERVE;
	nothing_moves_for(FAKE_OUT_OF_MEMORY);
	policy.mode = SPILL_MODE_SPILL;
	set_capturing(true);
	nothing_moves_for(FAKE_OUT_OF_MEMORY);
	set_capturing(false);
}

/* -- by the result alone ---------------------------------------------------------------------------- */

static bool makes_room(unsigned attempt, uint64_t whole)
{
	bool made = spill_make_room_for(SPILL_CUDA_DRIVER, FAKE_OUT_OF_MEMORY, "room", NULL, attempt, whole);
	assert_int_equal(spill_thread.depth, 0);
	return made;
}

TEST(room_for_work_is_made_likewise)
{
	assert_true(makes_room(0, 0));
	assert_int_equal(away(), 1);
	assert_true(makes_room(SPILL_ROOM_ATTEMPTS - 1, 0));
	assert_int_equal(away(), 1u << (SPILL_ROOM_ATTEMPTS - 1));
	assert_false(makes_room(SPILL_ROOM_ATTEMPTS, 0));
	fake_vendor.context = NULL; /* the device is not known */
	assert_false(makes_room(0, 0));
}

/* All or nothing, and nothing moves for what is free already. */
TEST(a_whole_room_is_made_at_once)
{
	assert_false(makes_room(0, (CHUNKS + 1) * CHUNK));
	assert_int_equal(away(), 0);
	assert_true(makes_room(0, 3 * CHUNK));
	assert_int_equal(away(), 3);
	assert_true(makes_room(1, 3 * CHUNK));
	assert_int_equal(away(), 3);
	assert_true(makes_room(2, 3 * CHUNK + 1));
	assert_int_equal(away(), 4);
}

static bool other_room(enum spill_domain domain, int result, const char *api, const void *caller,
                       unsigned attempt, uint64_t whole)
{
	return attempt == 7;
}

TEST(the_replacement_of_tests)
{
	spill_make_room_use(other_room);
	assert_true(makes_room(7, 0));
	assert_false(makes_room(6, 0));
	spill_make_room_use(NULL);
	assert_int_equal(away(), 0);
}

/* The driver's call is no point of cancellation, and it takes long to make room. */
TEST(no_thread_is_cancelled_meanwhile)
{
	cancellable = 0;
	assert_true(makes_room(0, 0));
	assert_int_equal(call(SPILL_OP_ROOM, 1, FAKE_OUT_OF_MEMORY), 0);
	assert_int_equal(cancellable, 0);
}

/* -- contexts --------------------------------------------------------------------------------------- */

TEST(a_new_context_is_known)
{
	assert_int_equal(call(SPILL_OP_CONTEXT_CREATE, 1, FAKE_OUT_OF_MEMORY), 0);
	assert_int_equal(away(), 1);
	assert_null(retained);
	uint64_t birth = spill_contexts_birth(&backend, &made_context);
	assert_true(birth);
	/* Another one with the same handle is another one. */
	assert_int_equal(call(SPILL_OP_CONTEXT_CREATE, 0, 0), 0);
	assert_int_not_equal(spill_contexts_birth(&backend, &made_context), birth);
	assert_true(spill_movable_may_move(&backend, 0));
}

TEST(a_primary_context_is_known)
{
	assert_int_equal(call(SPILL_OP_PRIMARY_RETAIN, 1, FAKE_OUT_OF_MEMORY), 0);
	assert_int_equal(away(), 1);
	assert_ptr_equal(retained, &made_context);
	uint64_t birth = spill_contexts_birth(&backend, &made_context);
	assert_true(birth);
	assert_int_equal(call(SPILL_OP_PRIMARY_RETAIN, 0, 0), 0);
	assert_int_equal(spill_contexts_birth(&backend, &made_context), birth);
}

TEST(a_context_that_is_refused_is_not_known)
{
	call(SPILL_OP_PRIMARY_RETAIN, 1, FAKE_INVALID);
	assert_null(retained);
}

/* It is waited for in the primary context. Where that is not known, nothing may move. */
TEST(a_green_context_may_forbid_moves)
{
	model.mode = 1;
	knows_green = true;
	call(SPILL_OP_CONTEXT_CREATE, 0, 0);
	assert_true(spill_movable_may_move(&backend, 0));
	assert_int_equal(spill_contexts_birth(&backend, &made_context), 0);
	knows_green = false;
	call(SPILL_OP_CONTEXT_CREATE, 1, FAKE_INVALID);
	assert_true(spill_movable_may_move(&backend, 0));
	call(SPILL_OP_CONTEXT_CREATE, 0, 0);
	assert_string_equal(forbidden, "movable");
	assert_false(spill_movable_may_move(&backend, 0));
}

/* -- the reserve ------------------------------------------------------------------------------------ */

/* From here on the device keeps that much free, which it has not. */
static void keep_reserve(uint64_t bytes)
{
	policy.device_reserve.value = bytes;
	spill_reserve_begin(0);
}

TEST(the_reserve_is_filled_before_the_call)
{
	keep_reserve(2 * CHUNK);
	assert_int_equal(call(SPILL_OP_ROOM, 0, 0), 0);
	assert_int_equal(away(), 2);
}

/* By unused memory, and only for the rest by chunks. */
TEST(unused_memory_fills_the_reserve_first)
{
	for (unsigned more = 0; more < 2; more++) {
		leave_unused();
		keep_reserve((1 + more) * CHUNK);
		assert_int_equal(call(SPILL_OP_ROOM, 0, 0), 0);
		assert_int_equal(fake_vendor.device_free, (1 + more) * CHUNK);
		assert_int_equal(away(), more);
		fake_vendor.device_free = 0;
		fake_clock.ns += 100000000;
	}
}

/* Between calls, by the gates. It tells them whether there is something to look after. */
TEST(maintenance_fills_the_reserve)
{
	spill_chunked_delist(chunked);
	assert_false(spill_reserve_maintain());
	spill_chunked_enlist(chunked);
	keep_reserve(2 * CHUNK);
	void *context = fake_vendor.context;
	fake_vendor.context = NULL; /* whose device it is is not known */
	assert_true(spill_reserve_maintain());
	assert_int_equal(away(), 0);
	fake_vendor.context = context;
	assert_true(spill_reserve_maintain());
	assert_int_equal(away(), 2);
}

/* Beside a reserve of so many chunks. Returns the chunks that leave for it, or CHUNKS + 1: it is refused. */
static unsigned leave_for(unsigned chunks, unsigned reserve, unsigned free)
{
	const struct spill_taking taking = {chunks * CHUNK, 0};
	keep_reserve(reserve * CHUNK);
	fake_vendor.device_free = free * CHUNK;
	bool allowed = spill_reserve_allows(&backend, 0, &taking, "room", NULL);
	if (allowed)
		spill_reserve_answered(0, chunks * CHUNK);
	unsigned left = away();
	teardown(NULL);
	setup(NULL);
	return allowed ? left : CHUNKS + 1 + left;
}

/* Half of the reserve is enough as long as twice as much as it can move, because it is filled up later. */
TEST(chunks_leave_for_a_request_beside_the_reserve)
{
	assert_int_equal(leave_for(3, CHUNKS / 2, 3 + CHUNKS / 4), 0);
	assert_int_equal(leave_for(3, CHUNKS / 2, 2 + CHUNKS / 4), CHUNKS / 2 + 3 - (2 + CHUNKS / 4));
	assert_int_equal(leave_for(3, CHUNKS / 2 + 1, 3 + CHUNKS / 2 + 1), 0);
	assert_int_equal(leave_for(3, CHUNKS / 2 + 1, 3), CHUNKS / 2 + 1);
	/* For the request and all of the reserve, or not at all. */
	assert_int_equal(leave_for(CHUNKS - 4, 5, 1), CHUNKS);
	assert_int_equal(leave_for(CHUNKS - 3, 5, 1), CHUNKS + 1);
}

/* As far as chunks can leave. */
TEST(a_part_of_the_reserve_is_filled)
{
	keep_reserve((CHUNKS + 4) * CHUNK);
	call(SPILL_OP_ROOM, 0, 0);
	assert_int_equal(away(), CHUNKS);
}

/* Code that takes more than the reserve has makes it grow. A context takes much once, so it does not. */
TEST(a_call_that_takes_more_than_the_reserve_makes_it_grow)
{
	keep_reserve(2 * CHUNK);
	code = 2 * CHUNK;
	fake_vendor.device_free = 4 * CHUNK;
	call(SPILL_OP_CONTEXT_CREATE, 0, 0);
	fake_clock.ns += 100000000;
	fake_vendor.device_free = 4 * CHUNK;
	code = 3 * CHUNK;
	call(SPILL_OP_PRIMARY_RETAIN, 0, 0);
	assert_int_equal(spill_reserve_size(0), 2 * CHUNK);
	fake_clock.ns += 100000000;
	fake_vendor.device_free = 4 * CHUNK;
	call(SPILL_OP_ROOM, 0, 0);
	assert_int_equal(spill_reserve_size(0), 3 * CHUNK);
}

/* Measured from the last question on: room was made meanwhile. */
TEST(a_refused_call_is_measured_again)
{
	code = 2 * CHUNK;
	policy.device_reserve.value = CHUNK;
	assert_int_equal(call(SPILL_OP_ROOM, 2, FAKE_OUT_OF_MEMORY), 0);
	assert_true(away() >= 2);
	assert_int_equal(spill_reserve_size(0), 2 * CHUNK);
}

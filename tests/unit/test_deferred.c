/*
 * Frees that wait: released when their event has passed and not before, exactly once, with nothing looked at while a
 * stream captures.
 */
#define SETUP setup
#include "unit.h"
#include "captures.h"
#include "ended.h"
#include "place.h"
#include "account.h"
#include "contexts.h"
#include "deferred.h"
#include "fake_clock.h"
#include "fake_vendor.h"
#include "forgotten.h"

#define MIB (1ull << 20)

static const struct spill_backend *backend;
static struct spill_policy policy;
static int context, other; /* their addresses are contexts */

static int setup(void **state)
{
	backend = &fake_vendor_backend;
	fake_vendor_policy(&policy);
	fake_vendor_reset(1024 * MIB);
	fake_clock_use(1);
	spill_account_reset();
	set_capturing(false);
	return 0;
}

/* Frees `bytes` of a split behind *event (NULL: none). */
static void defer(uint64_t bytes, bool *event, void *event_context)
{
	const char *error;
	struct spill_place_request want = {backend, &policy, 0, &context, bytes, bytes / 2, SPILL_UNLIMITED};
	struct spill_placement *placement = spill_place_make(&spill_place_split, &want, &error);
	assert_non_null(placement);
	placement->event = event ? fake_vendor_event(event) : NULL;
	placement->event_context = event_context;
	placement->event_generation = spill_context_generation();
	spill_deferred_add(placement);
}

static void nothing_is_held(void)
{
	assert_int_equal(fake_vendor_alive(), 0);
	assert_int_equal(fake_vendor.events, 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_host_held(), 0);
	assert_int_equal(spill_deferred_pending(&fake_vendor_backend, 0).device, 0);
}

TEST(waits_for_its_event)
{
	bool first = false, second = false;
	defer(100 * MIB, &first, &context);
	defer(40 * MIB, &second, &context);
	assert_int_equal(spill_deferred_pending(&fake_vendor_backend, 0).device, 70 * MIB);
	assert_int_equal(spill_deferred_pending(&fake_vendor_backend, 0).host, 70 * MIB);
	assert_int_equal(spill_deferred_collect(&fake_vendor_backend, 0, false).device, 0);
	second = true; /* of another stream */
	struct spill_bytes given = spill_deferred_collect(&fake_vendor_backend, 0, false);
	assert_int_equal(given.device, 20 * MIB);
	assert_int_equal(given.host, 20 * MIB);
	assert_int_equal(spill_account_device_held(0), 50 * MIB);
	first = true;
	spill_deferred_poll(&fake_vendor_backend, false);
	nothing_is_held();
	assert_int_equal(fake_vendor.waits, 0);
}

/* A poll is part of every call: it looks at a few, and at none when none is there. */
TEST(a_poll_costs_little)
{
	static bool passed[100];
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_int_equal(fake_vendor.queries, 0);
	for (int i = 0; i < 100; i++)
		defer(4 * MIB, &passed[i], &context);
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_true(fake_vendor.queries <= 16);
	/* But in time it looks at all of them. */
	passed[99] = true;
	for (int i = 0; i < 100 && fake_vendor.events == 100; i++)
		spill_deferred_poll(&fake_vendor_backend, false);
	assert_int_equal(fake_vendor.events, 99);
	for (int i = 0; i < 100; i++)
		passed[i] = true;
	spill_deferred_collect(&fake_vendor_backend, 0, false);
	nothing_is_held();
}

static int last_error;

static int peek(void)
{
	return last_error;
}

static void forget(void)
{
	last_error = 0;
}

static bool passed_with_error(int device, void *event_context, void *event)
{
	bool passed = fake_vendor_backend.events->passed(device, event_context, event);
	last_error = passed ? last_error : 600; /* not ready */
	return passed;
}

/* Of HIP. The program's is not replaced, so then nothing is asked, and ours does not stay. */
TEST(a_last_error_is_the_programs)
{
	bool passed = false;
	struct spill_vendor_events events = *fake_vendor_backend.events;
	struct spill_backend hip = fake_vendor_backend;
	events.passed = passed_with_error;
	hip.events = &events;
	hip.last_error = &(const struct spill_vendor_last_error){.peek = peek, .forget = forget};
	backend = &hip;
	defer(40 * MIB, &passed, &context);
	last_error = 1;
	spill_deferred_poll(&hip, false);
	assert_int_equal(spill_deferred_collect(&hip, 0, false).device, 0);
	assert_int_equal(fake_vendor.queries, 0);
	assert_int_equal(last_error, 1);
	last_error = 0;
	spill_deferred_poll(&hip, false);
	assert_int_equal(fake_vendor.queries, 1);
	assert_int_equal(last_error, 0);
	passed = true;
	assert_int_equal(spill_deferred_collect(&hip, 0, false).device, 20 * MIB);
	nothing_is_held();
}

/* Without an event: the owner is waited for as soon as nothing captures, and as long as that fails it stays. */
TEST(in_a_capture_nothing_is_looked_at)
{
	bool passed = true;
	set_capturing(true);
	defer(40 * MIB, NULL, NULL);
	defer(40 * MIB, &passed, &context);
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_int_equal(spill_deferred_collect(&fake_vendor_backend, 0, false).device, 0);
	assert_int_equal(fake_vendor.waits + fake_vendor.queries, 0);
	set_capturing(false);
	assert_int_equal(spill_deferred_collect(&fake_vendor_backend, 0, false).device, 20 * MIB);
	assert_int_equal(fake_vendor.waits, 0); /* an allocation does not wait */
	fake_vendor.wait_result = 700;
	spill_deferred_poll(&fake_vendor_backend, true);
	assert_int_equal(fake_vendor.waits, 1);
	fake_vendor.wait_result = 0;
	spill_deferred_poll(&fake_vendor_backend, true);
	nothing_is_held();
}

/* -- freed behind the work of a context in which no mark could be placed then ------------------------------ */

static void end_other(void)
{
	struct spill_context_end end = ended_now(backend, 0, &other);
	spill_contexts_ended(&end);
	spill_deferred_context_ended(&end);
}

static void defer_behind_other(void)
{
	spill_contexts_made(backend, 0, &other);
	defer(40 * MIB, NULL, &other);
}

/* Nobody waits: the work may wait for the host. */
TEST(a_mark_that_could_not_be_placed_is_placed_later)
{
	bool passes = false;
	fake_vendor.can |= SPILL_CAN_MOVE;
	fake_vendor.marks_pass = &passes;
	defer_behind_other();
	for (unsigned i = 0; i < 3; i++)
		spill_deferred_poll(backend, true);
	assert_int_equal(fake_vendor.marks, 1);
	assert_ptr_equal(fake_vendor.marked_context, &other);
	assert_int_equal(spill_deferred_pending(backend, 0).device, 20 * MIB);
	passes = true;
	spill_deferred_poll(backend, false);
	nothing_is_held();
	assert_int_equal(fake_vendor.waits, 0);
	end_other();
}

/* Until then it stays, however often somebody looks. */
TEST(as_long_as_no_mark_can_be_placed_it_stays)
{
	fake_vendor.can |= SPILL_CAN_MOVE;
	defer_behind_other();
	fake_vendor.dead_context = &other;
	for (unsigned i = 0; i < 3; i++)
		spill_deferred_poll(backend, true);
	assert_int_equal(spill_deferred_pending(backend, 0).device, 20 * MIB);
	assert_int_equal(fake_vendor.waits, 0);
	/* Its work ends with it. */
	end_other();
	nothing_is_held();
}

static void *waited_context;

static int wait_and_note(int device, void *of)
{
	waited_context = of;
	return fake_vendor_backend.devices->wait(device, of);
}

/* That context is waited for, not the one that is current. */
TEST(a_driver_without_marks_is_waited_for)
{
	struct spill_backend old = fake_vendor_backend;
	struct spill_vendor_devices devices = *old.devices;
	devices.wait = wait_and_note;
	old.devices = &devices;
	backend = &old;
	fake_vendor.context = &context;
	defer_behind_other();
	spill_deferred_poll(backend, false);
	assert_int_equal(fake_vendor.waits, 0);
	spill_deferred_poll(backend, true);
	assert_ptr_equal(waited_context, &other);
	assert_int_equal(fake_vendor.marks, 0);
	nothing_is_held();
	end_other();
}

TEST(the_work_of_a_context_that_has_ended_is_done)
{
	fake_vendor.can |= SPILL_CAN_MOVE;
	defer(40 * MIB, NULL, &other); /* which nobody knows any more */
	spill_deferred_poll(backend, false);
	nothing_is_held();
	assert_int_equal(fake_vendor.waits + fake_vendor.marks, 0);
}

/* The owner's end releases it; the end of the context of the stream ends the wait. */
TEST(contexts_end)
{
	bool never = false;
	defer(40 * MIB, &never, &context);
	defer(40 * MIB, &never, &other);
	defer(40 * MIB, NULL, NULL);
	fake_vendor.events -= 1; /* the vendor's end of `other` takes its event along */
	spill_deferred_context_ended(ENDED(&fake_vendor_backend, 0, &other));
	assert_int_equal(spill_deferred_pending(&fake_vendor_backend, 0).device, 40 * MIB);
	fake_vendor.events -= 1;
	spill_deferred_context_ended(ENDED(&fake_vendor_backend, 0, &context));
	nothing_is_held();
	assert_int_equal(fake_vendor.waits, 0);
}

/* -- while the vendor is asked about an event, by a thread that holds no lock ----------------------------- */

static int ended_stream;

static void the_stream_ends(void)
{
	spill_deferred_stream_ended(&fake_vendor_backend, &ended_stream);
}

static void others_end(void)
{
	static const struct spill_backend other_vendor = {.name = "other"};
	static char other_stream;
	spill_deferred_stream_ended(&fake_vendor_backend, &other_stream);
	spill_deferred_stream_ended(&other_vendor, &ended_stream); /* with the same handle */
}

static const struct spill_place_request on_host = {&fake_vendor_backend, &policy, 0, NULL, 64 * MIB, 0,
                                                   SPILL_UNLIMITED};

/* Memory that can be used again, freed in that order. */
static struct spill_placement *defer_reusable(const bool *passed, struct spill_stream_order order)
{
	const char *error;
	struct spill_placement *placement = spill_place_make(&spill_place_split, &on_host, &error);
	assert_non_null(placement);
	placement->reusable = true;
	placement->event = fake_vendor_event(passed);
	placement->event_context = &context;
	placement->event_generation = spill_context_generation();
	placement->order = order;
	spill_deferred_add(placement);
	return placement;
}

static struct spill_placement *reuse(void *owner, uint64_t bytes, const struct spill_stream_order *order)
{
	struct spill_deferred_wanted wanted = {
	    &spill_place_host, &fake_vendor_backend, 0, owner, bytes, *order};
	assert_null(spill_deferred_reuse(&wanted)); /* it is in another place */
	wanted.ops = &spill_place_split;
	return spill_deferred_reuse(&wanted);
}

/* A later stream of that handle has no order with the free. */
TEST(a_stream_that_ends_during_a_poll)
{
	const struct spill_stream_order order = {&ended_stream, &context};
	bool passed = false;
	defer_reusable(&passed, order);
	fake_vendor.meanwhile = the_stream_ends;
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_null(fake_vendor.meanwhile);
	assert_null(reuse(NULL, 64 * MIB, &order));
	passed = true;
	spill_deferred_collect(&fake_vendor_backend, 0, false);
	spill_deferred_drop(&fake_vendor_backend, 0);
	nothing_is_held();
}

TEST(other_streams_that_end_leave_the_order)
{
	const struct spill_stream_order order = {&ended_stream, &context};
	bool passed = false;
	struct spill_placement *placement = defer_reusable(&passed, order);
	others_end();
	fake_vendor.meanwhile = others_end; /* while it is polled */
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_null(fake_vendor.meanwhile);
	assert_ptr_equal(reuse(NULL, 64 * MIB, &order), placement);
	spill_placement_release(placement, false);
	nothing_is_held();
}

static void the_owner_ends(void)
{
	spill_deferred_context_ended(ENDED(&fake_vendor_backend, 0, &context));
}

static void the_owner_ends_with_the_event(void)
{
	fake_vendor.events--; /* the vendor's end takes it along */
	the_owner_ends();
}

/*
 * The vendor's answer takes so long that the end no longer waits for it. All that the free waits for ends with the
 * context. The event is given back if it is another context's.
 */
TEST(a_context_that_ends_during_a_poll)
{
	bool never = false;
	defer(40 * MIB, &never, &context);
	fake_vendor.meanwhile = the_owner_ends_with_the_event;
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_null(fake_vendor.meanwhile);
	nothing_is_held();
	defer(40 * MIB, &never, &other);
	fake_vendor.meanwhile = the_owner_ends;
	spill_deferred_poll(&fake_vendor_backend, false);
	nothing_is_held();
}

/* What is whole on host is kept for the next such request, or handed on in the order that it was freed in. */
TEST(what_is_pinned_is_used_again)
{
	static int stream, another;
	const struct spill_stream_order mine = {&stream, &context}, elsewhere = {&another, &context},
	                                same_handle = {&stream, &other};
	const char *error;
	bool passed = false;
	struct spill_placement *placement = defer_reusable(&passed, mine);
	/* Still in use: for its own stream alone, and not for much less or more than it is. */
	assert_null(reuse(NULL, 64 * MIB, &elsewhere));
	assert_null(reuse(NULL, 64 * MIB, &same_handle));
	assert_null(reuse(NULL, 65 * MIB, &mine));
	assert_null(reuse(NULL, 50 * MIB, &mine));
	assert_null(reuse(&context, 64 * MIB, &mine));
	assert_ptr_equal(reuse(NULL, 60 * MIB, &mine), placement);
	assert_int_equal(fake_vendor.events, 0);
	assert_int_equal(placement->bytes, 60 * MIB);
	/* A stream that has ended is in no order with another of its handle. */
	placement->event = fake_vendor_event(&passed);
	spill_deferred_add(placement);
	spill_deferred_stream_ended(&fake_vendor_backend, &stream);
	assert_null(reuse(NULL, 64 * MIB, &mine));
	/* Behind its event it is anybody's, and still charged. */
	passed = true;
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_int_equal(fake_vendor.events, 0);
	assert_int_equal(spill_account_host_held(), 64 * MIB);
	assert_ptr_equal(reuse(NULL, 64 * MIB, &elsewhere), placement);
	spill_deferred_give(placement);
	spill_deferred_context_ended(
	    ENDED(&fake_vendor_backend, 0, &context)); /* not its owner: it has none */
	assert_int_equal(spill_account_host_held(), 64 * MIB);
	spill_deferred_drop(&fake_vendor_backend, 1);
	assert_int_equal(spill_account_host_held(), 64 * MIB);
	spill_deferred_drop(&fake_vendor_backend, 0); /* its last context has ended */
	nothing_is_held();
	placement = spill_place_make(&spill_place_split, &on_host, &error);
	placement->reusable = true;
	spill_deferred_give(placement);
	spill_deferred_drop(&fake_vendor_backend, -1);
	nothing_is_held();
}

/* A poll looks at each that waits once, so what waits no more must not count. */
static void expect_one_look(void)
{
	unsigned queries = fake_vendor.queries;
	bool passed = false;
	defer(40 * MIB, &passed, &context);
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_int_equal(fake_vendor.queries, queries + 1);
	passed = true;
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_int_equal(fake_vendor.queries, queries + 2);
	unsigned locks = locks_taken();
	spill_deferred_poll(&fake_vendor_backend, false);
	assert_int_equal(locks_taken(), locks);
	assert_int_equal(fake_vendor.queries, queries + 2);
}

TEST(what_is_handed_on_waits_no_more)
{
	static int stream;
	const struct spill_stream_order mine = {&stream, &context};
	bool passed = false;
	struct spill_placement *placement = defer_reusable(&passed, mine);
	assert_ptr_equal(reuse(NULL, 64 * MIB, &mine), placement);
	expect_one_look();
	spill_placement_release(placement, false);
	nothing_is_held();
}

TEST(in_a_child_nothing_waits)
{
	bool passed = false;
	forgotten_begin();
	defer(40 * MIB, &passed, &context);
	forgotten_end();
	spill_fork_lock_take(&spill_deferred_fork_lock);
	spill_fork_lock_release(&spill_deferred_fork_lock, true);
	assert_int_equal(spill_deferred_pending(&fake_vendor_backend, 0).host, 0);
	expect_one_look();
}

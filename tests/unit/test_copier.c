/*
 * What copies need: what is made once and again behind the end of a context, and how long a copy is waited for.
 * test_move.c moves chunks with it.
 */
#define SETUP setup
#include "unit.h"

#include "account.h"
#include "copier.h"
#include "ended.h"
#include "fake_clock.h"
#include "fake_vendor.h"
#include "mover.h"

#define MS 1000000ull

static int context, other_context;

static int setup(void **state)
{
	fake_vendor_reset_mover(1ull << 30);
	spill_account_reset();
	spill_copier_reset();
	fake_clock_use(0);
	return 0;
}

/* Prepares, and returns the number of calls that it took. */
static unsigned calls_to_prepare(const void *in)
{
	unsigned calls = fake_vendor.calls;
	assert_true(spill_copier_prepare(&fake_vendor_backend, 0, (void *)in));
	return fake_vendor.calls - calls;
}

/* The addresses of the views do not end with a context. */
TEST(behind_an_end_the_views_are_used_again)
{
	const unsigned streams_and_events = 4; /* those of the copies and those of the context */
	assert_int_equal(calls_to_prepare(&context), 1 + streams_and_events);
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 0, &context));
	assert_int_equal(calls_to_prepare(&context), streams_and_events);
	assert_int_equal(fake_vendor.ranges, 1);
}

/* The events for marks end with their context. The streams are in another one. */
TEST(a_context_that_has_ended_is_prepared_again)
{
	calls_to_prepare(&other_context);
	assert_int_equal(calls_to_prepare(&context), 1);
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 0, &fake_vendor)); /* none of its business */
	assert_int_equal(calls_to_prepare(&context), 0);
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 0, &context));
	assert_int_equal(calls_to_prepare(&context), 1);
	assert_int_equal(fake_vendor.streams, 2);
}

/* Of a vendor without contexts, everything of a device ends at once. */
TEST(without_contexts_every_end_counts)
{
	calls_to_prepare(&context);
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 1, NULL));
	assert_int_equal(calls_to_prepare(&context), 1);
	spill_copier_context_ended(ENDED(&fake_vendor_backend, 0, NULL));
	assert_true(calls_to_prepare(&context) > 1);
}

TEST(devices_that_there_are)
{
	spill_mover_lock();
	assert_null(spill_copier_of(&fake_vendor_backend, -1, &context, SPILL_COPIER_VIEW));
	assert_null(spill_copier_of(&fake_vendor_backend, SPILL_DEVICES, &context, SPILL_COPIER_VIEW));
	assert_non_null(
	    spill_copier_of(&fake_vendor_backend, SPILL_DEVICES - 1, &context, SPILL_COPIER_VIEW));
	spill_mover_unlock();
	assert_false(spill_copier_prepare(&fake_vendor_backend, -1, &context));
	assert_false(spill_copier_prepare(&fake_vendor_backend, SPILL_DEVICES, &context));
}

/* -- waiting ----------------------------------------------------------------------------------- */

static struct spill_copier *copier(void)
{
	spill_mover_lock();
	struct spill_copier *made = spill_copier_of(&fake_vendor_backend, 0, &context, SPILL_COPIER_VIEW);
	spill_mover_unlock();
	return made;
}

/* An error of the context may pass. Its last word comes after 31 ms. */
TEST(a_context_is_asked_five_times)
{
	const struct spill_copier *made = copier();
	fake_vendor.wait_result = 700;
	assert_false(spill_copier_wait(made));
	assert_int_equal(fake_clock.slept_ns, (1 + 2 + 4 + 8 + 16) * MS);
	assert_int_equal(fake_vendor.waits_failed, 5);
}

static void error_passes(void)
{
	fake_vendor.wait_result = 0;
}

TEST(an_error_that_passes)
{
	const struct spill_copier *made = copier();
	assert_true(spill_copier_wait(made));
	assert_int_equal(fake_clock.sleeps, 0);
	fake_vendor.wait_result = 700;
	fake_clock.on_sleep = error_passes;
	assert_true(spill_copier_wait(made));
	assert_int_equal(fake_clock.slept_ns, 1 * MS);
}

static unsigned looks_before_pause;
static bool passed;

static void pause_begins(void)
{
	if (!looks_before_pause)
		looks_before_pause = fake_vendor.queries;
	passed = fake_clock.sleeps == 3;
}

/* A pause takes longer than asked for, so the first looks are made without. */
TEST(a_copy_is_looked_at_more_and_more_rarely)
{
	const struct spill_copier *made = copier();
	void *event = fake_vendor_event(&passed);
	passed = false;
	looks_before_pause = 0;
	fake_clock.on_sleep = pause_begins;
	assert_true(spill_copier_wait_for(made, event, 1000 * MS));
	assert_int_equal(looks_before_pause, 201);
	assert_int_equal(fake_clock.sleeps, 3);
	assert_int_equal(fake_vendor.queries, 204);
	assert_int_equal(fake_vendor.waits, 0);
	assert_int_equal(fake_vendor.events, 0);
}

static bool still_copies(int device, void *in, void *event)
{
	return true;
}

/* The work of the context may wait for this thread. */
TEST(a_slow_copy_is_waited_for_alone)
{
	const struct spill_copier *made = copier();
	struct spill_vendor_events events = *fake_vendor_backend.events;
	struct spill_backend backend = *made->backend;
	struct spill_copier slow = *made;
	passed = false;
	looks_before_pause = 0;
	fake_clock.on_sleep = pause_begins;
	events.will_pass = still_copies;
	backend.events = &events;
	slow.backend = &backend;
	assert_true(spill_copier_wait_for(&slow, fake_vendor_event(&passed), 0));
	assert_int_equal(fake_clock.sleeps, 3);
	assert_int_equal(fake_vendor.waits, 0);
	assert_int_equal(fake_vendor.events, 0);
}

/* Without an event, and when the time is over, the context tells. */
TEST(a_copy_without_an_end_of_its_own)
{
	const struct spill_copier *made = copier();
	passed = true;
	assert_true(spill_copier_wait_for(made, fake_vendor_event(&passed), 0));
	assert_int_equal(fake_vendor.queries, 0);
	assert_int_equal(fake_vendor.waits, 1);
	assert_int_equal(fake_vendor.events, 0);
	assert_true(spill_copier_wait_for(made, NULL, 1000 * MS));
	assert_int_equal(fake_vendor.waits, 2);
}

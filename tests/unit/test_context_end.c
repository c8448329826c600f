/* Which things end with a context whose handle another one may have by now. */
#include "unit.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "backend.h"
#include "context_end.h"
#include "fake_clock.h"

static const struct spill_backend vendor = {.name = "one"}, other_vendor = {.name = "other"};
static char contexts[2];

static struct spill_context_end begin(int device, const void *context)
{
	return spill_context_end_begin(&vendor, device, context);
}

TEST(what_was_made_before_ends_and_what_is_made_after_lives)
{
	uint64_t before = spill_context_generation();
	struct spill_context_end end = begin(0, &contexts[0]);
	uint64_t after = spill_context_generation();
	assert_true(spill_context_end_covers(&end, &vendor, 0, &contexts[0], before));
	assert_false(spill_context_end_covers(&end, &vendor, 0, &contexts[0], after));
	assert_true(spill_context_ending(&vendor, 0, &contexts[0], before));
	assert_false(spill_context_ending(&vendor, 0, &contexts[0], after));
	spill_context_end_finish(&end, true);
}

/* Each free asks. */
TEST(while_nothing_ends_a_question_takes_no_lock)
{
	uint64_t made = spill_context_generation();
	struct spill_context_end end = begin(0, &contexts[0]);
	unsigned taken = locks_taken();
	assert_true(spill_context_ending(&vendor, 0, &contexts[0], made));
	assert_int_not_equal(locks_taken(), taken);
	spill_context_end_finish(&end, false);
	taken = locks_taken();
	assert_false(spill_context_ending(&vendor, 0, &contexts[0], made));
	assert_false(spill_context_dead(&vendor, 0, &contexts[0], spill_context_generation()));
	assert_int_equal(locks_taken(), taken);
}

TEST(another_context_or_vendor_is_not_covered)
{
	uint64_t before = spill_context_generation();
	struct spill_context_end end = begin(0, &contexts[0]);
	assert_false(spill_context_ending(&vendor, 0, &contexts[1], before));
	assert_false(spill_context_ending(&other_vendor, 0, &contexts[0], before));
	spill_context_end_finish(&end, true);
}

TEST(an_end_without_a_context_covers_the_device)
{
	uint64_t before = spill_context_generation();
	struct spill_context_end end = begin(1, NULL);
	assert_true(spill_context_ending(&vendor, 1, &contexts[1], before));
	assert_true(spill_context_ending(&vendor, 1, NULL, before));
	assert_false(spill_context_ending(&vendor, 0, NULL, before));
	spill_context_end_finish(&end, true);
}

TEST(an_end_that_the_vendor_refused_covers_nothing)
{
	uint64_t before = spill_context_generation();
	struct spill_context_end end = begin(0, &contexts[0]);
	spill_context_end_finish(&end, true);
	assert_false(spill_context_ending(&vendor, 0, &contexts[0], before));
	assert_false(spill_context_dead(&vendor, 0, &contexts[0], before));
}

/* It is in progress until all that it covers is gone. A thread that comes late still learns of it, after many other ends. */
TEST(an_end_is_remembered)
{
	uint64_t before = spill_context_generation();
	struct spill_context_end end = begin(0, &contexts[0]);
	assert_true(spill_context_dead(&vendor, 0, &contexts[0], before));
	spill_context_end_finish(&end, false);
	uint64_t after = spill_context_generation();
	for (unsigned i = 0; i < 200; i++) {
		struct spill_context_end other = begin(0, &contexts[1]);
		spill_context_end_finish(&other, false);
	}
	assert_false(spill_context_ending(&vendor, 0, &contexts[0], before));
	assert_true(spill_context_dead(&vendor, 0, &contexts[0], before));
	assert_false(spill_context_dead(&vendor, 0, &contexts[0], after));
}

/* Also if one that began before it is still in progress, and more follow. */
TEST(an_end_is_remembered_beside_one_in_progress)
{
	uint64_t before = spill_context_generation();
	struct spill_context_end first = begin(0, &contexts[1]), second = begin(0, &contexts[0]);
	spill_context_end_finish(&second, false);
	for (unsigned i = 0; i < 100; i++) {
		struct spill_context_end other = begin(0, &contexts[1]);
		spill_context_end_finish(&other, false);
	}
	assert_true(spill_context_dead(&vendor, 0, &contexts[0], before));
	spill_context_end_finish(&first, false);
}

static void *end_it(void *ended)
{
	struct spill_context_end end = begin(0, &contexts[0]);
	atomic_store((atomic_bool *)ended, true);
	spill_context_end_finish(&end, false);
	return NULL;
}

/* A thread that calls the vendor with an object of the context would use it after its end. */
TEST(an_end_waits_for_those_who_hold_the_context)
{
	uint64_t before = spill_context_generation();
	atomic_bool ended = false;
	pthread_t thread;
	struct spill_context_hold hold, late;
	assert_true(spill_context_hold(&hold, &vendor, 0, &contexts[0], before));
	pthread_create(&thread, NULL, end_it, &ended);
	while (!spill_context_ending(&vendor, 0, &contexts[0], before))
		sched_yield();
	assert_false(spill_context_hold(&late, &vendor, 0, &contexts[0], before));
	for (unsigned i = 0; i < 100; i++)
		sched_yield();
	assert_false(atomic_load(&ended));
	uint64_t meanwhile = spill_context_generation(); /* of an object that the holder makes now */
	spill_context_release(&hold);
	pthread_join(thread, NULL);
	assert_true(atomic_load(&ended));
	assert_true(spill_context_dead(&vendor, 0, &contexts[0], meanwhile));
	assert_false(spill_context_dead(&vendor, 0, &contexts[0], spill_context_generation()));
}

/* A thread that is stopped within its call does not hang the program. An end of all contexts waits for it as well. */
TEST(an_end_waits_for_a_hold_for_seconds)
{
	struct spill_context_hold hold;
	int cancel;
	for (int all = 0; all < 2; all++) {
		assert_true(spill_context_hold(&hold, &vendor, 0, &contexts[0], spill_context_generation()));
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
		assert_int_equal(cancel,
		                 PTHREAD_CANCEL_DISABLE); /* the vendor's call may be a cancellation point */
		fake_clock_use(0);
		struct spill_context_end end = begin(0, all ? NULL : &contexts[0]);
		assert_in_range(fake_clock.slept_ns, 5000000000, 5001000000);
		spill_clock_use(NULL);
		spill_context_end_finish(&end, true);
		spill_context_release(&hold);
	}
}

/* However many come and go meanwhile. */
TEST(an_end_in_progress_is_not_forgotten)
{
	uint64_t before = spill_context_generation();
	struct spill_context_end end = begin(0, &contexts[0]);
	for (unsigned i = 0; i < 1000; i++) {
		struct spill_context_end other = begin(0, &contexts[1]);
		spill_context_end_finish(&other, i % 2);
	}
	assert_true(spill_context_ending(&vendor, 0, &contexts[0], before));
	spill_context_end_finish(&end, false);
	assert_false(spill_context_ending(&vendor, 0, &contexts[0], before));
}

/* The place of the oldest is taken. Its own end later leaves that of the other alone. */
TEST(more_ends_in_progress_than_there_are_places)
{
	enum { PLACES = 256 };
	static char many[PLACES + 1];
	static struct spill_context_end ends[PLACES + 1];
	uint64_t before = spill_context_generation();
	for (unsigned i = 0; i < PLACES; i++)
		ends[i] = begin(0, &many[i]);
	assert_true(spill_context_ending(&vendor, 0, &many[0], before));
	assert_true(spill_context_ending(&vendor, 0, &many[PLACES - 1], before));
	ends[PLACES] = begin(0, &many[PLACES]);
	spill_context_end_finish(&ends[0], true);
	assert_false(spill_context_ending(&vendor, 0, &many[0], before));
	for (unsigned i = 1; i <= PLACES; i++) {
		assert_true(spill_context_ending(&vendor, 0, &many[i], before));
		spill_context_end_finish(&ends[i], true);
	}
	assert_false(spill_context_ending(&vendor, 0, &many[PLACES], before));
}

/* So many that they use every place of holds: those of neighbours are spread evenly. */
enum { HELD = 256 };

static void *hold_for_ever(void *held)
{
	static struct spill_context_hold holds[HELD];
	for (unsigned i = 0; i < HELD; i++)
		assert_true(spill_context_hold(&holds[i], &vendor, 0, (char *)held + 16 * i,
		                               spill_context_generation()));
	return NULL;
}

/* The child lacks the thread that would release them. */
TEST(a_child_waits_for_no_thread_of_its_parent)
{
	static char held[16 * HELD];
	pthread_t thread;
	pthread_create(&thread, NULL, hold_for_ever, held);
	pthread_join(thread, NULL);
	spill_fork_lock_take(&spill_context_end_fork_lock);
	spill_fork_lock_release(&spill_context_end_fork_lock, true);
	fake_clock_use(0);
	struct spill_context_end one = begin(0, held), all = begin(0, NULL);
	assert_int_equal(fake_clock.sleeps, 0);
	spill_clock_use(NULL);
	spill_context_end_finish(&one, true);
	spill_context_end_finish(&all, true);
}

/* A child has no contexts, and what it remembers of them is of an earlier generation. */
TEST(a_child_knows_of_none)
{
	uint64_t before = spill_context_generation();
	begin(0, &contexts[0]);
	uint64_t in_parent = spill_context_generation();
	spill_fork_lock_take(&spill_context_end_fork_lock);
	spill_fork_lock_release(&spill_context_end_fork_lock, true);
	assert_int_not_equal(spill_context_generation(), in_parent);
	unsigned taken = locks_taken();
	assert_false(spill_context_ending(&vendor, 0, &contexts[0], before));
	assert_int_equal(locks_taken(), taken); /* it need not look */
	assert_false(spill_context_dead(&vendor, 0, &contexts[0], before));
}

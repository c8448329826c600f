/*
 * Waiting for quiet: over when every mark has passed and not before, at the deadline at the latest, with no event left behind
 * and nothing touched while a stream captures. The clock is the test's: sleeping is what makes time pass.
 */
#define SETUP setup
#include "unit.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "captures.h"
#include "ended.h"
#include "contexts.h"
#include "fake_clock.h"
#include "gate.h"
#include "quiesce.h"

#define CONTEXTS 5
#define MS 1000000ull
#define NEVER UINT64_MAX

/* A context and the work in it. */
static struct context {
	int device;
	uint64_t idle_at; /* when its work is done */
	bool gone;        /* the vendor has destroyed it */
	unsigned synchronized;
	bool refuses; /* it cannot be marked */
	unsigned marks, alive;
} contexts[CONTEXTS];

static unsigned queries;
static void (*on_mark)(struct context *context);

static bool current(int *device, void **context)
{
	return false;
}

static int mark(int device, void *context, void **event)
{
	struct context *mine = context;
	assert_false(spill_capture_any());
	assert_int_equal(device, mine->device);
	if (on_mark)
		on_mark(mine);
	if (mine->gone || mine->refuses)
		return 1;
	mine->marks++;
	mine->alive++;
	*event = mine;
	return 0;
}

static bool event_passed(int device, void *context, void *event)
{
	struct context *mine = event;
	assert_ptr_equal(context, event);
	assert_int_equal(device, mine->device);
	assert_false(spill_capture_any());
	assert_false(mine->gone);
	assert_true(mine->alive);
	queries++;
	return fake_clock.ns >= mine->idle_at;
}

static void event_destroy(int device, void *context, void *event)
{
	struct context *mine = event;
	assert_false(mine->gone);
	assert_int_equal(mine->alive, 1);
	mine->alive--;
}

/* Must be over at once: its work is done, and no new work comes. */
static int synchronize(int device, void *context)
{
	struct context *mine = context;
	assert_int_equal(device, mine->device);
	assert_true(fake_clock.ns >= mine->idle_at);
	assert_int_equal(atomic_load(&spill_gate_state) & SPILL_GATE_CLOSED, SPILL_GATE_CLOSED);
	mine->synchronized++;
	return mine->refuses;
}

static bool context_device(void *context, int *device)
{
	return !((struct context *)context)->gone;
}

static bool no_primary(int device, void **context)
{
	return false;
}

static const struct spill_backend vendor = {
    .devices = &(const struct spill_vendor_devices){.current = current},
    .moves = &(const struct spill_vendor_moves){.mark = mark, .synchronize = synchronize},
    .events = &(const struct spill_vendor_events){.passed = event_passed, .destroy = event_destroy},
    .contexts = &(const struct spill_vendor_contexts){.device = context_device, .primary = no_primary},
};

static int setup(void **state)
{
	spill_fork_lock_take(&spill_contexts_fork_lock);
	spill_fork_lock_release(&spill_contexts_fork_lock, true);
	memset(contexts, 0, sizeof(contexts));
	contexts[3].device = 1;
	contexts[4].device = 2;
	for (int i = 0; i < CONTEXTS; i++)
		spill_contexts_made(&vendor, contexts[i].device, &contexts[i]);
	fake_clock_use(7000000000);
	set_capturing(false);
	queries = 0;
	on_mark = NULL;
	return 0;
}

static bool wait_ms(uint64_t most)
{
	return spill_quiesce_wait(&vendor, 0, fake_clock.ns + most * MS);
}

static void no_event_is_left(void)
{
	for (int i = 0; i < CONTEXTS; i++)
		assert_int_equal(contexts[i].alive, 0);
}

/* A wait sleeps, and the program's call is no cancellation point. */
TEST(the_thread_can_be_cancelled_behind_it_as_before)
{
	static const int states[] = {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE};
	for (unsigned i = 0; i < 2; i++) {
		int old, now;
		pthread_setcancelstate(states[i], &old);
		contexts[0].idle_at = fake_clock.ns + MS;
		bool idle = wait_ms(50);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &now);
		assert_true(idle);
		assert_int_equal(now, states[i]);
	}
	no_event_is_left();
}

TEST(what_is_idle_is_not_waited_for)
{
	assert_true(wait_ms(0)); /* even behind its deadline: it is done */
	assert_int_equal(fake_clock.sleeps, 0);
	for (int i = 0; i < CONTEXTS; i++)
		assert_int_equal(contexts[i].marks, 1);
	no_event_is_left();
}

/* Until the last of them, at once when it is done, and without looking all the time. */
TEST(all_contexts_are_waited_for)
{
	uint64_t start = fake_clock.ns;
	contexts[0].idle_at = start + 3 * MS;
	contexts[1].idle_at = start + 20 * MS;
	assert_true(wait_ms(50));
	assert_true(fake_clock.ns >= start + 20 * MS && fake_clock.ns < start + 21 * MS);
	assert_true(fake_clock.longest_ns <= 200000 && fake_clock.sleeps < 200);
	no_event_is_left();
	/* What takes microseconds is found out in microseconds. */
	contexts[0].idle_at = fake_clock.ns + 20000;
	start = fake_clock.ns;
	assert_true(wait_ms(50));
	assert_true(fake_clock.ns < start + 100000);
	no_event_is_left();
}

TEST(one_that_is_never_idle_ends_at_the_deadline)
{
	uint64_t start = fake_clock.ns;
	contexts[1].idle_at = NEVER;
	assert_false(wait_ms(50));
	assert_int_equal(fake_clock.ns, start + 50 * MS);
	no_event_is_left();
	assert_false(wait_ms(0));
	no_event_is_left();
	contexts[1].idle_at = 0;
	assert_true(wait_ms(50));
}

/* A copy may use the memory in any context, also without peer access. */
TEST(other_devices_are_waited_for)
{
	uint64_t start = fake_clock.ns;
	contexts[3].idle_at = start + 5 * MS;
	contexts[4].idle_at = start + 9 * MS;
	assert_true(wait_ms(50));
	assert_true(fake_clock.ns >= start + 9 * MS && fake_clock.ns < start + 10 * MS);
	for (int i = 0; i < CONTEXTS; i++)
		assert_int_equal(contexts[i].marks, 1);
	/* One deadline for all of them. */
	start = fake_clock.ns;
	contexts[0].idle_at = start + 30 * MS;
	contexts[4].idle_at = NEVER;
	assert_false(wait_ms(50));
	assert_int_equal(fake_clock.ns, start + 50 * MS);
	no_event_is_left();
}

static void begin_capture(void)
{
	if (fake_clock.sleeps == 3)
		set_capturing(true);
}

static void begin_capture_behind(struct context *context)
{
	if (context == &contexts[1])
		set_capturing(true);
}

static void end_capture(void)
{
	set_capturing(false);
}

static void end_capture_later(void)
{
	before_next_lock(end_capture);
}

/* It ends before the third context is looked up. The second one could not be marked. */
static void begin_short_capture(struct context *context)
{
	if (context == &contexts[0]) {
		set_capturing(true);
		before_next_lock(end_capture_later);
	}
}

TEST(a_capture_ends_the_wait)
{
	set_capturing(true);
	assert_false(wait_ms(50));
	assert_int_equal(contexts[0].marks, 0);
	/* Between two marks, and between two looks. */
	set_capturing(false);
	on_mark = begin_capture_behind;
	assert_false(wait_ms(50));
	assert_int_equal(queries, 0);
	no_event_is_left();
	set_capturing(false);
	on_mark = begin_short_capture;
	assert_false(wait_ms(50));
	before_next_lock(NULL);
	no_event_is_left();
	set_capturing(false);
	on_mark = NULL;
	fake_clock.on_sleep = begin_capture;
	contexts[0].idle_at = NEVER;
	assert_false(wait_ms(50));
	assert_int_equal(fake_clock.sleeps, 3);
	no_event_is_left();
}

/* As one does that captures, although nobody has told us. */
/* The gate is closed when the context is marked, and open afterwards. */
static void finds_it_closed(struct context *context)
{
	assert_false(spill_gate_close(NEVER));
}

/* What captures would be broken by a mark: with the gate closed it is known whether anything does. */
TEST(a_look_is_behind_the_gate_and_spares_captures)
{
	on_mark = finds_it_closed;
	assert_true(spill_quiesce_look(&vendor, 0, NEVER, 0));
	assert_int_equal(contexts[0].marks, 1);
	set_capturing(true);
	assert_false(spill_quiesce_look(&vendor, 0, NEVER, 0));
	assert_int_equal(contexts[0].marks, 1);
	set_capturing(false);
	assert_true(spill_gate_close(NEVER));
	assert_false(spill_quiesce_look(&vendor, 0, NEVER, 0));
	assert_int_equal(contexts[0].marks, 1);
	spill_gate_open();
	assert_true(spill_quiesce_look(&vendor, 0, NEVER, 0));
}

static bool mark_one(void)
{
	void *event = NULL;
	bool marked = spill_quiesce_mark(&vendor, contexts[0].device, &contexts[0], &event);
	assert_true(marked == (event != NULL));
	return marked;
}

static bool mark_alone(void)
{
	bool marked = mark_one();
	assert_true(spill_mover_trylock()); /* nobody holds it now */
	spill_mover_unlock();
	assert_int_equal(atomic_load(&spill_gate_state) & SPILL_GATE_CLOSED, 0);
	return marked;
}

/* A mark that stays for later is no less dangerous. It is not worth a wait for another thread that moves memory. */
TEST(a_single_mark_is_behind_the_gate_and_spares_captures)
{
	on_mark = finds_it_closed;
	assert_true(mark_alone());
	set_capturing(true);
	assert_false(mark_alone());
	set_capturing(false);
	contexts[0].refuses = true;
	assert_false(mark_alone());
	contexts[0].refuses = false;
	assert_int_equal(contexts[0].marks, 1);
	/* A call that stays inside: it is waited for once, and then not for a while. */
	assert_true(spill_gate_close(NEVER)); /* as good as another closer, or a call inside */
	assert_false(mark_one());
	spill_gate_open();
	assert_false(mark_alone());
	fake_clock.ns += 10 * MS;
	assert_true(mark_alone());
	assert_int_equal(contexts[0].marks, 2);
	spill_mover_lock();
	assert_true(mark_one());
	assert_true(spill_mover_is_mine());
	spill_mover_unlock();
	/* How long it is waited for. */
	spill_gate_join(0);
	struct spill_gate_thread *other = spill_gate_self; /* as if it were another thread's */
	spill_gate_self = NULL;
	atomic_store(&other->inside, 1);
	uint64_t before = fake_clock.ns;
	fake_clock.tick_ns = 1000;
	bool marked = mark_one();
	atomic_store(&other->inside, 0);
	spill_gate_self = other;
	assert_false(marked);
	assert_in_range(fake_clock.ns - before, 100000, 110000);
	contexts[0].alive = 0; /* whoever asked for them destroys them */
}

static bool synchronize_ms(uint64_t most)
{
	bool synchronized = spill_quiesce_synchronize(&vendor, 0, fake_clock.ns + most * MS);
	assert_int_equal(atomic_load(&spill_gate_state) & SPILL_GATE_CLOSED, 0);
	no_event_is_left();
	return synchronized;
}

static unsigned synchronized_contexts(void)
{
	unsigned sum = 0;
	for (int i = 0; i < CONTEXTS; i++)
		sum += contexts[i].synchronized;
	return sum;
}

/* The vendor itself waits only when nothing is left to wait for. */
TEST(the_vendor_waits_for_nothing)
{
	contexts[1].idle_at = fake_clock.ns + 20 * MS;
	assert_false(synchronize_ms(10));
	set_capturing(true);
	assert_false(synchronize_ms(50));
	set_capturing(false);
	assert_int_equal(synchronized_contexts(), 0);
	assert_true(synchronize_ms(50));
	assert_int_equal(synchronized_contexts(), 3);
}

TEST(one_that_cannot_be_marked_cannot_be_waited_for)
{
	contexts[1].refuses = true;
	assert_false(wait_ms(50));
	assert_int_equal(fake_clock.sleeps, 0);
	no_event_is_left();
}

static void end_of(struct context *context)
{
	context->gone = true;
	context->alive = 0; /* the vendor takes its events along */
	spill_contexts_ended(ENDED(&vendor, context->device, context));
}

static void end_first(void)
{
	if (fake_clock.sleeps == 2)
		end_of(&contexts[0]);
}

static void end_while_marked(struct context *context)
{
	if (context == &contexts[1])
		end_of(context);
}

static void come_back(void)
{
	if (fake_clock.sleeps != 2)
		return;
	end_of(&contexts[0]);
	contexts[0].gone = false; /* another context with its handle, in which nobody has marked anything */
	spill_contexts_made(&vendor, 0, &contexts[0]);
}

/* Its event is gone with it: neither asked nor destroyed. */
TEST(a_context_that_ends_is_idle)
{
	contexts[0].idle_at = NEVER;
	fake_clock.on_sleep = end_first;
	assert_true(wait_ms(50));
	assert_int_equal(fake_clock.sleeps, 2);
	no_event_is_left();
	setup(NULL);
	contexts[0].idle_at = NEVER;
	fake_clock.on_sleep = come_back;
	assert_true(wait_ms(50));
	assert_int_equal(fake_clock.sleeps, 2);
	setup(NULL);
	on_mark = end_while_marked;
	assert_true(wait_ms(50));
	assert_int_equal(contexts[2].marks, 1);
	/* The vendor has ended it, and its end has not come to us yet. */
	setup(NULL);
	contexts[0].gone = true;
	assert_true(wait_ms(50));
	no_event_is_left();
}

TEST(as_many_as_are_known_are_waited_for)
{
	static struct context more[SPILL_CONTEXTS - 3]; /* beside the three of the device */
	for (int i = 0; i < SPILL_CONTEXTS - 3; i++)
		spill_contexts_made(&vendor, 0, &more[i]);
	more[SPILL_CONTEXTS - 4].idle_at = fake_clock.ns + 10 * MS;
	assert_true(wait_ms(50));
	assert_in_range(fake_clock.ns, more[SPILL_CONTEXTS - 4].idle_at,
	                more[SPILL_CONTEXTS - 4].idle_at + MS);
	assert_true(synchronize_ms(50));
	assert_int_equal(more[SPILL_CONTEXTS - 4].synchronized, 1);
}

TEST(too_many_cannot_be_waited_for)
{
	static char more[SPILL_CONTEXTS];
	for (int i = 0; i < SPILL_CONTEXTS; i++)
		spill_contexts_made(&vendor, 0, &more[i]);
	assert_false(wait_ms(50));
	assert_int_equal(contexts[0].marks, 0);
}

TEST(a_vendor_without_marks)
{
	struct spill_backend without = vendor;
	without.moves = NULL;
	assert_false(spill_quiesce_wait(&without, 0, fake_clock.ns + 50 * MS));
	assert_false(spill_quiesce_synchronize(&without, 0, fake_clock.ns + 50 * MS));
}

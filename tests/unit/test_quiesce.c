/*
 * Waiting for quiet: over when every mark has passed and not before, at the deadline at the latest, with no event left behind
 * and nothing touched while a stream captures. The clock is the test's: sleeping is what makes time pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "ended.h"
#include "contexts.h"
#include "gate.h"
#include "quiesce.h"
#include "peer.h"

#define CONTEXTS 5
#define MS 1000000ull
#define NEVER UINT64_MAX

/* A context and the work in it. */
static struct context {
	int device;
	uint64_t idle_at; /* when its work is done */
	bool gone;        /* the vendor has destroyed it */
	bool refuses;     /* it cannot be marked */
	unsigned marks, alive;
} contexts[CONTEXTS];

static uint64_t clock_ns, sleeps, longest_ns;
static bool capturing;
static unsigned queries;
static void (*on_sleep)(void);
static void (*on_mark)(struct context *context);
static int peers[SPILL_DEVICES];
static unsigned peer_count;

int __wrap_clock_gettime(clockid_t id, struct timespec *time);
int __wrap_clock_gettime(clockid_t id, struct timespec *time)
{
	assert_int_equal(id, CLOCK_MONOTONIC);
	*time = (struct timespec){.tv_sec = (time_t)(clock_ns / 1000000000),
	                          .tv_nsec = (long)(clock_ns % 1000000000)};
	return 0;
}

int __wrap_nanosleep(const struct timespec *request, struct timespec *left);
int __wrap_nanosleep(const struct timespec *request, struct timespec *left)
{
	uint64_t ns = (uint64_t)request->tv_sec * 1000000000 + (uint64_t)request->tv_nsec;
	assert_true(ns > 0);
	clock_ns += ns;
	longest_ns = ns > longest_ns ? ns : longest_ns;
	sleeps++;
	if (on_sleep)
		on_sleep();
	return 0;
}

bool __wrap_spill_capture_any(void);
bool __wrap_spill_capture_any(void)
{
	return capturing;
}

unsigned __wrap_spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES]);
unsigned __wrap_spill_peer_devices(const struct spill_backend *backend, int device, int list[SPILL_DEVICES])
{
	memcpy(list, peers, sizeof(peers));
	return peer_count;
}

static bool current(int *device, void **context)
{
	return false;
}

static int mark(int device, void *context, void **event)
{
	struct context *mine = context;
	assert_false(capturing);
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
	assert_false(capturing);
	assert_false(mine->gone);
	assert_true(mine->alive);
	queries++;
	return clock_ns >= mine->idle_at;
}

static void event_destroy(int device, void *context, void *event)
{
	struct context *mine = event;
	assert_false(mine->gone);
	assert_int_equal(mine->alive, 1);
	mine->alive--;
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
    .moves = &(const struct spill_vendor_moves){.mark = mark},
    .events = &(const struct spill_vendor_events){.passed = event_passed, .destroy = event_destroy},
    .contexts = &(const struct spill_vendor_contexts){.device = context_device, .primary = no_primary},
};

static int setup(void **state)
{
	spill_contexts_fork_prepare();
	spill_contexts_fork_done(true);
	memset(contexts, 0, sizeof(contexts));
	contexts[3].device = 1;
	contexts[4].device = 2;
	for (int i = 0; i < CONTEXTS; i++)
		spill_contexts_made(&vendor, contexts[i].device, &contexts[i]);
	clock_ns = 7000000000;
	sleeps = longest_ns = 0;
	capturing = false;
	queries = peer_count = 0;
	on_sleep = NULL;
	on_mark = NULL;
	return 0;
}

static bool wait_ms(uint64_t most)
{
	return spill_quiesce_wait(&vendor, 0, clock_ns + most * MS);
}

static void no_event_is_left(void)
{
	for (int i = 0; i < CONTEXTS; i++)
		assert_int_equal(contexts[i].alive, 0);
}

static void what_is_idle_is_not_waited_for(void **state)
{
	assert_true(wait_ms(0)); /* even behind its deadline: it is done */
	assert_int_equal(sleeps, 0);
	for (int i = 0; i < CONTEXTS; i++)
		assert_int_equal(contexts[i].marks, contexts[i].device == 0);
	no_event_is_left();
}

/* Until the last of them, at once when it is done, and without looking all the time. */
static void all_contexts_are_waited_for(void **state)
{
	uint64_t start = clock_ns;
	contexts[0].idle_at = start + 3 * MS;
	contexts[1].idle_at = start + 20 * MS;
	contexts[3].idle_at = NEVER; /* another device's */
	assert_true(wait_ms(50));
	assert_true(clock_ns >= start + 20 * MS && clock_ns < start + 21 * MS);
	assert_true(longest_ns <= 200000 && sleeps < 200);
	no_event_is_left();
	/* What takes microseconds is found out in microseconds. */
	contexts[0].idle_at = clock_ns + 20000;
	start = clock_ns;
	assert_true(wait_ms(50));
	assert_true(clock_ns < start + 100000);
	no_event_is_left();
}

static void one_that_is_never_idle_ends_at_the_deadline(void **state)
{
	uint64_t start = clock_ns;
	contexts[1].idle_at = NEVER;
	assert_false(wait_ms(50));
	assert_int_equal(clock_ns, start + 50 * MS);
	no_event_is_left();
	assert_false(wait_ms(0));
	no_event_is_left();
	contexts[1].idle_at = 0;
	assert_true(wait_ms(50));
}

static void peers_are_waited_for(void **state)
{
	uint64_t start = clock_ns;
	peers[0] = 1;
	peers[1] = 0; /* the device itself, which is known already */
	peers[2] = 2;
	peer_count = 3;
	contexts[3].idle_at = start + 5 * MS;
	contexts[4].idle_at = start + 9 * MS;
	assert_true(wait_ms(50));
	assert_true(clock_ns >= start + 9 * MS && clock_ns < start + 10 * MS);
	for (int i = 0; i < CONTEXTS; i++)
		assert_int_equal(contexts[i].marks, 1);
	/* One deadline for all of them. */
	start = clock_ns;
	contexts[0].idle_at = start + 30 * MS;
	contexts[4].idle_at = NEVER;
	assert_false(wait_ms(50));
	assert_int_equal(clock_ns, start + 50 * MS);
	no_event_is_left();
}

static void begin_capture(void)
{
	if (sleeps == 3)
		capturing = true;
}

static void begin_capture_behind(struct context *context)
{
	if (context == &contexts[1])
		capturing = true;
}

static void a_capture_ends_the_wait(void **state)
{
	capturing = true;
	assert_false(wait_ms(50));
	assert_int_equal(contexts[0].marks, 0);
	/* Between two marks, and between two looks. */
	capturing = false;
	on_mark = begin_capture_behind;
	assert_false(wait_ms(50));
	assert_int_equal(queries, 0);
	no_event_is_left();
	capturing = false;
	on_mark = NULL;
	on_sleep = begin_capture;
	contexts[0].idle_at = NEVER;
	assert_false(wait_ms(50));
	assert_int_equal(sleeps, 3);
	no_event_is_left();
}

/* As one does that captures, although nobody has told us. */
/* The gate is closed when the context is marked, and open afterwards. */
static void finds_it_closed(struct context *context)
{
	assert_false(spill_gate_close(NEVER));
}

/* What captures would be broken by a mark: with the gate closed it is known whether anything does. */
static void a_look_is_behind_the_gate_and_spares_captures(void **state)
{
	on_mark = finds_it_closed;
	assert_true(spill_quiesce_look(&vendor, 0, NEVER, 0));
	assert_int_equal(contexts[0].marks, 1);
	capturing = true;
	assert_false(spill_quiesce_look(&vendor, 0, NEVER, 0));
	assert_int_equal(contexts[0].marks, 1);
	capturing = false;
	assert_true(spill_gate_close(NEVER));
	assert_false(spill_quiesce_look(&vendor, 0, NEVER, 0));
	assert_int_equal(contexts[0].marks, 1);
	spill_gate_open();
	assert_true(spill_quiesce_look(&vendor, 0, NEVER, 0));
}

static void one_that_cannot_be_marked_cannot_be_waited_for(void **state)
{
	contexts[1].refuses = true;
	assert_false(wait_ms(50));
	assert_int_equal(sleeps, 0);
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
	if (sleeps == 2)
		end_of(&contexts[0]);
}

static void end_while_marked(struct context *context)
{
	if (context == &contexts[1])
		end_of(context);
}

static void come_back(void)
{
	if (sleeps != 2)
		return;
	end_of(&contexts[0]);
	contexts[0].gone = false; /* another context with its handle, in which nobody has marked anything */
	spill_contexts_made(&vendor, 0, &contexts[0]);
}

/* Its event is gone with it: neither asked nor destroyed. */
static void a_context_that_ends_is_idle(void **state)
{
	contexts[0].idle_at = NEVER;
	on_sleep = end_first;
	assert_true(wait_ms(50));
	assert_int_equal(sleeps, 2);
	no_event_is_left();
	setup(NULL);
	contexts[0].idle_at = NEVER;
	on_sleep = come_back;
	assert_true(wait_ms(50));
	assert_int_equal(sleeps, 2);
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

static void too_many_cannot_be_waited_for(void **state)
{
	static char more[SPILL_CONTEXTS];
	for (int i = 0; i < SPILL_CONTEXTS; i++)
		spill_contexts_made(&vendor, 0, &more[i]);
	assert_false(wait_ms(50));
	assert_int_equal(contexts[0].marks, 0);
}

static void a_vendor_without_marks(void **state)
{
	struct spill_backend without = vendor;
	without.moves = NULL;
	assert_false(spill_quiesce_wait(&without, 0, clock_ns + 50 * MS));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup(what_is_idle_is_not_waited_for, setup),
	    cmocka_unit_test_setup(all_contexts_are_waited_for, setup),
	    cmocka_unit_test_setup(one_that_is_never_idle_ends_at_the_deadline, setup),
	    cmocka_unit_test_setup(peers_are_waited_for, setup),
	    cmocka_unit_test_setup(a_capture_ends_the_wait, setup),
	    cmocka_unit_test_setup(a_look_is_behind_the_gate_and_spares_captures, setup),
	    cmocka_unit_test_setup(one_that_cannot_be_marked_cannot_be_waited_for, setup),
	    cmocka_unit_test_setup(a_context_that_ends_is_idle, setup),
	    cmocka_unit_test_setup(too_many_cannot_be_waited_for, setup),
	    cmocka_unit_test_setup(a_vendor_without_marks, setup),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

/*
 * The thread that makes host chunks ahead, alone: its start, its pauses, how it leaves, and the end of the process. libc, the
 * clock and the making of chunks are replaced. The thread runs when the test calls it. test_host_chunks.c has it in use.
 */
#define SETUP setup
#include "unit.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#define CHILD_SECONDS 10
#include "childtest.h"
#include "clock.h"
#include "host_chunks.h"
#include "note.h"
#include "process.h"
#include "registered_end.h"
#include "said.h"
#include "thread.h"

#define MS 1000000ull

static struct {
	uint64_t ns, chunk_ns; /* now; what a chunk takes */
	unsigned work, chunks; /* wake-ups that wait for the thread; chunks to make */
	unsigned woken;        /* pauses that a wake-up ends, after 5 ms */
	void (*on_wait)(void), (*on_pause)(void), (*on_make)(void), (*on_start)(void);
} world;

/* The thread. */
static void *(*ahead)(void *);

/* -- in place of libc -------------------------------------------------------------------------- */

int sem_init(sem_t *semaphore, int shared, unsigned value)
{
	assert_int_equal(shared, 0);
	say("semaphore", value);
	return is_refused("semaphore") ? -1 : 0;
}

int sem_post(sem_t *semaphore)
{
	say("post", 0);
	return 0;
}

int pthread_setname_np(pthread_t thread, const char *name)
{
	assert_true(pthread_equal(thread, pthread_self()));
	say(name, 0);
	return 0;
}

int pthread_join(pthread_t thread, void **result)
{
	assert_true(pthread_equal(thread, pthread_self()));
	say("join", 0);
	return 0;
}

/* -- in place of the clock and of libspill's other files --------------------------------------- */

static uint64_t now(void)
{
	return world.ns;
}

/* A time for work is whole seconds. Other ones are pauses. */
static bool wait_for_work(sem_t *semaphore, uint64_t ns)
{
	if (ns % (1000 * MS)) {
		say("pause", ns / MS);
		call_once(&world.on_pause);
		world.ns += world.woken ? 5 * MS : ns;
		return world.woken && world.woken--;
	}
	say("wait", ns / MS);
	call_once(&world.on_wait);
	return world.work && world.work--;
}

static const struct spill_clock test_clock = {.now = now, .wait = wait_for_work};

bool spill_host_chunks_make(void)
{
	assert_int_equal(spill_thread.depth, 1); /* its calls are libspill's */
	say("make", world.chunks);
	world.ns += world.chunk_ns;
	call_once(&world.on_make);
	return world.chunks && world.chunks--;
}

void spill_note(const char *code, const char *text)
{
	say(code, 0);
}

bool spill_thread_start(pthread_t *thread, void *(*run)(void *unused))
{
	*thread = pthread_self();
	ahead = run;
	say("start", 0);
	call_once(&world.on_start);
	return !is_refused("start");
}

void spill_thread_end(pthread_t thread)
{
	assert_true(pthread_equal(thread, pthread_self()));
	say("end", 0);
}

/* ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	spill_host_ahead_fork_child();
	memset(&world, 0, sizeof(world));
	ahead = NULL;
	refused = NULL;
	spill_clock_use(&test_clock);
	what_was_said();
	return 0;
}

static void run_thread(void)
{
	assert_null(ahead(NULL));
	spill_thread.depth = 0; /* this one goes on */
}

/* Starts the thread, and lets it run until it leaves. */
static const char *run(unsigned chunks)
{
	spill_host_ahead_wake();
	what_was_said();
	world.work = 1;
	world.chunks = chunks;
	run_thread();
	return what_was_said();
}

#define CHECK_SAID(expected) CHECK(!strcmp(what_was_said(), expected))

/* -- start ------------------------------------------------------------------------------------- */

CHILD_TEST(without_a_semaphore)
{
	refused = "semaphore";
	spill_host_ahead_wake();
	CHECK_SAID("semaphore:0 ahead:0");
	spill_host_ahead_wake(); /* it is not tried again, nor told */
	CHECK_SAID("");
	CHECK(!registrations);
}

CHILD_TEST(without_an_end)
{
	refused = "atexit";
	spill_host_ahead_wake();
	CHECK_SAID("semaphore:0 ahead:0");
	spill_host_ahead_fork_child(); /* nor in a child */
	CHECK_SAID("");
	spill_host_ahead_wake();
	CHECK_SAID("");
	CHECK(!ahead);
}

CHILD_TEST(without_a_thread)
{
	refused = "start";
	spill_host_ahead_wake();
	CHECK_SAID("semaphore:0 start:0 ahead:0");
	at_end();
	CHECK_SAID("");
}

/* From here on the semaphore and the end are there. */
TEST(each_wake_posts)
{
	spill_host_ahead_wake();
	assert_string_equal(what_was_said(), "semaphore:0 start:0 post:0");
	spill_host_ahead_wake();
	assert_string_equal(what_was_said(), "post:0");
	assert_int_equal(registrations, 1);
}

/* A thread that has left is joined before the next one. What it has waited for is still there. */
TEST(a_thread_that_has_left_is_started_again)
{
	assert_string_equal(run(0), "spill-ahead:0 wait:2000 make:0 wait:2000");
	spill_host_ahead_wake();
	assert_string_equal(what_was_said(), "join:0 start:0 post:0");
	assert_int_equal(registrations, 1);
}

/* It may leave before the call that started it returns, which then has no thread to wake. */
TEST(a_thread_that_leaves_at_once)
{
	world.on_start = run_thread;
	spill_host_ahead_wake();
	assert_string_equal(what_was_said(), "start:0 spill-ahead:0 wait:2000");
	spill_host_ahead_wake();
	assert_string_equal(what_was_said(), "join:0 start:0 post:0");
}

static void wake(void)
{
	say("wake", 0);
	spill_host_ahead_wake();
	say("woken", 0);
}

/* Two threads wake it first. One of them starts it. */
TEST(one_start_at_a_time)
{
	world.on_start = wake;
	spill_host_ahead_wake();
	assert_string_equal(what_was_said(), "start:0 wake:0 woken:0 post:0");
}

/* -- work and pauses --------------------------------------------------------------------------- */

/* Twice as long as it worked, and at least 20 ms. */
TEST(it_pauses_behind_each_chunk)
{
	world.chunk_ns = 30 * MS;
	assert_string_equal(run(2),
	                    "spill-ahead:0 wait:2000 make:2 pause:60 make:1 pause:60 make:0 wait:2000");
	world.chunk_ns = 3 * MS;
	assert_string_equal(run(1), "spill-ahead:0 wait:2000 make:1 pause:20 make:0 wait:2000");
}

/* Wake-ups meanwhile make it no shorter, and the last one no longer. */
TEST(wake_ups_in_a_pause)
{
	world.woken = 2;
	assert_string_equal(run(1),
	                    "spill-ahead:0 wait:2000 make:1 pause:20 pause:15 pause:10 make:0 wait:2000");
	world.woken = 9;
	assert_string_equal(
	    run(1), "spill-ahead:0 wait:2000 make:1 pause:20 pause:15 pause:10 pause:5 make:0 wait:2000");
}

/* -- the end of the process, and a child ------------------------------------------------------- */

static void end_process(void)
{
	at_end();
}

static void check_end(void (**when)(void), const char *expected)
{
	*when = end_process;
	world.woken = 3;
	spill_host_ahead_wake();
	what_was_said();
	world.work = world.chunks = 2;
	ahead(NULL);
	CHECK_SAID(expected);
	/* Nothing begins behind it. */
	spill_host_ahead_wake();
	at_end();
	spill_host_ahead_fork_child();
	spill_host_ahead_wake();
	CHECK_SAID("");
}

CHILD_TEST(an_end_while_it_waits)
{
	check_end(&world.on_wait, "spill-ahead:0 wait:2000 post:0 end:0");
}

CHILD_TEST(an_end_while_it_makes_a_chunk)
{
	check_end(&world.on_make, "spill-ahead:0 wait:2000 make:2 post:0 end:0");
}

CHILD_TEST(an_end_while_it_pauses)
{
	check_end(&world.on_pause, "spill-ahead:0 wait:2000 make:2 pause:20 post:0 end:0");
}

/* It is joined all the same. */
CHILD_TEST(an_end_behind_a_thread_that_left)
{
	run(0);
	at_end();
	CHECK_SAID("post:0 end:0");
}

/* The caller that starts the thread uses its handle. */
CHILD_TEST(an_end_during_the_start)
{
	world.on_start = end_process;
	spill_host_ahead_wake();
	CHECK_SAID("start:0");
	ahead(NULL);
	CHECK_SAID("spill-ahead:0");
}

/* It has none of its parent's thread, which it neither joins nor ends. */
CHILD_TEST(a_forked_child)
{
	spill_host_ahead_wake();
	what_was_said();
	spill_host_ahead_fork_child();
	CHECK_SAID("semaphore:0");
	spill_host_ahead_fork_child(); /* nothing was started since */
	CHECK_SAID("");
	spill_host_ahead_wake();
	CHECK_SAID("start:0 post:0");
	run_thread();
	what_was_said();
	spill_host_ahead_fork_child();
	CHECK_SAID("semaphore:0");
	at_end();
	CHECK_SAID("");
}

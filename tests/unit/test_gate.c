/*
 * The gate (gate.h). Each case runs in a child of its own, because what the kernel offers is asked once a process. The
 * kernel, the clock and the call that entries make are replaced.
 */
#include "gate.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILD_SECONDS 120
#include "childtest.h"
#include "clock.h"
#include "fake_libc.h"
#include "process.h"

#define THREADS 8
#define COUNTERS 4
#define FOR_EVER UINT64_MAX

/* -- what is replaced ------------------------------------------------------------------------------------- */

static bool no_membarrier, no_registration, no_wakes;
static _Atomic unsigned registrations, barriers, ticks;
static _Atomic uint64_t fake_ns; /* 0: the real clock */

static bool kernel(long arguments[6], long *result)
{
	long number = arguments[0], command = arguments[1];
	if (number == SYS_membarrier) {
		if (no_membarrier ||
		    (no_registration && command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)) {
			errno = ENOSYS;
			return true;
		}
		registrations += command == MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
		barriers += command == MEMBARRIER_CMD_PRIVATE_EXPEDITED;
	}
	*result = 0;
	return number == SYS_futex && arguments[2] == FUTEX_WAKE_PRIVATE && no_wakes;
}

static bool another_is_first; /* a thread begins with the maintenance while this one looks at the clock */

static uint64_t now(void)
{
	if (another_is_first)
		atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_MAINTENANCE);
	return fake_ns ? fake_ns : spill_clock_machine_ns();
}

static bool is_slow; /* the maintenance: longer than the time until the next, for which it asks */

static void tick(void)
{
	errno = EDOM;
	ticks++;
	if (is_slow && ticks < 100) {
		fake_ns += 2 * SPILL_GATE_MAINTENANCE_NS;
		spill_gate_want_maintenance();
	}
	CHECK(!atomic_load(&spill_gate_self->inside));
}

__attribute__((constructor)) static void replace(void)
{
	static const struct spill_clock clock = {.now = now};
	spill_clock_use(&clock);
	spill_gate_use(COUNTERS, tick);
	fake_libc[FAKE_syscall].hook = kernel;
}

/* -- tools ------------------------------------------------------------------------------------------------ */

static uint64_t soon(void)
{
	return spill_clock_machine_ns() + 2000000;
}

static bool is_bare(void)
{
	return atomic_load(&spill_gate_state) & SPILL_GATE_BARE;
}

static bool is_closed(void)
{
	return atomic_load(&spill_gate_state) & SPILL_GATE_CLOSED;
}

static pthread_t start(void *(*body)(void *), void *argument)
{
	pthread_t thread;
	CHECK(pthread_create(&thread, NULL, body, argument) == 0);
	return thread;
}

/* A thread that stays inside until it is told. */
struct guest {
	pthread_t thread;
	sem_t is_in, leave;
	bool by_exit;
};

static void *visit(void *argument)
{
	struct guest *guest = argument;
	spill_gate_join(COUNTERS);
	bool outer = spill_gate_enter(spill_gate_self);
	CHECK(outer);
	sem_post(&guest->is_in);
	sem_wait(&guest->leave);
	if (guest->by_exit)
		pthread_exit(NULL);
	spill_gate_leave(spill_gate_self);
	return NULL;
}

static void guest_enters(struct guest *guest)
{
	sem_init(&guest->is_in, 0, 0);
	sem_init(&guest->leave, 0, 0);
	guest->thread = start(visit, guest);
	sem_wait(&guest->is_in);
}

static void guest_leaves(struct guest *guest)
{
	sem_post(&guest->leave);
	pthread_join(guest->thread, NULL);
}

/* -- cases ------------------------------------------------------------------------------------------------ */

CHILD_TEST(nested)
{
	spill_gate_join(COUNTERS);
	errno = EDOM;
	CHECK(spill_gate_enter(spill_gate_self));
	CHECK(!spill_gate_enter(spill_gate_self));
	CHECK(!spill_gate_close(FOR_EVER)); /* it would wait for itself */
	CHECK(!is_closed());
	spill_gate_leave(spill_gate_self);
	CHECK(spill_gate_close(FOR_EVER));
	CHECK(!spill_gate_close(FOR_EVER)); /* it is somebody's */
	for (unsigned depth = 0; depth < 2;
	     depth++) { /* what we call meanwhile, and what the vendor calls below that */
		spill_thread.depth = depth;
		CHECK(!spill_gate_enter(spill_gate_self));
		CHECK(!spill_gate_enter_request());
		CHECK(!atomic_load(&spill_gate_self->inside));
	}
	spill_thread.depth = 0;
	CHECK(is_closed());
	spill_gate_open();
	CHECK(spill_gate_enter(spill_gate_self));
	spill_gate_leave(spill_gate_self);
	CHECK(errno == EDOM);
}

#define ROUNDS 60
static uint64_t work[THREADS]; /* plain: whoever is inside writes, whoever has closed the gate reads */
static _Atomic unsigned inside;
static _Atomic bool stop;

static void *submit(void *argument)
{
	uint64_t *mine = argument;
	spill_gate_join(COUNTERS);
	while (!stop) {
		bool outer = spill_gate_enter(spill_gate_self);
		CHECK(outer);
		atomic_fetch_add_explicit(&inside, 1, memory_order_relaxed);
		++*mine;
		CHECK(!spill_gate_enter(spill_gate_self));
		atomic_fetch_sub_explicit(&inside, 1, memory_order_relaxed);
		spill_gate_leave(spill_gate_self);
		spill_gate_count(spill_gate_self, 1);
	}
	return NULL;
}

static uint64_t all_work(void)
{
	uint64_t sum = 0;
	for (int i = 0; i < THREADS; i++)
		sum += work[i];
	return sum;
}

CHILD_TEST(closes_while_threads_enter)
{
	pthread_t threads[THREADS];
	uint64_t before = 0;
	unsigned advanced = 0;
	for (int i = 0; i < THREADS; i++)
		threads[i] = start(submit, &work[i]);
	for (int round = 0; round < ROUNDS; round++) {
		CHECK(spill_gate_close(FOR_EVER));
		CHECK(inside == 0);
		uint64_t seen = all_work();
		advanced += seen > before;
		before = seen;
		for (int look = 0; look < 50; look++)
			sched_yield(); /* whoever could come in has its chance */
		CHECK(inside == 0 && all_work() == seen);
		spill_gate_open();
	}
	while (advanced < 2) { /* on a busy machine the threads may not have run yet */
		CHECK(spill_gate_close(FOR_EVER));
		advanced += all_work() > before;
		before = all_work();
		spill_gate_open();
		sched_yield();
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK(spill_gate_counted(1) == all_work() && spill_gate_counted(0) == 0);
	CHECK(is_bare() || barriers >= ROUNDS);
}

CHILD_TEST(a_missed_wake_up_harms_nobody)
{
	no_wakes = true;
	closes_while_threads_enter();
}

CHILD_TEST(who_stays_inside_is_not_waited_for)
{
	struct guest guest = {0};
	guest_enters(&guest);
	spill_gate_join(COUNTERS);
	unsigned before = atomic_load(&spill_gate_state);
	CHECK(!spill_gate_close(soon()));
	CHECK(!spill_gate_close(0));
	CHECK(atomic_load(&spill_gate_state) == before);
	CHECK(spill_gate_enter(spill_gate_self));
	spill_gate_leave(spill_gate_self);
	guest_leaves(&guest);
	CHECK(spill_gate_close(0)); /* nobody is waited for, so there is no deadline to miss */
	spill_gate_open();
}

CHILD_TEST(ends_inside)
{
	struct guest guest = {.by_exit = true};
	guest_enters(&guest);
	guest_leaves(&guest);
	CHECK(spill_gate_close(0));
}

static void *count_once(void *argument)
{
	spill_gate_join(COUNTERS);
	spill_gate_count(spill_gate_self, 2);
	return argument;
}

CHILD_TEST(threads_that_ended_are_counted)
{
	enum { ONE_BY_ONE = 100 };
	CHECK(pthread_join(start(count_once, NULL), NULL) == 0);
	unsigned before = fake_libc[FAKE_mmap64].calls;
	for (int i = 1; i < ONE_BY_ONE; i++)
		CHECK(pthread_join(start(count_once, NULL), NULL) == 0);
	CHECK(spill_gate_counted(2) == ONE_BY_ONE);
	CHECK(before > 0 &&
	      fake_libc[FAKE_mmap64].calls == before); /* each had the record of the one before */
}

/* What the child of a fork finds; `guest` is a thread that it has not. */
CHILD_TEST(fork_in_the_middle)
{
	struct guest guest = {0};
	int status;
	spill_gate_join(COUNTERS);
	CHECK(spill_gate_prepare());
	guest_enters(&guest);
	CHECK(spill_gate_enter(spill_gate_self));
	spill_gate_want_maintenance();
	atomic_fetch_or(&spill_gate_state, SPILL_GATE_CLOSED); /* another thread is just closing it */
	pid_t child = fork();
	if (child == 0) {
		spill_gate_fork_child();
		CHECK((atomic_load(&spill_gate_state) & ~(unsigned)SPILL_GATE_BARE) == SPILL_GATE_OPEN);
		CHECK(!spill_gate_close(FOR_EVER)); /* the one thread there is is inside */
		spill_gate_leave(spill_gate_self);
		unsigned before = registrations;
		CHECK(spill_gate_close(0)); /* and nobody else */
		CHECK(is_bare() || registrations == before + 1);
		spill_gate_open();
#ifndef __SANITIZE_THREAD__ /* which allows no thread in a child of a process with threads */
		/* The record of the thread that is not here serves the next one. */
		before = fake_libc[FAKE_mmap64].calls;
		CHECK(pthread_join(start(count_once, NULL), NULL) == 0);
		CHECK(fake_libc[FAKE_mmap64].calls == before);
#endif
		CHECK(spill_gate_enter(spill_gate_self));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	spill_gate_open();
	spill_gate_leave(spill_gate_self);
	CHECK(!spill_gate_close(soon()));
	guest_leaves(&guest);
	CHECK(spill_gate_close(0));
}

static sem_t has_closed, waits;

static void *close_for_a_while(void *unused)
{
	spill_gate_join(COUNTERS);
	CHECK(spill_gate_close(FOR_EVER));
	sem_post(&has_closed);
	sem_wait(&waits);
	spill_gate_open();
	return unused;
}

/* The gate is opened when somebody waits for that. */
static bool tell_who_waits(long arguments[6], long *result)
{
	if (arguments[0] == SYS_futex && arguments[2] == FUTEX_WAIT_PRIVATE)
		sem_post(&waits);
	return kernel(arguments, result);
}

/* Its parent's thread had closed the gate. In the child another thread does, and it waits as all do. */
CHILD_TEST(a_child_of_the_closer_waits)
{
	int status;
	spill_gate_join(COUNTERS);
	CHECK(spill_gate_close(FOR_EVER));
	pid_t child = fork();
	if (child == 0) {
		spill_gate_fork_child();
		sem_init(&has_closed, 0, 0);
		sem_init(&waits, 0, 0);
		fake_libc[FAKE_syscall].hook = tell_who_waits;
		pthread_t closer = start(close_for_a_while, NULL);
		sem_wait(&has_closed);
		bool entered = spill_gate_enter(spill_gate_self);
		sem_post(&waits);
		CHECK(pthread_join(closer, NULL) == 0);
		_exit(!entered);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	spill_gate_open();
}

CHILD_TEST(without_membarrier)
{
	no_membarrier = true;
	spill_gate_join(COUNTERS);
	CHECK(is_bare());
	nested();
	who_stays_inside_is_not_waited_for();
	closes_while_threads_enter();
	CHECK(registrations == 0 && barriers == 0);
}

/* The closer asks what the kernel offers, if nobody has submitted work yet. */
CHILD_TEST(closed_before_anybody_joins)
{
	no_membarrier = true;
	CHECK(spill_gate_close(0) && is_bare());
}

CHILD_TEST(never_closed_without_registration)
{
	no_registration = true;
	spill_gate_join(COUNTERS);
	if (is_bare())
		exit(0); /* under ThreadSanitizer there is nothing to register */
	CHECK(!spill_gate_prepare());
	CHECK(!spill_gate_close(FOR_EVER));
	CHECK(!is_closed() && spill_gate_enter(spill_gate_self));
}

static sem_t has_joined;

/* There is no memory for a record of this thread: it waits until the gate is open, and keeps it so. */
static void *outside(void *argument)
{
	errno = EDOM;
	spill_gate_join(COUNTERS);
	CHECK(errno == EDOM && !spill_gate_self);
	CHECK(!is_closed());
	sem_post(&has_joined);
	return argument;
}

CHILD_TEST(never_closed_with_a_thread_outside)
{
	sem_init(&has_joined, 0, 0);
	sem_init(&waits, 0, 0);
	fake_libc[FAKE_syscall].hook = tell_who_waits;
	spill_gate_join(COUNTERS);
	CHECK(spill_gate_close(FOR_EVER));
	fake_libc_fail(FAKE_mmap64, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	pthread_t thread = start(outside, NULL);
	sem_wait(&waits); /* it sleeps meanwhile */
	for (int look = 0; look < 1000; look++)
		sched_yield();
	CHECK(sem_trywait(&has_joined) == -1);
	spill_gate_open();
	pthread_join(thread, NULL);
	CHECK(!spill_gate_close(FOR_EVER));
	CHECK(!is_closed() && spill_gate_enter(spill_gate_self));
}

static _Atomic bool asks, is_through;

/* The engine's own request: deeper than the program's call, and yet it waits as that does. */
static void *request(void *argument)
{
	spill_thread.depth = 1;
	errno = EDOM;
	asks = true;
	CHECK(spill_gate_enter_request());
	is_through = true;
	CHECK(spill_thread.depth == 1 && errno == EDOM);
	CHECK(!spill_gate_enter_request()); /* within itself */
	spill_gate_count(spill_gate_self, COUNTERS - 1);
	spill_gate_leave(spill_gate_self);
	return argument;
}

CHILD_TEST(requests_of_the_engine_wait)
{
	CHECK(spill_gate_close(FOR_EVER));
	pthread_t thread = start(request, NULL);
	while (!asks)
		sched_yield();
	for (int look = 0; look < 1000; look++)
		sched_yield();
	CHECK(!is_through);
	spill_gate_open();
	pthread_join(thread, NULL);
	CHECK(is_through && spill_gate_counted(COUNTERS - 1) == 1);
	CHECK(spill_gate_close(0));
}

/* A call of ours in another thread is no call of the closer's. */
static void *submit_deeper(void *argument)
{
	spill_gate_join(COUNTERS);
	spill_thread.depth = 1;
	asks = true;
	CHECK(spill_gate_enter(spill_gate_self));
	CHECK(atomic_load(&spill_gate_self->inside) == 1); /* the next closer waits for it */
	is_through = true;
	spill_gate_leave(spill_gate_self);
	return argument;
}

CHILD_TEST(only_the_closer_passes)
{
	spill_gate_join(COUNTERS);
	CHECK(spill_gate_close(FOR_EVER));
	CHECK(!spill_gate_close(FOR_EVER)); /* a second one that fails takes nothing from it */
	CHECK(!spill_gate_enter(spill_gate_self));
	pthread_t thread = start(submit_deeper, NULL);
	while (!asks)
		sched_yield();
	for (int look = 0; look < 1000; look++)
		sched_yield();
	CHECK(!is_through);
	spill_gate_open();
	pthread_join(thread, NULL);
	CHECK(spill_gate_enter(spill_gate_self)); /* no closer any more */
	spill_gate_leave(spill_gate_self);
}

/* -- flights ---------------------------------------------------------------------------------------------- */

static unsigned landings;

static void land(void)
{
	CHECK(spill_mover_is_mine() && spill_thread.depth);
	landings++;
	spill_gate_end_flight();
}

static void begin_flight(void)
{
	CHECK(spill_mover_trylock_in_flight());
	CHECK(spill_gate_close(UINT64_MAX));
	spill_gate_begin_flight();
	spill_gate_open();
	spill_mover_unlock();
}

static void enter_and_leave(void)
{
	CHECK(spill_gate_enter(spill_gate_self));
	spill_gate_leave(spill_gate_self);
}

/* An entry beside a flight: clear for just that one, or it lands. It is clear for one entry. */
CHILD_TEST(only_who_is_clear_enters_beside_a_flight)
{
	spill_gate_join(COUNTERS);
	spill_gate_use_flights(land);
	begin_flight();
	spill_gate_clear(spill_gate_flight());
	enter_and_leave();
	CHECK(landings == 0 && spill_gate_flight());
	enter_and_leave();
	CHECK(landings == 1 && !spill_gate_flight());
	uint64_t before = spill_gate_flight();
	spill_gate_clear(before);
	begin_flight();
	enter_and_leave();
	CHECK(landings == 2);
	begin_flight();
	spill_gate_clear(SPILL_GATE_UNCLEAR);
	enter_and_leave();
	CHECK(landings == 3);
}

/* Work of which nobody knows what it uses is counted without a flight, too. */
CHILD_TEST(who_is_not_clear_is_counted)
{
	spill_gate_join(COUNTERS);
	enter_and_leave();
	CHECK(spill_gate_unclear() == 0);
	spill_gate_use_flights(land);
	enter_and_leave();
	CHECK(spill_gate_unclear() == 1);
	spill_gate_clear(0);
	enter_and_leave();
	CHECK(spill_gate_unclear() == 1);
	enter_and_leave();
	CHECK(spill_gate_unclear() == 2);
}

/* Requests, and whoever wants the mover, end a flight. Who ends flights does not. */
CHILD_TEST(others_end_a_flight)
{
	spill_gate_join(COUNTERS);
	spill_gate_use_flights(land);
	begin_flight();
	spill_thread.depth++; /* as in a request of the engine */
	spill_gate_leave_request(spill_gate_enter_request());
	spill_thread.depth--;
	CHECK(landings == 1);
	begin_flight();
	CHECK(spill_mover_trylock_in_flight());
	spill_mover_unlock();
	CHECK(landings == 1);
	CHECK(spill_mover_trylock());
	spill_mover_unlock();
	CHECK(landings == 2);
	begin_flight();
	spill_mover_lock();
	spill_mover_unlock();
	CHECK(landings == 3);
	/* Our own calls know what they do. */
	begin_flight();
	spill_thread.depth++;
	enter_and_leave();
	spill_thread.depth--;
	CHECK(landings == 3);
}

static void *is_clear_until_told(void *told)
{
	spill_gate_join(COUNTERS);
	spill_gate_clear(0);
	sem_post(&((sem_t *)told)[0]);
	sem_wait(&((sem_t *)told)[1]);
	return NULL;
}

/* A thread that is clear has not submitted its work yet. One that ended never will. */
CHILD_TEST(another_thread_is_clear)
{
	pthread_t thread;
	sem_t told[2];
	sem_init(&told[0], 0, 0);
	sem_init(&told[1], 0, 0);
	spill_gate_join(COUNTERS);
	spill_gate_use_flights(land);
	spill_gate_clear(0);
	CHECK(!spill_gate_others_clear());
	CHECK(pthread_create(&thread, NULL, is_clear_until_told, told) == 0);
	sem_wait(&told[0]);
	CHECK(spill_gate_others_clear());
	sem_post(&told[1]);
	pthread_join(thread, NULL);
	CHECK(!spill_gate_others_clear());
}

CHILD_TEST(looks_from_time_to_time)
{
	spill_gate_join(COUNTERS);
	fake_ns = 1000000000;
	errno = 0;
	CHECK(spill_gate_enter(spill_gate_self) && ticks == 0);
	spill_gate_leave(spill_gate_self);
	spill_gate_want_maintenance();
	spill_gate_want_maintenance(); /* by another thread */
	spill_thread.depth++;          /* one of our own is not to make it */
	CHECK(spill_gate_enter(spill_gate_self) && ticks == 0);
	spill_gate_leave(spill_gate_self);
	spill_thread.depth--;
	CHECK(spill_gate_enter(spill_gate_self) && ticks == 1);
	CHECK(atomic_load(&spill_gate_self->inside) == 1);
	CHECK(errno == 0);
	spill_gate_leave(spill_gate_self);
	spill_gate_want_maintenance();
	for (int i = 0; i < 1000; i++) { /* time stands still */
		CHECK(spill_gate_enter(spill_gate_self) && ticks == 1);
		spill_gate_leave(spill_gate_self);
	}
	for (int asked = 1; asked >= 0; asked--) { /* and then nobody asks */
		fake_ns += SPILL_GATE_MAINTENANCE_NS;
		for (int i = 0; i < 1000; i++) {
			CHECK(spill_gate_enter(spill_gate_self));
			spill_gate_leave(spill_gate_self);
		}
		CHECK(ticks == 2);
	}
}

CHILD_TEST(one_thread_maintains)
{
	spill_gate_join(COUNTERS);
	fake_ns = 1000000000;
	for (another_is_first = true; ticks == 0; another_is_first = false) {
		spill_gate_want_maintenance();
		CHECK(spill_gate_enter(spill_gate_self) && ticks == !another_is_first);
		spill_gate_leave(spill_gate_self);
	}
}

/* Maintenance that never has enough does not keep a thread from its work. */
CHILD_TEST(maintains_once_an_entry)
{
	spill_gate_join(COUNTERS);
	fake_ns = 1000000000;
	is_slow = true;
	spill_gate_want_maintenance();
	for (unsigned entry = 1; entry < 4; entry++) {
		CHECK(spill_gate_enter(spill_gate_self) && ticks == entry);
		spill_gate_leave(spill_gate_self);
	}
}

#include "host_ahead.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "clock.h"
#include "host_chunks.h"
#include "note.h"
#include "process.h"

/* What the vendor's calls and our own need; the stack's pages are taken only when they are touched. */
#define STACK_BYTES (512ul << 10)
/* How long it stays with nothing to do. */
#define STAY_NS 2000000000ull
/* The least time between two chunks. */
#define REST_NS 20000000ull
/* The longest that the end of the process waits for the vendor's call that the thread is in. */
#define END_NS 5000000000ull
#define POLL_NS 100000

/*
 * NONE → STARTING → RUNNING → LEFT (of its own accord, to be joined) → STARTING …; FAILED and ENDED (the process ends) are
 * for good. Whoever makes it STARTING or ENDED has the handle to himself.
 */
enum state { NONE, STARTING, RUNNING, LEFT, FAILED, ENDED };

static _Atomic enum state state;
static pthread_t thread;
static sem_t work;

/* True if there was something to do. */
static bool wait_for_work(uint64_t ns)
{
	return spill_clock_wait(&work, ns);
}

/*
 * The vendor makes memory under a lock that is not fair: without pauses the program's own memory calls take up to 280 ms
 * (measured, H200). So the thread rests twice as long as it works. What wakes it meanwhile is the work it is at already, or
 * the end.
 */
static void rest(uint64_t since_ns)
{
	uint64_t now = spill_clock_ns(), ns = 2 * (now - since_ns);
	uint64_t until = now + (ns > REST_NS ? ns : REST_NS);
	while (atomic_load(&state) != ENDED && now < until && wait_for_work(until - now))
		now = spill_clock_ns();
}

static bool make(void)
{
	uint64_t since = spill_clock_ns();
	if (atomic_load(&state) == ENDED || !spill_host_chunks_make())
		return false;
	rest(since);
	return true;
}

static void *run(void *unused)
{
	spill_thread.depth = 1; /* its calls are ours */
	pthread_setname_np(pthread_self(), "spill-ahead");
	while (atomic_load(&state) != ENDED && wait_for_work(STAY_NS))
		while (make())
			;
	enum state running = RUNNING, starting = STARTING;
	if (!atomic_compare_exchange_strong(&state, &running, LEFT))
		atomic_compare_exchange_strong(&state, &starting, LEFT);
	return NULL;
}

/* At exit, and when this library is unloaded. The wait is bounded: a vendor that does not return must not keep the process. */
static void end(void)
{
	enum state before = atomic_exchange(&state, ENDED);
	if (before != RUNNING && before != LEFT)
		return;
	sem_post(&work);
	uint64_t until = spill_clock_ns() + END_NS;
	while (pthread_tryjoin_np(thread, NULL) == EBUSY && spill_clock_ns() < until)
		spill_clock_sleep(POLL_NS);
}

/* All that is needed once in a process; a forked child has it from its parent. */
static bool prepare(void)
{
	static bool registered; /* by whoever is STARTING */
	if (!registered)
		registered = sem_init(&work, 0, 0) == 0 && atexit(end) == 0;
	return registered;
}

static bool create(void)
{
	sigset_t all, before;
	pthread_attr_t attributes;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool made = false;
	if (!pthread_attr_init(&attributes)) {
		/* Libraries with much thread-local memory can make it too small. */
		made = !pthread_attr_setstacksize(&attributes, STACK_BYTES) &&
		       !pthread_create(&thread, &attributes, run, NULL);
		pthread_attr_destroy(&attributes);
	}
	made = made || !pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return made;
}

static void start(void)
{
	enum state none = NONE, left = LEFT, starting = STARTING;
	if (atomic_compare_exchange_strong(&state, &left, STARTING))
		pthread_join(thread, NULL); /* on its way out: it waits for nothing */
	else if (!atomic_compare_exchange_strong(&state, &none, STARTING))
		return;
	if (!prepare() || !create()) {
		atomic_compare_exchange_strong(&state, &starting, FAILED);
		spill_note("ahead",
		           "no thread can be made for host.ahead: host memory is made when it is needed");
		return;
	}
	/* Unless it has left already, or the process has ended meanwhile. */
	atomic_compare_exchange_strong(&state, &starting, RUNNING);
}

void spill_host_ahead_wake(void)
{
	if (atomic_load(&state) != RUNNING)
		start();
	if (atomic_load(&state) == RUNNING)
		sem_post(&work);
}

void spill_host_ahead_fork_child(void)
{
	enum state now = atomic_load(&state);
	if (now == NONE || now == FAILED || now == ENDED)
		return;
	sem_init(&work, 0, 0);
	atomic_store(&state, NONE);
}

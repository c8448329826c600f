/*
 * The thread that makes host chunks ahead of need (host.ahead). It starts when there is a chunk to
 * make, and ends when there was none for a while, so that it does not keep a process whose own
 * threads have ended. No signal is ever delivered to it. At exit it leaves the vendor's calls, and
 * ends, before older exit handlers run, the vendor's among them.
 */
#include "host_chunks.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "clock.h"
#include "note.h"
#include "process.h"
#include "thread.h"

/* How long the thread waits for work before it ends. */
#define STAY_NS 2000000000ull
/* The shortest pause between two chunks. */
#define REST_NS 20000000ull

/*
 * The states are NONE → STARTING → RUNNING → LEFT → STARTING. LEFT: the thread has ended by
 * itself, and is to be joined. FAILED and ENDED are final; ENDED: the process ends. Only the caller
 * that sets STARTING or ENDED uses the thread's handle.
 */
enum state { NONE, STARTING, RUNNING, LEFT, FAILED, ENDED };

static _Atomic enum state state;
static pthread_t thread;
static sem_t work;

/*
 * The thread pauses twice as long as it works. The vendor makes memory under a lock that is not
 * fair: without pauses the program's own memory calls take up to 280 ms (measured, H200). Wake-ups
 * meanwhile are for work that already goes on, or for the end.
 */
static void pause_after(uint64_t since_ns)
{
	uint64_t now = spill_clock_ns(), ns = 2 * (now - since_ns);
	uint64_t until = now + (ns > REST_NS ? ns : REST_NS);
	while (atomic_load(&state) != ENDED && now < until && spill_clock_wait(&work, until - now))
		now = spill_clock_ns();
}

static bool make_one_chunk(void)
{
	uint64_t since = spill_clock_ns();
	if (atomic_load(&state) == ENDED || !spill_host_chunks_make())
		return false;
	pause_after(since);
	return true;
}

static void *ahead_thread(void *unused)
{
	spill_thread.depth = 1; /* its calls are libspill's */
	pthread_setname_np(pthread_self(), "spill-ahead");
	while (atomic_load(&state) != ENDED && spill_clock_wait(&work, STAY_NS))
		while (make_one_chunk())
			;
	enum state running = RUNNING, starting = STARTING;
	if (!atomic_compare_exchange_strong(&state, &running, LEFT))
		atomic_compare_exchange_strong(&state, &starting, LEFT);
	return NULL;
}

/* Runs at exit, and when this library is unloaded. */
static void end_thread(void)
{
	enum state before = atomic_exchange(&state, ENDED);
	if (before != RUNNING && before != LEFT)
		return;
	sem_post(&work);
	spill_thread_end(thread);
}

/* Needed once in a process. A forked child inherits it. */
static bool prepare_once(void)
{
	static bool registered; /* by the caller that set STARTING */
	if (!registered)
		registered = sem_init(&work, 0, 0) == 0 && atexit(end_thread) == 0;
	return registered;
}

static void start_thread(void)
{
	enum state none = NONE, left = LEFT, starting = STARTING;
	if (atomic_compare_exchange_strong(&state, &left, STARTING))
		pthread_join(thread, NULL); /* the thread is ending: it waits for nothing */
	else if (!atomic_compare_exchange_strong(&state, &none, STARTING))
		return;
	if (!prepare_once() || !spill_thread_start(&thread, ahead_thread)) {
		atomic_compare_exchange_strong(&state, &starting, FAILED);
		spill_note("ahead",
		           "cannot start the thread of host.ahead, so host memory is made when it is needed");
		return;
	}
	/* Unless the thread has already ended, or the process is ending. */
	atomic_compare_exchange_strong(&state, &starting, RUNNING);
}

void spill_host_ahead_wake(void)
{
	if (atomic_load(&state) != RUNNING)
		start_thread();
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

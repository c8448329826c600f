/* The mover's lock (mover.h). Each case runs in a child of its own, because the lock is one of the process. */
#include "mover.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

#define CHILD_SECONDS 120
#include "childtest.h"

/* The cancellation state that the calling thread has. */
static int cancel_state(void)
{
	int state, unused;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_setcancelstate(state, &unused);
	return state;
}

static bool is_held(void)
{
	return spill_mover_is_mine() && cancel_state() == PTHREAD_CANCEL_DISABLE;
}

static void take(void)
{
	spill_mover_lock();
}

static void try(void)
{
	CHECK(spill_mover_trylock());
}

static void try_in_flight(void)
{
	CHECK(spill_mover_trylock_in_flight());
}

/* Each way to take it, and whether a flight lands then. */
static const struct way {
	void (*take)(void);
	bool lands;
} ways[] = {{take, true}, {try, true}, {try_in_flight, false}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static unsigned landings;

static void land(void)
{
	CHECK(is_held());
	landings++;
}

/* It lands with the lock held, and the thread is then as it was before. */
CHILD_TEST(whoever_takes_it_lands)
{
	static const int states[] = {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE};
	for (unsigned told = 0; told < 2; told++) {
		for (unsigned i = 0; i < 2 * WAYS; i++) {
			const struct way *way = &ways[i / 2];
			unsigned before = landings;
			pthread_setcancelstate(states[i % 2], NULL);
			CHECK(!spill_mover_is_mine());
			way->take();
			CHECK(is_held());
			CHECK(landings == before + (told && way->lands));
			spill_mover_unlock();
			CHECK(!spill_mover_is_mine() && cancel_state() == states[i % 2]);
		}
		spill_mover_use_landing(land);
	}
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
	unsigned before = landings;
	CHECK(!spill_mover_busy() && landings == before + 1);
	CHECK(!spill_mover_is_mine() && cancel_state() == PTHREAD_CANCEL_ENABLE);
}

static void *others(void *unused)
{
	CHECK(spill_mover_busy());
	CHECK(!spill_mover_trylock() && !spill_mover_trylock_in_flight());
	CHECK(!spill_mover_is_mine() && cancel_state() == PTHREAD_CANCEL_ENABLE);
	return unused;
}

/* One thread has it. For another that only tries, nothing changes and nothing lands. */
CHILD_TEST(one_thread_has_it)
{
	spill_mover_use_landing(land);
	for (unsigned i = 0; i < WAYS; i++) {
		pthread_t thread;
		ways[i].take();
		unsigned before = landings;
		CHECK(pthread_create(&thread, NULL, others, NULL) == 0 && pthread_join(thread, NULL) == 0);
		CHECK(landings == before && !spill_mover_wanted());
		spill_mover_unlock();
	}
}

static void *want(void *unused)
{
	spill_mover_lock();
	spill_mover_unlock();
	return unused;
}

/* Threads that wait are seen, but not in a child, which has none of them. */
CHILD_TEST(who_waits_is_seen)
{
	enum { THREADS = 2 };
	int status;
	pthread_t threads[THREADS];
	spill_mover_lock();
	CHECK(!spill_mover_wanted());
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, want, NULL) == 0);
	while (!spill_mover_wanted())
		sched_yield();
	pid_t child = fork();
	if (child == 0) {
		spill_mover_fork_child();
		_exit(spill_mover_wanted());
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(spill_mover_wanted());
	spill_mover_unlock();
	for (int i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(!spill_mover_wanted());
}

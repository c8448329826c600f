/*
 * Which locks a thread holds, from the calls that take them and give them back (--wrap). The test
 * program is aborted if a thread gives back a lock that it does not hold, takes one that it holds, or
 * ends with one. So each test of a function notices a lock that is not taken there, or not given
 * back, without a second thread that comes at the wrong time.
 */
#include "unit.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define GOES_BY_HERE(call) extern __typeof__(call) __real_##call, __wrap_##call
GOES_BY_HERE(pthread_mutex_lock);
GOES_BY_HERE(pthread_mutex_trylock);
GOES_BY_HERE(pthread_mutex_clocklock);
GOES_BY_HERE(pthread_mutex_unlock);
GOES_BY_HERE(pthread_rwlock_rdlock);
GOES_BY_HERE(pthread_rwlock_clockwrlock);
GOES_BY_HERE(pthread_rwlock_unlock);

static _Thread_local struct lock {
	pthread_mutex_t *mutex; /* one of both */
	pthread_rwlock_t *rwlock;
} held[64];
static _Thread_local unsigned count, taken;

unsigned locks_taken(void)
{
	return taken;
}

static _Thread_local void (*waiting_handler)(void);

void before_next_lock(void (*handler)(void))
{
	waiting_handler = handler;
}

static void let_handler_come(void)
{
	void (*handler)(void) = waiting_handler;
	waiting_handler = NULL;
	if (handler)
		handler();
}

static _Noreturn void die(const char *what, size_t length)
{
	(void)!write(STDERR_FILENO, what, length);
	abort();
}
#define DIE(what) die(what "\n", sizeof(what))

static unsigned place_of(struct lock lock)
{
	unsigned place = 0;
	while (place < count && (held[place].mutex != lock.mutex || held[place].rwlock != lock.rwlock))
		place++;
	return place;
}

static void forget(unsigned place)
{
	held[place] = held[--count];
}

static bool is_free(struct lock lock)
{
	if (lock.mutex)
		return !__real_pthread_mutex_trylock(lock.mutex) && !__real_pthread_mutex_unlock(lock.mutex);
	return !pthread_rwlock_trywrlock(lock.rwlock) && !__real_pthread_rwlock_unlock(lock.rwlock);
}

/* A lock may be free although it was not given back: a child of fork has it made anew. */
static bool is_held(unsigned place)
{
	if (!is_free(held[place]))
		return true;
	forget(place);
	return false;
}

/* The calls that wait for a time are made of others in some builds (tsan_locks.c), so it may be known. */
static int took(int result, struct lock lock)
{
	if (!result && place_of(lock) == count) {
		if (count == sizeof(held) / sizeof(held[0]))
			DIE("a thread holds too many locks");
		held[count++] = lock;
		taken++;
	}
	return result;
}

static void before_take(struct lock lock)
{
	unsigned place = place_of(lock);
	if (place < count && is_held(place))
		DIE("a thread takes a lock that it holds");
}

static void give_back(struct lock lock)
{
	unsigned place = place_of(lock);
	if (place == count || !is_held(place))
		DIE("a thread gives back a lock that it does not hold");
	forget(place);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	let_handler_come();
	before_take((struct lock){.mutex = mutex});
	return took(__real_pthread_mutex_lock(mutex), (struct lock){.mutex = mutex});
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	let_handler_come();
	return took(__real_pthread_mutex_trylock(mutex), (struct lock){.mutex = mutex});
}

int __wrap_pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	return took(__real_pthread_mutex_clocklock(mutex, clock, until), (struct lock){.mutex = mutex});
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	give_back((struct lock){.mutex = mutex});
	return __real_pthread_mutex_unlock(mutex);
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *rwlock)
{
	before_take((struct lock){.rwlock = rwlock});
	return took(__real_pthread_rwlock_rdlock(rwlock), (struct lock){.rwlock = rwlock});
}

int __wrap_pthread_rwlock_clockwrlock(pthread_rwlock_t *rwlock, clockid_t clock, const struct timespec *until)
{
	return took(__real_pthread_rwlock_clockwrlock(rwlock, clock, until), (struct lock){.rwlock = rwlock});
}

int __wrap_pthread_rwlock_unlock(pthread_rwlock_t *rwlock)
{
	give_back((struct lock){.rwlock = rwlock});
	return __real_pthread_rwlock_unlock(rwlock);
}

__attribute__((destructor)) static void all_are_given_back(void)
{
	while (count)
		if (is_held(0))
			DIE("the program ends with a lock held");
}

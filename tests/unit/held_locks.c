/*
 * Which locks a thread holds, from the calls that take them and give them back (--wrap). The test
 * program is aborted if a thread gives back a lock that it does not hold, takes one that it holds, or
 * ends with one. So each test of a function notices a lock that is not taken there, or not given
 * back, without a second thread that comes at the wrong time.
 */
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

static _Thread_local pthread_mutex_t *held[64];
static _Thread_local unsigned count;

static _Noreturn void die(const char *what, size_t length)
{
	(void)!write(STDERR_FILENO, what, length);
	abort();
}
#define DIE(what) die(what "\n", sizeof(what))

static unsigned place_of(const pthread_mutex_t *mutex)
{
	unsigned place = 0;
	while (place < count && held[place] != mutex)
		place++;
	return place;
}

static void forget(unsigned place)
{
	held[place] = held[--count];
}

/* A lock may be free although it was not given back: a child of fork has it made anew. */
static bool is_held(unsigned place)
{
	if (__real_pthread_mutex_trylock(held[place]))
		return true;
	__real_pthread_mutex_unlock(held[place]);
	forget(place);
	return false;
}

/* The calls that wait for a time are made of others in some builds (tsan_locks.c), so it may be known. */
static int took(int result, pthread_mutex_t *mutex)
{
	if (!result && place_of(mutex) == count) {
		if (count == sizeof(held) / sizeof(held[0]))
			DIE("a thread holds too many locks");
		held[count++] = mutex;
	}
	return result;
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
	unsigned place = place_of(mutex);
	if (place < count && is_held(place))
		DIE("a thread takes a lock that it holds");
	return took(__real_pthread_mutex_lock(mutex), mutex);
}

int __wrap_pthread_mutex_trylock(pthread_mutex_t *mutex)
{
	return took(__real_pthread_mutex_trylock(mutex), mutex);
}

int __wrap_pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	return took(__real_pthread_mutex_clocklock(mutex, clock, until), mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	unsigned place = place_of(mutex);
	if (place == count)
		DIE("a thread gives back a lock that it does not hold");
	forget(place);
	return __real_pthread_mutex_unlock(mutex);
}

__attribute__((destructor)) static void all_are_given_back(void)
{
	while (count)
		if (is_held(0))
			DIE("the program ends with a lock held");
}

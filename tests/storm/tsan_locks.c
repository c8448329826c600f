/*
 * ThreadSanitizer of gcc 12 does not know pthread_mutex_clocklock. It takes the lock for free
 * afterwards, and reports its unlock. Here the call is made of calls that it knows.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>

int pthread_mutex_clocklock(pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until)
{
	const struct timespec pause = {0, 20000};
	struct timespec now;
	int result, cancel;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* the call is no cancellation point */
	while ((result = pthread_mutex_trylock(mutex)) == EBUSY) {
		clock_gettime(clock, &now);
		if (now.tv_sec > until->tv_sec ||
		    (now.tv_sec == until->tv_sec && now.tv_nsec >= until->tv_nsec)) {
			result = ETIMEDOUT;
			break;
		}
		nanosleep(&pause, NULL);
	}
	pthread_setcancelstate(cancel, NULL);
	return result;
}

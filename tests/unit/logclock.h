/* The log's clock as a test wants it. A test that includes this wraps clock_gettime. */
#ifndef LOGCLOCK_H
#define LOGCLOCK_H

#include <stdatomic.h>
#include <time.h>

/* The monotonic clock stands still, except where a test says otherwise. */
static _Atomic long monotonic_ms = 1000000;
int __real_clock_gettime(clockid_t clock, struct timespec *now);
int __wrap_clock_gettime(clockid_t clock, struct timespec *now);

int __wrap_clock_gettime(clockid_t clock, struct timespec *now)
{
	if (clock != CLOCK_MONOTONIC)
		return __real_clock_gettime(clock, now);
	*now = (struct timespec){monotonic_ms / 1000, monotonic_ms % 1000 * 1000000};
	return 0;
}

#endif

#include "clock.h"

#include <errno.h>

#define SECOND 1000000000ull

const struct spill_clock *_Atomic spill_clock_used;

void spill_clock_use(const struct spill_clock *clock)
{
	/* Relaxed as the loads are: only tests call this, before they start threads. */
	atomic_store_explicit(&spill_clock_used, clock, memory_order_relaxed);
}

static struct timespec time_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = (time_t)(ns / SECOND), .tv_nsec = (long)(ns % SECOND)};
}

/* The kernel waits by the machine's clock, whichever is used. */
struct timespec spill_clock_in(uint64_t ns)
{
	return time_of(spill_clock_machine_ns() + ns);
}

void spill_clock_sleep(uint64_t ns)
{
	const struct spill_clock *used = atomic_load_explicit(&spill_clock_used, memory_order_relaxed);
	struct timespec span = time_of(ns);
	if (used && used->sleep)
		used->sleep(ns);
	else
		nanosleep(&span, NULL);
}

bool spill_clock_wait(sem_t *semaphore, uint64_t ns)
{
	const struct spill_clock *used = atomic_load_explicit(&spill_clock_used, memory_order_relaxed);
	struct timespec until = spill_clock_in(ns);
	int failed;
	if (used && used->wait)
		return used->wait(semaphore, ns);
	do
		failed = sem_clockwait(semaphore, CLOCK_MONOTONIC, &until);
	while (failed && errno == EINTR);
	return !failed;
}

uint64_t spill_clock_wall_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

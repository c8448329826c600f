/* The clock for time limits and rates, and how to wait by it. */
#ifndef SPILL_CLOCK_H
#define SPILL_CLOCK_H

#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Another clock, for tests. A member that is NULL is the machine's. */
struct spill_clock {
	uint64_t (*now)(void);
	void (*sleep)(uint64_t ns);
	bool (*wait)(sem_t *semaphore, uint64_t ns); /* as spill_clock_wait */
};

/* NULL: the machine's clock. `clock` must live until the next call. */
void spill_clock_use(const struct spill_clock *clock);

extern const struct spill_clock *_Atomic spill_clock_used; /* of spill_clock_use */

/* CLOCK_MONOTONIC, nanoseconds; no system call where the kernel has a vDSO. */
static inline uint64_t spill_clock_machine_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000ull + (uint64_t)time.tv_nsec;
}

static inline uint64_t spill_clock_ns(void)
{
	const struct spill_clock *used = atomic_load_explicit(&spill_clock_used, memory_order_relaxed);
	return __builtin_expect(used && used->now, 0) ? used->now() : spill_clock_machine_ns();
}

/* CLOCK_REALTIME, microseconds since 1970. */
uint64_t spill_clock_wall_us(void);

/* The time `ns` nanoseconds from now, for libc calls that wait until a time of CLOCK_MONOTONIC. */
struct timespec spill_clock_in(uint64_t ns);

/* A signal may end it sooner. */
void spill_clock_sleep(uint64_t ns);

/* Takes the semaphore. False if it could not within that time. */
bool spill_clock_wait(sem_t *semaphore, uint64_t ns);

#endif

/* A clock that stands still. Sleeping makes time pass, and so does a test. */
#ifndef SPILL_TEST_FAKE_CLOCK_H
#define SPILL_TEST_FAKE_CLOCK_H

#include "clock.h"

static struct {
	_Atomic uint64_t ns, tick_ns; /* now; what each look at it adds */
	_Atomic uint64_t slept_ns, longest_ns;
	_Atomic unsigned sleeps;
	void (*on_sleep)(void);
} fake_clock;

static uint64_t fake_clock_now(void)
{
	uint64_t tick = fake_clock.tick_ns;
	return atomic_fetch_add(&fake_clock.ns, tick) + tick;
}

static void fake_clock_sleep(uint64_t ns)
{
	fake_clock.ns += ns;
	fake_clock.slept_ns += ns;
	fake_clock.longest_ns = ns > fake_clock.longest_ns ? ns : fake_clock.longest_ns;
	fake_clock.sleeps++;
	if (fake_clock.on_sleep)
		fake_clock.on_sleep();
}

/* From now on it is this time; nobody has slept. */
static inline void fake_clock_use(uint64_t ns)
{
	static const struct spill_clock clock = {.now = fake_clock_now, .sleep = fake_clock_sleep};
	fake_clock.ns = ns;
	fake_clock.tick_ns = fake_clock.slept_ns = fake_clock.longest_ns = 0;
	fake_clock.sleeps = 0;
	fake_clock.on_sleep = NULL;
	spill_clock_use(&clock);
}

#endif

/* Waits last as long as they say by the machine's clock, and by a test's where it has one. */
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include "clock.h"

#define MS 1000000ull
#define LONG (3600 * 1000 * MS)

static struct {
	uint64_t slept, waited;
} asked;

static uint64_t at_five(void)
{
	return 5;
}

static void note_sleep(uint64_t ns)
{
	asked.slept += ns;
}

static bool note_wait(sem_t *semaphore, uint64_t ns)
{
	asked.waited += ns;
	return sem_trywait(semaphore) == 0;
}

static int teardown(void **state)
{
	spill_clock_use(NULL);
	return 0;
}

static uint64_t ns_of(struct timespec time)
{
	return (uint64_t)time.tv_sec * 1000 * MS + (uint64_t)time.tv_nsec;
}

/* For calls of libc, so it is of the machine's clock, whichever is used. */
TEST(a_time_from_now_on)
{
	static const struct spill_clock clock = {.now = at_five};
	static const uint64_t spans[] = {0, 1, 999999999, LONG + 1};
	for (unsigned i = 0; i < sizeof(spans) / sizeof(spans[0]); i++) {
		spill_clock_use(i % 2 ? &clock : NULL);
		uint64_t before = spill_clock_machine_ns();
		struct timespec then = spill_clock_in(spans[i]);
		uint64_t after = spill_clock_machine_ns();
		assert_in_range(ns_of(then), before + spans[i], after + spans[i]);
		assert_in_range(then.tv_nsec, 0, 999999999);
	}
}

TEST(a_sleep_is_as_long_as_asked)
{
	uint64_t before = spill_clock_ns();
	spill_clock_sleep(2 * MS);
	assert_true(spill_clock_ns() - before >= 2 * MS);
}

static void *post_later(void *semaphore)
{
	spill_clock_sleep(2 * MS);
	sem_post(semaphore);
	return NULL;
}

TEST(a_wait_ends_with_the_semaphore_or_the_time)
{
	sem_t semaphore;
	pthread_t thread;
	sem_init(&semaphore, 0, 1);
	assert_true(spill_clock_wait(&semaphore, 0));
	uint64_t before = spill_clock_ns();
	assert_false(spill_clock_wait(&semaphore, 2 * MS));
	assert_true(spill_clock_ns() - before >= 2 * MS);
	assert_int_equal(pthread_create(&thread, NULL, post_later, &semaphore), 0);
	assert_true(spill_clock_wait(&semaphore, LONG));
	pthread_join(thread, NULL);
	sem_destroy(&semaphore);
}

static sem_t posted;
static unsigned signals;

static void post_at_third(int signal)
{
	if (++signals == 3)
		sem_post(&posted);
}

TEST(a_signal_does_not_end_a_wait)
{
	const struct sigaction action = {.sa_handler = post_at_third};
	const struct itimerval often = {{0, 1000}, {0, 1000}}, never = {{0, 0}, {0, 0}};
	struct sigaction old;
	sem_init(&posted, 0, 0);
	sigaction(SIGALRM, &action, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	bool taken = spill_clock_wait(&posted, LONG);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_true(taken);
	assert_true(signals >= 3);
	sem_destroy(&posted);
}

/* What a test's clock has not is the machine's. */
TEST(a_clock_of_a_test)
{
	static const struct spill_clock whole = {at_five, note_sleep, note_wait}, none = {0};
	sem_t semaphore;
	sem_init(&semaphore, 0, 1);
	spill_clock_use(&whole);
	assert_int_equal(spill_clock_ns(), 5);
	spill_clock_sleep(LONG);
	assert_int_equal(asked.slept, LONG);
	assert_true(spill_clock_wait(&semaphore, LONG));
	assert_false(spill_clock_wait(&semaphore, LONG));
	assert_int_equal(asked.waited, 2 * LONG);
	spill_clock_use(&none);
	assert_true(spill_clock_ns() > 5);
	spill_clock_sleep(1);
	assert_false(spill_clock_wait(&semaphore, MS));
	assert_int_equal(asked.slept, LONG);
	assert_int_equal(asked.waited, 2 * LONG);
	sem_destroy(&semaphore);
}

TEST(the_time_since_1970)
{
	time_t before = time(NULL);
	uint64_t us = spill_clock_wall_us();
	assert_in_range(us / 1000000, before, time(NULL) + 1);
}

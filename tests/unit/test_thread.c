/* Threads of libspill: how they are made, and how an ending process waits for one. libc's calls are replaced. */
#define SETUP setup
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>

#include "fake_clock.h"
#include "said.h"
#include "signals.h"
#include "thread.h"

#define MS 1000000ull

static unsigned fail; /* so many creations do, first */
static bool no_attributes, no_size;
static uint64_t ends_ns;

int pthread_attr_init(pthread_attr_t *attributes)
{
	say("attributes", !no_attributes);
	return no_attributes ? ENOMEM : 0;
}

int pthread_attr_setstacksize(pthread_attr_t *attributes, size_t bytes)
{
	say("stack", bytes);
	return no_size ? EINVAL : 0;
}

int pthread_attr_destroy(pthread_attr_t *attributes)
{
	say("destroy", 0);
	return 0;
}

static void *run(void *unused)
{
	return unused;
}

/* A thread takes over the mask: no signal of the program's is handled in it. */
int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *data)
{
	sigset_t mask;
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_true(sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGTERM));
	assert_ptr_equal(body, run);
	say(attributes ? "small" : "plain", fail);
	if (!fail)
		return 0;
	fail--;
	return EAGAIN;
}

int pthread_tryjoin_np(pthread_t thread, void **result)
{
	return fake_clock.ns < ends_ns ? EBUSY : 0;
}

static int setup(void **state)
{
	fail = 0;
	no_attributes = no_size = false;
	fake_clock_use(1000 * MS);
	what_was_said();
	return 0;
}

/* One with a small stack, or, where that is refused, with that of any thread. */
TEST(a_thread_is_made)
{
	pthread_t thread;
	assert_true(spill_thread_start(&thread, run));
	assert_string_equal(what_was_said(), "attributes:1 stack:524288 small:0 destroy:0");
	fail = 1;
	assert_true(spill_thread_start(&thread, run));
	assert_string_equal(what_was_said(), "attributes:1 stack:524288 small:1 destroy:0 plain:0");
	fail = 2;
	assert_false(spill_thread_start(&thread, run));
	assert_string_equal(what_was_said(), "attributes:1 stack:524288 small:2 destroy:0 plain:1");
	no_size = true;
	assert_true(spill_thread_start(&thread, run));
	assert_string_equal(what_was_said(), "attributes:1 stack:524288 destroy:0 plain:0");
	no_attributes = true;
	assert_true(spill_thread_start(&thread, run));
	assert_string_equal(what_was_said(), "attributes:0 plain:0");
}

TEST(the_mask_is_put_back)
{
	pthread_t thread;
	sigset_t mask;
	spill_thread_start(&thread, run);
	pthread_sigmask(SIG_SETMASK, NULL, &mask);
	assert_false(sigismember(&mask, SIGUSR1));
}

/* It is looked for each 0.1 ms, and five seconds long. */
TEST(an_end_is_waited_for)
{
	const uint64_t ends[] = {0, 3 * MS, 100000 * MS}, waits[] = {0, 3 * MS, 5000 * MS};
	for (unsigned i = 0; i < 3; i++) {
		setup(NULL);
		ends_ns = fake_clock.ns + ends[i];
		spill_thread_end(pthread_self());
		assert_int_equal(fake_clock.slept_ns, waits[i]);
		assert_int_equal(fake_clock.sleeps, waits[i] / 100000);
	}
}

#include "thread.h"

#include <errno.h>

#include "clock.h"
#include "signals.h"

/* Enough for the vendor's calls and ours. Pages of the stack are only taken when touched. */
#define STACK_BYTES (512ul << 10)
/* How long an ending process waits for a thread, and how often it looks. */
#define END_NS 5000000000ull
#define POLL_NS 100000

bool spill_thread_start(pthread_t *thread, void *(*run)(void *unused))
{
	sigset_t before;
	pthread_attr_t attributes;
	spill_signals_block(&before);
	bool made = false;
	if (!pthread_attr_init(&attributes)) {
		/* With much thread-local memory of libraries this stack can be too small. */
		made = !pthread_attr_setstacksize(&attributes, STACK_BYTES) &&
		       !pthread_create(thread, &attributes, run, NULL);
		pthread_attr_destroy(&attributes);
	}
	made = made || !pthread_create(thread, NULL, run, NULL);
	spill_signals_restore(&before);
	return made;
}

void spill_thread_end(pthread_t thread)
{
	uint64_t until = spill_clock_ns() + END_NS;
	while (pthread_tryjoin_np(thread, NULL) == EBUSY && spill_clock_ns() < until)
		spill_clock_sleep(POLL_NS);
}

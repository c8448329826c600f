#include "signal_guard.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static void our_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGPIPE);
	sigaddset(set, SIGXFSZ);
}

void spill_signal_guard_enter(struct spill_signal_guard *quiet)
{
	sigset_t ours;

	quiet->error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet->cancel);
	our_signals(&ours);
	sigpending(&quiet->pending);
	pthread_sigmask(SIG_BLOCK, &ours, &quiet->mask);
}

/* Both signals are sent to the thread that wrote, so that taking ours takes nobody else's. */
static void take(const struct spill_signal_guard *quiet, const sigset_t *now, int number)
{
	static const struct timespec at_once;
	sigset_t one;

	if (!sigismember(now, number) || sigismember(&quiet->pending, number))
		return;
	sigemptyset(&one);
	sigaddset(&one, number);
	/* It ends: the signal is pending, and no other thread can take it. */
	while (sigtimedwait(&one, NULL, &at_once) < 0 && errno == EINTR)
		;
}

void spill_signal_guard_leave(struct spill_signal_guard *quiet)
{
	sigset_t now;

	sigpending(&now);
	take(quiet, &now, SIGPIPE);
	take(quiet, &now, SIGXFSZ);
	pthread_sigmask(SIG_SETMASK, &quiet->mask, NULL);
	errno = quiet->error;
	pthread_setcancelstate(quiet->cancel, NULL);
}

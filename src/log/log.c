#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "caller.h"
#include "clock.h"
#include "log_max.h"
#include "log_open.h"
#include "log_queue.h"
#include "policy.h"

#define SOON_US 100000

/* How long the end of the process may wait for a thread that is writing just then. */
#define LAST_WAIT_NS 100000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_LOG */
static struct spill_logqueue queue;
static struct spill_logmax limit;
static bool stderr_all;
static uint64_t retry_us;
static pid_t owner; /* who opened it: a copy of us made behind pthread_atfork's back is not */
static _Atomic bool active;
static _Atomic bool ending; /* nothing will come and drain the queue: every line goes out at once */
static _Atomic uint64_t start_ns;

/* Set while this thread is in here, so that a signal handler's abort() or _exit() does not wait for itself. */
static __thread volatile bool inside __attribute__((tls_model("initial-exec")));
static _Atomic unsigned interrupting; /* lines of such handlers: there is no way to take them */
static __thread int thread_id __attribute__((tls_model("initial-exec")));

struct hold {
	int error, cancel;
};

static bool enter(struct hold *hold)
{
	if (inside)
		return false;
	inside = true;
	hold->error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &hold->cancel);
	pthread_mutex_lock(&lock);
	return true;
}

static void leave(struct hold *hold)
{
	pthread_mutex_unlock(&lock);
	inside = false;
	errno = hold->error;
	pthread_setcancelstate(hold->cancel, NULL);
}

uint64_t spill_log_now_us(void)
{
	return (spill_clock_ns() - atomic_load_explicit(&start_ns, memory_order_relaxed)) / 1000;
}

uint64_t spill_log_start_us(void)
{
	return spill_log_active() ? spill_log_now_us() : 0;
}

int spill_log_tid(void)
{
	if (thread_id == 0)
		thread_id = gettid();
	return thread_id;
}

bool spill_log_active(void)
{
	return atomic_load_explicit(&active, memory_order_acquire);
}

const char *spill_log_caller(const void *caller)
{
	if (!caller)
		return "";                                           /* nobody's call: a tick */
	return spill_log_active() ? spill_caller_name(caller) : "?"; /* nobody will read it */
}

const char *spill_log_path(void)
{
	return spill_log_active() ? queue.name.path : "";
}

bool spill_log_ours(void)
{
	return spill_log_active() && getpid() == owner;
}

/* pre: locked */
static void begin(const struct spill_policy *policy, const struct spill_log_start *start)
{
	atomic_store(&start_ns, spill_clock_ns());
	if (!spill_logopen(&queue, policy, start))
		return;
	owner = getpid();
	retry_us = 0;
	spill_log_max_begin(&limit, policy->log_max);
	spill_log_max_spend(&limit, queue.start.length);
	stderr_all = policy->log_stderr == SPILL_STDERR_ALL;
	atomic_store_explicit(&active, true, memory_order_release);
}

void spill_log_open(const struct spill_policy *policy, const struct spill_log_start *start)
{
	struct hold hold;

	if (!enter(&hold))
		return;
	if (!spill_log_active())
		begin(policy, start);
	leave(&hold);
}

/* pre: locked. A process made by a bare clone() has the parent's queue: those lines are the parent's to write. */
static bool still_ours(void)
{
	if (getpid() == owner)
		return true;
	atomic_store(&active, false);
	return false;
}

/* pre: locked */
static void drain(uint64_t now)
{
	for (unsigned left = atomic_exchange(&interrupting, 0); left > 0; left--)
		spill_log_queue_lose(&queue, 0, EDEADLK);
	if (!still_ours())
		return;
	if (spill_log_queue_drain(&queue)) {
		retry_us = 0; /* there is room again: nothing has to wait, or is lost waiting */
		return;
	}
	retry_us = now + SOON_US;
	if (queue.gone && atomic_exchange(&active, false))
		spill_log_open_complain(queue.name.path,
		                        "the program closed it and it could not be opened again");
}

/* For a line. False if there is no log, or no way to it. */
static bool enter_log(struct hold *hold)
{
	if (!spill_log_active())
		return false;
	if (enter(hold))
		return true;
	atomic_fetch_add(&interrupting, 1);
	return false;
}

/* pre: locked. False if the line is lost. */
static bool put(const char *line, size_t length, enum spill_log_when when)
{
	uint64_t now = spill_log_now_us();
	bool may_write = when == SPILL_LOG_NOW || now >= retry_us, taken = false;

	if (length > sizeof(queue.bytes) - queue.used && may_write && !still_ours())
		may_write = false;
	if (length == 0)
		spill_log_queue_lose(&queue, 0, EMSGSIZE);
	else
		taken = spill_log_queue_add(&queue, line, length, may_write);
	if (taken)
		spill_log_max_spend(&limit, length);
	if (when == SPILL_LOG_NOW || atomic_load(&ending) || (may_write && now >= queue.first_us + SOON_US))
		drain(now);
	return taken;
}

/* pre: locked. The room of a line of our own is not on the caller's stack, which may be the program's smallest. */
static char own_line[SPILL_LOG_MAX_LINE];

/* pre: locked */
static void tell_dropped(void)
{
	if (put(own_line, spill_log_max_line(&limit, own_line, sizeof(own_line)), SPILL_LOG_NOW))
		spill_log_max_told(&limit);
}

/* pre: locked */
static void tell_full(void)
{
	char text[256];

	put(own_line, spill_log_max_note(&limit, text, sizeof(text), own_line, sizeof(own_line)),
	    SPILL_LOG_NOW);
	if (stderr_all)
		spill_stderr_line(text);
}

void spill_log_write(const char *line, size_t length, enum spill_log_when when)
{
	struct hold hold;

	if (!enter_log(&hold))
		return;
	if (limit.pending)
		tell_dropped();
	put(line, length, when);
	leave(&hold);
}

bool spill_log_offer(const char *line, size_t length, enum spill_log_when when)
{
	struct hold hold;
	bool fits;

	if (!enter_log(&hold))
		return true;
	fits = !limit.full && length <= limit.room;
	if (fits)
		put(line, length, when);
	else if (spill_log_max_fill(&limit))
		tell_full();
	leave(&hold);
	return fits;
}

void spill_log_drop(enum spill_drop kind, const struct spill_bytes *bytes, const struct spill_bytes *peak)
{
	struct hold hold;

	if (!spill_log_active() || !enter(&hold))
		return;
	spill_log_max_count(&limit, kind, bytes, peak);
	leave(&hold);
}

/* Not for ever: the thread that holds it may be one that will never run again. */
static bool enter_soon(void)
{
	struct timespec until = spill_clock_in(LAST_WAIT_NS);

	return pthread_mutex_trylock(&lock) == 0 ||
	       pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

void spill_log_flush(void)
{
	struct hold hold = {.error = errno};

	if (!spill_log_active() || inside || getpid() != owner)
		return;
	inside = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &hold.cancel);
	if (enter_soon()) {
		drain(spill_log_now_us());
		pthread_mutex_unlock(&lock);
	}
	inside = false;
	errno = hold.error;
	pthread_setcancelstate(hold.cancel, NULL);
}

void spill_log_at_exit(void)
{
	atomic_store(&ending, true);
	spill_log_flush();
}

/* fork() in a signal handler that interrupted us: there is nothing that could be taken. */
static bool fork_took_lock;

void spill_log_fork_prepare(void)
{
	bool take = !inside;

	if (take)
		pthread_mutex_lock(&lock);
	fork_took_lock = take;
}

void spill_log_fork_parent(void)
{
	if (fork_took_lock)
		pthread_mutex_unlock(&lock);
}

void spill_log_fork_child(void)
{
	int error = errno;

	if (spill_log_active())
		spill_log_file_close(&queue.file);
	atomic_store(&active, false);
	atomic_store(&ending, false);
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	inside = false;
	thread_id = 0;
	errno = error;
}

#include "log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "caller.h"
#include "clock.h"
#include "fd.h"
#include "log_max.h"
#include "log_path.h"
#include "log_queue.h"
#include "process.h"
#include "process_ranks.h"
#include "scratch.h"
#include "stderr.h"
#include "text.h"

#define SOON_US 100000

/* How long the end of the process may wait for a thread that is writing the log. */
#define LAST_WAIT_NS 100000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_LOG */
static struct spill_log_queue queue;
static struct spill_log_max limit;
static bool stderr_all;
static uint64_t retry_us;
static _Atomic uint64_t drain_due_us; /* when the queue's oldest line must be in the file */
static pid_t owner;                   /* opened the log; a bare clone() runs no fork handler of ours */
static _Atomic bool active;
static _Atomic bool ending; /* no later call drains the queue: every line is written at once */
static _Atomic uint64_t start_ns;

/*
 * Set while this thread holds the lock: its signal handler's abort() must not wait for it. Cleared in
 * the child of a handler that forks, where the lock is made anew, and free.
 */
static __thread volatile bool inside __attribute__((tls_model("initial-exec")));
static _Atomic unsigned interrupting; /* lines of such handlers, which are lost */
static __thread int thread_id __attribute__((tls_model("initial-exec")));

struct log_hold {
	int error, cancel;
};

/* False in a signal handler that interrupted this thread inside. */
static bool lock_log(struct log_hold *hold)
{
	if (inside)
		return false;
	inside = true;
	hold->error = errno;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &hold->cancel);
	pthread_mutex_lock(&lock);
	inside = true; /* also in a child of a handler that came before this thread had the lock */
	return true;
}

/* A child of a handler that came later does not hold the lock. */
static void give_lock_back(void)
{
	if (inside)
		pthread_mutex_unlock(&lock);
}

static void unlock_log(struct log_hold *hold)
{
	uint64_t due = queue.used ? queue.first_us + SOON_US : UINT64_MAX;

	atomic_store_explicit(&drain_due_us, due > retry_us ? due : retry_us, memory_order_relaxed);
	give_lock_back();
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

const char *spill_log_path(void)
{
	return spill_log_active() ? queue.name.path : "";
}

bool spill_log_ours(void)
{
	return spill_log_active() && getpid() == owner;
}

static void tell_no_log(const char *path, const char *problem)
{
	char line[1024];
	struct spill_text text = spill_text_begin(line, sizeof(line));

	spill_text_add(&text, "no log: ");
	spill_text_add(&text, problem);
	if (path[0]) {
		spill_text_add(&text, ": ");
		spill_text_add(&text, path);
	}
	spill_stderr_line(line);
}

/* Creates the folders and opens the file. NULL, or a text that names the problem. */
static const char *open_log_file(struct spill_log_path *found)
{
	struct spill_signal_guard guard;
	const char *problem = NULL;
	int error;

	spill_signal_guard_enter(&guard);
	error = spill_log_path_make_folders(found);
	problem = error ? spill_error_text(error) : spill_log_name_open(&queue.name, &queue.file);
	spill_signal_guard_leave(&guard);
	return problem;
}

/*
 * Does this process remove old logs? Of the ranks of a job the first one does, because all of them
 * may have one home, and thousands would look through the same folder at once.
 */
static bool removes_logs(void)
{
	const struct spill_record_ranks ranks = spill_process_ranks();
	const char *rank = spill_ranks_rank(&ranks);

	return !rank || !strcmp(rank, "0");
}

/*
 * Opens the log's file and queues the start line. Removes old logs of the default folder. False if
 * there is no log; if that is a problem, one line on stderr names it. pre: locked
 */
static bool open_queue(const struct spill_policy *policy, const struct spill_log_start *start)
{
	static struct spill_log_path found; /* too large for a small stack */
	struct spill_start_line line;
	const char *problem;
	char program[256];

	if (getauxval(AT_SECURE) || policy->log_level == SPILL_LOG_OFF)
		return false;
	spill_program_name(program, sizeof(program));
	spill_log_path_find(&found, policy->log_path, program, SPILL_LOG_SUFFIX);
	problem = found.problem;
	if (!problem && !found.path[0])
		return false;
	spill_start_release(&queue.start); /* the parent process may have left it */
	memset(&queue, 0, sizeof(queue));
	memcpy(queue.name.name, found.path, sizeof(queue.name.name));
	if (!problem)
		problem = open_log_file(&found);
	if (problem) {
		tell_no_log(found.path, problem);
		return false;
	}
	spill_start_compose(&line, start, program);
	spill_log_queue_begin(&queue, &line);
	spill_log_queue_drain(&queue);
	if (found.in_default && removes_logs())
		spill_log_keep(queue.name.path, &queue.file, policy->log_keep);
	return true;
}

/* pre: locked */
static void begin_log(const struct spill_policy *policy, const struct spill_log_start *start)
{
	atomic_store(&start_ns, spill_clock_ns());
	if (!open_queue(policy, start))
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
	struct log_hold hold;

	if (!lock_log(&hold))
		return;
	if (!spill_log_active())
		begin_log(policy, start);
	unlock_log(&hold);
}

/* False in a process made by a bare clone(): the queue is its parent's. pre: locked */
static bool still_ours(void)
{
	if (getpid() == owner)
		return true;
	atomic_store(&active, false);
	return false;
}

/* pre: locked */
static void drain_queue(uint64_t now)
{
	for (unsigned left = atomic_exchange(&interrupting, 0); left > 0; left--)
		spill_log_queue_lose(&queue, 0, EDEADLK);
	if (!still_ours())
		return;
	if (spill_log_queue_drain(&queue)) {
		retry_us = 0; /* the file takes lines again */
		return;
	}
	retry_us = now + SOON_US;
	if (queue.gone && atomic_exchange(&active, false))
		tell_no_log(queue.name.path, "the program closed the file, and it cannot be opened again");
}

/* Locks the log for a line. False without a log, or in a signal handler that interrupted us. */
static bool lock_for_line(struct log_hold *hold)
{
	if (!spill_log_active())
		return false;
	if (lock_log(hold))
		return true;
	atomic_fetch_add(&interrupting, 1);
	return false;
}

/* pre: locked. False if the line is lost. */
static bool put_line(const char *line, size_t length, enum spill_log_when when)
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
		drain_queue(now);
	return taken;
}

/* For a drop line or a note, because the caller's stack may be small. pre: locked */
static char own_line[SPILL_LOG_MAX_LINE];

/* pre: locked */
static void tell_dropped(void)
{
	if (put_line(own_line, spill_log_max_line(&limit, own_line, sizeof(own_line)), SPILL_LOG_NOW))
		spill_log_max_told(&limit);
}

/* pre: locked */
static void tell_full(void)
{
	char text[256];

	put_line(own_line, spill_log_max_note(&limit, text, sizeof(text), own_line, sizeof(own_line)),
	         SPILL_LOG_NOW);
	if (stderr_all)
		spill_stderr_line(text);
}

void spill_log_write(const char *line, size_t length, enum spill_log_when when)
{
	struct log_hold hold;

	if (!lock_for_line(&hold))
		return;
	if (limit.pending)
		tell_dropped();
	put_line(line, length, when);
	unlock_log(&hold);
}

bool spill_log_offer(const char *line, size_t length, enum spill_log_when when)
{
	struct log_hold hold;
	bool fits;

	if (!lock_for_line(&hold))
		return true;
	fits = !limit.full && length <= limit.room;
	if (fits)
		put_line(line, length, when);
	else if (spill_log_max_fill(&limit))
		tell_full();
	unlock_log(&hold);
	return fits;
}

/* The files of callers, each once. Without scratch they wait for the next call. */
static void write_files(void)
{
	char *line = spill_scratch_take();
	const struct spill_caller_file *file;

	while (line && (file = spill_caller_next_file())) {
		const struct spill_record_file record = {
		    .time_us = spill_log_now_us(),
		    .name = file->name,
		    .path = file->path,
		    .build_id = file->build_id[0] ? file->build_id : NULL,
		};
		size_t length = spill_record_file(&record, line, SPILL_LOG_LINE);

		if (length) /* else a path of thousands of escapes: no line of ours is lost */
			spill_log_write(line, length, SPILL_LOG_SOON);
	}
	spill_scratch_give_back(line);
}

const char *spill_log_caller(const void *caller)
{
	const char *name;

	if (!caller)
		return ""; /* our own maintenance */
	if (!spill_log_active())
		return "?";
	name = spill_caller_name(caller);
	if (spill_caller_has_new_file())
		write_files();
	return name;
}

void spill_log_activity(uint64_t now_us)
{
	struct log_hold hold;

	if (now_us < atomic_load_explicit(&drain_due_us, memory_order_relaxed) || !lock_log(&hold))
		return;
	drain_queue(spill_log_now_us());
	unlock_log(&hold);
}

void spill_log_drop(enum spill_drop kind, const struct spill_sum *sum, const struct spill_totals *totals)
{
	struct log_hold hold;

	if (!spill_log_active() || !lock_log(&hold))
		return;
	spill_log_max_count(&limit, kind, sum, totals);
	unlock_log(&hold);
}

/* Takes the lock, but waits a limited time: its owner may never run again. */
static bool lock_soon(void)
{
	struct timespec until = spill_clock_in(LAST_WAIT_NS);

	return pthread_mutex_trylock(&lock) == 0 ||
	       pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

void spill_log_flush(void)
{
	struct log_hold hold = {.error = errno};

	if (!spill_log_active() || inside || getpid() != owner)
		return;
	inside = true;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &hold.cancel);
	if (lock_soon()) {
		inside = true; /* as in lock_log */
		drain_queue(spill_log_now_us());
		give_lock_back();
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

/* False if a signal handler forked inside the log: this thread has the lock already. */
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

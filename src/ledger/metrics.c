#include "metrics.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "clock.h"
#include "fd.h"
#include "ledger.h"
#include "log_file.h"
#include "log_path.h"
#include "metrics_text.h"
#include "note.h"
#include "process.h"
#include "signals.h"
#include "stderr.h"
#include "thread.h"

/* How long the end of the process may wait for a thread that is writing the file. */
#define LAST_WAIT_NS 100000000

_Atomic int spill_metrics_state;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_METRICS */
static _Atomic bool has_thread;
static _Atomic uint64_t due_ns; /* the earliest time of the next file */
static pid_t owner;             /* opened it; a bare clone() runs no fork handler of ours */

/* The lock guards the rest. */
static struct spill_metrics metrics;
static char path[SPILL_LOG_NAME];
static char draft[SPILL_LOG_NAME + 8]; /* the file beside it that is written first */
static bool told;                      /* that it cannot be written */
static struct output {
	struct spill_metrics_output output; /* first */
	struct spill_log_file file;
	int error;
	char buffer[4 * SPILL_METRICS_SAMPLE];
} out;

/* Blocks all signals, too: a handler that forks would wait for the lock. */
static void lock_metrics(sigset_t *before)
{
	spill_signals_block(before);
	pthread_mutex_lock(&lock);
}

static void unlock_metrics(const sigset_t *before)
{
	pthread_mutex_unlock(&lock);
	spill_signals_restore(before);
}

/* -- the file ---------------------------------------------------------------------------------- */

/* pre: locked */
static void tell_no_file(const char *problem)
{
	static char line[SPILL_LOG_NAME + 256]; /* too large for a small stack */
	struct spill_text text = spill_text_begin(line, sizeof(line));
	if (told)
		return;
	told = true;
	spill_text_format(&text, "log.metrics cannot be written: %s", problem);
	if (path[0])
		spill_text_format(&text, ": %s", path);
	spill_stderr_line(line);
	spill_note("metrics", line);
}

static void empty_output(struct spill_metrics_output *output)
{
	struct spill_text *text = &output->text;
	if (!out.error)
		spill_log_file_append(&out.file, text->buffer, text->length, &out.error);
	*text = spill_text_begin(text->buffer, text->size);
}

/* Opens the draft empty. Another process of the same path, which may rename it, has its lock. */
static const char *open_draft(void)
{
	const char *problem = spill_log_file_open(&out.file, draft);
	if (problem || (!ftruncate(out.file.fd, 0) && !fchmod(out.file.fd, 0644)))
		return problem;
	problem = spill_error_text(errno);
	unlink(draft); /* its name: we hold its lock */
	spill_log_file_close(&out.file);
	return problem;
}

/*
 * Writes the draft and renames it. A reader of a metrics file is another user mostly, so everybody
 * may read it. NULL, or a static text that names the problem.
 */
static const char *replace_file(void)
{
	const char *problem = open_draft();
	if (problem)
		return problem;
	out.error = 0;
	out.output =
	    (struct spill_metrics_output){spill_text_begin(out.buffer, sizeof(out.buffer)), empty_output};
	spill_metrics_compose(&metrics, &out.output);
	empty_output(&out.output);
	if (!out.error && spill_log_file_look(&out.file) >= SPILL_LOG_FILE_LOST)
		out.error = EBADF;
	if (!out.error && rename(draft, path))
		out.error = errno;
	if (out.error)
		unlink(draft); /* its name: we hold its lock */
	spill_log_file_close(&out.file);
	return out.error ? spill_error_text(out.error) : NULL;
}

/* False: another thread holds the ledger, or another process writes the same path. pre: locked */
static bool try_to_write(void)
{
	struct spill_signal_guard guard;
	if (!spill_ledger_device_totals_now(metrics.totals, metrics.devices))
		return false;
	spill_signal_guard_enter(&guard);
	const char *problem = replace_file();
	spill_signal_guard_leave(&guard);
	if (problem && problem != spill_log_file_taken)
		tell_no_file(problem);
	return problem != spill_log_file_taken;
}

/* pre: locked */
static void write_file(bool running)
{
	if (owner != getpid() || atomic_load(&spill_metrics_state) == SPILL_METRICS_OFF)
		return;
	atomic_store(&spill_metrics_state, SPILL_METRICS_WRITTEN);
	atomic_store(&due_ns, spill_clock_ns() + SPILL_METRICS_PERIOD_NS);
	metrics.running = running;
	if (!try_to_write())
		atomic_store(&spill_metrics_state, SPILL_METRICS_CHANGED); /* the next file has them */
}

/* -- when -------------------------------------------------------------------------------------- */

static bool is_changed(void)
{
	return atomic_load(&spill_metrics_state) == SPILL_METRICS_CHANGED;
}

static bool take_thread(void)
{
	bool none = false;
	return atomic_compare_exchange_strong(&has_thread, &none, true);
}

static void write_locked(void)
{
	sigset_t before;
	lock_metrics(&before);
	write_file(true);
	unlock_metrics(&before);
}

/* Ends when there was no change for a period. One that comes while it ends is not lost. */
static void *metrics_thread(void *unused)
{
	pthread_setname_np(pthread_self(), "spill-metrics");
	do {
		while (is_changed()) {
			uint64_t now = spill_clock_ns(), due = atomic_load(&due_ns);
			if (now < due)
				spill_clock_sleep(due - now);
			write_locked();
			spill_clock_sleep(SPILL_METRICS_PERIOD_NS);
		}
		atomic_store(&has_thread, false);
	} while (is_changed() && take_thread());
	return unused;
}

void spill_metrics_start(void)
{
	pthread_t thread;
	int error = errno;
	if (atomic_load(&has_thread) || owner != getpid() || !take_thread())
		return;
	if (spill_thread_start(&thread, metrics_thread)) {
		pthread_detach(thread);
	} else {
		if (spill_clock_ns() >= atomic_load(&due_ns))
			write_locked();
		atomic_store(&has_thread, false);
	}
	errno = error;
}

/* NULL, or a text that names the problem. No folder is created: its reader must be able to enter. */
static const char *find_path(const struct spill_policy *policy)
{
	static struct spill_log_path found; /* too large for a small stack */
	spill_log_path_find(&found, policy->log_metrics, metrics.program, SPILL_METRICS_SUFFIX);
	strcpy(path, found.path);
	snprintf(draft, sizeof(draft), "%s.tmp", path);
	return found.problem;
}

static void begin(const struct spill_policy *policy, const struct spill_log_start *start)
{
	spill_program_name(metrics.program, sizeof(metrics.program));
	metrics.mode = policy->mode == SPILL_MODE_OBSERVE ? "observe" : "spill";
	metrics.backend = start->backend;
	metrics.pid = (uint64_t)getpid();
	metrics.start_us = spill_clock_wall_us();
	metrics.devices = spill_live_page_devices(metrics.device, policy, start);
	const char *problem = find_path(policy);
	if (problem) {
		tell_no_file(problem);
		return;
	}
	owner = getpid();
	atomic_store(&due_ns, 0);
	atomic_store(&spill_metrics_state, SPILL_METRICS_CHANGED);
}

void spill_metrics_open(const struct spill_policy *policy, const struct spill_log_start *start)
{
	if (!policy->log_metrics[0] || strcmp(policy->log_metrics, "off") == 0 || getauxval(AT_SECURE))
		return;
	sigset_t before;
	lock_metrics(&before);
	begin(policy, start);
	unlock_metrics(&before);
	spill_metrics_look();
}

void spill_metrics_end(void)
{
	int error = errno;
	sigset_t before;
	struct timespec until = spill_clock_in(LAST_WAIT_NS);
	/* A vfork child shares this memory, but it is another process. */
	if (atomic_load(&spill_metrics_state) == SPILL_METRICS_OFF || owner != getpid())
		return;
	spill_signals_block(&before);
	if (pthread_mutex_trylock(&lock) == 0 ||
	    pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0) {
		write_file(false);
		atomic_store(&spill_metrics_state, SPILL_METRICS_OFF);
		pthread_mutex_unlock(&lock);
	}
	spill_signals_restore(&before);
	errno = error;
}

/* A forked child has no GPU memory and no thread. Its first GPU memory call begins its own file. */
static void forget_parent(void)
{
	atomic_store(&spill_metrics_state, SPILL_METRICS_OFF);
	atomic_store(&has_thread, false);
	told = false;
}

const struct spill_fork_lock spill_metrics_fork_lock = {&lock, forget_parent};

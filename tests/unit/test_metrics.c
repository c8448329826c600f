/*
 * The file of log.metrics: when it is written, what it leaves behind, and a process that gets no thread. Each test is a
 * process of its own. Its text is in test_metrics_text.c, readers and other programs are in tests/preload/test_metrics.py.
 */
#define SETUP make_folder
#define TEARDOWN remove_folder
#include "logtest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "fake_clock.h"
#include "fake_libc.h"
#include "ledger.h"
#include "log_file.h"
#include "metrics.h"
#include "note.h"

/* The library's calls come here: no thread is made, and the test is the thread. */
static unsigned threads_wanted;
static bool thread_starts;
static void *(*thread_body)(void *unused);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *data)
{
	threads_wanted++;
	thread_body = body;
	*thread = pthread_self();
	return thread_starts ? 0 : EAGAIN;
}

static unsigned detached;

int pthread_detach(pthread_t thread)
{
	detached++;
	return 0;
}

/* NOLINTBEGIN(bugprone-signal-handler,cert-sig30-c): what libspill's fork handlers do in a handler */
/* A signal arrives at this call, whose handler forks. */
static bool is_interrupted;
static unsigned handled;

static void fork_in_handler(int number)
{
	int error = pthread_mutex_trylock(spill_metrics_fork_lock.lock); /* fork would wait for ever */
	CHECK(!error);
	pthread_mutex_unlock(spill_metrics_fork_lock.lock);
	handled++;
}
/* NOLINTEND(bugprone-signal-handler,cert-sig30-c) */

char *getcwd(char *buffer, size_t size)
{
	if (is_interrupted)
		raise(SIGUSR1);
	return syscall(SYS_getcwd, buffer, size) > 0 ? buffer : NULL;
}

/* In place of note.c. */
static unsigned notes;
static char last_note[2 * SPILL_LOG_NAME];

void spill_note(const char *code, const char *text)
{
	CHECK(strcmp(code, "metrics") == 0 && strstr(text, "log.metrics cannot be written: ") == text);
	strcpy(last_note, text);
	notes++;
}

#define SECOND SPILL_METRICS_PERIOD_NS

static enum spill_mode mode = SPILL_MODE_SPILL;

static void open_metrics_at(const char *path)
{
	static const struct spill_log_device device = {.name = "One \"\\", .uuid = "GPU-1", .bytes = 1000};
	struct spill_policy policy;
	spill_policy_default(&policy);
	strcpy(policy.log_metrics, path);
	policy.mode = mode;
	fake_clock_use(SECOND);
	spill_metrics_open(
	    &policy, &(struct spill_log_start){.backend = "cuda", .devices = &device, .device_count = 1});
}

static void open_metrics(void)
{
	open_metrics_at(in_folder("x.prom"));
}

static void allocate(uint64_t ptr)
{
	struct spill_allocation allocation = {.ptr = ptr, .bytes = 10, .held = {.device = 10}};
	CHECK(spill_ledger_add(&allocation));
	spill_metrics_look();
}

/* The sample of the first device that begins so; -1: there is no file. */
static long long sample(const char *begin)
{
	size_t length;
	if (access(in_folder("x.prom"), F_OK))
		return -1;
	char *text = read_all(in_folder("x.prom"), &length), *line = strstr(text, begin);
	CHECK(line);
	line = strstr(line, "} ");
	CHECK(line);
	long long value = strtoll(line + 2, NULL, 10);
	free(text);
	return value;
}

static long long allocations(void)
{
	return sample("\nspill_allocations_total{");
}

/* -- when -------------------------------------------------------------------------------------- */

CHILD_TEST(the_file_names_the_mode)
{
	size_t length;
	mode = SPILL_MODE_OBSERVE;
	open_metrics();
	allocate(1);
	char *text = read_all(in_folder("x.prom"), &length);
	CHECK(strstr(text, "mode=\"observe\"") && !strstr(text, "mode=\"spill\""));
	free(text);
}

CHILD_TEST(without_a_thread_calls_write_it_once_a_second)
{
	open_metrics();
	CHECK(allocations() == 0);
	allocate(1);
	CHECK(allocations() == 0); /* too soon */
	fake_clock.ns += SECOND;
	spill_metrics_look();
	CHECK(allocations() == 1);
	spill_metrics_look();
	CHECK(threads_wanted == 6); /* with both kinds of stack; not without a change */
	allocate(2);
	spill_metrics_end();
	CHECK(allocations() == 2 && sample("\nspill_process_running{") == 0);
	allocate(3);
	fake_clock.ns += 2 * SECOND;
	allocate(4);
	CHECK(allocations() == 2); /* that was the last one */
	CHECK(!notes && !detached);
}

/* The file has the figures a second later if they cannot be read, or written, when they are due. */
CHILD_TEST(figures_that_came_at_a_bad_moment_are_not_lost)
{
	struct spill_log_file draft = {.fd = -1};
	open_metrics();
	allocate(1);
	fake_clock.ns += SECOND;
	pthread_mutex_lock(spill_ledger_fork_lock.lock);
	spill_metrics_look();
	pthread_mutex_unlock(spill_ledger_fork_lock.lock);
	CHECK(allocations() == 0);
	fake_clock.ns += SECOND;
	CHECK(!spill_log_file_open(&draft, in_folder("x.prom.tmp"))); /* as another process would */
	spill_metrics_look();
	spill_log_file_close(&draft);
	CHECK(allocations() == 0);
	fake_clock.ns += SECOND;
	spill_metrics_look();
	CHECK(allocations() == 1);
	CHECK(!notes);
}

static unsigned open_descriptors(void)
{
	unsigned count = 0;
	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* One allocation is to be told, and the first of these calls fails. That leaves no draft. */
static void tell_while_failing(enum fake_libc_call call, int error)
{
	unsigned before = open_descriptors();
	open_metrics();
	allocate(1);
	CHECK(open_descriptors() == before);
	fake_clock.ns += SECOND;
	fake_libc_fail(call, 1, 1, error);
	spill_metrics_look();
	CHECK(access(in_folder("x.prom.tmp"), F_OK) != 0);
	CHECK(open_descriptors() == before);
}

/* Its readers are other users. */
CHILD_TEST(a_file_that_cannot_be_made_readable_leaves_no_draft)
{
	tell_while_failing(FAKE_fchmod, EPERM);
	CHECK(allocations() == 0);
	fake_clock.ns += SECOND;
	allocate(2);
	spill_metrics_look();
	CHECK(allocations() == 2);
}

CHILD_TEST(a_short_lack_of_memory_leaves_no_draft)
{
	tell_while_failing(FAKE_fstat64, ENOMEM);
	CHECK(allocations() == 1);
}

/* It is said once, with the path. */
CHILD_TEST(a_path_that_is_a_folder)
{
	open_metrics();
	CHECK(!unlink(in_folder("x.prom")) && !mkdir(in_folder("x.prom"), 0700));
	errno = 0;
	for (unsigned i = 1; i <= 2; i++) {
		fake_clock.ns += SECOND;
		allocate(i);
		CHECK(notes == 1);
		CHECK(access(in_folder("x.prom.tmp"), F_OK) != 0);
	}
	const char *end = last_note + strlen(last_note) - strlen(in_folder("x.prom"));
	CHECK(strcmp(end, in_folder("x.prom")) == 0 && strncmp(end - 2, ": ", 2) == 0);
	rmdir(in_folder("x.prom"));
}

/* Errors of other calls are not taken for those of the file. */
CHILD_TEST(an_old_error)
{
	open_metrics();
	fake_clock.ns += SECOND;
	errno = EPERM;
	allocate(1);
	CHECK(errno == EPERM && !notes && allocations() == 1);
	CHECK(access(in_folder("x.prom.tmp"), F_OK) != 0);
	size_t length;
	char *text = read_all(in_folder("x.prom"), &length);
	CHECK(strstr(text, "{program=\"test_metrics\","));
	free(text);
}

/* The whole path is told, however long it is. */
CHILD_TEST(a_long_path_that_there_is_not)
{
	char path[SPILL_PATH_MAX - 100];
	memset(path, 'a', sizeof(path));
	for (size_t i = 0; i < sizeof(path); i += 100)
		path[i] = '/';
	strcpy(path + sizeof(path) - sizeof("/x.prom"), "/x.prom");
	open_metrics_at(path);
	fake_clock.ns += SECOND;
	spill_metrics_look();
	CHECK(notes == 1);
	CHECK(strcmp(last_note + strlen(last_note) - strlen(path), path) == 0);
}

/* Where no path can be found it is said, and nothing is written. */
CHILD_TEST(a_path_in_no_home)
{
	unsetenv("HOME");
	open_metrics_at("~/x.prom");
	CHECK(notes == 1 && strstr(last_note, "HOME"));
	CHECK(atomic_load(&spill_metrics_state) == SPILL_METRICS_OFF);
}

/* The kernel sends a signal, too, which ends a program. */
CHILD_TEST(a_limit_of_the_size_of_files)
{
	open_metrics();
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){10, 10});
	fake_clock.ns += SECOND;
	allocate(1);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
	CHECK(notes == 1 && access(in_folder("x.prom.tmp"), F_OK) != 0);
	CHECK(allocations() == 0);
}

static bool close_and_reuse(long arguments[6], long *result)
{
	int draft = find_descriptor(in_folder("x.prom.tmp"));
	int other = open("/dev/null", O_RDWR | O_CLOEXEC);
	dup2(other, draft);
	close(other);
	return false;
}

/* The program closes descriptors that are not its own, just before the draft is renamed. */
CHILD_TEST(a_draft_that_another_file_replaced)
{
	open_metrics();
	fake_clock.ns += SECOND;
	fake_libc[FAKE_fchmod].hook = close_and_reuse;
	allocate(1);
	fake_libc_reset();
	CHECK(notes == 1 && allocations() == 0);
	CHECK(access(in_folder("x.prom.tmp"), F_OK) != 0);
}

static unsigned files;

/* The program changes something while the thread sleeps, the first three times. */
static void change_while_it_sleeps(void)
{
	if (files < 3)
		allocate(100 + files);
	CHECK(allocations() == files); /* not in the file yet: it sleeps for the rest of the second */
	files++;
}

CHILD_TEST(the_thread_ends_after_a_second_without_a_change)
{
	thread_starts = true;
	open_metrics();
	CHECK(threads_wanted == 1 && allocations() == -1);
	fake_clock.on_sleep = change_while_it_sleeps;
	CHECK(detached == 1);
	thread_body(NULL);
	char name[16];
	CHECK(!pthread_getname_np(pthread_self(), name, sizeof(name)) && !strcmp(name, "spill-metrics"));
	CHECK(files == 4 && allocations() == 3);
	CHECK(threads_wanted == 1); /* one served all */
	CHECK(fake_clock.sleeps == 4 && fake_clock.slept_ns == 4 * SECOND);
	allocate(1);
	CHECK(threads_wanted == 2);
}

static void change_and_end(void)
{
	allocate(1);
	spill_metrics_end();
	CHECK(allocations() == 1);
}

CHILD_TEST(the_end_of_the_process_is_not_overwritten)
{
	thread_starts = true;
	open_metrics();
	fake_clock.on_sleep = change_and_end;
	thread_body(NULL);
	CHECK(sample("\nspill_process_running{") == 0);
}

static void wake_too_soon(void)
{
	if (fake_clock.sleeps == 1) {
		fake_clock.ns -= SECOND / 4; /* as a signal may */
		allocate(1);
	} else if (fake_clock.sleeps == 2) {
		CHECK(fake_clock.slept_ns == SECOND + SECOND / 4 && allocations() == 0);
		spill_metrics_end();
		allocate(2);
	}
}

/* The thread waits for the rest of the second, and writes nothing behind the end. */
CHILD_TEST(an_end_while_it_waits_for_the_rest)
{
	thread_starts = true;
	open_metrics();
	fake_clock.on_sleep = wake_too_soon;
	thread_body(NULL);
	CHECK(fake_clock.sleeps >= 2);
	CHECK(sample("\nspill_process_running{") == 0 && allocations() == 1);
}

/* Of a thread that never runs again: the end does not wait for it, nor write what may be half done. */
CHILD_TEST(an_end_while_another_thread_writes)
{
	open_metrics();
	pthread_mutex_lock(spill_metrics_fork_lock.lock);
	allocate(1);
	spill_metrics_end();
	CHECK(sample("\nspill_process_running{") == 1);
	pthread_mutex_unlock(spill_metrics_fork_lock.lock);
	spill_metrics_end();
	CHECK(sample("\nspill_process_running{") == 0);
	CHECK(pthread_mutex_trylock(spill_metrics_fork_lock.lock) == 0);
	pthread_mutex_unlock(spill_metrics_fork_lock.lock);
}

static bool send_signal(long arguments[6], long *result)
{
	raise(SIGUSR1);
	return false;
}

CHILD_TEST(a_signal_handler_may_fork_while_the_file_ends)
{
	open_metrics();
	signal(SIGUSR1, fork_in_handler);
	fake_libc[FAKE_fchmod].hook = send_signal;
	spill_metrics_end();
	fake_libc_reset();
	CHECK(handled == 1 && sample("\nspill_process_running{") == 0);
}

static void end_in_a_vfork_child(void)
{
	pid_t child = vfork();
	if (child == 0) {
		spill_metrics_end(); // NOLINT(clang-analyzer-unix.Vfork): it is tested that this does nothing
		syscall_exit(0);
	}
	CHECK(waitpid(child, NULL, 0) == child);
}

CHILD_TEST(the_end_of_a_vfork_child_is_not_ours)
{
	open_metrics();
	end_in_a_vfork_child();
	CHECK(sample("\nspill_process_running{") == 1);
	fake_clock.ns += SECOND;
	allocate(1);
	CHECK(allocations() == 1);
}

static void become_a_child(void)
{
	spill_fork_lock_take(&spill_metrics_fork_lock);
	spill_fork_lock_release(&spill_metrics_fork_lock, true);
}

/* Its parent had a thread, which the child has not: it starts its own, for its own file. */
CHILD_TEST(a_child_begins_anew)
{
	thread_starts = true;
	open_metrics();
	allocate(1);
	CHECK(threads_wanted == 1 && allocations() == -1);
	become_a_child();
	fake_clock.ns += SECOND;
	allocate(2);
	CHECK(threads_wanted == 1); /* nothing is to be told before the child begins */
	CHECK(atomic_load(&spill_metrics_state) == SPILL_METRICS_OFF);
	open_metrics();
	CHECK(threads_wanted == 2);
}

/* Each process says once that its file cannot be written. */
CHILD_TEST(a_child_says_itself_what_is_wrong)
{
	char said[1024] = "";
	int heard = open(in_folder("stderr"), O_RDWR | O_CREAT | O_APPEND, 0600);
	CHECK(dup2(heard, STDERR_FILENO) == STDERR_FILENO);
	spill_stderr_remember();
	for (unsigned process = 1; process <= 2; process++) {
		const char *at = said;
		unsigned lines = 0;
		for (unsigned file = 0; file < 2; file++)
			open_metrics_at("none/x.prom");
		CHECK(pread(heard, said, sizeof(said) - 1, 0) > 0);
		while ((at = strchr(at, '\n'))) {
			at++;
			lines++;
		}
		CHECK(lines == process && notes == process);
		become_a_child();
	}
}

CHILD_TEST(a_signal_handler_may_fork_while_the_file_begins)
{
	signal(SIGUSR1, fork_in_handler);
	CHECK(!chdir(folder));
	is_interrupted = true;
	open_metrics_at("x.prom");
	CHECK(handled == 1 && allocations() == 0);
}

CHILD_TEST(no_file_without_the_option)
{
	struct spill_policy policy;
	spill_policy_default(&policy);
	spill_metrics_open(&policy, &(struct spill_log_start){.backend = "cuda"});
	allocate(1);
	spill_metrics_end();
	CHECK(threads_wanted == 0);
}

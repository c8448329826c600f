/*
 * The ends of a process that no destructor sees. This program exports the same names as libspill.so does, so that
 * libc's are behind ours here as they are there.
 */
#include "fake_libc.h"
#include "logtest.h"

#include <assert.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "libc_symbol.h"
#include "runtime.h"

/* The totals are the engine's; that they were asked for is what counts here. */
void spill_runtime_exit(const char *how)
{
	char line[256];
	size_t length = spill_record_note(0, 1, "totals", how, line, sizeof(line));

	spill_log_write(line, length, SPILL_LOG_SOON);
}

static bool with_log;

bool spill_runtime_started(void)
{
	return with_log;
}

/* The kernel ends a process without libc's knowledge only if libc has no function for it. */
static bool end_with_99(long arguments[6], long *result)
{
	if (arguments[0] == SYS_exit_group)
		arguments[1] = 99;
	return false;
}

static void before(void)
{
	static const struct rlimit no_core = {0, 0};
	char line[256];

	setrlimit(RLIMIT_CORE, &no_core);
	close(STDERR_FILENO); /* libc's assertion message is not for the test's reader */
	fake_libc[FAKE_syscall].hook = end_with_99;
	if (!with_log)
		return;
	open_log_at(in_folder("log"));
	spill_log_write(line, test_line(line, sizeof(line), 0, 1), SPILL_LOG_SOON);
}

static void end_by_abort(void)
{
	before();
	abort();
}

static void end_by_assertion(void)
{
	before();
	assert(!"a failed assertion");
}

static void end_by__exit(void)
{
	before();
	_exit(3);
}

static void end_by__Exit(void)
{
	before();
	_Exit(4);
}

static void end_by_quick_exit(void)
{
	before();
	quick_exit(6);
}

static void end_by_exit(void)
{
	before();
	exit(5);
}

static void end_by_handler(void)
{
	abort();
}

/* abort() in the middle of our own write: from a signal handler, or where malloc finds its heap broken. */
static void (*_Atomic in_write)(void);

static bool action_in_write(long arguments[6], long *result)
{
	void (*action)(void) = atomic_exchange(&in_write, NULL);

	if (action)
		action();
	return false;
}

static void end_inside_a_write(void)
{
	before();
	in_write = end_by_handler;
	fake_libc[FAKE_write].hook = action_in_write;
	spill_log_flush();
}

/* The vfork child shares our memory: it must neither write nor take what waits. */
static void vfork_and_exit(void)
{
	struct lines lines;
	int status;
	pid_t pid;

	before();
	pid = vfork();
	if (pid == 0)
		_exit(7);
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 7);
	lines = read_lines(in_folder("log"));
	CHECK(lines.count == 1);
	spill_log_flush();
	lines = read_lines(in_folder("log"));
	CHECK(lines.count == 2);
	fake_libc_reset();
	syscall_exit(0);
}

/* The name of the call is that of the totals. */
static void ends(void (*body)(void), const char *how, int signal_number, int status)
{
	for (int log = 0; log < 2; log++) {
		unlink(in_folder("log"));
		with_log = log;
		int ended = child_status(body);
		if (signal_number)
			assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == signal_number);
		else
			assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == status);
		if (!log) {
			assert_int_not_equal(access(in_folder("log"), F_OK), 0);
			continue;
		}
		struct lines lines = read_lines(in_folder("log"));
		assert_int_equal(count_lines(&lines, "text", "1"), 1);
		assert_int_equal(count_lines(&lines, "code", "totals"), 1);
		assert_string_equal(text_of(lines.at[lines.count - 1], "text"), how);
	}
}

TEST(abort_flushes)
{
	ends(end_by_abort, "abort", SIGABRT, 0);
}

TEST(a_failed_assertion_flushes)
{
	ends(end_by_assertion, "assert", SIGABRT, 0);
}

TEST(underscore_exit_flushes)
{
	ends(end_by__exit, "_exit", 0, 3);
	ends(end_by__Exit, "_Exit", 0, 4);
	ends(end_by_quick_exit, "quick_exit", 0, 6);
}

TEST(exit_asks_for_the_totals)
{
	ends(end_by_exit, "exit", 0, 5);
}

static void assert_nothing(void)
{
	assert(!"a failed assertion");
}

static void exit_with_3(void)
{
	_exit(3);
}

static void exit_with_4(void)
{
	_Exit(4);
}

static const struct early_end {
	const char *name;
	void (*end)(void);
	int status; /* without libc's functions */
	int signal; /* by these; 0: the status */
} early_ends[] = {{"abort", abort, 134, SIGABRT},
                  {"assert", assert_nothing, 134, SIGABRT},
                  {"_exit", exit_with_3, 3, 0},
                  {"_Exit", exit_with_4, 4, 0}};
#define EARLY_ENDS (sizeof(early_ends) / sizeof(early_ends[0]))

/* A constructor that runs before those of process.c. Each library of the program may have one. */
__attribute__((constructor(101))) static void end_early(void)
{
	const char *how = getenv("TEST_ENDS_EARLY");
	for (unsigned i = 0; how && i < EARLY_ENDS; i++)
		if (!strcmp(early_ends[i].name, how))
			early_ends[i].end();
}

static const char *early_end;
static bool without_libc;

static void run_that_ends_early(void)
{
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	close(STDERR_FILENO);
	setenv("TEST_ENDS_EARLY", early_end, 1);
	if (without_libc)
		setenv("TEST_WITHOUT_LIBC", "1", 1);
	execl("/proc/self/exe", "test_process", NULL);
}

/* In place of libc_symbol.c, from the loading on. This is the program, so the next ones are libc's. */
void *spill_libc_symbol(const char *name)
{
	return getenv("TEST_WITHOUT_LIBC") ? NULL : dlsym(RTLD_NEXT, name);
}

TEST(an_end_before_all_else_is_libcs)
{
	without_libc = false;
	for (unsigned i = 0; i < EARLY_ENDS; i++) {
		early_end = early_ends[i].name;
		int ended = child_status(run_that_ends_early);
		if (early_ends[i].signal)
			assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == early_ends[i].signal);
		else
			assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == early_ends[i].status);
	}
}

TEST(without_libcs_functions_the_kernel_ends_it)
{
	without_libc = true;
	for (unsigned i = 0; i < EARLY_ENDS; i++) {
		early_end = early_ends[i].name;
		int ended = child_status(run_that_ends_early);
		assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == early_ends[i].status);
	}
}

TEST(abort_in_the_middle_of_us_does_not_hang)
{
	with_log = true;
	int ended = child_status(end_inside_a_write);
	assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
}

TEST(a_vfork_child_leaves_the_log_alone)
{
	unlink(in_folder("log"));
	with_log = true;
	assert_int_equal(child_status(vfork_and_exit), 0);
}

int main(void)
{
	return run_unit_tests(make_folder, remove_folder);
}

/*
 * Ends of the process. What the log still holds is written before the program aborts, fails an assertion (which
 * does not pass through an interposed abort) or leaves by _exit; then libc does what it always does. In a process
 * that made no GPU memory call there is no log and these only forward.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libc_symbol.h"
#include "log.h"
#include "runtime.h"

#define EXPORTED __attribute__((visibility("default"), noreturn))

typedef void abort_fn(void);
typedef void exit_fn(int status);
typedef void assert_fail_fn(const char *assertion, const char *file, unsigned line, const char *function);

static abort_fn *real_abort;
static exit_fn *real__exit, *real__Exit;
static assert_fail_fn *real_assert_fail;

/* glibc's header declares these with attributes of its own; -Wmissing-prototypes wants one for this. */
EXPORTED void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function);

/*
 * At load, because a look-up takes the loader's lock, and _exit may be called in a signal handler or between vfork
 * and exec. A call that comes before (another library's constructor) looks up for itself.
 */
__attribute__((constructor)) static void find_real_functions(void)
{
	real_abort = (abort_fn *)spill_libc_symbol("abort");
	real__exit = (exit_fn *)spill_libc_symbol("_exit");
	real__Exit = (exit_fn *)spill_libc_symbol("_Exit");
	real_assert_fail = (assert_fail_fn *)spill_libc_symbol("__assert_fail");
}

/* It runs no destructors, and libc leaves by an _exit that is not ours. */
static void close_log(const char *how)
{
	if (spill_log_active() && !spill_log_ours())
		return;
	spill_runtime_exit(how);
	spill_log_flush();
}

static void at_quick(void)
{
	close_log("quick_exit");
}

__attribute__((constructor)) static void before_quick_exit(void)
{
	(void)at_quick_exit(
	    at_quick); /* no room left in libc's list: quick_exit then leaves the last lines out */
}

static void before_end(const char *how, const void *found)
{
	close_log(how);
	if (!found)
		find_real_functions();
}

/* Not reached with any libc that has the function; these never return. */
static __attribute__((noreturn)) void end_without_libc(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORTED void abort(void)
{
	before_end("abort", (const void *)real_abort);
	if (real_abort)
		real_abort();
	end_without_libc(134);
}

EXPORTED void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
	before_end("assert", (const void *)real_assert_fail);
	if (real_assert_fail)
		real_assert_fail(assertion, file, line, function);
	end_without_libc(134);
}

EXPORTED void _exit(int status)
{
	before_end("_exit", (const void *)real__exit);
	if (real__exit)
		real__exit(status);
	end_without_libc(status);
}

EXPORTED void _Exit(int status)
{
	before_end("_Exit", (const void *)real__Exit);
	if (real__Exit)
		real__Exit(status);
	end_without_libc(status);
}

/* Other libraries' destructors may still free memory after ours: their lines follow the totals, each at once. */
__attribute__((destructor)) static void at_exit(void)
{
	spill_runtime_exit("exit");
	spill_log_at_exit();
}

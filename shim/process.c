/*
 * The end of the process. abort, __assert_fail, _exit and _Exit write the rest of the log, then
 * call libc. A failed assertion does not pass through an interposed abort, so it has its own
 * function. Without a GPU memory call there is no log, and these only forward.
 */
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "at_start.h"
#include "libc_symbol.h"
#include "log.h"
#include "runtime.h"

#define EXPORTED __attribute__((visibility("default"), noreturn))

typedef void abort_fn(void);
typedef void exit_fn(int status);
typedef void assert_fail_fn(const char *assertion, const char *file, unsigned line, const char *function);

SPILL_AT_START_DATA static abort_fn *real_abort;
SPILL_AT_START_DATA static exit_fn *real__exit, *real__Exit;
SPILL_AT_START_DATA static assert_fail_fn *real_assert_fail;

/* For -Wmissing-prototypes: glibc declares it with attributes of its own. */
EXPORTED void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function);

/* At load, because a look-up takes a lock, and a signal handler or vfork child may call _exit. */
__attribute__((constructor)) static void find_real_functions(void)
{
	real_abort = (abort_fn *)spill_libc_symbol("abort");
	real__exit = (exit_fn *)spill_libc_symbol("_exit");
	real__Exit = (exit_fn *)spill_libc_symbol("_Exit");
	real_assert_fail = (assert_fail_fn *)spill_libc_symbol("__assert_fail");
}

/* quick_exit runs no destructors, and libc leaves it by an _exit that is not ours. */
static void close_log(const char *how)
{
	if (spill_log_active() && !spill_log_ours())
		return;
	spill_runtime_exit(how);
	spill_log_flush();
}

static void close_log_at_quick_exit(void)
{
	close_log("quick_exit");
}

__attribute__((constructor)) static void register_quick_exit(void)
{
	(void)at_quick_exit(
	    close_log_at_quick_exit); /* if libc's list is full, quick_exit loses the last lines */
}

static void write_log_before_end(const char *how, const void *found)
{
	close_log(how);
	if (!found)
		find_real_functions();
}

/* libc's functions never return, and every libc has them. */
static __attribute__((noreturn)) void end_without_libc(int status)
{
	for (;;)
		syscall(SYS_exit_group, status);
}

EXPORTED void abort(void)
{
	write_log_before_end("abort", (const void *)real_abort);
	if (real_abort)
		real_abort();
	end_without_libc(134);
}

EXPORTED void __assert_fail(const char *assertion, const char *file, unsigned line, const char *function)
{
	write_log_before_end("assert", (const void *)real_assert_fail);
	if (real_assert_fail)
		real_assert_fail(assertion, file, line, function);
	end_without_libc(134);
}

EXPORTED void _exit(int status)
{
	write_log_before_end("_exit", (const void *)real__exit);
	if (real__exit)
		real__exit(status);
	end_without_libc(status);
}

EXPORTED void _Exit(int status)
{
	write_log_before_end("_Exit", (const void *)real__Exit);
	if (real__Exit)
		real__Exit(status);
	end_without_libc(status);
}

/* Other libraries' destructors may free memory later. Their lines are written at once. */
__attribute__((destructor)) static void close_log_at_exit(void)
{
	if (!spill_runtime_started())
		return;
	spill_runtime_exit("exit");
	spill_log_at_exit();
}

/* In unit tests of a covered build (covered_cc): a process that ends by _exit notes its lines, too. */
#include <gcov.h>
#include <signal.h>

void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
void covered_note(void);

/* The parent of a child by vfork notes its own lines later, so they begin anew. */
void covered_note(void)
{
	signal(SIGXFSZ, SIG_IGN); /* a test of a limit of no bytes */
	__gcov_dump();
	__gcov_reset();
}

void __wrap__exit(int status)
{
	covered_note();
	__real__exit(status);
}

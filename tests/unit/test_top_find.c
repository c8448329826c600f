/* How spill top finds pages: in a folder like /proc, where each call that opens something may answer as it wants. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "top.h"

static char proc[] = "/tmp/spill-find-XXXXXX";
static enum cli_top_page kinds[4]; /* of the pages that are opened, in turn */
static int errors[4];              /* instead of them, and of the folder of descriptors */
static unsigned opened;
static int folder_error;
static unsigned own_pid;     /* in the pages */
static const char *as_first; /* this is opened as descriptor 0 */

/* -- in place of page.c and of the kernel ---------------------------------------------------------- */

enum cli_top_page cli_top_page(int fd, struct cli_top_process *process)
{
	*process = (struct cli_top_process){.dev = 1, .ino = 2, .head = {.pid = own_pid}};
	return kinds[opened - 1];
}

int fake_openat(int folder, const char *name, int flags, ...) __asm__("openat64");

int fake_openat(int folder, const char *name, int flags, ...)
{
	bool is_page = flags & O_NONBLOCK;
	int fd;

	assert_true(flags & O_CLOEXEC);
	if (is_page && errors[opened++]) {
		errno = errors[opened - 1];
		return -1;
	}
	if (folder_error && !strcmp(name, "fd")) {
		errno = folder_error;
		return -1;
	}
	fd = is_page ? (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDONLY | O_CLOEXEC)
	             : (int)syscall(SYS_openat, folder, name, flags);
	if (fd <= 0 || !as_first || strcmp(name, as_first) != 0)
		return fd;
	dup3(fd, 0, O_CLOEXEC);
	close(fd);
	return 0;
}

/* -- the frame ------------------------------------------------------------------------------------- */

#define PAGE "/memfd:" SPILL_LIVE_PAGE_NAME " (deleted)"

static void shell(const char *format, ...)
{
	char command[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	assert_int_equal(system(command), 0);
}

/* A process that began at this time, with links to what it has open. */
static void add_process(const char *pid, unsigned ticks, const char *one, const char *other)
{
	shell("cd %s && mkdir -p %s/fd && cd %s && rm -f fd/* && echo '%s (a b) S%s %u 0' >stat && "
	      "printf 'Name:\\tx\\nNSpid:\\t%s\\t7\\n' >status && ln -s '%s' fd/3 && ln -s '%s' fd/4",
	      proc, pid, pid, pid, " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18", ticks, pid, one, other);
}

static int make_proc(void **state)
{
	assert_non_null(mkdtemp(proc));
	memset(errors, 0, sizeof(errors));
	for (unsigned i = 0; i < 4; i++)
		kinds[i] = CLI_TOP_READ;
	folder_error = 0;
	own_pid = 7;
	return 0;
}

static int remove_proc(void **state)
{
	shell("rm -r %s", proc);
	strcpy(strchr(proc, '\0') - 6, "XXXXXX");
	return 0;
}

/* So many processes are found, and so many pages are broken, are of another version, and folders closed. */
static void finds(size_t count, size_t broken, size_t other, size_t closed)
{
	struct cli_top_look look = {0};

	opened = 0;
	cli_top_look(&look, proc);
	assert_int_equal(look.count, count);
	assert_int_equal(look.broken, broken);
	assert_int_equal(look.other, other);
	assert_int_equal(look.closed, closed);
	assert_false(look.blind);
	assert_true(look.at_us > 0 && look.wall_us > 1000000000000000);
	if (count) {
		assert_int_equal(look.processes[0].uid, getuid());
		assert_int_equal(look.processes[0].ino, 2);
	}
	cli_top_free(&look);
	assert_int_equal(look.count, 0);
}

/* -- tests ----------------------------------------------------------------------------------------- */

/* A page that cannot be opened or read is not the last that is tried. One that has ended is no harm. */
TEST_WITH(the_first_page_that_is_its_own, make_proc, remove_proc)
{
	add_process("101", 5, PAGE, PAGE);
	finds(1, 0, 0, 0);
	assert_int_equal(opened, 1);
	errors[0] = ENOENT;
	finds(1, 0, 0, 0);
	assert_int_equal(opened, 2);
	errors[0] = EACCES;
	finds(1, 1, 0, 0);
	errors[1] = EIO;
	finds(0, 2, 0, 0);
	errors[0] = errors[1] = 0;
	kinds[0] = CLI_TOP_BROKEN;
	finds(1, 1, 0, 0);
	kinds[1] = CLI_TOP_OTHER;
	finds(0, 1, 1, 0);
	kinds[0] = kinds[1] = CLI_TOP_READ;
	own_pid = 101; /* a page of its parent's: in its own namespace it is 7 */
	finds(0, 0, 0, 0);
	assert_int_equal(opened, 2);
}

TEST_WITH(what_is_no_page_or_no_process, make_proc, remove_proc)
{
	add_process("101", 5, PAGE " ", "/memfd:" SPILL_LIVE_PAGE_NAME " (deleted");
	finds(0, 0, 0, 0);
	add_process("101", 5, "/memfe:" SPILL_LIVE_PAGE_NAME " (deleted)", PAGE "/x");
	finds(0, 0, 0, 0);
	assert_int_equal(opened, 0);
	add_process("self", 5, PAGE, PAGE);
	shell("touch %s/12", proc);
	finds(0, 0, 0, 0);
	shell("mkdir %s/13", proc); /* it has ended */
	finds(0, 0, 0, 0);
}

TEST_WITH(a_process_of_somebody_else, make_proc, remove_proc)
{
	static const int refusals[] = {EACCES, EPERM, ENOENT};

	add_process("101", 5, PAGE, PAGE);
	add_process("102", 5, PAGE, PAGE);
	for (unsigned i = 0; i < 3; i++) {
		folder_error = refusals[i];
		finds(0, 0, 0, i < 2 ? 2 : 0);
	}
}

/* Whichever is found first, the page is the older one's, or the first one's. */
TEST_WITH(two_with_the_same_page, make_proc, remove_proc)
{
	for (unsigned older = 101; older <= 102; older++) {
		struct cli_top_look look = {0};

		add_process("101", older == 101 ? 8 : 9, PAGE, PAGE);
		add_process("102", older == 102 ? 8 : 9, PAGE, PAGE);
		opened = 0;
		cli_top_look(&look, proc);
		assert_int_equal(look.count, 1);
		assert_int_equal(look.processes[0].pid, older);
		assert_int_equal(look.processes[0].start_ticks, 8);
		cli_top_free(&look);
	}
	finds(1, 0, 0, 0);
}

/* A program that was started without an input has that descriptor for the first file that it opens. */
TEST_WITH(a_descriptor_of_zero, make_proc, remove_proc)
{
	static const char *const names[] = {"101", "fd", "3", "4", "stat", "status"};
	int input = fcntl(0, F_DUPFD_CLOEXEC, 3);

	add_process("101", 5, PAGE, PAGE);
	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		as_first = names[i];
		finds(1, 0, 0, 0);
		if (*names[i] != '3' && *names[i] != '4') /* one of these two is opened */
			assert_int_equal(fcntl(0, F_GETFD), -1);
		dup2(input, 0);
	}
	as_first = NULL;
	close(input);
}

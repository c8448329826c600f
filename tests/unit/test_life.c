/* Is a log without an exit line still written? Processes and files of this machine answer. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life.h"
#include "small_file.h"

static char path[64], boot[64];
static struct utsname machine;
static struct spill_record_start start;
static int ended; /* the number of a process that has ended */
static int log_fd;

static int setup(void **state)
{
	strcpy(path, "/tmp/spill-unit-XXXXXX");
	close(mkstemp(path));
	log_fd = open(path, O_WRONLY | O_CLOEXEC); /* as libspill opens it */
	uname(&machine);
	spill_small_file_read("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	boot[strcspn(boot, "\n")] = '\0';
	ended = fork();
	if (!ended)
		_exit(0);
	waitpid(ended, NULL, 0);
	start = (struct spill_record_start){.host = machine.nodename, .boot = boot, .pid = ended};
	return log_fd < 0 ? -1 : 0;
}

static int teardown(void **state)
{
	close(log_fd);
	return unlink(path);
}

TEST(a_process_that_has_the_log_open_for_writing_runs)
{
	assert_int_equal(cli_life_of(path, getpid(), true), CLI_LIFE_RUNS);
	assert_int_equal(cli_life_of(path, ended, true), CLI_LIFE_GONE);
	assert_int_equal(cli_life_of(path, ended, false), CLI_LIFE_UNKNOWN);
	assert_int_equal(cli_life_of(path, 0, false), CLI_LIFE_UNKNOWN);
	close(log_fd);
	log_fd = open(path, O_RDONLY | O_CLOEXEC); /* it may read it, as this command does */
	assert_int_equal(cli_life_of(path, getpid(), false), CLI_LIFE_UNKNOWN);
}

TEST(a_process_of_this_machine_that_is_not_there_is_gone)
{
	assert_true(cli_writer_is_gone(&start, path));
	start.pid = getpid();
	assert_false(cli_writer_is_gone(&start, path));
	start.boot = "0123";
	assert_true(cli_writer_is_gone(&start, path));
	start.boot = NULL;
	assert_false(cli_writer_is_gone(&start, path));
}

TEST(a_process_of_another_machine_may_be_anywhere)
{
	start.host = "elsewhere";
	assert_false(cli_writer_is_gone(&start, path));
	start.boot = "0123";
	assert_false(cli_writer_is_gone(&start, path));
}

TEST(whoever_holds_the_lock_is_not_gone)
{
	assert_int_equal(flock(log_fd, LOCK_EX), 0);
	assert_false(cli_writer_is_gone(&start, path));
	assert_int_equal(flock(log_fd, LOCK_UN), 0);
	assert_true(cli_writer_is_gone(&start, path));
}

TEST(a_log_that_cannot_be_asked)
{
	assert_false(cli_writer_is_gone(&start, "/dev/null"));
}

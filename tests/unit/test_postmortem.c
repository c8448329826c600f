/* Whether an out of memory is told, and the sums of spills by reason: of this process, and of a forked child its own. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "policy.h"
#include "postmortem.h"
#include "process.h"
#include "runtime.h"
#include "stderr.h"

static struct spill_policy policy;

static char said[SPILL_STDERR_BLOCK]; /* on stderr, by the last summary */

static bool due(enum spill_log_stderr how)
{
	policy.log_stderr = how;
	return spill_postmortem_due(SPILL_REFUSED_BY_OTHER);
}

static const char *said_at_end(enum spill_log_stderr how, uint64_t away)
{
	const struct spill_totals totals = {.allocs = 3,
	                                    .spills = 3,
	                                    .spilled = {.host = 7 << 20},
	                                    .away = {.peak = away, .wanted = 9 << 20}};
	char room[SPILL_STDERR_BLOCK];
	policy.log_stderr = how;
	int usual = dup(STDERR_FILENO), heard = memfd_create("stderr", 0);
	dup2(heard, STDERR_FILENO);
	spill_stderr_remember();
	spill_postmortem_exit("exit", &totals, 1000000, room, sizeof(room));
	dup2(usual, STDERR_FILENO);
	ssize_t length = pread(heard, said, sizeof(said) - 1, 0);
	said[length > 0 ? length : 0] = '\0';
	close(heard);
	close(usual);
	return said;
}

static const char *summary(void)
{
	return said_at_end(SPILL_STDERR_ALL, 7 << 20);
}

/* Is the first line of this process due? */
static bool begins_loud(void)
{
	char line[256];
	struct spill_text text;
	policy.log_stderr = SPILL_STDERR_FIRST;
	return spill_loud_line_begin(&text, line, sizeof(line), 1 << 20, 1 << 20, 1 << 20);
}

static int in_child(void)
{
	if (!begins_loud() || begins_loud())
		return 3;
	if (strstr(summary(), "why: ") || !due(SPILL_STDERR_FIRST) || due(SPILL_STDERR_FIRST))
		return 1;
	spill_postmortem_count(SPILL_REASON_LIMIT, 5 << 20);
	return strstr(summary(), "5.00 MiB because of device.limit") &&
	               !strstr(said, "1.00 MiB because the card was full")
	           ? 0
	           : 2;
}

/* The first, and then each that is four times as much: three in a process. */
static unsigned lines_of_growth(void)
{
	char line[256];
	struct spill_text text;
	unsigned count = 0;
	int usual = dup(STDERR_FILENO), heard = memfd_create("stderr", 0);
	policy.log_stderr = SPILL_STDERR_FIRST;
	dup2(heard, STDERR_FILENO);
	spill_stderr_remember();
	for (uint64_t away = 1 << 20; away <= (uint64_t)1 << 40; away *= 4)
		if (spill_loud_line_begin(&text, line, sizeof(line), away, away, away))
			spill_loud_line_end(&text, line);
	dup2(usual, STDERR_FILENO);
	ssize_t length = pread(heard, said, sizeof(said) - 1, 0);
	said[length > 0 ? length : 0] = '\0';
	close(heard);
	close(usual);
	for (const char *at = said; (at = strchr(at, '\n')); at++)
		count++;
	return count;
}

/* A child is a process of its own. */
TEST(three_lines_in_each_process)
{
	spill_loud_line_reset();
	assert_int_equal(lines_of_growth(), SPILL_LOUD_LINES);
	assert_int_equal(lines_of_growth(), 0);
	spill_loud_line_reset();
	assert_int_equal(lines_of_growth(), SPILL_LOUD_LINES);
	assert_non_null(strstr(said, "1.00 MiB of 1.00 MiB"));
	assert_non_null(strstr(said, "now 4.00 MiB is off the card (1.00 MiB when last told)"));
	spill_loud_line_reset();
}

TEST(the_first_of_a_process)
{
	int status = -1;
	assert_false(due(SPILL_STDERR_OFF));
	assert_true(due(SPILL_STDERR_FIRST));
	assert_false(due(SPILL_STDERR_FIRST));
	assert_true(due(SPILL_STDERR_ALL));
	assert_true(begins_loud());
	assert_false(begins_loud());
	spill_postmortem_count(SPILL_REASON_OOM, 1 << 20);
	assert_non_null(strstr(summary(), "1.00 MiB because the card was full"));
	pid_t child = fork();
	if (child == 0)
		_exit(in_child());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(due(SPILL_STDERR_FIRST));
	assert_non_null(strstr(summary(), "1.00 MiB because the card was full"));
}

/* One line of a run that had memory off the device, whatever its log; nothing of others. */
TEST(the_line_at_the_end)
{
	assert_non_null(strstr(said_at_end(SPILL_STDERR_FIRST, 7 << 20),
	                       ": up to 7.00 MiB was in host memory; at most 9.00 MiB was wanted at once, "
	                       "and at most 0 B was on the card, at different moments; the time that "
	                       "kernels lost by reading it there is not known\n"));
	assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
	assert_non_null(strstr(said, program_invocation_short_name));
	assert_string_equal(said_at_end(SPILL_STDERR_FIRST, 0), "");
	assert_string_equal(said_at_end(SPILL_STDERR_OFF, 7 << 20), "");
}

/* A summary and an out of memory name the program. */
TEST(the_program_is_named)
{
	static const struct spill_record_oom oom = {
	    .api = "cudaMalloc", .caller = "libother.so", .refused_by = "driver", .bytes = 5 << 20};
	char buffer[SPILL_STDERR_BLOCK];
	int usual = dup(STDERR_FILENO), heard = memfd_create("stderr", 0);
	assert_non_null(strstr(summary(), program_invocation_short_name));
	dup2(heard, STDERR_FILENO);
	spill_stderr_remember();
	spill_postmortem_tell(&oom, buffer);
	dup2(usual, STDERR_FILENO);
	ssize_t length = pread(heard, said, sizeof(said) - 1, 0);
	said[length > 0 ? length : 0] = '\0';
	close(heard);
	close(usual);
	assert_non_null(strstr(said, "cudaMalloc"));
	assert_non_null(strstr(said, program_invocation_short_name));
}

/* What is done at a fork is asked for at the start. */
static int setup(void **state)
{
	static const struct spill_shim shim;
	clearenv();
	if (!spill_runtime_ready(&shim))
		return -1;
	spill_process_use_policy(&policy);
	return 0;
}

int main(void)
{
	return run_unit_tests(setup, NULL);
}

/* The contents of the file, and their time: start line, order, batching, threads, fork. */
#include "fake_clock.h"
#include "fake_libc.h"
#include "logtest.h"
#include "note.h"
#include "start_line.h"

#define MS 1000000ull

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

static void write_note(unsigned thread, unsigned number, enum spill_log_when when)
{
	char line[256];

	spill_log_write(line, test_line(line, sizeof(line), thread, number), when);
}

static unsigned notes_in(const char *path)
{
	struct lines lines = read_lines(path);

	return count_lines(&lines, "kind", "note");
}

static double number_of(const cJSON *line, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(line, key));
}

static void check_start(const cJSON *start)
{
	const cJSON *devices = cJSON_GetObjectItem(start, "devices"),
	            *policy = cJSON_GetObjectItem(start, "policy");
	struct tm tm = {0};
	const char *rest = strptime(text_of(start, "time"), "%Y-%m-%dT%H:%M:%S", &tm);
	struct timespec now;
	char host[256];

	clock_gettime(CLOCK_REALTIME, &now);
	CHECK(rest && rest[0] == '.' && strspn(rest + 1, "0123456789") == 6 && strcmp(rest + 7, "Z") == 0);
	CHECK(labs((long)(timegm(&tm) - now.tv_sec)) < 60);
	CHECK(gethostname(host, sizeof(host)) == 0 && strcmp(text_of(start, "host"), host) == 0);
	CHECK(number_of(start, "v") == 1 && number_of(start, "t") == 0);
	CHECK(number_of(start, "pid") == getpid() && number_of(start, "ppid") == getppid());
	CHECK(strlen(text_of(start, "boot")) == 36);
	CHECK(strcmp(text_of(start, "program"), "test_log") == 0);
	CHECK(strcmp(text_of(start, "version"), SPILL_VERSION) == 0);
	CHECK(strcmp(text_of(start, "backend"), "cuda") == 0 && number_of(start, "driver") == 13000);
	CHECK(cJSON_GetArraySize(devices) == 2 && cJSON_GetArraySize(policy) == 2);
	CHECK(strcmp(text_of(cJSON_GetArrayItem(devices, 0), "name"), "Device \"zero\"") == 0);
	CHECK(number_of(cJSON_GetArrayItem(devices, 0), "bytes") == 1073741824);
	CHECK(!cJSON_HasObjectItem(cJSON_GetArrayItem(devices, 1), "uuid"));
	CHECK(strcmp(text_of(cJSON_GetArrayItem(policy, 1), "name"), "oom.chain") == 0);
	CHECK(strcmp(text_of(cJSON_GetArrayItem(policy, 1), "source"), "/etc/spill/spill.conf:3") == 0);
	CHECK(strcmp(text_of(cJSON_GetObjectItem(start, "rank"), "RANK"), "3") == 0);
	CHECK(!cJSON_HasObjectItem(cJSON_GetObjectItem(start, "rank"), "SLURM_PROCID"));
}

CHILD_TEST(start_line_says_who_and_what)
{
	struct lines lines;

	setenv("RANK", "3", 1);
	unsetenv("SLURM_PROCID");
	CHECK(!spill_log_active() && spill_log_path()[0] == '\0');
	open_log_at(in_folder("start"));
	CHECK(spill_log_active() && strcmp(spill_log_path(), in_folder("start")) == 0);
	lines = read_lines(in_folder("start"));
	CHECK(lines.count == 1 && strcmp(text_of(lines.at[0], "kind"), "start") == 0);
	check_start(lines.at[0]);
}

static uint64_t wall_us;

static bool wall_clock(long arguments[6], long *result)
{
	if (arguments[0] != CLOCK_REALTIME)
		return false;
	*(struct timespec *)arguments[1] = (struct timespec){.tv_sec = (time_t)(wall_us / 1000000),
	                                                     .tv_nsec = (long)(wall_us % 1000000 * 1000)};
	*result = 0;
	return true;
}

/* Leap days of a year, of a century and of an era, the ends of days and months, and each digit. */
CHILD_TEST(the_start_lines_time_is_in_utc)
{
	static const struct {
		uint64_t seconds, us;
		const char *time;
	} cases[] = {
	    {0, 0, "1970-01-01T00:00:00.000000Z"},
	    {946684799, 999999, "1999-12-31T23:59:59.999999Z"},
	    {951782399, 123456, "2000-02-28T23:59:59.123456Z"},
	    {951782400, 1, "2000-02-29T00:00:00.000001Z"},
	    {951868800, 0, "2000-03-01T00:00:00.000000Z"},
	    {1709251199, 100000, "2024-02-29T23:59:59.100000Z"},
	    {1792281296, 20304, "2026-10-17T23:54:56.020304Z"},
	    {4107542399, 0, "2100-02-28T23:59:59.000000Z"},
	    {4107542400, 0, "2100-03-01T00:00:00.000000Z"},
	};

	fake_libc[FAKE_clock_gettime].hook = wall_clock;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char name[16];

		snprintf(name, sizeof(name), "time%u", i);
		wall_us = cases[i].seconds * 1000000 + cases[i].us;
		open_log_at(in_folder(name));
		struct lines lines = read_lines(in_folder(name));
		CHECK(lines.count == 1 && strcmp(text_of(lines.at[0], "time"), cases[i].time) == 0);
		spill_log_fork_prepare();
		spill_log_fork_child(); /* a child begins its own */
	}
	fake_libc[FAKE_clock_gettime].hook = NULL;
}

/* All that say which part of a job it is; of one that somebody made long, the beginning. */
CHILD_TEST(which_part_of_a_job_it_is)
{
	static const char *const names[] = {"RANK",
	                                    "OMPI_COMM_WORLD_RANK",
	                                    "PMIX_RANK",
	                                    "PMI_RANK",
	                                    "SLURM_PROCID",
	                                    "LOCAL_RANK",
	                                    "OMPI_COMM_WORLD_LOCAL_RANK",
	                                    "SLURM_LOCALID",
	                                    "WORLD_SIZE",
	                                    "SLURM_JOB_ID",
	                                    "PBS_JOBID",
	                                    "LSB_JOBID",
	                                    "TORCHELASTIC_RUN_ID",
	                                    "PMIX_NAMESPACE",
	                                    "JOB_COMPLETION_INDEX",
	                                    "SLURM_STEP_ID"};
	const unsigned count = sizeof(names) / sizeof(names[0]);
	char value[100];
	const cJSON *rank;

	for (unsigned i = 0; i < count; i++) {
		snprintf(value, sizeof(value), "%0*u", i == 3 ? 90 : 1, i);
		setenv(names[i], value, 1);
	}
	open_log_at(in_folder("ranks"));
	rank = cJSON_GetObjectItem(read_lines(in_folder("ranks")).at[0], "rank");
	CHECK(cJSON_GetArraySize(rank) == (int)count);
	for (unsigned i = 0; i < count; i++)
		CHECK(i == 3 ? strlen(text_of(rank, names[i])) == 64
		             : (unsigned)atoi(text_of(rank, names[i])) == i);
}

/* Run by the next test as a program of its own, whose arguments are in the log. */
static int as_program_with_secrets(const char *path)
{
	open_log_at(path);
	return spill_log_active() ? 0 : 1;
}

static void secrets_body(void)
{
	char *const arguments[] = {(char *)"test_log",
	                           (char *)"--open-log",
	                           (char *)in_folder("secrets"),
	                           (char *)"--api-key",
	                           (char *)"hunter2",
	                           (char *)"--hf-token=hunter2",
	                           (char *)"-m",
	                           (char *)"model.gguf",
	                           (char *)"--bad-\xFF",
	                           (char *)"",
	                           (char *)"--n-tokens",
	                           (char *)"128",
	                           (char *)"--url",
	                           (char *)"http://me:hunter2@host/",
	                           NULL};

	execv("/proc/self/exe", arguments);
	syscall_exit(1);
}

TEST(secrets_are_not_in_the_start_line)
{
	static const char *const shown[] = {"--api-key", "[redacted]", "--hf-token=[redacted]",
	                                    "-m",        "model.gguf", "--bad-\xEF\xBF\xBD",
	                                    "",          "--n-tokens", "128",
	                                    "--url",     "[redacted]"};
	size_t length;

	in_child(secrets_body);
	assert_null(strstr(read_all(in_folder("secrets"), &length), "hunter2"));
	struct lines lines = read_lines(in_folder("secrets"));
	const cJSON *arguments = cJSON_GetObjectItem(lines.at[0], "args");
	assert_int_equal(cJSON_GetArraySize(arguments), 14);
	for (int i = 0; i < 11; i++)
		assert_string_equal(cJSON_GetStringValue(cJSON_GetArrayItem(arguments, 3 + i)), shown[i]);
}

static void huge_body(void)
{
	enum { COUNT = 2000 };
	char *arguments[3 + COUNT + 1] = {(char *)"test_log", (char *)"--open-log",
	                                  (char *)in_folder("huge")};

	for (unsigned i = 0; i < COUNT; i++)
		arguments[3 + i] = (char *)"0123456789 0123456789 0123456789 0123456789 0123456789";
	execv("/proc/self/exe", arguments);
	syscall_exit(1);
}

TEST(more_arguments_than_we_keep_are_cut)
{
	in_child(huge_body);
	struct lines lines = read_lines(in_folder("huge"));
	const cJSON *arguments = cJSON_GetObjectItem(lines.at[0], "args");
	assert_true(cJSON_IsTrue(cJSON_GetObjectItem(lines.at[0], "cut")));
	assert_in_range(cJSON_GetArraySize(arguments), 1000, 1900);
	assert_int_equal(
	    strlen(cJSON_GetStringValue(cJSON_GetArrayItem(arguments, cJSON_GetArraySize(arguments) - 1))),
	    54);
}

/* The length of a start line whose options have values of so many bytes together. */
static size_t line_with(struct spill_start_line *line, size_t bytes)
{
	enum { COUNT = 800, MOST = 1400 };
	static struct spill_log_option options[COUNT];
	const struct spill_log_start start = {.backend = "cuda", .options = options, .option_count = COUNT};
	for (unsigned i = 0; i < COUNT; i++) {
		size_t length = bytes < MOST ? bytes : MOST;
		options[i] = (struct spill_log_option){.name = "x"};
		memset(options[i].value, 'x', length);
		bytes -= length;
	}
	assert_int_equal(bytes, 0);
	spill_start_compose(line, &start, "test_log");
	return line->length;
}

/* The line is there all the same, and says that they are left out. */
TEST(arguments_that_do_not_fit_into_the_line_are_left_out)
{
	struct spill_start_line line;
	size_t others = line_with(&line, 0), most = (1 << 20) - 64; /* without room for a later member */
	assert_non_null(strstr(line.text, "\"args\":["));
	spill_start_release(&line);
	assert_in_range(line_with(&line, most - others - 8), most - 16, most);
	assert_non_null(strstr(line.text, "],\"args\":["));
	spill_start_release(&line);
	assert_in_range(line_with(&line, most - others + 8), 1, most);
	assert_non_null(strstr(line.text, "],\"cut\":true}\n"));
	spill_start_release(&line);
}

static bool is_mapped(const char *at)
{
	unsigned char residency;
	return mincore((void *)at, 1, &residency) == 0;
}

/* A later piece of the run adds a member: the last page has room for it. */
TEST(only_the_pages_of_the_line_are_kept)
{
	struct spill_start_line line;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), others = line_with(&line, 0);
	spill_start_release(&line);
	for (size_t pages = 40; pages < 42; pages++)
		for (size_t over = 0; over < 2; over++) {
			line_with(&line, pages * page - 64 - others + over);
			char *end = (char *)line.pages + (pages + over) * page;
			assert_int_equal(line.length + 64, pages * page + over);
			assert_int_equal(line.pages_size, (pages + over) * page);
			assert_true(is_mapped(line.pages) && is_mapped(end - page) && !is_mapped(end));
			spill_start_continue(&line, UINT64_MAX);
			assert_true(line.length <= line.pages_size);
			spill_start_release(&line);
			assert_null(line.pages);
			assert_false(is_mapped(end - page));
		}
}

CHILD_TEST(routine_lines_wait_others_do_not)
{
	const char *path = in_folder("soon");

	open_log_at(path);
	write_note(0, 1, SPILL_LOG_SOON);
	CHECK(notes_in(path) == 0);
	fake_clock.ns += 99 * MS;
	write_note(0, 2, SPILL_LOG_SOON);
	CHECK(notes_in(path) == 0);
	fake_clock.ns += 1 * MS;
	write_note(0, 3, SPILL_LOG_SOON);
	CHECK(notes_in(path) == 3);
	write_note(0, 4, SPILL_LOG_SOON);
	spill_log_flush();
	CHECK(notes_in(path) == 4);
	write_note(0, 5, SPILL_LOG_SOON);
	write_note(0, 6, SPILL_LOG_NOW);
	CHECK(notes_in(path) == 6);
	write_note(0, 7, SPILL_LOG_SOON);
	spill_log_at_exit();
	CHECK(notes_in(path) == 7);
	write_note(0, 8, SPILL_LOG_SOON);
	CHECK(notes_in(path) == 8);
}

/* Calls without lines of their own: what waits is written no later than with lines. */
CHILD_TEST(activity_without_a_line_writes_what_waits)
{
	const char *path = in_folder("activity");

	open_log_at(path);
	spill_log_activity(spill_log_now_us());
	write_note(0, 1, SPILL_LOG_SOON);
	spill_log_activity(spill_log_now_us());
	CHECK(notes_in(path) == 0);
	fake_clock.ns += 99 * MS;
	spill_log_activity(spill_log_now_us());
	CHECK(notes_in(path) == 0);
	fake_clock.ns += 1 * MS;
	spill_log_activity(spill_log_now_us());
	CHECK(notes_in(path) == 1);
	write_note(0, 2, SPILL_LOG_SOON);
	spill_log_activity(spill_log_now_us());
	CHECK(notes_in(path) == 1);
}

CHILD_TEST(a_full_buffer_is_written)
{
	const char *path = in_folder("full");
	char line[256];
	size_t bytes = 0;

	open_log_at(path);
	for (unsigned i = 0; bytes <= 4096; i++) {
		size_t length = test_line(line, sizeof(line), 0, i);

		spill_log_write(line, length, SPILL_LOG_SOON);
		bytes += length;
	}
	CHECK(notes_in(path) > 30);
}

CHILD_TEST(a_line_longer_than_the_buffer_keeps_its_place)
{
	static char text[20000], line[sizeof(text) + 200];
	const char *path = in_folder("long");
	struct lines lines;

	memset(text, 'x', sizeof(text) - 1);
	open_log_at(path);
	write_note(0, 1, SPILL_LOG_SOON);
	spill_log_write(line, spill_record_note(0, 1, "0", text, line, sizeof(line)), SPILL_LOG_SOON);
	write_note(0, 3, SPILL_LOG_NOW);
	lines = read_lines(path);
	CHECK(lines.count == 4);
	CHECK(strcmp(text_of(lines.at[1], "text"), "1") == 0);
	CHECK(strlen(text_of(lines.at[2], "text")) == sizeof(text) - 1);
	CHECK(strcmp(text_of(lines.at[3], "text"), "3") == 0);
}

CHILD_TEST(a_line_that_was_never_made_is_counted)
{
	struct lines lines;

	open_log_at(in_folder("unfit"));
	spill_log_write("", 0, SPILL_LOG_NOW); /* what spill_record_… returns for a line that did not fit */
	lines = read_lines(in_folder("unfit"));
	CHECK(lines.count == 2 && count_lines(&lines, "code", "log-lost") == 1);
	CHECK(strcmp(text_of(lines.at[1], "text"),
	             "1 lines (0 bytes) could not be written: Message too long") == 0);
}

CHILD_TEST(a_second_run_appends)
{
	struct lines lines;

	open_log_at(in_folder("again"));
	write_note(0, 1, SPILL_LOG_NOW);
	spill_log_fork_prepare();
	spill_log_fork_child(); /* as a second process of the same number would find it */
	open_log_at(in_folder("again"));
	lines = read_lines(in_folder("again"));
	CHECK(lines.count == 3 && count_lines(&lines, "kind", "start") == 2);
}

enum { THREADS = 4, LINES = 10000 };

static void *write_many(void *argument)
{
	unsigned thread = (unsigned)(uintptr_t)argument;

	for (unsigned i = 0; i < LINES; i++) {
		errno = (int)i;
		write_note(thread, i, i % 100 == 0 ? SPILL_LOG_NOW : SPILL_LOG_SOON);
		CHECK(errno == (int)i);
	}
	return NULL;
}

CHILD_TEST(four_threads_lose_and_mix_nothing)
{
	pthread_t threads[THREADS];
	unsigned next[THREADS] = {0};
	struct lines lines;

	open_log_at(in_folder("threads"));
	for (uintptr_t i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, write_many, (void *)i) == 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	spill_log_flush();
	lines = read_lines(in_folder("threads"));
	CHECK(lines.count == 1 + THREADS * LINES);
	for (unsigned i = 1; i < lines.count; i++) {
		unsigned thread = (unsigned)atoi(text_of(lines.at[i], "code"));

		CHECK(thread < THREADS && (unsigned)atoi(text_of(lines.at[i], "text")) == next[thread]++);
	}
}

static void forked_child(const char *parents)
{
	char own[128];

	spill_log_fork_child();
	CHECK(!spill_log_active() && find_descriptor(parents) < 0);
	CHECK(spill_log_tid() == gettid());
	write_note(1, 1, SPILL_LOG_NOW); /* not open yet: goes nowhere */
	open_log_at(in_folder("fork-%p"));
	write_note(1, 2, SPILL_LOG_NOW);
	snprintf(own, sizeof(own), "fork-%d", getpid());
	CHECK(strcmp(spill_log_path(), in_folder(own)) == 0);
	struct lines lines = read_lines(in_folder(own));
	CHECK(lines.count == 2 && count_lines(&lines, "kind", "start") == 1 &&
	      count_lines(&lines, "text", "2") == 1);
	write_note(1, 3, SPILL_LOG_SOON); /* its parent was ending, it is not */
	CHECK(notes_in(in_folder(own)) == 1);
	syscall_exit(0);
}

CHILD_TEST(a_forked_child_has_its_own)
{
	char name[32], path[128];
	struct lines lines;
	int status;
	pid_t pid;

	open_log_at(in_folder("fork-%p"));
	snprintf(name, sizeof(name), "fork-%d", getpid());
	strcpy(path, in_folder(name));
	write_note(0, 1, SPILL_LOG_SOON);
	CHECK(spill_log_tid() == gettid());
	spill_log_at_exit();
	spill_log_fork_prepare();
	pid = fork();
	if (pid == 0)
		forked_child(path);
	spill_log_fork_parent();
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	write_note(0, 2, SPILL_LOG_NOW);
	lines = read_lines(path);
	CHECK(lines.count == 3 && count_lines(&lines, "text", "1") == 1);
}

static bool forked;

static void fork_in_handler(void)
{
	forked = true;
	spill_log_fork_prepare();
	spill_log_fork_child();
}

static uint64_t fork_within(void)
{
	if (!forked)
		fork_in_handler();
	return fake_clock.ns;
}

/* A signal handler forks while its thread writes a line, or waits for the lock. The child goes on behind that. */
CHILD_TEST(a_child_of_a_fork_within_the_log)
{
	static const struct spill_clock clock = {.now = fork_within};
	open_log_at(in_folder("within"));
	for (unsigned call = 0; call < 4; call++) {
		forked = false;
		if (call / 2)
			before_next_lock(fork_in_handler);
		else
			spill_clock_use(&clock);
		if (call % 2)
			spill_log_flush();
		else
			write_note(0, 1, SPILL_LOG_NOW);
		CHECK(forked && !spill_log_active());
		fake_clock_use(0);
		open_log_at(in_folder(call == 3 ? "child" : "within"));
	}
	write_note(0, 2, SPILL_LOG_NOW);
	struct lines lines = read_lines(in_folder("child"));
	CHECK(lines.count == 2 && count_lines(&lines, "text", "2") == 1);
}

/* What is asked of the log without its lock. */
CHILD_TEST(whose_it_is_and_what_it_tells)
{
	CHECK(!spill_log_ours() && spill_log_start_us() == 0);
	CHECK(strcmp(spill_log_caller(NULL), "") == 0);
	CHECK(strcmp(spill_log_caller((const void *)(uintptr_t)&whose_it_is_and_what_it_tells), "?") == 0);
	open_log_at(in_folder("ours"));
	fake_clock.ns += 7 * MS;
	CHECK(spill_log_ours() && spill_log_start_us() == 7000 && spill_log_now_us() == 7000);
	CHECK(strcmp(spill_log_caller(NULL), "") == 0);
	CHECK(
	    strstr(spill_log_caller((const void *)(uintptr_t)&whose_it_is_and_what_it_tells), "test_log+0x"));
	/* The file of a caller is told once. */
	spill_log_caller((const void *)(uintptr_t)&read_lines);
	spill_log_flush();
	struct lines lines = read_lines(in_folder("ours"));
	CHECK(lines.count == 2 && count_lines(&lines, "kind", "file") == 1);
	CHECK(strcmp(text_of(lines.at[1], "name"), "test_log") == 0 && number_of(lines.at[1], "t") == 0.007);
}

/* fork without libc: no atfork handler runs in the child. */
CHILD_TEST(a_bare_clone_writes_nothing_of_its_parents)
{
	struct lines lines;
	int status;
	pid_t pid;

	open_log_at(in_folder("bare"));
	write_note(0, 1, SPILL_LOG_SOON);
	pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (pid == 0) {
		bool ours = spill_log_ours();

		spill_log_flush();
		write_note(1, 1, SPILL_LOG_NOW);
		syscall_exit(ours || spill_log_active() ? 1 : 0);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	spill_log_flush();
	lines = read_lines(in_folder("bare"));
	CHECK(lines.count == 2);
}

/* Before the log is open and after it, and whoever says the same again. */
CHILD_TEST(each_note_is_in_the_log_once)
{
	const char *path = in_folder("notes");
	static const char *const texts[] = {"one", "two", "two more", "three"};
	struct lines lines;

	spill_note("a", "one");
	spill_note("a", "two");
	spill_note("a", "one");
	open_log_at(path);
	spill_note_flush();
	lines = read_lines(path);
	CHECK(lines.count == 1 + 2);
	spill_note("a", "two more");
	spill_note("a", "two");
	spill_note("b", "three");
	spill_note_flush();
	lines = read_lines(path);
	CHECK(lines.count == 1 + 4);
	for (unsigned i = 0; i < 4; i++) {
		CHECK(strcmp(text_of(lines.at[1 + i], "text"), texts[i]) == 0);
		CHECK(strcmp(text_of(lines.at[1 + i], "code"), i < 3 ? "a" : "b") == 0);
	}
}

/* Of a long text the beginning is in the log, and who says the same again is known by that. */
CHILD_TEST(a_long_note_is_cut)
{
	const char *path = in_folder("long-note");
	char text[600];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	open_log_at(path);
	spill_note("a", text);
	spill_note("a", text);
	text[511] = 'y'; /* behind what is kept */
	spill_note("a", text);
	CHECK(read_lines(path).count == 2 && strlen(text_of(read_lines(path).at[1], "text")) == 511);
	text[510] = 'y';
	spill_note("a", text);
	CHECK(read_lines(path).count == 3);
}

/* A program could give cause for any number of them. */
CHILD_TEST(notes_have_an_end)
{
	const char *path = in_folder("many-notes");
	struct lines lines;

	open_log_at(path);
	for (unsigned i = 0; i < 40; i++) {
		char text[16];

		snprintf(text, sizeof(text), "%u", i);
		spill_note("many", text);
	}
	lines = read_lines(path);
	CHECK(count_lines(&lines, "code", "many") == 32);
	CHECK(lines.count == 1 + 32 && strcmp(text_of(lines.at[32], "text"), "31") == 0);
}

CHILD_TEST(off_is_off)
{
	static struct spill_policy policy = {.log_level = SPILL_LOG_OFF};
	const struct spill_log_start start = {.backend = "hip"};

	strcpy(policy.log_path, in_folder("off"));
	spill_log_open(&policy, &start);
	CHECK(!spill_log_active() && access(in_folder("off"), F_OK) != 0);
	policy.log_level = SPILL_LOG_ALL;
	strcpy(policy.log_path, "off");
	spill_log_open(&policy, &start);
	CHECK(!spill_log_active() && access("off", F_OK) != 0);
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "--open-log") == 0)
		return as_program_with_secrets(argv[2]);
	fake_clock_use(1000000 * MS);
	return run_unit_tests(make_folder, remove_folder);
}

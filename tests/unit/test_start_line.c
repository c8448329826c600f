/* The members of the start line, one by one: devices, options, machine, ranks, arguments, and what a later piece adds. */
#include "fake_libc.h"
#define SETUP begin
#define TEARDOWN end
#include "logtest.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "process_ranks.h"
#include "start_line.h"

/* What is read in place of files of /proc. NULL: the file itself. */
static const char *boot_id, *arguments;
static size_t arguments_length;

static struct spill_start_line line;

static int file_with(const char *bytes, size_t length)
{
	int fd = memfd_create("file", 0);

	CHECK(fd >= 0 && write(fd, bytes, length) == (ssize_t)length && lseek(fd, 0, SEEK_SET) == 0);
	return fd;
}

static bool open_other(long of[6], long *result)
{
	const char *path = (const char *)of[0];

	if (boot_id && strcmp(path, "/proc/sys/kernel/random/boot_id") == 0)
		*result = file_with(boot_id, strlen(boot_id));
	else if (arguments && strcmp(path, "/proc/self/cmdline") == 0)
		*result = file_with(arguments, arguments_length);
	else
		return false;
	return true;
}

static int begin(void **state)
{
	(void)state;
	boot_id = arguments = NULL;
	for (unsigned i = 0; i < SPILL_RANKS_COUNT; i++)
		unsetenv(spill_rank_variable((enum spill_rank)i));
	fake_libc[FAKE_open64].hook = open_other;
	return 0;
}

static int end(void **state)
{
	(void)state;
	spill_start_release(&line);
	fake_libc_reset();
	return 0;
}

/* The line with these devices and options, parsed. Free it. */
static cJSON *composed_of(const struct spill_log_start *start)
{
	cJSON *parsed;

	spill_start_release(&line);
	spill_start_compose(&line, start, "prog");
	assert_non_null(line.text);
	assert_int_equal(line.text[line.length - 1], '\n');
	parsed = cJSON_ParseWithLength(line.text, line.length);
	assert_non_null(parsed);
	return parsed;
}

static cJSON *composed(void)
{
	static const struct spill_log_start start = {.backend = "cuda"};

	return composed_of(&start);
}

static const cJSON *member(const cJSON *of, const char *key)
{
	return cJSON_GetObjectItemCaseSensitive(of, key);
}

static double figure(const cJSON *of, const char *key)
{
	return cJSON_GetNumberValue(member(of, key));
}

TEST(devices)
{
	static const struct spill_log_device devices[] = {
	    {"A", "GPU-0", "0000:01:00.0", 1ull << 40, SPILL_MEMORY_DISCRETE},
	    {"B", "", "0000:02:00.0", 0, SPILL_MEMORY_AUTO},
	    {"C", "GPU-2", "", 3, SPILL_MEMORY_COHERENT},
	};
	static const char *const memories[] = {"discrete", NULL, "coherent"};
	const struct spill_log_start start = {
	    .backend = "hip", .driver_version = 60443, .devices = devices, .device_count = 3};
	cJSON *parsed = composed_of(&start);
	const cJSON *list = member(parsed, "devices");

	assert_string_equal(text_of(parsed, "backend"), "hip");
	assert_true(figure(parsed, "driver") == 60443);
	assert_int_equal(cJSON_GetArraySize(list), 3);
	for (int i = 0; i < 3; i++) {
		const cJSON *device = cJSON_GetArrayItem(list, i);

		assert_true(figure(device, "dev") == i);
		assert_true(figure(device, "bytes") == (double)devices[i].bytes);
		assert_string_equal(text_of(device, "name"), devices[i].name);
		assert_string_equal(text_of(device, "uuid"), devices[i].uuid);
		assert_string_equal(text_of(device, "pci"), devices[i].pci);
		assert_int_equal(!member(device, "uuid"), i == 1);
		assert_int_equal(!member(device, "pci"), i == 2);
		assert_int_equal(!member(device, "memory"), !memories[i]);
		assert_string_equal(text_of(device, "memory"), memories[i] ? memories[i] : "");
	}
	cJSON_Delete(parsed);
}

TEST(options)
{
	static const struct spill_log_option options[] = {{"a.b", "1", "default"}, {"c.d", "", "x:3"}};
	const struct spill_log_start start = {.backend = "cuda", .options = options, .option_count = 2};
	cJSON *parsed = composed_of(&start);
	const cJSON *list = member(parsed, "policy");

	assert_int_equal(cJSON_GetArraySize(list), 2);
	for (int i = 0; i < 2; i++) {
		const cJSON *option = cJSON_GetArrayItem(list, i);

		assert_string_equal(text_of(option, "name"), options[i].name);
		assert_non_null(member(option, "value"));
		assert_string_equal(text_of(option, "value"), options[i].value);
		assert_string_equal(text_of(option, "source"), options[i].source);
	}
	cJSON_Delete(parsed);
}

TEST(program_and_machine)
{
	char path[4096] = "";
	cJSON *parsed;

	assert_true(readlink("/proc/self/exe", path, sizeof(path) - 1) > 0);
	boot_id = "6f9a\n\n";
	parsed = composed();
	assert_string_equal(text_of(parsed, "boot"), "6f9a");
	assert_string_equal(text_of(parsed, "program"), "prog");
	assert_string_equal(text_of(parsed, "exe"), path);
	assert_null(member(parsed, "rank"));
	assert_null(member(parsed, "cut"));
	cJSON_Delete(parsed);
	boot_id = "\n";
	parsed = composed();
	assert_null(member(parsed, "boot"));
	cJSON_Delete(parsed);
}

TEST(ranks)
{
	const cJSON *rank;
	cJSON *parsed;

	setenv("RANK", "3", 1);
	setenv("SLURM_JOB_ID", "17", 1);
	parsed = composed();
	rank = member(parsed, "rank");
	assert_int_equal(cJSON_GetArraySize(rank), 2);
	assert_string_equal(text_of(rank, "RANK"), "3");
	assert_string_equal(text_of(rank, "SLURM_JOB_ID"), "17");
	cJSON_Delete(parsed);
}

/* What the line has of these arguments, whose bytes are as those of /proc/self/cmdline. */
static cJSON *with_arguments(const char *bytes, size_t length)
{
	arguments = bytes;
	arguments_length = length;
	return composed();
}

static const char *argument(const cJSON *parsed, int i)
{
	const char *text = cJSON_GetStringValue(cJSON_GetArrayItem(member(parsed, "args"), i));

	return text ? text : "";
}

TEST(the_arguments)
{
	static const char bytes[] = "p\0\0--key\0hunter2\0-n\0last";
	/* A program that wrote its title there leaves no NUL behind it. */
	cJSON *parsed = with_arguments(bytes, sizeof(bytes) - 1);

	assert_int_equal(cJSON_GetArraySize(member(parsed, "args")), 6);
	assert_string_equal(argument(parsed, 0), "p");
	assert_string_equal(argument(parsed, 1), "");
	assert_string_equal(argument(parsed, 2), "--key");
	assert_string_equal(argument(parsed, 3), "[redacted]");
	assert_string_equal(argument(parsed, 5), "last");
	assert_null(member(parsed, "cut"));
	cJSON_Delete(parsed);
	parsed = with_arguments("", 0);
	assert_int_equal(cJSON_GetArraySize(member(parsed, "args")), 0);
	assert_null(member(parsed, "cut"));
	cJSON_Delete(parsed);
}

/* Of an argument with a secret at most 256 bytes before it are shown. One without is shown whole. */
TEST(a_long_argument_with_a_secret)
{
	char text[600];

	for (unsigned before = 255; before <= 258; before++) {
		memset(text, ' ', sizeof(text));
		memcpy(text + before - strlen("token="), "token=hunter2", sizeof("token=hunter2"));
		cJSON *parsed = with_arguments(text, strlen(text) + 1);
		size_t shown = before < 256 ? before : 256;

		assert_int_equal(strlen(argument(parsed, 0)), shown + strlen("[redacted]"));
		assert_memory_equal(argument(parsed, 0), text, shown);
		assert_string_equal(argument(parsed, 0) + shown, "[redacted]");
		cJSON_Delete(parsed);
	}
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	cJSON *parsed = with_arguments(text, sizeof(text));
	assert_string_equal(argument(parsed, 0), text);
	cJSON_Delete(parsed);
}

/* 64 KiB of arguments are read. One that may go on behind them is left out. */
TEST(arguments_that_are_cut)
{
	enum { MOST = 64 * 1024 };
	static char bytes[MOST + 1];

	for (size_t length = MOST - 1; length <= MOST + 1; length++) {
		memset(bytes, 'x', sizeof(bytes));
		memcpy(bytes, "p", sizeof("p"));
		cJSON *parsed = with_arguments(bytes, length);

		assert_int_equal(cJSON_GetArraySize(member(parsed, "args")), length < MOST ? 2 : 1);
		assert_int_equal(cJSON_IsTrue(member(parsed, "cut")), length >= MOST);
		cJSON_Delete(parsed);
	}
	/* The one before it is whole: its NUL was read. */
	memset(bytes, 'x', sizeof(bytes));
	bytes[MOST - 1] = '\0';
	cJSON *parsed = with_arguments(bytes, MOST + 1);
	assert_int_equal(strlen(argument(parsed, 0)), MOST - 1);
	cJSON_Delete(parsed);
}

TEST(a_later_piece_continues)
{
	static const uint64_t pieces[] = {7, 12, 3};
	cJSON *parsed = composed();
	size_t first = line.length;

	assert_int_equal(line.first, first);
	assert_null(member(parsed, "continues"));
	for (unsigned i = 0; i < 3; i++) {
		cJSON_Delete(parsed);
		spill_start_continue(&line, pieces[i]);
		assert_int_equal(line.length, first + strlen(",\"continues\":") + (pieces[i] > 9 ? 2 : 1));
		assert_memory_equal(line.text + line.length - 2, "}\n", 2);
		parsed = cJSON_ParseWithLength(line.text, line.length);
		assert_true(figure(parsed, "continues") == (double)pieces[i]);
		assert_string_equal(text_of(parsed, "program"), "prog");
	}
	cJSON_Delete(parsed);
}

TEST(without_memory_there_is_no_line)
{
	static const struct spill_log_start start = {.backend = "cuda"};

	fake_libc_fail(FAKE_mmap64, 1, 1, ENOMEM);
	spill_start_compose(&line, &start, "prog");
	fake_libc_fail(FAKE_mmap64, 0, 0, 0);
	assert_null(line.text);
	assert_null(line.pages);
	assert_int_equal(line.length, 0);
}

static long page_size;

static bool tell_page_size(long of[6], long *result)
{
	*result = page_size;
	return of[0] == _SC_PAGESIZE;
}

/* All pages stay then. */
TEST(a_page_size_that_is_not_known)
{
	static const struct spill_log_start start = {.backend = "cuda"};
	fake_libc[FAKE_sysconf].hook = tell_page_size;
	for (page_size = -1; page_size <= 0; page_size++) {
		spill_start_release(&line);
		spill_start_compose(&line, &start, "prog");
		assert_true(line.pages_size > 1 << 20);
	}
}

/* log.max: what is left out is in the sums, the rest is in the file, and nothing is in both. */
#include "fake_libc.h"
#include "logtest.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>

#include "log_max.h"

#define LINE 256

static const struct spill_sum one = {1, {1, 2, 3}};
static const struct spill_totals high = {.peak = {100, 200, 300}, .away = {400, 500, 600}};

/* As the engine does: what does not fit is counted. */
static bool offer(const char *text, enum spill_drop kind)
{
	char line[LINE];

	if (spill_log_offer(line, spill_record_note(0, 1, "routine", text, line, sizeof(line)),
	                    SPILL_LOG_SOON))
		return true;
	spill_log_drop(kind, &one, &high);
	return false;
}

static void write_other(const char *text)
{
	char line[LINE];

	spill_log_write(line, spill_record_note(0, 1, "other", text, line, sizeof(line)), SPILL_LOG_NOW);
}

static size_t size_of(const char *path)
{
	struct stat now;

	CHECK(stat(path, &now) == 0);
	return (size_t)now.st_size;
}

static double figure(const cJSON *drop, const char *kind, const char *member)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItem(cJSON_GetObjectItem(drop, kind), member));
}

/* What the start line of these tests takes; it has this process's name and numbers. */
static size_t start_size(void)
{
	open_log_at(in_folder("probe"));
	spill_log_fork_prepare();
	spill_log_fork_child(); /* closes it */
	return size_of(in_folder("probe"));
}

CHILD_TEST(the_line_that_would_pass_it_and_all_behind_are_left_out)
{
	char line[LINE];
	size_t length = spill_record_note(0, 1, "routine", "1", line, sizeof(line)), start = start_size();
	struct lines lines;

	open_log_of(in_folder("boundary"), start + 3 * length + length - 1, SPILL_STDERR_FIRST);
	CHECK(offer("1", SPILL_DROP_ALLOC) && offer("2", SPILL_DROP_ALLOC) && offer("3", SPILL_DROP_ALLOC));
	CHECK(!offer("4", SPILL_DROP_ALLOC));
	/* A shorter one would fit, and is later than what is missing. */
	CHECK(!offer("", SPILL_DROP_FREE));
	lines = read_lines(in_folder("boundary"));
	CHECK(lines.count == 5 && count_lines(&lines, "code", "routine") == 3);
	CHECK(strcmp(text_of(lines.at[4], "code"), "log-max") == 0);
	CHECK(strstr(text_of(lines.at[4], "text"), "the log has reached log.max (") ==
	      text_of(lines.at[4], "text"));
	CHECK(strstr(text_of(lines.at[4], "text"),
	             "): from now on the log has only the sums of allocations, frees and moves"));

	spill_log_fork_prepare();
	spill_log_fork_child();
	open_log_of(in_folder("exactly"), start + 3 * length, SPILL_STDERR_FIRST);
	CHECK(offer("1", SPILL_DROP_ALLOC) && offer("2", SPILL_DROP_ALLOC) && offer("3", SPILL_DROP_ALLOC));
	spill_log_flush();
	CHECK(size_of(in_folder("exactly")) == start + 3 * length);
	CHECK(!offer("", SPILL_DROP_ALLOC));
}

CHILD_TEST(what_was_left_out_is_told_before_the_next_line)
{
	const char *path = in_folder("sums");
	struct lines lines;

	open_log_of(path, 0, SPILL_STDERR_FIRST);
	CHECK(spill_log_active() && !offer("1", SPILL_DROP_ALLOC) && !offer("2", SPILL_DROP_ALLOC));
	CHECK(!offer("3", SPILL_DROP_SPILL) && !offer("4", SPILL_DROP_FREE));
	CHECK(!offer("5", SPILL_DROP_DEMOTE) && !offer("6", SPILL_DROP_PROMOTE) &&
	      !offer("7", SPILL_DROP_PROMOTE));
	write_other("a");
	write_other("b"); /* nothing was left out since then */
	CHECK(!offer("8", SPILL_DROP_FREE));
	write_other("c");
	lines = read_lines(path);
	CHECK(lines.count == 7); /* start, note; drop, a; b; drop, c */
	CHECK(strcmp(text_of(lines.at[0], "kind"), "start") == 0);
	CHECK(count_lines(&lines, "code", "log-max") == 1 &&
	      strcmp(text_of(lines.at[1], "code"), "log-max") == 0);
	CHECK(strcmp(text_of(lines.at[2], "kind"), "drop") == 0 &&
	      strcmp(text_of(lines.at[3], "text"), "a") == 0);
	CHECK(figure(lines.at[2], "alloc", "count") == 2 &&
	      figure(lines.at[2], "alloc", "device_bytes") == 2);
	CHECK(figure(lines.at[2], "alloc", "host_bytes") == 4 &&
	      figure(lines.at[2], "alloc", "managed_bytes") == 6);
	CHECK(figure(lines.at[2], "spill", "count") == 1 && figure(lines.at[2], "free", "count") == 1);
	CHECK(figure(lines.at[2], "demote", "count") == 1 && figure(lines.at[2], "promote", "count") == 2);
	CHECK(figure(lines.at[2], "peak", "host_bytes") == 200);
	CHECK(strcmp(text_of(lines.at[4], "text"), "b") == 0);
	CHECK(strcmp(text_of(lines.at[5], "kind"), "drop") == 0 &&
	      strcmp(text_of(lines.at[6], "text"), "c") == 0);
	CHECK(figure(lines.at[5], "free", "count") == 1 && !cJSON_HasObjectItem(lines.at[5], "alloc"));
	CHECK(figure(lines.at[5], "peak", "device_bytes") == 100);
}

CHILD_TEST(the_peak_never_falls)
{
	const struct spill_totals low = {.peak = {99, 201, 0}, .away = {401, 499, 601}};
	struct lines lines;

	open_log_of(in_folder("peak"), 0, SPILL_STDERR_FIRST);
	CHECK(!offer("1", SPILL_DROP_ALLOC));
	spill_log_drop(SPILL_DROP_ALLOC, &one, &low); /* a thread that looked before the other one */
	write_other("a");
	lines = read_lines(in_folder("peak"));
	CHECK(figure(lines.at[2], "peak", "device_bytes") == 100 &&
	      figure(lines.at[2], "peak", "host_bytes") == 201 &&
	      figure(lines.at[2], "peak", "managed_bytes") == 300);
	CHECK(figure(lines.at[2], "away", "peak_bytes") == 401 &&
	      figure(lines.at[2], "away", "wanted_bytes") == 500 &&
	      figure(lines.at[2], "away", "moves_us") == 601);
}

/* Of two threads, the one with the lower figures may count last. */
CHILD_TEST(each_figure_is_the_highest_of_all_that_were_told)
{
	struct spill_totals totals = {.peak = {1, 2, 3}, .away = {4, 5, 6, {7, 8, 9, 10}}};
	struct spill_record_drop *told;
	struct spill_log_max max;

	spill_log_max_begin(&max, 1000);
	told = &max.dropped;
	for (unsigned times = 1; times <= 3; times++) {
		spill_log_max_count(&max, SPILL_DROP_ALLOC, &one, &totals);
		CHECK(told->sums[SPILL_DROP_ALLOC].count == times);
		CHECK(told->peak.device == 1 && told->peak.host == 2 && told->peak.managed == 3);
		CHECK(told->away.peak == 4 && told->away.wanted == 5 && told->away.moves_us == 6);
		CHECK(told->away.in_place.followed == 7 && told->away.in_place.bytes == 8);
		CHECK(told->away.in_place.us == 9 && told->away.in_place.most_us == 10);
		totals = (struct spill_totals){0};
	}
}

TEST(room_ends_at_none)
{
	struct spill_log_max max;

	spill_log_max_begin(&max, 100);
	spill_log_max_spend(&max, 60);
	assert_int_equal(max.room, 40);
	spill_log_max_spend(&max, 41);
	assert_int_equal(max.room, 0);
	spill_log_max_begin(&max, 100);
	spill_log_max_spend(&max, 100);
	assert_int_equal(max.room, 0);
	spill_log_max_begin(&max, 100);
	assert_true(spill_log_max_fill(&max));
	assert_false(spill_log_max_fill(&max));
	assert_int_equal(max.room, 0);
}

CHILD_TEST(a_line_that_was_never_made_is_left_out_like_others)
{
	struct lines lines;

	open_log_of(in_folder("unmade"), 0, SPILL_STDERR_FIRST);
	CHECK(!offer("1", SPILL_DROP_ALLOC));
	CHECK(!spill_log_offer("", 0, SPILL_LOG_NOW)); /* one that did not fit into its buffer */
	write_other("a");
	lines = read_lines(in_folder("unmade"));
	CHECK(count_lines(&lines, "code", "log-lost") == 0);
}

static void stderr_of(const char *name, enum spill_log_stderr how)
{
	int fd = open(in_folder("stderr"), O_WRONLY | O_CREAT | O_TRUNC, 0600);

	CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
	spill_stderr_remember();
	spill_log_fork_prepare();
	spill_log_fork_child();
	open_log_of(in_folder(name), 0, how);
	CHECK(!offer("1", SPILL_DROP_ALLOC) && !offer("2", SPILL_DROP_ALLOC));
}

CHILD_TEST(stderr_hears_of_it_once_if_it_wants_all)
{
	size_t length;
	char *said;

	stderr_of("quiet", SPILL_STDERR_FIRST);
	CHECK(size_of(in_folder("stderr")) == 0);
	stderr_of("loud", SPILL_STDERR_ALL);
	said = read_all(in_folder("stderr"), &length);
	CHECK(strncmp(said, "spill: the log has reached log.max (0 B)", 40) == 0);
	CHECK(strchr(said, '\n') == said + length - 1); /* once */
}

CHILD_TEST(sums_that_find_no_room_wait)
{
	const char *path = in_folder("full");
	struct lines lines;
	unsigned drops = 0;

	open_log_of(path, 0, SPILL_STDERR_FIRST);
	CHECK(!offer("1", SPILL_DROP_ALLOC));
	fake_libc_fail(FAKE_write, 1, FAKE_LIBC_FOR_EVER, ENOSPC);
	for (unsigned i = 0; i < 100; i++) { /* more than the queue holds */
		write_other("lost");
		CHECK(!offer("2", SPILL_DROP_ALLOC));
	}
	fake_libc_reset();
	write_other("a"); /* makes room */
	write_other("b");
	lines = read_lines(path);
	for (unsigned i = 0; i < lines.count; i++)
		if (cJSON_HasObjectItem(lines.at[i], "alloc"))
			drops += (unsigned)figure(lines.at[i], "alloc", "count");
	CHECK(drops == 101);
}

CHILD_TEST(lines_that_a_full_disk_took_take_no_room)
{
	char line[LINE];
	size_t length = spill_record_note(0, 1, "routine", "1", line, sizeof(line)), start = start_size();

	open_log_of(in_folder("lost"), start + 300 * length, SPILL_STDERR_FIRST);
	fake_libc_fail(FAKE_write, 1, FAKE_LIBC_FOR_EVER, ENOSPC);
	for (unsigned i = 0; i < 1000; i++)
		CHECK(offer("1", SPILL_DROP_ALLOC));
	fake_libc_reset();
	spill_log_flush();
	CHECK(offer("1", SPILL_DROP_ALLOC));
}

CHILD_TEST(a_forked_child_begins_anew)
{
	struct lines lines;

	open_log_of(in_folder("parent"), 0, SPILL_STDERR_FIRST);
	CHECK(!offer("1", SPILL_DROP_ALLOC));
	spill_log_fork_prepare();
	spill_log_fork_child();
	CHECK(offer("2", SPILL_DROP_ALLOC)); /* no log, nothing to count */
	spill_log_drop(SPILL_DROP_ALLOC, &one, &high);
	open_log_of(in_folder("child"), 4096, SPILL_STDERR_FIRST);
	CHECK(offer("3", SPILL_DROP_ALLOC));
	write_other("a");
	lines = read_lines(in_folder("child"));
	CHECK(lines.count == 3 && count_lines(&lines, "kind", "drop") == 0);
}

/* In a write of the log, as a signal's handler may allocate there: it is left out, and the lock is not asked for twice. */
static bool drop_in_a_write(long arguments[6], long *result)
{
	fake_libc[FAKE_write].hook = NULL;
	spill_log_drop(SPILL_DROP_ALLOC, &one, &high);
	return false;
}

CHILD_TEST(a_thread_that_writes_counts_nothing)
{
	open_log_of(in_folder("busy"), 4096, SPILL_STDERR_FIRST);
	fake_libc[FAKE_write].hook = drop_in_a_write;
	write_other("a");
	CHECK(!fake_libc[FAKE_write].hook);
	write_other("b");
	struct lines lines = read_lines(in_folder("busy"));
	CHECK(lines.count == 3 && count_lines(&lines, "kind", "drop") == 0);
}

enum { THREADS = 4, LINES = 5000 };

static void *offer_many(void *unused)
{
	for (unsigned i = 0; i < LINES; i++) {
		errno = (int)i;
		offer("1", SPILL_DROP_ALLOC);
		CHECK(errno == (int)i);
		if (i % 500 == 0)
			write_other("a");
	}
	return unused;
}

CHILD_TEST(four_threads_lose_and_count_nothing_twice)
{
	pthread_t threads[THREADS];
	struct lines lines;
	unsigned drops = 0;

	open_log_of(in_folder("threads"), 65536, SPILL_STDERR_FIRST);
	for (unsigned i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, offer_many, NULL) == 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	write_other("last");
	lines = read_lines(in_folder("threads"));
	for (unsigned i = 0; i < lines.count; i++)
		if (cJSON_HasObjectItem(lines.at[i], "alloc"))
			drops += (unsigned)figure(lines.at[i], "alloc", "count");
	CHECK(drops > 0 && count_lines(&lines, "code", "routine") > 100);
	CHECK(drops + count_lines(&lines, "code", "routine") == THREADS * LINES);
	CHECK(count_lines(&lines, "code", "log-max") == 1);
	CHECK(count_lines(&lines, "code", "other") == THREADS * LINES / 500 + 1);
}

int main(void)
{
	return run_unit_tests(make_folder, remove_folder);
}

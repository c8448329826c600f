/* A log's file that is rotated, removed or truncated while it is written: the run goes on in another piece, and nothing is told twice. */
#include "fake_clock.h"
#include "fake_disk.h"
#include "fake_libc.h"
#include "logtest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <time.h>

#define MS 1000000ull
#define S (1000 * MS)

static void write_note(unsigned number)
{
	char line[256];

	spill_log_write(line, test_line(line, sizeof(line), 0, number), SPILL_LOG_NOW);
}

static double number_of(const cJSON *line, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(line, key));
}

/* The piece at `path`: its start line says that so many lines are before it, and behind that are these notes. */
static void check_piece(const char *path, unsigned before, const char *const notes[])
{
	struct lines lines = read_lines(path);
	unsigned count = 0;

	while (notes[count])
		count++;
	CHECK(lines.count == 1 + count);
	CHECK(strcmp(text_of(lines.at[0], "kind"), "start") == 0);
	CHECK(number_of(lines.at[0], "pid") == getpid() && number_of(lines.at[0], "t") == 0);
	CHECK(cJSON_GetArraySize(cJSON_GetObjectItem(lines.at[0], "devices")) == 2);
	if (before)
		CHECK(number_of(lines.at[0], "continues") == before);
	else
		CHECK(!cJSON_HasObjectItem(lines.at[0], "continues"));
	for (unsigned i = 0; i < count; i++) {
		bool ours = strcmp(text_of(lines.at[1 + i], "code"), "0") != 0;

		CHECK(strcmp(text_of(lines.at[1 + i], ours ? "code" : "text"), notes[i]) == 0);
	}
}

#define PIECE(path, before, ...) check_piece(path, before, (const char *const[]){__VA_ARGS__, NULL})

CHILD_TEST(a_renamed_file_is_followed_by_another)
{
	const char *path = in_folder("log"), *old = in_folder("log.1"), *older = in_folder("log.2");

	open_log_at(path);
	write_note(0);
	CHECK(rename(path, old) == 0);
	fake_clock.ns += 999 * MS;
	write_note(1); /* not looked for yet */
	CHECK(access(path, F_OK) != 0);
	fake_clock.ns += 1 * MS;
	write_note(2);
	PIECE(old, 0, "0", "1");
	PIECE(path, 3, "2", "log-rotated");
	CHECK(rename(old, older) == 0 && rename(path, old) == 0);
	fake_clock.ns += 1000 * MS;
	write_note(3);
	PIECE(old, 3, "2", "log-rotated");
	PIECE(path, 6, "3", "log-rotated");
	/* One run, of which all begin alike. */
	CHECK(strcmp(text_of(read_lines(older).at[0], "time"), text_of(read_lines(path).at[0], "time")) == 0);
	CHECK(find_descriptor(path) >= 100 && find_descriptor(old) < 0 && find_descriptor(older) < 0);
}

CHILD_TEST(a_removed_file_is_made_again)
{
	const char *path = in_folder("removed");
	struct stat now;

	open_log_at(path);
	write_note(0);
	CHECK(unlink(path) == 0);
	fake_clock.ns += 1000 * MS;
	write_note(1);
	PIECE(path, 2, "1", "log-rotated");
	CHECK(stat(path, &now) == 0 && (now.st_mode & 07777) == 0600);
	fake_clock.ns += 5000 * MS;
	write_note(2);
	PIECE(path, 2, "1", "log-rotated", "2");
}

CHILD_TEST(a_truncated_file_begins_anew)
{
	const char *path = in_folder("truncated");
	size_t length;

	open_log_at(path);
	write_note(0);
	CHECK(truncate(path, 0) == 0);
	write_note(1); /* at once: what is in front of a start line would be nobody's */
	PIECE(path, 2, "1", "log-truncated");
	CHECK(truncate(path, 10) == 0);
	write_note(2);
	CHECK(strncmp(read_all(path, &length) + 10, "{\"v\":1,\"kind\":\"start\"", 20) == 0);
	CHECK(truncate(path, 0) == 0);
	write_note(3);
	PIECE(path, 8, "3", "log-truncated");
}

/* The kernel may lack memory for the answer: that says nothing about the file. */
CHILD_TEST(a_file_that_cannot_be_looked_at_is_not_given_up)
{
	const char *path = in_folder("unknown");

	open_log_at(path);
	int descriptor = find_descriptor(path);
	write_note(0);
	fake_libc_fail(FAKE_fstat64, 1, 1, ENOMEM);
	write_note(1);
	PIECE(path, 0, "0", "1");
	fake_libc_fail(FAKE_fstat64, 1, 2, ENOMEM);
	write_note(2); /* waits */
	fake_libc_reset();
	PIECE(path, 0, "0", "1");
	write_note(3);
	PIECE(path, 0, "0", "1", "2", "3");
	CHECK(find_descriptor(path) == descriptor && access(in_folder("unknown-2"), F_OK) != 0);
}

/* The pages behind the start line stay then, and the line is whole. */
CHILD_TEST(a_page_size_that_is_not_known_costs_no_line)
{
	const char *path = in_folder("pages");

	fake_libc_fail(FAKE_sysconf, 1, FAKE_LIBC_FOR_EVER, EINVAL);
	open_log_at(path);
	fake_libc_reset();
	write_note(0);
	PIECE(path, 0, "0");
}

CHILD_TEST(where_nothing_can_be_made_it_writes_on)
{
	const char *path = in_folder("refused"), *old = in_folder("refused.1");

	open_log_at(path);
	CHECK(rename(path, old) == 0 && symlink("elsewhere", path) == 0);
	for (unsigned i = 0; i < 3; i++) {
		fake_clock.ns += 1000 * MS;
		write_note(i);
	}
	PIECE(old, 0, "0", "1", "2");
	CHECK(access(in_folder("elsewhere"), F_OK) != 0 && spill_log_active());
	CHECK(unlink(path) == 0);
	fake_clock.ns += 1000 * MS;
	write_note(3);
	PIECE(old, 0, "0", "1", "2");
	PIECE(path, 4, "3", "log-rotated");
}

CHILD_TEST(what_a_full_disk_cut_stays_behind)
{
	const char *path = in_folder("cut"), *old = in_folder("cut.1");
	char *text;
	size_t length;

	open_log_at(path);
	write_note(0);
	room = 20;
	write_note(1); /* 20 bytes of it */
	write_note(2);
	CHECK(rename(path, old) == 0);
	room = -1;
	fake_clock.ns += 1000 * MS;
	write_note(3);
	text = read_all(old, &length);
	CHECK(length > 21 && text[length - 21] == '\n' && strstr(text, "\"0\"") &&
	      !strchr(text + length - 20, '\n'));
	PIECE(path, 2, "2", "3", "log-lost", "log-rotated");
	CHECK(atoi(text_of(read_lines(path).at[3], "text")) == 1);
}

/* Whatever byte of the new piece the disk is full at. */
CHILD_TEST(a_full_disk_tears_no_new_piece)
{
	const char *path = in_folder("full"), *old = in_folder("full.1");
	struct stat now;
	long most = 400;

	for (long at = 0; at < most; at += at < 8 ? 1 : 37) {
		open_log_at(path);
		CHECK(rename(path, old) == 0);
		fake_clock.ns += 1000 * MS;
		room = at;
		write_note(0);
		write_note(1);
		room = -1;
		write_note(2);
		PIECE(old, 0, NULL);
		/* The note comes with the first line that got in whole. */
		struct lines lines = read_lines(path);
		CHECK(lines.count == 5 && number_of(lines.at[0], "continues") == 1);
		CHECK(count_lines(&lines, "code", "log-rotated") == 1);
		for (unsigned i = 1, next = 0; i < 5; i++)
			if (strcmp(text_of(lines.at[i], "code"), "0") == 0)
				CHECK((unsigned)atoi(text_of(lines.at[i], "text")) == next++);
		CHECK(stat(path, &now) == 0 && find_descriptor(path) >= 100);
		most = (long)now.st_size + 20;
		CHECK(unlink(path) == 0 && unlink(old) == 0);
		spill_log_fork_prepare();
		spill_log_fork_child(); /* so that another run may begin */
	}
}

CHILD_TEST(a_file_that_goes_with_its_descriptor)
{
	const char *path = in_folder("closed"), *old = in_folder("closed.1");

	open_log_at(path);
	write_note(0);
	CHECK(rename(path, old) == 0);
	close(find_descriptor(old));
	write_note(1);
	PIECE(old, 0, "0");
	PIECE(path, 2, "1", "log-rotated");
	close(find_descriptor(path));
	write_note(2);
	PIECE(path, 2, "1", "log-rotated", "2", "log-reopened");
}

/* As another process that begins its log there. */
static void take_name(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
}

CHILD_TEST(a_name_that_another_has_taken_meanwhile)
{
	const char *path = in_folder("taken.jsonl"), *second = in_folder("taken-2.jsonl"),
	           *third = in_folder("taken-3.jsonl");

	open_log_at(path);
	write_note(0);
	CHECK(unlink(path) == 0);
	take_name(path);
	fake_clock.ns += 1000 * MS;
	write_note(1);
	PIECE(second, 2, "1", "log-rotated");
	CHECK(strcmp(spill_log_path(), second) == 0);
	fake_clock.ns += 1000 * MS;
	write_note(2); /* that is where it is now */
	PIECE(second, 2, "1", "log-rotated", "2");
	close(find_descriptor(second));
	take_name(second);
	write_note(3);
	PIECE(third, 6, "3", "log-rotated");
	CHECK(strcmp(spill_log_path(), third) == 0 && read_lines(path).count == 0);
	PIECE(second, 2, "1", "log-rotated", "2");
}

CHILD_TEST(a_run_that_has_the_name_and_ended)
{
	const char *path = in_folder("another.jsonl"), *second = in_folder("another-2.jsonl");
	FILE *file;

	open_log_at(path);
	write_note(0);
	CHECK(unlink(path) == 0);
	file = fopen(path, "we");
	CHECK(file && fputs("another run, and its end\n", file) >= 0 && fclose(file) == 0);
	fake_clock.ns += 1000 * MS;
	write_note(1);
	PIECE(second, 2, "1", "log-rotated");
	close(find_descriptor(second)); /* its own is none of another's */
	write_note(2);
	PIECE(second, 2, "1", "log-rotated", "2", "log-reopened");
}

CHILD_TEST(a_long_line_comes_behind_the_start_line)
{
	static char text[6000], line[8192];
	const char *path = in_folder("long");
	struct lines lines;

	open_log_at(path);
	memset(text, 'x', sizeof(text) - 1);
	CHECK(unlink(path) == 0);
	fake_clock.ns += 1000 * MS;
	spill_log_write(line, spill_record_note(0, 1, "0", text, line, sizeof(line)), SPILL_LOG_NOW);
	lines = read_lines(path);
	CHECK(lines.count == 3 && number_of(lines.at[0], "continues") == 1);
	CHECK(strcmp(text_of(lines.at[1], "text"), text) == 0);
	CHECK(strcmp(text_of(lines.at[2], "code"), "log-rotated") == 0);
	CHECK(unlink(path) == 0);
	fake_clock.ns += 1000 * MS;
	write_note(0);
	PIECE(path, 4, "0", "log-rotated");
}

CHILD_TEST(a_childs_own_run_continues_nothing)
{
	const char *path = in_folder("parent"), *childs = in_folder("child");

	open_log_at(path);
	CHECK(unlink(path) == 0);
	fake_clock.ns += 1000 * MS;
	write_note(0);
	spill_log_fork_prepare();
	if (fork() == 0) {
		spill_log_fork_child();
		open_log_at(childs);
		write_note(1);
		PIECE(childs, 0, "1");
		syscall_exit(0);
	}
	spill_log_fork_parent();
	int status;
	CHECK(wait(&status) > 0 && status == 0);
	PIECE(path, 1, "0", "log-rotated");
}

static unsigned descriptors(void)
{
	DIR *all = opendir("/proc/self/fd");
	unsigned count = 0;

	CHECK(all);
	while (readdir(all))
		count++;
	closedir(all);
	return count;
}

/* All that the process has mapped. */
static long pages(void)
{
	char text[64] = "";
	int fd = open("/proc/self/statm", O_RDONLY);

	CHECK(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	return atol(text);
}

CHILD_TEST(a_thousand_rotations_take_nothing)
{
	const char *path = in_folder("many");
	unsigned before;
	long mapped;

	open_log_at(path);
	before = descriptors();
	mapped = pages();
	for (unsigned i = 0; i < 1000; i++) {
		CHECK(unlink(path) == 0);
		fake_clock.ns += 1000 * MS;
		write_note(i);
	}
	CHECK(descriptors() == before && pages() == mapped);
	CHECK(number_of(read_lines(path).at[0], "continues") == 1 + 999 * 3);
}

int main(void)
{
	fake_libc[FAKE_write].hook = disk;
	fake_clock_use(1000 * S);
	return run_unit_tests(make_folder, remove_folder);
}

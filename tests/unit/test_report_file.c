/* The file of `spill report --html`: a page appears whole or not at all, and what was there keeps its mode and its links. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "report.h"

const char cli_page_before[] = "a frame", cli_page_after[] = "";

/* What happens while the page is written. */
static enum { IS_WRITTEN, IS_CLOSED, HAS_FAILED, IS_GONE } happens;
static size_t rows;
static char folder[] = "/tmp/spill-unit-XXXXXX";
static int out, err;

void cli_report_page(FILE *file, const struct cli_report *report, const struct cli_stories *stories)
{
	char descriptor[32], name[PATH_MAX];
	ssize_t length;

	rows = report->rows;
	fputs("page", file);
	if (happens == IS_CLOSED)
		close(fileno(file));
	if (happens == HAS_FAILED)
		assert_int_equal(fgetc(file), EOF); /* it is open for writing only */
	if (happens != IS_GONE)
		return;
	snprintf(descriptor, sizeof(descriptor), "/proc/self/fd/%d", fileno(file));
	length = readlink(descriptor, name, sizeof(name) - 1);
	assert_true(length > 0);
	name[length] = '\0';
	assert_int_equal(unlink(name), 0);
}

static int setup(void **state)
{
	happens = IS_WRITTEN;
	return 0;
}

/* The folder is empty again. */
static int teardown(void **state)
{
	static const char *const names[] = {"out", "err", "new.html", "old.html", "link.html", "pipe"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	return chdir("/") || rmdir(folder) || mkdir(folder, 0700) || chdir(folder);
}

static const char *text_of(const char *path)
{
	static char text[1000];
	FILE *file = fopen(path, "r");
	size_t length;

	assert_non_null(file);
	length = fread(text, 1, sizeof(text) - 1, file);
	text[length] = '\0';
	fclose(file);
	return text;
}

static void put(const char *path, const char *text, mode_t mode)
{
	FILE *file = fopen(path, "w");

	fputs(text, file);
	fclose(file);
	assert_int_equal(chmod(path, mode), 0);
}

static mode_t mode_of(const char *path)
{
	struct stat status;

	assert_int_equal(lstat(path, &status), 0);
	return status.st_mode;
}

/* Turns a standard stream into a file of that name, or back. */
static int redirect(FILE *stream, int number, const char *path)
{
	int kept = dup(number), file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	fflush(stream);
	dup2(file, number);
	close(file);
	return kept;
}

static void restore(FILE *stream, int number, int kept)
{
	fflush(stream);
	dup2(kept, number);
	close(kept);
}

/* What is said is in the files "out" and "err" then. */
static bool write_page(size_t runs, const char *path)
{
	struct cli_report report = {.summaries = {.count = runs}};
	bool written;

	out = redirect(stdout, 1, "out");
	err = redirect(stderr, 2, "err");
	written = cli_report_html(&report, NULL, path);
	restore(stdout, 1, out);
	restore(stderr, 2, err);
	return written;
}

/* Nothing else is left behind, as the temporary file. */
static void fails(const char *path, const char *shown, const char *why)
{
	char said[200];

	assert_false(write_page(1, path));
	snprintf(said, sizeof(said), "spill report: %s: %s\n", shown, why);
	assert_string_equal(text_of("err"), said);
	assert_string_equal(text_of("out"), "");
}

TEST(a_new_file_has_the_mode_of_the_umask)
{
	mode_t mask = umask(027);

	assert_true(write_page(1, "new.html"));
	assert_int_equal(umask(mask), 027);
	assert_int_equal(mode_of("new.html"), S_IFREG | 0640);
	assert_string_equal(text_of("new.html"), "page");
	assert_string_equal(text_of("out"), "new.html: 1 run, 4 B; open it in a browser\n");
	assert_string_equal(text_of("err"), "");
}

TEST(a_file_is_replaced_and_its_link_stays)
{
	put("old.html", "what was there", 0604);
	assert_int_equal(symlink("old.html", "link.html"), 0);
	assert_true(write_page(2, "link.html"));
	assert_true(S_ISLNK(mode_of("link.html")));
	assert_int_equal(mode_of("old.html"), S_IFREG | 0604);
	assert_string_equal(text_of("old.html"), "page");
	assert_string_equal(text_of("out"), "link.html: 2 runs, 4 B; open it in a browser\n");
}

TEST(what_was_there_stays_where_the_page_fails)
{
	char path[64];

	put("old.html", "what was there", 0600);
	snprintf(path, sizeof(path), "%s/old.html", folder);
	happens = IS_CLOSED;
	fails("old.html", path, "Bad file descriptor");
	happens = HAS_FAILED;
	assert_false(write_page(1, "old.html"));
	assert_string_equal(text_of("old.html"), "what was there");
	happens = IS_GONE;
	assert_false(write_page(1, "new.html"));
	assert_int_equal(access("new.html", F_OK), -1);
	assert_string_equal(text_of("out"), "");
}

TEST(what_cannot_be_written_is_said)
{
	fails("nowhere/new.html", "nowhere/new.html", "No such file or directory");
	fails("/tmp", "/tmp", "Is a directory");
	fails("/dev/full", "/dev/full", "No space left on device");
	happens = HAS_FAILED;
	assert_false(write_page(1, "/dev/null"));
}

TEST(a_pipe_and_standard_output)
{
	char text[5] = "";
	int pipe;

	assert_int_equal(mkfifo("pipe", 0600), 0);
	pipe = open("pipe", O_RDWR);
	assert_true(write_page(1, "pipe"));
	assert_int_equal(read(pipe, text, sizeof(text)), 4);
	assert_string_equal(text, "page");
	close(pipe);
	assert_true(S_ISFIFO(mode_of("pipe")));
	assert_string_equal(text_of("out"), "");
	assert_true(write_page(1, "-"));
	assert_string_equal(text_of("out"), "page");
}

TEST(without_a_run_there_is_no_page)
{
	assert_false(write_page(0, "new.html"));
	assert_string_equal(text_of("err"), "spill report: no run was read: new.html is not written\n");
	assert_int_equal(access("new.html", F_OK), -1);
}

/* A page of many runs has fewer rows of each. */
TEST(rows_of_a_page)
{
	static const size_t known[][2] = {{1, 200}, {10, 200}, {11, 181}, {99, 20}, {95, 21}, {1000, 20}};

	for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		assert_true(write_page(known[i][0], "-"));
		assert_int_equal(rows, known[i][1]);
	}
}

int main(void)
{
	return run_unit_tests_in(folder);
}

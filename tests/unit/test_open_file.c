/* How the command opens files that others name: a path may lead elsewhere between two calls. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "fake_libc.h"

static char folder[64];
static mode_t in_its_place; /* what the path is when it is opened */

static const char *at(const char *name)
{
	static char path[2][128];
	static unsigned next;
	char *made = path[next++ % 2];
	snprintf(made, sizeof(path[0]), "%s/%s", folder, name);
	return made;
}

static int setup(void **state)
{
	fake_libc_reset();
	strcpy(folder, "/tmp/spill-open-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];
	fake_libc_reset();
	snprintf(command, sizeof(command), "/bin/rm -rf %s", folder);
	return system(command);
}

static void make(const char *path, mode_t kind)
{
	if (kind == S_IFDIR)
		assert_int_equal(mkdir(path, 0700), 0);
	else
		assert_int_equal(mknod(path, kind | 0600, 0), 0);
}

static unsigned descriptors(void)
{
	unsigned count = 0;
	DIR *open_ones = opendir("/proc/self/fd");
	while (readdir(open_ones))
		count++;
	closedir(open_ones);
	return count;
}

TEST(what_may_be_opened)
{
	static const struct {
		mode_t kind;
		enum cli_files files;
		bool opens;
		const char *text;
	} cases[] = {{S_IFREG, CLI_REGULAR, true, NULL},
	             {S_IFREG, CLI_REGULAR_OR_PIPE, true, NULL},
	             {S_IFDIR, CLI_REGULAR, false, "it is a folder"},
	             {S_IFDIR, CLI_REGULAR_OR_PIPE, false, "it is a folder"},
	             {S_IFIFO, CLI_REGULAR, false, "it is not a regular file"},
	             {S_IFSOCK, CLI_REGULAR, false, "it is not a regular file"},
	             {S_IFSOCK, CLI_REGULAR_OR_PIPE, false, "it is neither a regular file nor a pipe"}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int error = -1, fd;
		unsigned before = descriptors();
		make(at("x"), cases[i].kind);
		fd = cli_open(at("x"), cases[i].files, &error);
		assert_int_equal(fd >= 0, cases[i].opens);
		if (fd >= 0) {
			assert_int_equal(error, 0);
			assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
			close(fd);
		} else {
			assert_string_equal(cli_open_text(error), cases[i].text);
		}
		assert_int_equal(descriptors(), before);
		assert_int_equal(remove(at("x")), 0);
	}
	int error;
	assert_int_equal(cli_open(at("none"), CLI_REGULAR, &error), -1);
	assert_int_equal(error, ENOENT);
}

/* 0 is a descriptor like others: a shell can close the standard input of a command. */
TEST(without_a_standard_input)
{
	int error = -1, input = dup(STDIN_FILENO);
	make(at("x"), S_IFREG);
	close(STDIN_FILENO);
	int fd = cli_open(at("x"), CLI_REGULAR, &error);
	if (input >= 0) {
		dup2(input, STDIN_FILENO);
		close(input);
	} else {
		close(fd);
	}
	assert_int_equal(fd, STDIN_FILENO);
	assert_int_equal(error, 0);
	assert_int_equal(remove(at("x")), 0);
}

static bool replace(long arguments[6], long *result)
{
	const char *path = (const char *)arguments[0];
	if (strcmp(path, at("x")) != 0)
		return false;
	assert_int_equal(remove(path), 0);
	if (in_its_place)
		make(path, in_its_place);
	return false;
}

/* Nothing is read from it, no writer is waited for, and no descriptor stays. */
TEST(what_takes_its_place_before_it_is_opened)
{
	static const mode_t kinds[] = {S_IFDIR, S_IFIFO, S_IFSOCK, 0};
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		int error = 0;
		unsigned before = descriptors();
		make(at("x"), S_IFREG);
		in_its_place = kinds[i];
		fake_libc[FAKE_open64].hook = replace;
		assert_int_equal(cli_open(at("x"), CLI_REGULAR_OR_PIPE, &error), -1);
		fake_libc_reset();
		assert_int_not_equal(error, 0);
		assert_int_equal(descriptors(), before);
		if (in_its_place)
			assert_int_equal(remove(at("x")), 0);
	}
}

TEST(a_file_in_the_place_of_a_pipe)
{
	int error;
	make(at("x"), S_IFIFO);
	in_its_place = S_IFREG;
	fake_libc[FAKE_open64].hook = replace;
	int fd = cli_open(at("x"), CLI_REGULAR_OR_PIPE, &error);
	assert_true(fd >= 0 && !error);
	close(fd);
}

/* Where the log is, and what of the program's arguments may be in it. */
#include "fake_libc.h"
#include "logtest.h"

#include <errno.h>
#include <sys/utsname.h>

#include "log_path.h"
#include "process_ranks.h"

static struct spill_log_path found;

static void path_is(const char *pattern, const char *program, const char *path)
{
	spill_log_path_find(&found, pattern, program, SPILL_LOG_SUFFIX);
	assert_null(found.problem);
	assert_string_equal(found.path, path);
}

/* A folder that is HOME from now on. */
static const char *home(const char *name)
{
	const char *path = in_folder(name);

	mkdir(path, 0700);
	setenv("HOME", path, 1);
	return path;
}

TEST(patterns)
{
	struct utsname system;
	char expected[512], here[256];

	uname(&system);
	snprintf(expected, sizeof(expected), "/x/%s-prog-%d%%.log", system.nodename, getpid());
	path_is("/x/%h-%e-%p%%.log", "prog", expected);
	path_is("off", "prog", "");
	assert_non_null(getcwd(here, sizeof(here)));
	snprintf(expected, sizeof(expected), "%s%srelative/log", here, "/");
	path_is("relative/log", "prog", expected);
	snprintf(expected, sizeof(expected), "%s/log", home("u%p"));
	path_is("~/log", "prog", expected);
	/* Neither is HOME. */
	snprintf(expected, sizeof(expected), "%s/~x/log", here);
	path_is("~x/log", "prog", expected);
	snprintf(expected, sizeof(expected), "%s/x/log", here);
	path_is("x/log", "prog", expected);
}

TEST(default_place)
{
	char expected[256];

	snprintf(expected, sizeof(expected), "%s/.local/state/spill/prog-%d.jsonl", home("h"), getpid());
	unsetenv("XDG_STATE_HOME");
	path_is("", "prog", expected);
	assert_true(found.in_default);
	setenv("XDG_STATE_HOME", "relative: to be ignored", 1);
	path_is("", "prog", expected);
	setenv("XDG_STATE_HOME", "/s%p", 1);
	snprintf(expected, sizeof(expected), "/s%%p/spill/prog-%d.jsonl", getpid());
	path_is("", "prog", expected);
	setenv("XDG_STATE_HOME", "/", 1);
	snprintf(expected, sizeof(expected), "//spill/prog-%d.jsonl", getpid());
	path_is("", "prog", expected);
	unsetenv("XDG_STATE_HOME");
	unsetenv("HOME");
	spill_log_path_find(&found, "", "prog", SPILL_LOG_SUFFIX);
	assert_non_null(found.problem);
	assert_string_equal(found.path, "");
}

static void there_is_no_log(const char *pattern, const char *why)
{
	spill_log_path_find(&found, pattern, "prog", SPILL_LOG_SUFFIX);
	assert_non_null(found.problem);
	assert_non_null(strstr(found.problem, why));
	assert_string_equal(found.path, "");
}

/* A daemon's user has a HOME such as /nonexistent, which nobody is to make: root could. */
TEST(a_home_that_is_missing_stays_missing)
{
	char below[512];

	unsetenv("XDG_STATE_HOME");
	setenv("HOME", in_folder("missing"), 1);
	there_is_no_log("", "HOME");
	there_is_no_log("~/logs/x.jsonl", "HOME");
	there_is_no_log("~/", "HOME");
	/* What the environment derived from it goes the same way. */
	snprintf(below, sizeof(below), "%s/.local/state", in_folder("missing"));
	setenv("XDG_STATE_HOME", below, 1);
	there_is_no_log("", "HOME");
	setenv("XDG_STATE_HOME", in_folder("missing"), 1);
	there_is_no_log("", "HOME");
	setenv("XDG_STATE_HOME", below, 1);
	unsetenv("HOME");
	there_is_no_log("", "XDG_STATE_HOME");
	/* A file is no home. */
	fclose(fopen(in_folder("file"), "w"));
	setenv("HOME", in_folder("file"), 1);
	there_is_no_log("~/x.jsonl", "HOME");
	unsetenv("XDG_STATE_HOME");
	there_is_no_log("", "HOME");
	/* Without one, ~ is no folder here. */
	unsetenv("HOME");
	there_is_no_log("~/x.jsonl", "HOME");
	assert_int_equal(access(in_folder("missing"), F_OK), -1);
}

static bool made(void)
{
	struct stat now;
	char *last;

	assert_null(found.problem);
	if (spill_log_path_make_folders(&found))
		return false;
	last = strrchr(found.path, '/');
	*last = '\0';
	assert_int_equal(stat(found.path, &now), 0);
	*last = '/';
	return S_ISDIR(now.st_mode) && (now.st_mode & 07777) == 0700;
}

TEST(what_is_below_a_home_is_made)
{
	unsetenv("XDG_STATE_HOME");
	home("home");
	spill_log_path_find(&found, "", "prog", SPILL_LOG_SUFFIX);
	assert_true(made());
	spill_log_path_find(&found, "~/a/b/x.jsonl", "prog", SPILL_LOG_SUFFIX);
	assert_true(made());
	/* XDG_STATE_HOME itself is made: its parent is there, or it is below HOME. */
	setenv("XDG_STATE_HOME", in_folder("state//"), 1);
	spill_log_path_find(&found, "", "prog", SPILL_LOG_SUFFIX);
	assert_true(made());
	setenv("XDG_STATE_HOME", in_folder("home/x/y/z"), 1);
	spill_log_path_find(&found, "", "prog", SPILL_LOG_SUFFIX);
	assert_true(made());
	setenv("HOME", in_folder("home//"), 1);
	setenv("XDG_STATE_HOME", in_folder("home/o/p/q"), 1);
	spill_log_path_find(&found, "", "prog", SPILL_LOG_SUFFIX);
	assert_true(made());
	setenv("XDG_STATE_HOME", in_folder("homes/p/q"), 1); /* it only begins like HOME */
	there_is_no_log("", "XDG_STATE_HOME");
	/* What the user wrote out is meant. */
	spill_log_path_find(&found, in_folder("p/q/r/x.jsonl"), "prog", SPILL_LOG_SUFFIX);
	assert_true(made());
	unsetenv("XDG_STATE_HOME");
}

/* Thousands of ranks begin at once: a mkdir is work for the server of a shared file system, also if the folder exists. */
TEST(a_folder_that_exists_is_not_made_again)
{
	spill_log_path_find(&found, in_folder("once/more/x.jsonl"), "prog", SPILL_LOG_SUFFIX);
	fake_libc_fail(FAKE_mkdir, 0, 0, 0);
	assert_true(made());
	assert_true(fake_libc[FAKE_mkdir].calls > 0);
	fake_libc_fail(FAKE_mkdir, 0, 0, 0);
	assert_true(made());
	assert_int_equal(fake_libc[FAKE_mkdir].calls, 0);
	home("shared");
	unsetenv("XDG_STATE_HOME");
	spill_log_path_find(&found, "", "prog", SPILL_LOG_SUFFIX);
	assert_true(made());
	fake_libc_fail(FAKE_mkdir, 0, 0, 0);
	assert_true(made());
	assert_int_equal(fake_libc[FAKE_mkdir].calls, 0);
}

/* mkdir may refuse a folder that exists with another error than EEXIST, above what is ours to make. */
TEST(folders_that_cannot_be_made_but_exist)
{
	unsigned above = 0;

	spill_log_path_find(&found, in_folder("deep/er/x.jsonl"), "prog", SPILL_LOG_SUFFIX);
	for (const char *at = folder; (at = strchr(at, '/')); at++)
		above++;
	fake_libc_fail(FAKE_mkdir, 1, above, EROFS);
	assert_int_equal(spill_log_path_make_folders(&found), 0);
	assert_int_equal(access(in_folder("deep/er"), F_OK), 0);
	/* Of a link to nowhere the open tells. */
	fake_libc_fail(FAKE_mkdir, 0, 0, 0);
	assert_int_equal(symlink("nowhere", in_folder("dangling")), 0);
	spill_log_path_find(&found, in_folder("dangling/x.jsonl"), "prog", SPILL_LOG_SUFFIX);
	assert_int_equal(spill_log_path_make_folders(&found), 0);
	spill_log_path_find(&found, in_folder("other/x.jsonl"), "prog", SPILL_LOG_SUFFIX);
	fake_libc_fail(FAKE_mkdir, 1, FAKE_LIBC_FOR_EVER, EROFS);
	assert_int_equal(spill_log_path_make_folders(&found), EROFS);
	assert_string_equal(found.path, in_folder("other/x.jsonl"));
	fake_libc_fail(FAKE_mkdir, 0, 0, 0);
}

static mode_t mode_of(const char *name)
{
	struct stat now;

	assert_int_equal(stat(in_folder(name), &now), 0);
	return now.st_mode & 07777;
}

/* The default folder is for its owner only, whoever made it; a folder that the user named stays as it is. */
TEST(others_may_not_enter_the_default_folder)
{
	assert_int_equal(mkdir(in_folder("xdg"), 0700) | mkdir(in_folder("xdg/spill"), 0700), 0);
	setenv("XDG_STATE_HOME", in_folder("xdg"), 1);
	for (mode_t bit = 01; bit <= 040; bit <<= 1) {
		assert_int_equal(chmod(in_folder("xdg/spill"), 0700 | bit), 0);
		spill_log_path_find(&found, "", "prog", SPILL_LOG_SUFFIX);
		assert_int_equal(spill_log_path_make_folders(&found), 0);
		assert_int_equal(mode_of("xdg/spill"), 0700);
	}
	assert_int_equal(chmod(in_folder("xdg/spill"), 0755), 0);
	spill_log_path_find(&found, in_folder("xdg/spill/x.jsonl"), "prog", SPILL_LOG_SUFFIX);
	assert_int_equal(spill_log_path_make_folders(&found), 0);
	assert_int_equal(mode_of("xdg/spill"), 0755);
	unsetenv("XDG_STATE_HOME");
}

TEST(a_folder_holds_the_default_name)
{
	char expected[256];

	snprintf(expected, sizeof(expected), "%s/prog-%d.jsonl", folder, getpid());
	path_is(folder, "prog", expected);
	assert_false(found.in_default);
	path_is(in_folder(""), "prog", expected);
	snprintf(expected, sizeof(expected), "%s/new/prog-%d.jsonl", folder, getpid());
	path_is(in_folder("new/"), "prog", expected);
}

static void clear_ranks(void)
{
	for (unsigned i = 0; i < SPILL_RANKS_COUNT; i++)
		unsetenv(spill_rank_variable((enum spill_rank)i));
}

/* Each launcher's variables, as it sets them. */
TEST(ranks_of_a_job)
{
	char expected[512];

	clear_ranks();
	path_is("/x/%j-%t", "prog", "/x/nojob-norank");
	setenv("SLURM_PROCID", "3", 1);
	setenv("SLURM_JOB_ID", "17", 1);
	path_is("/x/%j-%t", "prog", "/x/17-3");
	/* torchrun, once on each node by srun */
	setenv("RANK", "25", 1);
	setenv("TORCHELASTIC_RUN_ID", "none", 1);
	path_is("/x/%j-%t", "prog", "/x/17-25");
	clear_ranks();
	setenv("RANK", "2", 1);
	setenv("TORCHELASTIC_RUN_ID", "none", 1);
	path_is("/x/%j-%t", "prog", "/x/nojob-2");
	setenv("TORCHELASTIC_RUN_ID", "llama/70b", 1);
	path_is("/x/%j-%t", "prog", "/x/llama_70b-2");
	clear_ranks();
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	setenv("PMIX_NAMESPACE", "2949382145", 1);
	path_is("/x/%j-%t", "prog", "/x/2949382145-1");
	clear_ranks();
	setenv("PMI_RANK", "../1", 1);
	setenv("PBS_JOBID", "", 1);
	path_is("/x/%j-%t", "prog", "/x/nojob-_._1");
	/* Not longer than a file's name may be. */
	setenv("PBS_JOBID", "123456789012345678901234567890123456789012345678901234567890123456789", 1);
	snprintf(expected, sizeof(expected), "/x/%.64s", getenv("PBS_JOBID"));
	path_is("/x/%j", "prog", expected);
	clear_ranks();
}

TEST(a_folder_holds_a_log_per_rank)
{
	struct utsname system;
	char expected[1024];

	clear_ranks();
	uname(&system);
	setenv("OMPI_COMM_WORLD_RANK", "1", 1);
	snprintf(expected, sizeof(expected), "%s/%s-1-prog-%d.jsonl", folder, system.nodename, getpid());
	path_is(folder, "prog", expected);
	setenv("SLURM_JOB_ID", "17", 1);
	snprintf(expected, sizeof(expected), "%s/17-%s-1-prog-%d.jsonl", folder, system.nodename, getpid());
	path_is(folder, "prog", expected);
	/* A job's own helpers have no rank. */
	unsetenv("OMPI_COMM_WORLD_RANK");
	snprintf(expected, sizeof(expected), "%s/prog-%d.jsonl", folder, getpid());
	path_is(folder, "prog", expected);
	clear_ranks();
}

/* A program chooses its own name. */
TEST(names_do_not_climb)
{
	path_is("/x/%e/log", "..", "/x/_./log");
	path_is("/x/%e", "../../etc/passwd", "/x/_._.._etc_passwd");
	path_is("/x/%e", "a\nb", "/x/a_b");
	path_is("/x/%e", "a\x1f b\x7f\xc3\xa4", "/x/a_ b\x7f\xc3\xa4");
	path_is("/x/%e", "a.b", "/x/a.b");
	path_is("/x/%e", "", "/x/program");
}

TEST(problems_are_told)
{
	char pattern[5000];

	spill_log_path_find(&found, "/x/%u", "prog", SPILL_LOG_SUFFIX);
	assert_non_null(strstr(found.problem, "%h, %e, %p"));
	assert_string_equal(found.path, "");
	spill_log_path_find(&found, "/x/100%", "prog", SPILL_LOG_SUFFIX);
	assert_non_null(found.problem);
	memset(pattern, 'x', sizeof(pattern));
	pattern[0] = '/';
	pattern[sizeof(pattern) - 1] = '\0';
	spill_log_path_find(&found, pattern, "prog", SPILL_LOG_SUFFIX);
	assert_non_null(strstr(found.problem, "too long"));
	/* The last that is told apart from one that was cut. */
	pattern[sizeof(found.path) - 2] = '\0';
	path_is(pattern, "prog", pattern);
	pattern[sizeof(found.path) - 2] = 'x';
	pattern[sizeof(found.path) - 1] = '\0';
	there_is_no_log(pattern, "too long");
}

int main(void)
{
	return run_unit_tests(make_folder, remove_folder);
}

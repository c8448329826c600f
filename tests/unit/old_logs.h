/* Old logs in the folder of a test, as runs left them, and the start that tidies. */
#ifndef SPILL_TEST_OLD_LOGS_H
#define SPILL_TEST_OLD_LOGS_H

#include <fcntl.h>
#include <sys/utsname.h>
#include <time.h>

#include "log_file.h"
#include "logtest.h"

#define EXIT_LINE \
	"{\"v\":1,\"kind\":\"exit\",\"t\":2.000000,\"how\":\"exit\",\"allocs\":0,\"frees\":0,\"spills\":0," \
	"\"ooms\":0," \
	"\"live\":{\"device_bytes\":0,\"host_bytes\":0,\"managed_bytes\":0}," \
	"\"peak\":{\"device_bytes\":0,\"host_bytes\":0,\"managed_bytes\":0}," \
	"\"spilled\":{\"device_bytes\":0,\"host_bytes\":0,\"managed_bytes\":0},\"hits\":[]}\n"
#define NOTE_LINE "{\"v\":1,\"kind\":\"note\",\"t\":1.000000,\"tid\":1,\"code\":\"c\",\"text\":\"t\"}\n"

static struct utsname machine;
static char boot[64];
static inline int here(void **state)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "r");

	if (uname(&machine) != 0 || !file || fscanf(file, "%63s", boot) != 1)
		return -1;
	fclose(file);
	return make_folder(state);
}

static inline bool there(const char *name)
{
	struct stat now;

	return lstat(in_folder(name), &now) == 0;
}

/* So many seconds older than the first one: no two the same, however long it takes to make them. */
static inline void age(const char *name, unsigned seconds)
{
	static struct timespec first;
	struct timespec now[2];

	if (!first.tv_sec)
		clock_gettime(CLOCK_REALTIME, &first);
	now[0] = first;
	now[0].tv_sec -= seconds;
	now[1] = now[0];
	assert_int_equal(utimensat(AT_FDCWD, in_folder(name), now, AT_SYMLINK_NOFOLLOW), 0);
}

static inline void make(const char *name, const char *content, unsigned seconds)
{
	FILE *file = fopen(in_folder(name), "w");

	assert_non_null(file);
	assert_true(fputs(content, file) >= 0);
	fclose(file);
	age(name, seconds);
}

static inline const char *start_of(const char *host, const char *on_boot, pid_t pid)
{
	static char line[1024];

	snprintf(line, sizeof(line),
	         "{\"v\":1,\"kind\":\"start\",\"t\":0.000000,\"boot\":\"%s\",\"host\":\"%s\",\"pid\":%d,"
	         "\"later\":[]}\n",
	         on_boot, host, pid);
	return line;
}

static inline void make_log(const char *name, const char *host, const char *on_boot, pid_t pid,
                            const char *rest, unsigned seconds)
{
	char content[4096];

	snprintf(content, sizeof(content), "%s%s", start_of(host, on_boot, pid), rest);
	make(name, content, seconds);
}

/* Of a program on another machine, that has ended. */
static inline void make_ended(const char *name, unsigned seconds)
{
	make_log(name, "elsewhere", "b", 1, EXIT_LINE, seconds);
}

/* As a start would, with a log of its own. */
static inline void keep(unsigned count)
{
	struct spill_log_file own;
	char name[32];

	snprintf(name, sizeof(name), "own-%d.jsonl", getpid());
	assert_null(spill_log_file_open(&own, in_folder(name)));
	spill_log_keep(in_folder(name), &own, count);
	assert_int_equal(spill_log_file_look(&own), SPILL_LOG_FILE_OURS);
	assert_true(there(name));
	spill_log_file_close(&own);
}

static inline pid_t dead(void)
{
	pid_t pid = fork();

	if (pid == 0)
		syscall_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

#endif

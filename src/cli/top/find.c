#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "process_status.h"
#include "top.h"

/* The link of such a memfd in /proc/PID/fd. */
#define PAGE_LINK "/memfd:" SPILL_LIVE_PAGE_NAME " (deleted)"

void cli_top_free(struct cli_top_look *look)
{
	free(look->processes);
	memset(look, 0, sizeof(*look));
}

static uint64_t now_us(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void read_begin(int folder, const char *name, char *text, size_t size)
{
	int fd = openat(folder, name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, size - 1);

	text[length < 0 ? 0 : length] = '\0';
	if (fd >= 0)
		close(fd);
}

/* proc(5): field 22 of stat. */
static uint64_t start_ticks(int folder)
{
	char text[1024];
	const char *ticks;

	read_begin(folder, "stat", text, sizeof(text));
	ticks = cli_stat_field(text, 22);
	return ticks ? strtoull(ticks, NULL, 10) : 0;
}

static bool is_owner(int folder, const struct cli_top_process *process)
{
	char text[4096];

	read_begin(folder, "status", text, sizeof(text));
	return cli_status_own_pid(text, (uint64_t)process->pid) == process->head.pid;
}

/* A clone has the same page open, perhaps under the same pid. The oldest owns the page. */
static void add_process(struct cli_top_look *look, const struct cli_top_process *process)
{
	for (size_t i = 0; i < look->count; i++) {
		struct cli_top_process *other = &look->processes[i];

		if (other->dev != process->dev || other->ino != process->ino)
			continue;
		if (process->start_ticks < other->start_ticks)
			*other = *process;
		return;
	}
	look->processes = cli_grow(look->processes, look->count, &look->room, sizeof(*process));
	look->processes[look->count++] = *process;
}

/* True if the page is the process's own. */
static bool read_process(struct cli_top_look *look, int folder, int descriptors, const char *name, pid_t pid)
{
	static struct cli_top_process process; /* too large for the stack */
	struct stat owner;
	int fd = openat(descriptors, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	enum cli_top_page page;

	if (fd < 0) {
		look->broken += errno != ENOENT; /* ENOENT: it has ended */
		return false;
	}
	page = cli_top_page(fd, &process);
	close(fd);
	look->broken += page == CLI_TOP_BROKEN;
	look->other += page == CLI_TOP_OTHER;
	process.pid = pid;
	if (page != CLI_TOP_READ || !is_owner(folder, &process))
		return false;
	process.start_ticks = start_ticks(folder);
	process.uid = fstat(folder, &owner) == 0 ? owner.st_uid : (uid_t)-1;
	add_process(look, &process);
	return true;
}

static bool is_page(int descriptors, const char *name)
{
	char target[sizeof(PAGE_LINK) + 1];
	ssize_t length = readlinkat(descriptors, name, target, sizeof(target));

	return length == sizeof(PAGE_LINK) - 1 && !memcmp(target, PAGE_LINK, sizeof(PAGE_LINK) - 1);
}

static void examine_process(struct cli_top_look *look, int folder, pid_t pid)
{
	int descriptors = openat(folder, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *list = descriptors < 0 ? NULL : fdopendir(descriptors);
	const struct dirent *entry;

	if (!list) {
		look->closed += errno == EACCES || errno == EPERM;
		if (descriptors >= 0)
			close(descriptors);
		return;
	}
	/* A process has one page of its own. One that offers more means harm: each is a row, and takes memory. */
	while ((entry = readdir(list)) && !(is_page(descriptors, entry->d_name) &&
	                                    read_process(look, folder, descriptors, entry->d_name, pid)))
		;
	closedir(list);
}

void cli_top_look(struct cli_top_look *look, const char *proc)
{
	DIR *list = opendir(proc);
	const struct dirent *entry;

	cli_top_free(look);
	look->at_us = now_us(CLOCK_MONOTONIC);
	look->wall_us = now_us(CLOCK_REALTIME);
	look->blind = !list;
	while (list && (entry = readdir(list))) {
		int folder;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		folder = openat(dirfd(list), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder < 0)
			continue;
		examine_process(look, folder, (pid_t)strtol(entry->d_name, NULL, 10));
		close(folder);
	}
	if (list)
		closedir(list);
}

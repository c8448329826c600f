#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log_reader.h"
#include "log_path.h"

/* The pid of the start line at the front of a file; 0 if it does not begin with one. */
static int pid_in(const char *path)
{
	struct spill_record record;
	struct cli_lines lines;
	int pid = 0;

	if (cli_lines_open(&lines, path, CLI_REGULAR) && cli_lines_next(&lines, &record) == CLI_LINE_RECORD &&
	    record.kind == SPILL_KIND_START)
		pid = record.start.pid;
	cli_lines_close(&lines);
	return pid;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The next regular file that the process has open for writing, in /proc/PID/fd; false at the end. */
static bool next_open(DIR *folder, int pid, char path[PATH_MAX], struct stat *file)
{
	struct dirent *entry;

	while ((entry = readdir(folder))) {
		struct stat link;

		snprintf(path, PATH_MAX, "/proc/%d/fd/%s", pid, entry->d_name);
		/* The link's own mode says how it was opened: proc(5). */
		if (!lstat(path, &link) && S_ISLNK(link.st_mode) && (link.st_mode & 0600) == 0200 &&
		    !stat(path, file) && S_ISREG(file->st_mode))
			return true;
	}
	return false;
}

static DIR *open_files(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return opendir(path);
}

bool log_is_open_in(int pid, int fd)
{
	DIR *folder = open_files(pid);
	struct stat ours, file;
	char path[PATH_MAX];
	bool open = false;

	while (folder && !open && !fstat(fd, &ours) && next_open(folder, pid, path, &file))
		open = is_same(&file, &ours);
	if (folder)
		closedir(folder);
	return open;
}

/* By its name if it still has it here, so that it can be followed when it is rotated; in a container it may have another. */
static bool find_open(int pid, char path[PATH_MAX])
{
	DIR *folder = open_files(pid);
	struct stat file, named;
	char name[PATH_MAX];
	bool found = false;

	while (folder && !found && next_open(folder, pid, path, &file))
		found = pid_in(path) > 0;
	if (folder)
		closedir(folder);
	if (!found)
		return false;

	ssize_t length = readlink(path, name, sizeof(name) - 1);

	name[length > 0 ? length : 0] = '\0';
	if (!stat(name, &named) && is_same(&named, &file))
		strcpy(path, name);
	return true;
}

/* Of several programs that had the number the one that wrote last. */
static bool find_left(int pid, char path[PATH_MAX])
{
	struct spill_log_path usual;
	struct cli_pieces pieces;
	struct stat file, newest = {0};
	char tail[32], *slash;
	bool found = false;

	spill_log_path_find(&usual, "", "");
	slash = strrchr(usual.path, '/');
	if (!slash)
		return false;
	*slash = '\0';
	snprintf(tail, sizeof(tail), "-%d.jsonl", pid);
	pieces = cli_pieces_find(usual.path);
	for (size_t i = 0; i < pieces.count; i++) {
		size_t length = strlen(pieces.paths[i]), behind = strlen(tail);

		if (length < behind || strcmp(pieces.paths[i] + length - behind, tail) != 0 ||
		    stat(pieces.paths[i], &file) || pid_in(pieces.paths[i]) != pid ||
		    (found && (file.st_mtim.tv_sec < newest.st_mtim.tv_sec ||
		               (file.st_mtim.tv_sec == newest.st_mtim.tv_sec &&
		                file.st_mtim.tv_nsec < newest.st_mtim.tv_nsec))))
			continue;
		found = true;
		newest = file;
		snprintf(path, PATH_MAX, "%s", pieces.paths[i]);
	}
	cli_pieces_free(&pieces);
	return found;
}

bool log_find(int pid, char path[PATH_MAX])
{
	return find_open(pid, path) || find_left(pid, path);
}

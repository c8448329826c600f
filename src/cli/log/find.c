#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log_reader.h"
#include "log_path.h"

/* The pid in the first line, if it is a start line; else 0. */
static int read_pid(const char *path)
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

/* The next regular file in /proc/PID/fd that is open for writing. False: no more. */
static bool next_written_file(DIR *folder, int pid, char path[PATH_MAX], struct stat *file)
{
	struct dirent *entry;

	while ((entry = readdir(folder))) {
		struct stat link;

		snprintf(path, PATH_MAX, "/proc/%d/fd/%s", pid, entry->d_name);
		/* The link's own mode tells how the file was opened: proc(5). */
		if (!lstat(path, &link) && S_ISLNK(link.st_mode) && (link.st_mode & 0600) == 0200 &&
		    !stat(path, file) && S_ISREG(file->st_mode))
			return true;
	}
	return false;
}

static DIR *open_descriptor_folder(int pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd", pid);
	return opendir(path);
}

bool log_is_open_in(int pid, int fd)
{
	DIR *folder = open_descriptor_folder(pid);
	struct stat ours, file;
	char path[PATH_MAX];
	bool open = false;

	while (folder && !open && !fstat(fd, &ours) && next_written_file(folder, pid, path, &file))
		open = cli_is_same_file(&file, &ours);
	if (folder)
		closedir(folder);
	return open;
}

/* Finds the open log, by its name if that exists here, so that a rotation can be followed. */
static bool find_open_log(int pid, char path[PATH_MAX])
{
	DIR *folder = open_descriptor_folder(pid);
	struct stat file, named;
	char name[PATH_MAX];
	bool found = false;

	while (folder && !found && next_written_file(folder, pid, path, &file))
		found = read_pid(path) > 0;
	if (folder)
		closedir(folder);
	if (!found)
		return false;

	ssize_t length = readlink(path, name, sizeof(name) - 1);

	name[length > 0 ? length : 0] = '\0';
	if (!stat(name, &named) && cli_is_same_file(&named, &file))
		strcpy(path, name);
	return true;
}

static bool find_newest_log(int pid, char path[PATH_MAX])
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
		size_t length = strlen(pieces.paths[i]), tail_length = strlen(tail);

		if (length < tail_length || strcmp(pieces.paths[i] + length - tail_length, tail) != 0 ||
		    stat(pieces.paths[i], &file) || read_pid(pieces.paths[i]) != pid ||
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
	return find_open_log(pid, path) || find_newest_log(pid, path);
}

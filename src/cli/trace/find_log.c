#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "find_log.h"
#include "lines.h"
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

bool cli_log_is_open_in(int pid, int fd)
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

/* The default folder of logs, without a slash at its end. False: HOME is missing. */
static bool find_default_folder(struct spill_log_path *usual)
{
	spill_log_path_find(usual, "", "", SPILL_LOG_SUFFIX);
	char *slash = strrchr(usual->path, '/');
	if (slash)
		*slash = '\0';
	return slash;
}

/* Does the path end as the log of the process does? 0: any. */
static bool has_name_of(const char *path, int pid)
{
	char tail[32];
	size_t length = strlen(path), tail_length = (size_t)snprintf(tail, sizeof(tail), "-%d.jsonl", pid);
	return !pid || (length >= tail_length && !strcmp(path + length - tail_length, tail));
}

struct candidate {
	const char *path;
	struct timespec changed;
};

/* The newest first, and of the same time by name. */
static int compare_candidates(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->changed.tv_sec != b->changed.tv_sec)
		return a->changed.tv_sec > b->changed.tv_sec ? -1 : 1;
	if (a->changed.tv_nsec != b->changed.tv_nsec)
		return a->changed.tv_nsec > b->changed.tv_nsec ? -1 : 1;
	return strverscmp(a->path, b->path);
}

/* The newest of the pieces that is a log of the process, or of any (0). Opens no older one. */
static bool choose_newest(const struct cli_pieces *pieces, int pid, char path[PATH_MAX])
{
	struct candidate *list = cli_realloc(NULL, pieces->count + 1, sizeof(*list));
	struct stat file;
	size_t count = 0;
	bool found = false;

	for (size_t i = 0; i < pieces->count; i++) {
		if (has_name_of(pieces->paths[i], pid) && !stat(pieces->paths[i], &file))
			list[count++] = (struct candidate){pieces->paths[i], file.st_mtim};
	}
	qsort(list, count, sizeof(*list), compare_candidates);
	for (size_t i = 0; i < count && !found; i++) {
		int its = read_pid(list[i].path);

		found = its && (!pid || its == pid);
		if (found)
			snprintf(path, PATH_MAX, "%s", list[i].path);
	}
	free(list);
	return found;
}

/* The newest log in the default folder, of the process or of any (0). */
static bool find_newest_log(int pid, char path[PATH_MAX])
{
	struct spill_log_path usual;
	bool found;

	if (!find_default_folder(&usual))
		return false;
	struct cli_pieces pieces = cli_pieces_find(usual.path);
	found = choose_newest(&pieces, pid, path);
	cli_pieces_free(&pieces);
	return found;
}

/* A number that names no file is a pid. */
static bool is_pid(const char *operand)
{
	size_t length = strlen(operand);
	return length && length <= 9 && !operand[strspn(operand, "0123456789")] && access(operand, F_OK);
}

static const char *find_latest(const char *command, char path[PATH_MAX])
{
	struct spill_log_path usual;
	if (find_newest_log(0, path))
		return path;
	cli_complain(command, find_default_folder(&usual) ? usual.path : "no HOME",
	             "no log is there: name a log, a folder or a process");
	return NULL;
}

const char *cli_find_log(const char *command, const char *operand, int *pid, char path[PATH_MAX])
{
	*pid = 0;
	if (!operand)
		return find_latest(command, path);
	if (!is_pid(operand))
		return operand;
	*pid = (int)strtol(operand, NULL, 10);
	if (find_open_log(*pid, path) || find_newest_log(*pid, path))
		return path;
	cli_complain(command, operand,
	             "no such file, and no process with that number has a log open or left one in the "
	             "default folder");
	return NULL;
}

/*
 * log.keep. A log is removed if all of this holds:
 *  - It is a regular file of ours with one name.
 *  - It has the form of a name in the default folder.
 *  - It begins with a start line.
 *  - Its writer has ended.
 *
 * A writer holds the file's lock (log_file.c). If we get the lock, nobody writes, even if the pid
 * belongs to another container. But a writer loses its lock if the program closes the descriptor,
 * and other machines may not see the lock. So the run must also have its exit line, or its pid must
 * not exist on this machine.
 */
#include "log_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "record_read.h"
#include "small_file.h"

/*
 * Limit of files that are looked at. A file is removed only if `keep` newer ones are among these,
 * so `keep` newer ones are among all.
 */
#define CANDIDATES 512
#define NAME_BLOCKS 16 /* limit of blocks of names that are read */
#define BLOCK 32768
#define TAIL 16384                 /* the part in which an exit line is looked for */
#define LINE ((size_t)1024 * 1024) /* the limit of a start line (start_line.c) */

struct candidate {
	struct timespec modified;
	char name[256];
};

/* Mapped, because malloc may be the program's own. Most of its pages stay untouched. */
struct log_folder {
	int fd; /* of the folder */
	const struct spill_log_file *own;
	const char *own_name;
	struct utsname machine;
	char boot[64];
	unsigned count;
	struct candidate candidates[CANDIDATES];
	const struct candidate *newest_first[CANDIDATES];
	_Alignas(struct dirent64) char block[BLOCK];
	char tail[TAIL];
	char line[LINE];
	char scratch[SPILL_RECORD_SCRATCH(LINE)];
};

/* NAME-PID.jsonl */
static bool is_log_name(const char *name)
{
	size_t length = strlen(name), suffix = strlen(".jsonl");

	if (length <= suffix || strcmp(name + length - suffix, ".jsonl") != 0)
		return false;
	const char *digits = name + length - suffix;
	while (digits > name && digits[-1] >= '0' && digits[-1] <= '9')
		digits--;
	return digits < name + length - suffix && digits > name + 1 && digits[-1] == '-';
}

static void list_candidates(struct log_folder *logs)
{
	ssize_t count;

	for (unsigned blocks = 0; blocks < NAME_BLOCKS; blocks++) {
		count = getdents64(logs->fd, logs->block, BLOCK);
		for (char *next = logs->block; count > 0 && next < logs->block + count;) {
			const struct dirent64 *entry = (const struct dirent64 *)(const void *)next;

			next += entry->d_reclen;
			if (!is_log_name(entry->d_name) || strcmp(entry->d_name, logs->own_name) == 0)
				continue;
			if (logs->count == CANDIDATES)
				return;
			strcpy(logs->candidates[logs->count++].name, entry->d_name);
		}
		if (count <= 0)
			return;
	}
}

static bool is_other_log(const struct log_folder *logs, const struct stat *file)
{
	return S_ISREG(file->st_mode) && file->st_uid == geteuid() && file->st_nlink == 1 &&
	       !(file->st_dev == logs->own->dev && file->st_ino == logs->own->ino);
}

static bool newer(const struct candidate *a, const struct candidate *b)
{
	if (a->modified.tv_sec != b->modified.tv_sec)
		return a->modified.tv_sec > b->modified.tv_sec;
	return a->modified.tv_nsec > b->modified.tv_nsec;
}

/* Fills newest_first without qsort, which allocates. Leaves out empty files: they just begin. */
static unsigned sort_candidates(struct log_folder *logs)
{
	const struct candidate **sorted = logs->newest_first;
	struct stat now;
	unsigned count = 0, rank;

	for (unsigned i = 0; i < logs->count; i++) {
		struct candidate *candidate = &logs->candidates[i];

		if (fstatat(logs->fd, candidate->name, &now, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !is_other_log(logs, &now) || now.st_size == 0)
			continue;
		candidate->modified = now.st_mtim;
		for (rank = count++; rank > 0 && newer(candidate, sorted[rank - 1]); rank--)
			sorted[rank] = sorted[rank - 1];
		sorted[rank] = candidate;
	}
	return count;
}

/* Reads the first line. Few start lines need more than the first read. */
static bool read_start(struct log_folder *logs, int fd, struct spill_record *record)
{
	const char *newline = NULL;
	size_t wrong;

	for (size_t size = TAIL; !newline && size <= LINE; size *= LINE / TAIL) {
		ssize_t count = pread(fd, logs->line, size, 0);

		newline = count > 0 ? memchr(logs->line, '\n', (size_t)count) : NULL;
	}
	return newline &&
	       !spill_record_read(logs->line, (size_t)(newline - logs->line), logs->scratch,
	                          sizeof(logs->scratch), record, &wrong) &&
	       record->kind == SPILL_KIND_START;
}

/*
 * Looks for an exit line, from the end of the file backward. After the exit line, frees of other
 * libraries' destructors may follow, or the start line of the next run.
 */
static bool has_ended(struct log_folder *logs, int fd, off_t size)
{
	ssize_t count = pread(fd, logs->tail, TAIL, size > TAIL ? size - TAIL : 0);
	const char *end = logs->tail + (count > 0 ? count : 0);
	struct spill_record record;
	size_t wrong;

	while ((end = memrchr(logs->tail, '\n', (size_t)(end - logs->tail)))) {
		const char *before = memrchr(logs->tail, '\n', (size_t)(end - logs->tail));
		const char *line = before ? before + 1 : logs->tail;

		if (!spill_record_read(line, (size_t)(end - line), logs->scratch, sizeof(logs->scratch),
		                       &record, &wrong) &&
		    (record.kind == SPILL_KIND_EXIT || record.kind == SPILL_KIND_START))
			return record.kind == SPILL_KIND_EXIT;
	}
	return false;
}

static bool writer_is_gone(const struct log_folder *logs, const struct spill_record_start *start)
{
	if (!start->host || strcmp(start->host, logs->machine.nodename) != 0)
		return false;
	if (start->boot && logs->boot[0] && strcmp(start->boot, logs->boot) != 0)
		return true;
	return start->pid > 0 && kill(start->pid, 0) != 0 && errno == ESRCH;
}

/* pre: this process has locked fd */
static bool is_finished(struct log_folder *logs, int fd, struct stat *now)
{
	struct spill_record start;
	/* The start line first: has_ended reuses its scratch memory. */
	if (fstat(fd, now) != 0 || !is_other_log(logs, now) || !read_start(logs, fd, &start))
		return false;
	return writer_is_gone(logs, &start.start) || has_ended(logs, fd, now->st_size);
}

/* True if the log is finished. It is then removed, unless `keep`. */
static bool remove_finished(struct log_folder *logs, const char *name, bool keep)
{
	int fd = openat(logs->fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat opened, now;
	bool finished;

	if (fd < 0)
		return false;
	finished = flock(fd, LOCK_EX | LOCK_NB) == 0 && is_finished(logs, fd, &opened);
	if (finished && !keep && fstatat(logs->fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_dev == opened.st_dev && now.st_ino == opened.st_ino)
		unlinkat(logs->fd, name, 0);
	close(fd);
	return finished;
}

/* False if another user may write to the folder: logs are not removed there. */
static bool open_folder(struct log_folder *logs, const char *path)
{
	size_t length = (size_t)(logs->own_name - path);
	struct stat now;

	if (length >= LINE)
		return false;
	memcpy(logs->line, path, length);
	logs->line[length] = '\0';
	logs->fd = open(logs->line, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return logs->fd >= 0 && fstat(logs->fd, &now) == 0 && now.st_uid == geteuid() &&
	       (now.st_mode & 022) == 0;
}

static void remove_old_logs(struct log_folder *logs, unsigned keep)
{
	unsigned finished = 0;

	list_candidates(logs);
	if (logs->count <= keep)
		return;
	uname(&logs->machine);
	spill_small_file_read("/proc/sys/kernel/random/boot_id", logs->boot, sizeof(logs->boot));
	logs->boot[strcspn(logs->boot, "\n")] = '\0';
	for (unsigned i = 0, count = sort_candidates(logs); i < count; i++)
		finished += remove_finished(logs, logs->newest_first[i]->name, finished < keep);
}

void spill_log_keep(const char *path, const struct spill_log_file *own, unsigned keep)
{
	const char *slash = strrchr(path, '/');
	struct log_folder *logs;

	if (!slash)
		return;
	logs = mmap(NULL, sizeof(*logs), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (logs == MAP_FAILED)
		return;
	logs->own = own;
	logs->own_name = slash + 1;
	if (open_folder(logs, path))
		remove_old_logs(logs, keep);
	if (logs->fd >= 0)
		close(logs->fd);
	munmap(logs, sizeof(*logs));
}

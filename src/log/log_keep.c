/*
 * A log is removed if it is a regular file of ours with one name, called as logs in the default folder are, begins with a start
 * line, and its writer is gone. Whoever writes holds the file's lock (log_file.c), so that taking it for ourselves says that nobody
 * does, also where a pid says nothing: in another container. A lock is lost with a descriptor that the program closed, and other
 * machines may not see it: so besides, the run has its exit line, or on this machine no process of that number lives.
 */
#include "log_keep.h"

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

/* Of more files those that the folder names first: each that is removed has `keep` newer ones among them, and so among all. */
#define CANDIDATES 512
#define NAMES 16 /* blocks of names that are read at most */
#define BLOCK 32768
#define TAIL 16384                 /* in which an exit line is looked for */
#define LINE ((size_t)1024 * 1024) /* a start line is never longer (start_line.c) */

struct candidate {
	struct timespec modified;
	char name[256];
};

/* Pages of our own for a moment, of which only what is needed is touched; malloc may be the program's own. */
struct keeping {
	int folder;
	const struct spill_logfile *own;
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
	const char *at = name + length - suffix;
	while (at > name && at[-1] >= '0' && at[-1] <= '9')
		at--;
	return at < name + length - suffix && at > name + 1 && at[-1] == '-';
}

static void find(struct keeping *keeping)
{
	ssize_t count;

	for (unsigned blocks = 0; blocks < NAMES; blocks++) {
		count = getdents64(keeping->folder, keeping->block, BLOCK);
		for (char *at = keeping->block; count > 0 && at < keeping->block + count;) {
			const struct dirent64 *entry = (const struct dirent64 *)(const void *)at;

			at += entry->d_reclen;
			if (!is_log_name(entry->d_name) || strcmp(entry->d_name, keeping->own_name) == 0)
				continue;
			if (keeping->count == CANDIDATES)
				return;
			strcpy(keeping->candidates[keeping->count++].name, entry->d_name);
		}
		if (count <= 0)
			return;
	}
}

static bool is_ours(const struct keeping *keeping, const struct stat *file)
{
	return S_ISREG(file->st_mode) && file->st_uid == geteuid() && file->st_nlink == 1 &&
	       !(file->st_dev == keeping->own->dev && file->st_ino == keeping->own->ino);
}

static bool newer(const struct candidate *a, const struct candidate *b)
{
	if (a->modified.tv_sec != b->modified.tv_sec)
		return a->modified.tv_sec > b->modified.tv_sec;
	return a->modified.tv_nsec > b->modified.tv_nsec;
}

/* Not qsort, which takes memory. What is empty is being begun: not even its lock is asked for. Returns how many there are. */
static unsigned sort(struct keeping *keeping)
{
	const struct candidate **sorted = keeping->newest_first;
	struct stat now;
	unsigned count = 0, at;

	for (unsigned i = 0; i < keeping->count; i++) {
		struct candidate *candidate = &keeping->candidates[i];

		if (fstatat(keeping->folder, candidate->name, &now, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !is_ours(keeping, &now) || now.st_size == 0)
			continue;
		candidate->modified = now.st_mtim;
		for (at = count++; at > 0 && newer(candidate, sorted[at - 1]); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = candidate;
	}
	return count;
}

/* Few start lines need more than the first read. */
static bool read_start(struct keeping *keeping, int fd, struct spill_record *record)
{
	const char *newline = NULL;
	size_t at;

	for (size_t size = TAIL; !newline && size <= LINE; size *= LINE / TAIL) {
		ssize_t count = pread(fd, keeping->line, size, 0);

		newline = count > 0 ? memchr(keeping->line, '\n', (size_t)count) : NULL;
	}
	return newline &&
	       !spill_record_read(keeping->line, (size_t)(newline - keeping->line), keeping->scratch,
	                          sizeof(keeping->scratch), record, &at) &&
	       record->kind == SPILL_KIND_START;
}

/*
 * From the last whole line on, as it mostly is the exit line; behind that may be frees of other libraries' destructors, or the start
 * of the next run.
 */
static bool has_ended(struct keeping *keeping, int fd, off_t size)
{
	ssize_t count = pread(fd, keeping->tail, TAIL, size > TAIL ? size - TAIL : 0);
	const char *end = keeping->tail + (count > 0 ? count : 0);
	struct spill_record record;
	size_t wrong;

	while ((end = memrchr(keeping->tail, '\n', (size_t)(end - keeping->tail)))) {
		const char *before = memrchr(keeping->tail, '\n', (size_t)(end - keeping->tail));
		const char *line = before ? before + 1 : keeping->tail;

		if (!spill_record_read(line, (size_t)(end - line), keeping->scratch, sizeof(keeping->scratch),
		                       &record, &wrong) &&
		    (record.kind == SPILL_KIND_EXIT || record.kind == SPILL_KIND_START))
			return record.kind == SPILL_KIND_EXIT;
	}
	return false;
}

static bool is_gone(const struct keeping *keeping, const struct spill_record_start *start)
{
	if (!start->host || strcmp(start->host, keeping->machine.nodename) != 0)
		return false;
	if (start->boot && keeping->boot[0] && strcmp(start->boot, keeping->boot) != 0)
		return true;
	return start->pid > 0 && kill(start->pid, 0) != 0 && errno == ESRCH;
}

/* pre: fd is locked for us alone */
static bool is_finished(struct keeping *keeping, int fd, struct stat *now)
{
	struct spill_record start;
	/* Asked first: reading the tail uses the scratch, too. */
	if (fstat(fd, now) != 0 || !is_ours(keeping, now) || !read_start(keeping, fd, &start))
		return false;
	return is_gone(keeping, &start.start) || has_ended(keeping, fd, now->st_size);
}

/* True if it is finished; it is then removed unless it is to be kept. */
static bool settle(struct keeping *keeping, const char *name, bool keep)
{
	int fd = openat(keeping->folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat opened, now;
	bool finished;

	if (fd < 0)
		return false;
	finished = flock(fd, LOCK_EX | LOCK_NB) == 0 && is_finished(keeping, fd, &opened);
	if (finished && !keep && fstatat(keeping->folder, name, &now, AT_SYMLINK_NOFOLLOW) == 0 &&
	    now.st_dev == opened.st_dev && now.st_ino == opened.st_ino)
		unlinkat(keeping->folder, name, 0);
	close(fd);
	return finished;
}

/* A folder in which somebody else may put things is not tidied. */
static bool open_folder(struct keeping *keeping, const char *path)
{
	size_t length = (size_t)(keeping->own_name - path);
	struct stat now;

	if (length >= LINE)
		return false;
	memcpy(keeping->line, path, length);
	keeping->line[length] = '\0';
	keeping->folder = open(keeping->line, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return keeping->folder >= 0 && fstat(keeping->folder, &now) == 0 && now.st_uid == geteuid() &&
	       (now.st_mode & 022) == 0;
}

static void tidy(struct keeping *keeping, unsigned keep)
{
	unsigned finished = 0;

	find(keeping);
	if (keeping->count <= keep)
		return;
	uname(&keeping->machine);
	spill_small_file_read("/proc/sys/kernel/random/boot_id", keeping->boot, sizeof(keeping->boot));
	keeping->boot[strcspn(keeping->boot, "\n")] = '\0';
	for (unsigned i = 0, count = sort(keeping); i < count; i++)
		finished += settle(keeping, keeping->newest_first[i]->name, finished < keep);
}

void spill_logkeep(const char *path, const struct spill_logfile *own, unsigned keep)
{
	const char *slash = strrchr(path, '/');
	struct keeping *keeping;

	if (!slash)
		return;
	keeping = mmap(NULL, sizeof(*keeping), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (keeping == MAP_FAILED)
		return;
	keeping->own = own;
	keeping->own_name = slash + 1;
	if (open_folder(keeping, path))
		tidy(keeping, keep);
	if (keeping->folder >= 0)
		close(keeping->folder);
	munmap(keeping, sizeof(*keeping));
}

/*
 * The log's file. It is opened so that no other user can redirect our writes, and watched while the
 * program lives. Several processes may share one name: the pattern may lack %p, or containers may
 * repeat a pid. Each process then has a file of its own, NAME.jsonl, NAME-2.jsonl, …, so that a
 * reader knows whose a line is.
 */
#ifndef SPILL_LOG_FILE_H
#define SPILL_LOG_FILE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct spill_log_file {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
	off_t end; /* size of the file when we last looked or wrote: a smaller file was truncated */
};

enum spill_log_file_state {
	SPILL_LOG_FILE_OURS,
	SPILL_LOG_FILE_CUT,     /* ours, but truncated by somebody */
	SPILL_LOG_FILE_LOST,    /* the program closed our descriptor, and may have reused its number */
	SPILL_LOG_FILE_UNKNOWN, /* the kernel does not tell now; errno says why */
};

/* The problem of a file that another process writes. Compare the address. */
extern const char spill_log_file_taken[];

#define SPILL_LOG_NAME 4096

/* The first open needs `name`; all other members are zero then. */
struct spill_log_name {
	char name[SPILL_LOG_NAME]; /* the path without a number */
	const char *_Atomic path;  /* the path of the last open; NULL: none yet */
	/* `path` is one of these. A thread without the lock may still read the other. */
	char paths[2][SPILL_LOG_NAME];
};

/*
 * Opens or creates `path` for appending and holds its lock. Follows no link, and accepts only a
 * regular file of the effective user that has one name. The file gets mode 0600. Returns NULL, or a
 * static text that names the problem; file->fd is then -1.
 */
const char *spill_log_file_open(struct spill_log_file *file, const char *path);

/*
 * Opens the log's file under its last path, or under the first of 256 names that no other process
 * uses. A later open also skips files of other runs. `file` holds the previous file, and then the
 * new one. Returns as spill_log_file_open does. pre: in a guarded section (fd.h)
 */
const char *spill_log_name_open(struct spill_log_name *name, struct spill_log_file *file);

/* The state of the descriptor and its file since the last look. One system call. From LOST on, nothing may be written. */
enum spill_log_file_state spill_log_file_look(struct spill_log_file *file);

/* True if `path` no longer names this file. One system call. */
bool spill_log_file_moved(const struct spill_log_file *file, const char *path);

/* Closes the descriptor if it is still ours. */
void spill_log_file_close(struct spill_log_file *file);

/* Appends; returns the bytes written. *error: errno value or 0. pre: in a guarded section */
size_t spill_log_file_append(struct spill_log_file *file, const char *bytes, size_t count, int *error);

/*
 * log.keep: removes the oldest finished logs in the folder of `path` beyond the newest `keep` of
 * them. The open log `own` at `path` does not count. The number of files that it looks at is
 * limited, so that a start does not wait. Later starts remove the rest. Never fails; may change
 * errno. log_keep.c says which files it removes.
 */
void spill_log_keep(const char *path, const struct spill_log_file *own, unsigned keep);

#endif

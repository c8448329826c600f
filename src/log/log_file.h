/* The log's file: opened so that nobody can make us write elsewhere, and watched while the program lives. */
#ifndef SPILL_LOG_FILE_H
#define SPILL_LOG_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct spill_logfile {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
	off_t end; /* the file was at least so long when we last looked or wrote */
};

enum spill_log_file_state {
	SPILL_LOG_FILE_OURS,
	SPILL_LOG_FILE_CUT,  /* ours, and shorter than what we wrote: somebody truncated it */
	SPILL_LOG_FILE_LOST, /* the program closed our descriptor, and may have got its number again */
};

/* What spill_log_file_open says of a file that another process writes. */
extern const char spill_log_file_taken[];

/*
 * Opens or creates `path` for appending, and holds its lock: never through a link, only a regular file of the effective user's with
 * one name, made 0600. NULL, or a static text that says what is wrong; `file` is then {-1}.
 */
const char *spill_log_file_open(struct spill_logfile *file, const char *path);

/* What became of the descriptor, and the file behind it, since it was last asked. One system call. */
enum spill_log_file_state spill_log_file_look(struct spill_logfile *file);

/* Is it another file that `path` names now, or none? One system call. */
bool spill_log_file_moved(const struct spill_logfile *file, const char *path);

/* Closes it if it is ours. */
void spill_log_file_close(struct spill_logfile *file);

/* Appends; returns how many bytes got in, and the errno value that stopped it, or 0. pre: in a quiet section */
size_t spill_log_file_append(struct spill_logfile *file, const char *bytes, size_t count, int *error);

#endif

/* The log's file: opened so that nobody can make us write elsewhere, and watched while the program lives. */
#ifndef SPILL_LOGFILE_H
#define SPILL_LOGFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

struct spill_logfile {
	int fd; /* -1: none */
	dev_t dev;
	ino_t ino;
};

/*
 * Opens or creates `path` for appending: never through a link, only a regular file of the effective user's with
 * one name, made 0600. NULL, or a static text that says what is wrong; `file` is then {-1}.
 */
const char *spill_logfile_open(struct spill_logfile *file, const char *path);

/* Is the descriptor still the file that we opened? The program may have closed it and got the number again. */
bool spill_logfile_ours(const struct spill_logfile *file);

/* Closes it if it is ours. */
void spill_logfile_close(struct spill_logfile *file);

/* Appends; returns how many bytes got in, and the errno value that stopped it, or 0. pre: in a quiet section */
size_t spill_logfile_append(const struct spill_logfile *file, const char *bytes, size_t count, int *error);

#endif

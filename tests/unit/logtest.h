/*
 * Shared by the tests of the log: a folder for each test, and a strict check of the lines of a
 * file. Tests run in children, because limits, signals and descriptors belong to a process.
 */
#ifndef LOGTEST_H
#define LOGTEST_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "log.h"
#include "stderr.h"
#include "policy.h"
#include "record.h"
#include "unit.h"

/* In a child, cmocka's longjmp leads nowhere: say what is wrong on the parent's stdout and leave. */
#define CHECK(what) \
	do { \
		if (!(what)) { \
			dprintf(STDOUT_FILENO, "%s:%d: %s\n", __FILE__, __LINE__, #what); \
			syscall_exit(1); \
		} \
	} while (0)

#define SKIPPED 77

/* Not _exit: some of these programs interpose it. */
void syscall_exit(int status) __attribute__((noreturn));

/* Runs `body` in a child with a deadline against deadlocks; returns its wait status. */
int child_status(void (*body)(void));

/* The same, and the test passes or is skipped with the child. */
void in_child(void (*body)(void));

/* A new folder, removed by remove_folder; `folder` is its path. */
extern char folder[64];
int make_folder(void **state);
int remove_folder(void **state);

/* "folder/name" in static storage, of which there are eight. */
const char *in_folder(const char *name);

/* Opens the log at `pattern` with two devices and two options. */
void open_log_at(const char *pattern);

/* The same with another log.max. */
void open_log_of(const char *pattern, uint64_t max, enum spill_log_stderr how);

/* A line that is valid by itself: kind "note", text `number` of `thread`. */
size_t test_line(char *buffer, size_t size, unsigned thread, unsigned number);

/* The whole file; fails the child if it cannot be read. Free it. */
char *read_all(const char *path, size_t *length);

struct lines {
	unsigned count;
	cJSON **at;
};

/* Every line of the file, parsed; fails the child on one that is not whole. */
struct lines read_lines(const char *path);
const char *text_of(const cJSON *line, const char *key);
/* Lines whose `key` is `value`. */
unsigned count_lines(const struct lines *lines, const char *key, const char *value);

/* A descriptor of this process that leads to `path`, or -1. */
int find_descriptor(const char *path);

#endif

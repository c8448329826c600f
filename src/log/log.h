/*
 * log: this process's log file, and its lines on stderr. The log is JSON Lines, append-only (docs/log-format.md), and safe for the
 * host program in every way that docs/design.md lists: no signal from a write, no errno change, no cancellation point, no locale,
 * nothing in a process that makes no GPU memory call.
 *
 * It decides nothing, and never fails the caller: a line that cannot be written is counted. Begin with this header, then note.h
 * and loud_line.h.
 */
#ifndef SPILL_LOG_H
#define SPILL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"
#include "record.h"

/* A device as the start line names it; empty strings and 0 where the vendor did not say. */
struct spill_log_device {
	char name[96], uuid[48], pci[24];
	uint64_t bytes;
	enum spill_memory memory; /* AUTO: not asked */
};

/* One effective option and where its value came from ("default", "environment", "FILE:LINE"). */
struct spill_log_option {
	const char *name; /* "device.limit" */
	char value[1280]; /* a rule's is the longest (rule_option.h) */
	char source[512];
};

struct spill_log_start {
	const char *backend; /* "cuda" or "hip" */
	int driver_version;  /* as the vendor's version call gives it */
	const struct spill_log_device *devices;
	unsigned device_count;
	const struct spill_log_option *options;
	unsigned option_count;
};

/* The longest line. It is not on the caller's stack, which may be the program's smallest (scratch.h). */
#define SPILL_LOG_LINE 8192

/* How soon a line must be in the file. */
enum spill_log_when {
	SPILL_LOG_SOON, /* routine: with the next 4 KiB, 100 ms of activity, or at exit */
	SPILL_LOG_NOW,  /* spill, oom, note, exit: this and all before it, before the call returns */
};

/* Remembers what fd 2 is at load; called by the library's constructor. One system call. */
void spill_stderr_remember(void);

/* One line for people, "spill: " first, dropped rather than blocking or harming the host program. */
void spill_stderr_line(const char *text);

/* Whole lines that are so already, in one write, so that no other line comes between them. pre: length <= PIPE_BUF */
void spill_stderr_lines(const char *lines, size_t length);

/*
 * Opens the log and writes the start line. Called once, at the first GPU memory call, after the policy
 * is known. A log that cannot be opened is one stderr line and a library that works without a log.
 */
void spill_log_open(const struct spill_policy *policy, const struct spill_log_start *start);

/* False if there is no file: callers can skip formatting. */
bool spill_log_active(void);

/* The name of a call site, by its return address; "?" if no log will tell it, "" for NULL. Static or interned. */
const char *spill_log_caller(const void *site);

/* Microseconds since the start line, and this thread's id as the log prints it. */
uint64_t spill_log_now_us(void);
/* The same for the beginning of what a line tells: 0, without a look at the clock, while there is no file. */
uint64_t spill_log_start_us(void);
int spill_log_tid(void);

/* False in a process that shares our memory but is not the one that opened the log (vfork, a bare clone). */
bool spill_log_ours(void);

/* Path of the open log, or "" (for the loud line and the notes). */
const char *spill_log_path(void);

/* Appends one complete line. Keeps errno. Safe from several threads. */
void spill_log_write(const char *line, size_t length, enum spill_log_when when);

/*
 * The same for a line of an allocation, a free or a move, which log.max may leave out. False if it did: then what the
 * line tells is to be counted by spill_log_drop, with the peak until now. A drop line with the sums goes before the next
 * line of spill_log_write.
 */
bool spill_log_offer(const char *line, size_t length, enum spill_log_when when);
void spill_log_drop(enum spill_drop kind, const struct spill_bytes *bytes, const struct spill_bytes *peak);

/* Writes out what is buffered; also from abort, assertion failure and _exit. Async-signal-tolerant: takes no lock
 * that it could already hold. */
void spill_log_flush(void);

/* The process is ending: flushes, and from now on every line goes out at once, since nothing would flush it. */
void spill_log_at_exit(void);

/* fork: prepare/parent/child keep the lock sane; the child has no log until its own first GPU memory call. */
void spill_log_fork_prepare(void);
void spill_log_fork_parent(void);
void spill_log_fork_child(void);

#endif

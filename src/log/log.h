/*
 * log: this process's log file and its lines on stderr. The log is append-only JSON Lines
 * (docs/log-format.md). Writing it never harms the host program: no signal, no change of errno, no
 * cancellation point, no locale. A process that makes no GPU memory call gets no log.
 *
 * log decides nothing and never fails the caller: it counts lines that it cannot write. Begin with
 * this header, then note.h and stderr.h.
 */
#ifndef SPILL_LOG_H
#define SPILL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy.h"
#include "record.h"

/* A device in the start line. A value is "" or 0 if the vendor does not tell it. */
struct spill_log_device {
	char name[96], uuid[48], pci[24];
	uint64_t bytes;
	enum spill_memory memory; /* AUTO: not asked */
};

/* An effective option and the source of its value ("default", "environment", "FILE:LINE"). */
struct spill_log_option {
	const char *name; /* "device.limit" */
	char value[1472]; /* a rule has the longest value (rule_option.h) */
	char source[512];
};

struct spill_log_start {
	const char *backend; /* "cuda" or "hip" */
	int driver_version;  /* as the vendor's call returns it */
	const struct spill_log_device *devices;
	unsigned device_count;
	const struct spill_log_option *options;
	unsigned option_count;
};

/* The longest line. It needs spill_scratch_take, because the caller's stack may be small. */
#define SPILL_LOG_LINE 8192

/* How soon a line must be in the file. */
enum spill_log_when {
	SPILL_LOG_SOON, /* routine: with the next 4 KiB, after 100 ms of activity, or at exit. */
	SPILL_LOG_NOW,  /* spill, oom, note, exit: with all earlier lines, before we return. */
};

/*
 * Opens the log and writes the start line. Called once, at the first GPU memory call, when the
 * policy is known. If the log cannot be opened, one line on stderr says so, and the library works
 * without a log.
 */
void spill_log_open(const struct spill_policy *policy, const struct spill_log_start *start);

/* False if there is no log: callers can skip formatting. */
bool spill_log_active(void);

/* The name of the call site. "" for NULL, "?" without a log. Static or interned. */
const char *spill_log_caller(const void *site);

/* Microseconds since the start line. */
uint64_t spill_log_now_us(void);
/* The same for the start of an operation. Returns 0 at once if there is no log. */
uint64_t spill_log_start_us(void);
/* The id of this thread in the log. */
int spill_log_tid(void);

/* False in a process that shares our memory but did not open the log (vfork, a bare clone). */
bool spill_log_ours(void);

/* The path of the open log, or "" without a log. */
const char *spill_log_path(void);

/* Appends one complete line. Keeps errno. Safe from several threads. */
void spill_log_write(const char *line, size_t length, enum spill_log_when when);

/*
 * The same for a line of an allocation, a free or a move, which log.max may leave out. Returns
 * false then, and the caller counts the line with spill_log_drop. A drop line with the sums
 * precedes the next line of spill_log_write.
 */
bool spill_log_offer(const char *line, size_t length, enum spill_log_when when);
/* Counts events whose line was left out. `totals`: of the run until now, including them. */
void spill_log_drop(enum spill_drop kind, const struct spill_sum *sum, const struct spill_totals *totals);

/* Activity without a line, at `now_us`: writes routine lines that have waited long enough. */
void spill_log_activity(uint64_t now_us);

/* Writes the buffer, also from abort and _exit. Takes no lock that this thread holds. */
void spill_log_flush(void);

/* At the end of the process: flushes, and makes each later line be written at once. */
void spill_log_at_exit(void);

/* Fork handlers. The child has no log until its own first GPU memory call. */
void spill_log_fork_prepare(void);
void spill_log_fork_parent(void);
void spill_log_fork_child(void);

#endif

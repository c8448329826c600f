/*
 * record: the lines of the log, as structures that are written and read.
 *
 * record.def lists every member of every kind of line. Of it are made the reader (record_read.h),
 * the schema and the tables of docs/log-format.md. The room never opens a log: it works in the
 * caller's buffer. It formats integers itself, because printf follows the host program's locale and
 * is not safe where we are called. Begin reading here, with the writer.
 */
#ifndef SPILL_RECORD_H
#define SPILL_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "words.h"

/* Version of the format. It grows when the meaning of a member changes. */
#define SPILL_RECORD_VERSION 1

/* Prefix of a rule's name among the options of a start line. */
#define SPILL_RECORD_RULE "rule "

/* THE list of kinds of lines, for the enum, the names and the documents. */
#define SPILL_KINDS(X) \
	X(START, "start", "first line of a run: program, machine, devices, policy") \
	X(ALLOC, "alloc", "one allocation and where it was placed") \
	X(FREE, "free", "end of an allocation; names the seq of its alloc") \
	X(MOVE, "move", "part of an allocation that left the device or came back") \
	X(SUM, "sum", "allocations and frees of one call site that have no lines of their own") \
	X(OOM, "oom", "an out of memory that the program saw") \
	X(FILE, "file", "a program or library that `caller` names") \
	X(NOTE, "note", "a message for people") \
	X(DROP, "drop", "sums of lines that log.max left out") \
	X(USE, "use", "use of memory on the host by kernels so far, by estimate") \
	X(EXIT, "exit", "totals at the end of the process")

enum spill_kind {
#define X(id, name, text) SPILL_KIND_##id,
	// clang-format off
	SPILL_KINDS(X)
#undef X
	SPILL_KINDS_COUNT
	// clang-format on
};

const char *spill_kind_name(enum spill_kind kind);

struct spill_attempt {
	const char *place; /* "device", "split", … */
	const char *error; /* vendor's error name, or our reason ("host.limit"); static storage */
};

/*
 * A rule's place, the whole chain, the driver asked before it and after each step that makes room,
 * and honest_first.
 */
#define SPILL_ATTEMPTS 10

/* Bytes by where they are. */
struct spill_bytes {
	uint64_t device, host, managed;
};

static inline void spill_bytes_add(struct spill_bytes *sum, const struct spill_bytes *bytes)
{
	sum->device += bytes->device;
	sum->host += bytes->host;
	sum->managed += bytes->managed;
}

static inline void spill_bytes_take(struct spill_bytes *sum, const struct spill_bytes *bytes)
{
	sum->device -= bytes->device;
	sum->host -= bytes->host;
	sum->managed -= bytes->managed;
}

/* Wherever they are. */
static inline uint64_t spill_bytes_all(const struct spill_bytes *bytes)
{
	return bytes->device + bytes->host + bytes->managed;
}

/*
 * Device bytes that the process held around an event, because events that are summed have no line.
 * {0}: there were none since the event before.
 */
struct spill_level {
	uint64_t device, device_peak; /* of its device: after it, and at most since the event before */
	uint64_t all, all_peak;       /* of all devices */
};

/* The driver's figures for a device, from the last time that we asked. total == 0: we have none. */
struct spill_seen {
	uint64_t free, total;
	uint64_t ours;   /* device bytes in this process's ledger at that time. */
	uint64_t ago_us; /* age of the figures */
};

/* Strings of a record are not owned, and must live until it is written. */
struct spill_record_alloc {
	uint64_t time_us; /* since the start line */
	uint64_t seq;
	uint64_t order; /* number of the event: lines of several threads may be in another order */
	struct spill_level level;
	int tid, device;
	const char *api, *caller; /* caller: "libfoo.so+0x1a2b" */
	const char *requester;    /* who asked the caller; NULL: not known */
	uint64_t bytes, ptr;
	enum spill_place place;
	struct spill_bytes held;
	const char *reason; /* "fits", "oom", "limit", "rule", "asked" */
	const char *rule;
	const char *would; /* mode=observe: its place with mode=spill; else NULL */
	unsigned attempts;
	struct spill_attempt tried[SPILL_ATTEMPTS];
	struct spill_seen seen; /* of a request that did not simply fit */
	uint64_t took_us;
};

struct spill_record_free {
	uint64_t time_us, seq;    /* seq of the alloc */
	uint64_t order;           /* as above */
	struct spill_level level; /* as above */
	int tid, device;
	const char *api, *caller;
	uint64_t ptr, bytes;
	enum spill_place place;
	const char *reason; /* "free", "context", "reset" */
	uint64_t took_us;
};

struct spill_record_move {
	uint64_t time_us, seq;    /* seq of the alloc */
	uint64_t order;           /* as above */
	struct spill_level level; /* as above */
	int tid, device;
	const char *what;         /* "demote", "promote" */
	const char *api, *caller; /* the call that needs the room; NULL: none */
	uint64_t bytes;           /* moved bytes, and their chunks */
	unsigned chunks;
	struct spill_bytes held; /* where the whole allocation is now */
	const char *reason;      /* "oom", "limit", "room", "free" */
	struct spill_seen seen;
	uint64_t took_us;
};

/* The name of a request in tables and messages. */
static inline const char *spill_who_asked(const char *caller, const char *requester)
{
	return requester ? requester : caller;
}

struct spill_holder {
	const char *caller, *api;
	uint64_t seq, bytes;
	enum spill_place place;
	const char *requester; /* behind the caller; NULL: not known */
};

#define SPILL_HOLDERS 10

/* Live allocations that have a caller or a place in common. */
struct spill_group {
	const char *name; /* of the caller or place; NULL: unknown */
	uint64_t count;
	struct spill_bytes held;
	const char *requester; /* behind the caller; NULL: not known */
};

#define SPILL_CALLERS 10

/* Figures of the limit that refused. asked == 0: there are none. */
struct spill_refusal {
	uint64_t limit; /* the value of the option: most bytes to use, or bytes to keep free. */
	uint64_t held;  /* bytes in use; for a reserve, free bytes of the device or host. */
	uint64_t asked; /* bytes of the request */
	uint64_t room;  /* bytes that the device or the host itself still had */
};

struct spill_record_oom {
	uint64_t time_us;
	int tid, device;
	const char *api, *caller, *requester;
	uint64_t bytes;
	uint64_t free, total;          /* the driver's figures */
	uint64_t ours;                 /* device bytes in this process's ledger. */
	struct spill_bytes live;       /* all bytes of this process. */
	const char *rule, *refused_by; /* refused_by: "device.limit", "host.limit", "driver" … */
	struct spill_refusal refusal;
	const char *would; /* mode=observe: the first place that mode=spill would try; else NULL */
	unsigned attempts;
	struct spill_attempt tried[SPILL_ATTEMPTS];
	unsigned holders;
	struct spill_holder top[SPILL_HOLDERS]; /* largest first */
	unsigned callers;
	struct spill_group by_caller[SPILL_CALLERS]; /* the largest, largest first */
	unsigned places;
	struct spill_group by_place[SPILL_PLACES]; /* all */
};

struct spill_hits {
	const char *symbol;
	const char *way; /* "link", "dlsym", "proc" */
	uint64_t count;
};

/* Use of memory on the host by launches, where it is, by estimate (in_place_cost.h). */
struct spill_in_place {
	uint64_t followed; /* most bytes at one time whose use is seen; 0: nothing is known */
	uint64_t bytes;    /* used bytes, again at each launch */
	uint64_t us;       /* by which launches took longer */
	uint64_t most_us;  /* the same at most; 0 with bytes: not known */
};

/* What a run had off the device, and its cost. wanted == 0: not logged. */
struct spill_away {
	uint64_t peak;     /* most bytes at one time that we had put off the device */
	uint64_t wanted;   /* most bytes at one time: of these, and on the device */
	uint64_t moves_us; /* time that moves held the program up */
	struct spill_in_place in_place;
};

/* Sums over a run; every figure can be recomputed from the alloc, free and move lines. */
struct spill_totals {
	uint64_t allocs, frees, spills, ooms;
	uint64_t demotions, promotions;         /* one for each allocation that moved, at least in part. */
	uint64_t demoted, promoted;             /* bytes */
	struct spill_bytes live, peak, spilled; /* spilled: bytes ever placed off the device by us */
	struct spill_away away;
};

/* The file of a program or library that callers name. */
struct spill_record_file {
	uint64_t time_us;
	const char *name; /* the part of `caller` before the offset */
	const char *path;
	const char *build_id; /* in hexadecimal digits; NULL: the file has none */
};

/* Lines that log.max may leave out, by the sum that counts them. */
#define SPILL_DROPS(X) \
	X(ALLOC, "alloc", \
	  "allocations that are no spills, as in `spills` of `exit`, with their bytes by place") \
	X(SPILL, "spill", \
	  "spills with their bytes by place; `spilled` of `exit` is the sum of `host_bytes` and " \
	  "`managed_bytes`") \
	X(FREE, "free", "frees, with their last bytes by place") \
	X(DEMOTE, "demote", "moves to the host; `host_bytes` arrived there and left the device") \
	X(PROMOTE, "promote", "moves back; `device_bytes` arrived there and left the host")

enum spill_drop {
#define X(id, name, text) SPILL_DROP_##id,
	// clang-format off
	SPILL_DROPS(X)
#undef X
	SPILL_DROPS_COUNT
	// clang-format on
};

struct spill_sum {
	uint64_t count;
	struct spill_bytes bytes;
};

/* An allocation of a call site. */
struct spill_one {
	uint64_t seq, bytes;
};

/* What a call site did since its last sum line. */
struct spill_record_sum {
	uint64_t time_us, order;
	struct spill_level level;
	int device;
	const char *api, *caller, *rule;
	struct spill_sum allocs, frees;
	uint64_t live, peak;      /* bytes that it holds, and held at most since its last line. */
	struct spill_one largest; /* the largest of `allocs`. */
};

/* Sums of the lines that were left out since the last drop line. */
struct spill_record_drop {
	uint64_t time_us;
	struct spill_sum sums[SPILL_DROPS_COUNT];
	/* as in the totals: of the whole run until now */
	struct spill_bytes peak;
	struct spill_away away;
};

/* Use of memory on the host so far. A run that is killed has no other line about it. */
struct spill_record_use {
	uint64_t time_us;
	struct spill_away away; /* as in the totals: of the whole run until now */
};

/*
 * Each writes one line with its newline into buffer[size], and returns its length, or 0 if it does
 * not fit. A line is never cut, because half a line is not JSON.
 */
size_t spill_record_alloc(const struct spill_record_alloc *record, char *buffer, size_t size);
size_t spill_record_free(const struct spill_record_free *record, char *buffer, size_t size);
size_t spill_record_move(const struct spill_record_move *record, char *buffer, size_t size);
size_t spill_record_oom(const struct spill_record_oom *record, char *buffer, size_t size);
size_t spill_record_sum(const struct spill_record_sum *record, char *buffer, size_t size);

size_t spill_record_file(const struct spill_record_file *record, char *buffer, size_t size);
size_t spill_record_note(uint64_t time_us, int tid, const char *code, const char *text, char *buffer,
                         size_t size);
size_t spill_record_drop(const struct spill_record_drop *record, char *buffer, size_t size);
size_t spill_record_use(const struct spill_record_use *record, char *buffer, size_t size);
size_t spill_record_exit(uint64_t time_us, const char *how, const struct spill_totals *totals,
                         const struct spill_hits *hits, unsigned count, char *buffer, size_t size);

/* Adds the member "refusal" of the oom line to the open object, if there are figures. */
struct spill_json;
void spill_record_refusal(struct spill_json *json, const struct spill_refusal *refusal);

#endif

/*
 * record: the lines of the log, as structures that are written and read.
 *
 * record.def lists every member of every kind of line. Of it are made the reader (record_read.h), the
 * schema and the tables of docs/log-format.md. The room never opens a log: it works in the caller's
 * buffer. It formats integers itself, because printf follows the host program's locale and is not
 * safe where we are called. Begin reading here, with the writer.
 */
#ifndef SPILL_RECORD_H
#define SPILL_RECORD_H

#include <stddef.h>
#include <stdint.h>

#include "words.h"

/* Of the lines' format; it grows when the meaning of a member changes. */
#define SPILL_RECORD_VERSION 1

/* How a rule's name begins among the options of a start line. */
#define SPILL_RECORD_RULE "rule "

/* Every kind of line, in one list: enum, names and docs come from it. */
#define SPILL_KINDS(X) \
	X(START, "start", "first line of a run: who, where, with what policy") \
	X(ALLOC, "alloc", "one allocation and where it was placed") \
	X(FREE, "free", "end of an allocation; names the seq of its alloc") \
	X(MOVE, "move", "part of an allocation that left the device, or came back") \
	X(OOM, "oom", "an out of memory that the program saw") \
	X(NOTE, "note", "something a person should know") \
	X(DROP, "drop", "sums of lines that log.max left out") \
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

/* A rule's place, the whole chain, the driver asked before it and after each step that makes room, and honest_first. */
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

/* alloc. Strings are not owned and must live until spill_record_alloc returns. */
struct spill_record_alloc {
	uint64_t time_us; /* since the start line */
	uint64_t seq;
	uint64_t
	    order; /* of the event: lines of several threads need not be in the order of what they tell */
	int tid, device;
	const char *api, *caller; /* caller: "libfoo.so+0x1a2b" */
	uint64_t bytes, ptr;
	enum spill_place place;
	struct spill_bytes held;
	const char *reason; /* "fits", "oom", "limit", "managed" (the program asked for it) … */
	const char *rule;
	const char *would; /* mode=observe: the place it would have had; NULL otherwise */
	unsigned attempts;
	struct spill_attempt tried[SPILL_ATTEMPTS];
	uint64_t took_us;
};

struct spill_record_free {
	uint64_t time_us, seq; /* seq of the alloc */
	uint64_t order;        /* as above */
	int tid, device;
	const char *api, *caller;
	uint64_t ptr, bytes;
	enum spill_place place;
	const char *reason; /* "free", "context", "reset" */
	uint64_t took_us;
};

struct spill_record_move {
	uint64_t time_us, seq; /* seq of the alloc */
	uint64_t order;        /* as above */
	int tid, device;
	const char *what;         /* "demote", "promote" */
	const char *api, *caller; /* for whom it had to leave; NULL: for nobody in particular */
	uint64_t bytes;           /* that moved, in so many chunks */
	unsigned chunks;
	struct spill_bytes held; /* by all of the allocation from now on */
	const char *reason;      /* "oom", "limit", "room", "free" */
	uint64_t took_us;
};

struct spill_holder {
	const char *caller, *api;
	uint64_t seq, bytes;
	enum spill_place place;
};

#define SPILL_HOLDERS 10

/* Live allocations that have a caller or a place in common. */
struct spill_group {
	const char *name; /* of these; NULL: not known */
	uint64_t count;
	struct spill_bytes held;
};

#define SPILL_CALLERS 10

/* Figures of the limit that refused; `asked` is 0 where there are none. */
struct spill_refusal {
	uint64_t limit; /* what the option allows, or (host.reserve, device.reserve) keeps free */
	uint64_t
	    held; /* what counted against it; host.reserve: what the host had free; device.reserve: the device */
	uint64_t asked; /* what was asked for on top of it */
	uint64_t room;  /* what the device or the host itself still had for it */
};

struct spill_record_oom {
	uint64_t time_us;
	int tid, device;
	const char *api, *caller;
	uint64_t bytes;
	uint64_t free, total;          /* the driver's figures */
	uint64_t ours;                 /* of the device, by this process's account */
	struct spill_bytes live;       /* what this process holds */
	const char *rule, *refused_by; /* refused_by: "device.limit", "host.limit", "driver" … */
	struct spill_refusal refusal;
	const char *would; /* mode=observe: the first place that would have been tried; NULL otherwise */
	unsigned attempts;
	struct spill_attempt tried[SPILL_ATTEMPTS];
	unsigned holders;
	struct spill_holder top[SPILL_HOLDERS]; /* largest first */
	unsigned callers;
	struct spill_group by_caller[SPILL_CALLERS]; /* those that hold most, most first */
	unsigned places;
	struct spill_group by_place[SPILL_PLACES]; /* all */
};

struct spill_hits {
	const char *symbol;
	const char *way; /* "link", "dlsym", "proc" */
	uint64_t count;
};

/* Sums over a run; every figure can be recomputed from the alloc, free and move lines. */
struct spill_totals {
	uint64_t allocs, frees, spills, ooms;
	uint64_t demotions, promotions;         /* one for each allocation of which something moved */
	uint64_t demoted, promoted;             /* bytes */
	struct spill_bytes live, peak, spilled; /* spilled: bytes ever placed off the device by us */
};

/* Lines that log.max may leave out; each is counted as one of these. */
#define SPILL_DROPS(X) \
	X(ALLOC, "alloc", \
	  "allocations that are not spills (see `spills` of `exit`), with their bytes in each place") \
	X(SPILL, "spill", \
	  "the same for spills; `spilled` of `exit` adds up their `host_bytes` and `managed_bytes`") \
	X(FREE, "free", "frees, with their bytes in each place at the end") \
	X(DEMOTE, "demote", "moves to the host; `host_bytes` left the device for the host") \
	X(PROMOTE, "promote", "moves back; `device_bytes` left the host for the device")

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

/* What was left out since the drop line before. */
struct spill_record_drop {
	uint64_t time_us;
	struct spill_sum sums[SPILL_DROPS_COUNT];
	struct spill_bytes peak; /* as in the totals, of all the run until now */
};

/*
 * Each writes one line with its newline into buffer[size] and returns its length, or 0 if it does not
 * fit (a line is never cut: half a JSON line helps nobody).
 */
size_t spill_record_alloc(const struct spill_record_alloc *record, char *buffer, size_t size);
size_t spill_record_free(const struct spill_record_free *record, char *buffer, size_t size);
size_t spill_record_move(const struct spill_record_move *record, char *buffer, size_t size);
size_t spill_record_oom(const struct spill_record_oom *record, char *buffer, size_t size);

size_t spill_record_note(uint64_t time_us, int tid, const char *code, const char *text, char *buffer,
                         size_t size);
size_t spill_record_drop(const struct spill_record_drop *record, char *buffer, size_t size);
size_t spill_record_exit(uint64_t time_us, const char *how, const struct spill_totals *totals,
                         const struct spill_hits *hits, unsigned count, char *buffer, size_t size);

/* The oom line's member "refusal", in whatever object is open; nothing if there are no figures. */
struct spill_json;
void spill_record_refusal(struct spill_json *json, const struct spill_refusal *refusal);

#endif

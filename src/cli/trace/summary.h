/*
 * One recorded run, added up: all that `spill report` tells. Made by a pass over the trace; every total is what the lines
 * say, so that it can be held against what the program itself counted (its exit line).
 */
#ifndef SPILL_CLI_SUMMARY_H
#define SPILL_CLI_SUMMARY_H

#include "oom_report.h"
#include "live.h"
#include "moved.h"
#include "table.h"
#include "trace.h"

/*
 * Peak demand on a device: all that was allocated (without host memory that the program itself asked for), and the refused
 * request on top of it. wanted = device + host + managed + refused.
 */
struct cli_fit {
	uint64_t wanted, device, host, managed, refused;
};

struct cli_device {
	int device;                    /* -1: allocations that are on none */
	char *name, *uuid;             /* NULL: not told */
	uint64_t bytes;                /* 0: not told */
	uint64_t limit;                /* device.limit in bytes; SPILL_UNLIMITED */
	uint64_t reserve;              /* device.reserve in bytes; 0: not told */
	struct spill_bytes live, peak; /* live: at the end */
	uint64_t asked;                /* of live.host: asked for by the program itself */
	struct cli_fit fit;
	uint64_t
	    beyond; /* out of memory by requests that nothing can hold (spill_oom_is_beyond): not in fit */
};

#define CLI_LARGEST 10

struct cli_large {
	uint64_t seq, bytes, time_us;
	int device;
	enum spill_place place;
	const struct cli_name *api, *caller;
	bool freed;
};

struct cli_large_list {
	unsigned count;
	struct cli_large list[CLI_LARGEST]; /* largest first */
};

/* Of the out of memory the first and the last so many are kept: a program may run into a million. */
#define CLI_OOMS_EACH ((uint64_t)10)

struct cli_ooms {
	uint64_t count;
	uint64_t honest; /* of these surfaced by oom.honest_first: on purpose, to be asked again */
	struct spill_record_oom *
	    list; /* room for 2 * CLI_OOMS_EACH; NULL while there are none; texts live as long as the trace */
};

#define CLI_NOTES 20

struct cli_note {
	uint64_t time_us;
	const struct cli_name *code;
	char *text;
};

/* A figure of the exit line that is not what the lines say. */
struct cli_difference {
	const char *name;
	uint64_t lines, exit;
};

struct cli_summary {
	size_t number; /* in the order in which they were read, from 0 */
	char *path;
	unsigned long line; /* of its start line */
	/* Of the start line; NULL where it was not told. `started`: there was one. */
	bool started;
	char *time, *host, *program, *version, *backend, *rank, *mode;
	int pid, driver;
	bool all_told; /* log.level is all: totals follow from the lines */
	bool capped;   /* one of its rules has a cap */

	struct cli_trace_end end;
	uint64_t ended_us;          /* time of the last line */
	const struct cli_name *how; /* of the exit line; NULL without one */
	bool exited;
	struct spill_totals totals, told; /* told: of the exit line */
	uint64_t
	    after_exit; /* events behind it, frees by other libraries' destructors: not counted in anything else */
	struct spill_sum left_out[SPILL_DROPS_COUNT]; /* by log.max: part of the totals, of nothing else */
	uint64_t unknown_frees;

	struct cli_device *devices;
	size_t device_count, device_size;
	struct cli_table views[CLI_VIEWS];
	struct cli_table demoted, promoted; /* moves by reason: count and bytes */
	struct cli_large_list largest;
	struct cli_moved_list moved;
	struct cli_ooms ooms;
	struct cli_note notes[CLI_NOTES];
	unsigned long note_count;
	unsigned long lost; /* log-lost notes */

	/* While it is read: */
	struct cli_live live;
	struct spill_bytes unannounced; /* of what moved before its alloc was told: counted in totals.live */
};

struct cli_summaries {
	struct cli_summary *runs;
	size_t count, size;
	struct cli_names *names; /* of the trace that is read */
};

/* Its data is a struct cli_summaries; each run is another one. */
extern const struct cli_trace_visitor cli_summary_visitor;

void cli_summaries_free(struct cli_summaries *summaries);

/* summary_event.c: what an event changes. */
void cli_summary_event(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event);

/* Each at least what is held. */
void cli_bytes_raise(struct spill_bytes *peak, const struct spill_bytes *held);

/* The device's row, made if there is none yet. */
struct cli_device *cli_summary_device(struct cli_summary *summary, int device);

/* What an exit line says, and the lines do not: at most CLI_DIFFERENCES. 0 without an exit line, or without all of the lines. */
#define CLI_DIFFERENCES 17
unsigned cli_summary_differences(const struct cli_summary *summary, struct cli_difference differences[]);

/* Figures of totals by name, in a fixed order; false behind the last. */
bool cli_totals_figure(const struct spill_totals *totals, unsigned at, const char **name, uint64_t *value);

/* Of an out of memory's event: is it one that surfaces on purpose (oom.honest_first)? */
static inline bool cli_oom_is_honest(const struct cli_event *event)
{
	return event->reason && !spill_oom_is_final(event->reason->text);
}

/* Out of memory that nothing was to be done about: those of oom.honest_first are not among them. */
static inline uint64_t cli_summary_surfaced(const struct cli_summary *summary)
{
	return summary->ooms.count - summary->ooms.honest;
}

#endif

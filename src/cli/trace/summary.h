/*
 * The sums of one recorded run, for `spill report`. Made in one pass over the trace. Every total
 * comes from the lines, so it can be compared with the program's own count in the exit line.
 */
#ifndef SPILL_CLI_SUMMARY_H
#define SPILL_CLI_SUMMARY_H

#include "minmax.h"
#include "oom_report.h"
#include "run_story.h"
#include "files.h"
#include "life.h"
#include "live.h"
#include "trace.h"

/*
 * Peak demand on a device: everything allocated plus the refused request, without host memory that
 * the program itself asked for. wanted = device + host + managed + refused.
 */
struct cli_fit {
	uint64_t wanted, device, host, managed, refused;
};

/*
 * Memory of others on the device. The figures are of the event at which the demand of this process
 * and others' memory were the most. bytes == 0: the log has none.
 */
struct cli_shortage {
	uint64_t count;       /* of events at which the device itself lacked memory, not a limit or a rule */
	uint64_t bytes, free; /* of the device, by the driver */
	uint64_t others;      /* held by other processes, contexts and code */
	uint64_t demand;      /* of this process then, wherever its memory was, with a refused request */
	uint64_t refused;     /* the part of it that was refused */
	uint64_t time_us;
};

struct cli_device {
	int device;        /* -1: allocations on no device */
	char *name, *uuid; /* NULL: not told */
	uint64_t bytes;    /* 0: not told */
	uint64_t limit;    /* or SPILL_UNLIMITED */
	uint64_t reserve;
	struct spill_bytes live, peak;
	/* held beyond live.device, by events that no line tells yet; wraps around */
	uint64_t ahead;
	uint64_t asked; /* part of live.host that the program asked for */
	struct cli_fit fit;
	/* out of memory for requests that fit nowhere (spill_oom_is_beyond); not in `fit` */
	uint64_t beyond;
	struct cli_shortage shortage;
};

#define CLI_LARGEST 10

struct cli_large {
	uint64_t seq, bytes, time_us;
	int device;
	enum spill_place place;
	const struct cli_name *api, *caller;
	bool freed;
	bool summed; /* from a sum line: its free is not told */
};

struct cli_large_list {
	unsigned count;
	struct cli_large list[CLI_LARGEST]; /* largest first */
};

#define CLI_MOVED 10

struct cli_moved {
	uint64_t seq, bytes;
	uint64_t moves, moved; /* moves to the host, and their bytes */
	uint64_t host;         /* on the host at the end */
	int device;
	const struct cli_name *caller; /* who allocated it; NULL: not in the log */
};

/* Most moved first. Exact, because each move of an allocation adds it again with all its moves. */
struct cli_moved_list {
	unsigned count;
	struct cli_moved list[CLI_MOVED];
};

/* So many of the first and of the last final ones are kept: a program may have a million. */
#define CLI_OOMS_EACH ((uint64_t)10)

struct cli_ooms {
	uint64_t count; /* of final ones */
	struct spill_record_oom
	    *list; /* has 2 * CLI_OOMS_EACH entries, or is NULL; texts live as long as the trace */
	/* surfaced on purpose by oom.honest_first, and the times of the first and the last one */
	uint64_t honest, honest_first_us, honest_last_us;
};

/* The number of entries in the list. */
static inline uint64_t cli_ooms_kept(const struct cli_ooms *ooms)
{
	return spill_min(ooms->count, 2 * CLI_OOMS_EACH);
}

#define CLI_NOTES 20

struct cli_note {
	uint64_t time_us;
	const struct cli_name *code;
	char *text;
};

/* A figure that differs between the lines and the exit line. */
struct cli_difference {
	const char *name;
	uint64_t lines, exit;
};

/* The event that came last; bytes == 0: there was none. */
struct cli_last_event {
	enum cli_event_kind kind;
	uint64_t bytes, time_us;
};

struct cli_summary {
	size_t number; /* in reading order, from 0 */
	char *path;
	unsigned long line; /* line of its start line */
	/* From the start line; NULL: not there. `started`: the log has one. */
	bool started;
	char *time, *host, *program, *version, *backend, *rank, *mode;
	char *job, *step; /* the rank's job, and its step; NULL: not told */
	int64_t wall_us;  /* `time` in microseconds since 1970; 0: not told */
	char *problem;    /* of a policy that was refused, from its note; NULL: none was */
	bool refused;     /* mode=observe because of that */
	int pid, driver;
	bool all_told;   /* log.level is not spills, so totals follow from the lines */
	bool capped;     /* a rule has a cap */
	bool follow_off; /* movable.follow is off */
	bool drop_told;  /* the sums of log.max have what was off the device */

	struct cli_trace_end end;
	uint64_t ended_us; /* time of the last line */
	struct cli_last_event last;
	uint64_t run_us;            /* time of the exit line, or of the last line */
	const struct cli_name *how; /* from the exit line; NULL without one */
	bool exited;
	bool gone;                               /* its process had ended before the lines were read */
	enum cli_life life;                      /* of a run that has no exit line */
	struct spill_totals totals, exit_totals; /* exit_totals: from the exit line */
	struct spill_story story;                /* of the whole run, in all reports */
	uint64_t ahead;                          /* as in a device, of totals.live.device */
	uint64_t away;                           /* bytes off the device by libspill, now */
	/* Of the last move: its begin, and the part of its time that is counted. */
	uint64_t move_start_us, move_told_us;
	/* events after it, by other libraries' destructors; not counted elsewhere */
	uint64_t after_exit;
	struct spill_sum left_out[SPILL_DROPS_COUNT]; /* dropped by log.max; in the totals only */
	uint64_t unknown_frees;

	struct cli_device *devices;
	size_t device_count, device_size;
	struct cli_table views[CLI_VIEWS];
	struct cli_table demoted, promoted; /* moves by reason */
	struct cli_run_files files;         /* of callers */
	struct cli_large_list largest;
	struct cli_moved_list moved;
	struct cli_ooms ooms;
	struct cli_note notes[CLI_NOTES];
	unsigned long note_count;
	unsigned long lost; /* number of log-lost notes */

	/* Of several runs together (job.h). The clock of the host is ahead of that of others. */
	int64_t clock_ahead_us;
	bool begin_told;
	uint64_t begin_us; /* after the first run began */

	/* While the run is read: */
	struct cli_live live;
	/* bytes of allocations that moved before their alloc line; in totals.live */
	struct spill_bytes unannounced;
};

struct cli_summaries {
	struct cli_summary *runs;
	size_t count, size;
	struct cli_names *names; /* of the trace */
	int pid; /* of the process whose log is read, as the user named it; 0: by its start line */
};

/* movable.follow of the run is off. */
bool cli_follow_is_off(const struct spill_record_start *start);

/* A visitor with a struct cli_summaries as its data. It adds one summary a run. */
extern const struct cli_trace_visitor cli_summary_visitor;

void cli_summaries_free(struct cli_summaries *summaries);

/* summary_event.c: adds an event to the sums. */
void cli_summary_event(struct cli_summary *summary, struct cli_names *names, const struct cli_event *event);

/* The bytes that the device really held after the last event of it. */
struct spill_bytes cli_device_held(const struct cli_device *device);

/*
 * Sums of live bytes are never below 0: a log may lack the lines of what is freed, where a piece of
 * it is missing. `value`: a sum that may have wrapped around.
 */
static inline uint64_t cli_not_below_zero(uint64_t value)
{
	return value > INT64_MAX ? 0 : value;
}

/* Raises each member of `peak` to that of `held`. */
void cli_bytes_raise(struct spill_bytes *peak, const struct spill_bytes *held);

struct cli_device *cli_summary_device(struct cli_summary *summary, int device);

/* The differences from the exit line. 0 too if that or other lines are missing. */
#define CLI_DIFFERENCES 20
unsigned cli_summary_differences(const struct cli_summary *summary, struct cli_difference differences[]);

/* The last out of memory that surfaced, which is what ends most programs. NULL: there was none. */
const struct spill_record_oom *cli_summary_cause(const struct cli_summary *summary);

void cli_totals_add(struct spill_totals *sum, const struct spill_totals *totals);

/* True for an out of memory that surfaced on purpose (oom.honest_first). */
static inline bool cli_oom_is_honest(const struct cli_event *event)
{
	return event->reason && !spill_oom_is_final(event->reason->text);
}

#endif

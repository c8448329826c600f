/*
 * replay: `spill replay`. It predicts where memory of recorded runs would be under another policy,
 * or on another card.
 *
 * A run is kept (recording.h), and a model of the accounts decides it again (model.h). Decisions
 * come from policy/, without a copy here. It calls no driver, and never predicts speed.
 *
 * Begin with cli_replay_visitor in read.c; run.c decides a run.
 */
#ifndef SPILL_CLI_REPLAY_H
#define SPILL_CLI_REPLAY_H

#include "config.h"
#include "decide.h"
#include "recording.h"
#include "report.h"

struct cli_replay_options {
	const char *policy, *profile; /* NULL: not given */
	uint64_t vram;                /* of every device; 0: as recorded */
	uint64_t other;               /* SPILL_UNLIMITED: as the log tells it */
	uint64_t host;                /* SPILL_UNLIMITED: not known */
	unsigned without;             /* enum spill_capability that devices lack */
	uint64_t margin;
	bool list; /* list each allocation that would be elsewhere */
};

struct cli_replay_row {
	uint64_t seq, bytes; /* seq: 0 for a recorded out of memory */
	struct cli_whereabouts was, now;
	const struct cli_name *who, *rule;
};

struct cli_replay_sum {
	uint64_t count, bytes;
};

/* Limits of one device: nothing elsewhere for lack of room (all), and just fits (least). */
struct cli_replay_limit {
	int device;
	uint64_t all, least;
	uint64_t reserve; /* memory beyond `all` that a card needs for device.reserve */
};

/* A request that would be out of memory, and the memory held then. */
struct cli_replay_refused {
	uint64_t time_us, bytes;
	int device;
	struct spill_bytes live;
	const struct cli_name *api, *who, *rule, *refused_by;
};

/* A run that was decided again. Its sums are in the summary with the same index. */
struct cli_replay_run {
	bool judged; /* false: the log lacks something */
	char *why;   /* the reason why not; NULL: judged */
	char *exe, *boot;
	struct cli_recording *recording; /* valid until the run is decided */
	struct cli_model_setting setting;
	bool other_known[SPILL_DEVICES];
	bool log_cut; /* log.max dropped lines */
	uint64_t alloc_count;
	uint64_t refused;       /* requests that would be out of memory */
	uint64_t newly_refused; /* served in the recording */
	/* recorded out of memory, and the part that would be served */
	uint64_t was_refused, now_served;
	bool host_refused; /* one was recorded out of memory for lack of host memory */
	uint64_t honest;
	struct cli_replay_refused first;
	struct cli_replay_sum elsewhere, ways[CLI_WHERES][CLI_WHERES];
	/* of memory that would be elsewhere. `spilled`: bytes off the device */
	struct cli_table by_caller, by_rule;
	bool runs; /* a device.limit exists with which it fits */
	size_t limit_count;
	struct cli_replay_limit limits[SPILL_DEVICES];
	bool lists;
	struct cli_replay_row *list;
	size_t listed, list_size;
	char rules[256];    /* names of rules that the log cannot judge; "" */
	char missing[1024]; /* names of options that the recorded policy lacks; "" */
};

struct cli_replay {
	struct cli_replay_options options;
	struct cli_report report; /* sums of the decided runs */
	struct cli_replay_run *runs;
	size_t count, size;
	/* For the current run: */
	struct cli_recording recording;
	const struct spill_policy *recorded; /* NULL: another policy was asked for */
	const char *problem;                 /* error in the policy of the last run; NULL */
};

/* A visitor with a struct cli_replay as its data. It decides each run at its end. */
extern const struct cli_trace_visitor cli_replay_visitor;

/* True if each run keeps its own policy. */
bool cli_replay_as_recorded(const struct cli_replay_options *options);

/* True if the run would have no out of memory. */
bool cli_replay_fits(const struct cli_replay_run *run);

/* True if all runs fit and all logs could be read. */
bool cli_replay_fits_all(const struct cli_replay *replay);

/* "device", "moved out", "split", "managed", "host" or "out of memory". */
const char *cli_where_name(enum cli_where where);

/*
 * policy.c: loads the policy for a program, and for a rank that may be NULL. NULL: sets *problem.
 * Valid until the next call.
 */
const struct spill_policy *cli_replay_policy(const struct cli_replay_options *options, const char *program,
                                             const char *rank, const char **problem);

/*
 * recorded.c: reads the policy of a start line. Writes the names of missing options, which get
 * their defaults, into `missing`. NULL: sets *problem, with advice. Valid until the next call.
 */
const struct spill_policy *cli_replay_recorded(const char *path, unsigned long line,
                                               const struct spill_record_start *start, char *missing,
                                               size_t size, const char **problem);

/* Applies the policy to the sites; the caller frees them. `rules`: names that cannot be judged. */
struct cli_site *cli_replay_sites(const struct cli_recording *recording, const struct spill_policy *policy,
                                  const char *exe, char *rules, size_t size);

/* run.c: decides the run again and fills the summary. */
void cli_replay_decide(struct cli_replay_run *run, struct cli_summary *summary, struct cli_names *names);

/* limit.c */
void cli_replay_limits(struct cli_replay_run *run);

/* text.c, json.c */
void cli_replay_text(const struct cli_replay *replay);
void cli_replay_json(const struct cli_replay *replay);

/* A device that several runs used, with the sum of their peaks. */
struct cli_replay_shared {
	const char *host, *uuid;
	uint64_t total, peak;
	unsigned runs;
	size_t order; /* in which they are listed: that of their first runs */
};
size_t cli_replay_shared(const struct cli_replay *replay, struct cli_replay_shared **list);

void cli_replay_free(struct cli_replay *replay);

#endif

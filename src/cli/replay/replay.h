/*
 * replay: `spill replay`. What recorded runs would be under another policy, or on another card.
 *
 * A run is kept (recording.h) and decided again by a model of the accounts (model.h). It copies
 * no decision, which it asks of policy/, calls no driver, and predicts where memory is, never how
 * fast a program is.
 *
 * Begin with cli_replay_visitor in read.c; run.c decides a run.
 */
#ifndef SPILL_CLI_REPLAY_H
#define SPILL_CLI_REPLAY_H

#include "config.h"
#include "decide.h"
#include "recording.h"
#include "report.h"

/* As it was asked for. */
struct cli_replay_wish {
	const char *policy, *profile; /* one of them is NULL; both: each run's own, as recorded */
	uint64_t vram;                /* of all devices; 0: as recorded */
	uint64_t other;               /* SPILL_UNLIMITED: as out of memory lines tell it, else 0 */
	uint64_t host;                /* SPILL_UNLIMITED: not known */
	unsigned without;             /* enum spill_capability that the devices do not have */
	uint64_t margin;
	bool list; /* each allocation that would be elsewhere */
};

struct cli_replay_row {
	uint64_t seq, bytes; /* seq: 0 for an out of memory of the recording */
	struct cli_whereabouts was, now;
	const struct cli_name *caller, *rule;
};

struct cli_replay_sum {
	uint64_t count, bytes;
};

/* device.limit of a device, the others without: what it takes that nothing has to be elsewhere for lack of room, and to run at all. */
struct cli_replay_limit {
	int device;
	uint64_t all, least;
	uint64_t reserve; /* of a card, beyond `all`: what is kept free by moving something away */
};

/* A request that would be out of memory, and what was held then. */
struct cli_replay_refused {
	uint64_t time_us, bytes;
	int device;
	struct spill_bytes live;
	const struct cli_name *api, *caller, *rule, *refused_by;
};

/* A run, decided again. What it would be in sums is the summary of the same number in `report`. */
struct cli_replay_run {
	bool judged; /* else what is not in the log cannot be decided again */
	char *why;   /* not; NULL: judged */
	char *exe, *boot;
	struct cli_recording *recording; /* while it is read and decided: that of all */
	struct cli_model_setting setting;
	bool other_told[SPILL_DEVICES];
	bool log_cut;                     /* log.level or log.max */
	uint64_t told;                    /* allocations */
	uint64_t refused;                 /* requests that would be out of memory */
	uint64_t newly_refused;           /* of these what was served in the recording */
	uint64_t was_refused, now_served; /* out of memory in the recording; of these what would be served */
	uint64_t was_refused_by_host;     /* of these those for which the host had no room */
	uint64_t honest;
	struct cli_replay_refused first;
	struct cli_replay_sum elsewhere, ways[CLI_WHERES][CLI_WHERES];
	struct cli_table by_caller, by_rule; /* of what would be elsewhere; spilled: bytes off the device */
	bool runs;                           /* there is a device.limit with which it does */
	size_t limit_count;
	struct cli_replay_limit limits[SPILL_DEVICES];
	bool lists;
	struct cli_replay_row *list;
	size_t listed, list_size;
	char rules[256];    /* names of rules that cannot be judged by the log; "" */
	char missing[1024]; /* names of options that the recorded policy does not have; "" */
};

struct cli_replay {
	struct cli_replay_wish wish;
	struct cli_report report; /* of the runs as they would be */
	struct cli_replay_run *runs;
	size_t count, size;
	/* Of the run that is read: */
	struct cli_recording recording;
	const struct spill_policy *recorded; /* not its own: NULL */
	const char *problem;                 /* of the policy, as said by the last run's program; NULL */
};

/* Its data is a struct cli_replay; each run is decided at its end. */
extern const struct cli_trace_visitor cli_replay_visitor;

/* No other policy was asked for: each run's own. */
bool cli_replay_as_recorded(const struct cli_replay_wish *wish);

/* True if nothing would be out of memory. */
bool cli_replay_fits(const struct cli_replay_run *run);

/* The same of all runs, and all logs could be read (without one there is nothing that fits). */
bool cli_replay_fits_all(const struct cli_replay *replay);

/* The word of where something is: "device", "moved out", "split", "managed", "host", "out of memory". */
const char *cli_where_name(enum cli_where where);

/* policy.c: the policy for that program. NULL if it cannot be had: *problem says why. Good until the next call. */
const struct spill_policy *cli_replay_policy(const struct cli_replay_wish *wish, const char *program,
                                             const char **problem);

/*
 * recorded.c: the policy that the run of that start line had. Names of options that it does not have, which are as by
 * default, go into `missing`. NULL if it cannot be had: *problem says why, and what to give instead. Good until the next call.
 */
const struct spill_policy *cli_replay_recorded(const char *path, unsigned long line,
                                               const struct spill_record_start *start, char *missing,
                                               size_t size, const char **problem);

/* What the policy says of each of the recording's sites; the caller frees it. Rules that cannot be judged are named in `rules`. */
struct cli_site *cli_replay_sites(const struct cli_recording *recording, const struct spill_policy *policy,
                                  const char *exe, char *rules, size_t size);

/* run.c: decides it all again; the sums go into the summary. */
void cli_replay_decide(struct cli_replay_run *run, struct cli_summary *summary, struct cli_names *names);

/* limit.c */
void cli_replay_limits(struct cli_replay_run *run);

/* text.c, json.c */
void cli_replay_text(const struct cli_replay *replay);
void cli_replay_json(const struct cli_replay *replay);

/* Devices that several runs have used: their peaks together. */
struct cli_replay_shared {
	const char *host, *uuid;
	uint64_t total, peak; /* of the device bytes */
	unsigned runs;
};
size_t cli_replay_shared(const struct cli_replay *replay, struct cli_replay_shared **list);

void cli_replay_free(struct cli_replay *replay);

#endif

/*
 * Trials of placements, for launches that name all memory at once: a CUDA graph that decodes a token.
 * Nothing tells what such a launch reads of each chunk. It may read weights once, a cache four times,
 * and most of a large cache not at all. So a trial exchanges some chunks on the device for some on the
 * host, measures the next launches, and keeps or undoes it. Each trial teaches what its chunks cost on
 * the host; the next one exchanges the cheapest on the device for the dearest on the host. Of an
 * allocation of which nothing is known, it moves as little as shows, and of the largest first: small
 * ones are those that kernels use again and again.
 *
 * A trial that is undone costs time. All of them together cost at most a twentieth of the time, but
 * for the first few, and after several in a row they become ever rarer.
 *
 * All memory is in the struct. Zeroed, it knows nothing. Times are ns, sizes bytes, costs ns a MiB.
 */
#ifndef SPILL_PLACEMENT_TRIAL_H
#define SPILL_PLACEMENT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

/* Chunks whose cost is kept, a power of two. A chunk replaces another one at its place. */
#define SPILL_TRIAL_COSTS 4096
/* Samples of one placement, of which the median counts. */
#define SPILL_TRIAL_SAMPLES 3
/* Most chunks that one trial moves. */
#define SPILL_TRIAL_CHUNKS 256

/* A chunk of the device, as the caller lists it. */
struct spill_trial_chunk {
	uint32_t key;   /* unique */
	uint64_t owner; /* the allocation's size: those of one size cost alike until more is known */
	uint64_t bytes;
	bool on_host;
	bool fixed;  /* cannot move */
	bool named;  /* by the launch; others cost it nothing */
	bool chosen; /* result: changes sides */
	/* Private: what a MiB of it costs on the host; the allocation's bytes; nothing is known of it. */
	uint64_t guess_ns, owner_bytes;
	bool untried;
};

enum spill_trial_phase {
	SPILL_TRIAL_MEASURES, /* the placement as it is */
	SPILL_TRIAL_TRIES,    /* chunks have changed sides, and launches are measured */
	SPILL_TRIAL_RESTS,    /* until next_ns, or until launches become slower */
};

enum spill_trial_step { SPILL_TRIAL_NOTHING, SPILL_TRIAL_PROPOSE, SPILL_TRIAL_UNDO };

struct spill_trial_cost {
	uint32_t key; /* 0: free */
	uint32_t ns;
};

struct spill_placement_trial {
	uint64_t site;      /* of the launch; 0: none yet */
	uint64_t placement; /* the caller's name of the placement that is measured */
	enum spill_trial_phase phase;
	uint64_t samples[SPILL_TRIAL_SAMPLES];
	unsigned sampled, tried;      /* of them, and launches of this phase that were timed */
	uint64_t base_ns;             /* median before the trial */
	uint64_t settled_ns;          /* the same when the last trial ended */
	unsigned rested;              /* launches at rest */
	uint64_t adopted_ns, seen_ns; /* first and last launch of the site */
	uint64_t spent_ns;            /* by trials that were undone */
	uint64_t next_ns;             /* time of the next trial */
	uint64_t moving_ns;           /* time of the trial's exchange */
	uint64_t most;                /* bytes that the next trial moves each way at most; 0: the default */
	bool probes;                  /* it looks at an allocation of which nothing is known */
	unsigned failures;            /* in a row */
	/* The chunks of the trial. */
	uint32_t moved[SPILL_TRIAL_CHUNKS];
	unsigned moved_count;
	uint64_t left_mib;
	uint64_t came_ns;      /* what the chunks that came cost on the host, by what was known */
	uint64_t kept, undone; /* trials so far, for the log */
	struct spill_trial_cost costs[SPILL_TRIAL_COSTS];
};

/*
 * Before a launch of `site`. `placement` names where its memory is: another one than before means
 * that others moved memory, and measuring begins again.
 */
enum spill_trial_step spill_trial_next(struct spill_placement_trial *trial, uint64_t site, uint64_t placement,
                                       uint64_t now_ns);

/* Should launches of the site be timed now? */
bool spill_trial_wants_sample(const struct spill_placement_trial *trial, uint64_t site);

/* A launch of the site took `ns`, with its memory at `placement`. */
void spill_trial_sample(struct spill_placement_trial *trial, uint64_t placement, uint64_t ns);

/*
 * Chooses the chunks of a trial: sets .chosen. False: no exchange promises a gain, and the trial rests.
 * pre: spill_trial_next said PROPOSE
 */
bool spill_trial_choose(struct spill_placement_trial *trial, struct spill_trial_chunk *chunks, unsigned count,
                        uint64_t now_ns);

/* Did the last trial move the chunk to this side? */
bool spill_trial_moved(const struct spill_placement_trial *trial, uint32_t key, bool on_host);

/*
 * The exchange that was chosen is done, or that of UNDO. `placement`: the new one; 0: nothing moved.
 * `ns`: time of the moves.
 */
void spill_trial_begun(struct spill_placement_trial *trial, uint64_t placement, uint64_t now_ns, uint64_t ns);
void spill_trial_undone(struct spill_placement_trial *trial, uint64_t placement, uint64_t now_ns);

#endif

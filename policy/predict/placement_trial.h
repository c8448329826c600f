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

/* Chunks whose cost is kept. A chunk replaces another one at its place. */
#define SPILL_TRIAL_COST_BITS 12
#define SPILL_TRIAL_COSTS (1u << SPILL_TRIAL_COST_BITS)
/* Samples of one placement, of which the median counts. */
#define SPILL_TRIAL_SAMPLES 3
/* Most chunks that one trial moves. */
#define SPILL_TRIAL_CHUNKS 256

/* A chunk of the device, as the caller lists it. */
struct spill_trial_chunk {
	uint32_t key;   /* unique */
	uint64_t owner; /* the allocation's size: those of one size cost alike until more is known */
	uint64_t bytes;
	bool on_host; /* before the trial */
	bool fixed;   /* cannot move */
	bool named;   /* by the launch; others cost it nothing */
	bool chosen;  /* result: shall change sides */
	bool moved;   /* the caller's answer: it has */
	/* Private: what a MiB of it costs on the host; the bytes of such allocations; nothing is known. */
	uint64_t guess_ns, owner_bytes;
	bool untried;
};

enum spill_trial_phase {
	SPILL_TRIAL_MEASURES, /* the placement as it is */
	SPILL_TRIAL_TRIES,    /* chunks have changed sides, and launches are measured */
	SPILL_TRIAL_KEEPS,    /* the trial is right */
	SPILL_TRIAL_UNDOES,   /* it is not */
	SPILL_TRIAL_RESTS,    /* until next_ns, or until launches become slower */
};

/* What the caller does before the launch. It is asked again until it has answered. */
enum spill_trial_step {
	SPILL_TRIAL_NOTHING,
	SPILL_TRIAL_PROPOSE, /* spill_trial_choose, then spill_trial_begun */
	SPILL_TRIAL_KEEP,    /* the moved chunks are at home now: spill_trial_kept */
	SPILL_TRIAL_UNDO,    /* move them back: spill_trial_undone */
};

struct spill_trial_cost {
	uint32_t key; /* 0: free */
	uint32_t ns;
};

struct spill_placement_trial {
	uint64_t code;      /* the caller's name of the launch's kernels */
	uint64_t site;      /* and of these with the memory that they name; 0: none yet */
	uint64_t placement; /* the caller's name of the placement that is measured */
	enum spill_trial_phase phase;
	unsigned launches; /* of this phase */
	uint64_t samples[SPILL_TRIAL_SAMPLES];
	unsigned sampled, tried;      /* of them; launches of this phase that were timed */
	uint64_t base_ns;             /* median before the trial */
	uint64_t settled_ns;          /* the same when the last trial ended; 0: not known */
	uint64_t first_ns;            /* before the first trial */
	uint64_t adopted_ns, seen_ns; /* first and last launch of the site */
	uint64_t next_ns;             /* time of the next trial, or of the next attempt to undo one */
	uint64_t busy_ns;             /* pause after the last vain attempt */
	bool over_budget;             /* the pause is for what trials have spent */
	unsigned slow;                /* samples at rest that were slower, in a row */
	uint64_t spent_ns;            /* by trials that were undone */
	uint64_t moving_ns;           /* time that the trial's exchange took, with all waits */
	uint64_t most;                /* bytes that the next trial moves each way at most; 0: the default */
	bool probes;                  /* it looks at an allocation of which nothing is known */
	unsigned failures;            /* in a row */
	/* The chunks of the trial: key * 2, + 1 if it left. */
	uint32_t moved[SPILL_TRIAL_CHUNKS];
	unsigned moved_count;
	uint64_t left_mib;
	uint64_t came_ns;      /* what the chunks that came cost on the host, by what was known */
	uint64_t kept, undone; /* trials so far */
	uint64_t noted;        /* the caller's: `kept` at its last note */
	struct spill_trial_cost costs[SPILL_TRIAL_COSTS];
};

/*
 * Before a launch of `site`, with the kernels `code`. `placement` names where its memory is: another one
 * than before means that others moved memory. Then a trial counts as failed. A site that is no longer
 * launched gives its turn to another, after its trial is undone. What is known of chunks stays if the
 * kernels are the same.
 */
enum spill_trial_step spill_trial_next(struct spill_placement_trial *trial, uint64_t code, uint64_t site,
                                       uint64_t placement, uint64_t now_ns);

/* Should launches of the site be timed now? */
bool spill_trial_wants_sample(const struct spill_placement_trial *trial, uint64_t site);

/* True while no other moves should disturb the trial. It is for a bounded number of launches. */
bool spill_trial_compares(const struct spill_placement_trial *trial, uint64_t site);

/* A launch of the site took `ns`, with its memory at `placement`. */
void spill_trial_sample(struct spill_placement_trial *trial, uint64_t placement, uint64_t ns);

/*
 * Chooses the chunks of a trial: sets .chosen. False: no exchange promises a gain, and the trial rests.
 * (placement_choice.c) pre: spill_trial_next said PROPOSE; chunks has one entry for each key
 */
bool spill_trial_choose(struct spill_placement_trial *trial, struct spill_trial_chunk *chunks, unsigned count,
                        uint64_t now_ns);

/*
 * The exchange was tried, and .moved says of which chunks. `placement`: the new one. `ns`: all the time
 * that it took.
 */
void spill_trial_begun(struct spill_placement_trial *trial, const struct spill_trial_chunk *chunks,
                       unsigned count, uint64_t placement, uint64_t now_ns, uint64_t ns);

/* Did the trial move the chunk to this side? */
bool spill_trial_moved(const struct spill_placement_trial *trial, uint32_t key, bool on_host);

void spill_trial_kept(struct spill_placement_trial *trial);

/*
 * `done`: all is back, or cannot come back. Else it is asked for again later, a few times: then the
 * chunks stay, and the trial rests. `ns`: as above.
 */
void spill_trial_undone(struct spill_placement_trial *trial, bool done, uint64_t placement, uint64_t now_ns,
                        uint64_t ns);

/* Private to placement_trial.c and placement_choice.c. */
const struct spill_trial_cost *spill_trial_find_cost(const struct spill_placement_trial *trial, uint32_t key);
void spill_trial_set_cost(struct spill_placement_trial *trial, uint32_t key, uint64_t ns);
bool spill_trial_is_slower(const struct spill_placement_trial *trial, uint64_t ns);
void spill_trial_rest(struct spill_placement_trial *trial, uint64_t now_ns);

#endif

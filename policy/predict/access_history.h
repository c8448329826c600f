/*
 * The order in which a program uses its memory, learned while it runs, and what it will use next. Programs repeat: a step
 * of training, a forward pass, a layer. So the model is the record of uses itself and a place in it: where the program was
 * when it last did what it does now; what followed then is what is foreseen. A use that is not the foreseen one is looked
 * for a little further on (something was left out, or came between), then where the last few launches occurred before.
 *
 * Pure: the memory is the caller's, all of it in the struct; zeroed, it is empty. About 1 MiB.
 */
#ifndef SPILL_ACCESS_HISTORY_H
#define SPILL_ACCESS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

/* Uses that are remembered; older ones are forgotten. A power of two. */
#define SPILL_ACCESS_USES 65536
/* Where contexts (the last launches, or the last use) ended last. A power of two. */
#define SPILL_ACCESS_CONTEXTS 65536
/* All of the last uses were foreseen. */
#define SPILL_ACCESS_SURE 65536

/* One use of one chunk. */
struct spill_access {
	uint32_t key;  /* of the chunk, the caller's: stays the same from step to step */
	uint16_t site; /* of what used it (reuse.h) */
};

/* Launches, this one so far among them, that tell where the program is. */
#define SPILL_ACCESS_LAUNCHES 3

struct spill_access_launch {
	uint64_t hash; /* of its uses, in their order */
	uint32_t uses;
};

struct spill_access_history {
	struct spill_access uses[SPILL_ACCESS_USES]; /* a ring */
	uint64_t count;                              /* uses ever: the next one's number */
	uint64_t next; /* number of the use that is foreseen next; count: none is */
	uint64_t contexts
	    [SPILL_ACCESS_CONTEXTS];   /* number of the use behind a context, never 0; by a hash of it */
	uint64_t foreseen, unforeseen; /* how often it was right, for the log */
	uint32_t sure;                 /* running mean of that over the last 16 or so, to SPILL_ACCESS_SURE */
	uint32_t misses;               /* uses in a row that were not foreseen */
	uint64_t followed;             /* uses since it was last looked for elsewhere */
	struct spill_access_launch launches[SPILL_ACCESS_LAUNCHES]; /* the last first */
};

/* The program uses these chunks now, with one launch. Constant time for each of them, some 20 ns. */
void spill_access_history_launch(struct spill_access_history *order, const uint32_t *keys, unsigned count,
                                 uint16_t site);

/* One chunk. */
void spill_access_history_add(struct spill_access_history *order, uint32_t key, uint16_t site);

/*
 * A walk along what is foreseen, from the next use on: at most one period (from there to now). Zeroed, it begins. It is empty
 * while most of the last uses were not foreseen: to go by noise is worse than to go by age.
 */
struct spill_access_walk {
	uint64_t steps;
};

/* False: nothing more is foreseen. */
bool spill_access_history_next(const struct spill_access_history *order, struct spill_access_walk *walk,
                               struct spill_access *use);

/* What was used `ago` uses before the last one. False: that is forgotten, or was never. */
bool spill_access_history_past(const struct spill_access_history *order, uint64_t ago,
                               struct spill_access *use);

#endif

/*
 * The chunks that a program accesses, in their order, and the prediction of the next ones. Programs
 * repeat: a step of training, a forward pass, a layer. So the model is the record of all accesses,
 * and a position in it: the point where the program did the same before. The accesses behind that
 * point are the prediction.
 *
 * If an access was not predicted, a new position is searched. First a little further on, because
 * the program may have left something out. Then at the place where the last launches occurred
 * before.
 *
 * A launch of the predicted code keeps the position even if it accesses other chunks. Those replace
 * the ones that it accessed in the step before (chunk_renames.h). If the last launches occurred in an older
 * step, the position goes there, and returns as soon as that step is wrong: with PyTorch's expandable
 * segments some buffers return to where they were two steps before, and all others move on.
 *
 * All memory is in the struct, about 1 MiB. Zeroed, it is empty.
 */
#ifndef SPILL_ACCESS_HISTORY_H
#define SPILL_ACCESS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "chunk_renames.h"

/* Accesses that are remembered. A power of two. */
#define SPILL_ACCESS_USES 65536
/* Slots for contexts: the last launches, or the last access. A power of two. */
#define SPILL_ACCESS_CONTEXTS 65536
/* All of the last accesses were predicted. */
#define SPILL_ACCESS_SURE 65536
/* Least share of right predictions, 3/8. Of two sequences that run at once, one is predicted. */
#define SPILL_ACCESS_SURE_LEAST (SPILL_ACCESS_SURE / 8 * 3)

/* One access of one chunk. */
struct spill_access {
	uint32_t key;   /* the caller's name of the chunk: the same in each step */
	uint16_t site;  /* of the code that accesses it (migration_benefit.h) */
	uint16_t place; /* in its launch; 0: the first */
};

/* Launches that make the longer context, with the current one so far. */
#define SPILL_ACCESS_LAUNCHES 3

struct spill_access_launch {
	uint64_t hash; /* of its accesses, in their order */
	uint32_t uses;
};

struct spill_access_history {
	struct spill_access uses[SPILL_ACCESS_USES]; /* a ring */
	uint64_t count;                              /* number of the next access */
	uint64_t next;                               /* number of the predicted access; count: none */
	uint64_t left; /* the same in the step that was left for an older one; 0: none */
	/* By the hash of a context: number of the access behind it; never 0. */
	uint64_t contexts[SPILL_ACCESS_CONTEXTS];
	uint64_t foreseen, unforeseen; /* right and wrong predictions, for the log */
	uint32_t sure;                 /* running mean over the last 16 or so, up to SPILL_ACCESS_SURE */
	uint32_t misses;               /* wrong predictions in a row */
	uint64_t followed;             /* accesses since the last new position */
	struct spill_access_launch launches[SPILL_ACCESS_LAUNCHES]; /* the last first */
	struct spill_chunk_renames renames;
};

/* Adds the chunks that one launch accesses now. Constant time for each, some 20 ns. */
void spill_access_history_launch(struct spill_access_history *history, const uint32_t *keys, unsigned count,
                                 uint16_t site);

/* A walk along the predicted accesses, at most one period. Zeroed, it begins. */
struct spill_access_walk {
	uint64_t steps;
	unsigned names; /* of the access at hand that were returned */
};

static inline const struct spill_access *spill_access_at(const struct spill_access_history *history,
                                                         uint64_t number)
{
	return &history->uses[number % SPILL_ACCESS_USES];
}

/* The names of the chunk of that access by now. Returns their number. */
static inline unsigned spill_access_names(const struct spill_access_history *history, uint64_t number,
                                          uint32_t names[SPILL_CHUNK_NAMES])
{
	return spill_chunk_renames_get(&history->renames, spill_access_at(history, number)->key, number,
	                               history->count - history->next, names);
}

/*
 * The next predicted access. False: there is no further one. There is none while most of the last
 * predictions were wrong: then eviction by age is better. Inline, because a choice takes thousands of
 * steps while the program waits.
 */
static inline bool spill_access_history_next(const struct spill_access_history *history,
                                             struct spill_access_walk *walk, struct spill_access *use)
{
	if (history->sure < SPILL_ACCESS_SURE_LEAST || history->count - history->next <= walk->steps)
		return false;
	uint64_t number = history->next + walk->steps;
	uint32_t names[SPILL_CHUNK_NAMES];
	unsigned count = spill_access_names(history, number, names);

	*use = *spill_access_at(history, number);
	use->key = names[walk->names++];
	if (walk->names >= count) {
		walk->names = 0;
		walk->steps++;
	}
	return true;
}

/*
 * The access `ago` accesses before the last one. False: there is no such access, or it is
 * forgotten.
 */
bool spill_access_history_past(const struct spill_access_history *history, uint64_t ago,
                               struct spill_access *use);

#endif

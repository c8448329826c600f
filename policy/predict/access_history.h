/*
 * The buffers that a program accesses, in their order, and the prediction of the next ones. Programs
 * repeat: a step of training, a forward pass, a layer. So the model is the record of all accesses,
 * and a position in it: the point where the program did the same before. The accesses behind that
 * point are the prediction.
 *
 * If an access was not predicted, a new position is searched. First a little further on, because
 * the program may have left something out. Then at the place where the last launches occurred
 * before.
 *
 * A launch of the predicted code keeps the position even if it accesses other buffers. Those replace
 * the ones that it accessed in the step before (buffer_moves.h). If the last launches occurred in an older
 * step, the position goes there, and returns as soon as that step is wrong: with PyTorch's expandable
 * segments some buffers return to where they were two steps before, and all others move on.
 *
 * Addresses and sizes are in units of 2 MiB (memory/chunk_map.h): a buffer that moves does not move by whole
 * chunks. All memory is in the struct, about 1.4 MiB. Zeroed, it is empty.
 */
#ifndef SPILL_ACCESS_HISTORY_H
#define SPILL_ACCESS_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer_moves.h"

/* Accesses that are remembered. A power of two. */
#define SPILL_ACCESS_USES 65536
/* Slots for contexts: the last launches, or the last access. A power of two. */
#define SPILL_ACCESS_CONTEXTS 65536
/* All of the last accesses were predicted. */
#define SPILL_ACCESS_SURE 65536
/* Least share of right predictions, 3/8. Of two sequences that run at once, one is predicted. */
#define SPILL_ACCESS_SURE_LEAST (SPILL_ACCESS_SURE / 8 * 3)

/* A buffer, or a part of it, that a launch accesses. */
struct spill_access_range {
	uint32_t first, units; /* the number of its first unit, and how many */
};

/*
 * One access of one buffer. It has no bit-fields: gcc 12 clears such a struct by two stores that overlap and then loads it, which waits for
 * both. That took 1.6 % of the time of a program that is bound by its launches (docs/measurements.md, What learning costs).
 */
struct spill_access {
	uint32_t first; /* the number of its first unit */
	uint16_t units;
	uint16_t site;   /* of the code that accesses it (migration_benefit.h) */
	uint16_t place;  /* in its launch; 0: the first */
	int16_t moved;   /* since the step before; 0: it stayed, or was far away */
	uint16_t period; /* accesses since then */
	bool drifts;     /* it has moved as far in the step before, too */
};

/* Places in a launch. Later ones count as the last. */
#define SPILL_ACCESS_PLACES 32767

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
	struct spill_buffer_moves moves;
};

/* Where the program is. For windows of time (swap_window.h, exchange_pause.h). */
struct spill_access_point {
	const struct spill_access_history *history;
	uint64_t now_ns;
	uint64_t in_place_ns; /* what all accesses in place have cost so far */
};

/* Adds the buffers that one launch accesses now. Constant time for each, some 20 ns. */
void spill_access_history_launch(struct spill_access_history *history,
                                 const struct spill_access_range *ranges, unsigned count, uint16_t site);

static inline const struct spill_access *spill_access_at(const struct spill_access_history *history,
                                                         uint64_t number)
{
	return &history->uses[number % SPILL_ACCESS_USES];
}

/*
 * Where the buffer of that access is by now: where a launch of this step found it, or as far on as it moved in
 * the last two steps. PyTorch with expandable segments moves nearly all activations by the same 48 MiB in each
 * step (measured, docs/recordings.md). Layers of a network are as far from each other, but that is another
 * repetition, of another period.
 */
static inline uint32_t spill_access_place(const struct spill_access_history *history, uint64_t number)
{
	const struct spill_access *use = spill_access_at(history, number);
	uint64_t period = history->count - history->next;
	uint32_t place = use->first;

	if (!spill_buffer_moves_get(&history->moves, &place, number, period) && use->drifts &&
	    spill_is_same_period(use->period, period))
		place += (uint32_t)use->moved;
	return place;
}

/*
 * The predicted access that is so many further on, at most one period. False: there is no such one.
 * There is none while most of the last predictions were wrong: then eviction by age is better. Inline,
 * because a choice asks for thousands of them while the program waits.
 */
static inline bool spill_access_history_next(const struct spill_access_history *history, uint64_t further,
                                             struct spill_access *use)
{
	if (history->sure < SPILL_ACCESS_SURE_LEAST || history->count - history->next <= further)
		return false;
	*use = *spill_access_at(history, history->next + further);
	use->first = spill_access_place(history, history->next + further);
	return true;
}

/*
 * The access `ago` accesses before the last one. False: there is no such access, or it is
 * forgotten.
 */
bool spill_access_history_past(const struct spill_access_history *history, uint64_t ago,
                               struct spill_access *use);

#endif

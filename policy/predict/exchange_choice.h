/*
 * predict: which memory the program will use next, and whether a migration pays.
 *
 * The room learns from accesses (access_history.h) and from measured times (migration_benefit.h,
 * site_chunk_cost.h). It recognises growing pools (growth.h), and estimates device usage between
 * queries of the driver (usage_estimate.h). It never moves memory and never reads a clock. All
 * state is the caller's, and zeroed state knows nothing. Begin reading here: this header uses the
 * others.
 *
 * The choice of an exchange: some chunk on the host is needed now, so which chunks are promoted,
 * and which are demoted for them? Promoted: the needed chunks, then the next predicted ones, up to
 * the slice. Demoted: the chunks whose next use is furthest in the future (Belady). For a predicted
 * chunk, a victim's next use must be several times later (exchange_choice.c). Chunks without a
 * predicted use leave first, the least recently used one first.
 *
 * Sizes are bytes.
 */
#ifndef SPILL_EXCHANGE_CHOICE_H
#define SPILL_EXCHANGE_CHOICE_H

#include "access_history.h"
#include "chunk_index.h"
#include "minmax.h"
#include "migration_benefit.h"

enum spill_exchange_verdict { SPILL_EXCHANGE_STAYS, SPILL_EXCHANGE_COMES, SPILL_EXCHANGE_GOES };

struct spill_exchange_chunk {
	uint32_t key; /* the number of its first unit (access_history.h) */
	uint64_t bytes;
	bool on_host;
	bool displaced; /* by an exchange: without it, it would be on the other side */
	bool fixed;     /* cannot move (pinned) */
	bool needed;    /* by the launch that comes now */
	bool dead;      /* moves without a copy */
	bool swapped;   /* lately, so it does not swap (placement_swap.h) */
	bool maybe;     /* perhaps needed: up to four slices are promoted; can be a victim */
	void *data;     /* the caller's */
	unsigned index; /* the caller's */
	/* Results: */
	enum spill_exchange_verdict verdict;
	uint64_t next;   /* steps until its next predicted access; 0: needed; UINT64_MAX: none predicted */
	uint64_t last;   /* accesses since its last one, for victims without a prediction; UINT64_MAX: many */
	uint64_t launch; /* the last predicted launch that accesses it, for the choice */
	/* Cost of a MiB in place: by the accesses of its coming stay, or, if it may go, by those behind that. */
	uint64_t excess_ns;
	uint64_t wide_ns; /* the same of a wide stay (exchange_choice.c), for the choice */
};

struct spill_exchange_choice {
	struct spill_exchange_chunk *chunks;
	unsigned count;
	struct spill_chunk_index index; /* of all chunks */
	unsigned *ranks;                /* room for `count` numbers, to sort in here. */
	uint64_t room;                  /* device bytes that are free without a demotion. */
	uint64_t spare; /* part of it to leave free again, if victims exist that are not needed soon. */
	uint64_t slice; /* most bytes to promote at once, unless more are needed. */
	/* a stay ends after accesses to so many other bytes, half of the resident ones, or twice as many (exchange_choice.c) */
	uint64_t horizon;
	bool always;     /* promote needed chunks at any cost (movable.follow = on) */
	bool swaps_only; /* an exchange was not asked for: nothing moves but by a swap */
	bool idle_only; /* by a swap only chunks leave that were not accessed in its window (idle_window.h) */
	bool graph;     /* the launch is a graph, whose memory finds its places by trials: nothing swaps */
	bool ahead;     /* nothing is needed yet: promote what is used next, whatever that saves */
	/* Results: */
	uint64_t comes, goes; /* bytes */
	bool pays;            /* false: nothing moves, but by a swap */
	bool swaps;           /* the chunks change places for good (placement_swap.h) */
	bool whole;           /* the window of a swap has whole periods of the program */
	uint64_t excess_ns;   /* in-place cost of a needed MiB on the host: the reason of the decision */
	uint64_t rent_ns; /* what a MiB that leaves for it will cost; excess_ns has to be that much more */
};

/*
 * Decides; true if a chunk comes. pre: `history` has the accesses of the launch that comes now.
 * `benefit` may be NULL: then everything pays. moved_so_far: earlier launches of the site were
 * served by moves (hysteresis, spill_benefit_pays). Time: one period of the history, and count *
 * log(count).
 */
bool spill_exchange_choose(struct spill_exchange_choice *choice, const struct spill_access_history *history,
                           const struct spill_migration_benefit *benefit, uint16_t site, bool moved_so_far);

/* The next chunk of a range, which gets shorter by it. NULL: it ends, or the rest of it was freed since. */
static inline struct spill_exchange_chunk *spill_exchange_next_chunk(
    const struct spill_exchange_choice *choice, struct spill_access_range *range)
{
	const struct spill_chunk_slot *slot =
	    range->units ? spill_chunk_index_find(&choice->index, range->first) : NULL;

	if (!slot)
		return NULL;

	uint32_t step = spill_min(slot->first + slot->units - range->first, range->units);

	range->first += step;
	range->units -= step;
	return &choice->chunks[slot->place];
}

#endif

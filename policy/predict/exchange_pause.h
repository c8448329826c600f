/*
 * Exchanges pause where the program is faster without them.
 *
 * An exchange is chosen because it takes less time than the accesses in place that it saves on the device
 * (exchange_choice.h). But the device is not all: an exchange also stops the threads that launch. A program that
 * is bound by its launches reads memory in place while the device would wait anyway, and loses what exchanges
 * take. No time of a single launch tells that. So the time of whole periods of the program is compared, with
 * exchanges and without, and the faster way is kept (docs/adr/0045-exchanges-pause.md).
 *
 * The other way is tried rarely, and not for long: only where exchanges take a part of the time that counts, and
 * where memory at home would cost no more than they do, with what is accessed in place by now. A trial ends soon when it turns out to be slower.
 * While exchanges pause, chunks swap for good (placement_swap.h), so that what costs least is on the host.
 *
 * All memory is in the struct. Zeroed, nothing is known. Times are ns.
 */
#ifndef SPILL_EXCHANGE_PAUSE_H
#define SPILL_EXCHANGE_PAUSE_H

#include "access_history.h"

enum spill_pause_change {
	SPILL_PAUSE_SAME,
	SPILL_PAUSE_BEGINS, /* a trial has shown that the program is faster without exchanges */
	SPILL_PAUSE_ENDS,   /* it is faster with them by now, or does something else */
	/* A trial gained too little: exchanges go on, as before, or pause on. */
	SPILL_PAUSE_IN_VAIN,
	SPILL_PAUSE_GOES_ON,
};

/* Periods by size: from a power of two up to the next. The history keeps fewer than 2^17 accesses. */
#define SPILL_PAUSE_SIZES 18

/* Accesses that are timed together: whole periods of the program. */
struct spill_pause_window {
	uint64_t first, begin_ns; /* number of its first access, and its time; 0: it has not begun */
	uint64_t unforeseen;      /* wrong predictions before it */
	uint64_t moves_ns;        /* what exchanges took */
	uint64_t in_place_ns;     /* what accesses in place had cost before it */
	struct {
		uint64_t seen, longest;
	} periods[SPILL_PAUSE_SIZES]; /* as predicted at the accesses to memory on the host */
	uint64_t seen;                /* of all sizes */
};

struct spill_exchange_pause {
	bool pauses;  /* the way that is kept: without exchanges */
	bool asks;    /* what does memory at home cost? Then spill_exchange_pause_told */
	bool tries;   /* the other way is tried ... */
	bool settled; /* ... and its window has begun */
	struct spill_pause_window window;
	/*
	 * Of the last window of the way that is kept: ns of 1,024 accesses, 0: unknown; its period; what exchanges and accesses in
	 * place cost in one.
	 */
	uint64_t pace, period, cost_ns;
	uint64_t tried_pace; /* of the trial that changed the way */
	/* Of the last trial: what a period took before it, and in it. In vain: what all of it was to take, and took. */
	uint64_t was_ns, is_ns;
	uint64_t tried, tried_ns;  /* the trial's first access, and its time */
	uint64_t swapped;          /* accesses before the last swap */
	uint64_t next_ns, wait_ns; /* no trial before, and how long it was waited for that */
};

/* True: needed memory stays in place, whatever an exchange would save. */
static inline bool spill_exchange_pauses(const struct spill_exchange_pause *pause)
{
	return pause->pauses != pause->tries;
}

/* An access to memory on the host comes. Begins and ends trials. Takes a few ns. */
enum spill_pause_change spill_exchange_pause_access(struct spill_exchange_pause *pause,
                                                    const struct spill_access_point *at);

/*
 * The answer to .asks: ns that the last .period accesses would have cost with all memory at home, where it would be
 * without exchanges (spill_placement_home_cost). Begins a trial, if one may gain.
 */
void spill_exchange_pause_told(struct spill_exchange_pause *pause, const struct spill_access_point *at,
                               uint64_t home_ns);

/* Chunks have swapped. */
static inline void spill_exchange_pause_swapped(struct spill_exchange_pause *pause,
                                                const struct spill_access_history *history)
{
	pause->swapped = history->count;
}

/* For a while no accesses were seen. Windows and a trial would have a gap. */
static inline void spill_exchange_pause_interrupted(struct spill_exchange_pause *pause)
{
	pause->window = (struct spill_pause_window){0};
	pause->pace = 0;
	pause->tries = pause->asks = pause->settled = false;
}

/* An exchange took so long. */
static inline void spill_exchange_pause_moved(struct spill_exchange_pause *pause, uint64_t ns)
{
	pause->window.moves_ns += ns;
}

#endif

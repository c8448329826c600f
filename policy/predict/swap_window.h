/*
 * When to look for swaps (placement_swap.h), and over which accesses. A swap is a bet that the program goes on as it does.
 * So it is judged by the time that is past: it has to save its copies in a window of accesses like the last one.
 *
 * A window begins anew where moves cost more than a small part of what memory costs in place: there exchanges pay, and a
 * placement is only for a moment. It needs no exact prediction. In a decoding language model each token's caches lie
 * elsewhere, so that one access in thirty is not as predicted (docs/adr/0043-swaps.md).
 *
 * All memory is in the struct. Zeroed, no window has begun. Times are ns.
 */
#ifndef SPILL_SWAP_WINDOW_H
#define SPILL_SWAP_WINDOW_H

#include "access_history.h"

struct spill_swap_window {
	uint64_t first, begin_ns;   /* number of its first access, and its time; 0: it has not begun */
	uint64_t unforeseen;        /* wrong predictions before it */
	uint64_t in_place_ns;       /* what accesses in place had cost before it */
	uint64_t moves_ns;          /* time of moves in it; the caller adds them */
	uint64_t looked_at;         /* accesses before the last look */
	uint64_t next_ns, pause_ns; /* the next look, and the wait for it */
	uint64_t offered_ns;        /* the last time when a look was due */
};

/* True: in a window moves cost so much of what accesses in place cost that chunks do not swap. */
bool spill_moves_keep_from_swaps(uint64_t moves_ns, uint64_t in_place_ns);

/*
 * True: a look may take place. The window is long enough, the last look was a period ago, and little was moved.
 */
bool spill_swap_window_tells(struct spill_swap_window *window, const struct spill_access_point *at);

/* The same for who only wants to know whether to try. Not true again for 10 ms, because what is due may not be possible. */
bool spill_swap_window_is_due(struct spill_swap_window *window, const struct spill_access_point *at);

/* The access that the sums begin with, so that they are of whole periods. */
uint64_t spill_swap_window_first(const struct spill_swap_window *window,
                                 const struct spill_access_history *history);

/* Its accesses have a gap, or were not as they will be: the next look at the window begins it anew. */
static inline void spill_swap_window_interrupted(struct spill_swap_window *window)
{
	window->begin_ns = 0;
}

/* A look takes place. The next one waits, each time twice as long. */
void spill_swap_window_looked(struct spill_swap_window *window, const struct spill_access_history *history,
                              uint64_t now_ns);
/* Something has swapped by that look: the next one does not wait. */
void spill_swap_window_swapped(struct spill_swap_window *window, uint64_t now_ns);

#endif

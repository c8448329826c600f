/*
 * When to look for memory that lies idle on the device (placement_swap.h), and over which accesses: the last steps of the
 * program, as long as it repeats them. A program that goes on with something else, such as another one of its models, uses
 * in each step what is on the host, while the device holds what it used before. A few steps tell that. The long window of
 * other swaps (swap_window.h) has both, and tells it late or never.
 *
 * A step has ended when memory on the host is used again. The prediction (access_history.h) does not tell that: where
 * layers are alike, it may be of a layer.
 *
 * All memory is in the struct. Zeroed, no window has begun. Times are ns. A use is an access of one chunk.
 */
#ifndef SPILL_IDLE_WINDOW_H
#define SPILL_IDLE_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

/* Where the program is: accesses of the history, uses, and what memory in place has cost, so far. */
struct spill_idle_point {
	uint64_t access, use, in_place_ns;
};

struct spill_idle_window {
	struct spill_idle_point first;
	uint64_t fresh, again; /* uses in place: the first of a chunk in the window, and those a step later */
	uint64_t last;         /* uses before the last one in place */
	uint64_t step;         /* uses of a step; 0: not known, as the window has too few */
	uint64_t moves_ns;     /* time of exchanges in it; the caller adds them */
	/* Of the last uses in place: the use before the first one, and where the first of the window's new chunks was. */
	struct {
		uint64_t begin;
		struct spill_idle_point fresh_at;
		unsigned uses, fresh;
	} group;
	uint64_t next_ns, pause_ns; /* the next look, and the wait for it */
	uint64_t paid, vain;        /* bytes that came by such swaps and left, lately */
	uint64_t barred_ns;         /* the wait after swaps in vain */
};

/* A chunk is used in place, `gap` uses after the last time. */
void spill_idle_window_use(struct spill_idle_window *window, struct spill_idle_point at, uint64_t gap);

/* Its accesses have a gap: the next use begins it anew. */
static inline void spill_idle_window_interrupted(struct spill_idle_window *window)
{
	window->fresh = window->step = 0;
}

/* True: a look may take place, over the accesses since .first. */
bool spill_idle_window_is_due(const struct spill_idle_window *window, struct spill_idle_point at,
                              uint64_t now_ns);

/*
 * A look has taken place. Not `whole`: the program has begun something else in the window, which begins anew. Where nothing
 * swapped the next look waits, each time twice as long. Else there may be more to swap.
 */
void spill_idle_window_looked(struct spill_idle_window *window, struct spill_idle_point at, bool whole,
                              bool swapped, uint64_t now_ns);

/*
 * The access up to which a chunk that comes has to be used: then it has saved its way here and back, and as many steps as it will
 * take until what leaves for it comes back. copies_ns, cost_ns: of a MiB, and what it cost in the window. pre: cost_ns != 0
 */
uint64_t spill_idle_window_pays_at(const struct spill_idle_window *window, struct spill_idle_point at,
                                   uint64_t copies_ns, uint64_t cost_ns);

/*
 * Such a swap has taken place. Of what leaves, `paid` bytes had come by an earlier one and paid; `vain` bytes had not, in
 * `vain_ns` at most. More in vain than paid: the program goes to and fro too fast, so there is no look for 32 times as long, and twice
 * as long each time.
 */
void spill_idle_window_swapped(struct spill_idle_window *window, uint64_t paid, uint64_t vain,
                               uint64_t vain_ns, uint64_t now_ns);

#endif

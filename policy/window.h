/*
 * Which chunks come to the device and which leave for them, at a moment when something is needed that is on the host. What
 * comes: what is needed now, then what is foreseen next, as far as the slice goes. What leaves: what is needed furthest in the
 * future (Belady), and for what is foreseen only if it is needed several times later than that (window.c). What is foreseen by
 * nothing leaves first, by age.
 *
 * Pure: arrays are the caller's. Sizes are bytes.
 */
#ifndef SPILL_WINDOW_H
#define SPILL_WINDOW_H

#include "order.h"
#include "reuse.h"

enum spill_window_verdict { SPILL_WINDOW_STAYS, SPILL_WINDOW_COMES, SPILL_WINDOW_GOES };

struct spill_window_chunk {
	uint32_t key; /* as in the order; no two have the same */
	uint64_t bytes;
	bool on_host;
	bool fixed;     /* can neither come nor go (pinned) */
	bool needed;    /* by the use that is about to be made */
	bool maybe;     /* perhaps: it comes, too, up to four slices of it, but leaves for what is needed */
	void *data;     /* the caller's */
	unsigned index; /* the caller's */
	/* Out: */
	enum spill_window_verdict verdict;
	uint64_t next; /* steps until its next foreseen use; 0: needed; UINT64_MAX: none is foreseen */
	uint64_t
	    last; /* uses since its last one; UINT64_MAX: long ago. Only for those that may go and are not foreseen */
	uint64_t excess_ns; /* a MiB of it, in place, over the uses of its coming stay */
};

struct spill_window {
	struct spill_window_chunk *chunks; /* sorted by key; afterwards still */
	unsigned count;
	unsigned *ranks; /* room for `count` of the caller's, for sorting in here */
	uint64_t room;   /* bytes that may be taken on the device without anything leaving */
	uint64_t
	    spare; /* of it that is to be there afterwards, too, as far as something leaves for it that is not needed soon */
	uint64_t slice; /* most bytes that come at once, unless what is needed is more */
	uint64_t
	    horizon; /* a stay ends when so many bytes of others have been used: half of what is resident, say */
	bool always; /* whatever it costs (movable.follow = on): what is needed comes */
	/* Out: */
	uint64_t comes, goes; /* bytes */
	bool pays;            /* false: nothing is to move */
	uint64_t
	    excess_ns; /* what a MiB of what is asked for and on the host costs in place: it was decided by that */
};

/* Orders by key, for qsort(3) by the caller. */
int spill_window_compare(const void *left, const void *right);

/*
 * Decides. pre: the order was told of the use that is about to be made. `reuse` may be NULL: everything pays.
 * `moved_so_far`: the site that needs it was served by moves before (hysteresis, spill_reuse_pays). True if something comes.
 * Time: the walk along one period, and count·log(count).
 */
bool spill_window_choose(struct spill_window *window, const struct spill_order *order,
                         const struct spill_reuse *reuse, uint16_t site, bool moved_so_far);

#endif

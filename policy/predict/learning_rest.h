/*
 * When the accesses of launches need not be learned, for a moment.
 *
 * To learn them takes some us of the CPU for each launch: 8 to 10 % of the time of programs that are bound by their launches
 * (docs/adr/0047-learning-rests.md). It is for nothing where next to nothing is lost in place, and nothing moves. After a while
 * of that learning rests, for a small part of that while. A program that goes on with something else loses no more than this
 * part before it is seen.
 *
 * All memory is in the struct. Zeroed, no watch has begun. Times are ns.
 */
#ifndef SPILL_LEARNING_REST_H
#define SPILL_LEARNING_REST_H

#include <stdbool.h>
#include <stdint.h>

/* What was learned so far. */
struct spill_learning_sums {
	uint64_t accesses;
	uint64_t lost_ns; /* by accesses in place; a copy's cost where theirs is unknown */
};

struct spill_learning_rest {
	uint64_t quiet_ns;                 /* since then next to nothing was lost */
	uint64_t begin_ns;                 /* of the window that is watched; 0: none */
	struct spill_learning_sums before; /* what was learned before that window */
	uint64_t rest_ns;                  /* the last rest took so long */
};

/*
 * Called now and then while accesses are learned. `disturbed`: memory moves, or its place is tried. The answer: how long to
 * rest now; 0: not now.
 */
uint64_t spill_learning_rest_due(struct spill_learning_rest *rest, uint64_t now_ns,
                                 struct spill_learning_sums sums, bool disturbed);

/*
 * Accesses are learned again: a new window begins. `late_ns`: so much later than was due, because nothing was launched. That time
 * was not quiet, as nothing is known of it. `disturbed`: as above, in the rest.
 */
void spill_learning_rest_ended(struct spill_learning_rest *rest, uint64_t now_ns, uint64_t late_ns,
                               struct spill_learning_sums sums, bool disturbed);

#endif

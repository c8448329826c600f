/*
 * A plan of moves: collected, carried out with the gate closed and the device idle, and told in the log. What is particular
 * to a direction is in demote.c and promote.c.
 */
#ifndef SPILL_MOVE_BATCH_H
#define SPILL_MOVE_BATCH_H

#include "move.h"

struct spill_move_batch {
	struct spill_move *moves; /* malloc'ed; those of one allocation are next to each other */
	unsigned count, room;
	unsigned later; /* behind those, moves to the device that are told afterwards as if they came then */
	uint64_t bytes; /* of all */
};

/* Why something moved, and for whom. Strings are static or interned. */
struct spill_move_reason {
	enum spill_move_kind kind;
	enum spill_reason reason;
	const char *api, *caller;
	uint64_t start_us; /* spill_log_now_us when it began */
};

/* False if there is no memory for one more. */
bool spill_move_batch_add(struct spill_move_batch *plan, const struct spill_move *move);

/* False: the device was busy the last time, and it still is. pre: the mover is held, this thread is not inside the gate */
bool spill_move_batch_has_a_chance(const struct spill_backend *backend, int device, uint64_t wait_us);

/*
 * Moves all that can: bounded by `wait_us` until nothing uses the device, then by the copies. Returns NULL, or why not all moved (static). pre: the mover is held, plan->count > 0, this thread is not inside the gate
 */
const char *spill_move_batch_carry_out(struct spill_move_batch *plan, const struct spill_backend *backend,
                                       int device, uint64_t wait_us);

/*
 * The same with the homes staged already, and the caller's own patience. Stores how long the moves took; 0: none was begun, since
 * the device was not idle in time or something captures. Moves that have begun go on to their end.
 */
const char *spill_move_batch_attempt(struct spill_move_batch *plan, const struct spill_backend *backend,
                                     int device, uint64_t deadline_ns, const struct spill_move_helper *helper,
                                     uint64_t *moving_ns);

/* One line for each allocation of which something moved. pre: the mover is held */
void spill_move_batch_report(const struct spill_move_batch *plan, const struct spill_move_reason *why);

/* Ends it; the handles in it are the caller's. */
void spill_move_batch_end(struct spill_move_batch *plan);

#endif

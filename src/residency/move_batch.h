/*
 * A batch of moves: collected, carried out with the gate closed and the device idle, and logged.
 * demote.c and promote.c have the parts of one direction.
 */
#ifndef SPILL_MOVE_BATCH_H
#define SPILL_MOVE_BATCH_H

#include "move.h"
#include "record.h"

struct spill_move_batch {
	struct spill_move *moves; /* from malloc; moves of one allocation are neighbours */
	unsigned count, capacity;
	unsigned later; /* moves behind `count`, logged as if they came later */
	uint64_t bytes; /* of all moves */
};

/* Why chunks moved, and for which request. Strings are static or interned. */
struct spill_move_reason {
	enum spill_move_kind kind;
	enum spill_reason reason;
	const char *api, *caller;
	uint64_t start_us;      /* spill_log_now_us at the begin */
	struct spill_seen seen; /* of the device, when the chunks were chosen */
	uint64_t told_us;       /* time since start_us that lines already tell */
};

/* False: no memory for one more move. */
bool spill_move_batch_add(struct spill_move_batch *batch, const struct spill_move *move);

/*
 * False: the device was busy the last time, and still is. pre: the mover is held, this thread is
 * not inside the gate
 */
bool spill_move_batch_has_a_chance(const struct spill_backend *backend, int device, uint64_t wait_us);

/*
 * Carries out the moves. Waits up to `wait_us` for an idle device, then for the copies. Returns
 * NULL, or why not all chunks moved (static). pre: the mover is held, batch->count > 0, this thread
 * is not inside the gate
 */
const char *spill_move_batch_carry_out(struct spill_move_batch *batch, const struct spill_backend *backend,
                                       int device, uint64_t wait_us);

/*
 * Carries out moves whose host memory is already mapped (spill_move_stage), with the caller's
 * deadline for an idle device. Stores the time of the moves; 0: none began, because the device was
 * busy or a stream captures. Moves that have begun finish.
 */
const char *spill_move_batch_attempt(struct spill_move_batch *batch, const struct spill_backend *backend,
                                     int device, uint64_t deadline_ns, const struct spill_move_helper *helper,
                                     uint64_t *moving_ns);

/*
 * Returns the memory that the moves do not need any more: the old memory of moved chunks, and the
 * new memory of the others. Host memory is kept for the next demotion. Returns the bytes that moved
 * to the device, and to the host. pre: the mover is held
 */
struct spill_bytes spill_move_batch_settle(const struct spill_move_batch *batch,
                                           const struct spill_backend *backend, int device);

/* Logs a line for each allocation that had a chunk moved. pre: the mover is held */
void spill_move_batch_report(const struct spill_move_batch *batch, struct spill_move_reason *why);

/* Empties the batch. The caller releases the handles. */
void spill_move_batch_end(struct spill_move_batch *batch);

#endif

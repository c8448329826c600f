/*
 * Moves chunks: copies them and maps them again. The caller chooses the chunks and the time
 * (demote.h, promote.h).
 */
#ifndef SPILL_MOVE_H
#define SPILL_MOVE_H

#include "chunked.h"

/* One chunk and its new memory. */
struct spill_move {
	struct spill_chunked *chunked;
	unsigned index; /* in chunked->chunks */
	/*
	 * New memory of the chunk's size on the other side; 0: none yet (get_memory). After the
	 * move: the old memory.
	 */
	uint64_t handle;
	/*
	 * Address of a second mapping of that memory, for copies, with access by the device. It has
	 * a range of its own, reserved for exactly the chunk's bytes; 0: none. It belongs to the
	 * handle, so after the move it is the old memory's.
	 */
	uint64_t view;
	bool moved;
};

static inline struct spill_chunk *spill_move_chunk(const struct spill_move *move)
{
	return &move->chunked->chunks[move->index];
}

/* True: the chunk has left the device, or was to leave it. */
static inline bool spill_move_leaves(const struct spill_move *move)
{
	return move->moved == spill_move_chunk(move)->on_host;
}

/* For moves both ways, where chunks that leave make room for others. */
struct spill_move_helper {
	/*
	 * Gets new memory for a move that has none. False: there is none yet. It is asked again
	 * after the next finished move.
	 */
	bool (*get_memory)(struct spill_move *move, void *data);
	/*
	 * A move is finished, and .handle is the old memory. This function may release that, and
	 * then sets .handle to 0.
	 */
	void (*finished)(struct spill_move *move, void *data);
	void *data;
};

/*
 * Copies each chunk to its new memory, and maps that in its place, with the access of all devices
 * that had it (peer.h). Returns the number of moved chunks, and tells spill_chunked_moved. A
 * finished move has .moved set. Its .handle is the old memory, unmapped, which the caller releases
 * or keeps. If a mapping fails, the chunk stays at its old memory, or is mapped there again. Its
 * .handle is still the new memory, and no further move begins.
 *
 * Copies begin in the given order, and both ways at once if the moves go both ways. They are
 * polled, so the time is bounded by the link while the vendor works. `helper`: NULL if all moves
 * have new memory.
 *
 * pre: the mover is held (gate.h); the gate is closed and the device idle, so that no work can use
 * the chunks; `context` is a live context of the device
 */
unsigned spill_move(const struct spill_backend *backend, int device, void *context, struct spill_move *moves,
                    unsigned count, const struct spill_move_helper *helper);

/* Notes that the new memory has the content, and is the chunk's from now on. pre: the mover is held */
void spill_move_done(struct spill_move *move);

/*
 * Maps new host memory for the copies, before the moves and with the gate open. Otherwise the
 * program would wait half as long again (measured, H200). spill_move retries what fails. pre: the
 * mover is held
 */
void spill_move_stage(const struct spill_backend *backend, int device, struct spill_move *moves,
                      unsigned count);

#endif

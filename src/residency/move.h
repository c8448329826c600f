/*
 * Moving chunks: mechanics only. What moves, and whether it may now, is the caller's business (demote.h, promote.h).
 */
#ifndef SPILL_MOVE_H
#define SPILL_MOVE_H

#include "context_end.h"
#include "chunked.h"

/* One chunk and its new home. */
struct spill_move {
	struct spill_chunked *of;
	unsigned chunk; /* index */
	/* Of memory of the chunk's size on the other side; after a move: the old home's; 0: none yet (home). */
	uint64_t handle;
	/*
	 * Where that memory is mapped a second time, for copies, with access by the device: an address range of its own,
	 * reserved for exactly the chunk's bytes; 0: nowhere. It goes with the handle: after a move, the old home's.
	 */
	uint64_t view;
	bool moved;
};

static inline struct spill_chunk *spill_move_chunk(const struct spill_move *move)
{
	return &move->of->chunks[move->chunk];
}

/* For moves both ways, where the ones make the room for the others. */
struct spill_move_helper {
	/* Gets a new home for a move that has none. False: there is none as yet; asked again when another has landed. */
	bool (*home)(struct spill_move *move, void *data);
	/* It is done, and the old home's handle is in .handle: may be given back here, .handle 0 then. */
	void (*landed)(struct spill_move *move, void *data);
	void *data;
};

/*
 * Copies each chunk to its new home and maps that in its place, with the access of all devices that had it (peer.h). The
 * moves that are done have .moved set and the old home's handle in .handle, unmapped: the caller's to release or keep. A
 * chunk whose mapping fails stays, or is put back, where it was; its .handle is the new home's still, and no further one is
 * begun. Returns the number moved. The placements are brought up to date by spill_chunked_moved (accounts: see there).
 *
 * Copies are waited for by polling: bounded by the link while the vendor works. They begin in the order given, both ways at
 * once where both are in it. `helper`: NULL if all new homes are there.
 *
 * pre: the mover is held (chunked.h); the gate is closed and the device idle, so that nothing can touch the chunks; `context`
 * is one of the device's and live
 */
unsigned spill_move(const struct spill_backend *backend, int device, void *context, struct spill_move *moves,
                    unsigned count, const struct spill_move_helper *helper);

/*
 * Maps new homes on host where they are copied to, ahead of the moves and with the gate open: half as long again it would take
 * while the program waits (measured, H200). What fails is left to spill_move. pre: the mover is held
 */
void spill_move_stage(const struct spill_backend *backend, int device, struct spill_move *moves,
                      unsigned count);

/*
 * Makes what moves need on a device and in a context (stream, events, address space) while there is memory for it and
 * nobody waits for the device. False: it cannot move. Two loads when it is there already. pre: the mover is not held by this thread, nothing captures
 */
bool spill_move_prepare(const struct spill_backend *backend, int device, void *context);

/*
 * The context is about to end, and with it what was made in it. Waits for the mover, so it comes before the vendor's call;
 * what is missed by one that fails is made again.
 */
void spill_move_give_up(const struct spill_backend *backend, int device, const void *context);

/* It has ended: what was made in it since then is gone. */
void spill_move_context_ended(const struct spill_context_end *end);

/* In a forked child nothing of it is there. */
void spill_move_reset(void);

#endif

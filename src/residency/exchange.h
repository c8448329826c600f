/*
 * An exchange: some chunks come to the device while others leave it, both ways of the link at once,
 * with the gate closed. Chunks that leave make room for those that come, one by one, so it needs no
 * more device memory than is free.
 */
#ifndef SPILL_EXCHANGE_H
#define SPILL_EXCHANGE_H

#include "move_batch.h"

/* Device memory that a chunk has left. */
struct spill_spare {
	uint64_t handle, bytes;
	uint64_t view; /* as in struct spill_move; 0: none */
};

/* Empty if zeroed, except for backend and device. */
struct spill_exchange {
	const struct spill_backend *backend;
	int device;
	struct spill_move_batch comes, goes;
	struct spill_spare *spares; /* during the moves: device memory that chunks have left. */
	unsigned spare_count;
	struct spill_move *order; /* during the moves: all of them, as they begin and finish. */
	unsigned order_count, finished;
	uint64_t room;        /* during the moves: free device bytes for the exchange. */
	uint64_t made;        /* during the moves: device bytes that had to be made. */
	uint64_t can_be_dead; /* during the moves: bytes of the largest chunk that parking.h takes. */
	uint64_t keep;        /* device bytes to keep afterwards, or to leave free, if that many are left. */
	uint64_t came;        /* result: bytes that came. */
	uint64_t ns;          /* result: time of the moves; 0: none, because the device was busy. */
	bool fresh;           /* result: host memory was new, so the next exchange is faster. */
};

/*
 * Most device memory that is kept from one exchange for the next, so that chunks that come need not
 * wait for others to leave.
 */
#define SPILL_EXCHANGE_KEPT (128ull << 20)
uint64_t spill_exchange_kept(void); /* bytes that are kept now; charged to the process */
/* Releases the kept memory. Returns its bytes. pre: the mover is held */
uint64_t spill_exchange_drop(void);
/* Releases the kept memory of a device whose last context has ended. Waits for the mover. */
void spill_exchange_forget(const struct spill_backend *backend, int device);
void spill_exchange_reset(void); /* in a forked child */

/*
 * Adds a chunk that shall change sides. If it leaves, its host memory is made here, while the
 * program goes on. False: there is no memory, and the chunk is not added. pre: the mover is held
 */
bool spill_exchange_add(struct spill_exchange *exchange, struct spill_chunked *chunked, unsigned index);

/*
 * Carries the exchange out as far as the vendor allows, logs it, and empties it. No chunk moves if
 * the device is not idle by `deadline_ns`. pre: the mover is held, the exchange is not empty, this
 * thread is not inside the gate
 */
void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns);

/*
 * Gives kept device memory to a parked chunk (parking.h), without a stop, and logs it. False: none is kept for it,
 * and it is as before. pre: the mover is held
 */
bool spill_exchange_bring_parked(struct spill_chunked *chunked, unsigned index);

/* -- for flights (flight.h), which make the moves themselves ------------------------------------ */

/* Prepares the lists for the moves, with the kept memory as spares. False: no memory for them. */
bool spill_exchange_open(struct spill_exchange *exchange);

/* Gives a chunk that comes a spare of its size. False: there is none. */
bool spill_exchange_use_spare(struct spill_exchange *exchange, struct spill_move *move);

/* Makes device memory for a chunk that comes, of what is free. False: too little is free. */
bool spill_exchange_make(struct spill_exchange *exchange, struct spill_move *move);

/* Notes a finished move. The memory that the chunk has left becomes a spare. */
void spill_exchange_note(struct spill_exchange *exchange, struct spill_move *move);

/* Returns unused memory of the moves, logs them, and empties the exchange. `batch`: all its moves */
void spill_exchange_close(struct spill_exchange *exchange, struct spill_move_batch *batch,
                          struct spill_move_reason why);

/* -- undoing exchanges (restore.c) ------------------------------------------------------------- */

/*
 * Exchanges leave a placement behind that suits the predictions. When these no longer hold, the
 * placement is an accident: half of a KV cache may be on the host, in place of weights that are
 * read once. So each chunk that an exchange moved is marked as displaced until another kind of move
 * moves it, or it swaps (policy/predict/placement_swap.h).
 *
 * Moves displaced chunks back, in slices, until another thread wants the mover. True: no more
 * chunks can go back now. pre: the mover is held, the device is idle or nearly so, this thread is
 * not inside the gate
 */
bool spill_restore(const struct spill_backend *backend, int device);

/* True: a chunk of another device is on the host, and displaced. pre: the mover is held */
bool spill_restore_left(int device);

#endif

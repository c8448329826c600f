/*
 * An exchange: chunks come to the device while others leave it, both ways of the link at once, behind the closed gate. What
 * leaves makes the room for what comes, chunk by chunk, so that it needs no more of the device than is free.
 */
#ifndef SPILL_EXCHANGE_H
#define SPILL_EXCHANGE_H

#include "move_batch.h"

/* Memory of the device that a chunk has left. */
struct spill_spare {
	uint64_t handle, bytes;
};

/* Zeroed but for backend and device, it is empty. */
struct spill_exchange {
	const struct spill_backend *backend;
	int device;
	struct spill_move_batch comes, goes;
	struct spill_spare *spares; /* while it is carried out: homes on the device that were left */
	unsigned spare_count;
	uint64_t room; /* likewise: bytes that may be taken on the device besides */
	uint64_t keep; /* bytes of the device to keep afterwards, if so much is left by then */
	uint64_t came; /* out: bytes */
	uint64_t ns;   /* out: that the moves took; 0: nothing moved, because the device was busy */
	bool fresh;    /* out: homes on host were new, so it takes less the next time */
};

/* Memory of the device that is kept from one exchange to the next, so that what comes need not wait for what leaves: at most this. */
#define SPILL_EXCHANGE_KEPT (128ull << 20)
uint64_t spill_exchange_kept(void); /* bytes of it; they count as held by the process */
/* Gives it back; returns the bytes. pre: the mover is held */
uint64_t spill_exchange_drop(void);
/* The program has no more use for the device (host_chunks.h). Waits for the mover. */
void spill_exchange_forget(const struct spill_backend *backend, int device);
void spill_exchange_reset(void); /* in a forked child */

/*
 * This chunk is to change sides. Its new home on host is got here, while the program goes on. False: there is none, nothing is
 * added. pre: the mover is held
 */
bool spill_exchange_add(struct spill_exchange *exchange, struct spill_chunked *of, unsigned chunk);

/*
 * Does it, as far as the vendor lets it, tells the log and ends the exchange. If the device is not idle by `deadline_ns`,
 * nothing moves. pre: the mover is held, something was added, this thread is not inside the gate
 */
void spill_exchange_carry_out(struct spill_exchange *exchange, uint64_t deadline_ns);

#endif

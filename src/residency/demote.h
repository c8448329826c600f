/*
 * Demotion: chunks of movable allocations leave the device until something else fits on it. Coldest first, and only as many
 * bytes as are missing (policy/decide/victim.h).
 */
#ifndef SPILL_DEMOTE_H
#define SPILL_DEMOTE_H

#include "backend.h"

/* What room is made for, and what came of it. */
struct spill_demotion {
	const struct spill_backend *backend;
	int device;
	uint64_t bytes;           /* that are to fit on the device, by the driver and by device.limit */
	enum spill_reason reason; /* for the log */
	const char *api, *caller; /* for whom */
	uint64_t before;          /* only allocations of a lower seq give way; 0: all */
	bool part_helps;          /* it is worth while even if it is not enough */
	bool keeps_reserve;       /* it is not enough unless the reserve is left free, too (reserve.h) */
	uint64_t freed;           /* out */
	const char *error;        /* out, static: why it is not enough; NULL if it is */
	bool vain;                /* out: nothing there can move, now or in a moment */
};

/*
 * Frees what is missing, and device.reserve beyond it as far as there is something to free; nothing if what is missing is more
 * than that. True: the driver may be asked again with
 * success. Bounded: movable.wait until nothing uses the device, then the copies. pre: this thread is not inside the gate, no
 * lock of ours is held
 */
bool spill_demote(struct spill_demotion *demotion);

/*
 * The same for who holds the mover. `recheck`: nothing is done if there is room; else the driver has just refused, whatever it
 * says is free.
 */
bool spill_demote_held(struct spill_demotion *demotion, bool recheck);

/* Has the homes of what would leave next made ahead of need (host.ahead; host_chunks.h). Cheap without that option. */
void spill_demote_foresee(const struct spill_backend *backend, int device);

#endif

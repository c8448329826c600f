/*
 * Demotion: chunks of movable allocations leave the device until a request fits. They leave in
 * eviction order, and only as many bytes as are missing (policy/decide/victim.h).
 */
#ifndef SPILL_DEMOTE_H
#define SPILL_DEMOTE_H

#include "backend.h"
#include "victim.h"

/* A demotion: its request, and its result. */
struct spill_demotion {
	const struct spill_backend *backend;
	int device;
	uint64_t bytes;           /* to fit on the device, by the driver and by device.limit. */
	const char *reason;       /* for the log: "oom", "limit", "room". */
	const char *api, *caller; /* of the request, for the log. */
	uint64_t older_than;      /* only allocations with a lower seq leave; 0: all. */
	bool part_helps;          /* chunks leave even if that is not enough. */
	bool keeps_reserve;       /* not enough unless device.reserve stays free, too. */
	uint64_t freed;           /* result: bytes that left. */
	const char *error;        /* result, static: why it is not enough; NULL: it is. */
	bool hopeless;            /* result: no chunk can leave, now or soon. */
};

/*
 * Demotes the missing bytes, and more for device.reserve as far as chunks can leave. Demotes none
 * if the missing bytes cannot leave. True: the driver can be asked again with success. The time is
 * bounded: movable.wait until the device is idle, then the copies. pre: this thread is not inside
 * the gate, no lock of ours is held
 */
bool spill_demote(struct spill_demotion *demotion);

/*
 * Demotes for a caller that holds the mover. `recheck`: does nothing if there is room now. Else the
 * driver has just refused the request, so its free figure is ignored.
 */
bool spill_demote_held(struct spill_demotion *demotion, bool recheck);

/*
 * Has host memory made for the next chunks to leave (host.ahead; host_chunks.h). Cheap without that
 * option.
 */
void spill_demote_foresee(const struct spill_backend *backend, int device);

/*
 * The movable allocations with chunks on a device, in eviction order. With on_host: those with
 * chunks on the host, in the order of promotion. Pinned ones are left out. `older_than`: only those
 * with a lower seq; 0: all. Their .data is the struct spill_chunked. The caller frees the list with
 * free(3). NULL with *count 0: there is none. pre: the mover is held
 */
struct spill_victim *spill_victim_list(int device, bool on_host, uint64_t older_than, unsigned *count);

#endif

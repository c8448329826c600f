/*
 * Places: the ways to back an allocation other than the plain call. One file a place; each makes a placement and
 * releases it. The engine asks the places of oom.chain in order.
 */
#ifndef SPILL_PLACE_H
#define SPILL_PLACE_H

#include <sys/queue.h>

#include "backend.h"
#include "context_end.h"
#include "policy.h"

/* What is wanted. */
struct spill_want {
	const struct spill_backend *backend;
	const struct spill_policy *policy;
	int device;
	void *context;
	uint64_t bytes;
	uint64_t device_room;               /* device bytes that are free now, less device.reserve */
	uint64_t device_limit;              /* device.limit, or SPILL_UNLIMITED */
	struct spill_managed_advice advice; /* for managed memory: the policy's, or a rule's */
};

struct spill_place_ops;
struct spill_refusal; /* record.h */

/* A stream, as its order is told from others': the handle, or a name for a thread's own default stream, and its context. */
struct spill_stream_order {
	const void *stream, *context;
};

/* What was made. A place's own struct begins with this. Owned by the ledger's entry. */
struct spill_placement {
	const struct spill_place_ops *ops;
	const struct spill_backend *backend;
	int device;
	void *context;
	uint64_t generation;     /* in which it was made, or given out again (context_end.h) */
	uint64_t ptr, bytes;     /* as the program sees it */
	struct spill_bytes held; /* physical */
	bool by_vendor;          /* the vendor's own free gives it back; the release is bookkeeping only */
	/* While its free waits for the device (src/deferred.c): what it waits for, and the stream's owner. */
	TAILQ_ENTRY(spill_placement) pending;
	void *event, *event_context;
	uint64_t event_generation;       /* in which the event was recorded */
	struct spill_stream_order order; /* of that event */
	int event_device;
	bool owner_ended, event_ended; /* its context, or the event's, has ended meanwhile */
	bool reusable; /* whole on host, and not a block of a shared chunk: kept for the next such request */
};

/* Its context may have ended although a living one has the handle. */
static inline bool spill_placement_ending(const struct spill_placement *placement)
{
	return spill_context_ending(placement->backend, placement->device, placement->context,
	                            placement->generation);
}

/* It ends with that context. */
static inline bool spill_placement_ends_with(const struct spill_placement *placement,
                                             const struct spill_context_end *end)
{
	return spill_context_end_covers(end, placement->backend, placement->device, placement->context,
	                                placement->generation);
}

struct spill_place_ops {
	enum spill_place place;
	/*
	 * Makes a placement, or returns NULL with *error set to a static string: the vendor's error name or the option
	 * that refused. Charges the accounts; checks host.limit and host.reserve first.
	 */
	struct spill_placement *(*make)(const struct spill_want *want, const char **error);
	/*
	 * Gives all back, accounts too. pre: no work on the device uses it any more. `context_ended`: what the vendor made in
	 * the context went with it, and its address may be another allocation's by now.
	 */
	void (*release)(struct spill_placement *placement, bool context_ended);
	/*
	 * The addresses that each further device must be given access to (backend->allow). NULL: none, because every device may
	 * use such memory, or, for a block of a shared chunk, because the chunk is what access is given to.
	 */
	void (*range)(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes);
};

extern const struct spill_place_ops spill_place_movable, spill_place_split, spill_place_managed,
    spill_place_host;

/*
 * Not memory at an address but a handle of host memory, which the program maps itself: `ptr` is the handle. Released with
 * context_ended, it only returns the account: the program has released the handle.
 */
extern const struct spill_place_ops spill_place_handle;

/* The table's row of a place, or NULL for DEVICE. */
const struct spill_place_ops *spill_place_of(enum spill_place place);

/*
 * Makes a placement at `ops`' place: small requests share chunks (src/place/pool.c), others get their own.
 * `error` as above.
 */
struct spill_placement *spill_place_make(const struct spill_place_ops *ops, const struct spill_want *want,
                                         const char **error);

/* Ends a placement made by spill_place_make; NULL is allowed. */
void spill_place_release(struct spill_placement *placement, bool context_ended);

/*
 * Charges up to `bytes` of device memory, in whole multiples of `unit`, as far as room and limit allow; returns what was
 * charged. Two placements at once cannot pass the limit together.
 */
uint64_t spill_device_charge(const struct spill_want *want, uint64_t bytes, uint64_t unit);

/* Charges `bytes` of device memory, all or nothing, if the limit allows it. What is free the driver knows better. */
bool spill_device_charge_all(int device, uint64_t limit, uint64_t bytes);

/*
 * Charges `bytes` of host memory if host.limit, host.reserve and the pressure on the host allow it: NULL, or what refuses
 * ("host.pressure" is no option).
 */
const char *spill_host_charge(const struct spill_policy *policy, uint64_t bytes);
/* Figures of this thread's last refusal; none of "host.pressure". */
const struct spill_refusal *spill_host_refusal(void);
/* The same for physical memory (account.h). */
const char *spill_physical_charge(const struct spill_policy *policy, uint64_t bytes);

/*
 * Bytes of host memory that spill_host_charge would grant now, and in *most those that it could ever grant. Both 0 where the
 * kernel does not say what there is: nothing can be promised then.
 */
uint64_t spill_host_room(const struct spill_policy *policy, uint64_t *most);

/* The shared chunks' lock, for fork. */
void spill_pool_fork_prepare(void);
void spill_pool_fork_done(bool child);

#endif

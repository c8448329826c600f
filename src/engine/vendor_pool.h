/*
 * The vendor's memory pools, for allocation in stream order: the program's, as far as libspill must
 * know them, and our own. A pool holds the bytes that it has reserved, used or not. The accounts
 * are charged with the reserved bytes.
 *
 * An allocation first takes its bytes from the pool (spill_vendor_pool_admit,
 * spill_vendor_pool_charge), and the possible growth of the pool is charged. Then the vendor is
 * asked. Then spill_vendor_pool_settle corrects the charge, or spill_vendor_pool_retract returns
 * it. A free gives the bytes back to the pool, not to the account.
 *
 * A pointer to a pool stays valid for ever. The struct of a pool that has ended is reused.
 */
#ifndef SPILL_VENDOR_POOL_H
#define SPILL_VENDOR_POOL_H

#include "backend.h"
#include "lock.h"
#include "request.h"

struct spill_vendor_pool;

/*
 * Events of the program's pools: created; destroyed (its allocations live on); alive, because the
 * vendor refused to destroy it; trimmed.
 */
void spill_vendor_pool_created(const struct spill_backend *backend, void *handle, enum spill_place place,
                               int device);
/* The driver has a pool there, on no device. It may be recorded already. */
void spill_vendor_pool_found(const struct spill_backend *backend, void *handle, enum spill_place place);
struct spill_vendor_pool *spill_vendor_pool_destroyed(const struct spill_backend *backend,
                                                      const void *handle);
void spill_vendor_pool_alive(struct spill_vendor_pool *pool, void *handle); /* NULL is allowed */
void spill_vendor_pool_trimmed(const struct spill_backend *backend, const void *handle);

/*
 * The pool of that handle. An unknown handle (a default pool) counts as a pool on `device`. NULL without
 * memory for its record.
 */
struct spill_vendor_pool *spill_vendor_pool_of(const struct spill_backend *backend, void *handle, int device);

/*
 * Where the pool's memory is; DEVICE for NULL, and for the default pool of a device. SPILL_PLACES: not known. It is a pool
 * of another place (CUDA 13), or one whose record found no memory.
 */
enum spill_place spill_vendor_pool_place(const struct spill_backend *backend, void *handle);

/*
 * The device of the pool; `device` if it is not known. The vendor is asked about pools without a
 * record, first about the default pool of `device`.
 */
int spill_vendor_pool_device(const struct spill_backend *backend, const void *handle, int device);

/* The device whose default pool this is. -1: it is no device's. */
int spill_vendor_pool_default_of(const struct spill_backend *backend, const void *handle);

/*
 * Our own pool for the device: on it, on the host, or managed with a preferred location. Made when
 * it is first asked for. NULL with *error if it cannot be made; with *error NULL if the vendor has
 * no such pools.
 */
struct spill_vendor_pool *spill_vendor_pool_ours(const struct spill_backend *backend, int device,
                                                 enum spill_place place, enum spill_location preferred,
                                                 const char **error);

void *spill_vendor_pool_handle(const struct spill_vendor_pool *pool);

/*
 * Decides about the growth of a device pool for the request (ask->weight) within `limit`, and
 * charges it: admission.decision, admission.charged. True: charged, ask the driver.
 */
bool spill_vendor_pool_admit(struct spill_vendor_pool *pool, struct spill_request *request,
                             struct spill_ask *ask, uint64_t limit);
/* The same for a pool of ours on the host. Returns NULL, or the option that refuses. */
const char *spill_vendor_pool_charge(struct spill_vendor_pool *pool, uint64_t bytes,
                                     const struct spill_policy *policy, uint64_t *charged);
/* Returns the charge: the vendor refused. */
void spill_vendor_pool_retract(struct spill_vendor_pool *pool, uint64_t bytes, uint64_t charged);
/* `bytes` of an allocation are free. */
void spill_vendor_pool_freed(struct spill_vendor_pool *pool, uint64_t bytes);

/*
 * A graph with memory of its own was made: from now on the bytes that the vendor's graphs hold on
 * the device count. Graphs take them at launch, so the vendor is asked before each decision about a
 * limit (spill_vendor_pool_settle_graphs).
 */
void spill_vendor_pool_graphs(const struct spill_backend *backend, int device);
void spill_vendor_pool_settle_graphs(const struct spill_backend *backend, int device);
bool spill_vendor_pool_has_graphs(void); /* has there been such a graph? */

/* The smallest growth of a pool, and of graphs with memory of their own (measured on an H200). */
#define SPILL_MEMPOOL_STEP (32ull << 20)

/*
 * The growth of a pool with `spare` unused bytes for `bytes` more. No more than `room`, unless the
 * request itself needs more.
 */
uint64_t spill_vendor_pool_growth(uint64_t bytes, uint64_t spare, uint64_t room);

/* Charges the bytes that the pool has reserved now. True if the charge has grown. */
bool spill_vendor_pool_settle(struct spill_vendor_pool *pool);
/* All device pools of the device. True if less is charged now. */
bool spill_vendor_pool_settle_device(const struct spill_backend *backend, int device);

/*
 * Gives back unused memory: of the pools on the device, or (on_host) of our host pools that are
 * wholly unused. Returns the physical bytes that came back.
 */
uint64_t spill_vendor_pool_trim(const struct spill_backend *backend, int device, bool on_host);

/*
 * Bytes that pools on the device hold and nobody uses. Those of frees that the vendor does not know
 * to be done cannot be given back yet (backend.h, `synchronize`).
 */
uint64_t spill_vendor_pool_unused(const struct spill_backend *backend, int device);

/* Lets another device use our pools of `device`. */
void spill_vendor_pool_allow(const struct spill_backend *backend, int device, int peer);

/* The device's primary context has ended, and our pools with it. */
void spill_vendor_pool_device_ended(const struct spill_backend *backend, int device);

extern const struct spill_fork_lock spill_vendor_pool_fork_lock;

#endif

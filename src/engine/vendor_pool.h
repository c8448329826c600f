/*
 * The vendor's memory pools, for allocation in stream order: the program's, as far as they must be known, and our
 * own. A pool holds what it has RESERVED, whether the program uses it or not: that is what the accounts are charged
 * with.
 *
 * An allocation takes its bytes of the pool first (spill_vendor_pool_admit, spill_vendor_pool_charge), which charges what the
 * pool may have to grow by; then the vendor is asked; then spill_vendor_pool_settle sets the charge to the truth, or
 * spill_vendor_pool_retract takes it back. Its free gives the bytes back to the pool, not to the account.
 *
 * A struct stays valid for ever; one whose pool is gone is used again.
 */
#ifndef SPILL_VENDOR_POOL_H
#define SPILL_VENDOR_POOL_H

#include "backend.h"
#include "request.h"

struct spill_vendor_pool;

/*
 * The program has made a pool, destroys one (what was allocated from it lives on), was refused that, or has trimmed
 * one.
 */
void spill_vendor_pool_created(const struct spill_backend *backend, void *handle, enum spill_place place,
                               int device);
struct spill_vendor_pool *spill_vendor_pool_destroyed(const struct spill_backend *backend,
                                                      const void *handle);
void spill_vendor_pool_alive(struct spill_vendor_pool *pool, void *handle); /* NULL is allowed */
void spill_vendor_pool_trimmed(const struct spill_backend *backend, const void *handle);

/*
 * The pool of that handle; one that nobody has seen being made (default, imported) is taken for one of `device`'s
 * memory. NULL without memory for it.
 */
struct spill_vendor_pool *spill_vendor_pool_of(const struct spill_backend *backend, void *handle, int device);

/*
 * Where the pool's memory is; DEVICE for a handle that is not known. SPILL_PLACES: it may be one
 * whose record found no memory.
 */
enum spill_place spill_vendor_pool_place(const struct spill_backend *backend, const void *handle);

/*
 * Our own pool for the device: on it, on host or managed, which is `preferred` to live there. Made when first asked for; NULL with *error if it cannot
 * be, and *error NULL if the vendor has no such pools.
 */
struct spill_vendor_pool *spill_vendor_pool_ours(const struct spill_backend *backend, int device,
                                                 enum spill_place place, enum spill_location preferred,
                                                 const char **error);

void *spill_vendor_pool_handle(const struct spill_vendor_pool *pool);

/*
 * Decides about what a device pool has to grow by for the request (ask->weight), within `limit`, and charges it: request->admission.decision,
 * request->admission.charged. True: it is charged, and the driver's.
 */
bool spill_vendor_pool_admit(struct spill_vendor_pool *pool, struct spill_request *request,
                             struct spill_ask *ask, uint64_t limit);
/* The same for a pool of ours on host: NULL, or the option that refuses. */
const char *spill_vendor_pool_charge(struct spill_vendor_pool *pool, uint64_t bytes,
                                     const struct spill_policy *policy, uint64_t *charged);
/* The vendor refused. */
void spill_vendor_pool_retract(struct spill_vendor_pool *pool, uint64_t bytes, uint64_t charged);
/* What was taken is free. */
void spill_vendor_pool_freed(struct spill_vendor_pool *pool, uint64_t bytes);

/*
 * A graph with memory of its own was made: what the vendor's graphs hold on the device counts from now on. They take it when they
 * are launched, so it is asked for before each decision about a limit (spill_vendor_pool_settle_graphs).
 */
void spill_vendor_pool_graphs(const struct spill_backend *backend, int device);
void spill_vendor_pool_settle_graphs(const struct spill_backend *backend, int device);
bool spill_vendor_pool_has_graphs(void); /* was there any such graph? */

/* What a pool grows by at least, and graphs with memory of their own (measured on an H200). */
#define SPILL_MEMPOOL_STEP (32ull << 20)

/* What a pool with `spare` bytes to give may have to grow by for `bytes` more, at most to the end of `room`. */
uint64_t spill_vendor_pool_growth(uint64_t bytes, uint64_t spare, uint64_t room);

/* Charges what the pool has reserved now, by the vendor's word. True if that is more than was charged before. */
bool spill_vendor_pool_settle(struct spill_vendor_pool *pool);
/* All device pools of the device. True if less is charged now. */
bool spill_vendor_pool_settle_device(const struct spill_backend *backend, int device);

/*
 * Gives back what is not in use: of the pools on the device, or (on_host) those of ours on host that are not in use
 * at all. Returns the physical bytes that came back.
 */
uint64_t spill_vendor_pool_trim(const struct spill_backend *backend, int device, bool on_host);

/* Lets another device use our pools of `device`. */
void spill_vendor_pool_allow(const struct spill_backend *backend, int device, int peer);

/* The device's primary context has ended, and our pools with it. */
void spill_vendor_pool_device_ended(const struct spill_backend *backend, int device);

void spill_vendor_pool_fork_prepare(void);
void spill_vendor_pool_fork_done(bool child);

#endif

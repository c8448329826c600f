/*
 * The reserve, and pools of the driver whose unused memory lies in pieces: such a pool grows for a
 * request although it seems to have enough, and takes from the reserve (reserve_keeper.h).
 */
#ifndef SPILL_RESERVE_PIECES_H
#define SPILL_RESERVE_PIECES_H

#include "backend.h"

/* A request of `bytes` from a pool of the vendor's, and its figures. `unused` is a part of `reserved`. */
struct spill_pool_request {
	const void *pool;
	uint64_t bytes, unused, reserved;
};

/*
 * The pool has grown for the request although it had enough: in smaller pieces. The figures include
 * the growth. True if the device has less free than its reserve now. Then `unused` counts for no
 * request as large, until the program has freed as much as one of them, and for
 * SPILL_RESERVE_CLOSED_MS at least. Time alone does not end that: a pool that may try again would
 * take the reserve step by step.
 */
#define SPILL_RESERVE_CLOSED_MS 100
bool spill_reserve_fell(const struct spill_backend *backend, int device,
                        const struct spill_pool_request *request);

/*
 * Has the pool not given that growth back yet, and the device less free than its reserve? Then the
 * pool could serve each request by what it took, a smaller one, too.
 */
bool spill_reserve_is_in_pool(const struct spill_backend *backend, int device,
                              const struct spill_pool_request *request);

/* Of the unused memory, what counts for the request. */
uint64_t spill_reserve_unused(int device, const struct spill_pool_request *request);

/* For tests: the first state. */
void spill_reserve_pieces_reset(void);

#endif

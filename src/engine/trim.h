/*
 * The first step of oom.chain: memory that is held but unused is given back before anything is
 * spilled. That is freed memory of ours that still waits for the device, and unused memory of
 * stream-ordered pools. In a capture nothing happens: the vendor would end the capture with an
 * error.
 */
#ifndef SPILL_TRIM_H
#define SPILL_TRIM_H

#include "backend.h"

/*
 * Gives back unused memory of `device` for a request of `bytes`. True: the driver may have more
 * now.
 *
 * May wait for work of the device, 50 ms at most, if that can give back what the request lacks.
 * `urgent`: however short ago it has waited; few programs survive a refusal of this request. pre:
 * this thread is not inside the gate, no lock of ours is held
 */
bool spill_trim(const struct spill_backend *backend, int device, uint64_t bytes, bool urgent);

/*
 * The same for host memory, when host.limit, host.reserve or host.pressure refuses. Our own pools
 * and shared chunks keep theirs otherwise, because pinning it again is slow (docs/measurements.md).
 * True: less host memory is held now.
 */
bool spill_trim_host(const struct spill_backend *backend, int device, void *context, uint64_t bytes);

#endif

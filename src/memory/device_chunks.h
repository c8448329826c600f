/*
 * Device memory for chunks that come back to the device, as host_chunks.h has host memory for those that leave: charged to the
 * device's account within device.limit, of exactly the chunk's bytes.
 */
#ifndef SPILL_DEVICE_CHUNKS_H
#define SPILL_DEVICE_CHUNKS_H

#include "backend.h"

/* False: the limit or the vendor has no more to give, and *handle is left as it was. */
bool spill_device_chunk_get(const struct spill_backend *backend, int device, uint64_t bytes,
                            uint64_t *handle);

/* Gives it back, account too; also what a chunk has left. */
void spill_device_chunk_put(const struct spill_backend *backend, int device, uint64_t bytes, uint64_t handle);

#endif

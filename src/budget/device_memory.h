/*
 * The driver's figures for a device: asked here, and remembered for the log. So a line can tell the
 * room at a decision, and no line costs a call of the driver.
 */
#ifndef SPILL_DEVICE_MEMORY_H
#define SPILL_DEVICE_MEMORY_H

#include "backend.h"
#include "record.h"

/* As backend->devices->memory, and remembers the answer. */
int spill_device_memory(const struct spill_backend *backend, int device, uint64_t *free, uint64_t *total);

/*
 * This thread has charged `bytes` for a request that the driver has not served yet, so the driver's
 * free bytes still have them. Until it says 0, answers do not count them as held by this process.
 */
void spill_device_memory_unserved(int device, uint64_t bytes);

/* Bytes of this process that the driver's free bytes lack: what is charged, less what is not served yet. */
uint64_t spill_device_memory_held(int device);

/*
 * The last answer, with its age. .total == 0: there is none, the driver did not know, or a thread is
 * writing it.
 */
struct spill_seen spill_device_seen(int device);

/* After fork the child has asked nothing. */
void spill_device_memory_reset(void);

#endif

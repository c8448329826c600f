/*
 * Green contexts: another face of a device's primary context, with streams of its own. The parts of the device run
 * nothing slower or faster here.
 */
#ifndef SIM_GREEN_H
#define SIM_GREEN_H

#include "cuda_entry.h"

struct sim_green;

/* What a handle of a context means: a green context, or none (NULL). It may have ended. */
struct sim_green *driver_green(CUcontext handle);

/* The primary context of it. NULL: it has ended. */
struct sim_context *driver_green_primary(struct sim_green *green);

/* Its default stream. */
struct sim_stream *driver_green_default(struct sim_green *green);

/* Also of one that has ended. */
CUdevice driver_green_device(const struct sim_green *green);

/* Has the device a green context that has not ended? */
bool driver_green_any(CUdevice device);

unsigned long long driver_green_id(const struct sim_green *green);

/* Waits for the work of its streams only. */
CUresult driver_green_synchronize(struct sim_green *green);

/* The green context that a stream was made in, or NULL. */
struct sim_green *driver_green_of_stream(struct sim_stream *stream);
void driver_green_made_stream(struct sim_green *green, struct sim_stream *stream);

/* The green context that is current in this thread, or NULL. */
struct sim_green *driver_current_green(void);

#endif

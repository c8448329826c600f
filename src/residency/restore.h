/*
 * The placement without residency following, restored. Following leaves the placement of its last exchange behind. When what it
 * learned no longer holds, that placement is an accident: half of a KV cache on the host, say, in the place of weights that are
 * read once. So each chunk that an exchange moved is marked (displaced) until something else moves it.
 */
#ifndef SPILL_RESTORE_H
#define SPILL_RESTORE_H

#include "backend.h"

/*
 * Moves what is displaced back, in slices, until another thread wants the mover. True: nothing is left that could go back now.
 * pre: the mover is held, the device is idle or nearly so, this thread is not inside the gate
 */
bool spill_restore(const struct spill_backend *backend, int device);

/* Something of another device is on the host that would not be there without following. pre: the mover is held */
bool spill_restore_left(int device);

#endif

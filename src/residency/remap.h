/*
 * Puts the memory of a chunk in its place: which memory is mapped at the chunk's addresses, with
 * access by all devices that use it. The vendor can refuse each step, so there is always a way back
 * to memory that has the content.
 *
 * pre, of all: the mover is held, the gate is closed and the device idle
 */
#ifndef SPILL_REMAP_H
#define SPILL_REMAP_H

#include "move.h"

/* Maps the new memory in place of the old. False: the old one stays, or is mapped again. */
bool spill_remap_new(const struct spill_backend *backend, int device, const struct spill_move *move);

/* Maps the old memory again, because the new memory did not get the content. */
void spill_remap_old(const struct spill_backend *backend, int device, const struct spill_move *move);

/* Tries again to map a chunk whose mapping was lost. False: it still has none. */
bool spill_remap_lost(const struct spill_backend *backend, int device, const struct spill_move *move);

#endif

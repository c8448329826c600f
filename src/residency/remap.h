/*
 * Puts the memory of a chunk in its place: which memory is mapped at the chunk's addresses, with
 * access by all devices that use it. The vendor can refuse each step, so there is always a way back
 * to memory that has the content.
 *
 * pre, of all: the mover is held, and no work uses the chunk: the gate is closed and the device idle, or the
 * chunk is in flight (flight.h)
 */
#ifndef SPILL_REMAP_H
#define SPILL_REMAP_H

#include "move.h"

/* Maps the new memory in place of the old. False: the old one stays, or is mapped again. */
bool spill_remap_new(const struct spill_backend *backend, int device, const struct spill_move *move);

/*
 * Maps `other` memory there, which is no chunk's own and at least as large. False: the vendor refused, and
 * the old one is mapped, or none.
 */
bool spill_remap_other(const struct spill_backend *backend, int device, const struct spill_move *move,
                       uint64_t other);

/* Maps the old memory again, because the new memory did not get the content. */
void spill_remap_old(const struct spill_backend *backend, int device, const struct spill_move *move);

/* Unmaps the chunk's addresses. False: the vendor refused, and the chunk is mapped as before. */
bool spill_remap_none(const struct spill_backend *backend, int device, const struct spill_move *move);

/* Tries again to map a chunk whose mapping was lost. False: it still has none. */
bool spill_remap_lost(const struct spill_backend *backend, int device, const struct spill_move *move);

/* The same, several times with pauses, and a note if the vendor always refuses. */
void spill_remap_own(const struct spill_backend *backend, int device, const struct spill_move *move);

#endif

/*
 * The extent of a launch's parameter: the bytes from its address that the launch may access. An
 * observed extent ends where another buffer begins (shim/hints.h). Allocators reuse memory for
 * other buffers, and their begins cut it short. So the extent of recent launches counts: the same
 * kernel with the same grid mostly accesses as much through the same parameter. That is only
 * likely, because some kernels always have the same grid. An extent that was too long, before later
 * begins were known, is forgotten.
 *
 * Measured (H200, a U-Net in PyTorch): a product took 58.8 ms instead of 0.7, because only 64 of
 * its 419 MiB were predicted.
 */
#ifndef SPILL_PARAM_EXTENT_H
#define SPILL_PARAM_EXTENT_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A launch of the site took far longer than others, though all memory that it is known to access was
 * on the device. So its extents are too short: a begin in its buffer is that of another buffer, which
 * was there before or comes later. After a few such launches all extents of the site become twice as
 * long, up to 8 times. If that does not help, they are as before, for good. True: it may help. Takes
 * no lock, as above.
 */
bool spill_param_extent_too_short(uint64_t site);

/* Such launches for each step. */
#define SPILL_PARAM_EXTENT_SLOW 4

/*
 * A launch of the site, with all known memory on the device, took no such time. After so many in a row
 * the slow ones before count no more: another program on the device slows launches now and then.
 */
void spill_param_extent_suffices(uint64_t site);
#define SPILL_PARAM_EXTENT_RARE 1024

/* An extent is forgotten after this many launches with shorter ones. */
#define SPILL_PARAM_EXTENTS 32

/*
 * The likely extent of parameter `slot` in launches of `site`, in bytes: at least `bytes`, the
 * extent that is observed now. Kept in units of 2 MiB. Takes no lock: a simultaneous update may be
 * lost, and two parameters in one entry replace each other.
 */
uint64_t spill_param_extent(uint64_t site, uint32_t slot, uint64_t bytes);

#endif

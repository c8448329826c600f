/*
 * How far a parameter of a launch reaches, as far as that was seen: up to where something else begins that a launch was given (shim/hints.h).
 * Allocators lay other things into the same memory from one moment to the next, and those begins cut it short: then it reaches as
 * far as it did lately, for the same kernel with the same grid mostly does as much with the same parameter. Perhaps: kernels whose grid is
 * always that of the device do not. What reached too far, because nothing behind it was known yet, is forgotten.
 *
 * Measured (H200, a U-Net in PyTorch): a product took 58.8 ms instead of 0.7, as of 419 MiB that it used 64 were foreseen.
 */
#ifndef SPILL_PARAM_EXTENT_H
#define SPILL_PARAM_EXTENT_H

#include <stdint.h>

/* What was seen just now is forgotten after so many uses of that parameter that reached less far. */
#define SPILL_PARAM_EXTENTS 32

/*
 * Bytes that parameter `slot` of the launches of `site` is taken to reach, `bytes` or more; `bytes` were seen now. In units of 2 MiB. No lock:
 * what two threads tell at once may be lost, and where two parameters meet in one place the later one begins anew.
 */
uint64_t spill_param_extent(uint64_t site, uint32_t slot, uint64_t bytes);

#endif

/*
 * Host memory that can still be had, by what the kernel says: MemAvailable (proc(5)) and the memory limits of the
 * cgroups this process is in, v1 and v2, ancestors too. Pinned memory cannot be reclaimed, so asking after the
 * fact is too late (pitfall 13).
 */
#ifndef SPILL_HOSTMEM_H
#define SPILL_HOSTMEM_H

#include <stdint.h>

/* Bytes obtainable now; SPILL_UNLIMITED if the kernel does not tell. Reads a few files of /proc and /sys. */
uint64_t spill_hostmem_available(void);

/* The same as first seen in this process: what a percentage of host.limit is of. */
uint64_t spill_hostmem_at_start(void);

/* As spill_hostmem_available, with the file system seen below `root` ("" for the real one); for tests. */
uint64_t spill_hostmem_available_under(const char *root);

#endif

/*
 * Host memory that can still be had, by what the kernel says: MemAvailable (proc(5)) and the memory limits of the
 * cgroups this process is in, v1 and v2, ancestors too. What a driver hands out as physical memory is in the first figure and in none
 * of the groups': there it is taken off here, for who set the limit meant it to hold. Pinned memory cannot be reclaimed, so asking after the
 * fact is too late (pitfall 13).
 */
#ifndef SPILL_HOST_MEMORY_H
#define SPILL_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#include "cgroup.h"

/* Bytes obtainable now; SPILL_UNLIMITED if the kernel does not tell. Reads a few files of /proc and /sys. */
uint64_t spill_host_memory_available(void);

/* The same as first seen in this process: what a percentage of host.limit is of. */
uint64_t spill_host_memory_at_start(void);

/* Does the machine, or the group of this process, lose its time to a lack of memory? No where the kernel does not tell. */
bool spill_host_memory_pressed(void);

/*
 * The same, with the file system seen below `root` ("" for the real one), what is remembered of it in *homes, and what the groups do not
 * count; for tests.
 */
uint64_t spill_host_memory_available_under(const char *root, struct spill_cgroup_homes *homes,
                                           uint64_t uncounted);
bool spill_host_memory_pressed_under(const char *root, struct spill_cgroup_homes *homes);

/* After fork: the thread that was looking is not there. */
void spill_host_memory_fork_child(void);

#endif

/*
 * Available host memory, as the kernel tells it: MemAvailable (proc(5)) and the limits of this
 * process's control groups. MemAvailable counts physical memory that a driver handed out. The
 * groups do not, so it is subtracted from their figures here. Ask before memory is taken, because
 * the kernel cannot reclaim pinned memory (pitfall 13).
 */
#ifndef SPILL_HOST_AVAILABLE_H
#define SPILL_HOST_AVAILABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "cgroup.h"

/* Bytes available now; SPILL_UNLIMITED if the kernel does not tell. Reads a few files. */
uint64_t spill_host_available(void);

/* The same at the first call in this process. A host.limit in % is of this. */
uint64_t spill_host_available_at_start(void);

/*
 * True under memory pressure: the machine or our control group loses more than a fifth of its time
 * to a lack of memory. False if the kernel does not tell.
 */
bool spill_host_pressed(void);

/*
 * The same in the file system below `root` ("" for the real one), for tests. *homes is kept between
 * calls. `uncounted`: bytes that the groups do not count.
 */
uint64_t spill_host_available_under(const char *root, struct spill_cgroup_homes *homes, uint64_t uncounted);
bool spill_host_pressed_under(const char *root, struct spill_cgroup_homes *homes);

/* After fork: the child lacks the thread that may have been in a call. */
void spill_host_available_fork_child(void);

#endif

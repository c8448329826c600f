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

/* Bytes available. SPILL_UNLIMITED: the kernel does not tell, or there is no limit. */
struct spill_host_memory {
	uint64_t machine;
	uint64_t group; /* under the limits of the control groups, less our uncounted bytes */
};

/* Available now. Reads a few files. */
struct spill_host_memory spill_host_memory(void);

/* The same at the first call in this process. A host.limit in % is of this. */
struct spill_host_memory spill_host_memory_at_start(void);

/*
 * The smaller of both. `uncounted`: bytes that other processes of the group hold and the group does
 * not count.
 */
uint64_t spill_host_memory_least(struct spill_host_memory memory, uint64_t uncounted);

/* The smaller of both, now and at the start. */
uint64_t spill_host_available(void);
uint64_t spill_host_available_at_start(void);

/* The group whose limit binds this process (cgroup.h); 0: none. */
uint64_t spill_host_job(void);

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

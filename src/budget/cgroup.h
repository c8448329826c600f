/*
 * The control groups that limit this process's memory, versions 1 and 2 (cgroups(7)). Both may be
 * mounted at once. In a container a mount may show only a part of the hierarchy.
 */
#ifndef SPILL_CGROUP_H
#define SPILL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Longer paths are not found. One such buffer is on the stacks of the program's threads. */
#define SPILL_CGROUP_PATH 2048

/* The folder of this process's group in one hierarchy. */
struct spill_cgroup_home {
	char path[SPILL_CGROUP_PATH];   /* as in /proc/self/cgroup; "": not searched yet. */
	char folder[SPILL_CGROUP_PATH]; /* "": none. */
	size_t top;                     /* length of the mount point in `folder`, the top. */
};

/*
 * Both homes. They are found once, and again if the process is in another group or a folder is
 * gone. All zero means not searched yet.
 */
struct spill_cgroup_homes {
	struct spill_cgroup_home v1, v2;
	bool lost; /* the search failed for the moment */
};

/* Updates *homes, in the file system `root`. One read and two checks if nothing changed. */
void spill_cgroup_find(const char *root, struct spill_cgroup_homes *homes);

/*
 * The bytes left under the limits of these groups and their ancestors: the smallest of them.
 * SPILL_UNLIMITED if there is no limit. 0 while a limit cannot be read, because the kernel kills a
 * process that passes a limit.
 */
uint64_t spill_cgroup_room(const char *root, const struct spill_cgroup_homes *homes);

/*
 * A number for the one of these groups and their ancestors that has the lowest limit, such as the
 * group of a job: the inode of its folder. Of equal limits, the outermost group. 0: no group has a
 * limit, or it cannot be read for the moment. Limits do not change while a job runs, so all its
 * processes get the same number.
 */
uint64_t spill_cgroup_job(const char *root, const struct spill_cgroup_homes *homes);

#endif

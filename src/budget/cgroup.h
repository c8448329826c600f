/*
 * The control groups that limit this process's memory, versions 1 and 2 (cgroups(7)), in whatever layout they are mounted:
 * hybrid ones, and those of containers, where a mount shows a part of the hierarchy only.
 */
#ifndef SPILL_CGROUP_H
#define SPILL_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One such buffer is on the stacks of the program's threads. A group with a longer path is not seen. */
#define SPILL_CGROUP_PATH 2048

/* Where the group of this process in one hierarchy is to be seen. */
struct spill_cgroup_home {
	char path[SPILL_CGROUP_PATH];   /* as /proc/self/cgroup names it; empty: not looked for yet */
	char folder[SPILL_CGROUP_PATH]; /* its folder; empty: none */
	size_t top;                     /* length of the mount point at its start: ancestors end there */
};

/* Found once, and again when the process is in another group or the folder is gone. All zero: nothing found yet. */
struct spill_cgroup_homes {
	struct spill_cgroup_home v1, v2;
	bool lost; /* for the moment they cannot be looked for: nothing is known of them */
};

/* Brings *homes up to date, of the file system below `root`. One small read and two looks when nothing has changed. */
void spill_cgroup_find(const char *root, struct spill_cgroup_homes *homes);

/*
 * The least that is left under the limits of these groups and of their ancestors; SPILL_UNLIMITED
 * if they have none. 0 while that cannot be read: who takes memory beyond a limit is killed.
 */
uint64_t spill_cgroup_room(const char *root, const struct spill_cgroup_homes *homes);

#endif

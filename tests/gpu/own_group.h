/*
 * A control group for this process alone, so that its memory figure is of this process: made where that can be done, left and removed at the
 * end. Where none can be made, the group that the process is in already, if that shows a figure.
 */
#ifndef SPILL_GPU_OWN_GROUP_H
#define SPILL_GPU_OWN_GROUP_H

#include <stdbool.h>

struct own_group {
	char folder[512], parent[256]; /* empty: none */
	char steps[1024];              /* what was tried, and how it ended */
	int version;
	bool made;    /* by us */
	bool enabled; /* the controller, in the parent */
	char mount[64];
};

void own_group_enter(struct own_group *group);
void own_group_leave(struct own_group *group);

/* The file with the figure, below the folder; and its value in MiB, -1 if there is none. */
const char *own_group_file(const struct own_group *group);
double own_group_usage(const struct own_group *group);

#endif

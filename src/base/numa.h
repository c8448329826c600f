/*
 * The host's NUMA node of host.numa, for who asks a vendor for host memory. Vendors' interfaces take a node for physical memory, pools and
 * advice. For pinned memory they take none: it follows the policy of the thread that asks (hipHostMallocNumaUser in HIP's header;
 * CUDA documents nothing, there it is a hope), so that is another for the length of the call.
 */
#ifndef SPILL_NUMA_H
#define SPILL_NUMA_H

#include <stdbool.h>

/*
 * From now on `node` is named; SPILL_NODE_NEAREST: none. False, and none, if this machine has no memory on such a node, by the file system
 * below `root` ("" for the real one).
 */
bool spill_numa_use(const char *root, int node);

/* SPILL_NODE_NEAREST: none is named. */
int spill_numa_node(void);

/* What set_mempolicy(2) knows of a thread. */
struct spill_numa_thread {
	bool changed;
	int mode;
	unsigned long nodes[17]; /* SPILL_NODES bits, and the one that the system call leaves out */
};

/*
 * Until leave, what the kernel takes for the calling thread comes from the named node while that has some left (MPOL_PREFERRED). Nothing
 * without a named node, or where the kernel forbids it, as containers may. *before is for leave.
 */
void spill_numa_enter(struct spill_numa_thread *before);
void spill_numa_leave(const struct spill_numa_thread *before);

#endif

/*
 * The NUMA node that host.numa names, for host memory from the vendor. Vendors' calls take a node
 * for physical memory, pools and advice. For pinned memory they take none. The memory policy of the
 * calling thread decides there, so that policy is replaced for the length of the call. HIP
 * documents this (hipHostMallocNumaUser). CUDA does not, so it may have no effect there.
 */
#ifndef SPILL_NUMA_H
#define SPILL_NUMA_H

#include <stdbool.h>

/*
 * Sets the node; SPILL_NODE_NEAREST is none. Returns false and sets none if the machine has no
 * memory on that node. `root` is the file system to look at ("" for the real one).
 */
bool spill_numa_use(const char *root, int node);

/* The node that is set; SPILL_NODE_NEAREST if there is none. */
int spill_numa_node(void);

/* A thread's own memory policy, as set_mempolicy(2) takes it. */
struct spill_numa_thread {
	bool changed;
	int mode;
	unsigned long nodes[17]; /* SPILL_NODES bits, and one bit that the system call ignores */
};

/*
 * Until leave, the kernel prefers the node for memory of the calling thread (MPOL_PREFERRED). Does
 * nothing if no node is set, or if the kernel forbids the call, as in some containers. *before is
 * for leave.
 */
void spill_numa_enter(struct spill_numa_thread *before);
void spill_numa_leave(const struct spill_numa_thread *before);

#endif

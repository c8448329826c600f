/* The memory policy of the calling thread, as the kernel has it. */
#ifndef SPILL_TEST_MEMPOLICY_H
#define SPILL_TEST_MEMPOLICY_H

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy.h"

/* *first: a bit for each of the first nodes. -1: the kernel does not tell. */
static inline int mempolicy_now(unsigned long *first)
{
	unsigned long nodes[17] = {0};
	int mode;
	if (syscall(SYS_get_mempolicy, &mode, nodes, SPILL_NODES + 1ul, NULL, 0ul) != 0)
		return -1;
	*first = nodes[0];
	return mode;
}

#endif

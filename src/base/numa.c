#include "numa.h"

#include <linux/mempolicy.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "policy.h"
#include "small_file.h"

/* Bits of a mask for the system calls. The kernel uses one bit less than the number given. */
#define BITS (SPILL_NODES + 1)
#define WORD (8 * (int)sizeof(unsigned long))
_Static_assert(sizeof(((struct spill_numa_thread *)0)->nodes) * 8 >= BITS, "the kernel writes BITS bits");

static _Atomic int host_node = SPILL_NODE_NEAREST;

/* Is the node in a list such as 0-3,8? */
static bool list_has_node(const char *text, uint64_t node)
{
	while (*text >= '0' && *text <= '9') {
		uint64_t first = spill_small_file_number(text), last = first;
		text += strspn(text, "0123456789");
		if (*text == '-') {
			last = spill_small_file_number(++text);
			text += strspn(text, "0123456789");
		}
		if (first <= node && node <= last)
			return true;
		text += *text == ',';
	}
	return false;
}

/* Documentation/ABI/stable/sysfs-devices-node. Without NUMA the file is missing: only node 0. */
static bool node_has_memory(const char *root, int node)
{
	char text[4096];
	if (!spill_small_file_read_in(root, "/sys/devices/system/node", "has_memory", text, sizeof(text)))
		return node == 0;
	return list_has_node(text, (uint64_t)node);
}

bool spill_numa_use(const char *root, int node)
{
	bool usable = node == SPILL_NODE_NEAREST || node_has_memory(root, node);
	atomic_store(&host_node, usable ? node : SPILL_NODE_NEAREST);
	return usable;
}

int spill_numa_node(void)
{
	return atomic_load_explicit(&host_node, memory_order_relaxed);
}

void spill_numa_enter(struct spill_numa_thread *before)
{
	unsigned long nodes[sizeof(before->nodes) / sizeof(before->nodes[0])] = {0};
	int node = spill_numa_node();
	before->changed = false;
	if (node == SPILL_NODE_NEAREST ||
	    syscall(SYS_get_mempolicy, &before->mode, before->nodes, (unsigned long)BITS, NULL, 0ul) != 0)
		return;
	nodes[node / WORD] = 1ul << (node % WORD);
	before->changed = syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes, (unsigned long)BITS) == 0;
}

void spill_numa_leave(const struct spill_numa_thread *before)
{
	if (before->changed)
		syscall(SYS_set_mempolicy, before->mode, before->nodes, (unsigned long)BITS);
}

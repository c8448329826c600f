/* The node of host.numa: whether this machine has it, from fixture trees; and what a thread's own memory policy is afterwards. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mempolicy.h"
#include "numa.h"
#include "policy.h"

static char root[] = "/tmp/spill-numa-XXXXXX";

static void nodes_are(const char *list)
{
	char command[512];
	snprintf(command, sizeof(command),
	         "mkdir -p %s/sys/devices/system/node && echo '%s' >%s/sys/devices/system/node/has_memory",
	         root, list, root);
	assert_int_equal(system(command), 0);
}

static int setup(void **state)
{
	strcpy(root, "/tmp/spill-numa-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[256];
	spill_numa_use("", SPILL_NODE_NEAREST);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

static void named(int node, bool there)
{
	assert_int_equal(spill_numa_use(root, node), there);
	assert_int_equal(spill_numa_node(), there ? node : SPILL_NODE_NEAREST);
}

TEST(which_nodes_there_are)
{
	assert_int_equal(spill_numa_node(), SPILL_NODE_NEAREST);
	named(0, true); /* a kernel without NUMA */
	named(1, false);
	nodes_are("0-1,4,10-12");
	for (int node = 0; node < 20; node++)
		named(node, node <= 1 || node == 4 || (node >= 10 && node <= 12));
	named(SPILL_NODE_NEAREST, true);
	nodes_are("1023");
	named(1023, true);
	named(102, false);
	nodes_are(""); /* nonsense */
	named(1, false);
}

/* Skips where it is not told. */
static int mode_now(unsigned long *first)
{
	int mode = mempolicy_now(first);
	if (mode < 0)
		skip();
	return mode;
}

TEST(a_thread_gets_its_own_policy_back)
{
	static const int modes[] = {MPOL_DEFAULT, MPOL_BIND, MPOL_INTERLEAVE, MPOL_PREFERRED};
	struct spill_numa_thread before;
	unsigned long first, node_0 = 1;
	nodes_are("0");
	for (size_t i = 0; i < 4; i++) {
		if (syscall(SYS_set_mempolicy, modes[i], modes[i] ? &node_0 : NULL, modes[i] ? 64ul : 0ul) !=
		    0)
			skip();
		assert_true(spill_numa_use(root, SPILL_NODE_NEAREST));
		spill_numa_enter(&before);
		assert_int_equal(mode_now(&first), modes[i]);
		spill_numa_leave(&before);
		assert_true(spill_numa_use(root, 0));
		spill_numa_enter(&before);
		assert_int_equal(mode_now(&first), MPOL_PREFERRED);
		assert_int_equal(first, 1);
		spill_numa_leave(&before);
		assert_int_equal(mode_now(&first), modes[i]);
		assert_int_equal(first, modes[i] ? 1 : 0);
	}
	syscall(SYS_set_mempolicy, MPOL_DEFAULT, NULL, 0ul);
}

/* A node that this kernel does not have: the thread stays as it is. */
TEST(a_kernel_that_refuses)
{
	struct spill_numa_thread before;
	unsigned long first;
	int mode = mode_now(&first);
	nodes_are("0-1023");
	assert_true(spill_numa_use(root, 1023));
	spill_numa_enter(&before);
	assert_false(before.changed);
	assert_int_equal(mode_now(&first), mode);
	spill_numa_leave(&before);
	assert_int_equal(mode_now(&first), mode);
}

/* run.framework: the machines on which a framework's variables stay. All else: tests/cli/run.bats. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "framework.h"

TEST(machines)
{
	char root[] = "/tmp/spill-framework-XXXXXX";

	assert_non_null(mkdtemp(root));
	assert_int_equal(chdir(root), 0);
	assert_int_equal(mkdir("dev", 0755), 0);
	assert_false(cli_framework_finds_amd(root));
	assert_int_equal(mkdir("dev/kfd", 0755), 0);
	assert_true(cli_framework_finds_amd(root));
	/* A processor with a GPU of AMD's, and a card of NVIDIA's. */
	assert_int_equal(mkdir("dev/nvidiactl", 0755), 0);
	assert_false(cli_framework_finds_amd(root));
	assert_int_equal(rmdir("dev/kfd"), 0);
	assert_false(cli_framework_finds_amd(root));
	assert_int_equal(rmdir("dev/nvidiactl") || rmdir("dev") || rmdir(root), 0);
}

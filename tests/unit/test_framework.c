/* run.framework: when a framework's variables are set, and what is said. The program that gets them: tests/cli/run.bats. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

#define VALUE "backend:cudaMallocAsync"
#define SET "spill run: PYTORCH_ALLOC_CONF and PYTORCH_CUDA_ALLOC_CONF are set to " VALUE "\n"
#define NOTHING "spill run: nothing is set for PyTorch"

static void clear(void)
{
	static const char *const names[] = {"PYTORCH_ALLOC_CONF",     "PYTORCH_CUDA_ALLOC_CONF",
	                                    "PYTORCH_HIP_ALLOC_CONF", "SPILL",
	                                    "SPILL_RUN_FRAMEWORK",    "SPILL_MODE",
	                                    "SPILL_POLICY",           "SPILL_PROFILE"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unsetenv(names[i]);
	setenv("HOME", "/nowhere", 1);
	setenv("XDG_CONFIG_HOME", "/nowhere", 1);
}

/* What is said on stderr while the variables are set. */
static const char *set(const char *asked)
{
	static char text[1024];
	char *const program[] = {"/nowhere/program", NULL};
	int said = memfd_create("said", MFD_CLOEXEC), before = fcntl(2, F_DUPFD_CLOEXEC, 3), status;

	assert_true(said >= 0 && before >= 0);
	dup2(said, 2);
	status = cli_framework_set(program, asked);
	dup2(before, 2);
	close(before);
	ssize_t length = pread(said, text, sizeof(text) - 1, 0);
	close(said);
	assert_int_equal(status, 0);
	assert_true(length >= 0);
	text[length] = '\0';
	return text;
}

static void has(const char *name, const char *value)
{
	const char *found = getenv(name);

	assert_string_equal(found ? found : "-", value);
}

TEST(both_variables_are_set_once)
{
	clear();
	if (cli_framework_finds_amd(""))
		skip();
	assert_string_equal(set("pytorch"), SET);
	has("PYTORCH_ALLOC_CONF", VALUE);
	has("PYTORCH_CUDA_ALLOC_CONF", VALUE);
	has("PYTORCH_HIP_ALLOC_CONF", "-");
	assert_string_equal(set("pytorch"), "");
	/* One of them alone is the user's. */
	unsetenv("PYTORCH_CUDA_ALLOC_CONF");
	assert_string_equal(set("pytorch"), NOTHING ", which keeps PYTORCH_ALLOC_CONF=" VALUE "\n");
	has("PYTORCH_CUDA_ALLOC_CONF", "-");
	clear();
}

TEST(what_the_user_has_set_stays)
{
	static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
	                                    "PYTORCH_HIP_ALLOC_CONF"};

	clear();
	if (cli_framework_finds_amd(""))
		skip();
	for (unsigned i = 0; i < 3; i++) {
		char expected[128];

		setenv(names[i], i ? "a" : "", 1);
		snprintf(expected, sizeof(expected), NOTHING ", which keeps %s=%s\n", names[i], i ? "a" : "");
		assert_string_equal(set("pytorch"), expected);
		for (unsigned other = 0; other < 3; other++)
			has(names[other], other != i ? "-" : i ? "a" : "");
		clear();
	}
	for (unsigned i = 0; i < 3; i++)
		setenv(names[i], "a", 1);
	assert_string_equal(set("pytorch"),
	                    NOTHING ", which keeps PYTORCH_ALLOC_CONF=a, PYTORCH_CUDA_ALLOC_CONF=a, "
	                            "PYTORCH_HIP_ALLOC_CONF=a\n");
	clear();
}

/* By run.framework, too, unless another is asked for. */
TEST(only_what_is_asked_for)
{
	clear();
	assert_string_equal(set(NULL), "");
	setenv("SPILL_RUN_FRAMEWORK", "none", 1);
	assert_string_equal(set(NULL), "");
	has("PYTORCH_ALLOC_CONF", "-");
	if (!cli_framework_finds_amd("")) {
		assert_string_equal(set("pytorch"), SET);
		clear();
		setenv("SPILL_RUN_FRAMEWORK", "pytorch", 1);
		assert_string_equal(set(NULL), SET);
	}
	clear();
}

TEST(nothing_where_libspill_changes_nothing)
{
	clear();
	setenv("SPILL_MODE", "observe", 1);
	assert_string_equal(set("pytorch"), NOTHING ": spill.mode is observe\n");
	setenv("SPILL_MODE", "off", 1);
	assert_string_equal(set("pytorch"), NOTHING ": spill.mode is off\n");
	has("PYTORCH_ALLOC_CONF", "-");
	clear();
}

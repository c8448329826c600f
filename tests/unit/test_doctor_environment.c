/* What `spill doctor` says of variables, and of other libraries that are preloaded. */
#include "doctor_found.h"

#include <unistd.h>

#include "elf_file.h"

/* -- in place of doctor.c, library.c and elf_file.c ------------------------------------------------ */

static const char *there;

bool doctor_is_there(const struct doctor_patient *patient, const char *path)
{
	return there && !strcmp(path, there);
}

/* A name with "lib" can be found. What it defines is in the name, between commas. */
static char opened[64];

bool doctor_open_library(const struct doctor_patient *patient, const char *name, char path[PATH_MAX],
                         struct elf_file *file)
{
	assert_true(name[0]);
	if (!strstr(name, "lib"))
		return false;
	snprintf(path, PATH_MAX, "<%s>", name);
	snprintf(opened, sizeof(opened), "%s,", name);
	file->fd = dup(0);
	return true;
}

bool elf_defines(const struct elf_file *file, const char *name)
{
	char word[64];

	snprintf(word, sizeof(word), ",%s,", name);
	return strstr(opened, word) != NULL;
}

/* -- the frame ------------------------------------------------------------------------------------- */

static struct doctor_patient patient;
static char root[] = "/tmp/spill-environment-XXXXXX";

static int nothing(void **state)
{
	clearenv();
	there = NULL;
	patient = (struct doctor_patient){.root = "/nonexistent"};
	return 0;
}

static void finds(const char *expected)
{
	find_nothing();
	doctor_look_at_environment(&patient);
	assert_string_equal(said, expected);
}

/* -- variables ------------------------------------------------------------------------------------- */

TEST_WITH(visible_devices, nothing, NULL)
{
	static const char *const hiding[] = {"", "  ", "-1", "0,-1", "-1,0"}, *const choosing[] = {"0", "1,0",
	                                                                                           "0-1"};
	static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
	                                    "ROCR_VISIBLE_DEVICES"};
	char expected[128];

	finds("");
	for (unsigned i = 0; i < 3; i++) {
		for (unsigned k = 0; k < 5; k++) {
			setenv(names[i], hiding[k], 1);
			snprintf(expected, sizeof(expected), "devices_hidden: %s=%s hides devices\n",
			         names[i], hiding[k]);
			finds(expected);
		}
		for (unsigned k = 0; k < 3; k++) {
			setenv(names[i], choosing[k], 1);
			snprintf(expected, sizeof(expected), "devices_chosen: %s=%s\n", names[i],
			         choosing[k]);
			finds(expected);
		}
		unsetenv(names[i]);
	}
	setenv("CUDA_VISIBLE_DEVICES", "MIG-1", 1);
	setenv("NVIDIA_VISIBLE_DEVICES", "x,MIG-2", 1);
	finds("devices_chosen: CUDA_VISIBLE_DEVICES=MIG-1\n"
	      "mig: a part of a GPU (MIG) is chosen: CUDA_VISIBLE_DEVICES=MIG-1\n"
	      "mig: a part of a GPU (MIG) is chosen: NVIDIA_VISIBLE_DEVICES=x,MIG-2\n");
}

TEST_WITH(other_variables, nothing, NULL)
{
	setenv("GGML_CUDA_ENABLE_UNIFIED_MEMORY", "", 1);
	finds("ggml_unified: GGML_CUDA_ENABLE_UNIFIED_MEMORY=\n");
	nothing(NULL);
	setenv("PMI_SIZE", "8", 1);
	finds("exported: PMI_SIZE=8: one of several ranks shares device memory with the others\n");
}

/* Its variables count only with its pipe, where the folder says, or at the usual place. */
TEST_WITH(the_mps_daemon, nothing, NULL)
{
	there = "/tmp/nvidia-mps/control";
	setenv("CUDA_MPS_LIMIT", "1", 1);
	setenv("CUDA_MPSX", "1", 1);
#define AT_TMP "mps: an MPS daemon's pipe is there: /tmp/nvidia-mps/control\nmps: CUDA_MPS_LIMIT=1\n"
	finds(AT_TMP);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "", 1);
	finds(AT_TMP);
	setenv("CUDA_MPS_PIPE_DIRECTORY", "/p", 1);
	finds("");
	there = "/p/control";
	finds("mps: an MPS daemon's pipe is there: /p/control\nmps: CUDA_MPS_LIMIT=1\n");
}

/* -- preloads -------------------------------------------------------------------------------------- */

/* Blanks and colons divide. What the loader would look for, or expand, is not missing. */
TEST_WITH(preloads, nothing, NULL)
{
	setenv("LD_PRELOAD", ":a  libspill.so:/bin/sh", 1);
	finds("preload: LD_PRELOAD has a\npreload: LD_PRELOAD has /bin/sh\n");
	setenv("LD_PRELOAD", "/no/where /no/$LIB/x", 1);
	finds("preload_missing: LD_PRELOAD names /no/where, which is not there or cannot be read\n"
	      "preload: LD_PRELOAD has /no/$LIB/x\n");
	setenv("LD_PRELOAD", "libspill.so", 1);
	finds("");
}

/* A dlsym of its own matters before ours, or if ours is not named: spill run puts it behind. */
TEST_WITH(preloads_that_define_functions, nothing, NULL)
{
#define DLSYM(name) \
	"preload: LD_PRELOAD has " name "\npreload_dlsym: LD_PRELOAD has <" name \
	"> before libspill.so, and it has a dlsym of its own\n"
	setenv("LD_PRELOAD", "lib,dlsym", 1);
	finds(DLSYM("lib,dlsym"));
	setenv("LD_PRELOAD", "lib,dlsym libspill.so lib2,dlsym", 1);
	finds(DLSYM("lib,dlsym") "preload: LD_PRELOAD has lib2,dlsym\n");
	setenv("LD_PRELOAD", "x,cudaMalloc", 1); /* not found */
	finds("preload: LD_PRELOAD has x,cudaMalloc\n");
#define HOOKS(name, which) \
	"preload: LD_PRELOAD has " name "\npreload_hooks: LD_PRELOAD has <" name ">, which defines " which \
	"\n"
	setenv("LD_PRELOAD", "lib,hipMalloc", 1);
	finds(HOOKS("lib,hipMalloc", "hipMalloc"));
	setenv("LD_PRELOAD", "lib,hipFree,cuInit,cudaMalloc,cuMemAlloc_v2", 1);
	finds(HOOKS("lib,hipFree,cuInit,cudaMalloc,cuMemAlloc_v2", "cudaMalloc, cuMemAlloc_v2, hipFree"));
	setenv("LD_PRELOAD", "lib,hipFree,cudaMalloc,cuMemAlloc_v2,hipMalloc", 1);
	finds(HOOKS("lib,hipFree,cudaMalloc,cuMemAlloc_v2,hipMalloc",
	            "cudaMalloc, cuMemAlloc_v2, hipMalloc and 1 more"));
}

static void preload_everywhere(const char *text)
{
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/etc/ld.so.preload", root);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	patient.root = root;
}

TEST_WITH(the_file_of_preloads, nothing, NULL)
{
#define HAS(name) "preload: /etc/ld.so.preload has " name "\n"
#define OURS "preload_everywhere: /etc/ld.so.preload has /libspill.so\n"
#define BEFORE \
	"preload_dlsym: /etc/ld.so.preload has <lib,dlsym> before libspill.so, and it has a dlsym of its " \
	"own\n"
	preload_everywhere("a\tb\n\nc:d e");
	finds(HAS("a") HAS("b") HAS("c") HAS("d") HAS("e"));
	preload_everywhere("lib,dlsym\n/libspill.so\n");
	finds(HAS("lib,dlsym") BEFORE OURS);
	setenv("LD_PRELOAD", "/x:libspill.so", 1);
	finds("preload_missing: LD_PRELOAD names /x, which is not there or cannot be read\n" HAS("lib,dlsym")
	          OURS);
	setenv("LD_PRELOAD", "x", 1);
	finds("preload: LD_PRELOAD has x\n" HAS("lib,dlsym") BEFORE OURS);
	unsetenv("LD_PRELOAD");
	preload_everywhere("/libspill.so lib,dlsym,hipMalloc");
	finds(OURS HAS("lib,dlsym,hipMalloc") "preload_hooks: /etc/ld.so.preload has <lib,dlsym,hipMalloc>, "
	                                      "which defines "
	                                      "hipMalloc\n");
	preload_everywhere("lib,dlsym"); /* nothing of ours */
	finds(HAS("lib,dlsym"));
}

static int make_root(void **state)
{
	char command[64];

	assert_non_null(mkdtemp(root));
	snprintf(command, sizeof(command), "mkdir %s/etc", root);
	return system(command);
}

static int remove_root(void **state)
{
	char command[64];

	setenv("PATH", "/usr/bin:/bin", 1);
	snprintf(command, sizeof(command), "rm -r %s", root);
	return system(command);
}

int main(void)
{
	return run_unit_tests(make_root, remove_root);
}

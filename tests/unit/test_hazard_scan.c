/* What of this process stands against movable memory: its environment, its libraries, its open devices. */
#include <dlfcn.h>
#include <fcntl.h>
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_libc.h"
#include "fake_objects.h"
#include "hazards.h"
#include "movable.h"

static char folder[] = "/tmp/spill-bypass-XXXXXX";
static const char *opened; /* what the first descriptor seems to be */

static bool seems(long arguments[6], long *result)
{
	if (!opened || strcmp((const char *)arguments[1], "0"))
		return false;
	*result = (long)strlen(opened);
	memcpy((char *)arguments[2], opened,
	       strlen(opened)); // NOLINT(bugprone-not-null-terminated-result): as readlinkat
	return true;
}

/* The first descriptor is `device` from now on, under the name of another; NULL: its own. */
static void open_as(const char *device, const char *name)
{
	int descriptor = open(device, O_RDONLY);
	opened = name;
	assert_int_equal(dup2(descriptor, 0), 0);
	close(descriptor);
}

/* Some library under the name of another: cmocka's. */
static void *load_as(const char *name)
{
	char command[1024], path[128];
	Dl_info cmocka;
	assert_true(dladdr(dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests"), &cmocka));
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(command, sizeof(command), "/bin/cp %s %s", cmocka.dli_fname, path);
	assert_int_equal(system(command), 0);
	void *library = dlopen(path, RTLD_NOW);
	assert_non_null(library);
	return library;
}

TEST(the_environment)
{
	static const struct {
		const char *variable;
		bool exported;
	} cases[] = {
	    {"WORLD_SIZE=2", false},
	    {"PMI_SIZE=16", true},
	    {"PMI_SIZE=1", false},
	    {"PMI_SIZE=", false},
	    {"PMI_SIZE=two", false},
	    {"PMI_SIZE=2x", false},
	    {"PMI_SIZE", false},
	    {"PMI_SIZES=2", false},
	    {"OMPI_COMM_WORLD_SIZE=4", true},
	    {"PMI_SIZE=2", true},
	    {"MV2_COMM_WORLD_SIZE=2", true},
	    {"SLURM_STEP_NUM_TASKS=8", true},
	    {"RANK=3", false},
	    {"NCCL_DEBUG=INFO", false},
	    {"NCCL_VERSION=2.27.3-1", false},
	    {"NCCL_P2P_LEVEL=", false},
	    {"NV_LIBNCCL_PACKAGE=x", false},
	    {"NVSHMEM_DISABLE_NVLS=1", false},
	    {"=C:=x", false},
	    {"", false},
	    {"PMI_SIZE=99999999999999999999999999999999", true},
	};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!!spill_hazard_exported(cases[i].variable) != cases[i].exported)
			fail_msg("%s", cases[i].variable);

	clearenv();
	assert_null(spill_hazard_scan_exports());
	setenv("HOME", "/root", 1);
	setenv("PMI_SIZE", "1", 1);
	assert_null(spill_hazard_scan_exports());
	setenv("PMI_SIZE", "2", 1);
	assert_non_null(strstr(spill_hazard_scan_exports(), "ranks"));
	clearenv();
}

TEST(libraries_by_name)
{
	static const char *const around[] = {"/usr/lib/x86_64-linux-gnu/libnvoptix.so.1",
	                                     "libnvcuvid.so.580.65", "/opt/x/nvshmem_bootstrap_uid.so.3",
	                                     "libnvidia-encode.so.1"};
	static const char *const others[] = {"/usr/lib/libcuda.so.1",
	                                     "/x/libcublas.so.13",
	                                     "libnvshmem_host.so.3",
	                                     "/lib/libnvoptix.so.1/other",
	                                     "",
	                                     "/"};
	for (unsigned i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
		int row = spill_hazard_find(around[i]);
		assert_true(row >= 0 && row < (int)spill_hazard_rows());
		assert_string_equal(spill_hazard_row((unsigned)row)->open, "");
		assert_true(strlen(spill_hazard_row((unsigned)row)->what) > 10);
	}
	for (unsigned i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		assert_int_equal(spill_hazard_find(others[i]), -1);
}

/* PyTorch maps it always; it matters when it has its device open, and stops to when it has not. */
TEST(a_library_that_is_idle)
{
	assert_null(spill_hazard_scan_mapped());
	load_as("libcufile.so.0");
	assert_null(spill_hazard_scan_mapped());
	open_as("/dev/null", "/dev/nvidia0");
	assert_null(spill_hazard_scan_mapped());
	open_as("/dev/zero", "/dev/nvidia-fs3");
	assert_non_null(strstr(spill_hazard_scan_mapped(), "GPUDirect Storage"));
	open_as("/dev/null", NULL);
	assert_null(spill_hazard_scan_mapped());
}

/* The name of a device is read once, and no longer than the scan is used. Files of other kinds are none. */
TEST(a_device_keeps_its_name)
{
	load_as("libcufile.so.1");
	for (unsigned times = 0; times < 2; times++) {
		open_as("/dev/zero", "/dev/nvidia-fs0");
		assert_non_null(spill_hazard_scan_mapped());
		open_as("/dev/null", "/dev/nvidia0");
		assert_null(spill_hazard_scan_mapped());
		open_as("/dev/zero", "is not read");
		assert_non_null(spill_hazard_scan_mapped());
		open_as("/dev/null", "/dev/nvidia-fs0 is not read");
		assert_null(spill_hazard_scan_mapped());
	}
	open_as("/proc/self/cmdline", "/dev/nvidia-fs0");
	assert_null(spill_hazard_scan_mapped());
	spill_hazard_scan_reset();
	open_as("/dev/zero", "/dev/nvidia0");
	assert_null(spill_hazard_scan_mapped());
	open_as("/dev/null", NULL);
	spill_hazard_scan_reset();
}

/* More devices than are remembered: each is still found. */
TEST(more_devices_than_are_remembered)
{
	enum { MOST = 40 };
	int masters[MOST], slaves[MOST];
	unsigned count = 0;

	load_as("libcufile.so.2");
	while (count < MOST && (masters[count] = posix_openpt(O_RDWR | O_NOCTTY)) >= 0 &&
	       !unlockpt(masters[count]) &&
	       (slaves[count] = open(ptsname(masters[count]), O_RDWR | O_NOCTTY)) >= 0)
		count++;
	assert_null(spill_hazard_scan_mapped());
	open_as("/dev/zero", "/dev/nvidia-fs0");
	assert_non_null(spill_hazard_scan_mapped());
	open_as("/dev/null", NULL);
	assert_null(spill_hazard_scan_mapped());
	spill_hazard_scan_reset();
	for (unsigned i = 0; i < count; i++) {
		close(slaves[i]);
		close(masters[i]);
	}
	if (count < MOST)
		skip(); /* no terminals here */
}

/* Its device is one file; others' begin otherwise. */
TEST(a_library_by_its_device)
{
	int row = spill_hazard_find("/usr/lib/x86_64-linux-gnu/libgdrapi.so.2.5");
	assert_true(row >= 0);
	assert_non_null(strstr(spill_hazard_row((unsigned)row)->what, "GDRCopy"));
	assert_true(spill_hazard_opened(spill_hazard_row((unsigned)row), "/dev/gdrdrv"));
	assert_false(spill_hazard_opened(spill_hazard_row((unsigned)row), "/dev/nvidia0"));
	load_as("libgdrapi.so.2");
	assert_null(spill_hazard_scan_mapped());
	open_as("/dev/full", "/dev/gdrdrv");
	assert_non_null(strstr(spill_hazard_scan_mapped(), "GDRCopy"));
	open_as("/dev/null", NULL);
	assert_null(spill_hazard_scan_mapped());
}

/* Loaded later, it is seen at the next look; unloaded, it is gone with the next load. */
TEST(a_library_that_comes_later)
{
	assert_null(spill_hazard_scan_mapped());
	void *video = load_as("libnvcuvid.so.1");
	assert_non_null(strstr(spill_hazard_scan_mapped(), "video decoder"));
	assert_non_null(strstr(spill_hazard_scan_mapped(), "video decoder"));
	dlclose(video);
	load_as("libharmless.so");
	assert_null(spill_hazard_scan_mapped());
	spill_hazard_scan_reset();
	assert_null(spill_hazard_scan_mapped());
}

/* An exchange asks, and there can be hundreds of them. So they are looked at again only after a load. */
TEST(loaded_objects_are_looked_at_once)
{
	spill_hazard_scan_reset();
	USE_FAKE_OBJECTS({0, 1, ""}, {1, 1, "libnvoptix.so.1"}); /* the first of hazards.def */
	assert_non_null(spill_hazard_scan_mapped());
	unsigned looks = fake_object_looks;
	assert_non_null(spill_hazard_scan_mapped());
	assert_int_equal(fake_object_looks, looks + 1); /* for the count of loads, at the first of them */
	USE_FAKE_OBJECTS({0, 1, ""});
	assert_null(spill_hazard_scan_mapped());
	assert_int_equal(fake_object_looks, looks);
	/* A test that begins anew knows nothing of it. */
	USE_FAKE_OBJECTS({0, 1, "libnvoptix.so.1"});
	assert_null(spill_hazard_scan_mapped());
	spill_hazard_scan_reset();
	assert_non_null(spill_hazard_scan_mapped());
	fake_libc_reset();
	spill_hazard_scan_reset();
}

static int begin(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int end(void **state)
{
	char command[128];
	snprintf(command, sizeof(command), "/bin/rm -r %s", folder);
	return system(command);
}

int main(void)
{
	fake_libc[FAKE_readlinkat].hook = seems;
	return run_unit_tests(begin, end);
}

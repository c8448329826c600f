/* What `spill doctor` says of the host's memory, limits and kernel, by the files of a machine. */
#include "doctor_found.h"

#include <sys/resource.h>
#include <unistd.h>

static char root[] = "/tmp/spill-host-XXXXXX";
static struct doctor_patient patient;
static struct spill_policy policy;

bool doctor_is_there(const struct doctor_patient *whose, const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s%s", root, path);
	return access(whole, F_OK) == 0;
}

static rlim_t locked;

int fake_getrlimit(int which, struct rlimit *limit) __asm__("getrlimit64");

int fake_getrlimit(int which, struct rlimit *limit)
{
	assert_int_equal(which, RLIMIT_MEMLOCK);
	limit->rlim_cur = locked;
	return locked ? 0 : -1;
}

static void shell(const char *format, ...)
{
	char command[512];
	va_list arguments;
	int length_of_cd = snprintf(command, sizeof(command), "cd %s && ", root);

	va_start(arguments, format);
	vsnprintf(command + length_of_cd, sizeof(command) - (size_t)length_of_cd, format, arguments);
	va_end(arguments);
	assert_int_equal(system(command), 0);
}

/* 64 GiB are available, and half of them may be spilled. */
static int machine(void **state)
{
	unsetenv("container");
	unsetenv("KUBERNETES_SERVICE_HOST");
	patient = (struct doctor_patient){.root = root};
	spill_policy_default(&policy);
	shell("rm -rf * .dockerenv && mkdir -p proc/self proc/pressure proc/sys/kernel proc/driver/nvidia "
	      "dev run cg/a "
	      "sys/module/ttm/parameters && : >cg/a/cgroup.procs && echo 0::/a >proc/self/cgroup && "
	      "echo '30 20 0:1 / /cg rw - cgroup2 none rw' >proc/self/mountinfo");
	shell("printf 'MemTotal: 99999999 kB\\nMemAvailable: 67108864 kB\\nSwapTotal: 1048576 kB\\nSwapFree: "
	      "524288 "
	      "kB\\n' >proc/meminfo");
	locked = 1 << 20;
	return 0;
}

#define LOCK "memlock: RLIMIT_MEMLOCK is 1.00 MiB\n"
#define SWAP "swap: 1.00 GiB of swap, 512.00 MiB free\n"
#define ROOM "host_room: 64.00 GiB of host memory is available now, of which 32.00 GiB may be spilled\n"

static void finds(const char *expected)
{
	find_nothing();
	doctor_look_at_host(&patient, &policy);
	assert_string_equal(said, expected);
}

TEST_WITH(the_room_of_a_machine, machine, NULL)
{
	finds(ROOM LOCK SWAP);
	shell("echo 'MemAvailable: 67108864 kB' >proc/meminfo");
	finds(ROOM LOCK "swap: no swap\n");
	shell("echo 'SwapTotal: 18014398509481984 kB' >proc/meminfo"); /* more bytes than fit */
	finds("host_none: the kernel does not report the available memory\n" LOCK "swap: no swap\n");
	shell("rm proc/meminfo");
	finds("host_none: the kernel does not report the available memory\n" LOCK "swap: no swap\n");
}

/* A group bounds the room. It is tight if nothing is left because of it. */
TEST_WITH(the_room_of_a_group, machine, NULL)
{
	shell("echo 4294967296 >cg/a/memory.max; echo 0 >cg/a/memory.current");
#define GROUP(level, room) level ": the control group /cg/a leaves " room "; the machine has "
	finds("host_room: 4.00 GiB of host memory is available now, of which 2.00 GiB may be spilled\n" GROUP(
	    "cgroup", "4.00 GiB") "64.00 GiB available\n" LOCK SWAP);
	shell("echo 3221225472 >cg/a/memory.current");
	finds("host_none: 1.00 GiB of host memory is available now, of which nothing may be spilled\n" GROUP(
	    "cgroup_tight", "1.00 GiB") "64.00 GiB available\n" LOCK SWAP);
	/* As much as the machine has, or more. */
	shell("printf 'MemAvailable: 1048576 kB\\n' >proc/meminfo");
	finds("host_none: 1.00 GiB of host memory is available now, of which nothing may be spilled\n" GROUP(
	    "cgroup", "1.00 GiB") "1.00 GiB available\n" LOCK "swap: no swap\n");
	shell("printf 'MemAvailable: 524288 kB\\n' >proc/meminfo");
	finds(
	    "host_none: 512.00 MiB of host memory is available now, of which nothing may be spilled\n" GROUP(
	        "cgroup", "1.00 GiB") "512.00 MiB available\n" LOCK "swap: no swap\n");
}

/* On AMD only, and if less than what may be spilled. */
TEST_WITH(what_may_be_pinned, machine, NULL)
{
	unsigned long pages = ((unsigned long)32 << 30) / (unsigned long)sysconf(_SC_PAGESIZE);

	shell("echo %lu >sys/module/ttm/parameters/pages_limit", pages / 2);
	finds(ROOM LOCK SWAP);
	shell("touch dev/kfd");
	finds(ROOM "pinned_limit: ttm.pages_limit lets AMD's driver pin 16.00 GiB, and 32.00 GiB may be "
	           "spilled\n" LOCK SWAP);
	shell("echo %lu >sys/module/ttm/parameters/pages_limit", pages);
	finds(ROOM LOCK SWAP);
	shell("rm sys/module/ttm/parameters/pages_limit");
	finds(ROOM LOCK SWAP);
}

TEST_WITH(containers, machine, NULL)
{
#define IN(what) ROOM LOCK SWAP "container: in a container: " what "\n"
	setenv("KUBERNETES_SERVICE_HOST", "", 1);
	finds(IN("the environment has KUBERNETES_SERVICE_HOST"));
	setenv("container", "", 1);
	finds(IN("the environment has KUBERNETES_SERVICE_HOST"));
	setenv("container", "lxc", 1);
	finds(IN("the environment says container=lxc"));
	shell("touch run/.containerenv");
	finds(IN("/run/.containerenv is there"));
	shell("touch .dockerenv");
	finds(IN("/.dockerenv is there"));
}

TEST_WITH(kernels, machine, NULL)
{
	shell("echo 4.4.0-Microsoft >proc/sys/kernel/osrelease; echo Linux 6.1 >proc/version");
	finds(ROOM LOCK SWAP);
	shell("echo 5.15-other-WSL2 >proc/sys/kernel/osrelease");
	finds(ROOM LOCK SWAP);
	shell("echo 5.15-microsoft-standard-wsl2 >proc/sys/kernel/osrelease");
	finds(ROOM LOCK SWAP "wsl: in WSL 2: the kernel is 5.15-microsoft-standard-wsl2\n");
	shell("rm proc/sys/kernel/osrelease; echo Linux 4.19.0-gVisor >proc/version");
	finds(ROOM LOCK SWAP "gvisor: in gVisor: /proc/version is Linux 4.19.0-gVisor\n");
}

TEST_WITH(drivers, machine, NULL)
{
#define SECRET(node) "confidential: a confidential virtual machine with a GPU: /dev/" node " is there\n"
	shell("touch dev/tdx_guest");
	finds(ROOM LOCK SWAP);
	shell("touch dev/nvidiactl");
	finds(ROOM LOCK SWAP SECRET("tdx_guest"));
	shell("touch dev/sev-guest");
	finds(ROOM LOCK SWAP SECRET("tdx_guest") SECRET("sev-guest"));
	shell("rm dev/*; printf 'A: 1\\nEnableSystemMemoryPools: 0\\n' >proc/driver/nvidia/params");
	finds(ROOM LOCK SWAP);
	shell("printf 'A: 1\\n' >proc/driver/nvidia/params");
	finds(ROOM LOCK SWAP);
	shell("printf 'A: 1\\nEnableSystemMemoryPools: 529\\n' >proc/driver/nvidia/params");
	finds(ROOM LOCK SWAP "kept_pages: NVIDIA's module has EnableSystemMemoryPools: 529\n");
}

TEST_WITH(limits, machine, NULL)
{
	locked = RLIM_INFINITY;
	finds(ROOM "memlock: RLIMIT_MEMLOCK is unlimited\n" SWAP);
	locked = 0; /* not known */
	finds(ROOM SWAP);
	locked = 1 << 20;
	shell("printf 'some avg10=90.00 avg60=1.00 avg300=1.00 total=1\\nfull avg10=50.00 avg60=1.00 "
	      "avg300=1.00 "
	      "total=1\\n' >proc/pressure/memory");
	finds(ROOM
	      "pressure: more than a fifth of the last 10 seconds was lost to a lack of memory\n" LOCK SWAP);
}

static int make_root(void **state)
{
	return mkdtemp(root) ? 0 : -1;
}

static int remove_root(void **state)
{
	shell("rm -r %s", root);
	return 0;
}

int main(void)
{
	return run_unit_tests(make_root, remove_root);
}

/* spill doctor: judges how much host memory may be spilled, with the library's own functions. */
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "decide.h"
#include "doctor.h"
#include "host_available.h"
#include "program_file.h"
#include "small_file.h"
#include "put.h"

#define NOTHING_HELD 0

static struct spill_cgroup_homes homes; /* 8 KiB */

/* A value of /proc/meminfo in bytes; 0: missing. */
static uint64_t read_meminfo(const char *root, const char *name)
{
	char text[8192];
	const char *line;
	uint64_t kib;

	if (!spill_small_file_read_in(root, "/proc", "meminfo", text, sizeof(text)))
		return 0;
	line = strstr(text, name);
	kib = line ? spill_small_file_number(line + strlen(name)) : 0;
	return kib > UINT64_MAX / 1024 ? 0 : kib * 1024;
}

/* Returns the bytes that may be spilled. */
static uint64_t judge_room(const struct doctor_patient *patient, const struct spill_policy *policy)
{
	uint64_t available = spill_host_available_under(patient->root, &homes, NOTHING_HELD);
	uint64_t group = spill_cgroup_room(patient->root, &homes), room;
	struct spill_host_view view = {.available = available};

	if (available == SPILL_UNLIMITED) {
		doctor_find(DOCTOR_host_none, "the kernel does not report the available memory");
		return 0;
	}
	view.limit = spill_amount_resolve(policy->host_limit, available, SPILL_UNLIMITED);
	room = spill_policy_host_room(policy, &view);
	doctor_find(room ? DOCTOR_host_room : DOCTOR_host_none,
	            "%s of host memory is available now, of which %s may be spilled",
	            spill_size(available).text, room ? spill_size(room).text : "nothing");
	if (group == SPILL_UNLIMITED)
		return room;
	/* Tight: the group bounds the available memory, and the machine has more. */
	doctor_find(available == group && read_meminfo(patient->root, "MemAvailable:") > group && !room
	                ? DOCTOR_cgroup_tight
	                : DOCTOR_cgroup,
	            "the control group %s leaves %s; the machine has %s available",
	            homes.v2.folder[0] ? homes.v2.folder : homes.v1.folder, spill_size(group).text,
	            spill_size(read_meminfo(patient->root, "MemAvailable:")).text);
	return room;
}

/*
 * AMD's driver takes pinned memory from TTM, which gives out no more than pages_limit, by default
 * half of the memory (Linux, drivers/gpu/drm/ttm/ttm_module.c). NVIDIA's driver does not use it.
 */
static void judge_pinned(const struct doctor_patient *patient, uint64_t room)
{
	char text[4096];
	uint64_t pages;

	if (!doctor_is_there(patient, PROGRAM_NODE_AMD) ||
	    !spill_small_file_read_in(patient->root, "/sys/module/ttm/parameters", "pages_limit", text,
	                              sizeof(text)))
		return;
	pages = spill_small_file_number(text);
	if (pages < room / (uint64_t)sysconf(_SC_PAGESIZE))
		doctor_find(DOCTOR_pinned_limit,
		            "ttm.pages_limit lets AMD's driver pin %s, and %s may be spilled",
		            spill_size(pages * (uint64_t)sysconf(_SC_PAGESIZE)).text, spill_size(room).text);
}

static void judge_limits(const struct doctor_patient *patient)
{
	struct rlimit limit;

	if (!getrlimit(RLIMIT_MEMLOCK, &limit))
		doctor_find(DOCTOR_memlock, "RLIMIT_MEMLOCK is %s",
		            limit.rlim_cur == RLIM_INFINITY ? "unlimited" : spill_size(limit.rlim_cur).text);
	if (read_meminfo(patient->root, "SwapTotal:"))
		doctor_find(DOCTOR_swap, "%s of swap, %s free",
		            spill_size(read_meminfo(patient->root, "SwapTotal:")).text,
		            spill_size(read_meminfo(patient->root, "SwapFree:")).text);
	else
		doctor_find(DOCTOR_swap, "no swap");
}

/* Its kernel has Microsoft's name; the first WSL has no GPU. */
static void judge_wsl(const struct doctor_patient *patient)
{
	char text[4096];

	if (!spill_small_file_read_in(patient->root, "/proc/sys/kernel", "osrelease", text, sizeof(text)) ||
	    !strcasestr(text, "microsoft") || !strcasestr(text, "WSL2"))
		return;
	text[strcspn(text, "\n")] = '\0';
	doctor_find(DOCTOR_wsl, "in WSL 2: the kernel is %s", text);
}

/* Its kernel's release has the name, 4.19.0-gvisor (gVisor, fsimpl/proc/version.go). */
static void judge_gvisor(const struct doctor_patient *patient)
{
	char text[4096];

	if (!spill_small_file_read_in(patient->root, "/proc", "version", text, sizeof(text)) ||
	    !strcasestr(text, "gvisor"))
		return;
	text[strcspn(text, "\n")] = '\0';
	doctor_find(DOCTOR_gvisor, "in gVisor: /proc/version is %s", text);
}

/* Devices of a confidential virtual machine (Linux, "TDX Guest API", "The Definitive SEV Guest API"). */
static void judge_confidential(const struct doctor_patient *patient)
{
	static const char *const nodes[] = {"/dev/tdx_guest", "/dev/sev-guest"};

	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
		if (doctor_is_there(patient, nodes[i]) && doctor_is_there(patient, PROGRAM_NODE_NVIDIA))
			doctor_find(DOCTOR_confidential,
			            "a confidential virtual machine with a GPU: %s is there", nodes[i]);
	}
}

/* A mask of page sizes; 0: no pools. Older drivers lack the line. */
static void judge_kept_pages(const struct doctor_patient *patient)
{
	static const char name[] = "\nEnableSystemMemoryPools:";
	char text[8192];
	const char *line;

	if (!spill_small_file_read_in(patient->root, "/proc/driver/nvidia", "params", text, sizeof(text)))
		return;
	line = strstr(text, name);
	if (line && strtoul(line + strlen(name), NULL, 10))
		doctor_find(DOCTOR_kept_pages, "NVIDIA's module has EnableSystemMemoryPools: %lu",
		            strtoul(line + strlen(name), NULL, 10));
}

/* Files and variables of container runtimes (systemd's "Container Interface", Kubernetes). */
static void judge_container(const struct doctor_patient *patient)
{
	const char *named = getenv("container");

	if (doctor_is_there(patient, "/.dockerenv"))
		doctor_find(DOCTOR_container, "in a container: /.dockerenv is there");
	else if (doctor_is_there(patient, "/run/.containerenv"))
		doctor_find(DOCTOR_container, "in a container: /run/.containerenv is there");
	else if (named && *named)
		doctor_find(DOCTOR_container, "in a container: the environment says container=%s", named);
	else if (getenv("KUBERNETES_SERVICE_HOST"))
		doctor_find(DOCTOR_container, "in a container: the environment has KUBERNETES_SERVICE_HOST");
}

void doctor_look_at_host(const struct doctor_patient *patient, const struct spill_policy *policy)
{
	judge_pinned(patient, judge_room(patient, policy));
	if (spill_host_pressed_under(patient->root, &homes))
		doctor_find(DOCTOR_pressure,
		            "more than a fifth of the last 10 seconds was lost to a lack of memory");
	judge_limits(patient);
	judge_container(patient);
	judge_wsl(patient);
	judge_gvisor(patient);
	judge_confidential(patient);
	judge_kept_pages(patient);
}

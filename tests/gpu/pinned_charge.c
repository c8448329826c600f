/*
 * Who counts the host memory that the driver takes: the control group, the resident set, MemAvailable? For each kind of memory that
 * spilled data can be in, what these figures do when it is made, touched by the device, touched by the host, and freed; ordinary memory
 * first, to compare with. Also what RLIMIT_MEMLOCK changes, and what the device says about its memory. Run without libspill.
 *
 * It makes a control group of its own where it can, and is in that: the root of version 2 has no figure. Groups and mounts of its making
 * are gone at the end. Never more managed memory than half of what is free on the device.
 *
 * usage: pinned_charge [MIB]      MIB of each kind, 1024 at most; one JSON object a line
 */
#include <cuda.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_kinds.h"
#include "own_group.h"

#define NOBODY 65534
#define MIB ((size_t)1 << 20)

static size_t bytes = 1024 * MIB;
static struct own_group group;

/* --- figures --- */

enum figure {
	GROUP,
	RSS,
	ANON,
	FILE_PAGES,
	SHMEM,
	LOCKED,
	PINNED,
	AVAILABLE,
	FREE,
	UNEVICTABLE,
	SHARED,
	DEVICE_FREE,
	FIGURES
};

static const struct {
	const char *name, *file, *field;
} figures[FIGURES] = {
    [GROUP] = {"cgroup", NULL, NULL},
    [RSS] = {"VmRSS", "/proc/self/status", "VmRSS:"},
    [ANON] = {"RssAnon", "/proc/self/status", "RssAnon:"},
    [FILE_PAGES] = {"RssFile", "/proc/self/status", "RssFile:"},
    [SHMEM] = {"RssShmem", "/proc/self/status", "RssShmem:"},
    [LOCKED] = {"VmLck", "/proc/self/status", "VmLck:"},
    [PINNED] = {"VmPin", "/proc/self/status", "VmPin:"},
    [AVAILABLE] = {"MemAvailable", "/proc/meminfo", "MemAvailable:"},
    [FREE] = {"MemFree", "/proc/meminfo", "MemFree:"},
    [UNEVICTABLE] = {"Unevictable", "/proc/meminfo", "Unevictable:"},
    [SHARED] = {"Shmem", "/proc/meminfo", "Shmem:"},
    [DEVICE_FREE] = {"device_free", NULL, NULL},
};

/* In MiB, or -1 if it is not there. */
static double field(const char *file, const char *name)
{
	char line[256];
	double value = -1;
	FILE *stream = fopen(file, "re");
	while (stream && fgets(line, sizeof(line), stream))
		if (strncmp(line, name, strlen(name)) == 0)
			value = strtod(line + strlen(name), NULL) / 1024;
	if (stream)
		fclose(stream);
	return value;
}

static void measure(double seen[FIGURES])
{
	size_t free_bytes, total;
	for (int i = 0; i < FIGURES; i++)
		seen[i] = figures[i].file ? field(figures[i].file, figures[i].field) : -1;
	seen[GROUP] = own_group_usage(&group);
	if (cuMemGetInfo(&free_bytes, &total) == CUDA_SUCCESS)
		seen[DEVICE_FREE] = (double)(free_bytes / MIB);
}

static int node; /* nearest to the device */

/* What changed since `before`, in MiB. */
static void say(const char *when, const double before[FIGURES])
{
	double now[FIGURES];
	const char *comma = "";
	measure(now);
	printf(",\"%s\":{", when);
	for (int i = 0; i < FIGURES; i++) {
		if (now[i] < 0)
			continue;
		printf("%s\"%s\":%.0f", comma, figures[i].name, now[i] - before[i]);
		comma = ",";
	}
	printf("}");
}

static void try(const struct host_kind *kind)
{
	struct memory memory = {0};
	double before[FIGURES];
	int result, by_device = 0;
	measure(before);
	result = kind->make(&memory, bytes, node);
	printf("{\"kind\":\"%s\",\"MiB\":%zu,\"result\":%d", kind->name, bytes / MIB, result);
	say("made", before);
	if (!result && memory.device) {
		by_device = cuMemsetD8(memory.device, 1, bytes);
		by_device = by_device ? by_device : (int)cuCtxSynchronize();
		printf(",\"device_result\":%d", by_device);
		say("device", before);
	}
	if (!result && memory.host && !by_device) {
		memset(memory.host, 2, bytes);
		say("host", before);
	}
	if (!result)
		kind->free(&memory, bytes);
	say("freed", before);
	printf("}\n");
	fflush(stdout);
}

/* --- the machine --- */

static void text_of(const char *name, const char *file)
{
	char text[1024] = "";
	FILE *stream = fopen(file, "re");
	size_t length = stream ? fread(text, 1, sizeof(text) - 1, stream) : 0;
	if (stream)
		fclose(stream);
	while (length && text[length - 1] == '\n')
		text[--length] = '\0';
	for (char *at = text; *at; at++)
		*at = *at == '\n' ? ';' : *at == '"' || *at == '\\' ? '\'' : *at;
	printf(",\"%s\":\"%s\"", name, text);
}

static void describe(CUdevice device)
{
	static const struct {
		const char *name;
		CUdevice_attribute which;
	} asked[] = {
	    {"INTEGRATED", CU_DEVICE_ATTRIBUTE_INTEGRATED},
	    {"CAN_MAP_HOST_MEMORY", CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
	    {"PAGEABLE_MEMORY_ACCESS", CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS},
	    {"PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES",
	     CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES},
	    {"CONCURRENT_MANAGED_ACCESS", CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
	    {"DIRECT_MANAGED_MEM_ACCESS_FROM_HOST", CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST},
	    {"HOST_NUMA_ID", CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID},
	    {"NUMA_CONFIG", CU_DEVICE_ATTRIBUTE_NUMA_CONFIG},
	    {"NUMA_ID", CU_DEVICE_ATTRIBUTE_NUMA_ID},
	    {"HOST_NUMA_VMM", CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED},
	};
	char name[128] = "", bus[32] = "", path[128];
	cuDeviceGetName(name, sizeof(name), device);
	cuDeviceGetPCIBusId(bus, sizeof(bus), device);
	for (char *at = bus; *at; at++)
		*at = *at >= 'A' && *at <= 'F' ? (char)(*at + 'a' - 'A') : *at;
	printf("{\"device\":\"%s\",\"bus\":\"%s\"", name, bus);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		int value = -99;
		cuDeviceGetAttribute(&value, asked[i].which, device);
		printf(",\"%s\":%d", asked[i].name, value);
	}
	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/numa_node", bus);
	text_of("numa_node", path);
	text_of("nodes", "/sys/devices/system/node/online");
	text_of("driver", "/sys/module/nvidia/version");
	printf("}\n");
	if (cuDeviceGetAttribute(&node, CU_DEVICE_ATTRIBUTE_HOST_NUMA_ID, device) || node < 0)
		node = 0;
}

static void machine(void)
{
	struct utsname name = {0};
	uname(&name);
	printf("{\"kernel\":\"%s %s\"", name.release, name.machine);
	text_of("self", "/proc/self/cgroup");
	printf(",\"group\":\"%s\",\"version\":%d,\"own\":%s,\"file\":\"%s\",\"steps\":\"%s\"", group.folder,
	       group.version, group.made ? "true" : "false", own_group_file(&group), group.steps);
	text_of("controllers", "/sys/fs/cgroup/cgroup.controllers");
	printf(",\"MemTotal\":%.0f}\n", field("/proc/meminfo", "MemTotal:"));
}

static CUresult start(CUdevice *device)
{
	CUcontext context;
	CUresult result = cuInit(0);
	if (!result)
		result = cuDeviceGet(device, 0);
	if (!result)
		result = cuDevicePrimaryCtxRetain(&context, *device);
	return result ? result : cuCtxSetCurrent(context);
}

/* --- RLIMIT_MEMLOCK: in a child, since the driver is started there anew --- */

static void under_limit(uid_t user)
{
	struct rlimit limit = {64 * 1024, 64 * 1024};
	CUdevice device = 0;
	bytes = 64 * MIB;
	setrlimit(RLIMIT_MEMLOCK, &limit);
	if (user && setuid(user) != 0) {
		printf("{\"memlock\":65536,\"uid\":%u,\"setuid\":\"%s\"}\n", user, strerrorname_np(errno));
		return;
	}
	char *page = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	printf("{\"memlock\":65536,\"uid\":%u,\"mlock 1 MiB\":\"%s\"", getuid(),
	       mlock(page, MIB) ? strerrorname_np(errno) : "0");
	CUresult result = start(&device);
	printf(",\"start\":%d", result);
	for (const struct host_kind *kind = host_kinds; !result && kind->name; kind++) {
		struct memory memory = {0};
		if (!kind->pinned)
			continue;
		CUresult made = kind->make(&memory, bytes, node);
		printf(",\"%s\":%d", kind->name, made);
		if (!made)
			kind->free(&memory, bytes);
	}
	printf("}\n");
}

static void limited(uid_t user)
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		under_limit(user);
		fflush(stdout);
		_exit(0);
	}
	int status = 0;
	if (child < 0 || waitpid(child, &status, 0) != child || status)
		printf("{\"memlock\":65536,\"uid\":%u,\"child\":%d}\n", user, status);
}

int main(int count, char **arguments)
{
	CUdevice device = 0;
	size_t mib = count > 1 ? strtoull(arguments[1], NULL, 10) : 1024;
	if (!mib || mib > 1024)
		return 2;
	bytes = mib * MIB;
	limited(0);
	if (getuid() == 0)
		limited(NOBODY);
	own_group_enter(&group);
	machine();
	int result = start(&device);
	if (result) {
		printf("{\"start\":%d}\n", result);
	} else {
		describe(device);
		for (const struct host_kind *kind = host_kinds; kind->name; kind++)
			try(kind);
	}
	fflush(stdout);
	own_group_leave(&group);
	return result != 0;
}

#include "doctor_driver.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend_cuda.h"
#include "backend_hip.h"
#include "minmax.h"
#include "text.h"

static void *library;

static void *resolve(enum spill_domain domain, const char *symbol)
{
	return dlsym(library, symbol);
}

static void read_cuda_attributes(int device, struct driver_device *facts)
{
	facts->vmm = spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	facts->host_vmm =
	    spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	facts->concurrent = spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
	facts->pageable = spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
	facts->host_tables =
	    spill_cuda_attribute(device, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES);
}

static bool hip_attribute(int device, hipDeviceAttribute_t which)
{
	int value = 0;

	return !spill_hip.hipDeviceGetAttribute(&value, which, device) && value;
}

static void read_hip_attributes(int device, struct driver_device *facts)
{
	facts->concurrent = hip_attribute(device, hipDeviceAttributeConcurrentManagedAccess);
	facts->pageable = hip_attribute(device, hipDeviceAttributePageableMemoryAccess);
	facts->host_tables = hip_attribute(device, hipDeviceAttributePageableMemoryAccessUsesHostPageTables);
}

/*
 * libspill makes no such copies, so its lists lack these functions. With pinned host memory both
 * return after the copy (CUDA Driver API, "API synchronization behavior"; HIP's hipMemcpy).
 */
static int copy_cuda(uint64_t to, uint64_t from, uint64_t bytes)
{
	CUresult (*copy)(CUdeviceptr, CUdeviceptr, size_t);

	*(void **)&copy = dlsym(library, "cuMemcpy");
	return copy ? copy(to, from, bytes) : CUDA_ERROR_NOT_SUPPORTED;
}

static int copy_hip(uint64_t to, uint64_t from, uint64_t bytes)
{
	hipError_t (*copy)(void *, const void *, size_t, hipMemcpyKind);

	*(void **)&copy = dlsym(library, "hipMemcpy");
	return copy ? copy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes, hipMemcpyDefault)
	            : hipErrorNotSupported;
}

static const char *const cuda_files[] = {"libcuda.so.1", NULL};
/* Newest first: programs most likely use it. */
static const char *const hip_files[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libamdhip64.so", NULL};

enum { OPTIONAL, REQUIRED };
static const struct driver_function cuda_functions[] = {
#define FUNCTION(needed, ret, symbol, params) {#symbol, needed},
#include "backend_cuda.def"
    {NULL, false}};
static const struct driver_function hip_functions[] = {
#define FUNCTION(needed, ret, symbol, params) {#symbol, needed},
#include "backend_hip.def"
    {NULL, false}};

/* Without a GPU, Debian's libamdhip64.so.5 answers hipErrorInvalidDevice. */
const struct driver_vendor driver_cuda = {"NVIDIA",          &spill_backend_cuda,
                                          SPILL_CUDA_DRIVER, cuda_files,
                                          "cuInit",          {CUDA_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE},
                                          cuda_functions,    read_cuda_attributes,
                                          copy_cuda};
const struct driver_vendor driver_hip = {
    "AMD",         &spill_backend_hip,  SPILL_HIP,
    hip_files,     "hipInit",           {hipErrorNoDevice, hipErrorInvalidDevice},
    hip_functions, read_hip_attributes, copy_hip};

/* Keeps the first error other than "no such file". */
static bool load_library(const struct driver_vendor *vendor, struct driver_facts *facts)
{
	for (const char *const *file = vendor->files; *file; file++) {
		library = dlopen(*file, RTLD_NOW | RTLD_LOCAL);
		if (library)
			return true;

		const char *why = dlerror();
		bool absent = why && strstr(why, "cannot open shared object file: No such file") &&
		              !strncmp(why, *file, strlen(*file));

		if (!absent && !facts->problem[0])
			snprintf(facts->problem, sizeof(facts->problem), "%s", why ? why : *file);
	}
	return false;
}

/* True if the library has the function in any version: one of two is enough for libspill. */
static bool has_function(const char *symbol)
{
	char other[128];
	size_t length = strlen(symbol);
	bool second = length > 3 && !strcmp(symbol + length - 3, "_v2");

	snprintf(other, sizeof(other), "%.*s%s", (int)(second ? length - 3 : length), symbol,
	         second ? "" : "_v2");
	return dlsym(library, symbol) || dlsym(library, other);
}

/* Names the first few functions that the library lacks, and how many more there are. */
static void name_missing(const struct driver_function *function, struct driver_facts *facts)
{
	struct spill_text text = spill_text_begin(facts->missing, sizeof(facts->missing));
	unsigned count = 0;

	for (; function->name; function++) {
		if (function->needed == facts->complete || has_function(function->name))
			continue;
		if (count++ < 4)
			spill_text_format(&text, "%s%s", count > 1 ? ", " : "", function->name);
	}
	if (count > 4)
		spill_text_format(&text, " and %u more", count - 4);
}

/* Before the trial makes a context, which takes memory too. */
static void read_use(struct driver_device *device)
{
	uint64_t free_bytes = cli_card_free(device->identity.uuid);

	device->held = free_bytes == UINT64_MAX ? 0 : spill_minus(device->identity.bytes, free_bytes);
	device->users = cli_card_users(device->identity.uuid, device->user, DRIVER_USERS);
}

static void examine_driver(const struct driver_vendor *vendor, struct driver_facts *facts, bool copying)
{
	const struct spill_backend *backend = vendor->backend;
	struct spill_log_device list[SPILL_DEVICES];
	int (*start)(unsigned);
	Dl_info symbol_info;

	facts->stage = DRIVER_LOADING;
	if (!load_library(vendor, facts)) {
		facts->stage = DRIVER_ABSENT;
		return;
	}
	*(void **)&start = dlsym(library, vendor->start);
	if (start && dladdr(*(void **)&start, &symbol_info) && symbol_info.dli_fname)
		snprintf(facts->library, sizeof(facts->library), "%s", symbol_info.dli_fname);
	facts->stage = DRIVER_STARTING;
	facts->complete = start && backend->start(resolve);
	name_missing(vendor->functions, facts);
	if (!start || !facts->complete)
		return;
	facts->error = start(0);
	if (facts->error) {
		snprintf(facts->error_name, sizeof(facts->error_name), "%s",
		         backend->error_name(facts->error));
		facts->version = backend->driver_version();
		return;
	}
	facts->stage = DRIVER_ASKING;
	facts->version = backend->driver_version();
	facts->count = backend->devices->list(list, SPILL_DEVICES);
	for (unsigned i = 0; i < facts->count; i++) {
		facts->devices[i].identity = list[i];
		facts->devices[i].capabilities = backend->devices->capabilities((int)i);
		vendor->read_attributes((int)i, &facts->devices[i]);
		read_use(&facts->devices[i]);
	}
	facts->stage = DRIVER_TOUCHING;
	for (; facts->device < facts->count; facts->device++)
		driver_touch(backend, (int)facts->device, &facts->devices[facts->device]);
	facts->stage = DRIVER_COPYING;
	for (facts->device = 0; copying && facts->device < facts->count; facts->device++)
		driver_link(vendor, (int)facts->device, &facts->devices[facts->device]);
	facts->stage = DRIVER_DONE;
}

/* The trial's process. It hides the driver's output and writes no core dump. */
static void run_trial(const struct driver_vendor *vendor, struct driver_facts *facts, bool copying)
{
	int null_device = open("/dev/null", O_RDWR | O_CLOEXEC);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0});
	for (int fd = 0; fd <= 2 && null_device >= 0; fd++)
		dup2(null_device, fd);
	/* If libspill is preloaded here, it must not change the driver's behaviour. */
	setenv("SPILL", "0", 1);
	examine_driver(vendor, facts, copying);
	facts->finished = true;
	_exit(0);
}

/* Waits until the child closes its end by exiting. False: the time is up. */
static bool wait_for_end(int pipe, unsigned timeout_ms)
{
	struct pollfd reap_trial = {.fd = pipe, .events = POLLIN};

	return poll(&reap_trial, 1, (int)timeout_ms) > 0;
}

/* A process blocked in the kernel cannot be killed. It is left behind. */
static void reap_trial(pid_t pid, int pipe, unsigned timeout_ms, struct driver_facts *facts)
{
	int status = 0;
	bool ended = wait_for_end(pipe, timeout_ms);

	if (!ended)
		kill(pid, SIGKILL);
	if (!ended && !wait_for_end(pipe, 2000)) {
		facts->end = DRIVER_HANGS;
		return;
	}
	waitpid(pid, &status, 0);
	if (!ended)
		facts->end = DRIVER_HANGS;
	else if (!facts->finished)
		facts->end = DRIVER_CRASHED; /* includes a driver that calls exit */
	facts->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

const struct driver_facts *driver_try(const struct driver_vendor *vendor, unsigned timeout_ms, bool copying)
{
	struct driver_facts *facts =
	    mmap(NULL, sizeof(*facts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int ends[2];
	pid_t pid = -1;

	if (facts == MAP_FAILED)
		return NULL;
	if (!pipe2(ends, O_CLOEXEC)) {
		fflush(NULL);
		pid = fork();
		if (pid == 0)
			run_trial(vendor, facts, copying);
		close(ends[1]);
		if (pid > 0)
			reap_trial(pid, ends[0], timeout_ms, facts);
		close(ends[0]);
	}
	if (pid > 0)
		return facts;
	munmap(facts, sizeof(*facts));
	return NULL;
}

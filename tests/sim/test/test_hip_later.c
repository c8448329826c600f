/* Functions of ROCm 6 and 7 that ROCm 5 lacks. */
#include <dlfcn.h>

#include "hip_test.h"

#include "hip_later_api.h"

static void test_look_up(void)
{
	hipDriverProcAddressQueryResult status = (hipDriverProcAddressQueryResult)7;
	void *found = GARBAGE;

	CHECK(hipGetProcAddress("hipMalloc", &found, 602, HIP_PROC_ADDRESS_DEFAULT, &status), hipSuccess);
	CHECK(status, HIP_GET_PROC_ADDRESS_SUCCESS);
	CHECK_TRUE(found == dlsym(RTLD_DEFAULT, "hipMalloc"));
	CHECK(hipGetProcAddress("hipStreamBeginCapture", &found, 602, HIP_PROC_ADDRESS_PER_THREAD, NULL),
	      hipSuccess);
	CHECK_TRUE(found == dlsym(RTLD_DEFAULT, "hipStreamBeginCapture_spt"));
	/* A name without such a variant is itself. */
	CHECK(hipGetProcAddress("hipMalloc", &found, 602, HIP_PROC_ADDRESS_PER_THREAD, NULL), hipSuccess);
	CHECK_TRUE(found == dlsym(RTLD_DEFAULT, "hipMalloc"));
	CHECK(hipGetProcAddress("hipGetDeviceProperties", &found, 602, HIP_PROC_ADDRESS_DEFAULT, NULL),
	      hipSuccess);
	CHECK_TRUE(found == dlsym(RTLD_DEFAULT, "hipGetDevicePropertiesR0600"));
	CHECK(hipGetProcAddress("hipGetDeviceProperties", &found, 502, HIP_PROC_ADDRESS_DEFAULT, NULL),
	      hipSuccess);
	CHECK_TRUE(found == dlsym(RTLD_DEFAULT, "hipGetDeviceProperties"));
	CHECK(hipGetProcAddress("hipNoSuchThing", &found, 602, HIP_PROC_ADDRESS_DEFAULT, &status),
	      hipErrorInvalidValue);
	CHECK(status, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	CHECK(hipGetProcAddress(NULL, &found, 602, HIP_PROC_ADDRESS_DEFAULT, NULL), hipErrorInvalidValue);
	CHECK(hipGetProcAddress("", &found, 602, HIP_PROC_ADDRESS_DEFAULT, NULL), hipErrorInvalidValue);
	CHECK(hipGetProcAddress("hipMalloc", NULL, 602, HIP_PROC_ADDRESS_DEFAULT, NULL),
	      hipErrorInvalidValue);
#if HIP_RELEASE >= 7
	CHECK(hipGetProcAddress_spt("hipStreamBeginCapture", &found, 702, HIP_PROC_ADDRESS_DEFAULT, NULL),
	      hipSuccess);
	CHECK_TRUE(found == dlsym(RTLD_DEFAULT, "hipStreamBeginCapture_spt"));
#endif
}

static void test_device(void)
{
	struct hip_device_prop_6 now;
	hipDeviceProp_t old;
	int version = 0;

	CHECK(hipRuntimeGetVersion(&version), hipSuccess);
	CHECK(version / 10000000, HIP_RELEASE);
	CHECK(hipGetDevicePropertiesR0600(&now, 1), hipSuccess);
	CHECK(hipGetDevicePropertiesR0000(&old, 1), hipSuccess);
	CHECK_TRUE(now.totalGlobalMem == old.totalGlobalMem && now.warpSize == old.warpSize &&
	           now.pciBusID == old.pciBusID && !strcmp(now.gcnArchName, old.gcnArchName));
	CHECK(hipGetDevicePropertiesR0600(NULL, 0), hipErrorInvalidValue);
	CHECK(hipGetDevicePropertiesR0600(&now, 99), hipErrorInvalidDevice);
}

/* The last call's own result, even a success: the old rule of hipGetLastError. */
static void test_last_result(void)
{
	int device;

	CHECK(hipMalloc(NULL, 16), hipErrorInvalidValue);
	CHECK(hipExtGetLastError(), hipErrorInvalidValue);
	CHECK(hipExtGetLastError(), hipSuccess);
	CHECK(hipMalloc(NULL, 16), hipErrorInvalidValue);
	CHECK(hipGetDevice(&device), hipSuccess);
	CHECK(hipExtGetLastError(), hipSuccess);
	CHECK(hipGetLastError(), HIP_RELEASE >= 7 ? hipErrorInvalidValue : hipSuccess);
}

static void test_memory_nodes(void)
{
	struct hip_alloc_node_params params, about;
	hipGraphNode_t alloc = NULL, release = NULL;
	hipGraphExec_t exec = NULL;
	hipGraph_t graph = NULL;
	size_t before = free_bytes();
	void *freed = NULL;

	memset(&params, 0, sizeof(params));
	CHECK(hipGraphCreate(&graph, 0), hipSuccess);
	CHECK(hipGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params), hipErrorInvalidValue);
	params.poolProps.allocType = hipMemAllocationTypePinned;
	params.poolProps.location.type = hipMemLocationTypeDevice;
	params.bytesize = 16 * MIB;
	CHECK(hipGraphAddMemAllocNode(&alloc, graph, NULL, 0, NULL), hipErrorInvalidValue);
	CHECK(hipGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params), hipSuccess);
	CHECK_TRUE(params.dptr);
	CHECK(before - free_bytes(), 0);
	CHECK(hipGraphAddMemFreeNode(&release, graph, &alloc, 1, NULL), hipErrorInvalidValue);
	CHECK(hipGraphAddMemFreeNode(&release, graph, &alloc, 1, params.dptr), hipSuccess);
	CHECK(hipGraphMemAllocNodeGetParams(alloc, &about), hipSuccess);
	CHECK_TRUE(about.dptr == params.dptr && about.bytesize == 16 * MIB);
	CHECK(hipGraphMemFreeNodeGetParams(release, &freed), hipSuccess);
	CHECK_TRUE(freed == params.dptr);
	CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0), hipSuccess);
	CHECK(hipGraphLaunch(exec, NULL), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess);
	CHECK(hipGraphExecDestroy(exec), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipSuccess);
	CHECK(hipDeviceGraphMemTrim(0), hipSuccess);
	CHECK(hipDeviceGraphMemTrim(99), hipErrorInvalidDevice);
	CHECK(before - free_bytes(), 0);
}

static void test_capture(void)
{
	hipStreamCaptureStatus status;
	hipGraph_t graph = NULL;

	/* The thread's default stream, where the plain name means the legacy stream. */
	CHECK(hipStreamBeginCapture_spt(NULL, hipStreamCaptureModeGlobal), hipSuccess);
	CHECK(hipStreamIsCapturing_spt(NULL, &status), hipSuccess);
	CHECK(status, hipStreamCaptureStatusActive);
	CHECK(hipStreamEndCapture_spt(NULL, &graph), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipSuccess);
}

static void test_pointers(void)
{
	int on = 1;
	void *memory;

	CHECK(hipMallocManaged(&memory, MIB, hipMemAttachGlobal), hipSuccess);
	CHECK(hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory), hipSuccess);
	CHECK(hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_MAPPED, memory), hipErrorInvalidValue);
	CHECK(hipPointerSetAttribute(NULL, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory), hipErrorInvalidValue);
	CHECK(hipPointerSetAttribute(&on, HIP_POINTER_ATTRIBUTE_SYNC_MEMOPS, NULL), hipErrorInvalidValue);
#if HIP_RELEASE >= 7
	hipMemLocation host = {(hipMemLocationType)HIP_LOCATION_7_HOST, 0},
	               own = {hipMemLocationTypeDevice, 0};
	int fd;

	CHECK(hipMemAdvise_v2(memory, MIB, hipMemAdviseSetPreferredLocation, host), hipSuccess);
	CHECK(hipMemAdvise_v2(NULL, MIB, hipMemAdviseSetPreferredLocation, host), hipErrorInvalidValue);
	CHECK(hipMemPrefetchAsync_v2(memory, MIB, own, 0, NULL), hipSuccess);
	CHECK(hipMemPrefetchAsync_v2(memory, MIB, own, 1, NULL), hipErrorInvalidValue);
	CHECK(hipMemGetHandleForAddressRange(NULL, memory, MIB, 1, 0), hipErrorInvalidValue);
	CHECK(hipMemGetHandleForAddressRange(&fd, memory, MIB, 1, 0), hipErrorNotSupported);
#endif
	CHECK(hipFree(memory), hipSuccess);
}

int main(void)
{
	test_look_up();
	test_device();
	test_last_result();
	test_memory_nodes();
	test_capture();
	test_pointers();
	return check_result();
}

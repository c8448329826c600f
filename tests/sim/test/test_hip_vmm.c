/* Virtual memory management. SPILL_SIM_CAPS has the abilities of the device. */
#include "hip_test.h"

#include "hip_later_api.h"

#define CHUNK (2 * MIB)

static void *range;

/* The properties in the layout of this release. */
static const hipMemAllocationProp *properties(int location, int id)
{
	static hipMemAllocationProp old;
	static struct hip_allocation_prop_6 now;
	hipMemLocation where = {(hipMemLocationType)location, id};

	memset(&old, 0, sizeof(old));
	memset(&now, 0, sizeof(now));
	old.type = now.type = hipMemAllocationTypePinned;
	old.location = now.location = where;
	return HIP_RELEASE < 6 ? &old : (const void *)&now;
}

static void test_reserve(void)
{
	const hipError_t bad = HIP_RELEASE < 7 ? hipErrorOutOfMemory : hipErrorInvalidValue;
	size_t granule = 0;
	void *near = NULL;

	CHECK(hipMemGetAllocationGranularity(&granule, properties(hipMemLocationTypeDevice, 0),
	                                     hipMemAllocationGranularityMinimum),
	      hipSuccess);
	CHECK(granule, CHUNK);
	CHECK(hipMemGetAllocationGranularity(NULL, properties(hipMemLocationTypeDevice, 0),
	                                     hipMemAllocationGranularityMinimum),
	      hipErrorInvalidValue);
	CHECK(hipMemGetAllocationGranularity(&granule, NULL, hipMemAllocationGranularityMinimum),
	      hipErrorInvalidValue);
	CHECK(hipMemAddressReserve(NULL, CHUNK, 0, NULL, 0), hipErrorInvalidValue);
	CHECK(hipMemAddressReserve(&near, CHUNK, 0, NULL, 1), hipErrorInvalidValue);
	CHECK(hipMemAddressReserve(&near, 0, 0, NULL, 0), bad);
	CHECK(hipMemAddressReserve(&near, CHUNK + 1, 0, NULL, 0), bad);
	CHECK(hipMemAddressReserve(&near, CHUNK, 3, NULL, 0), bad);
	CHECK(hipMemAddressReserve(&near, CHUNK, 0, NULL, 0), hipSuccess);
	CHECK(hipMemAddressFree(near, 0), hipErrorInvalidValue);
	CHECK(hipMemAddressFree(near, CHUNK), hipSuccess);
	CHECK(hipMemAddressFree(near, CHUNK), hipErrorInvalidValue);
	CHECK(hipMemAddressReserve(&range, 4 * CHUNK, 0, NULL, 0), hipSuccess);
}

static void test_device(void)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t handle = NULL, again = NULL;
	unsigned long long flags = 7;
	hipPointerAttribute_t about;
	size_t before = free_bytes(), size;
	hipIpcMemHandle_t ipc;
	uint32_t word = 0;
	void *base;

	CHECK(hipMemCreate(NULL, CHUNK, properties(hipMemLocationTypeDevice, 0), 0), hipErrorInvalidValue);
	CHECK(hipMemCreate(&handle, 0, properties(hipMemLocationTypeDevice, 0), 0), hipErrorInvalidValue);
	CHECK(hipMemCreate(&handle, CHUNK, NULL, 0), hipErrorInvalidValue);
	CHECK(hipMemCreate(&handle, CHUNK + 1, properties(hipMemLocationTypeDevice, 0), 0),
	      hipErrorInvalidValue);
	CHECK(hipMemCreate(&handle, CHUNK, properties(hipMemLocationTypeDevice, 99), 0),
	      HIP_RELEASE < 7 ? hipErrorInvalidValue : hipErrorInvalidDevice);
	CHECK(hipMemCreate(&handle, CHUNK << 20, properties(hipMemLocationTypeDevice, 0), 0),
	      hipErrorOutOfMemory);
	CHECK(hipMemCreate(&handle, CHUNK, properties(hipMemLocationTypeDevice, 0), 0), hipSuccess);
	CHECK(before - free_bytes(), CHUNK);
	CHECK(hipMemMap(range, CHUNK, 0, NULL, 0), hipErrorInvalidValue);
	CHECK(hipMemMap(range, CHUNK, CHUNK, handle, 0), hipErrorInvalidValue);
	CHECK(hipPointerGetAttributes(&about, range), hipErrorInvalidValue);
	CHECK(hipMemMap(range, CHUNK, 0, handle, 0), hipSuccess);
	CHECK(hipMemSetAccess(range, CHUNK, NULL, 1), hipErrorInvalidValue);
	CHECK(hipMemSetAccess(range, CHUNK, &access, 0), hipErrorInvalidValue);
	CHECK(hipMemSetAccess(range, CHUNK, &access, 1), hipSuccess);
	CHECK(hipMemGetAccess(&flags, &access.location, range), hipSuccess);
	CHECK(flags, hipMemAccessFlagsProtReadWrite);
	CHECK(hipMemRelease(handle), hipSuccess); /* the mapping keeps it */
	CHECK(before - free_bytes(), CHUNK);
	CHECK(hipMemsetD32(range, 0x01020304, CHUNK / 4), hipSuccess);
	CHECK(hipMemcpy(&word, (char *)range + CHUNK - 4, 4, hipMemcpyDeviceToHost), hipSuccess);
	CHECK(word, 0x01020304);
	CHECK(hipPointerGetAttributes(&about, range), hipSuccess);
	CHECK((int)about.memoryType, HIP_RELEASE < 6 ? 1 : 2);
	CHECK(hipMemGetAddressRange(&base, &size, (char *)range + 5), hipSuccess);
	CHECK_TRUE(base == range && size == CHUNK);
	CHECK(hipFree(range), hipErrorInvalidValue);
	CHECK(hipIpcGetMemHandle(&ipc, range), HIP_RELEASE < 7 ? hipErrorInvalidDevicePointer : hipSuccess);

	CHECK(hipMemRetainAllocationHandle(&again, range), hipSuccess);
	CHECK(hipMemRetainAllocationHandle(&again, (char *)range + CHUNK), hipErrorInvalidValue);
	CHECK(hipMemUnmap(range, CHUNK / 2), hipErrorInvalidValue);
	CHECK(hipMemUnmap(range, CHUNK), hipSuccess);
	CHECK(before - free_bytes(), CHUNK);
	CHECK(hipMemRelease(again), hipSuccess);
	CHECK(before - free_bytes(), 0);
	CHECK(hipMemRelease(again), hipErrorInvalidValue);
	CHECK(hipMemRelease(NULL), hipErrorInvalidValue);
}

static void test_properties(void)
{
	hipMemGenericAllocationHandle_t handle = NULL;
	struct hip_allocation_prop_6 now;
	hipMemAllocationProp old;
	int fd;

	CHECK(hipMemCreate(&handle, CHUNK, properties(hipMemLocationTypeDevice, 1), 0), hipSuccess);
	CHECK(hipMemGetAllocationPropertiesFromHandle(HIP_RELEASE < 6 ? &old : (void *)&now, handle),
	      hipSuccess);
	CHECK(HIP_RELEASE < 6 ? old.location.id : now.location.id, 1);
	CHECK(HIP_RELEASE < 6 ? old.type : now.type, hipMemAllocationTypePinned);
	CHECK(hipMemGetAllocationPropertiesFromHandle(NULL, handle), hipErrorInvalidValue);
	CHECK_TRUE(hipMemExportToShareableHandle(&fd, handle, hipMemHandleTypePosixFileDescriptor, 0) !=
	           hipSuccess);
	CHECK(hipMemExportToShareableHandle(NULL, handle, hipMemHandleTypePosixFileDescriptor, 0),
	      hipErrorInvalidValue);
	CHECK(hipMemRelease(handle), hipSuccess);
}

/* Refused before ROCm 7.2. From then on the host may have access. */
static void test_host(void)
{
	hipMemAccessDesc access[] = {
	    {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite},
	    {{(hipMemLocationType)HIP_LOCATION_7_HOST, 0}, hipMemAccessFlagsProtReadWrite}};
	hipMemGenericAllocationHandle_t handle = NULL;
	uint32_t word = 0;
	hipPointerAttribute_t about;

	if (HIP_RELEASE < 7 || has_cap("nohostvmm")) {
		CHECK(hipMemCreate(&handle, CHUNK, properties(HIP_LOCATION_7_HOST, 0), 0),
		      hipErrorInvalidValue);
		return;
	}
	size_t before = free_bytes();
	CHECK(hipMemCreate(&handle, CHUNK, properties(HIP_LOCATION_7_HOST_NUMA, 0), 0), hipErrorInvalidValue);
	CHECK(hipMemCreate(&handle, CHUNK, properties(HIP_LOCATION_7_HOST, 0), 0), hipSuccess);
	CHECK(before - free_bytes(), 0);
	CHECK(hipMemMap((char *)range + CHUNK, CHUNK, 0, handle, 0), hipSuccess);
	CHECK(hipMemRelease(handle), hipSuccess);
	CHECK(hipMemSetAccess((char *)range + CHUNK, CHUNK, access, 2), hipSuccess);
	CHECK(hipMemsetD32((char *)range + CHUNK, 5, CHUNK / 4), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess);
	CHECK(*(uint32_t *)((char *)range + CHUNK), 5);
	CHECK(hipMemcpy(&word, (char *)range + CHUNK, 4, hipMemcpyDeviceToHost), hipSuccess);
	CHECK(word, 5);
	CHECK(hipPointerGetAttributes(&about, (char *)range + CHUNK), hipSuccess);
	CHECK((int)about.memoryType, 1);
	CHECK(hipMemUnmap((char *)range + CHUNK, CHUNK), hipSuccess);
}

/* Whatever device the properties name, ROCm 7 takes the memory of the current one. */
static void test_current_device(void)
{
	hipMemGenericAllocationHandle_t handle = NULL;
	size_t before = free_bytes();

	CHECK(hipMemCreate(&handle, CHUNK, properties(hipMemLocationTypeDevice, 1), 0), hipSuccess);
	CHECK(before - free_bytes(), HIP_RELEASE < 7 ? 0 : CHUNK);
	CHECK(hipMemRelease(handle), hipSuccess);
}

/* ROCm 7.2 gives no access to a later part of a reservation if it has another size than the first. */
static void test_access_to_a_part(void)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t first = NULL, second = NULL;

	CHECK(hipMemCreate(&first, CHUNK, properties(hipMemLocationTypeDevice, 0), 0), hipSuccess);
	CHECK(hipMemCreate(&second, 2 * CHUNK, properties(hipMemLocationTypeDevice, 0), 0), hipSuccess);
	CHECK(hipMemMap(range, CHUNK, 0, first, 0), hipSuccess);
	CHECK(hipMemMap((char *)range + CHUNK, 2 * CHUNK, 0, second, 0), hipSuccess);
	CHECK(hipMemSetAccess((char *)range + CHUNK, 2 * CHUNK, &access, 1),
	      HIP_RELEASE < 7 ? hipSuccess : hipErrorInvalidValue);
	CHECK(hipMemSetAccess(range, 3 * CHUNK, &access, 1), hipSuccess);
	CHECK(hipMemUnmap(range, CHUNK), hipSuccess);
	CHECK(hipMemUnmap((char *)range + CHUNK, 2 * CHUNK), hipSuccess);
	CHECK(hipMemRelease(first), hipSuccess);
	CHECK(hipMemRelease(second), hipSuccess);
}

/* A reset ends mapped memory and its handles. The addresses stay reserved. */
static void test_reset(void)
{
	hipMemAccessDesc access = {{hipMemLocationTypeDevice, 0}, hipMemAccessFlagsProtReadWrite};
	hipMemGenericAllocationHandle_t handle = NULL;
	size_t before = free_bytes();

	CHECK(hipMemCreate(&handle, CHUNK, properties(hipMemLocationTypeDevice, 0), 0), hipSuccess);
	CHECK(hipMemMap(range, CHUNK, 0, handle, 0), hipSuccess);
	CHECK(hipMemSetAccess(range, CHUNK, &access, 1), hipSuccess);
	CHECK(hipDeviceReset(), hipSuccess);
	CHECK(free_bytes(), before);
	CHECK(hipMemRelease(handle), hipErrorInvalidValue);
	CHECK(hipMemSetAccess(range, CHUNK, &access, 1), hipErrorInvalidValue);
}

int main(void)
{
	hipMemGenericAllocationHandle_t handle;

	int vmm = -1;

	CHECK(
	    hipDeviceGetAttribute(&vmm, (hipDeviceAttribute_t)89 /* ROCm 6: virtual memory management */, 0),
	    HIP_RELEASE < 6 ? hipErrorInvalidValue : hipSuccess);
	CHECK(vmm, HIP_RELEASE < 6 ? -1 : !has_cap("novmm"));
	if (has_cap("novmm")) {
		CHECK(hipMemAddressReserve(&range, CHUNK, 0, NULL, 0), hipErrorNotSupported);
		CHECK(hipMemCreate(&handle, CHUNK, properties(hipMemLocationTypeDevice, 0), 0),
		      hipErrorNotSupported);
		return check_result();
	}
	test_reserve();
	test_device();
	test_properties();
	test_host();
	test_current_device();
	test_access_to_a_part();
	test_reset();
	CHECK(hipMemAddressFree(range, 4 * CHUNK), hipSuccess);
	return check_result();
}

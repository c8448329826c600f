/* Stream-ordered memory and its pools. */
#include "hip_test.h"

static hipMemPool_t make_pool(int device)
{
	hipMemPoolProps props;
	hipMemPool_t pool = NULL;

	memset(&props, 0, sizeof(props));
	props.allocType = hipMemAllocationTypePinned;
	props.location.type = hipMemLocationTypeDevice;
	props.location.id = device;
	CHECK(hipMemPoolCreate(&pool, &props), hipSuccess);
	CHECK(hipMemPoolCreate(NULL, &props), hipErrorInvalidValue);
	CHECK(hipMemPoolCreate(&pool, NULL), hipErrorInvalidValue);
	props.location.id = 99;
	CHECK(hipMemPoolCreate(&pool, &props), hipErrorInvalidValue);
	return pool;
}

static uint64_t amount(hipMemPool_t pool, hipMemPoolAttr which)
{
	uint64_t value = 0;

	CHECK(hipMemPoolGetAttribute(pool, which, &value), hipSuccess);
	return value;
}

static void test_default(void)
{
	size_t before = free_bytes();
	void *memory = GARBAGE, *plain;
	hipStream_t stream, gone;
	hipMemPool_t pool, current;

	CHECK(hipStreamCreate(&stream), hipSuccess);
	CHECK(hipMallocAsync(NULL, MIB, stream), hipErrorInvalidValue);
	CHECK(hipStreamCreate(&gone), hipSuccess);
	CHECK(hipStreamDestroy(gone), hipSuccess);
	CHECK(hipMallocAsync(&memory, MIB, gone), hipErrorInvalidValue);
	CHECK(hipMallocAsync(&memory, 0, stream), hipSuccess);
	CHECK_TRUE(!memory);
	CHECK(hipMallocAsync(&memory, (size_t)1 << 50, stream), hipErrorOutOfMemory);
	CHECK_TRUE(!memory);
	CHECK(hipMallocAsync(&memory, MIB, stream), hipSuccess);
	CHECK(hipMemsetAsync(memory, 1, MIB, stream), hipSuccess);
	CHECK(hipDeviceGetDefaultMemPool(&pool, 0), hipSuccess);
	CHECK(hipDeviceGetMemPool(&current, 0), hipSuccess);
	CHECK_TRUE(pool == current);
	CHECK(amount(pool, hipMemPoolAttrUsedMemCurrent), MIB);
	CHECK(hipFreeAsync(memory, stream), hipSuccess);
	CHECK(hipFreeAsync(memory, stream), hipErrorInvalidValue);
	CHECK(hipFreeAsync(NULL, stream), hipErrorInvalidValue);
	CHECK(hipStreamSynchronize(stream), hipSuccess);
	CHECK(before - free_bytes(), 0);
	/* Each kind of free accepts each kind of memory. */
	CHECK(hipMallocAsync(&memory, MIB, stream), hipSuccess);
	CHECK(hipMalloc(&plain, MIB), hipSuccess);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipFreeAsync(plain, stream), hipSuccess);
	CHECK(hipStreamSynchronize(stream), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess);
	CHECK(before - free_bytes(), 0);
	CHECK(hipMemPoolDestroy(pool), hipErrorInvalidValue);
	CHECK(hipStreamDestroy(stream), hipSuccess);
}

/* A pool keeps freed memory up to its threshold, until a trim. */
static void test_own(void)
{
	size_t before = free_bytes();
	uint64_t threshold = UINT64_MAX;
	hipMemPool_t pool = make_pool(0), far = make_pool(1), current;
	void *memory;
	int off = 0, value = 7;

	CHECK(hipMemPoolSetAttribute(pool, hipMemPoolAttrReleaseThreshold, &threshold), hipSuccess);
	CHECK(hipMemPoolSetAttribute(pool, (hipMemPoolAttr)99, &threshold), hipErrorInvalidValue);
	CHECK(hipMemPoolSetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &off), hipSuccess);
	CHECK(hipMemPoolGetAttribute(pool, hipMemPoolReuseAllowOpportunistic, &value), hipSuccess);
	CHECK(value, 0);
	CHECK(hipMallocFromPoolAsync(&memory, 10 * MIB, NULL, NULL), hipErrorInvalidValue);
	CHECK(hipMallocFromPoolAsync(&memory, 10 * MIB, pool, NULL), hipSuccess);
	CHECK(hipFreeAsync(memory, NULL), hipSuccess);
	CHECK(hipStreamSynchronize(NULL), hipSuccess);
	CHECK_TRUE(amount(pool, hipMemPoolAttrReservedMemCurrent) >= 10 * MIB);
	CHECK(amount(pool, hipMemPoolAttrUsedMemCurrent), 0);
	CHECK(amount(pool, hipMemPoolAttrUsedMemHigh), 10 * MIB);
	CHECK_TRUE(before - free_bytes() >= 10 * MIB);
	CHECK(hipMemPoolTrimTo(pool, 0), hipSuccess);
	CHECK(before - free_bytes(), 0);
	CHECK(hipMemPoolTrimTo(NULL, 0), hipErrorInvalidValue);

	CHECK(hipDeviceSetMemPool(0, far), hipErrorInvalidDevice);
	CHECK(hipDeviceSetMemPool(0, pool), hipSuccess);
	CHECK(hipDeviceGetMemPool(&current, 0), hipSuccess);
	CHECK_TRUE(current == pool);
	CHECK(hipMallocAsync(&memory, 10 * MIB, NULL), hipSuccess);
	CHECK(amount(pool, hipMemPoolAttrUsedMemCurrent), 10 * MIB);
	CHECK(hipMemPoolDestroy(pool), hipSuccess); /* its memory stays until it is freed */
	CHECK(hipMemPoolDestroy(pool), hipErrorInvalidValue);
	CHECK(hipMemset(memory, 1, 10 * MIB), hipSuccess);
	CHECK(hipDeviceGetMemPool(&current, 0), hipSuccess);
	CHECK_TRUE(current != pool);
	CHECK(hipFree(memory), hipSuccess);
	CHECK(before - free_bytes(), 0);
	CHECK(hipMemPoolDestroy(far), hipSuccess);
	CHECK(hipMemPoolDestroy(NULL), hipErrorInvalidValue);
}

static void test_access(void)
{
	hipMemAccessDesc other = {{hipMemLocationTypeDevice, 1}, hipMemAccessFlagsProtReadWrite};
	hipMemAccessFlags flags = hipMemAccessFlagsProtRead;
	hipMemPool_t pool = make_pool(0);

	CHECK(hipMemPoolGetAccess(&flags, pool, &other.location), hipSuccess);
	CHECK(flags, hipMemAccessFlagsProtNone);
	CHECK(hipMemPoolSetAccess(pool, NULL, 1), hipErrorInvalidValue);
	CHECK(hipMemPoolSetAccess(pool, &other, 1), hipSuccess);
	CHECK(hipMemPoolGetAccess(&flags, pool, &other.location), hipSuccess);
	CHECK(flags, hipMemAccessFlagsProtReadWrite);
	CHECK(hipMemPoolDestroy(pool), hipSuccess);
}

/* All memory of the device is free again, including memory of pools. */
static void test_reset(void)
{
	size_t before = free_bytes();
	hipMemPool_t pool = make_pool(0);
	void *memory, *own;

	CHECK(hipMallocAsync(&memory, 10 * MIB, NULL), hipSuccess);
	CHECK(hipMallocFromPoolAsync(&own, 10 * MIB, pool, NULL), hipSuccess);
	CHECK(hipDeviceReset(), hipSuccess);
	CHECK(before - free_bytes(), 0);
	CHECK(hipFree(memory), hipErrorInvalidValue);
	CHECK(hipFree(own), hipErrorInvalidValue);
	CHECK(hipMallocAsync(&memory, MIB, NULL), hipSuccess);
	CHECK(hipFree(memory), hipSuccess);
}

int main(void)
{
	test_default();
	test_own();
	test_access();
	test_reset();
	return check_result();
}

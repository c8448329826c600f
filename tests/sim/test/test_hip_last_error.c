/*
 * The rule of the last error: test_hip_last_error overwritten|sticky
 * Each call overwrites it (ROCm 5 and 6), or only a failing one does (ROCm 7).
 */
#include "hip_test.h"

int main(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	const hipError_t kept = strcmp(argv[1], "sticky") == 0 ? hipErrorInvalidValue : hipSuccess;
	hipStream_t stream;
	void *memory;
	int device;

	CHECK(hipMalloc(NULL, 16), hipErrorInvalidValue);
	CHECK(hipPeekAtLastError(), hipErrorInvalidValue);
	CHECK(hipGetDevice(&device), hipSuccess);
	CHECK(hipPeekAtLastError(), kept);
	CHECK(hipGetLastError(), kept);
	CHECK(hipGetLastError(), hipSuccess);
	/* The newest error, with either rule. */
	CHECK(hipMalloc(NULL, 16), hipErrorInvalidValue);
	CHECK(hipSetDevice(99), hipErrorInvalidDevice);
	CHECK(hipGetLastError(), hipErrorInvalidDevice);
	CHECK(hipPeekAtLastError(), hipSuccess);
	CHECK(hipMalloc(&memory, (size_t)1 << 60), hipErrorOutOfMemory);
	CHECK(hipStreamCreate(&stream), hipSuccess);
	CHECK(hipStreamDestroy(stream), hipSuccess);
	CHECK(hipGetLastError(), kept ? hipErrorOutOfMemory : hipSuccess);
	return check_result();
}

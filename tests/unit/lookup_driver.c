/* A library with functions under the names of vendors', which is none of theirs. It lacks cuMemFree_v2. */
#define FUNCTION(name) \
	__attribute__((visibility("default"))) int name(void); \
	int name(void) \
	{ \
		return 1; \
	}

FUNCTION(cuMemAlloc_v2)
FUNCTION(cuMemBatchDecompressAsync)
FUNCTION(cuLaunchOfAnother)
FUNCTION(cuTomorrow)
FUNCTION(cuLaunchHostFunc)
FUNCTION(cuMemcpyHtoD) /* the oldest form */
FUNCTION(hipMalloc)
FUNCTION(nvmlDeviceGetMemoryInfo)

/*
 * The behaviour of a CUDA driver on which libspill depends. On a machine with a GPU the same
 * program asks the real driver, and a difference is a bug of the simulator.
 *
 *	LD_LIBRARY_PATH=build/tests/sim test_driver build/tests/sim/kernels.so [TEST]
 *	test_driver kernels.cubin [TEST]                                       (real)
 *
 * Each test is a process of its own: a driver starts once, and an error may break it for good.
 */
#include "driver_test.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

/* -- start ------------------------------------------------------------------------------------- */

DRIVER_TEST(before_init)
{
	size_t bytes;
	int count, version;

	load();
	GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuDeviceGetCount(&count));
	GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuMemGetInfo_v2(&bytes, &bytes));
	OK(d.cuDriverGetVersion(&version));
	CHECK(version >= 11030);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuInit(1));
	OK(d.cuInit(0));
	GIVES(CUDA_ERROR_INVALID_CONTEXT, d.cuMemGetInfo_v2(&bytes, &bytes));
}

DRIVER_TEST(no_device)
{
	setenv("SPILL_SIM_DEVICES", "0", 1);
	load();
	CUresult result = d.cuInit(0);
	if (!result)
		_exit(SKIP); /* a real driver with devices */
	CHECK(result == CUDA_ERROR_NO_DEVICE);
}

DRIVER_TEST(devices)
{
	int count, major, value;
	char text[64];
	size_t total, all, free_bytes;
	CUdevice device;

	start();
	OK(d.cuDeviceGetCount(&count));
	CHECK(count >= 1);
	OK(d.cuDeviceGet(&device, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE, d.cuDeviceGet(&device, count));
	OK(d.cuDeviceTotalMem_v2(&total, 0));
	OK(d.cuMemGetInfo_v2(&free_bytes, &all));
	CHECK(simulated ? total == all : total >= all);
	OK(d.cuMemGetInfo_v2(NULL, &all));
	OK(d.cuDeviceGetPCIBusId(text, sizeof(text), 0));
	OK(d.cuDeviceGetByPCIBusId(&device, text));
	CHECK(device == 0);
	OK(d.cuDeviceGetAttribute(&major, (CUdevice_attribute)75, 0));
	CHECK(major >= 7);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuDeviceGetAttribute(&value, (CUdevice_attribute)100000, 0));
	GIVES(CUDA_ERROR_INVALID_DEVICE,
	      d.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_INTEGRATED, 1000));
}

DRIVER_TEST(errors)
{
	const char *text;

	load();
	OK(d.cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &text));
	CHECK(!strcmp(text, "CUDA_ERROR_OUT_OF_MEMORY"));
	OK(d.cuGetErrorString(CUDA_ERROR_ILLEGAL_ADDRESS, &text));
	CHECK(!strcmp(text, "an illegal memory access was encountered"));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuGetErrorName((CUresult)12345, &text));
	CHECK(!text);
}

DRIVER_TEST(resolver)
{
	static const struct {
		const char *base;
		int version;
		cuuint64_t flags;
		const char *symbol; /* NULL: no symbol */
	} rows[] = {
	    {"cuMemAlloc", 2000, 0, "cuMemAlloc"},
	    {"cuMemAlloc", 3020, 0, "cuMemAlloc_v2"},
	    {"cuMemAlloc", 13000, 0, "cuMemAlloc_v2"},
	    {"cuMemAlloc", 13000, 2, "cuMemAlloc_v2"},
	    {"cuMemFreeAsync", 13000, 1, "cuMemFreeAsync"},
	    {"cuMemFreeAsync", 13000, 2, "cuMemFreeAsync_ptsz"},
	    {"cuMemFreeAsync", 11010, 0, NULL},
	    {"cuMemAdvise", 8000, 0, "cuMemAdvise"},
	    {"cuMemAdvise", 12020, 0, "cuMemAdvise_v2"},
	    {"cuMemcpyHtoD", 13000, 2, "cuMemcpyHtoD_v2_ptds"},
	    {"cuGetProcAddress", 11030, 0, "cuGetProcAddress"},
	    {"cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2"},
	    {"cuStreamSynchronize", 13000, 0, "cuStreamSynchronize"},
	    {"cuStreamSynchronize", 13000, 2, "cuStreamSynchronize_ptsz"},
	    {"cuArrayCreate", 13000, 0, "cuArrayCreate_v2"},
	};
	CUdriverProcAddressQueryResult status;
	void *address;

	load();
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		CUresult result =
		    d.cuGetProcAddress_v2(rows[i].base, &address, rows[i].version, rows[i].flags, &status);

		if (address != (rows[i].symbol ? dlsym(library, rows[i].symbol) : NULL)) {
			fprintf(stderr, "%s at %d, flags %d: %p is not %s\n", rows[i].base, rows[i].version,
			        (int)rows[i].flags, address, rows[i].symbol);
			_exit(1);
		}
		CHECK(rows[i].symbol ? !result && status == CU_GET_PROC_ADDRESS_SUCCESS
		                     : status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	}
	d.cuGetProcAddress_v2("cuNoSuchFunction", &address, 13000, 0, &status);
	CHECK(!address && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
	GIVES(CUDA_ERROR_NOT_FOUND, d.cuGetProcAddress("cuNoSuchFunction", &address, 13000, 0));
}

DRIVER_TEST(after_fork)
{
	int status, count;

	start();
	pid_t child = fork();
	if (!child) {
		GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuInit(0));
		GIVES(CUDA_ERROR_NOT_INITIALIZED, d.cuDeviceGetCount(&count));
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	OK(d.cuCtxSynchronize());
}

/* -- the simulator only ------------------------------------------------------------------------ */

DRIVER_TEST(injected)
{
	CUdeviceptr p;

	setenv("SPILL_SIM_FAIL", "cuMemAlloc:2,cuMemAlloc_v2:4+:46,cuStreamCreate:1:999", 1);
	start();
	need_simulator();
	OK(d.cuMemAlloc_v2(&p, 4096));
	GIVES(CUDA_ERROR_OUT_OF_MEMORY, d.cuMemAlloc_v2(&p, 4096));
	OK(d.cuMemAlloc_v2(&p, 4096));
	GIVES(46, d.cuMemAlloc_v2(&p, 4096));
	GIVES(46, d.cuMemAlloc_v2(&p, 4096));
	CUstream stream;
	GIVES(CUDA_ERROR_UNKNOWN, d.cuStreamCreate(&stream, 0));
	OK(d.cuStreamCreate(&stream, 0));
}

DRIVER_TEST(missing_names_itself)
{
	char text[256] = "";
	int ends[2];

	start();
	need_simulator();
	CUresult (*absent)(void *, const void *) = (__typeof__(absent))dlsym(library, "cuArrayGetPlane");
	CHECK(absent && !pipe(ends) && dup2(ends[1], 2) == 2);
	GIVES(CUDA_ERROR_NOT_SUPPORTED, absent(NULL, NULL));
	GIVES(CUDA_ERROR_NOT_SUPPORTED, absent(NULL, NULL));
	CHECK(read(ends[0], text, sizeof(text) - 1) > 0);
	CHECK(!strcmp(text, "sim: cuArrayGetPlane is not implemented\n"));
}

DRIVER_TEST(context_takes_memory)
{
	size_t total, free_bytes;

	setenv("SPILL_SIM_CONTEXT", "20MiB", 1);
	start();
	need_simulator();
	OK(d.cuMemGetInfo_v2(&free_bytes, &total));
	CHECK(total - free_bytes >= 20 * MIB && total - free_bytes < 24 * MIB);
}

static void *worker(void *data)
{
	uint64_t seed = (uint64_t)data;
	CUstream stream;

	OK(d.cuCtxSetCurrent(context));
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	uint64_t *count = pinned();
	for (uint64_t i = 0; i < 20; i++) {
		size_t bytes = i % 2 ? 3 * MIB : 8192;
		CUdeviceptr p;

		OK(d.cuMemAlloc_v2(&p, bytes));
		OK(RUN(stream, "fill", p, bytes / 8, seed + i));
		OK(RUN(stream, "verify", p, bytes / 8, seed + i, (uint64_t)count));
		OK(d.cuMemFree_v2(p));
		CHECK(*count == 0);
	}
	OK(d.cuStreamDestroy_v2(stream));
	return NULL;
}

DRIVER_TEST(threads)
{
	pthread_t thread[6];

	start();
	size_t before = free_memory();
	for (uint64_t i = 0; i < 6; i++)
		CHECK(!pthread_create(&thread[i], NULL, worker, (void *)(i * 1000)));
	for (int i = 0; i < 6; i++)
		CHECK(!pthread_join(thread[i], NULL));
	if (simulated)
		CHECK(free_memory() == before);
}

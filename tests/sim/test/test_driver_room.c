/* Device memory of objects other than allocations: SPILL_SIM_ROOM. For the simulator only. */
#include "driver_test.h"

#include <pthread.h>

static CUdeviceptr ballast;

/* Leaves `bytes` of the device, or up to a granule more. */
static void leave(size_t bytes)
{
	size_t free_bytes = free_memory();

	CHECK(free_bytes > bytes + GRANULE);
	OK(d.cuMemAlloc_v2(&ballast, (free_bytes - bytes) / GRANULE * GRANULE));
	CHECK(free_memory() >= bytes && free_memory() < bytes + GRANULE);
}

static void make_room(void)
{
	OK(d.cuMemFree_v2(ballast));
}

static void start_with(const char *room)
{
	setenv("SPILL_SIM_ROOM", room, 1);
	start();
	need_simulator();
}

#define FULL(call) GIVES(CUDA_ERROR_OUT_OF_MEMORY, call)
#define TAKES(bytes, call) \
	do { \
		size_t before = free_memory(); \
		OK(call); \
		CHECK(before - free_memory() == (size_t)(bytes)); \
	} while (0)
#define FREES(bytes, call) \
	do { \
		size_t before = free_memory(); \
		OK(call); \
		CHECK(free_memory() - before == (size_t)(bytes)); \
	} while (0)

DRIVER_TEST(modules)
{
	CUmodule one = NULL, two;
	CUlibrary from_file;

	start_with("module:6MiB");
	leave(4 * MIB);
	/* Its code, and its variables in a granule of their own. */
	FULL(d.cuModuleLoad(&one, kernels_path));
	CHECK(!one);
	make_room();
	TAKES(8 * MIB, d.cuModuleLoad(&one, kernels_path));
	TAKES(8 * MIB, d.cuModuleLoad(&two, kernels_path));
	FREES(8 * MIB, d.cuModuleUnload(one));
	FREES(8 * MIB, d.cuModuleUnload(two));
	/* A library takes its room with its first use. */
	TAKES(0, d.cuLibraryLoadFromFile(&from_file, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	TAKES(8 * MIB, d.cuLibraryGetModule(&two, from_file));
	FREES(8 * MIB, d.cuLibraryUnload(from_file));
}

DRIVER_TEST(libraries_elsewhere)
{
	CUcontext other;
	CUlibrary from_file;
	CUkernel kernel;
	CUfunction function;
	CUmodule loaded;
	CUdeviceptr p;

	start_with("module:6MiB");
	OK(d.cuLibraryLoadFromFile(&from_file, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	OK(d.cuLibraryGetKernel(&kernel, from_file, "add"));
	OK(d.cuCtxCreate_v2(&other, 0, 0));
	leave(2 * MIB);
	FULL(d.cuLibraryGetModule(&loaded, from_file));
	FULL(d.cuKernelGetFunction(&function, kernel));
	FULL(d.cuLibraryGetGlobal(&p, NULL, from_file, "sums"));
	OK(d.cuLibraryGetKernel(&kernel, from_file, "copy"));
	FULL(d.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
	make_room();
	TAKES(8 * MIB, d.cuKernelGetFunction(&function, kernel));
	TAKES(0, d.cuLibraryGetModule(&loaded, from_file));
	FREES(8 * MIB, d.cuCtxDestroy_v2(other));
}

DRIVER_TEST(functions)
{
	CUfunction add, copy;
	CUlibrary from_file;
	CUkernel kernel;
	void *nothing[8] = {&kernel, &kernel, &kernel};

	start_with("function:3MiB");
	uint64_t *word = pinned();
	OK(d.cuLibraryLoadFromFile(&from_file, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	TAKES(3 * MIB, d.cuModuleGetFunction(&add, module, "add"));
	TAKES(0, RUN(NULL, "add", (uint64_t)word, 1, 1));
	OK(d.cuLibraryGetKernel(&kernel, from_file, "add"));
	leave(0);
	FULL(d.cuModuleGetFunction(&copy, module, "copy"));
	FULL(d.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, nothing, NULL));
	make_room();
	/* A kernel that failed once is spoilt, as seen on an H200 for a library's kernel. */
	GIVES(CUDA_ERROR_UNKNOWN,
	      d.cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, NULL, nothing, NULL));
	OK(d.cuModuleGetFunction(&copy, module, "copy"));
	GIVES(CUDA_ERROR_UNKNOWN, RUN(NULL, "copy", 0, 0, 0));
	TAKES(3 * MIB, d.cuModuleGetFunction(&copy, module, "fill"));
	OK(d.cuLibraryGetKernel(&kernel, from_file, "fill"));
	TAKES(3 * MIB, d.cuKernelGetFunction(&copy, kernel));
	TAKES(0, d.cuFuncLoad(copy));
	FREES(3 * MIB, d.cuLibraryUnload(from_file));
	FREES(6 * MIB, d.cuModuleUnload(module));
}

DRIVER_TEST(streams_and_events)
{
	CUstream one = NULL, two;
	CUevent event = NULL;

	start_with("stream:2MiB,event:1MiB");
	uint64_t *word = pinned();
	leave(0);
	CHECK(free_memory() == 0);
	FULL(d.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	FULL(d.cuStreamCreateWithPriority(&one, CU_STREAM_DEFAULT, -1));
	FULL(d.cuEventCreate(&event, 0));
	CHECK(!one && !event);
	make_room();
	leave(0);
	/* the first work of a thread's stream */
	FULL(RUN(CU_STREAM_PER_THREAD, "add", (uint64_t)word, 1, 1));
	make_room();
	TAKES(2 * MIB, RUN(CU_STREAM_PER_THREAD, "add", (uint64_t)word, 1, 1));
	TAKES(0, RUN(CU_STREAM_PER_THREAD, "add", (uint64_t)word, 1, 1));
	TAKES(2 * MIB, d.cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
	TAKES(2 * MIB, d.cuStreamCreateWithPriority(&two, CU_STREAM_DEFAULT, -1));
	TAKES(MIB, d.cuEventCreate(&event, 0));
	FREES(2 * MIB, d.cuStreamDestroy_v2(one));
	FREES(2 * MIB, d.cuStreamDestroy_v2(two));
	FREES(MIB, d.cuEventDestroy_v2(event));
}

DRIVER_TEST(executable_graphs)
{
	CUstream stream;
	CUgraph graph;
	CUgraphExec exec = NULL;
	CUDA_GRAPH_INSTANTIATE_PARAMS params = {0};

	start_with("exec:4MiB");
	uint64_t *word = pinned();
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(RUN(stream, "add", (uint64_t)word, 1, 1));
	OK(d.cuStreamEndCapture(stream, &graph));
	leave(MIB);
	FULL(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
	FULL(d.cuGraphInstantiate(&exec, graph, NULL, NULL, 0));
	FULL(d.cuGraphInstantiate_v2(&exec, graph, NULL, NULL, 0));
	FULL(d.cuGraphInstantiateWithParams(&exec, graph, &params));
	CHECK(!exec);
	make_room();
	TAKES(4 * MIB, d.cuGraphInstantiateWithFlags(&exec, graph, 0));
	OK(d.cuGraphLaunch(exec, stream));
	OK(d.cuStreamSynchronize(stream));
	CHECK(word[0] == 1);
	FREES(4 * MIB, d.cuGraphExecDestroy(exec));
}

DRIVER_TEST(local_memory)
{
	CUdeviceptr p;

	start_with("threads:2048");
	OK(d.cuMemAlloc_v2(&p, 4096));
	OK(d.cuMemsetD8_v2(p, 0, 4096));
	leave(4 * MIB);
	FULL(RUN(NULL, "deep", p, 512, 1)); /* 3 KiB more than a thread's share */
	FULL(d.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	make_room();
	TAKES(6 * MIB, RUN(NULL, "deep", p, 512, 1));
	TAKES(0, RUN(NULL, "deep", p, 512, 1));
	TAKES(0, d.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 4096));
	TAKES(8 * MIB, d.cuCtxSetLimit(CU_LIMIT_STACK_SIZE, 8192));
	TAKES(0, d.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 64 * MIB));
}

DRIVER_TEST(contexts)
{
	CUcontext other = NULL;

	setenv("SPILL_SIM_CONTEXT", "10MiB", 1);
	start_with("stream:2MiB");
	leave(8 * MIB);
	FULL(d.cuCtxCreate_v2(&other, 0, 0));
	FULL(d.cuCtxCreate_v3(&other, NULL, 0, 0, 0));
	FULL(d.cuCtxCreate_v4(&other, NULL, 0, 0));
	CHECK(!other);
	make_room();
	size_t before = free_memory();
	TAKES(10 * MIB, d.cuCtxCreate_v2(&other, 0, 0));
	CUstream stream;
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuCtxDestroy_v2(other)); /* with all its objects */
	OK(d.cuCtxSetCurrent(context));
	CHECK(free_memory() == before);
}

/* Each such function can also fail by injection. */
DRIVER_TEST(failing)
{
	CUmodule other;
	CUstream stream;
	CUdeviceptr p;
	CUevent event;

	setenv(
	    "SPILL_SIM_FAIL",
	    "cuModuleLoad:2,cuModuleGetGlobal:1,cuCtxRecordEvent:1:900,cuMemcpy3D:1,cuStreamWriteValue32:1,"
	    "cuGreenCtxCreate:1:2,cuLaunchKernel:2:2",
	    1);
	start();
	need_simulator();
	uint64_t *word = pinned();
	OK(d.cuEventCreate(&event, 0));
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	FULL(d.cuModuleLoad(&other, kernels_path));
	FULL(d.cuModuleGetGlobal_v2(&p, NULL, module, "sums"));
	OK(d.cuModuleGetGlobal_v2(&p, NULL, module, "sums"));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d.cuCtxRecordEvent(context, event));
	FULL(d.cuMemcpy3D_v2(NULL));
	FULL(d.cuStreamWriteValue32_v2(stream, (CUdeviceptr)word, 1, 0));
	FULL(d.cuGreenCtxCreate(NULL, NULL, 0, 0));
	OK(RUN(stream, "add", (uint64_t)word, 1, 1));
	FULL(RUN(stream, "add", (uint64_t)word, 1, 1));
}

/* Launches, the code that they load, and the queue of a stream: contract tests as test_driver.c. */
#include "driver_test.h"

#include <pthread.h>

static CUfunction function_named(const char *name)
{
	CUfunction function;

	OK(d.cuModuleGetFunction(&function, module, name));
	return function;
}

DRIVER_TEST(before_streams)
{
	start();
	uint64_t *word = pinned(), values[3] = {(uint64_t)word, 2, 5};
	CUfunction add = function_named("add");
	CUstream stream;

	OK(d.cuFuncSetBlockShape(add, 32, 1, 1));
	OK(d.cuFuncSetSharedSize(add, 0));
	OK(d.cuParamSetSize(add, sizeof(values)));
	OK(d.cuParamSetv(add, 0, values, sizeof(values)));
	OK(d.cuLaunch(add));
	OK(d.cuCtxSynchronize());
	CHECK(word[0] == 5 && word[1] == 5 && word[2] == 0);
	OK(d.cuParamSeti(add, 16, 7)); /* the low half of the last parameter */
	OK(d.cuLaunchGrid(add, 2, 2));
	OK(d.cuCtxSynchronize());
	CHECK(word[0] == 12 && word[1] == 12);
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuLaunchGridAsync(add, 1, 1, stream));
	OK(d.cuStreamSynchronize(stream));
	CHECK(word[0] == 19);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuLaunchGrid(add, 0, 1));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuFuncSetBlockShape(add, 0, 1, 1));
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuLaunch(NULL));
}

/* A list of one device is valid. With SPILL_SIM_DEVICES two devices start together. */
DRIVER_TEST(several_devices)
{
	CUcontext contexts[2];
	CUmodule modules[2];
	CUDA_LAUNCH_PARAMS list[2] = {{0}};
	uint64_t values[2][3];
	void *parameters[2][3];
	int devices;

	setenv("SPILL_SIM_DEVICES", "2", 1);
	start();
	OK(d.cuDeviceGetCount(&devices));
	if (devices < 2)
		_exit(SKIP);
	uint64_t *word = pinned();
	for (int i = 0; i < 2; i++) {
		OK(d.cuDevicePrimaryCtxRetain(&contexts[i], i));
		OK(d.cuCtxSetCurrent(contexts[i]));
		OK(d.cuModuleLoad(&modules[i], kernels_path));
		list[i] = (CUDA_LAUNCH_PARAMS){.gridDimX = 1, .gridDimY = 1, .gridDimZ = 1};
		list[i].blockDimX = list[i].blockDimY = list[i].blockDimZ = 1;
		OK(d.cuStreamCreate(&list[i].hStream, CU_STREAM_NON_BLOCKING));
		OK(d.cuModuleGetFunction(&list[i].function, modules[i], "add"));
		values[i][0] = (uint64_t)(word + 8 + i);
		values[i][1] = 1;
		values[i][2] = 3;
		for (int j = 0; j < 3; j++)
			parameters[i][j] = &values[i][j];
		list[i].kernelParams = parameters[i];
	}
	module = modules[1];
	OK(RUN(list[1].hStream, "hold", (uint64_t)word));
	OK(d.cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(list[0].hStream));
	CHECK(word_at(word)[8] == 0);
	word_at(word)[0] = 1;
	OK(d.cuStreamSynchronize(list[0].hStream));
	CHECK(word_at(word)[8] == 3 && word_at(word)[9] == 3); /* also waits for the other's end */
	list[1].hStream = NULL;
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuLaunchCooperativeKernelMultiDevice(list, 2, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuLaunchCooperativeKernelMultiDevice(list, 0, 0));
}

/* -- parameters -------------------------------------------------------------------------------- */

#define VIEWS 72 /* bytes of the first parameter of fill_views, kernels.c */

DRIVER_TEST(parameters_are_told)
{
	static const size_t sizes[] = {VIEWS, 8, 8}, offsets[] = {0, VIEWS, VIEWS + 8};
	CUfunction views;
	CUlibrary from_file;
	CUkernel kernel;
	size_t offset, size;

	start();
	if (!d.cuFuncGetParamInfo || !d.cuKernelGetParamInfo)
		_exit(SKIP);
	views = function_named("fill_views");
	OK(d.cuLibraryLoadFromFile(&from_file, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	OK(d.cuLibraryGetKernel(&kernel, from_file, "fill_views"));
	for (size_t i = 0; i < 3; i++) {
		OK(d.cuFuncGetParamInfo(views, i, &offset, &size));
		CHECK(offset == offsets[i] && size == sizes[i]);
		offset = size = 99;
		OK(d.cuKernelGetParamInfo(kernel, i, &offset, &size));
		CHECK(offset == offsets[i] && size == sizes[i]);
		OK(d.cuKernelGetParamInfo(kernel, i, &offset, NULL));
	}
	/* No other call reports their number. */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuFuncGetParamInfo(views, 3, &offset, &size));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuKernelGetParamInfo(kernel, 3, &offset, &size));
	OK(d.cuFuncGetParamInfo(function_named("hold"), 0, &offset, &size));
	CHECK(offset == 0 && size == 8);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuFuncGetParamInfo(function_named("hold"), 1, &offset, &size));
	/* A launch accepts either kind of handle. These calls do not. */
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuFuncGetParamInfo((CUfunction)kernel, 0, &offset, &size));
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuKernelGetParamInfo((CUkernel)views, 0, &offset, &size));
}

struct views {
	uint64_t count;
	struct {
		uint32_t dimensions, stride;
		uint64_t address;
	} view[4];
};

/* A structure by value, in each way to pass parameters. */
DRIVER_TEST(structures_go_by_value)
{
	struct {
		struct views v;
		uint64_t words, seed;
	} all = {.v = {.count = 2}, .words = GRANULE / 8, .seed = 5};
	size_t bytes = sizeof(all);
	void *parameters[] = {&all.v, &all.words, &all.seed};
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &all, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	CUdeviceptr memory;

	_Static_assert(sizeof(struct views) == VIEWS, "as the kernel has it");
	start();
	CUfunction fills = function_named("fill_views");
	OK(d.cuMemAlloc_v2(&memory, 2 * GRANULE));
	all.v.view[0].address = memory;
	all.v.view[1].address = memory + GRANULE;
	OK(d.cuLaunchKernel(fills, 4, 1, 1, 64, 1, 1, 0, NULL, parameters, NULL));
	all.v.count = 0; /* has been copied */
	OK(d.cuCtxSynchronize());
	CHECK(!mismatches(memory, GRANULE, 5) && !mismatches(memory + GRANULE, GRANULE, 6));
	all.v.count = 2;
	all.seed = 7;
	OK(d.cuLaunchKernel(fills, 4, 1, 1, 64, 1, 1, 0, NULL, NULL, extra));
	OK(d.cuCtxSynchronize());
	CHECK(!mismatches(memory, GRANULE, 7) && !mismatches(memory + GRANULE, GRANULE, 8));
	bytes -= 8;
	CHECK(d.cuLaunchKernel(fills, 4, 1, 1, 64, 1, 1, 0, NULL, NULL, extra) != CUDA_SUCCESS);
	/* A launch does not see addresses that lie in memory either. */
	uint64_t *array = pinned();
	array[0] = memory + GRANULE;
	array[1] = memory;
	OK(RUN(NULL, "fill_all", (uint64_t)array, 2, GRANULE / 8, 20));
	OK(d.cuCtxSynchronize());
	CHECK(!mismatches(memory, GRANULE, 21) && !mismatches(memory + GRANULE, GRANULE, 20));
}

/* -- variables and code ------------------------------------------------------------------------ */

DRIVER_TEST(variables)
{
	CUdeviceptr sums, there;
	uint64_t values[4] = {1, 2, 3, 4};
	CUmodule again;
	CUlibrary from_file;
	size_t bytes;

	start();
	uint64_t *out = pinned();
	OK(d.cuModuleGetGlobal_v2(&sums, &bytes, module, "sums"));
	CHECK(bytes == 32 && sums);
	OK(d.cuModuleGetGlobal_v2(NULL, &bytes, module, "sums"));
	OK(d.cuMemcpyHtoD_v2(sums, values, sizeof(values)));
	OK(RUN(NULL, "count_up", 40, (uint64_t)out));
	OK(d.cuCtxSynchronize());
	CHECK(out[0] == 42);
	/* Another load has its own variables, which are zero. */
	OK(d.cuModuleLoad(&again, kernels_path));
	OK(d.cuModuleGetGlobal_v2(&there, NULL, again, "sums"));
	CHECK(there != sums);
	OK(d.cuMemcpyDtoH_v2(values, there, sizeof(values)));
	CHECK(values[1] == 0);
	GIVES(CUDA_ERROR_NOT_FOUND, d.cuModuleGetGlobal_v2(&there, NULL, module, "no_such"));
	CHECK(d.cuMemFree_v2(sums) != CUDA_SUCCESS);
	OK(d.cuModuleUnload(again));
	OK(d.cuLibraryLoadFromFile(&from_file, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	OK(d.cuLibraryGetGlobal(&there, &bytes, from_file, "sums"));
	CHECK(bytes == 32 && there != sums);
	GIVES(CUDA_ERROR_NOT_FOUND, d.cuLibraryGetGlobal(&there, &bytes, from_file, "no_such"));
	GIVES(CUDA_ERROR_NOT_FOUND, d.cuLibraryGetManaged(&there, &bytes, from_file, "sums"));
}

DRIVER_TEST(functions_are_loaded)
{
	CUfunctionLoadingState state = 9;
	CUmoduleLoadingMode mode;
	CUlibrary from_file;
	CUkernel kernel;
	int local = 0;

	setenv("CUDA_MODULE_LOADING", "LAZY", 1);
	start();
	OK(d.cuModuleGetLoadingMode(&mode));
	CUfunction add = function_named("add"), copy, deep = function_named("deep");
	OK(d.cuFuncIsLoaded(&state, add)); /* the look-up has loaded it */
	CHECK(state == 1);
	OK(d.cuFuncLoad(add));
	OK(d.cuLibraryLoadFromFile(&from_file, kernels_path, NULL, NULL, 0, NULL, NULL, 0));
	OK(d.cuLibraryGetKernel(&kernel, from_file, "add"));
	OK(d.cuKernelGetFunction(&copy, kernel));
	OK(d.cuFuncIsLoaded(&state, copy));
	CHECK(state == 1);
	OK(d.cuFuncLoad(copy));
	OK(d.cuFuncGetAttribute(&local, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, deep));
	CHECK(local >= 4096);
	OK(d.cuCtxSynchronize());
}

/* -- the queue of a stream --------------------------------------------------------------------- */

enum { MANY = 3000 };

static atomic_uint submitted, made, passed;
static uint64_t *flag;
static CUstream queue;
static CUfunction one_more;

/* Adds 1 to a word. Only the launch: a look-up of a function may have to wait. */
static CUresult add_one(CUstream stream, uint64_t *word)
{
	uint64_t values[3] = {(uint64_t)word, 1, 1};
	void *parameters[3] = {&values[0], &values[1], &values[2]};

	return d.cuLaunchKernel(one_more, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static void *submit_many(void *unused)
{
	OK(d.cuCtxSetCurrent(context));
	for (unsigned i = 0; i < MANY; i++, submitted++)
		OK(add_one(queue, flag + 1));
	return unused;
}

static void *make_things(void *unused)
{
	CUstream stream;
	CUevent event;
	CUdeviceptr p;

	OK(d.cuCtxSetCurrent(context));
	OK(d.cuMemAlloc_v2(&p, 1024));
	made++;
	OK(d.cuEventCreate(&event, 0));
	made++;
	OK(d.cuStreamCreate(&stream, 0));
	made++;
	return unused;
}

/* Calls of a mover, counted. */
static void *move_things(void *data)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                            .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;
	size_t free_bytes, total;
	CUdeviceptr va;

	OK(d.cuCtxSetCurrent(context));
	OK(d.cuMemGetInfo_v2(&free_bytes, &total));
	passed++;
	OK(d.cuCtxRecordEvent(context, data));
	passed++;
	CUresult now = d.cuEventQuery(data); /* done, if this thread had to wait */
	CHECK(!now || now == CUDA_ERROR_NOT_READY);
	passed++;
	if (has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) {
		OK(d.cuMemCreate(&handle, GRANULE, &prop, 0));
		OK(d.cuMemAddressReserve(&va, GRANULE, 0, 0, 0));
		OK(d.cuMemMap(va, GRANULE, 0, handle, 0));
		OK(allow(va, GRANULE, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
		OK(d.cuMemUnmap(va, GRANULE));
		OK(d.cuMemRelease(handle));
	}
	passed++;
	return NULL;
}

/* A thread that submits to a blocked stream waits, and continues when the stream does. */
DRIVER_TEST(queues_have_an_end)
{
	pthread_t thread, maker, mover, second;
	CUstream other;
	CUevent event;

	setenv("SPILL_SIM_QUEUE", "100", 1);
	start();
	flag = pinned();
	one_more = function_named("add");
	OK(d.cuStreamCreate(&queue, CU_STREAM_NON_BLOCKING));
	OK(d.cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(add_one(other, flag + 2));
	OK(RUN(queue, "hold", (uint64_t)flag));
	CHECK(!pthread_create(&thread, NULL, submit_many, NULL));
	unsigned seen = at_rest(&submitted, simulated ? 99 : MANY);
	printf("# a stream took %u launches\n", seen);
	CHECK(seen < MANY && (!simulated || seen == 99));
	/* Other calls do not wait, nor does a mover. */
	OK(add_one(other, flag + 2));
	OK(d.cuStreamSynchronize(other));
	CHECK(!pthread_create(&mover, NULL, move_things, event));
	pthread_join(mover, NULL);
	/* Calls that make streams, events or memory wait. Does a mover wait then? */
	CHECK(!pthread_create(&maker, NULL, make_things, NULL));
	CHECK(at_rest(&made, simulated ? 0 : 3) == 0);
	passed = 0;
	CHECK(!pthread_create(&second, NULL, move_things, event));
	printf("# beside a cuMemAlloc that waits, %u of 4 calls pass\n", at_rest(&passed, 4));
	word_at(flag)[0] = 1;
	pthread_join(thread, NULL);
	pthread_join(maker, NULL);
	pthread_join(second, NULL);
	CHECK(made == 3);
	OK(d.cuStreamSynchronize(queue));
	CHECK(flag[1] == MANY && flag[2] == 2);
}

/* mixed.c by HIP. */
#include "mixed.h"

#include "hip_api.h"

#define MIB ((size_t)1 << 20)
#define TRY(call) (last_error = (call))

static __thread hipError_t last_error;

static struct {
	hipStream_t stream;
	hipModule_t module;
	hipFunction_t fill, verify;
	uint64_t *mismatches; /* pinned */
} devices[DEVICES];

static void *pointer_of(const struct block *block)
{
	return (void *)(uintptr_t)block->address;
}

static int taken(struct block *block, void *pointer, hipError_t error)
{
	block->address = (uintptr_t)pointer;
	return error;
}

static int take_plain(struct block *block, int device)
{
	void *pointer = NULL;
	hipError_t error = hipMalloc(&pointer, block->bytes);

	return taken(block, pointer, error);
}

static int give_plain(struct block *block, int device)
{
	return hipFree(pointer_of(block));
}

static int take_pitched(struct block *block, int device)
{
	void *pointer = NULL;
	size_t pitch;
	hipError_t error = hipMallocPitch(&pointer, &pitch, 4096, block->bytes / 4096);

	return taken(block, pointer, error);
}

static int take_ordered(struct block *block, int device)
{
	void *pointer = NULL;
	hipError_t error = hipMallocAsync(&pointer, block->bytes, devices[device].stream);

	return taken(block, pointer, error);
}

static int give_ordered(struct block *block, int device)
{
	return hipFreeAsync(pointer_of(block), devices[device].stream);
}

static int take_managed(struct block *block, int device)
{
	void *pointer = NULL;
	hipError_t error = hipMallocManaged(&pointer, block->bytes, hipMemAttachGlobal);

	return taken(block, pointer, error);
}

static int take_pinned(struct block *block, int device)
{
	void *pointer = NULL;
	hipError_t error = hipHostMalloc(&pointer, block->bytes, hipHostMallocMapped);

	return taken(block, pointer, error);
}

static int give_pinned(struct block *block, int device)
{
	return hipHostFree(pointer_of(block));
}

static const struct kind kinds[] = {
    {"plain", 4 * MIB, 2, take_plain, give_plain},
    {"pitched", 2 * MIB, 1, take_pitched, give_plain},
    {"small", 16384, 2, take_plain, give_plain},
    {"ordered", 2 * MIB, 2, take_ordered, give_ordered},
    {"managed", 2 * MIB, 1, take_managed, give_plain},
    {"pinned", 65536, 1, take_pinned, give_pinned},
    {"late", 2 * MIB, 1, take_plain, give_plain},
    {"late small", 262144, 1, take_plain, give_plain},
    {0},
};

static int use(int device)
{
	return hipSetDevice(device);
}

static int open_device(int device, const char *kernels)
{
	void *pinned = NULL;

	if (TRY(use(device)) ||
	    TRY(hipStreamCreateWithFlags(&devices[device].stream, hipStreamNonBlocking)) ||
	    TRY(hipModuleLoad(&devices[device].module, kernels)) ||
	    TRY(hipModuleGetFunction(&devices[device].fill, devices[device].module, "fill")) ||
	    TRY(hipModuleGetFunction(&devices[device].verify, devices[device].module, "verify")) ||
	    TRY(hipHostMalloc(&pinned, sizeof(uint64_t), hipHostMallocMapped)))
		return last_error;
	devices[device].mismatches = pinned;
	return hipSuccess;
}

static int peers(void)
{
	for (int device = 0; device < DEVICES; device++)
		if (TRY(use(device)) || TRY(hipDeviceEnablePeerAccess(!device, 0)))
			return last_error;
	return hipSuccess;
}

static int launch(int device, hipFunction_t function, void **parameters)
{
	return hipModuleLaunchKernel(function, 4, 1, 1, 64, 1, 1, 0, devices[device].stream, parameters,
	                             NULL);
}

static int fill(int device, const struct block *block)
{
	uint64_t address = block->address, words = block->bytes / 8, seed = block->seed;
	void *parameters[] = {&address, &words, &seed};

	return TRY(launch(device, devices[device].fill, parameters))
	           ? last_error
	           : hipStreamSynchronize(devices[device].stream);
}

static int verify(int device, const struct block *block, uint64_t *wrong)
{
	uint64_t address = block->address, words = block->bytes / 8, seed = block->seed;
	uint64_t out = (uintptr_t)devices[device].mismatches;
	void *parameters[] = {&address, &words, &seed, &out};

	*devices[device].mismatches = 0;
	if (TRY(launch(device, devices[device].verify, parameters)) ||
	    TRY(hipStreamSynchronize(devices[device].stream)))
		return last_error;
	*wrong += *devices[device].mismatches;
	return hipSuccess;
}

static int read_block(const struct block *block, void *copy)
{
	return hipMemcpy(copy, pointer_of(block), block->bytes, hipMemcpyDeviceToHost);
}

static int info(void)
{
	size_t free_bytes, total;

	return hipMemGetInfo(&free_bytes, &total);
}

/* A call that succeeds leaves no last error in ROCm 5. */
static const char *changed(int device, bool failed)
{
	int current = -1;

	if (hipGetLastError() && !failed)
		return "last error";
	return hipGetDevice(&current) || current != device ? "device" : NULL;
}

/* Pools give back unused memory when the stream is waited for. */
static int close_device(int device)
{
	if (TRY(hipStreamSynchronize(devices[device].stream)) ||
	    TRY(hipHostFree(devices[device].mismatches)) || TRY(hipStreamDestroy(devices[device].stream)) ||
	    TRY(hipModuleUnload(devices[device].module)))
		return last_error;
	return hipDeviceReset();
}

static const char *error_name(int error)
{
	return hipGetErrorName((hipError_t)error);
}

const struct vendor vendor = {
    .kinds = kinds,
    .open = open_device,
    .peers = peers,
    .use = use,
    .fill = fill,
    .verify = verify,
    .read = read_block,
    .info = info,
    .changed = changed,
    .close = close_device,
    .error_name = error_name,
};

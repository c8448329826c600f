#include "driver_test.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>

struct driver d;
const char *kernels_path;
void *library;
bool simulated;
CUcontext context;
CUmodule module;

void load(void)
{
	library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		_exit(SKIP);
	}
#define DRIVER(symbol, base, since, variant, parameters) \
	d.symbol = (__typeof__(d.symbol))dlsym(library, #symbol);
#include "cuda_api.def"
}

void start(void)
{
	char name[64];

	load();
	OK(d.cuInit(0));
	OK(d.cuDeviceGetName(name, sizeof(name), 0));
	simulated = strstr(name, "Simulated");
	OK(d.cuDevicePrimaryCtxRetain(&context, 0));
	OK(d.cuCtxSetCurrent(context));
	OK(d.cuModuleLoad(&module, kernels_path));
}

bool has(int attribute)
{
	int value = 0;

	OK(d.cuDeviceGetAttribute(&value, (CUdevice_attribute)attribute, 0));
	return value;
}

void need(int attribute)
{
	if (!has(attribute))
		_exit(SKIP);
}

void need_simulator(void)
{
	if (!simulated)
		_exit(SKIP);
}

CUresult launch(CUstream stream, const char *name, const uint64_t *values, unsigned count)
{
	CUfunction function;
	uint64_t copy[8];
	void *parameters[8];

	OK(d.cuModuleGetFunction(&function, module, name));
	for (unsigned i = 0; i < count; i++) {
		copy[i] = values[i];
		parameters[i] = &copy[i];
	}
	return d.cuLaunchKernel(function, 64, 1, 1, 256, 1, 1, 0, stream, parameters, NULL);
}

uint64_t *pinned(void)
{
	uint64_t *word;

	OK(d.cuMemHostAlloc((void **)&word, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
	memset(word, 0, 4096);
	return word;
}

void fill(CUdeviceptr at, size_t bytes, uint64_t seed)
{
	OK(RUN(NULL, "fill", at, bytes / 8, seed));
}

uint64_t mismatches(CUdeviceptr at, size_t bytes, uint64_t seed)
{
	uint64_t *count = pinned(), result;

	OK(RUN(NULL, "verify", at, bytes / 8, seed, (uint64_t)count));
	OK(d.cuCtxSynchronize());
	result = *count;
	OK(d.cuMemFreeHost(count));
	return result;
}

size_t free_memory(void)
{
	size_t free_bytes, total;

	OK(d.cuMemGetInfo_v2(&free_bytes, &total));
	CHECK(free_bytes <= total);
	return free_bytes;
}

CUmemGenericAllocationHandle chunk(CUmemLocationType type, size_t bytes)
{
	CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, 0}};
	CUmemGenericAllocationHandle handle;

	OK(d.cuMemCreate(&handle, bytes, &prop, 0));
	return handle;
}

CUresult allow(CUdeviceptr at, size_t bytes, CUmemAccess_flags flags)
{
	CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, flags};

	return d.cuMemSetAccess(at, bytes, &access, 1);
}

unsigned at_rest(atomic_uint *counter, unsigned enough)
{
	unsigned seen = *counter;

	for (unsigned still = 0; seen < enough && (simulated || still < 300); still++) {
		usleep(1000);
		if (*counter != seen)
			still = 0;
		seen = *counter;
	}
	for (int i = 0; i < 2000; i++)
		sched_yield();
	return *counter;
}

unsigned type_of(CUdeviceptr at)
{
	unsigned type = 0;

	OK(d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at));
	return type;
}

_Atomic uint64_t *word_at(uint64_t *word)
{
	return (_Atomic uint64_t *)word;
}

static struct test {
	const char *name;
	void (*run)(void);
} tests[64];
static size_t count;

void add_test(const char *name, void (*run)(void))
{
	if (count == sizeof(tests) / sizeof(tests[0]))
		abort();
	tests[count++] = (struct test){name, run};
}

int main(int argc, char **argv)
{
	unsigned failed = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: %s KERNELS [TEST]\n", argv[0]);
		return 2;
	}
	kernels_path = argv[1];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < count; i++) {
		int status;

		if (argc > 2 && strcmp(argv[2], tests[i].name))
			continue;
		pid_t child = fork();
		if (!child) {
			alarm(60); /* ends a test that hangs; not a measure */
			tests[i].run();
			_exit(0);
		}
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			continue;
		bool good = WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == SKIP);
		printf("%s %s%s\n", good ? "ok" : "not ok", tests[i].name,
		       good && WEXITSTATUS(status) ? " # SKIP" : "");
		if (!good && WIFSIGNALED(status))
			printf("# signal %d\n", WTERMSIG(status));
		failed += !good;
	}
	return failed != 0;
}

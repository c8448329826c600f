/* Capture and graphs. Usage: test_hip_capture MODULE */
#include <pthread.h>

#include "hip_test.h"

#define WORDS (MIB / sizeof(uint64_t))

static hipModule_t module;
static hipStream_t stream;
static void *memory;

static hipError_t fill(void *where, uint64_t seed, hipStream_t on)
{
	uint64_t address = (uint64_t)(uintptr_t)where, words = WORDS;
	void *parameters[] = {&address, &words, &seed};
	hipFunction_t kernel;

	CHECK(hipModuleGetFunction(&kernel, module, "fill"), hipSuccess);
	return hipModuleLaunchKernel(kernel, 8, 1, 1, 64, 1, 1, 0, on, parameters, NULL);
}

static uint64_t first_word(void)
{
	uint64_t word = 7;

	CHECK(hipMemcpy(&word, memory, sizeof(word), hipMemcpyDeviceToHost), hipSuccess);
	return word;
}

static hipStreamCaptureStatus status_of(hipStream_t which)
{
	hipStreamCaptureStatus status = (hipStreamCaptureStatus)7;

	CHECK(hipStreamIsCapturing(which, &status), hipSuccess);
	return status;
}

static void test_refusals(void)
{
	hipStreamCaptureStatus status;
	hipGraph_t graph = NULL;
	hipStream_t gone;

	CHECK(hipStreamBeginCapture(NULL, hipStreamCaptureModeGlobal), hipErrorStreamCaptureUnsupported);
	CHECK(hipStreamBeginCapture(stream, (hipStreamCaptureMode)9), hipErrorInvalidValue);
	CHECK(hipStreamEndCapture(NULL, &graph), hipErrorIllegalState);
	CHECK(hipStreamEndCapture(stream, NULL), hipErrorInvalidValue);
	CHECK(hipStreamEndCapture(stream, &graph), hipErrorIllegalState);
	CHECK(hipStreamIsCapturing(stream, NULL), hipErrorInvalidValue);
	CHECK(status_of(NULL), hipStreamCaptureStatusNone);
	CHECK(hipThreadExchangeStreamCaptureMode(NULL), hipErrorInvalidValue);
	CHECK(hipStreamCreate(&gone), hipSuccess);
	CHECK(hipStreamDestroy(gone), hipSuccess);
	CHECK(hipStreamBeginCapture(gone, hipStreamCaptureModeGlobal),
	      HIP_RELEASE < 6 ? hipErrorInvalidValue : hipErrorContextIsDestroyed);
	CHECK(hipStreamEndCapture(gone, &graph), hipErrorContextIsDestroyed);
	CHECK(hipStreamIsCapturing(gone, &status), hipErrorContextIsDestroyed);
}

static void test_replay(void)
{
	unsigned long long id = 0, other = 0;
	hipStreamCaptureStatus status;
	hipGraphExec_t exec = NULL;
	hipGraph_t graph = NULL;
	size_t nodes = 7;

	CHECK(hipMemset(memory, 0, MIB), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess);
	CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
	CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipErrorIllegalState);
	CHECK(status_of(stream), hipStreamCaptureStatusActive);
	CHECK(hipStreamGetCaptureInfo(stream, &status, &id), hipSuccess);
	CHECK_TRUE(status == hipStreamCaptureStatusActive && id != 0);
	CHECK(fill(memory, 5, stream), hipSuccess);
	CHECK(hipStreamEndCapture(stream, &graph), hipSuccess);
	CHECK(status_of(stream), hipStreamCaptureStatusNone);
	CHECK_TRUE(graph);
	CHECK(first_word(), 0); /* captured is not run */
	CHECK(hipGraphGetNodes(graph, NULL, &nodes), hipSuccess);
	CHECK(nodes, 1);
	CHECK(hipGraphInstantiate(&exec, graph, NULL, NULL, 0), hipSuccess);
	CHECK(hipGraphInstantiateWithFlags(&exec, graph, 99), hipErrorInvalidValue);
	CHECK(hipGraphDestroy(graph), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipErrorIllegalState);
	CHECK(hipGraphLaunch(exec, stream), hipSuccess);
	CHECK(hipStreamSynchronize(stream), hipSuccess);
	CHECK_TRUE(first_word() != 0);
	CHECK(hipGraphExecDestroy(exec), hipSuccess);
	CHECK(hipGraphLaunch(NULL, stream), hipErrorInvalidValue);
	CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
	CHECK(hipStreamGetCaptureInfo(stream, &status, &other), hipSuccess);
	CHECK_TRUE(other != id);
	CHECK(hipStreamEndCapture(stream, &graph), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipSuccess);
}

static void *allocate_elsewhere(void *answer)
{
	void *block = NULL;

	*(hipError_t *)answer = hipMalloc(&block, MIB);
	if (block)
		hipFree(block);
	return NULL;
}

static hipError_t elsewhere(void)
{
	hipError_t answer = hipErrorUnknown;
	pthread_t thread;

	pthread_create(&thread, NULL, allocate_elsewhere, &answer);
	pthread_join(thread, NULL);
	return answer;
}

/* hipMalloc during a capture, by the mode of the capture and of the calling thread. */
static void test_modes(void)
{
	hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
	hipGraph_t graph = NULL;
	void *block;

	CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeRelaxed), hipSuccess);
	CHECK(hipMalloc(&block, MIB), hipSuccess);
	CHECK(elsewhere(), hipSuccess);
	CHECK(hipFree(block), hipSuccess);
	CHECK(hipStreamEndCapture(stream, &graph), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipSuccess);

	CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeThreadLocal), hipSuccess);
	CHECK(elsewhere(), hipSuccess);
	CHECK(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
	CHECK(mode, hipStreamCaptureModeGlobal);
	CHECK(hipMalloc(&block, MIB), hipSuccess);
	CHECK(hipFree(block), hipSuccess);
	CHECK(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
	CHECK(mode, hipStreamCaptureModeRelaxed);
	CHECK(status_of(stream), hipStreamCaptureStatusActive);
	CHECK(hipMalloc(&block, MIB), hipErrorStreamCaptureUnsupported);
	hipStreamEndCapture(stream, &graph);

	CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
	CHECK(elsewhere(), hipErrorStreamCaptureUnsupported);
	CHECK(status_of(stream), hipStreamCaptureStatusInvalidated);
	CHECK(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
	CHECK_TRUE(!graph);
	CHECK(hipMalloc(&block, MIB), hipSuccess);
	CHECK(hipFree(block), hipSuccess);
}

/* Each function with hipMalloc's rule. */
static void test_forbidden(void)
{
	hipPitchedPtr cube;
	hipArray_t array;
	hipChannelFormatDesc bytes = {8, 0, 0, 0, hipChannelFormatKindUnsigned};
	hipGraph_t graph;
	void *block;
	size_t pitch;

#define FORBIDDEN(call) \
	do { \
		CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess); \
		CHECK(call, hipErrorStreamCaptureUnsupported); \
		hipStreamEndCapture(stream, &graph); \
	} while (0)

	FORBIDDEN(hipFree(memory));
	FORBIDDEN(hipMallocPitch(&block, &pitch, 64, 64));
	FORBIDDEN(hipMalloc3D(&cube, (hipExtent){64, 64, 64}));
	FORBIDDEN(hipMallocArray(&array, &bytes, 64, 64, 0));
	FORBIDDEN(hipHostMalloc(&block, MIB, 0));
	FORBIDDEN(hipHostFree(memory));
	FORBIDDEN(hipHostRegister(&graph, 4096, 0));
	FORBIDDEN(hipStreamSynchronize(stream));
	CHECK(first_word() != 0, 1); /* nothing was freed */
}

/* Stream-ordered memory inside a capture belongs to the graph. */
static void test_memory(void)
{
	hipGraphExec_t exec = NULL;
	hipGraph_t graph = NULL;
	void *block = NULL;
	size_t before = free_bytes();

	CHECK(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipSuccess);
	CHECK(hipMallocAsync(&block, 16 * MIB, stream), hipSuccess);
	CHECK(fill(block, 5, stream), hipSuccess);
	CHECK(hipMemcpyAsync(memory, block, MIB, hipMemcpyDeviceToDevice, stream), hipSuccess);
	CHECK(hipFreeAsync(block, stream), hipSuccess);
	CHECK(hipStreamEndCapture(stream, &graph), hipSuccess);
	CHECK(before - free_bytes(), 0);
	CHECK(hipMemset(memory, 0, MIB), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess); /* the set is asynchronous, and on another stream */
	CHECK(hipGraphInstantiateWithFlags(&exec, graph, hipGraphInstantiateFlagAutoFreeOnLaunch),
	      hipSuccess);
	CHECK(hipGraphLaunch(exec, stream), hipSuccess);
	CHECK(hipStreamSynchronize(stream), hipSuccess);
	CHECK_TRUE(first_word() != 0);
	CHECK(hipGraphExecDestroy(exec), hipSuccess);
	CHECK(hipGraphDestroy(graph), hipSuccess);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 64;
	CHECK(hipModuleLoad(&module, argv[1]), hipSuccess);
	CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
	CHECK(hipMalloc(&memory, MIB), hipSuccess);
	test_refusals();
	test_replay();
	test_modes();
	test_forbidden();
	test_memory();
	CHECK(hipFree(memory), hipSuccess);
	CHECK(hipStreamDestroy(stream), hipSuccess);
	return check_result();
}

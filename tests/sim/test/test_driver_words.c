/* Words of streams, and events of a context: contract tests as test_driver.c. */
#include "driver_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static CUstream new_stream(void)
{
	CUstream stream;

	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	return stream;
}

DRIVER_TEST(writing_and_waiting)
{
	start();
	uint64_t *word = pinned();
	CUdeviceptr at = (CUdeviceptr)word, device;
	CUstream one = new_stream(), two = new_stream();

	OK(d.cuStreamWriteValue32_v2(one, at, 7, 0));
	OK(d.cuStreamWriteValue64_v2(one, at + 8, UINT64_MAX - 1, 0));
	OK(d.cuStreamSynchronize(one));
	CHECK(word[0] == 7 && word[1] == UINT64_MAX - 1);
	/* Work after a wait starts when the word has its value. The program may write it. */
	OK(d.cuStreamWaitValue32_v2(two, at + 16, 5, CU_STREAM_WAIT_VALUE_GEQ));
	OK(d.cuStreamWriteValue32_v2(two, at + 24, 1, 0));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(two));
	word_at(word)[2] = 4;
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(two));
	CHECK(word_at(word)[3] == 0);
	word_at(word)[2] = 6;
	OK(d.cuStreamSynchronize(two));
	CHECK(word_at(word)[3] == 1);
	/* Also words of device memory. */
	OK(d.cuMemAlloc_v2(&device, 4096));
	OK(d.cuMemsetD8_v2(device, 0, 4096));
	OK(d.cuStreamSynchronize(NULL)); /* the other streams do not wait for it */
	OK(d.cuStreamWaitValue64_v2(two, device + 8, 9, CU_STREAM_WAIT_VALUE_EQ));
	OK(d.cuStreamWriteValue64_v2(two, at + 32, 3, 0));
	OK(d.cuStreamWriteValue64_v2(one, device + 8, 9, 0));
	OK(d.cuStreamSynchronize(two));
	CHECK(word_at(word)[4] == 3);
}

DRIVER_TEST(conditions)
{
	start();
	uint64_t *word = pinned();
	CUdeviceptr at = (CUdeviceptr)word;
	CUstream stream = new_stream();

	word[0] = 0x10;
	/* across the wrap-around */
	OK(d.cuStreamWaitValue32_v2(stream, at, 0xfffffff0u, CU_STREAM_WAIT_VALUE_GEQ));
	OK(d.cuStreamWaitValue32_v2(stream, at, 0x30, CU_STREAM_WAIT_VALUE_AND));
	OK(d.cuStreamWaitValue32_v2(stream, at, 0x10, CU_STREAM_WAIT_VALUE_EQ));
	OK(d.cuStreamWaitValue32_v2(stream, at, 0x01, CU_STREAM_WAIT_VALUE_NOR));
	OK(d.cuStreamSynchronize(stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamWaitValue32_v2(stream, at + 2, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamWaitValue64_v2(stream, at + 4, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamWriteValue32_v2(stream, 0, 0, 0));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamWaitValue32_v2(stream, at, 0, 9));
	/* The first versions are off, as the device attribute says. */
	if (!has(92)) {
		GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuStreamWaitValue32(stream, at, 0, 0));
		GIVES(CUDA_ERROR_NOT_SUPPORTED, d.cuStreamWriteValue64(stream, at, 0, 0));
	}
}

DRIVER_TEST(batches)
{
	start();
	uint64_t *word = pinned();
	CUdeviceptr at = (CUdeviceptr)word;
	CUstream stream = new_stream();
	CUstreamBatchMemOpParams ops[3] = {{.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32},
	                                   {.operation = CU_STREAM_MEM_OP_WAIT_VALUE_64},
	                                   {.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64}};

	ops[0].writeValue.address = at;
	ops[0].writeValue.value = 1;
	ops[1].waitValue.address = at + 8;
	ops[1].waitValue.value64 = 1;
	ops[2].writeValue.address = at + 16;
	ops[2].writeValue.value64 = 1;
	OK(d.cuStreamBatchMemOp_v2(stream, 3, ops, 0));
	while (!word_at(word)[0])
		sched_yield();
	CHECK(word_at(word)[2] == 0);
	word_at(word)[1] = 1;
	OK(d.cuStreamSynchronize(stream));
	CHECK(word_at(word)[2] == 1);
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamBatchMemOp_v2(stream, 3, ops, 1));
	ops[1].operation = (CUstreamBatchMemOpType)77;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuStreamBatchMemOp_v2(stream, 3, ops, 0));
}

DRIVER_TEST(words_in_a_graph)
{
	CUgraph graph;
	CUgraphExec exec;
	CUgraphNode node;
	CUgraphNodeType type;
	size_t count = 1;

	start();
	uint64_t *word = pinned();
	CUstream stream = new_stream();
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(d.cuStreamWriteValue32_v2(stream, (CUdeviceptr)word, 3, 0));
	OK(d.cuStreamEndCapture(stream, &graph));
	OK(d.cuGraphGetNodes(graph, &node, &count));
	OK(d.cuGraphNodeGetType(node, &type));
	CHECK(count == 1 && (int)type == 12);
	OK(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
	CHECK(word_at(word)[0] == 0);
	OK(d.cuGraphLaunch(exec, stream));
	OK(d.cuStreamSynchronize(stream));
	CHECK(word_at(word)[0] == 3);
}

/* -- events of a context ----------------------------------------------------------------------- */

static uint64_t *flags;
static atomic_int launched, go_on;

/* Blocks its own default stream, which no handle names elsewhere. */
static void *other_thread(void *unused)
{
	OK(d.cuCtxSetCurrent(context));
	OK(RUN(CU_STREAM_PER_THREAD, "hold", (uint64_t)(flags + 8)));
	launched = 1;
	while (!go_on)
		sched_yield();
	return unused;
}

DRIVER_TEST(everything_of_a_context)
{
	pthread_t thread;
	CUevent event, sooner;

	start();
	flags = pinned();
	CUstream stream = new_stream(), late = new_stream();
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(d.cuEventCreate(&sooner, CU_EVENT_DISABLE_TIMING));
	OK(d.cuCtxRecordEvent(context, event));
	OK(d.cuEventSynchronize(event));
	CHECK(!pthread_create(&thread, NULL, other_thread, NULL));
	while (!launched)
		sched_yield();
	OK(d.cuCtxRecordEvent(context, sooner));
	OK(RUN(stream, "hold", (uint64_t)flags));
	OK(d.cuCtxRecordEvent(context, event));
	/* Later work is not waited for. */
	OK(RUN(late, "hold", (uint64_t)(flags + 16)));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(event));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(sooner));
	word_at(flags)[8] = 1;
	OK(d.cuEventSynchronize(sooner));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(event));
	word_at(flags)[0] = 1;
	OK(d.cuEventSynchronize(event));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(late));
	word_at(flags)[16] = 1;
	go_on = 1;
	pthread_join(thread, NULL);
	OK(d.cuCtxSynchronize());
}

DRIVER_TEST(streams_wait_for_a_context)
{
	CUevent event;

	start();
	flags = pinned();
	CUstream one = new_stream(), two = new_stream();
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(RUN(one, "hold", (uint64_t)flags));
	OK(d.cuCtxRecordEvent(context, event));
	OK(d.cuStreamDestroy_v2(one)); /* its work continues */
	OK(d.cuStreamWaitEvent(two, event, 0));
	OK(RUN(two, "add", (uint64_t)(flags + 1), 1, 5));
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(two));
	CHECK(word_at(flags)[1] == 0);
	word_at(flags)[0] = 1;
	OK(d.cuStreamSynchronize(two));
	CHECK(word_at(flags)[1] == 5);
}

DRIVER_TEST(contexts_are_told_apart)
{
	CUcontext other;
	CUevent event;

	start();
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(d.cuCtxCreate_v2(&other, 0, 0));
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuCtxRecordEvent(other, event));
	OK(d.cuCtxRecordEvent(context, event)); /* for any current context */
	GIVES(CUDA_ERROR_INVALID_CONTEXT, d.cuCtxRecordEvent(NULL, event));
	OK(d.cuCtxDestroy_v2(other));
}

DRIVER_TEST(breaks_captures)
{
	CUevent event;
	CUgraph graph;

	start();
	flags = pinned();
	CUstream stream = new_stream();
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(RUN(stream, "add", (uint64_t)flags, 1, 1)); /* loaded earlier */
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
	OK(RUN(stream, "add", (uint64_t)flags, 1, 1));
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	OK(d.cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)&mode));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, d.cuCtxRecordEvent(context, event));
	/* That breaks it, as cuda.h says. */
	GIVES(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, d.cuStreamEndCapture(stream, &graph));
	OK(d.cuCtxRecordEvent(context, event));
	OK(d.cuEventSynchronize(event));
}

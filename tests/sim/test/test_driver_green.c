/* Green contexts: contract tests as test_driver.c, skipped where the device cannot be divided. */
#include "driver_test.h"

#define SMS 16

struct part {
	CUgreenCtx green;
	CUcontext context;
	CUstream stream;
};

static struct part divide(void)
{
	CUdevResource all, one;
	CUdevResourceDesc description;
	struct part part;
	unsigned groups = 1;

	OK(d.cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM));
	if (all.sm.smCount < SMS)
		_exit(SKIP);
	OK(d.cuDevSmResourceSplitByCount(&one, &groups, &all, NULL, 0, SMS));
	CHECK(groups == 1 && one.sm.smCount >= SMS);
	OK(d.cuDevResourceGenerateDesc(&description, &one, 1));
	OK(d.cuGreenCtxCreate(&part.green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
	OK(d.cuCtxFromGreenCtx(&part.context, part.green));
	OK(d.cuGreenCtxStreamCreate(&part.stream, part.green, CU_STREAM_NON_BLOCKING, 0));
	return part;
}

static void hold(CUstream stream, uint64_t *word)
{
	OK(RUN(stream, "hold", (uint64_t)word));
}

DRIVER_TEST(green_and_primary)
{
	CUcontext owner;
	CUgreenCtx green;
	CUstream stream;
	unsigned long long id, green_id;
	CUdevice device = -1;

	start();
	struct part part = divide();
	CHECK(part.context != context);
	OK(d.cuStreamGetCtx(part.stream, &owner));
	CHECK(owner == part.context);
	OK(d.cuStreamGetCtx_v2(part.stream, &owner, &green));
	CHECK(owner == context && green == part.green);
	OK(d.cuStreamGetCtx_v2(NULL, &owner, &green));
	CHECK(owner == context && !green);
	OK(d.cuCtxGetId(context, &id));
	OK(d.cuCtxGetId(part.context, &green_id));
	CHECK(id != green_id);
	OK(d.cuCtxSetCurrent(part.context));
	OK(d.cuCtxGetCurrent(&owner));
	CHECK(owner == part.context);
	OK(d.cuCtxGetDevice(&device));
	CHECK(device == 0);
	OK(d.cuStreamGetCtx_v2(CU_STREAM_LEGACY, &owner, &green));
	CHECK(owner == context && green == part.green);
	GIVES(CUDA_ERROR_INVALID_HANDLE, d.cuStreamGetCtx_v2(CU_STREAM_PER_THREAD, &owner, &green));
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuStreamGetCtx_v2(stream, &owner, &green));
	CHECK(owner == context && green == part.green);
}

/* The end of a green context is no end of what was made in it. */
DRIVER_TEST(green_ends)
{
	CUdeviceptr p;
	CUevent event;
	void *host;

	start();
	struct part part = divide();
	OK(d.cuCtxSetCurrent(part.context));
	OK(d.cuMemAlloc_v2(&p, MIB));
	OK(d.cuMemHostAlloc(&host, MIB, CU_MEMHOSTALLOC_PORTABLE));
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(d.cuEventRecord(event, part.stream));
	OK(d.cuStreamDestroy_v2(part.stream));
	OK(d.cuCtxSetCurrent(context));
	OK(d.cuGreenCtxDestroy(part.green));
	fill(p, MIB, 1);
	CHECK(mismatches(p, MIB, 1) == 0);
	OK(d.cuEventQuery(event));
	OK(d.cuEventDestroy_v2(event));
	OK(d.cuMemFree_v2(p));
	OK(d.cuMemFreeHost(host));
}

/* One that ends while it is current stays so, and is of no use. */
DRIVER_TEST(green_ends_while_current)
{
	unsigned long long id;
	CUcontext now;
	CUdeviceptr p;
	CUdevice device = -1;

	start();
	struct part part = divide();
	OK(d.cuStreamDestroy_v2(part.stream));
	OK(d.cuCtxSetCurrent(part.context));
	OK(d.cuGreenCtxDestroy(part.green));
	OK(d.cuCtxGetCurrent(&now));
	CHECK(now == part.context);
	OK(d.cuCtxGetDevice(&device));
	CHECK(device == 0);
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, d.cuCtxGetId(part.context, &id));
	GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, d.cuMemAlloc_v2(&p, MIB));
	OK(d.cuCtxSetCurrent(context));
	OK(d.cuMemAlloc_v2(&p, MIB));
}

/* The primary context is not reset under a green one. */
DRIVER_TEST(green_forbids_reset)
{
	start();
	struct part part = divide();
	GIVES(CUDA_ERROR_NOT_PERMITTED, d.cuDevicePrimaryCtxReset_v2(0));
	OK(d.cuGreenCtxDestroy(part.green));
	OK(d.cuDevicePrimaryCtxReset_v2(0));
}

/* Events of one may be recorded in the other. Marks and waits in the primary context cover green work. */
DRIVER_TEST(green_work)
{
	CUevent event, of_green;

	start();
	struct part part = divide();
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(d.cuCtxPushCurrent_v2(part.context));
	OK(d.cuEventCreate(&of_green, CU_EVENT_DISABLE_TIMING));
	OK(d.cuEventRecord(event, NULL));
	OK(d.cuCtxPopCurrent_v2(NULL));
	OK(d.cuEventRecord(of_green, part.stream));
	OK(d.cuEventRecord(of_green, NULL));
	uint64_t *word = pinned();
	hold(part.stream, word);
	OK(d.cuEventRecord(event, part.stream));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(event));
	OK(d.cuCtxRecordEvent(context, of_green));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(of_green));
	atomic_store(word_at(word), 1);
	OK(d.cuCtxSynchronize());
	OK(d.cuEventQuery(event));
	OK(d.cuEventQuery(of_green));
}

/* The default stream of a green context is another than the primary one's. */
DRIVER_TEST(green_default_stream)
{
	CUevent event;
	CUdeviceptr p;

	start();
	struct part part = divide();
	uint64_t *word = pinned();
	OK(d.cuMemAlloc_v2(&p, MIB));
	OK(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
	OK(d.cuCtxSetCurrent(part.context));
	hold(NULL, word);
	OK(d.cuEventRecord(event, NULL));
	OK(d.cuCtxSetCurrent(context));
	OK(d.cuMemsetD8Async(p, 0, MIB, NULL));
	OK(d.cuStreamSynchronize(NULL));
	GIVES(CUDA_ERROR_NOT_READY, d.cuEventQuery(event));
	atomic_store(word_at(word), 1);
	OK(d.cuCtxSynchronize());
	OK(d.cuEventQuery(event));
}

/* The question which contexts are current is refused beside a capture. That for the current one, and for a stream's, is not. */
DRIVER_TEST(green_beside_captures)
{
	CUcontext owner;
	CUgreenCtx green;
	CUstream stream;
	CUgraph graph;

	start();
	struct part part = divide();
	OK(d.cuStreamCreate(&stream, CU_STREAM_DEFAULT));
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(d.cuCtxPushCurrent_v2(part.context));
	OK(d.cuCtxGetCurrent(&owner));
	CHECK(owner == part.context);
	OK(d.cuStreamGetCtx(part.stream, &owner));
	CHECK(owner == part.context);
	OK(d.cuCtxFromGreenCtx(&owner, part.green));
	CHECK(owner == part.context);
	OK(d.cuCtxPopCurrent_v2(NULL));
	OK(d.cuStreamGetCtx(stream, &owner));
	CHECK(owner == context);
	OK(d.cuStreamEndCapture(stream, &graph));
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	GIVES(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, d.cuStreamGetCtx_v2(CU_STREAM_LEGACY, &owner, &green));
}

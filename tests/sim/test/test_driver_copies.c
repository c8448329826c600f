/* Boxes, arrays and batches of copies: contract tests as test_driver.c. */
#include "driver_test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { WIDTH = 24, ROWS = 5, SLICES = 3, PITCH = 64, HEIGHT = 8 };

static unsigned char host[SLICES * HEIGHT * PITCH], back[SLICES * HEIGHT * PITCH];

static void count_up(void)
{
	for (size_t i = 0; i < sizeof(host); i++)
		host[i] = (unsigned char)(i * 7 + i / 256);
	memset(back, 0xee, sizeof(back));
}

static CUdeviceptr device_bytes(size_t bytes)
{
	CUdeviceptr p;

	OK(d.cuMemAlloc_v2(&p, bytes));
	OK(d.cuMemsetD8_v2(p, 0xee, bytes));
	OK(d.cuCtxSynchronize()); /* other streams do not wait for the default one */
	return p;
}

/* `back` has the box and no other change. */
static void box_is_right(void)
{
	for (size_t z = 0; z < SLICES; z++)
		for (size_t y = 0; y < HEIGHT; y++)
			for (size_t x = 0; x < PITCH; x++) {
				size_t at = (z * HEIGHT + y) * PITCH + x;
				bool in = z >= 1 && y >= 2 && y < 2 + ROWS && x >= 8 && x < 8 + WIDTH;

				CHECK(back[at] == (in ? host[at] : 0xee));
			}
}

static CUDA_MEMCPY3D_v2 box_to(CUdeviceptr p)
{
	return (CUDA_MEMCPY3D_v2){.srcXInBytes = 8,
	                          .srcY = 2,
	                          .srcZ = 1,
	                          .srcMemoryType = CU_MEMORYTYPE_HOST,
	                          .srcHost = host,
	                          .srcPitch = PITCH,
	                          .srcHeight = HEIGHT,
	                          .dstXInBytes = 8,
	                          .dstY = 2,
	                          .dstZ = 1,
	                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                          .dstDevice = p,
	                          .dstPitch = PITCH,
	                          .dstHeight = HEIGHT,
	                          .WidthInBytes = WIDTH,
	                          .Height = ROWS,
	                          .Depth = SLICES - 1};
}

DRIVER_TEST(boxes)
{
	start();
	count_up();
	CUdeviceptr p = device_bytes(sizeof(host));
	CUDA_MEMCPY3D_v2 box = box_to(p);

	OK(d.cuMemcpy3D_v2(&box));
	OK(d.cuMemcpyDtoH_v2(back, p, sizeof(back)));
	box_is_right();
	OK(d.cuMemsetD8_v2(p, 0xee, sizeof(host)));
	OK(d.cuMemcpy3DAsync_v2(&box, CU_STREAM_PER_THREAD));
	OK(d.cuStreamSynchronize(CU_STREAM_PER_THREAD));
	OK(d.cuMemcpyDtoH_v2(back, p, sizeof(back)));
	box_is_right();
	box.WidthInBytes = PITCH; /* beyond its rows */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpy3D_v2(&box));
	box.WidthInBytes = 0;
	OK(d.cuMemcpy3D_v2(&box));
}

DRIVER_TEST(boxes_between_contexts)
{
	CUcontext other;

	start();
	count_up();
	CUdeviceptr p = device_bytes(sizeof(host));
	OK(d.cuMemcpyHtoD_v2(p, host, sizeof(host)));
	OK(d.cuCtxCreate_v2(&other, 0, 0));
	CUdeviceptr q = device_bytes(sizeof(host));
	CUDA_MEMCPY3D_PEER box = {.srcXInBytes = 8,
	                          .srcY = 2,
	                          .srcZ = 1,
	                          .srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                          .srcDevice = p,
	                          .srcContext = context,
	                          .srcPitch = PITCH,
	                          .srcHeight = HEIGHT,
	                          .dstXInBytes = 8,
	                          .dstY = 2,
	                          .dstZ = 1,
	                          .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                          .dstDevice = q,
	                          .dstContext = other,
	                          .dstPitch = PITCH,
	                          .dstHeight = HEIGHT,
	                          .WidthInBytes = WIDTH,
	                          .Height = ROWS,
	                          .Depth = SLICES - 1};
	OK(d.cuMemcpy3DPeer(&box));
	OK(d.cuMemcpyDtoH_v2(back, q, sizeof(back)));
	box_is_right();
	OK(d.cuMemsetD8_v2(q, 0xee, sizeof(host)));
	OK(d.cuMemcpy3DPeerAsync(&box, NULL));
	OK(d.cuMemcpyDtoH_v2(back, q, sizeof(back)));
	box_is_right();
}

/* -- arrays ------------------------------------------------------------------------------------ */

static CUarray array_of(size_t width, size_t height, size_t depth)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = width,
	                                 .Height = height,
	                                 .Depth = depth,
	                                 .Format = CU_AD_FORMAT_UNSIGNED_INT32,
	                                 .NumChannels = 1};
	CUarray array;

	OK(d.cuArray3DCreate_v2(&array, &shape));
	return array;
}

DRIVER_TEST(boxes_of_arrays)
{
	start();
	count_up();
	CUarray array = array_of(PITCH / 4, HEIGHT, SLICES);
	CUDA_MEMCPY3D_v2 in = box_to(0), out;

	in.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	in.dstArray = array;
	OK(d.cuMemcpy3D_v2(&in));
	out = in;
	out.srcMemoryType = CU_MEMORYTYPE_ARRAY;
	out.srcArray = array;
	out.dstMemoryType = CU_MEMORYTYPE_HOST;
	out.dstHost = back;
	OK(d.cuMemcpy3D_v2(&out));
	box_is_right();
	in.Depth = SLICES; /* from slice 1 on there are fewer */
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpy3D_v2(&in));
	OK(d.cuArrayDestroy(array));
}

DRIVER_TEST(bytes_of_arrays)
{
	start();
	count_up();
	CUdeviceptr p = device_bytes(1024);
	CUarray one = array_of(64, 0, 0), two = array_of(64, 0, 0);

	OK(d.cuMemcpyHtoA_v2(one, 16, host, 128));
	OK(d.cuMemcpyAtoA_v2(two, 0, one, 16, 128));
	OK(d.cuMemcpyAtoD_v2(p, two, 8, 120));
	OK(d.cuMemcpyDtoA_v2(one, 100, p, 120));
	OK(d.cuMemcpyAtoH_v2(back, one, 100, 120));
	CHECK(!memcmp(back, host + 8, 120));
	OK(d.cuMemcpyHtoAAsync_v2(two, 32, host + 50, 64, NULL));
	OK(d.cuMemcpyAtoHAsync_v2(back, two, 32, 64, NULL));
	OK(d.cuStreamSynchronize(NULL));
	CHECK(!memcmp(back, host + 50, 64));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyHtoA_v2(one, 200, host, 128));
	OK(d.cuArrayDestroy(one));
	OK(d.cuArrayDestroy(two));
}

/* -- batches ----------------------------------------------------------------------------------- */

DRIVER_TEST(batch_of_bytes)
{
	start();
	count_up();
	CUdeviceptr p = device_bytes(4096);
	CUstream stream;
	CUdeviceptr to[3] = {p, p + 1024, p + 2048};
	CUdeviceptr from[3] = {(CUdeviceptr)host, (CUdeviceptr)(host + 100), (CUdeviceptr)(host + 300)};
	size_t sizes[3] = {100, 200, 300}, indices[2] = {0, 2};
	CUmemcpyAttributes how[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
	                             {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL}};

	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(d.cuMemcpyBatchAsync_v2(to, from, sizes, 3, how, indices, 2, stream));
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemcpyDtoH_v2(back, p, 1536));
	CHECK(!memcmp(back, host, 100) && back[100] == 0xee && !memcmp(back + 1024, host + 100, 200));
	OK(d.cuMemcpyDtoH_v2(back, p + 2048, 300));
	CHECK(!memcmp(back, host + 300, 300));
	size_t failed = 0;
	OK(d.cuMemcpyBatchAsync(to, from, sizes, 3, how, indices, 2, &failed, stream));
	OK(d.cuStreamSynchronize(stream));
	indices[0] = 1;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyBatchAsync_v2(to, from, sizes, 3, how, indices, 2, stream));
	indices[0] = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyBatchAsync_v2(to, from, sizes, 0, how, indices, 2, stream));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyBatchAsync_v2(to, from, sizes, 3, how, indices, 0, stream));
	how[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyBatchAsync_v2(to, from, sizes, 3, how, indices, 2, stream));
	how[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
	CHECK(d.cuMemcpyBatchAsync_v2(to, from, sizes, 3, how, indices, 2, CU_STREAM_LEGACY) != CUDA_SUCCESS);
	CHECK(d.cuMemcpyBatchAsync_v2(to, from, sizes, 3, how, indices, 2, NULL) != CUDA_SUCCESS);
	GIVES(CUDA_ERROR_INVALID_VALUE,
	      d.cuMemcpyBatchAsync_v2_ptsz(to, from, sizes, 3, how, indices, 2, NULL));
	OK(d.cuMemcpyBatchAsync_v2_ptsz(to, from, sizes, 3, how, indices, 2, CU_STREAM_PER_THREAD));
	OK(d.cuStreamSynchronize(CU_STREAM_PER_THREAD));
	OK(d.cuMemcpyBatchAsync_v2(to, from, sizes, 3, how, indices, 2, CU_STREAM_PER_THREAD));
	OK(d.cuStreamSynchronize(CU_STREAM_PER_THREAD));
}

/* One copy with a batch's attributes, in stream order with others. */
DRIVER_TEST(one_with_attributes)
{
	start();
	count_up();
	CUdeviceptr p = device_bytes(4096);
	CUmemcpyAttributes how = {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
	CUDA_MEMCPY3D_BATCH_OP op = {
	    .src = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = p}},
	    .dst = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER, .op.ptr = {.ptr = p + 2048}},
	    .extent = {64, 2, 3},
	    .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};

	if (!d.cuMemcpyWithAttributesAsync) /* before CUDA 13.2 */
		_exit(SKIP);
	OK(d.cuMemcpyWithAttributesAsync(p, (CUdeviceptr)host, 500, &how, NULL));
	OK(d.cuMemcpy3DWithAttributesAsync(&op, 0, NULL));
	OK(d.cuStreamSynchronize(NULL));
	OK(d.cuMemcpyDtoH_v2(back, p + 2048, 384));
	CHECK(!memcmp(back, host, 384));
	OK(d.cuMemcpyWithAttributesAsync_ptsz(p + 2048, p + 100, 384, &how, NULL));
	OK(d.cuStreamSynchronize(CU_STREAM_PER_THREAD));
	OK(d.cuMemcpyDtoH_v2(back, p + 2048, 384));
	CHECK(!memcmp(back, host + 100, 384));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpy3DWithAttributesAsync(&op, 1, NULL));
	how.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpyWithAttributesAsync(p, (CUdeviceptr)host, 500, &how, NULL));
}

DRIVER_TEST(batch_of_boxes)
{
	start();
	count_up();
	CUdeviceptr p = device_bytes(4096);
	CUarray array = array_of(PITCH / 4, HEIGHT, SLICES);
	CUstream stream;
	CUDA_MEMCPY3D_BATCH_OP ops[2] = {{.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM},
	                                 {.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM}};

	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	/* Bytes to bytes: 3 rows of 20, in rows of 32. */
	ops[0].extent = (CUextent3D){20, 3, 1};
	ops[0].src.type = ops[0].dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	ops[0].src.op.ptr.ptr = (CUdeviceptr)host;
	ops[0].src.op.ptr.rowLength = 32;
	ops[0].dst.op.ptr.ptr = p;
	/* To an array: elements of 4 bytes. */
	ops[1].extent = (CUextent3D){6, 2, 2};
	ops[1].src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
	ops[1].src.op.ptr.ptr = (CUdeviceptr)(host + 512);
	ops[1].dst.type = CU_MEMCPY_OPERAND_TYPE_ARRAY;
	ops[1].dst.op.array.array = array;
	ops[1].dst.op.array.offset = (CUoffset3D){2, 1, 1};
	OK(d.cuMemcpy3DBatchAsync_v2(2, ops, 0, stream));
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemcpyDtoH_v2(back, p, 61));
	for (size_t row = 0; row < 3; row++)
		CHECK(!memcmp(back + row * 20, host + row * 32, 20));
	CHECK(back[60] == 0xee);
	CUDA_MEMCPY3D_v2 out = {.srcXInBytes = 8,
	                        .srcY = 1,
	                        .srcZ = 1,
	                        .srcMemoryType = CU_MEMORYTYPE_ARRAY,
	                        .srcArray = array,
	                        .dstMemoryType = CU_MEMORYTYPE_HOST,
	                        .dstHost = back,
	                        .dstPitch = 24,
	                        .dstHeight = 2,
	                        .WidthInBytes = 24,
	                        .Height = 2,
	                        .Depth = 2};
	OK(d.cuMemcpy3D_v2(&out));
	CHECK(!memcmp(back, host + 512, 96));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpy3DBatchAsync_v2(2, ops, 1, stream));
	ops[1].extent.depth = 0;
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemcpy3DBatchAsync_v2(2, ops, 0, stream));
}

/* -- waiting ----------------------------------------------------------------------------------- */

static uint64_t *flag;
static atomic_int entering, released;

static void *release(void *unused)
{
	while (!entering)
		sched_yield();
	for (int i = 0; i < 2000; i++)
		sched_yield();
	released = 1;
	*word_at(flag) = 1;
	return unused;
}

/* A small source fits into the driver's buffers. A large one waits for its turn in the stream. */
DRIVER_TEST(pageable_sources)
{
	enum { LARGE = 32 * 1024 * 1024, SMALL = 1024 * 1024 };
	char *own = malloc(LARGE), *seen = malloc(LARGE);
	pthread_t thread;
	CUdeviceptr p;

	memset(own, 0x55, LARGE);
	start();
	OK(d.cuMemAlloc_v2(&p, LARGE));
	flag = pinned();
	CUstream stream;
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(d.cuMemcpyHtoDAsync_v2(p, own, SMALL, stream)); /* a wait would hang for ever */
	GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(stream));
	CHECK(!pthread_create(&thread, NULL, release, NULL));
	entering = 1;
	OK(d.cuMemcpyHtoDAsync_v2(p, own, LARGE, stream));
	CHECK(released);
	memset(own, 0x66, LARGE); /* the program may write it again */
	OK(d.cuStreamSynchronize(stream));
	OK(d.cuMemcpyDtoH_v2(seen, p, LARGE));
	CHECK(seen[0] == 0x55 && seen[LARGE - 1] == 0x55);
	pthread_join(thread, NULL);
}

DRIVER_TEST(pageable_destinations)
{
	char own[4096] = {0};
	pthread_t thread;
	CUdeviceptr p;

	start();
	OK(d.cuMemAlloc_v2(&p, 4096));
	OK(d.cuMemsetD8_v2(p, 0x77, 4096));
	OK(d.cuCtxSynchronize());
	flag = pinned();
	CUstream stream;
	OK(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	OK(RUN(stream, "hold", (uint64_t)flag));
	CHECK(!pthread_create(&thread, NULL, release, NULL));
	entering = 1;
	OK(d.cuMemcpyDtoHAsync_v2(own, p, 4096, stream));
	CHECK(released && own[4095] == 0x77);
	pthread_join(thread, NULL);
}

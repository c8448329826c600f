/*
 * The model of time, with SPILL_SIM_TIME=device:1GiB,link:256MiB,launch:100: contract tests as
 * test_driver.c. All work is submitted behind a kernel that waits for us, so events have exactly
 * the modelled times.
 */
#include "driver_test.h"

#include <time.h>

#define BYTES (4 * MIB)
#define LAUNCH 0.1 /* ms */
#define ON_DEVICE(bytes) ((double)(bytes) / (double)(1024 * MIB) * 1e3)
#define OVER_LINK(bytes) ((double)(bytes) / (double)(256 * MIB) * 1e3)

static uint64_t *flag, *out;
static CUstream stream;

static CUstream new_stream(void)
{
	CUstream made;

	OK(d.cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
	return made;
}

static CUevent new_event(void)
{
	CUevent made;

	OK(d.cuEventCreate(&made, 0));
	return made;
}

static CUdeviceptr device_memory(void)
{
	CUdeviceptr at;

	OK(d.cuMemAlloc_v2(&at, BYTES));
	return at;
}

static CUdeviceptr host_memory(void)
{
	void *at;

	OK(d.cuMemHostAlloc(&at, BYTES, CU_MEMHOSTALLOC_DEVICEMAP));
	return (CUdeviceptr)at;
}

static void start_timed(void)
{
	start();
	need_simulator();
	flag = pinned();
	out = pinned();
	stream = new_stream();
}

static CUevent begin(void)
{
	CUevent event = new_event();

	word_at(flag)[0] = 0;
	OK(RUN(stream, "hold", (uint64_t)flag));
	OK(d.cuEventRecord(event, stream));
	return event;
}

/* ms from the event to what is on the stream now. */
static double until_end(CUevent from, CUstream on)
{
	CUevent event = new_event();
	float ms;

	OK(d.cuEventRecord(event, on));
	word_at(flag)[0] = 1;
	OK(d.cuEventSynchronize(event));
	OK(d.cuEventElapsedTime(&ms, from, event));
	return (double)ms;
}

static bool is(double ms, double expected)
{
	if (ms > expected - 1e-3 && ms < expected + 1e-3)
		return true;
	fprintf(stderr, "%f ms, not %f\n", ms, expected);
	return false;
}

/* ms of a kernel that reads the range `times` times. */
static double read_time(CUdeviceptr at, uint64_t times)
{
	CUevent from = begin();

	OK(RUN(stream, "reread", at, BYTES / 8, times, (uint64_t)out));
	return until_end(from, stream);
}

DRIVER_TEST(a_device_serves_what_is_read_again)
{
	start_timed();
	CUdeviceptr at = device_memory();
	CHECK(is(read_time(at, 1), LAUNCH + ON_DEVICE(BYTES)));
	CHECK(is(read_time(at, 3), LAUNCH + ON_DEVICE(BYTES)));
}

DRIVER_TEST(from_the_host_it_comes_again)
{
	start_timed();
	CUdeviceptr at = host_memory();
	CHECK(is(read_time(at, 1), LAUNCH + OVER_LINK(BYTES)));
	CHECK(is(read_time(at, 3), LAUNCH + OVER_LINK(3 * BYTES)));
}

DRIVER_TEST(each_chunk_counts_where_it_is)
{
	CUdeviceptr at;

	start_timed();
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	OK(d.cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	for (int i = 0; i < 2; i++) {
		CUmemLocationType type = i ? CU_MEM_LOCATION_TYPE_HOST_NUMA : CU_MEM_LOCATION_TYPE_DEVICE;

		OK(d.cuMemMap(at + i * GRANULE, GRANULE, 0, chunk(type, GRANULE), 0));
	}
	OK(allow(at, BYTES, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	CHECK(is(read_time(at, 2), LAUNCH + ON_DEVICE(GRANULE) + OVER_LINK(2 * GRANULE)));
}

DRIVER_TEST(managed_pages_come_once)
{
	CUdeviceptr at;

	start_timed();
	OK(d.cuMemAllocManaged(&at, BYTES, CU_MEM_ATTACH_GLOBAL));
	CHECK(is(read_time(at, 3), LAUNCH + OVER_LINK(BYTES)));
	CHECK(is(read_time(at, 3), LAUNCH + ON_DEVICE(BYTES)));
}

/* ms of two copies that begin at once, on two streams. */
static double copies_time(CUdeviceptr to, CUdeviceptr from, CUdeviceptr other_to, CUdeviceptr other_from)
{
	CUevent first = begin(), joined = new_event();
	CUstream other = new_stream();

	OK(d.cuStreamWaitEvent(other, first, 0));
	OK(d.cuMemcpyAsync(to, from, BYTES, stream));
	OK(d.cuMemcpyAsync(other_to, other_from, BYTES, other));
	OK(d.cuEventRecord(joined, other));
	OK(d.cuStreamWaitEvent(stream, joined, 0));
	return until_end(first, stream);
}

DRIVER_TEST(copies_share_each_way_of_the_link)
{
	start_timed();
	CUdeviceptr at = device_memory(), there = device_memory(), host = host_memory(), home = host_memory();
	CHECK(is(copies_time(at, host, home, there), OVER_LINK(BYTES)));
	CHECK(is(copies_time(at, host, there, home), OVER_LINK(2 * BYTES)));
	CHECK(is(copies_time(host, at, home, there), OVER_LINK(2 * BYTES)));
}

DRIVER_TEST(copies_and_sets_on_a_device)
{
	start_timed();
	CUdeviceptr at = device_memory(), there = device_memory();
	CUevent from = begin();
	OK(d.cuMemcpyAsync(there, at, BYTES, stream));
	CHECK(is(until_end(from, stream), ON_DEVICE(2 * BYTES)));
	from = begin();
	OK(d.cuMemsetD32Async(at, 5, BYTES / 4, stream));
	CHECK(is(until_end(from, stream), ON_DEVICE(BYTES)));
}

DRIVER_TEST(a_graph_takes_what_its_kernels_take)
{
	CUgraph graph;
	CUgraphExec exec;

	start_timed();
	CUdeviceptr at = device_memory(), host = host_memory();
	OK(d.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	OK(RUN(stream, "fill", at, BYTES / 8, 1));
	OK(RUN(stream, "copy", host, at, BYTES / 8));
	OK(d.cuStreamEndCapture(stream, &graph));
	OK(d.cuGraphInstantiateWithFlags(&exec, graph, 0));
	CUevent from = begin();
	OK(d.cuGraphLaunch(exec, stream));
	CHECK(is(until_end(from, stream), 2 * LAUNCH + ON_DEVICE(2 * BYTES) + OVER_LINK(BYTES)));
}

static double now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

DRIVER_TEST(the_host_waits_as_long)
{
	start_timed();
	CUdeviceptr at = host_memory();
	double before = now_ms();
	OK(RUN(stream, "read_loop", at, BYTES / 8, 2, (uint64_t)out));
	OK(d.cuStreamSynchronize(stream));
	CHECK(now_ms() - before >= OVER_LINK(2 * BYTES));
}

DRIVER_TEST(work_that_waits_for_the_host_takes_its_time)
{
	start_timed();
	CUevent from = new_event();
	OK(d.cuEventRecord(from, stream));
	OK(RUN(stream, "hold", (uint64_t)flag));
	double before = now_ms();
	while (now_ms() < before + 5)
		GIVES(CUDA_ERROR_NOT_READY, d.cuStreamQuery(stream));
	CHECK(until_end(from, stream) >= 5);
}

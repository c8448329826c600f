/*
 * How fast a kernel reads the host part of an allocation, against one pinned copy in the same run: the link is the
 * limit of both. Prints `read GB/s, copy GB/s, ratio`. Run under libspill with SPILL_DEVICE_LIMIT well below
 * MIB, so that the tail of the allocation is on host.
 *
 * usage: bandwidth KERNELS MIB
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void check(const char *what, cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "bandwidth: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

static int compare(const void *left, const void *right)
{
	float a = *(const float *)left, b = *(const float *)right;
	return (a > b) - (a < b);
}

enum { ROUNDS = 7 };

static float median_ms(cudaEvent_t start, cudaEvent_t stop, void (*work)(void))
{
	float times[ROUNDS];
	work(); /* warm-up */
	for (int i = 0; i < ROUNDS; i++) {
		check("record", cudaEventRecord(start, NULL));
		work();
		check("record", cudaEventRecord(stop, NULL));
		check("work", cudaEventSynchronize(stop));
		check("time", cudaEventElapsedTime(&times[i], start, stop));
	}
	qsort(times, ROUNDS, sizeof(times[0]), compare);
	return times[ROUNDS / 2];
}

static cudaKernel_t kernel;
static unsigned long long tail, words, times_read = 1, out;
static void *pinned, *scratch;
static size_t copied = (size_t)256 << 20;

static void read_tail(void)
{
	void *parameters[] = {&tail, &words, &times_read, &out};
	check("launch", cudaLaunchKernel((const void *)kernel, (dim3){1024, 1, 1}, (dim3){256, 1, 1},
	                                 parameters, 0, NULL));
}

static void copy(void)
{
	check("copy", cudaMemcpyAsync(scratch, pinned, copied, cudaMemcpyHostToDevice, NULL));
}

int main(int count, char **arguments)
{
	cudaLibrary_t library;
	cudaEvent_t start, stop;
	void *buffer, *counter;
	if (count != 3)
		return 2;
	size_t bytes = strtoull(arguments[2], NULL, 10) << 20, read = (size_t)1 << 30;
	check("library", cudaLibraryLoadFromFile(&library, arguments[1], NULL, NULL, 0, NULL, NULL, 0));
	check("kernel", cudaLibraryGetKernel(&kernel, library, "read_loop"));
	check("event", cudaEventCreate(&start));
	check("event", cudaEventCreate(&stop));
	/* What must be on the device first: the policy spills what comes last. */
	check("scratch", cudaMalloc(&scratch, copied));
	check("counter", cudaMalloc(&counter, 8));
	check("pinned", cudaMallocHost(&pinned, copied));
	check("buffer", cudaMalloc(&buffer, bytes));
	check("clear", cudaMemset(buffer, 1, bytes));
	tail = (unsigned long long)(size_t)buffer + bytes - read;
	words = read / 8;
	out = (unsigned long long)(size_t)counter;
	float read_ms = median_ms(start, stop, read_tail), copy_ms = median_ms(start, stop, copy);
	double read_rate = (double)read / read_ms / 1e6, copy_rate = (double)copied / copy_ms / 1e6;
	printf("host part read in place %.1f GB/s, pinned copy %.1f GB/s, ratio %.2f\n", read_rate, copy_rate,
	       read_rate / copy_rate);
	check("free", cudaFree(buffer));
	return read_rate < copy_rate * 0.8;
}

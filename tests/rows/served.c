/*
 * Calls each function of the CUDA runtime that takes or gives back memory once, with real
 * arguments, so that it is served. Linked with the shared runtime, and with the static one, whose
 * functions are invisible from outside. Prints each result.
 */
#include <stdio.h>
#include <stdlib.h>

#include "cudart_api.h"

#define BYTES ((size_t)1 << 20)

static const struct cudaChannelFormatDesc channel = {32, 0, 0, 0, cudaChannelFormatKindFloat};
static const struct cudaExtent extent = {64, 32, 4};
static const struct cudaMemPoolProps properties = {
    .allocType = cudaMemAllocationTypePinned,
    .location = {.type = cudaMemLocationTypeDevice},
};

static void *pointer;

#define SAY(call) printf("%d %s\n", (int)(call), #call)

static void plain(void)
{
	struct cudaPitchedPtr pitched = {0};
	size_t pitch;

	SAY(cudaMalloc(&pointer, BYTES));
	SAY(cudaFree(pointer));
	SAY(cudaMallocPitch(&pointer, &pitch, 1000, 16));
	SAY(cudaFree(pointer));
	SAY(cudaMalloc3D(&pitched, extent));
	SAY(cudaFree(pitched.ptr));
	SAY(cudaMallocManaged(&pointer, BYTES, cudaMemAttachGlobal));
	SAY(cudaFree(pointer));
}

static void in_stream_order(void)
{
	cudaMemPool_t pool;

	SAY(cudaMallocAsync(&pointer, BYTES, NULL));
	SAY(cudaFreeAsync(pointer, NULL));
	SAY(cudaMemPoolCreate(&pool, &properties));
	SAY(cudaMallocFromPoolAsync(&pointer, BYTES, pool, NULL));
	SAY(cudaFreeAsync(pointer, NULL));
	SAY(cudaDeviceSynchronize());
	SAY(cudaMemPoolTrimTo(pool, 0));
	SAY(cudaMemPoolDestroy(pool));
}

/* In a capture it becomes a node of the graph: nothing for libspill to decide, but seen all the same. */
static void captured(void)
{
	CUresult (*begin_capture)(CUstream, CUstreamCaptureMode), (*end_capture)(CUstream, CUgraph *);
	cudaStream_t stream;
	CUgraph graph;

	SAY(cudaStreamCreate(&stream));
	SAY(cudaGetDriverEntryPointByVersion("cuStreamBeginCapture", (void **)&begin_capture, 10010, 0,
	                                     NULL));
	SAY(cudaGetDriverEntryPointByVersion("cuStreamEndCapture", (void **)&end_capture, 10000, 0, NULL));
	SAY(begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	SAY(cudaMallocAsync(&pointer, BYTES, stream));
	SAY(cudaFreeAsync(pointer, stream));
	SAY(end_capture(stream, &graph));
	SAY(cudaStreamDestroy(stream));
}

static void pinned(void)
{
	void *memory = aligned_alloc(4096, BYTES);

	SAY(cudaMallocHost(&pointer, BYTES));
	SAY(cudaFreeHost(pointer));
	SAY(cudaHostAlloc(&pointer, BYTES, cudaHostAllocMapped));
	SAY(cudaFreeHost(pointer));
	SAY(cudaHostRegister(memory, BYTES, 0));
	SAY(cudaHostUnregister(memory));
	free(memory);
}

static void arrays(void)
{
	cudaArray_t array = NULL;
	cudaMipmappedArray_t mipmapped = NULL;

	SAY(cudaMallocArray(&array, &channel, 64, 32, cudaArrayDefault));
	SAY(cudaFreeArray(array));
	SAY(cudaMalloc3DArray(&array, &channel, extent, cudaArrayDefault));
	SAY(cudaFreeArray(array));
	SAY(cudaMallocMipmappedArray(&mipmapped, &channel, extent, 2, cudaArrayDefault));
	SAY(cudaFreeMipmappedArray(mipmapped));
}

int main(void)
{
	plain();
	in_stream_order();
	captured();
	pinned();
	arrays();
	return 0;
}

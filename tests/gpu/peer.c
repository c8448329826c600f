/*
 * Two GPUs with peer access: each fills, verifies and copies buffers of the other, those allocated before access was
 * enabled and those after, and buffers are freed behind the other device's work. Prints nothing that depends on
 * where memory is. Exits with 77 if there are not two devices that can reach each other.
 *
 * usage: peer KERNELS COUNT MIB      COUNT buffers of MIB on each device
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

static void check(const char *what, cudaError_t error)
{
	if (error == cudaSuccess)
		return;
	fprintf(stderr, "peer: %s: %s\n", what, cudaGetErrorString(error));
	exit(1);
}

enum { DEVICES = 2, MOST = 64 };

static cudaKernel_t fill, verify;
static size_t bytes;
static unsigned long long words, *wrong; /* of pinned host memory, which both devices reach */
static int buffer_count;

static void launch(cudaKernel_t kernel, void **parameters)
{
	check("launch", cudaLaunchKernel((const void *)kernel, (dim3){512, 1, 1}, (dim3){256, 1, 1},
	                                 parameters, 0, NULL));
}

static void on_all(const char *what, cudaError_t (*work)(void))
{
	for (int device = 0; device < DEVICES; device++) {
		check("device", cudaSetDevice(device));
		check(what, work());
	}
}

static void allocate(int device, void **buffers, int from, int to)
{
	check("device", cudaSetDevice(device));
	for (int i = from; i < to; i++)
		check("allocation", cudaMalloc(&buffers[i], bytes));
}

static void enable(void)
{
	for (int device = 0; device < DEVICES; device++) {
		check("device", cudaSetDevice(device));
		check("peer access", cudaDeviceEnablePeerAccess(1 - device, 0));
	}
}

/* Device `worker` launches `kernel` over the buffers of `owner`; every buffer has a seed of its own. */
static void over(int worker, int owner, void **buffers, cudaKernel_t kernel)
{
	check("device", cudaSetDevice(worker));
	for (int i = 0; i < buffer_count; i++) {
		unsigned long long seed = (unsigned long long)(owner * MOST + i);
		launch(kernel, (void *[]){&buffers[i], &words, &seed, &wrong});
	}
}

/* Copies the other's first and last buffer over one's own, and verifies the copy with the other's seed. */
static void copy_between(void *buffers[DEVICES][MOST])
{
	for (int from = 0; from < DEVICES; from++)
		for (int i = 0; i < buffer_count; i += buffer_count - 1) {
			unsigned long long seed = (unsigned long long)(from * MOST + i);
			void *to = buffers[1 - from][0];
			check("device", cudaSetDevice(1 - from));
			check("peer copy", i ? cudaMemcpyPeer(to, 1 - from, buffers[from][i], from, bytes)
			                     : cudaMemcpy(to, buffers[from][i], bytes, cudaMemcpyDefault));
			launch(verify, (void *[]){&to, &words, &seed, &wrong});
			check("verify", cudaDeviceSynchronize());
			seed = (unsigned long long)((1 - from) * MOST);
			launch(fill, (void *[]){&to, &words, &seed, &wrong});
			check("fill", cudaDeviceSynchronize());
		}
}

int main(int count, char **arguments)
{
	void *buffers[DEVICES][MOST];
	cudaLibrary_t library;
	int devices = 0, forth = 0, back = 0;
	if (count != 4)
		return 2;
	buffer_count = atoi(arguments[2]);
	bytes = strtoull(arguments[3], NULL, 10) << 20;
	words = bytes / 8;
	check("count", cudaGetDeviceCount(&devices));
	if (devices >= DEVICES) {
		check("can", cudaDeviceCanAccessPeer(&forth, 0, 1));
		check("can", cudaDeviceCanAccessPeer(&back, 1, 0));
	}
	if (!forth || !back || buffer_count < 2 || buffer_count > MOST) {
		printf("no two devices that reach each other's memory\n");
		return 77;
	}
	check("library", cudaLibraryLoadFromFile(&library, arguments[1], NULL, NULL, 0, NULL, NULL, 0));
	check("kernel", cudaLibraryGetKernel(&fill, library, "fill"));
	check("kernel", cudaLibraryGetKernel(&verify, library, "verify"));
	check("counter", cudaHostAlloc((void **)&wrong, 8, cudaHostAllocPortable));
	*wrong = 0;
	for (int device = 0; device < DEVICES; device++)
		allocate(device, buffers[device], 0, buffer_count / 2);
	enable();
	for (int device = 0; device < DEVICES; device++)
		allocate(device, buffers[device], buffer_count / 2, buffer_count);
	for (int owner = 0; owner < DEVICES; owner++)
		over(1 - owner, owner, buffers[owner], fill);
	on_all("fill", cudaDeviceSynchronize);
	for (int worker = 0; worker < DEVICES; worker++)
		for (int owner = 0; owner < DEVICES; owner++)
			over(worker, owner, buffers[owner], verify);
	on_all("verify", cudaDeviceSynchronize);
	copy_between(buffers);
	/*
	 * The driver's free waits for the work of the owner's context and not of the peer's (measured: an illegal access
	 * without this wait), so the program must.
	 */
	for (int owner = 0; owner < DEVICES; owner++) {
		over(1 - owner, owner, buffers[owner], fill);
		on_all("the peer's work", cudaDeviceSynchronize);
		check("device", cudaSetDevice(owner));
		for (int i = 0; i < buffer_count; i++)
			check("free", cudaFree(buffers[owner][i]));
		allocate(owner, buffers[owner], 0, buffer_count);
		over(owner, owner, buffers[owner], fill);
		check("work", cudaDeviceSynchronize());
		over(1 - owner, owner, buffers[owner], verify);
	}
	on_all("end", cudaDeviceSynchronize);
	printf("%d buffers of %s MiB on each of two devices, used by both: %llu words wrong\n", buffer_count,
	       arguments[3], *wrong);
	return *wrong != 0;
}

/* Memory of another process: contract tests as test_driver.c. The other process starts a driver of its own. */
#include "driver_test.h"

#include <sys/socket.h>
#include <sys/wait.h>

#define BYTES (4 * MIB)
#define DESCRIPTOR CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static int other;   /* a socket to the other process */
static pid_t child; /* the other process; 0: this is it */

/* The other process runs `run`. pre: no driver has started here */
static void beside(void (*run)(void))
{
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	child = fork();
	other = ends[child == 0];
	close(ends[child != 0]);
	if (child == 0) {
		alarm(60);
		run();
		_exit(0);
	}
}

/* Ends as the other process does. */
static _Noreturn void end_alike(void)
{
	int status;

	CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
	_exit(WEXITSTATUS(status));
}

/* The other process has ended too early, or it lacks something. One of the two knows why. */
static _Noreturn void end_too(void)
{
	if (child)
		end_alike();
	_exit(0);
}

static void tell(const void *what, size_t bytes)
{
	if (send(other, what, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
		end_too();
}

static void hear(void *what, size_t bytes)
{
	if (recv(other, what, bytes, MSG_WAITALL) != (ssize_t)bytes)
		end_too();
}

/* Each side waits until the other one comes here, too. */
static void meet(void)
{
	char word = 0;

	tell(&word, 1);
	hear(&word, 1);
}

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static void send_descriptor(int descriptor)
{
	char byte = 0;
	union control control = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	if (sendmsg(other, &message, MSG_NOSIGNAL) != 1)
		end_too();
	close(descriptor);
}

static int receive_descriptor(void)
{
	char byte;
	int descriptor;
	union control control = {0};
	struct iovec part = {&byte, 1};
	struct msghdr message = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};

	if (recvmsg(other, &message, 0) != 1)
		end_too();
	CHECK(CMSG_FIRSTHDR(&message));
	memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return descriptor;
}

static CUresult open_handle(CUdeviceptr *opened, CUipcMemHandle handle)
{
	return d.cuIpcOpenMemHandle_v2(opened, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

/* -- legacy handles ---------------------------------------------------------------------------- */

/* A handle of a pointer inside of the allocation stands for all of it. */
static void open_and_write(void)
{
	CUdeviceptr opened, again, base;
	CUipcMemHandle handle;
	size_t bytes;

	start();
	hear(&handle, sizeof(handle));
	OK(open_handle(&opened, handle));
	OK(d.cuMemGetAddressRange_v2(&base, &bytes, opened + MIB));
	CHECK(base == opened && bytes == BYTES);
	CHECK(type_of(opened) == CU_MEMORYTYPE_DEVICE);
	CHECK(mismatches(opened, BYTES, 1) == 0);
	fill(opened + MIB, MIB, 2);
	OK(d.cuCtxSynchronize());
	meet();
	meet(); /* the owner has written */
	CHECK(mismatches(opened, MIB, 3) == 0);
	/* Each opening has its closing. */
	OK(open_handle(&again, handle));
	CHECK(again == opened);
	OK(d.cuIpcCloseMemHandle(opened));
	CHECK(mismatches(opened + MIB, MIB, 2) == 0);
	OK(d.cuIpcCloseMemHandle(opened));
	need_simulator();
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcCloseMemHandle(opened));
	OK(open_handle(&opened, handle));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuMemFree_v2(opened));
	GIVES(CUDA_ERROR_INVALID_VALUE, d.cuIpcGetMemHandle(&handle, opened));
	OK(d.cuIpcCloseMemHandle(opened));
}

DRIVER_TEST(legacy_handle_elsewhere)
{
	CUipcMemHandle handle;
	CUdeviceptr p;

	beside(open_and_write);
	start();
	OK(d.cuMemAlloc_v2(&p, BYTES));
	fill(p, BYTES, 1);
	OK(d.cuCtxSynchronize());
	OK(d.cuIpcGetMemHandle(&handle, p + 4096));
	tell(&handle, sizeof(handle));
	meet();
	CHECK(mismatches(p, MIB, 1) == 0);
	CHECK(mismatches(p + MIB, MIB, 2) == 0);
	fill(p, MIB, 3);
	OK(d.cuCtxSynchronize());
	meet();
	char word;
	CHECK(recv(other, &word, 1, 0) == 0); /* it has closed the memory, and ended */
	CHECK(mismatches(p, MIB, 3) == 0);
	CHECK(mismatches(p + MIB, MIB, 2) == 0);
	OK(d.cuMemFree_v2(p));
	end_alike();
}

/* Small allocations share a block, and the block is shared with the other process. */
static void open_small(void)
{
	CUipcMemHandle handle;
	CUdeviceptr opened, base;
	size_t bytes;

	start();
	hear(&handle, sizeof(handle));
	OK(open_handle(&opened, handle));
	CHECK(mismatches(opened, 4096, 6) == 0);
	OK(d.cuMemGetAddressRange_v2(&base, &bytes, opened));
	CHECK(base == opened);
	OK(d.cuIpcCloseMemHandle(opened));
}

DRIVER_TEST(small_legacy_handle_elsewhere)
{
	CUipcMemHandle handle;
	CUdeviceptr first, p;

	beside(open_small);
	start();
	OK(d.cuMemAlloc_v2(&first, 4096));
	OK(d.cuMemAlloc_v2(&p, 4096));
	fill(first, 4096, 5);
	fill(p, 4096, 6);
	OK(d.cuCtxSynchronize());
	OK(d.cuIpcGetMemHandle(&handle, p));
	tell(&handle, sizeof(handle));
	end_alike();
}

static void open_nothing(void)
{
	CUipcMemHandle handles[2];
	CUdeviceptr opened = 77;

	start();
	hear(handles, sizeof(handles));
	for (unsigned i = 0; i < 2; i++)
		CHECK(open_handle(&opened, handles[i]) != CUDA_SUCCESS);
	CHECK(opened == 77);
}

/* Of a large allocation, and of a small one, whose block is still in use. */
DRIVER_TEST(legacy_handles_of_freed_memory)
{
	CUipcMemHandle handles[2];
	CUdeviceptr large, small, neighbour;

	beside(open_nothing);
	start();
	OK(d.cuMemAlloc_v2(&large, BYTES));
	OK(d.cuMemAlloc_v2(&neighbour, 4096));
	OK(d.cuMemAlloc_v2(&small, 4096));
	OK(d.cuIpcGetMemHandle(&handles[0], large));
	OK(d.cuMemFree_v2(large));
	handles[1] = handles[0];
	if (simulated)
		OK(d.cuIpcGetMemHandle(&handles[1], small));
	OK(d.cuMemFree_v2(small));
	tell(handles, sizeof(handles));
	end_alike();
}

static void export_and_end(void)
{
	CUipcMemHandle handle;
	CUdeviceptr p;

	start();
	OK(d.cuMemAlloc_v2(&p, BYTES));
	OK(d.cuIpcGetMemHandle(&handle, p));
	tell(&handle, sizeof(handle));
}

DRIVER_TEST(legacy_handle_of_ended_process)
{
	CUipcMemHandle handle;
	CUdeviceptr opened = 77;
	int status;

	beside(export_and_end);
	start();
	hear(&handle, sizeof(handle));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(open_handle(&opened, handle) != CUDA_SUCCESS);
	CHECK(opened == 77);
}

/* -- descriptors of physical memory ------------------------------------------------------------ */

static CUdeviceptr map_handle(CUmemGenericAllocationHandle handle)
{
	CUdeviceptr p;

	OK(d.cuMemAddressReserve(&p, BYTES, 0, 0, 0));
	OK(d.cuMemMap(p, BYTES, 0, handle, 0));
	OK(allow(p, BYTES, CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
	return p;
}

static CUdeviceptr import_descriptor(CUmemLocationType type)
{
	int descriptor = receive_descriptor();
	CUmemGenericAllocationHandle handle;
	CUmemAllocationProp about;

	OK(d.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, DESCRIPTOR));
	close(descriptor);
	OK(d.cuMemGetAllocationPropertiesFromHandle(&about, handle));
	CHECK(about.location.type == type && about.location.id == 0);
	CUdeviceptr p = map_handle(handle);
	OK(d.cuMemRelease(handle));
	return p;
}

static CUdeviceptr export_descriptor(CUmemLocationType type)
{
	CUmemAllocationProp wanted = {
	    .type = CU_MEM_ALLOCATION_TYPE_PINNED, .requestedHandleTypes = DESCRIPTOR, .location = {type, 0}};
	CUmemGenericAllocationHandle handle;
	int descriptor;

	OK(d.cuMemCreate(&handle, BYTES, &wanted, 0));
	CUdeviceptr p = map_handle(handle);
	fill(p, BYTES, 1);
	OK(d.cuCtxSynchronize());
	OK(d.cuMemExportToShareableHandle(&descriptor, handle, DESCRIPTOR, 0));
	OK(d.cuMemRelease(handle));
	send_descriptor(descriptor);
	return p;
}

static void need_descriptors(void)
{
	need(103); /* CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED */
	need(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
}

static void use_descriptor_of(CUmemLocationType type)
{
	CUdeviceptr p = import_descriptor(type);

	CHECK(mismatches(p, BYTES, 1) == 0);
	fill(p, MIB, 2);
	OK(d.cuCtxSynchronize());
	meet();
	meet(); /* the owner has let go of it */
	CHECK(mismatches(p, MIB, 2) == 0);
	CHECK(mismatches(p + MIB, MIB, 4) == 0);
	OK(d.cuMemUnmap(p, BYTES));
	meet();
}

/* The memory is there as long as a process holds it. */
static void export_of(CUmemLocationType type)
{
	CUdeviceptr p = export_descriptor(type);

	meet();
	CHECK(mismatches(p, MIB, 2) == 0);
	fill(p + MIB, MIB, 4);
	OK(d.cuCtxSynchronize());
	size_t with = free_memory();
	OK(d.cuMemUnmap(p, BYTES));
	CHECK(free_memory() == with);
	meet();
	meet(); /* the other process has let go of it */
	CHECK(free_memory() == with + (type == CU_MEM_LOCATION_TYPE_DEVICE ? BYTES : 0));
}

static void use_descriptor(void)
{
	start();
	need_descriptors();
	use_descriptor_of(CU_MEM_LOCATION_TYPE_DEVICE);
}

DRIVER_TEST(descriptor_elsewhere)
{

	beside(use_descriptor);
	start();
	need_descriptors();
	export_of(CU_MEM_LOCATION_TYPE_DEVICE);
	end_alike();
}

static void use_host_descriptor(void)
{
	start();
	need_descriptors();
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	use_descriptor_of(CU_MEM_LOCATION_TYPE_HOST_NUMA);
}

DRIVER_TEST(descriptor_of_host_memory_elsewhere)
{

	beside(use_host_descriptor);
	start();
	need_descriptors();
	need(CU_DEVICE_ATTRIBUTE_HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
	export_of(CU_MEM_LOCATION_TYPE_HOST_NUMA);
	end_alike();
}

static void export_descriptor_and_end(void)
{
	start();
	need_descriptors();
	export_descriptor(CU_MEM_LOCATION_TYPE_DEVICE);
}

/* A descriptor outlives its process, and so does what was imported. */
DRIVER_TEST(descriptor_of_ended_process)
{
	int status;

	beside(export_descriptor_and_end);
	start();
	need_descriptors();
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CUdeviceptr p = import_descriptor(CU_MEM_LOCATION_TYPE_DEVICE);
	CHECK(mismatches(p, BYTES, 1) == 0);
	fill(p, BYTES, 2);
	CHECK(mismatches(p, BYTES, 2) == 0);
}

/* -- pools ------------------------------------------------------------------------------------- */

static void use_pool(void)
{
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr p, refused = 77, base;
	size_t bytes;

	start();
	need(119); /* CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES */
	int descriptor = receive_descriptor();
	OK(d.cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)descriptor, DESCRIPTOR, 0));
	close(descriptor);
	hear(&data, sizeof(data));
	OK(d.cuMemPoolImportPointer(&p, pool, &data));
	CHECK(mismatches(p, MIB, 1) == 0);
	OK(d.cuMemGetAddressRange_v2(&base, &bytes, p + 4096));
	CHECK(base == p && bytes == MIB);
	fill(p, MIB / 2, 2);
	OK(d.cuCtxSynchronize());
	/* It makes no memory of its own. */
	CHECK(d.cuMemAllocFromPoolAsync(&refused, MIB, pool, NULL) != CUDA_SUCCESS);
	CHECK(d.cuDeviceSetMemPool(0, pool) != CUDA_SUCCESS);
	OK(d.cuMemFreeAsync(p, NULL));
	OK(d.cuCtxSynchronize());
	OK(d.cuMemPoolDestroy(pool));
	meet();
}

DRIVER_TEST(pool_elsewhere)
{
	const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                               .handleTypes = DESCRIPTOR,
	                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemPoolPtrExportData data;
	CUmemoryPool pool;
	CUdeviceptr first, p;
	int descriptor;

	beside(use_pool);
	start();
	need(119);
	OK(d.cuMemPoolCreate(&pool, &wanted));
	OK(d.cuMemPoolExportToShareableHandle(&descriptor, pool, DESCRIPTOR, 0));
	send_descriptor(descriptor);
	OK(d.cuMemAllocFromPoolAsync(&first, 4096, pool, NULL));
	OK(d.cuMemAllocFromPoolAsync(&p, MIB, pool, NULL));
	fill(first, 4096, 9);
	fill(p, MIB, 1);
	OK(d.cuCtxSynchronize());
	OK(d.cuMemPoolExportPointer(&data, p));
	tell(&data, sizeof(data));
	meet();
	CHECK(mismatches(p, MIB / 2, 2) == 0);
	CHECK(mismatches(first, 4096, 9) == 0);
	OK(d.cuMemFreeAsync(p, NULL));
	OK(d.cuMemFreeAsync(first, NULL));
	OK(d.cuCtxSynchronize());
	OK(d.cuMemPoolDestroy(pool));
	end_alike();
}

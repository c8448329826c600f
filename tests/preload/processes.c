/*
 * Two processes with one block: processes KIND LOG KERNELS. KIND is how the owner exports it: legacy (a handle
 * of cuMemAlloc memory), peer (the same, and the importer's second device uses it, too), descriptor (of
 * cuMemCreate memory) or pool. Each process also has more memory
 * of its own than a device of 48 MiB has. Every block is set, and checked in the end.
 *
 * Prints one line a question, without addresses. LOG is the importer's log.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"

#define BYTES ((size_t)4 << 20)
#define OWN 14
#define DESCRIPTOR CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct message {
	CUipcMemHandle handle;
	CUmemPoolPtrExportData data;
};

static const char *who;
static int other; /* a socket to the other process */
static CUmemoryPool pool;
static const char *kernels;

static void say(const char *format, ...)
{
	char line[128];
	va_list arguments;

	int length = snprintf(line, sizeof(line), "%s ", who);
	va_start(arguments, format);
	length += vsnprintf(line + length, sizeof(line) - (size_t)length - 1, format, arguments);
	va_end(arguments);
	line[length++] = '\n';
	if (write(STDOUT_FILENO, line, (size_t)length) != length)
		_exit(3);
}

static void must(const char *call, CUresult result)
{
	if (!result)
		return;
	say("%s ERROR %d", call, result);
	_exit(1);
}
#define OK(call) must(#call, call)

/* Each side waits until the other one comes here, too. */
static void meet(void)
{
	char word = 0;

	if (send(other, &word, 1, MSG_NOSIGNAL) != 1 || recv(other, &word, 1, 0) != 1)
		_exit(2);
}

/* -- a message with a descriptor --------------------------------------------------------------- */

union control {
	struct cmsghdr header;
	char room[CMSG_SPACE(sizeof(int))];
};

static void send_message(struct message *message, int descriptor)
{
	union control control = {0};
	struct iovec part = {message, sizeof(*message)};
	struct msghdr all = {.msg_iov = &part,
	                     .msg_iovlen = 1,
	                     .msg_control = descriptor < 0 ? NULL : &control,
	                     .msg_controllen = descriptor < 0 ? 0 : sizeof(control)};

	if (descriptor >= 0) {
		struct cmsghdr *header = CMSG_FIRSTHDR(&all);

		header->cmsg_level = SOL_SOCKET;
		header->cmsg_type = SCM_RIGHTS;
		header->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(header), &descriptor, sizeof(int));
	}
	if (sendmsg(other, &all, MSG_NOSIGNAL) != sizeof(*message))
		_exit(2);
	if (descriptor >= 0)
		close(descriptor);
}

/* The descriptor, or -1. */
static int receive_message(struct message *message)
{
	union control control = {0};
	struct iovec part = {message, sizeof(*message)};
	struct msghdr all = {
	    .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
	int descriptor = -1;

	if (recvmsg(other, &all, MSG_WAITALL) != sizeof(*message))
		_exit(2);
	if (CMSG_FIRSTHDR(&all))
		memcpy(&descriptor, CMSG_DATA(CMSG_FIRSTHDR(&all)), sizeof(int));
	return descriptor;
}

/* -- memory ------------------------------------------------------------------------------------ */

static void set(CUdeviceptr at, unsigned value)
{
	OK(cuMemsetD32_v2(at, value, BYTES / 4));
	OK(cuCtxSynchronize());
}

static void check(const char *what, CUdeviceptr at, unsigned value)
{
	static unsigned copy[BYTES / 4];
	size_t wrong = 0;

	OK(cuMemcpyDtoH_v2(copy, at, BYTES));
	for (size_t i = 0; i < BYTES / 4; i++)
		wrong += copy[i] != value;
	say("%s %s", what, wrong ? "is wrong" : "is right");
}

static CUdeviceptr own[OWN];

static void take_own(unsigned first, unsigned end)
{
	for (unsigned i = first; i < end; i++) {
		OK(cuMemAlloc_v2(&own[i], BYTES));
		set(own[i], 100 + i);
	}
}

static void give_own(void)
{
	for (unsigned i = 0; i < OWN; i++) {
		check("own block", own[i], 100 + i);
		OK(cuMemFree_v2(own[i]));
	}
}

static CUdeviceptr map(CUmemGenericAllocationHandle handle)
{
	const CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CUdeviceptr at;

	OK(cuMemAddressReserve(&at, BYTES, 0, 0, 0));
	OK(cuMemMap(at, BYTES, 0, handle, 0));
	OK(cuMemSetAccess(at, BYTES, &access, 1));
	OK(cuMemRelease(handle));
	return at;
}

static void unmap(CUdeviceptr at)
{
	OK(cuMemUnmap(at, BYTES));
	OK(cuMemAddressFree(at, BYTES));
}

/* -- legacy handles ---------------------------------------------------------------------------- */

static CUdeviceptr take_legacy(struct message *message, int *descriptor)
{
	CUdeviceptr at, mine;
	CUipcMemHandle again;

	*descriptor = -1;
	OK(cuMemAlloc_v2(&at, BYTES));
	OK(cuIpcGetMemHandle(&message->handle, at));
	OK(cuIpcGetMemHandle(&again, at + BYTES / 2));
	say("handle of a part %s",
	    memcmp(&again, &message->handle, sizeof(again)) ? "is another" : "is the same");
	CUresult result = cuIpcOpenMemHandle_v2(&mine, message->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
	say("opened by its owner: %d", result);
	return at;
}

static int attribute(CUdeviceptr at, CUpointer_attribute which)
{
	int value = -1;

	OK(cuPointerGetAttribute(&value, which, at));
	return value;
}

/* Both opens count, and an address of plain memory can be asked about. */
static CUdeviceptr import_legacy(const struct message *message, int descriptor)
{
	CUdeviceptr at, again;

	(void)descriptor;
	say("opened with no flags %d", cuIpcOpenMemHandle_v2(&at, message->handle, 0));
	OK(cuIpcOpenMemHandle_v2(&at, message->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	OK(cuIpcOpenMemHandle_v2(&again, message->handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
	say("opened again %s", at == again ? "at the same address" : "elsewhere");
	OK(cuIpcCloseMemHandle(again));
	say("memory type %d, device %d, managed %d", attribute(at, CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
	    attribute(at + BYTES - 1, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL),
	    attribute(at, CU_POINTER_ATTRIBUTE_IS_MANAGED) & 255);
	return at;
}

static void end_legacy(CUdeviceptr at)
{
	say("free of an opened handle %d", cuMemFree_v2(at));
	say("close within it %d", cuIpcCloseMemHandle(at + 4096));
	OK(cuIpcCloseMemHandle(at));
	say("close of what is closed %d", cuIpcCloseMemHandle(at));
}

static void give_legacy(CUdeviceptr at)
{
	OK(cuMemFree_v2(at));
}

/* Peer access to a context is access to what it has opened, also if it had opened that before. */
static CUdeviceptr import_for_peer(const struct message *message, int descriptor)
{
	uint64_t words = BYTES / sizeof(uint64_t), six = 6ull << 32 | 6;
	CUcontext own, peer;
	CUmodule module;
	CUfunction add;

	CUdeviceptr at = import_legacy(message, descriptor);
	OK(cuCtxGetCurrent(&own));
	OK(cuDevicePrimaryCtxRetain(&peer, 1));
	OK(cuCtxSetCurrent(peer));
	OK(cuCtxEnablePeerAccess(own, 0));
	OK(cuModuleLoad(&module, kernels));
	OK(cuModuleGetFunction(&add, module, "add"));
	OK(cuLaunchKernel(add, 64, 1, 1, 64, 1, 1, 0, NULL, (void *[]){&at, &words, &six}, NULL));
	OK(cuCtxSynchronize());
	OK(cuCtxSetCurrent(own));
	check("block that the peer has changed", at, 7);
	set(at, 1);
	return at;
}

/* -- descriptors ------------------------------------------------------------------------------- */

static CUdeviceptr take_descriptor(struct message *message, int *descriptor)
{
	const CUmemAllocationProp wanted = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
	                                    .requestedHandleTypes = DESCRIPTOR,
	                                    .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUmemGenericAllocationHandle handle;

	(void)message;
	OK(cuMemCreate(&handle, BYTES, &wanted, 0));
	OK(cuMemExportToShareableHandle(descriptor, handle, DESCRIPTOR, 0));
	return map(handle);
}

static CUdeviceptr import_descriptor(const struct message *message, int descriptor)
{
	CUmemGenericAllocationHandle handle, again = 0;

	(void)message;
	OK(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)descriptor, DESCRIPTOR));
	close(descriptor);
	CUdeviceptr at = map(handle);
	OK(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)at));
	say("handle of the mapping %s", again == handle ? "is the same" : "is another");
	OK(cuMemRelease(again));
	return at;
}

/* -- pools ------------------------------------------------------------------------------------- */

static CUdeviceptr take_pooled(struct message *message, int *descriptor)
{
	const CUmemPoolProps wanted = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
	                               .handleTypes = DESCRIPTOR,
	                               .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	CUdeviceptr at;

	OK(cuMemPoolCreate(&pool, &wanted));
	OK(cuMemAllocFromPoolAsync(&at, BYTES, pool, NULL));
	OK(cuMemPoolExportPointer(&message->data, at));
	OK(cuMemPoolExportToShareableHandle(descriptor, pool, DESCRIPTOR, 0));
	return at;
}

static CUdeviceptr import_pooled(const struct message *message, int descriptor)
{
	struct message same = *message;
	CUdeviceptr at, none = 0;

	OK(cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)descriptor, DESCRIPTOR, 0));
	close(descriptor);
	OK(cuMemPoolImportPointer(&at, pool, &same.data));
	say("allocation from an imported pool %d", cuMemAllocFromPoolAsync(&none, BYTES, pool, NULL));
	say("imported pool as the device's %d", cuDeviceSetMemPool(0, pool));
	say("nothing of an imported pool %d", cuMemAllocFromPoolAsync(&none, 0, pool, NULL));
	return at;
}

static void give_pooled(CUdeviceptr at)
{
	OK(cuMemFreeAsync(at, NULL));
	OK(cuCtxSynchronize());
	OK(cuMemPoolDestroy(pool));
}

static const struct way {
	const char *name;
	CUdeviceptr (*take)(struct message *message, int *descriptor);
	CUdeviceptr (*import)(const struct message *message, int descriptor);
	void (*import_end)(CUdeviceptr at);
	void (*give)(CUdeviceptr at);
} ways[] = {
    {"legacy", take_legacy, import_legacy, end_legacy, give_legacy},
    {"peer", take_legacy, import_for_peer, end_legacy, give_legacy},
    {"descriptor", take_descriptor, import_descriptor, unmap, unmap},
    {"pool", take_pooled, import_pooled, give_pooled, give_pooled},
};

/* -- the processes ----------------------------------------------------------------------------- */

static void begin(void)
{
	CUcontext context;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
}

static void run_importer(const struct way *way)
{
	struct message message;
	CUdeviceptr base;
	size_t bytes;

	begin();
	take_own(0, OWN / 2);
	int descriptor = receive_message(&message);
	CUdeviceptr at = way->import(&message, descriptor);
	check("imported block", at, 1);
	OK(cuMemGetAddressRange_v2(&base, &bytes, at + 4096));
	say("its range %s", base == at && bytes == BYTES ? "is its own" : "is another");
	take_own(OWN / 2, OWN);
	check("imported block", at, 1);
	meet();
	meet(); /* the owner has written */
	check("imported block", at, 2);
	set(at, 3);
	meet();
	way->import_end(at);
	give_own();
}

static void run_owner(const struct way *way)
{
	struct message message = {0};
	int descriptor;

	begin();
	CUdeviceptr at = way->take(&message, &descriptor);
	set(at, 1);
	send_message(&message, descriptor);
	take_own(0, OWN);
	check("exported block", at, 1);
	meet();
	set(at, 2);
	meet();
	meet(); /* the importer has written */
	check("exported block", at, 3);
	give_own();
	way->give(at);
}

int main(int count, char **words)
{
	const struct way *way = ways;
	int ends[2], status = -1;

	for (unsigned i = 0; count == 4 && i < sizeof(ways) / sizeof(*ways); i++)
		if (!strcmp(words[1], ways[i].name))
			way = &ways[i];
	if (count != 4 || strcmp(words[1], way->name) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 64;
	kernels = words[3];
	pid_t child = fork();
	who = child ? "owner" : "importer";
	other = ends[child == 0];
	close(ends[child != 0]);
	if (!child) {
		setenv("SPILL_LOG", words[2], 1);
		run_importer(way);
		return 0;
	}
	run_owner(way);
	waitpid(child, &status, 0);
	return status != 0;
}

/* Memory of another process by HIP's handles. The other process has a runtime of its own. Runs on each soname. */
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hip_test.h"

#define BYTES (4 * MIB)

static int other; /* a socket to the other process */

static void tell(const void *what, size_t bytes)
{
	CHECK(send(other, what, bytes, MSG_NOSIGNAL), (long long)bytes);
}

/* False: the other process has ended. */
static int hear(void *what, size_t bytes)
{
	ssize_t got = recv(other, what, bytes, MSG_WAITALL);

	CHECK(got, (long long)bytes);
	return got == (ssize_t)bytes;
}

static size_t count_bytes(const void *device, size_t bytes, unsigned char byte)
{
	unsigned char *copy = malloc(bytes);
	size_t count = 0;

	CHECK(hipMemcpy(copy, device, bytes, hipMemcpyDeviceToHost), hipSuccess);
	for (size_t i = 0; i < bytes; i++)
		count += copy[i] == byte;
	free(copy);
	return count;
}

static int open_and_write(void)
{
	hipIpcMemHandle_t handle, ended;
	void *opened, *again = NULL;
	char word = 0;

	if (!hear(&handle, sizeof(handle)) || !hear(&ended, sizeof(ended)))
		return 1;
	CHECK(hipIpcOpenMemHandle(&opened, handle, hipIpcMemLazyEnablePeerAccess), hipSuccess);
	CHECK(count_bytes(opened, BYTES, 1), BYTES);
	CHECK(hipMemset(opened, 2, MIB), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess);
	CHECK(hipIpcOpenMemHandle(&again, handle, hipIpcMemLazyEnablePeerAccess), hipSuccess);
	CHECK_TRUE(again == opened);
	CHECK_TRUE(hipIpcOpenMemHandle(&again, ended, hipIpcMemLazyEnablePeerAccess) != hipSuccess);
	CHECK(hipIpcCloseMemHandle(opened), hipSuccess);
	CHECK(count_bytes(opened, MIB, 2), MIB);
	CHECK(hipIpcCloseMemHandle(opened), hipSuccess);
	CHECK_TRUE(hipIpcCloseMemHandle(opened) != hipSuccess);
	tell(&word, 1);
	return check_result();
}

static void own_and_look(void)
{
	hipIpcMemHandle_t handle;
	void *memory, *ended, *opened;
	char word;

	CHECK(hipMalloc(&memory, BYTES), hipSuccess);
	CHECK(hipMalloc(&ended, BYTES), hipSuccess);
	CHECK(hipMemset(memory, 1, BYTES), hipSuccess);
	CHECK(hipDeviceSynchronize(), hipSuccess);
	CHECK(hipIpcGetMemHandle(&handle, memory), hipSuccess);
	CHECK_TRUE(hipIpcOpenMemHandle(&opened, handle, hipIpcMemLazyEnablePeerAccess) != hipSuccess);
	tell(&handle, sizeof(handle));
	CHECK(hipIpcGetMemHandle(&handle, ended), hipSuccess);
	CHECK(hipFree(ended), hipSuccess);
	tell(&handle, sizeof(handle));
	if (!hear(&word, 1))
		return;
	CHECK(count_bytes(memory, MIB, 2), MIB);
	CHECK(count_bytes((char *)memory + MIB, BYTES - MIB, 1), BYTES - MIB);
	CHECK(hipFree(memory), hipSuccess);
}

int main(void)
{
	int ends[2], status = -1;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 1;
	pid_t child = fork();
	other = ends[child == 0];
	close(ends[child != 0]);
	if (child == 0)
		return open_and_write();
	own_and_look();
	waitpid(child, &status, 0);
	CHECK(status, 0);
	return check_result();
}

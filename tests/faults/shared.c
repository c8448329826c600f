/*
 * Shares a block by a legacy handle with another process, and verifies each word of it there. libspill serves
 * such handles itself (ipc.h).
 *
 *	shared export    this process exports, and a helper opens
 *	shared import    the other way round
 *
 * Only this process meets faults: the helper has libspill without the injector. Prints `WHAT ERROR` for each
 * call that failed. `refused`: the vendor's answer for memory that cannot be shared.
 *
 * Exit status: 0; 1 data wrong; 2 it could not begin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda_api.h"

#define BYTES ((size_t)6 << 20)
#define WORDS (BYTES / 4)
#define VALUE 0x5ba1edu

/* What one side tells the other. */
struct message {
	CUipcMemHandle handle;
	int good;
};

static CUcontext context;

static int good(const char *what, CUresult result)
{
	const char *name = "?";

	if (!result)
		return 1;
	cuGetErrorName(result, &name);
	printf("%s %s\n", what, result == CUDA_ERROR_INVALID_VALUE ? "refused" : name);
	return 0;
}

/* The device's pool is there in each run, because libspill asks for it where memory is short. */
static int begin(void)
{
	CUmemoryPool pool;

	return good("init", cuInit(0)) && good("retain", cuDevicePrimaryCtxRetain(&context, 0)) &&
	       good("current", cuCtxSetCurrent(context)) && good("pool", cuDeviceGetDefaultMemPool(&pool, 0));
}

static void end(void)
{
	good("synchronize", cuCtxSynchronize());
	good("reset", cuDevicePrimaryCtxReset_v2(0));
}

static int wrong_words(CUdeviceptr at)
{
	static unsigned copy[WORDS];
	int wrong = 0;

	if (!good("read", cuMemcpyDtoH_v2(copy, at, BYTES)))
		return 0;
	for (size_t i = 0; i < WORDS; i++)
		wrong += copy[i] != VALUE;
	return wrong;
}

static int tell(int to, const struct message *message)
{
	return write(to, message, sizeof(*message)) == sizeof(*message);
}

static int hear(int from, struct message *message)
{
	return read(from, message, sizeof(*message)) == sizeof(*message);
}

/* -- the two sides ----------------------------------------------------------------------------- */

/* Returns 0 if there is no block. */
static CUdeviceptr take_block(void)
{
	CUdeviceptr at = 0;

	if (!good("allocate", cuMemAlloc_v2(&at, BYTES)))
		return 0;
	if (good("set", cuMemsetD32_v2(at, VALUE, WORDS)) && good("wait", cuCtxSynchronize()))
		return at;
	good("free", cuMemFree_v2(at));
	return 0;
}

/* Returns its wrong words. */
static int give_block(CUdeviceptr at)
{
	int wrong = wrong_words(at);

	if (!good("free", cuMemFree_v2(at)))
		good("free again", cuMemFree_v2(at));
	return wrong;
}

/*
 * Returns 1 if data are wrong, here or on the other side. Its own block shows that others are left alone.
 */
static int export_block(int from, int to)
{
	struct message message = {0}, answer = {0};
	CUdeviceptr own = take_block(), at = take_block();

	message.good = at && good("export", cuIpcGetMemHandle(&message.handle, at));
	if (!tell(to, &message) || !hear(from, &answer))
		return 1;
	return (at && give_block(at)) || (own && give_block(own)) || !answer.good;
}

/* The same. A handle that cannot be opened is no wrong data. */
static int import_block(int from, int to)
{
	struct message message, answer = {.good = 1};
	CUdeviceptr at = 0, own = take_block(), more = take_block();

	if (!hear(from, &message))
		return 1;
	if (message.good &&
	    good("open", cuIpcOpenMemHandle_v2(&at, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS))) {
		answer.good = wrong_words(at) == 0;
		if (!good("close", cuIpcCloseMemHandle(at)))
			good("close again", cuIpcCloseMemHandle(at));
	}
	return !tell(to, &answer) || !answer.good || (own && give_block(own)) || (more && give_block(more));
}

/* -- two processes ----------------------------------------------------------------------------- */

/* The library alone: the injector stands behind it in LD_PRELOAD. */
static void leave_injector(void)
{
	char *all = getenv("LD_PRELOAD"), *second = all ? strchr(all, ':') : NULL;

	if (second)
		*second = 0;
	setenv("SPILL_LOG", "off", 1);
	unsetenv("FAULTS");
	unsetenv("FAULTS_REPORT");
}

/* A helper that has read and write ends as its standard input and output. -1: none. */
static pid_t start_helper(char **argv, const char *role, int ends[2])
{
	int to_it[2], from_it[2];

	if (pipe(to_it) || pipe(from_it))
		return -1;
	ends[0] = from_it[0];
	ends[1] = to_it[1];
	pid_t helper = fork();
	if (helper)
		return close(to_it[0]), close(from_it[1]), helper;
	close(ends[0]);
	close(ends[1]);
	if (dup2(to_it[0], 3) != 3 || dup2(from_it[1], 4) != 4)
		_exit(2);
	leave_injector();
	execv("/proc/self/exe", (char *[]){argv[0], "helper", (char *)role, NULL});
	_exit(2);
}

int main(int argc, char **argv)
{
	int helps = argc == 3 && !strcmp(argv[1], "helper"), ends[2] = {3, 4}, status = 0;
	const char *role = argv[argc - 1];
	int exports = !strcmp(role, "export");
	pid_t helper = 0;

	if (argc != 2 + helps)
		return 64;
	if (!helps && (helper = start_helper(argv, exports ? "import" : "export", ends)) < 0)
		return 2;
	int begun = begin(), wrong = 0;
	if (begun) {
		wrong = exports ? export_block(ends[0], ends[1]) : import_block(ends[0], ends[1]);
		end();
	}
	close(ends[0]);
	close(ends[1]);
	if (helper && (waitpid(helper, &status, 0) != helper || (begun && status)))
		wrong = 1;
	if (!helps)
		printf(wrong ? "WRONG\n" : "all data right\n");
	return wrong ? 1 : begun ? 0 : 2;
}

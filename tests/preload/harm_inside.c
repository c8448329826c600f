/* Actions inside the driver's calls, for harm.c. */
#include "harm.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const harm_names[HARM_CALLS] = {"device", "host", "copy", "mark", "pinned", "info", "unmap"};

static _Atomic unsigned counts[HARM_CALLS];
static bool refused[HARM_CALLS];
static enum harm_call armed = HARM_CALLS;
static enum { NESTED, FORK, CAPTURE, SET_NODE, COPY_NODE, ANY_NODE } what;

/* -- another thread ---------------------------------------------------------------------------------------- */

static struct {
	pthread_t thread;
	atomic_int id;
	_Atomic bool may_begin, has_begun, may_end;
	CUstreamCaptureMode mode;
	CUresult result;
} other;

static CUresult capture_now(void)
{
	CUstream its;
	CUgraph graph;
	CUresult result = cuStreamCreate(&its, 1);

	atomic_store(&other.id, (int)syscall(SYS_gettid));
	while (!atomic_load(&other.may_begin))
		sched_yield();
	CUresult began = cuStreamBeginCapture_v2(its, other.mode);
	atomic_store(&other.has_begun, true);
	while (!atomic_load(&other.may_end))
		sched_yield();
	CUresult ended = cuStreamEndCapture(its, &graph);
	return result ? result : began ? began : ended;
}

#define CHUNK ((size_t)2 << 20) /* movable.chunk of the tests */

/* A node that uses the last chunk of block A, which leaves first. */
static CUresult add_node(CUgraph graph)
{
	struct harm_block block = harm_block_a();
	CUdeviceptr last = block.address + block.bytes - CHUNK;
	CUDA_MEMSET_NODE_PARAMS_v1 set = {.dst = last, .elementSize = 1, .width = CHUNK, .height = 1};
	CUDA_MEMCPY3D_v2 copy = {.srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                         .srcDevice = last,
	                         .dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                         .dstDevice = block.address,
	                         .WidthInBytes = CHUNK,
	                         .Height = 1,
	                         .Depth = 1};
	CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
	CUgraphNode node;

	memcpy(any.reserved1, &set, sizeof(set)); /* and a context, NULL */
	return what == SET_NODE    ? cuGraphAddMemsetNode(&node, graph, NULL, 0, &set, harm_context)
	       : what == COPY_NODE ? cuGraphAddMemcpyNode(&node, graph, NULL, 0, &copy, harm_context)
	                           : cuGraphAddNode(&node, graph, NULL, 0, &any);
}

static CUresult add_node_now(void)
{
	CUgraph graph;
	CUresult result = cuGraphCreate(&graph, 0);

	atomic_store(&other.id, (int)syscall(SYS_gettid));
	while (!atomic_load(&other.may_begin))
		sched_yield();
	result = result ? result : add_node(graph);
	atomic_store(&other.has_begun, true);
	cuGraphDestroy(graph);
	return result;
}

static void *run_other(void *data)
{
	cuCtxSetCurrent(harm_context);
	other.result = what == CAPTURE ? capture_now() : add_node_now();
	return data;
}

static CUresult start_other(CUstreamCaptureMode mode)
{
	other.mode = mode;
	if (pthread_create(&other.thread, NULL, run_other, NULL))
		return CUDA_ERROR_UNKNOWN;
	while (!atomic_load(&other.id))
		sched_yield();
	return CUDA_SUCCESS;
}

static bool sleeps(int thread)
{
	char path[64], text[256] = "";

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", thread);
	FILE *file = fopen(path, "re");
	if (!file)
		return false;
	if (!fgets(text, sizeof(text), file))
		text[0] = 0;
	fclose(file);
	const char *end = strrchr(text, ')');
	return end && end[2] == 'S';
}

/* Returns when the other thread captures or has its node, or is made to wait. */
static void let_other_begin(void)
{
	atomic_store(&other.may_begin, true);
	for (unsigned looks = 0; looks < 20 && !atomic_load(&other.has_begun);) {
		looks = sleeps(atomic_load(&other.id)) ? looks + 1 : 0;
		sched_yield();
	}
}

CUresult harm_ended(void)
{
	atomic_store(&other.may_begin, true);
	atomic_store(&other.may_end, true);
	pthread_join(other.thread, NULL);
	return other.result;
}

/* -- calls ----------------------------------------------------------------------------------------------- */

static void fork_here(int signal)
{
	int error = errno; // NOLINT: this test is about such a handler
	pid_t child = fork();

	if (!child)
		_exit(0);
	waitpid(child, NULL, 0);
	errno = error;
}

CUresult harm_called(enum harm_call call)
{
	atomic_fetch_add(&counts[call], 1);
	if (armed == call) {
		armed = HARM_CALLS;
		if (what == NESTED)
			cuMemsetD8_v2(harm_dot, 1, 1);
		else if (what == FORK)
			raise(SIGUSR1);
		else
			let_other_begin();
		printf("inside %s\n", harm_names[call]);
	}
	return refused[call] ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

void harm_refuse(enum harm_call call)
{
	refused[call] = true;
}

void harm_accept(void)
{
	memset(refused, 0, sizeof(refused));
}

unsigned harm_count(enum harm_call call)
{
	return atomic_exchange(&counts[call], 0);
}

CUresult harm_arm(enum harm_call call, const char *does)
{
	armed = call;
	what = !strcmp(does, "nested")      ? NESTED
	       : !strcmp(does, "fork")      ? FORK
	       : !strcmp(does, "set_node")  ? SET_NODE
	       : !strcmp(does, "copy_node") ? COPY_NODE
	       : !strcmp(does, "any_node")  ? ANY_NODE
	                                    : CAPTURE;
	signal(SIGUSR1, fork_here);
	if (what == NESTED || what == FORK)
		return CUDA_SUCCESS;
	return start_other(!strcmp(does, "global") ? CU_STREAM_CAPTURE_MODE_GLOBAL
	                                           : CU_STREAM_CAPTURE_MODE_RELAXED);
}

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

const char *const harm_names[HARM_CALLS] = {"device", "host", "copy", "mark", "pinned", "info"};

static _Atomic unsigned counts[HARM_CALLS];
static bool refused[HARM_CALLS];
static enum harm_call armed = HARM_CALLS;
static enum { NESTED, FORK, CAPTURE } what;

/* -- another thread's capture ------------------------------------------------------------------------------ */

static struct {
	pthread_t thread;
	atomic_int id;
	_Atomic bool may_begin, has_begun, may_end;
	CUstreamCaptureMode mode;
	CUresult result;
} capture;

static void *capture_run(void *data)
{
	CUstream its;
	CUgraph graph;

	cuCtxSetCurrent(harm_context);
	CUresult result = cuStreamCreate(&its, 1);
	atomic_store(&capture.id, (int)syscall(SYS_gettid));
	while (!atomic_load(&capture.may_begin))
		sched_yield();
	CUresult began = cuStreamBeginCapture_v2(its, capture.mode);
	atomic_store(&capture.has_begun, true);
	while (!atomic_load(&capture.may_end))
		sched_yield();
	CUresult ended = cuStreamEndCapture(its, &graph);
	capture.result = result ? result : began ? began : ended;
	return data;
}

static CUresult arm_capture(CUstreamCaptureMode mode)
{
	capture.mode = mode;
	if (pthread_create(&capture.thread, NULL, capture_run, NULL))
		return CUDA_ERROR_UNKNOWN;
	while (!atomic_load(&capture.id))
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

/* Returns when the other thread captures, or is made to wait. */
static void let_capture_begin(void)
{
	atomic_store(&capture.may_begin, true);
	for (unsigned looks = 0; looks < 20 && !atomic_load(&capture.has_begun);) {
		looks = sleeps(atomic_load(&capture.id)) ? looks + 1 : 0;
		sched_yield();
	}
}

CUresult harm_captured(void)
{
	atomic_store(&capture.may_begin, true);
	atomic_store(&capture.may_end, true);
	pthread_join(capture.thread, NULL);
	return capture.result;
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
			let_capture_begin();
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
	what = !strcmp(does, "nested") ? NESTED : !strcmp(does, "fork") ? FORK : CAPTURE;
	signal(SIGUSR1, fork_here);
	if (what != CAPTURE)
		return CUDA_SUCCESS;
	return arm_capture(!strcmp(does, "global") ? CU_STREAM_CAPTURE_MODE_GLOBAL
	                                           : CU_STREAM_CAPTURE_MODE_RELAXED);
}

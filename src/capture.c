/*
 * The table of captures, by the stream that began each. Modes and what they forbid are those of CUDA Driver API,
 * "Stream Management", cuThreadExchangeStreamCaptureMode; HIP has the same numbers. A capture that the vendor has
 * invalidated is still one until it is ended: the stream takes nothing else.
 */
#include "capture.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "deferred.h"
#include "gate.h"
#include "engine.h"
#include "note.h"
#include "runtime.h"

enum mode { GLOBAL, THREAD_LOCAL, RELAXED };

/* CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, hipErrorStreamCaptureWrongThread: the one failure that leaves the capture. */
#define WRONG_THREAD 908

/* CU_STREAM_PER_THREAD, hipStreamPerThread: another stream in each thread. */
#define PER_THREAD ((void *)2)

struct spill_capture {
	const struct spill_backend *backend;
	void *stream, *context;
	int device;
	uint64_t generation; /* in which it began (context_end.h) */
	uint64_t thread;     /* that began it */
	unsigned mode;
	struct spill_capture *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CAPTURE */
static struct spill_capture *captures;
static _Atomic unsigned count;

/* Threads are numbered here, because the system's numbers come again. */
static _Atomic uint64_t threads;
static __thread struct {
	uint64_t number;
	unsigned mode; /* of cuThreadExchangeStreamCaptureMode */
} self __attribute__((tls_model("initial-exec")));

uint64_t spill_capture_thread(void)
{
	if (!self.number)
		self.number = atomic_fetch_add(&threads, 1) + 1;
	return self.number;
}

bool spill_capture_any(void)
{
	return atomic_load_explicit(&count, memory_order_acquire) != 0;
}

static void *stream_of(const struct spill_request *request)
{
	return !request->stream && request->per_thread ? PER_THREAD : request->stream;
}

static bool is(const struct spill_capture *capture, const struct spill_backend *backend, const void *stream)
{
	return capture->backend == backend && capture->stream == stream &&
	       (stream != PER_THREAD || capture->thread == self.number);
}

/* Unlinks and returns the capture of a stream, or NULL. */
static struct spill_capture *take(const struct spill_backend *backend, const void *stream)
{
	struct spill_capture *found = NULL;
	if (!spill_capture_any())
		return NULL;
	pthread_mutex_lock(&lock);
	for (struct spill_capture **link = &captures; *link && !found; link = found ? link : &(*link)->next)
		if (is(*link, backend, stream)) {
			found = *link;
			*link = found->next;
			atomic_fetch_sub(&count, 1);
		}
	pthread_mutex_unlock(&lock);
	return found;
}

static void put(struct spill_capture *capture)
{
	pthread_mutex_lock(&lock);
	capture->next = captures;
	captures = capture;
	atomic_fetch_add(&count, 1);
	pthread_mutex_unlock(&lock);
}

static void begun(const struct spill_request *request, const struct spill_backend *backend)
{
	free(take(backend, stream_of(request))); /* one whose end we did not see */
	struct spill_capture *capture = calloc(1, sizeof(*capture));
	if (!capture) {
		spill_note("ledger", "no memory for bookkeeping: a stream capture is not known");
		return;
	}
	capture->backend = backend;
	capture->stream = stream_of(request);
	capture->thread = spill_capture_thread();
	capture->generation = spill_context_generation();
	capture->mode = request->mode;
	if (!backend->stream_owner ||
	    backend->stream_owner(request->stream, &capture->device, &capture->context))
		backend->current(&capture->device, &capture->context);
	put(capture);
}

static void ended(const struct spill_request *request)
{
	bool stays =
	    request->op == SPILL_OP_CAPTURE_END ? request->result == WRONG_THREAD : request->result != 0;
	if (request->capture && stays)
		put(request->capture);
	else
		free(request->capture);
}

bool spill_engine_capture(struct spill_request *request)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	bool ends = request->op == SPILL_OP_CAPTURE_END || request->op == SPILL_OP_STREAM_END;
	if (request->step++ == 0) {
		request->pass = !backend;
		request->gated = backend && spill_gate_enter_request();
		if (backend && request->op == SPILL_OP_STREAM_END)
			spill_deferred_stream_ended(backend, spill_engine_stream(request));
		/* It leaves before the call: behind it, a stream at the same address may be another thread's, and capture. */
		if (backend && ends)
			request->capture = take(backend, stream_of(request));
		if (request->op == SPILL_OP_CAPTURE_MODE && request->out)
			request->mode =
			    *(const unsigned *)request->out; /* the vendor puts the old one there */
		return true;
	}
	if (ends)
		ended(request);
	else if (request->result == 0 && request->op == SPILL_OP_CAPTURE_BEGIN)
		begun(request, backend);
	else if (request->result == 0 && request->op == SPILL_OP_CAPTURE_MODE)
		self.mode = request->mode;
	if (request->gated)
		spill_gate_leave(spill_gate_self);
	return false;
}

struct survey {
	bool own;        /* this thread has begun one */
	bool own_strict; /* and that forbids it unsafe calls */
	bool global;     /* another thread's forbids them to all */
};

static struct survey survey(void)
{
	struct survey seen = {0};
	pthread_mutex_lock(&lock);
	for (const struct spill_capture *capture = captures; capture; capture = capture->next) {
		bool own = capture->thread == self.number;
		seen.own |= own;
		seen.own_strict |= own && capture->mode != RELAXED;
		seen.global |= !own && capture->mode == GLOBAL;
	}
	pthread_mutex_unlock(&lock);
	return seen;
}

/* A stream that joined by an event captures too, and nobody but the driver knows. */
static bool stream_captures(const struct spill_request *request)
{
	const struct spill_backend *backend = spill_runtime_backend(request->domain);
	return backend && backend->capturing && backend->capturing(stream_of(request));
}

/*
 * Making and mapping physical memory is safe in any mode; plain, pinned, managed memory, pools and advice are not, and their
 * failure ends the capture (measured, H200: docs/measurements.md).
 */
bool spill_capture_here(const struct spill_request *request)
{
	bool on_stream = request->op == SPILL_OP_ALLOC_ASYNC || request->op == SPILL_OP_FREE_ASYNC;
	if (!spill_capture_any())
		return false;
	if (on_stream && stream_captures(request))
		return true;
	struct survey seen = survey();
	if (!on_stream && seen.own)
		return true;
	if (request->op == SPILL_OP_CREATE || self.mode == RELAXED)
		return false;
	return seen.own_strict || (self.mode == GLOBAL && seen.global);
}

void spill_capture_context_ended(const struct spill_context_end *end)
{
	if (!spill_capture_any())
		return;
	pthread_mutex_lock(&lock);
	for (struct spill_capture **link = &captures; *link;) {
		struct spill_capture *capture = *link;
		if (!spill_context_end_covers(end, capture->backend, capture->device, capture->context,
		                              capture->generation)) {
			link = &capture->next;
			continue;
		}
		*link = capture->next;
		atomic_fetch_sub(&count, 1);
		free(capture);
	}
	pthread_mutex_unlock(&lock);
}

void spill_capture_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* The child has no GPU, so no capture. */
void spill_capture_fork_done(bool child)
{
	if (child) {
		captures = NULL;
		atomic_store(&count, 0);
		self.mode = GLOBAL;
	}
	pthread_mutex_unlock(&lock);
}

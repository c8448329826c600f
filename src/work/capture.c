/*
 * The table of captures, by the stream that began each. Modes and what they forbid are those of CUDA Driver API,
 * "Stream Management", cuThreadExchangeStreamCaptureMode; HIP has the same numbers. A capture that the vendor has
 * invalidated is still one until it is ended: the stream takes nothing else.
 */
#include "capture.h"

#include <pthread.h>
#include <stdatomic.h>

enum mode { GLOBAL, THREAD_LOCAL, RELAXED };

/* Errors of a call that ends a capture; HIP has the same numbers. */
#define INVALIDATED 901  /* the capture is over */
#define UNJOINED 904     /* the capture is over */
#define WRONG_THREAD 908 /* the one failure that leaves the capture */

/* Captures at once, each with a record. Programs have a few. */
#define RECORDS 256

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
/* Not from malloc: a capture that is not known because memory is short would be broken by us. */
static struct spill_capture records[RECORDS];
static unsigned used;               /* records from here on have never been taken */
static struct spill_capture *spare; /* of those before, the ones that are free */
static struct spill_capture *captures;
static unsigned unrecorded;    /* captures that found no record: nothing else is known of them */
static _Atomic unsigned count; /* of all captures */

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

void *spill_capture_stream(void *stream, bool per_thread)
{
	return !stream && per_thread ? PER_THREAD : stream;
}

static bool is(const struct spill_capture *capture, const struct spill_backend *backend, const void *stream)
{
	return capture->backend == backend && capture->stream == stream &&
	       (stream != PER_THREAD || capture->thread == self.number);
}

struct spill_capture *spill_capture_take(const struct spill_backend *backend, const void *stream)
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

/* pre: locked */
static void give_back(struct spill_capture *capture)
{
	capture->next = spare;
	spare = capture;
}

/* pre: locked. NULL: all records are taken */
static struct spill_capture *free_record(void)
{
	struct spill_capture *record = spare;
	if (record)
		spare = record->next;
	else if (used < RECORDS)
		record = &records[used++];
	return record;
}

/* pre: locked */
static void enter(struct spill_capture *capture)
{
	capture->next = captures;
	captures = capture;
	atomic_fetch_add(&count, 1);
}

void spill_capture_begun(const struct spill_backend *backend, void *stream, unsigned mode)
{
	/* A record that is still there is of a capture whose end we did not see. */
	struct spill_capture *before = spill_capture_take(backend, stream);
	struct spill_capture fresh = {.backend = backend,
	                              .stream = stream,
	                              .thread = spill_capture_thread(),
	                              .generation = spill_context_generation(),
	                              .mode = mode};
	if (backend->streams->owner(stream, &fresh.device, &fresh.context))
		backend->devices->current(&fresh.device, &fresh.context);
	pthread_mutex_lock(&lock);
	struct spill_capture *record = before ? before : free_record();
	if (record) {
		*record = fresh;
		enter(record);
	} else {
		unrecorded++;
		atomic_fetch_add(&count, 1);
	}
	pthread_mutex_unlock(&lock);
}

/*
 * A capture without a record may have ended. Only an end that proves it is counted: the stream's destruction does not, because
 * the stream may have joined, or captured nothing. Counting one too many costs spills, counting one too few a capture.
 */
static void end_unrecorded(int result)
{
	if (result && result != INVALIDATED && result != UNJOINED)
		return;
	pthread_mutex_lock(&lock);
	if (unrecorded) {
		unrecorded--;
		atomic_fetch_sub(&count, 1);
	}
	pthread_mutex_unlock(&lock);
}

static void settle(struct spill_capture *capture, bool stays)
{
	pthread_mutex_lock(&lock);
	if (stays)
		enter(capture);
	else
		give_back(capture);
	pthread_mutex_unlock(&lock);
}

void spill_capture_ended(struct spill_capture *capture, int result)
{
	if (capture)
		settle(capture, result == WRONG_THREAD);
	else
		end_unrecorded(result);
}

void spill_capture_stream_ended(struct spill_capture *capture, int result)
{
	if (capture)
		settle(capture, result != 0);
}

void spill_capture_thread_mode(unsigned mode)
{
	self.mode = mode;
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
	if (unrecorded)
		seen = (struct survey){true, true, true}; /* anybody's, of any mode */
	for (const struct spill_capture *capture = captures; capture; capture = capture->next) {
		bool own = capture->thread == self.number;
		seen.own |= own;
		seen.own_strict |= own && capture->mode != RELAXED;
		seen.global |= !own && capture->mode == GLOBAL;
	}
	pthread_mutex_unlock(&lock);
	return seen;
}

bool spill_capture_forbids(const struct spill_backend *backend, const struct spill_capture_call *call)
{
	if (!spill_capture_any())
		return false;
	/* A stream that joined by an event captures too, and only the driver knows it. */
	if (call->on_stream && backend &&
	    backend->streams->capturing(spill_capture_stream(call->stream, call->per_thread)))
		return true;
	struct survey seen = survey();
	if (!call->on_stream && seen.own)
		return true;
	if (call->safe || self.mode == RELAXED)
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
		give_back(capture);
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
		captures = spare = NULL;
		used = unrecorded = 0;
		atomic_store(&count, 0);
		self.mode = GLOBAL;
	}
	pthread_mutex_unlock(&lock);
}

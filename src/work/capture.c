/*
 * The table of captures, one record for the stream that began each. CUDA Driver API, "Stream
 * Management", cuThreadExchangeStreamCaptureMode defines the modes; HIP has the same numbers. A
 * capture that the vendor has invalidated stays in the table until the program ends it, because its
 * stream takes no other work.
 */
#include "capture.h"

#include <pthread.h>
#include <stdatomic.h>

enum mode { GLOBAL, THREAD_LOCAL, RELAXED };

/* The error of a call that a capture forbids. HIP has the same numbers here and below. */
#define UNSUPPORTED 900
/* Errors of a call that ends a capture. */
#define INVALIDATED 901  /* the capture is over */
#define UNJOINED 904     /* the capture is over */
#define WRONG_THREAD 908 /* the only error after which the capture goes on */

/* Most captures at a time. Programs have a few. */
#define RECORDS 256

/* CU_STREAM_PER_THREAD, hipStreamPerThread. Each thread has its own. */
#define PER_THREAD ((void *)2)

struct spill_capture {
	const struct spill_backend *backend;
	void *stream, *context;
	int device;
	uint64_t generation; /* when it began (context_end.h) */
	uint64_t thread;     /* the thread that began it */
	unsigned mode;
	struct spill_capture *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_CAPTURE */
/*
 * Static memory: if malloc failed for a record, libspill would not know of the capture and break
 * it.
 */
static struct spill_capture records[RECORDS];
static unsigned used_records;              /* records behind this index are unused */
static struct spill_capture *free_records; /* free records in front of that index */
static struct spill_capture *captures;
static unsigned unrecorded;            /* captures without a record: their streams are not known */
static _Atomic unsigned capture_count; /* of all captures, with and without a record */

/* The kernel's thread numbers come again, so threads have numbers of our own. */
static _Atomic uint64_t thread_count;
static __thread struct {
	uint64_t number;
	unsigned mode; /* set by cuThreadExchangeStreamCaptureMode */
} this_thread __attribute__((tls_model("initial-exec")));

uint64_t spill_capture_thread(void)
{
	if (!this_thread.number)
		this_thread.number = atomic_fetch_add(&thread_count, 1) + 1;
	return this_thread.number;
}

bool spill_capture_any(void)
{
	return atomic_load_explicit(&capture_count, memory_order_acquire) != 0;
}

void *spill_capture_stream(void *stream, bool per_thread)
{
	return !stream && per_thread ? PER_THREAD : stream;
}

static bool is_on_stream(const struct spill_capture *capture, const struct spill_backend *backend,
                         const void *stream)
{
	return capture->backend == backend && capture->stream == stream &&
	       (stream != PER_THREAD || capture->thread == this_thread.number);
}

struct spill_capture *spill_capture_take(const struct spill_backend *backend, const void *stream)
{
	struct spill_capture *found = NULL;
	if (!spill_capture_any())
		return NULL;
	pthread_mutex_lock(&lock);
	for (struct spill_capture **link = &captures; *link && !found; link = found ? link : &(*link)->next)
		if (is_on_stream(*link, backend, stream)) {
			found = *link;
			*link = found->next;
			atomic_fetch_sub(&capture_count, 1);
		}
	pthread_mutex_unlock(&lock);
	return found;
}

/* pre: locked */
static void put_record(struct spill_capture *capture)
{
	capture->next = free_records;
	free_records = capture;
}

/* pre: locked. NULL: no record is free */
static struct spill_capture *get_record(void)
{
	struct spill_capture *record = free_records;
	if (record)
		free_records = record->next;
	else if (used_records < RECORDS)
		record = &records[used_records++];
	return record;
}

/* pre: locked */
static void add_capture(struct spill_capture *capture)
{
	capture->next = captures;
	captures = capture;
	atomic_fetch_add(&capture_count, 1);
}

void spill_capture_begun(const struct spill_backend *backend, void *stream, unsigned mode)
{
	/* An old record belongs to a capture whose end libspill did not see. */
	struct spill_capture *before = spill_capture_take(backend, stream);
	struct spill_capture fresh = {.backend = backend,
	                              .stream = stream,
	                              .thread = spill_capture_thread(),
	                              .generation = spill_context_generation(),
	                              .mode = mode};
	if (backend->streams->owner(stream, &fresh.device, &fresh.context))
		backend->devices->current(&fresh.device, &fresh.context);
	pthread_mutex_lock(&lock);
	struct spill_capture *record = before ? before : get_record();
	if (record) {
		*record = fresh;
		add_capture(record);
	} else {
		unrecorded++;
		atomic_fetch_add(&capture_count, 1);
	}
	pthread_mutex_unlock(&lock);
}

/*
 * A capture without a record may have ended. Only a result that proves the end is counted. The end
 * of a stream proves nothing: the stream may have joined another's capture, or had none. A count
 * that is too high costs spills; one that is too low breaks a capture.
 */
static void end_unrecorded(int result)
{
	if (result && result != INVALIDATED && result != UNJOINED)
		return;
	pthread_mutex_lock(&lock);
	if (unrecorded) {
		unrecorded--;
		atomic_fetch_sub(&capture_count, 1);
	}
	pthread_mutex_unlock(&lock);
}

static void finish_capture(struct spill_capture *capture, bool stays)
{
	pthread_mutex_lock(&lock);
	if (stays)
		add_capture(capture);
	else
		put_record(capture);
	pthread_mutex_unlock(&lock);
}

void spill_capture_ended(struct spill_capture *capture, int result)
{
	if (capture)
		finish_capture(capture, result == WRONG_THREAD);
	else
		end_unrecorded(result);
}

void spill_capture_stream_ended(struct spill_capture *capture, int result)
{
	if (capture)
		finish_capture(capture, result != 0);
}

void spill_capture_thread_mode(unsigned mode)
{
	this_thread.mode = mode;
}

struct capture_survey {
	bool own;    /* a capture that this thread has begun forbids it unsafe calls */
	bool global; /* another thread's capture forbids unsafe calls to all threads */
};

static struct capture_survey capture_survey(void)
{
	struct capture_survey seen = {0};
	pthread_mutex_lock(&lock);
	if (unrecorded)
		seen = (struct capture_survey){true, true}; /* any thread's, in any mode */
	for (const struct spill_capture *capture = captures; capture; capture = capture->next) {
		bool own = capture->thread == this_thread.number;
		seen.own |= own && capture->mode != RELAXED;
		seen.global |= !own && capture->mode == GLOBAL;
	}
	pthread_mutex_unlock(&lock);
	return seen;
}

bool spill_capture_forbids(const struct spill_backend *backend, const struct spill_capture_call *call)
{
	if (!spill_capture_any())
		return false;
	/* A stream that joined a capture by an event captures, too. Only the driver knows. */
	if (call->on_stream && backend &&
	    backend->streams->capturing(spill_capture_stream(call->stream, call->per_thread)))
		return true;
	if (call->safe || this_thread.mode == RELAXED)
		return false;
	struct capture_survey seen = capture_survey();
	return seen.own || (this_thread.mode == GLOBAL && seen.global);
}

bool spill_capture_refused(int result)
{
	return result == UNSUPPORTED;
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
		atomic_fetch_sub(&capture_count, 1);
		put_record(capture);
	}
	pthread_mutex_unlock(&lock);
}

/* The child has no GPU, and so no capture. */
static void forget_parent(void)
{
	captures = free_records = NULL;
	used_records = unrecorded = 0;
	atomic_store(&capture_count, 0);
	this_thread.mode = GLOBAL;
}

const struct spill_fork_lock spill_capture_fork_lock = {&lock, forget_parent};

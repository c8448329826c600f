/*
 * Streams: queues of operations, each run by a thread of its own that starts with its first need. What an
 * operation has to wait for besides its predecessor is known when it is submitted: the default stream waits
 * for the context's blocking streams and they for it, and sim_stream_wait names one operation. So the waits
 * point to the past only and cannot form a circle.
 *
 * An operation that somebody waits for and that has nothing before it runs on the caller's thread.
 */
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct operation {
	atomic_uint references;
	atomic_bool done;
	bool running, always;
	work_function run;
	void *data;
	uint64_t time;
	struct operation *next;
	unsigned afters;
	struct operation *after[];
};

struct sim_stream {
	struct object object;
	struct sim_context *context;
	struct sim_stream *next;
	uint64_t id;
	int priority;
	bool non_blocking, thread;
	atomic_bool closed;
	struct operation *head, *end; /* not done yet; the queue holds one reference */
	struct operation *last;       /* newest ever; one reference */
};

/* -- operations ------------------------------------------------------------------------------------------ */

void operation_put(struct operation *operation)
{
	if (operation && atomic_fetch_sub(&operation->references, 1) == 1)
		free(operation);
}

struct operation *operation_get(struct operation *operation)
{
	atomic_fetch_add(&operation->references, 1);
	return operation;
}

bool operation_done(struct operation *operation)
{
	return atomic_load(&operation->done);
}

uint64_t operation_time(struct operation *operation)
{
	return operation->time;
}

void operation_wait(struct operation *operation)
{
	pthread_mutex_lock(&lock);
	while (!operation->done)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static bool may_run(const struct operation *operation)
{
	for (unsigned i = 0; i < operation->afters; i++)
		if (!operation->after[i]->done)
			return false;
	return !operation->running;
}

/* -- running: all with the lock held --------------------------------------------------------------------- */

static void retire(struct sim_stream *stream)
{
	if (!stream->closed || stream->head || stream->thread)
		return;
	struct sim_stream **link = &stream->context->streams;
	while (*link != stream)
		link = &(*link)->next;
	*link = stream->next;
	operation_put(stream->last);
	object_delete(stream);
	pthread_cond_broadcast(&changed);
}

/* Runs the head. pre: may_run. The lock is released meanwhile. */
static void run_head(struct sim_stream *stream)
{
	struct operation *operation = stream->head;
	struct timespec now;

	operation->running = true;
	pthread_mutex_unlock(&lock);
	if (operation->run && (operation->always || !atomic_load(&stream->context->status)))
		guard_run(stream->context, operation->run, operation->data);
	free(operation->data);
	clock_gettime(CLOCK_MONOTONIC, &now);
	pthread_mutex_lock(&lock);
	operation->time = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	operation->done = true;
	for (unsigned i = 0; i < operation->afters; i++)
		operation_put(operation->after[i]);
	operation->afters = 0;
	stream->head = operation->next;
	operation_put(operation);
	pthread_cond_broadcast(&changed);
}

static void *stream_thread(void *data)
{
	struct sim_stream *stream = data;

	pthread_mutex_lock(&lock);
	while (stream->head || !stream->closed) {
		if (stream->head && may_run(stream->head))
			run_head(stream);
		else
			pthread_cond_wait(&changed, &lock);
	}
	stream->thread = false;
	retire(stream);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* The program's signals are not for these threads; what a kernel's own mistake raises is. */
static bool start_thread(struct sim_stream *stream)
{
	static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
	sigset_t all, before;
	pthread_t thread;

	sigfillset(&all);
	for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	stream->thread = pthread_create(&thread, NULL, stream_thread, stream) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (stream->thread)
		pthread_detach(thread);
	return stream->thread;
}

/* -- submitting ------------------------------------------------------------------------------------------ */

static bool pending(const struct operation *operation)
{
	return operation && !operation->done;
}

static bool waits_for(const struct sim_stream *stream, const struct sim_stream *other)
{
	const struct sim_stream *legacy = stream->context->legacy;

	if (stream == other || !pending(other->last))
		return false;
	return stream == legacy ? !other->non_blocking : other == legacy && !stream->non_blocking;
}

static struct operation *operation_new(struct sim_stream *stream, struct operation *extra)
{
	unsigned count = pending(extra);

	for (struct sim_stream *other = stream->context->streams; other; other = other->next)
		count += waits_for(stream, other);
	struct operation *operation = calloc(1, sizeof(*operation) + count * sizeof(*operation->after));
	if (!operation)
		return NULL;
	operation->references = 3; /* the queue, `last`, the caller */
	if (pending(extra))
		operation->after[operation->afters++] = operation_get(extra);
	for (struct sim_stream *other = stream->context->streams; other; other = other->next)
		if (waits_for(stream, other))
			operation->after[operation->afters++] = operation_get(other->last);
	return operation;
}

/* Appends it; one reference is the caller's. NULL: see *status, and `data` is freed. */
static struct operation *append(struct sim_stream *stream, const struct operation *what,
                                struct operation *extra, enum sim_status *status)
{
	struct operation *operation = NULL;

	*status = sim_stream_alive(stream) ? SIM_OK : SIM_BAD_CONTEXT;
	if (!*status && !what->always)
		*status = (enum sim_status)atomic_load(&stream->context->status);
	if (!*status && !(operation = operation_new(stream, extra)))
		*status = SIM_NO_HOST_MEMORY;
	if (*status) {
		free(what->data);
		return NULL;
	}
	operation->run = what->run;
	operation->data = what->data;
	operation->always = what->always;
	if (stream->head)
		stream->end->next = operation;
	else
		stream->head = operation;
	stream->end = operation;
	operation_put(stream->last);
	stream->last = operation;
	return operation;
}

/* pre: the lock is held. Makes sure that somebody runs it. */
static void go(struct sim_stream *stream, struct operation *operation, bool wait)
{
	bool inline_now = wait && stream->head == operation && may_run(operation);

	/* Without a thread to be had, the caller runs the stream itself, in order. */
	if (!inline_now && !stream->thread && !start_thread(stream)) {
		while (!operation->done) {
			if (may_run(stream->head))
				run_head(stream);
			else
				pthread_cond_wait(&changed, &lock);
		}
	}
	if (inline_now) {
		run_head(stream);
		retire(stream);
		return;
	}
	pthread_cond_broadcast(&changed);
	while (wait && !operation->done)
		pthread_cond_wait(&changed, &lock);
}

enum sim_status stream_submit(struct sim_stream *stream, enum sim_node_type type, work_function run,
                              void *data, bool wait, bool always)
{
	struct operation what = {.run = run, .data = data, .always = always};
	enum sim_status status;

	if (capture_take(stream, type, run, data, &status))
		return status;
	pthread_mutex_lock(&lock);
	struct operation *operation = append(stream, &what, NULL, &status);
	struct sim_context *context = operation ? stream->context : NULL;
	if (operation)
		go(stream, operation, wait);
	pthread_mutex_unlock(&lock);
	operation_put(operation);
	return status || !wait ? status : (enum sim_status)atomic_load(&context->status);
}

static struct operation *mark_after(struct sim_stream *stream, struct operation *extra,
                                    enum sim_status *status)
{
	struct operation what = {0};

	pthread_mutex_lock(&lock);
	struct operation *operation = append(stream, &what, extra, status);
	if (operation)
		/* Nothing to run: done at once where nothing is before it. */
		go(stream, operation, stream->head == operation && may_run(operation));
	pthread_mutex_unlock(&lock);
	return operation;
}

struct operation *stream_mark(struct sim_stream *stream, enum sim_status *status)
{
	return mark_after(stream, NULL, status);
}

enum sim_status stream_after(struct sim_stream *stream, struct operation *mark)
{
	enum sim_status status;

	operation_put(mark_after(stream, mark, &status));
	return status;
}

/* -- the interface --------------------------------------------------------------------------------------- */

enum sim_status sim_stream_create(struct sim_context *context, bool non_blocking, int priority,
                                  struct sim_stream **out)
{
	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	struct sim_stream *stream = object_new(OBJECT_STREAM, sizeof(*stream));
	if (!stream)
		return SIM_NO_HOST_MEMORY;
	stream->context = context;
	stream->id = sim_next_id();
	stream->non_blocking = non_blocking;
	stream->priority = priority;
	pthread_mutex_lock(&lock);
	stream->next = context->streams;
	context->streams = stream;
	pthread_mutex_unlock(&lock);
	*out = stream;
	return SIM_OK;
}

static void close_stream(struct sim_stream *stream)
{
	stream->closed = true;
	pthread_cond_broadcast(&changed);
	retire(stream);
}

enum sim_status sim_stream_destroy(struct sim_stream *stream)
{
	capture_stream_gone(stream);
	pthread_mutex_lock(&lock);
	bool good = sim_stream_alive(stream) && stream != stream->context->legacy;
	if (good)
		close_stream(stream);
	pthread_mutex_unlock(&lock);
	return good ? SIM_OK : SIM_INVALID;
}

bool sim_stream_alive(struct sim_stream *stream)
{
	return object_is(stream, OBJECT_STREAM) && !stream->closed;
}

struct sim_context *sim_stream_context(struct sim_stream *stream)
{
	return stream->context;
}

bool sim_stream_non_blocking(struct sim_stream *stream)
{
	return stream->non_blocking;
}

int sim_stream_priority(struct sim_stream *stream)
{
	return stream->priority;
}

uint64_t sim_stream_id(struct sim_stream *stream)
{
	return stream->id;
}

enum sim_status sim_stream_query(struct sim_stream *stream)
{
	enum sim_status status = SIM_BAD_CONTEXT;

	pthread_mutex_lock(&lock);
	if (sim_stream_alive(stream)) {
		status = (enum sim_status)atomic_load(&stream->context->status);
		/* The default stream is idle when what it orders itself with is. */
		bool busy = pending(stream->last);
		for (struct sim_stream *other = stream->context->streams;
		     other && stream == stream->context->legacy; other = other->next)
			busy |= waits_for(stream, other);
		if (!status && busy)
			status = SIM_NOT_READY;
	}
	pthread_mutex_unlock(&lock);
	return status;
}

enum sim_status sim_stream_synchronize(struct sim_stream *stream)
{
	enum sim_status status = SIM_BAD_CONTEXT;

	pthread_mutex_lock(&lock);
	struct sim_context *context = sim_stream_alive(stream) ? stream->context : NULL;
	bool legacy = context && stream == context->legacy;
	struct operation *last = context && !legacy && stream->last ? operation_get(stream->last) : NULL;
	pthread_mutex_unlock(&lock);
	if (!context)
		return status;
	if (legacy) /* an operation in the default stream waits for all blocking streams */
		last = stream_mark(stream, &status);
	if (last)
		operation_wait(last);
	operation_put(last);
	return (enum sim_status)atomic_load(&context->status);
}

unsigned stream_pending(struct sim_context *context, struct operation **out, unsigned room)
{
	unsigned count = 0;

	pthread_mutex_lock(&lock);
	for (struct sim_stream *stream = context->streams; stream && count < room; stream = stream->next)
		if (pending(stream->last))
			out[count++] = operation_get(stream->last);
	pthread_mutex_unlock(&lock);
	return count;
}

enum sim_status sim_context_synchronize(struct sim_context *context)
{
	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	for (;;) {
		struct operation *busy = NULL;

		pthread_mutex_lock(&lock);
		for (struct sim_stream *s = context->streams; s && !busy; s = s->next)
			if (pending(s->last))
				busy = operation_get(s->last);
		pthread_mutex_unlock(&lock);
		if (!busy)
			return (enum sim_status)atomic_load(&context->status);
		operation_wait(busy);
		operation_put(busy);
	}
}

struct sim_stream *sim_stream_default(struct sim_context *context)
{
	return sim_context_alive(context) ? context->legacy : NULL;
}

/* -- per-thread default streams -------------------------------------------------------------------------- */

struct own { /* one of the calling thread's, in a list */
	struct own *next;
	uint64_t context;
	struct sim_stream *stream;
};

static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;

static void own_gone(void *data)
{
	for (struct own *own = data, *next; own; own = next) {
		next = own->next;
		pthread_mutex_lock(&lock);
		/* Its context may be gone and with it the stream; ids are never used twice. */
		if (sim_stream_alive(own->stream) && own->stream->context->id == own->context)
			close_stream(own->stream);
		pthread_mutex_unlock(&lock);
		free(own);
	}
}

static void own_start(void)
{
	pthread_key_create(&own_key, own_gone);
}

struct sim_stream *sim_stream_per_thread(struct sim_context *context)
{
	if (!sim_context_alive(context))
		return NULL;
	pthread_once(&own_once, own_start);
	struct own *first = pthread_getspecific(own_key);
	for (struct own *own = first; own; own = own->next)
		if (own->context == context->id)
			return own->stream;
	struct own *own = malloc(sizeof(*own));
	if (!own || sim_stream_create(context, false, 0, &own->stream)) {
		free(own);
		return NULL;
	}
	own->context = context->id;
	own->next = first;
	pthread_setspecific(own_key, own);
	return own->stream;
}

/* -- contexts come and go -------------------------------------------------------------------------------- */

enum sim_status stream_open(struct sim_context *context)
{
	return sim_stream_create(context, false, 0, &context->legacy);
}

void stream_context_gone(struct sim_context *context)
{
	capture_context_gone(context);
	pthread_mutex_lock(&lock);
	for (struct sim_stream *stream = context->streams, *next; stream; stream = next) {
		next = stream->next;
		close_stream(stream);
	}
	while (context->streams)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

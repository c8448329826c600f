/*
 * Streams: queues of operations. Each is run by a thread of its own, which starts when it is first
 * needed. All waits of an operation are known when it is submitted. The default stream waits for
 * the context's blocking streams, and those wait for it. sim_stream_wait names one operation. So
 * waits point to the past only and cannot form a circle.
 *
 * If a caller waits for an operation and no operation is before it, it runs on the caller's thread.
 */
#include <signal.h>
#include <stdlib.h>

#include "core_internal.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct operation {
	atomic_uint references;
	atomic_bool done;
	bool running, always;
	bool counted;  /* takes a place in its stream's queue */
	bool together; /* of no stream: done when all of `after` are */
	work_function run;
	void *data;
	uint64_t submitted, time; /* ns; `time`: when it was done */
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
	unsigned queued; /* counted operations that are not done */
	uint64_t room;   /* of the device */
	bool lazy;       /* takes its room with its first work */
	uint64_t time;   /* when its latest operation was done */
	atomic_bool closed;
	struct operation *head, *end; /* not done yet; the queue has a reference */
	struct operation *last;       /* the newest of all; one reference */
};

/* -- operations -------------------------------------------------------------------------------- */

void operation_put(struct operation *operation)
{
	if (!operation || atomic_fetch_sub(&operation->references, 1) != 1)
		return;
	for (unsigned i = 0; i < operation->afters; i++) /* an operation that ran has none left */
		operation_put(operation->after[i]);
	free(operation);
}

struct operation *operation_get(struct operation *operation)
{
	atomic_fetch_add(&operation->references, 1);
	return operation;
}

bool operation_done(struct operation *operation)
{
	for (unsigned i = 0; operation->together && i < operation->afters; i++)
		if (!atomic_load(&operation->after[i]->done))
			return false;
	return operation->together || atomic_load(&operation->done);
}

uint64_t operation_time(struct operation *operation)
{
	uint64_t time = operation->time;

	for (unsigned i = 0; operation->together && i < operation->afters; i++)
		if (operation->after[i]->time > time)
			time = operation->after[i]->time;
	return time;
}

void operation_wait(struct operation *operation)
{
	pthread_mutex_lock(&lock);
	while (!operation_done(operation))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

static bool may_run(const struct operation *operation)
{
	for (unsigned i = 0; i < operation->afters; i++)
		if (!operation_done(operation->after[i]))
			return false;
	return !operation->running;
}

/* -- running: all with the lock held ----------------------------------------------------------- */

static void retire_operation(struct sim_stream *stream)
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

/* The head begins when it is submitted and all before it is done. */
static uint64_t start_of(const struct sim_stream *stream)
{
	const struct operation *operation = stream->head;
	uint64_t start = operation->submitted > stream->time ? operation->submitted : stream->time;

	for (unsigned i = 0; i < operation->afters; i++) {
		uint64_t time = operation_time(operation->after[i]);

		start = time > start ? time : start;
	}
	return start;
}

/* Runs the head. pre: may_run. The lock is released meanwhile. */
static void run_head(struct sim_stream *stream)
{
	struct operation *operation = stream->head;

	operation->running = true;
	time_begin(start_of(stream));
	pthread_mutex_unlock(&lock);
	bool runs = operation->run && (operation->always || !atomic_load(&stream->context->status));
	if (runs)
		guard_run(stream->context, operation->run, operation->data);
	free(operation->data);
	uint64_t time = time_end(!runs);
	pthread_mutex_lock(&lock);
	operation->time = stream->time = time;
	operation->done = true;
	stream->queued -= operation->counted;
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
	retire_operation(stream);
	pthread_mutex_unlock(&lock);
	return NULL;
}

/* These threads block the program's signals, but not signals that a faulty kernel raises. */
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

/* -- submitting -------------------------------------------------------------------------------- */

static bool is_pending(struct operation *operation)
{
	return operation && !operation_done(operation);
}

static bool waits_for(const struct sim_stream *stream, const struct sim_stream *other)
{
	const struct sim_stream *legacy = stream->context->legacy;

	if (stream == other || !is_pending(other->last))
		return false;
	return stream == legacy ? !other->non_blocking : other == legacy && !stream->non_blocking;
}

static struct operation *operation_new(struct sim_stream *stream, struct operation *extra)
{
	unsigned count = is_pending(extra);

	for (struct sim_stream *other = stream->context->streams; other; other = other->next)
		count += waits_for(stream, other);
	struct operation *operation = calloc(1, sizeof(*operation) + count * sizeof(*operation->after));
	if (!operation)
		return NULL;
	operation->references = 3; /* the queue, `last`, the caller */
	if (is_pending(extra))
		operation->after[operation->afters++] = operation_get(extra);
	for (struct sim_stream *other = stream->context->streams; other; other = other->next)
		if (waits_for(stream, other))
			operation->after[operation->afters++] = operation_get(other->last);
	return operation;
}

/* Appends it. The caller gets a reference. NULL: see *status, and `data` is freed. */
static struct operation *append_operation(struct sim_stream *stream, const struct operation *what,
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
	operation->counted = what->counted;
	operation->submitted = time_now();
	stream->queued += what->counted;
	if (stream->head)
		stream->end->next = operation;
	else
		stream->head = operation;
	stream->end = operation;
	operation_put(stream->last);
	stream->last = operation;
	return operation;
}

/* Makes sure that a thread runs it. pre: the lock is held. */
static void make_run(struct sim_stream *stream, struct operation *operation, bool wait)
{
	bool inline_now = wait && stream->head == operation && may_run(operation);

	/* If no thread can start, the caller runs the stream itself, in order. */
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
		retire_operation(stream);
		return;
	}
	pthread_cond_broadcast(&changed);
	while (wait && !operation->done)
		pthread_cond_wait(&changed, &lock);
}

static enum sim_status settle_stream(struct sim_stream *stream)
{
	uint64_t room;

	if (!stream->lazy) /* only its own thread submits to a lazy stream */
		return SIM_OK;
	enum sim_status status = room_take(stream->context, SIM_ROOM_STREAM, 0, &room);
	if (!status) {
		stream->room = room;
		stream->lazy = false;
	}
	return status;
}

/* pre: the lock is held; it is released meanwhile. */
static void wait_for_room(struct sim_stream *stream)
{
	const unsigned most = sim_config()->queue;

	struct sim_context *context = stream->context;
	const uint64_t id = context->id;

	if (!most || stream->queued < most)
		return;
	context->blocked++;
	while (sim_stream_alive(stream) && stream->queued >= most)
		pthread_cond_wait(&changed, &lock);
	if (context->id == id) /* else the context has ended meanwhile */
		context->blocked--;
	pthread_cond_broadcast(&changed);
}

void sim_context_unblocked(struct sim_context *context)
{
	const uint64_t id = context->id;

	pthread_mutex_lock(&lock);
	while (context->id == id && context->blocked)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

void stream_has_room(struct sim_stream *stream)
{
	jitter(4); /* during the launch of a graph */
	pthread_mutex_lock(&lock);
	wait_for_room(stream);
	pthread_mutex_unlock(&lock);
}

enum sim_status stream_submit(struct sim_stream *stream, enum sim_node_type type, work_function run,
                              void *data, bool wait, bool always)
{
	/* NONE is part of a larger piece of work, or not work of the device. */
	struct operation what = {
	    .run = run, .data = data, .always = always, .counted = type != SIM_NODE_NONE};
	enum sim_status status;

	if (what.counted)
		jitter(4);
	if (capture_take(stream, type, run, data, &status))
		return status;
	if ((status = settle_stream(stream))) {
		free(data);
		return status;
	}
	pthread_mutex_lock(&lock);
	if (what.counted)
		wait_for_room(stream);
	struct operation *operation = append_operation(stream, &what, NULL, &status);
	struct sim_context *context = operation ? stream->context : NULL;
	if (operation)
		make_run(stream, operation, wait);
	pthread_mutex_unlock(&lock);
	operation_put(operation);
	return status || !wait ? status : (enum sim_status)atomic_load(&context->status);
}

static struct operation *mark_after(struct sim_stream *stream, struct operation *extra,
                                    enum sim_status *status)
{
	struct operation what = {0};

	pthread_mutex_lock(&lock);
	wait_for_room(stream);
	struct operation *operation = append_operation(stream, &what, extra, status);
	if (operation)
		/* An operation without work is done at once if none is before it. */
		make_run(stream, operation, stream->head == operation && may_run(operation));
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

/* -- the interface ----------------------------------------------------------------------------- */

enum sim_status sim_stream_create(struct sim_context *context, bool non_blocking, int priority,
                                  struct sim_stream **out)
{
	uint64_t room;

	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	enum sim_status status = room_take(context, SIM_ROOM_STREAM, 0, &room);
	if (!status && (status = stream_create(context, non_blocking, priority, room, out)))
		room_give(context, context->id, room);
	return status;
}

enum sim_status stream_create(struct sim_context *context, bool non_blocking, int priority, uint64_t room,
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
	stream->room = room;
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
	retire_operation(stream);
}

enum sim_status sim_stream_destroy(struct sim_stream *stream)
{
	capture_stream_gone(stream);
	pthread_mutex_lock(&lock);
	bool good = sim_stream_alive(stream) && stream != stream->context->legacy;
	struct sim_context *context = good ? stream->context : NULL;
	uint64_t id = good ? context->id : 0, room = good ? stream->room : 0;
	if (good)
		close_stream(stream);
	pthread_mutex_unlock(&lock);
	room_give(context, id, room);
	return good ? SIM_OK : SIM_INVALID;
}

void stream_close(struct sim_stream *stream, uint64_t context_id)
{
	struct sim_context *context = NULL;
	uint64_t room = 0;

	pthread_mutex_lock(&lock);
	if (sim_stream_alive(stream) && stream->context->id == context_id) {
		context = stream->context;
		room = stream->room;
		close_stream(stream);
	}
	pthread_mutex_unlock(&lock);
	room_give(context, context_id, room);
}

void stream_be_lazy(struct sim_stream *stream)
{
	stream->lazy = sim_config()->room[SIM_ROOM_STREAM];
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
	wait_for_room(stream);
	if (sim_stream_alive(stream)) {
		status = (enum sim_status)atomic_load(&stream->context->status);
		/* The default stream is idle when the streams that it orders itself with are. */
		bool busy = is_pending(stream->last);
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

struct operation *stream_mark_context(struct sim_context *context)
{
	unsigned count = 0;

	pthread_mutex_lock(&lock);
	for (struct sim_stream *stream = context->streams; stream; stream = stream->next)
		count += is_pending(stream->last);
	struct operation *mark = calloc(1, sizeof(*mark) + count * sizeof(*mark->after));
	if (mark) {
		mark->references = 1;
		mark->together = true;
		mark->time = time_now();
	}
	for (struct sim_stream *stream = context->streams; stream && mark; stream = stream->next)
		if (mark->afters < count && is_pending(stream->last)) /* some have ended since */
			mark->after[mark->afters++] = operation_get(stream->last);
	pthread_mutex_unlock(&lock);
	return mark;
}

unsigned stream_pending(struct sim_context *context, struct operation **out, unsigned room)
{
	unsigned count = 0;

	pthread_mutex_lock(&lock);
	for (struct sim_stream *stream = context->streams; stream && count < room; stream = stream->next)
		if (is_pending(stream->last))
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
			if (is_pending(s->last))
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

/* -- start and end of contexts ----------------------------------------------------------------- */

enum sim_status stream_open(struct sim_context *context)
{
	return stream_create(context, false, 0, 0, &context->legacy);
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

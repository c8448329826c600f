/* Events: a name for the latest operation that was recorded under it. */
#include "core_internal.h"

struct sim_event {
	struct object object;
	struct sim_context *context;
	struct sim_event *next;
	bool timing;
	uint64_t room, context_id, stream;
	struct operation *mark; /* one reference; NULL: never recorded */
	void *capture_mark;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_event *events;

enum sim_status sim_event_create(struct sim_context *context, bool timing, struct sim_event **out)
{
	if (!sim_context_alive(context))
		return SIM_BAD_CONTEXT;
	struct sim_event *event = object_new(OBJECT_EVENT, sizeof(*event));
	if (!event)
		return SIM_NO_HOST_MEMORY;
	enum sim_status status = room_take(context, SIM_ROOM_EVENT, 0, &event->room);
	if (status) {
		object_delete(event);
		return status;
	}
	event->context = context;
	event->context_id = context->id;
	event->timing = timing;
	pthread_mutex_lock(&lock);
	event->next = events;
	events = event;
	pthread_mutex_unlock(&lock);
	*out = event;
	return SIM_OK;
}

static void unlink_event(struct sim_event **link)
{
	struct sim_event *event = *link;

	*link = event->next;
	operation_put(event->mark);
	capture_mark_free(event->capture_mark);
	object_delete(event);
}

enum sim_status sim_event_destroy(struct sim_event *event)
{
	enum sim_status status = SIM_INVALID;
	struct sim_context *context = NULL;
	uint64_t id = 0, room = 0;

	pthread_mutex_lock(&lock);
	for (struct sim_event **link = &events; *link && status; link = &(*link)->next) {
		if (*link == event) {
			context = event->context;
			id = event->context_id;
			room = event->room;
			unlink_event(link);
			status = SIM_OK;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	room_give(context, id, room);
	return status;
}

void event_context_gone(struct sim_context *context)
{
	pthread_mutex_lock(&lock);
	for (struct sim_event **link = &events; *link;) {
		if ((*link)->context == context)
			unlink_event(link);
		else
			link = &(*link)->next;
	}
	pthread_mutex_unlock(&lock);
}

bool sim_event_alive(struct sim_event *event)
{
	return object_is(event, OBJECT_EVENT);
}

struct sim_context *sim_event_context(struct sim_event *event)
{
	return event->context;
}

uint64_t sim_event_stream(struct sim_event *event)
{
	return event->stream;
}

void **event_capture_mark(struct sim_event *event)
{
	return &event->capture_mark;
}

static void stand_for(struct sim_event *event, struct operation *mark, uint64_t stream)
{
	pthread_mutex_lock(&lock);
	struct operation *before = event->mark;
	event->mark = mark;
	event->stream = stream;
	pthread_mutex_unlock(&lock);
	operation_put(before);
}

enum sim_status sim_event_record(struct sim_event *event, struct sim_stream *stream)
{
	enum sim_status status;

	if (!sim_event_alive(event) || !sim_stream_alive(stream) ||
	    sim_stream_context(stream) != event->context)
		return SIM_INVALID;
	if (capture_record(event, stream, &status))
		return status;
	struct operation *mark = stream_mark(stream, &status);
	if (mark)
		stand_for(event, mark, sim_stream_id(stream));
	return status;
}

enum sim_status sim_event_record_context(struct sim_event *event)
{
	if (!sim_event_alive(event))
		return SIM_INVALID;
	enum sim_status status = capture_refuse_context(event->context);
	if (status)
		return status;
	struct operation *mark = stream_mark_context(event->context);
	if (!mark)
		return SIM_NO_HOST_MEMORY;
	capture_forget(event);
	stand_for(event, mark, 0);
	return SIM_OK;
}

/* The operation that the event stands for, with a reference. NULL: never recorded. */
static struct operation *mark_of(struct sim_event *event)
{
	pthread_mutex_lock(&lock);
	struct operation *mark = event->mark ? operation_get(event->mark) : NULL;
	pthread_mutex_unlock(&lock);
	return mark;
}

enum sim_status sim_stream_wait(struct sim_stream *stream, struct sim_event *event)
{
	if (!sim_event_alive(event) || !sim_stream_alive(stream))
		return SIM_INVALID;
	struct operation *mark = mark_of(event);
	enum sim_status status;
	if (!capture_wait(stream, event, mark, &status))
		status = mark ? stream_after(stream, mark) : SIM_OK;
	operation_put(mark);
	return status;
}

enum sim_status sim_event_query(struct sim_event *event)
{
	if (!sim_event_alive(event))
		return SIM_INVALID;
	struct operation *mark = mark_of(event);
	enum sim_status status = sim_context_status(event->context);
	if (!status && mark && !operation_done(mark))
		status = SIM_NOT_READY;
	operation_put(mark);
	return status;
}

enum sim_status sim_event_synchronize(struct sim_event *event)
{
	if (!sim_event_alive(event))
		return SIM_INVALID;
	struct operation *mark = mark_of(event);
	if (mark)
		operation_wait(mark);
	operation_put(mark);
	return sim_context_status(event->context);
}

enum sim_status sim_event_elapsed(struct sim_event *start, struct sim_event *end, float *milliseconds)
{
	if (!sim_event_alive(start) || !sim_event_alive(end) || !start->timing || !end->timing)
		return SIM_INVALID;
	struct operation *from = mark_of(start), *to = mark_of(end);
	enum sim_status status = from && to ? SIM_OK : SIM_INVALID;
	if (!status && (!operation_done(from) || !operation_done(to)))
		status = SIM_NOT_READY;
	if (!status)
		*milliseconds = (float)((double)(int64_t)(operation_time(to) - operation_time(from)) / 1e6);
	operation_put(from);
	operation_put(to);
	return status;
}

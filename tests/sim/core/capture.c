/*
 * Stream capture: work submitted to a stream becomes nodes of a graph. CUDA defines which calls a
 * capture forbids (cuThreadExchangeStreamCaptureMode). Some of those also invalidate the capture,
 * as measured on an H200 with driver 580.159.
 */
#include <stdlib.h>
#include <string.h>

#include "core_internal.h"

struct capture {
	struct capture *next;
	uint64_t id, thread;
	enum sim_capture_mode mode;
	struct sim_stream *origin;
	struct sim_graph *graph;
	bool invalid;
};

struct member { /* a stream in a capture, and the nodes before its next node */
	struct member *next;
	struct sim_stream *stream;
	struct capture *capture;
	struct sim_node **after;
	size_t count;
};

struct mark { /* an event that was last recorded in a capture */
	uint64_t capture;
	size_t count;
	struct sim_node *after[];
};

static atomic_uint alive; /* number of captures: at 0 every check here is cheap */
static struct capture *captures;
static struct member *members;

static __thread int thread_mode;
static __thread uint64_t thread_id;
static __thread struct {
	bool on;
	struct sim_spot spot;
	struct sim_node *made;
} recording; /* sim_node_begin */

static uint64_t this_thread(void)
{
	if (!thread_id)
		thread_id = sim_next_id();
	return thread_id;
}

/* -- streams that capture: all with the lock held ---------------------------------------------- */

static struct member *member_of(const struct sim_stream *stream)
{
	struct member *member = members;

	while (member && member->stream != stream)
		member = member->next;
	return member;
}

static struct capture *capture_of(uint64_t id)
{
	struct capture *capture = captures;

	while (capture && capture->id != id)
		capture = capture->next;
	return capture;
}

/* True if a blocking stream of the context captures: then its default stream cannot be used. */
static bool meets_blocking_capture(struct sim_stream *stream, bool invalidate)
{
	struct sim_context *context = sim_stream_context(stream);
	bool found = false;

	if (stream != sim_stream_default(context))
		return false;
	for (struct member *member = members; member; member = member->next) {
		if (sim_stream_context(member->stream) != context || sim_stream_non_blocking(member->stream))
			continue;
		found = true;
		member->capture->invalid |= invalidate;
	}
	return found;
}

/* The rule of cuThreadExchangeStreamCaptureMode. Captures that forbid the call are invalidated. */
static enum sim_status refuse_unsafe(void)
{
	bool found = false;

	if (thread_mode != SIM_CAPTURE_GLOBAL && thread_mode != SIM_CAPTURE_THREAD_LOCAL)
		return SIM_OK;
	for (struct capture *capture = captures; capture; capture = capture->next) {
		bool forbids = capture->thread == this_thread()
		                   ? capture->mode != SIM_CAPTURE_RELAXED
		                   : thread_mode == SIM_CAPTURE_GLOBAL && capture->mode == SIM_CAPTURE_GLOBAL;

		capture->invalid |= forbids;
		found |= forbids;
	}
	return found ? SIM_CAPTURE_UNSUPPORTED : SIM_OK;
}

static enum sim_status refuse_node(struct sim_stream *stream)
{
	struct member *member = member_of(stream);

	if (meets_blocking_capture(stream, true))
		return SIM_CAPTURE_IMPLICIT;
	if (!member)
		return SIM_OK;
	member->capture->invalid = true;
	return SIM_CAPTURE_UNSUPPORTED;
}

static void member_delete(struct member **link)
{
	struct member *member = *link;

	*link = member->next;
	free(member->after);
	free(member);
}

static enum sim_status member_new(struct sim_stream *stream, struct capture *capture, struct member **out)
{
	struct member *member = calloc(1, sizeof(*member));

	if (!member)
		return SIM_NO_HOST_MEMORY;
	*member = (struct member){.next = members, .stream = stream, .capture = capture};
	members = member;
	*out = member;
	return SIM_OK;
}

/* Adds nodes that the next node comes after. */
static enum sim_status member_after(struct member *member, struct sim_node *const *nodes, size_t count)
{
	struct sim_node **after =
	    realloc(member->after, (member->count + count + 1) * sizeof(struct sim_node *));

	if (!after)
		return SIM_NO_HOST_MEMORY;
	member->after = after;
	for (size_t i = 0; i < count; i++) {
		bool known = false;

		for (size_t j = 0; j < member->count; j++)
			known |= after[j] == nodes[i];
		if (!known)
			after[member->count++] = nodes[i];
	}
	return SIM_OK;
}

static void capture_delete(struct capture *capture)
{
	for (struct member **link = &members; *link;) {
		if ((*link)->capture == capture)
			member_delete(link);
		else
			link = &(*link)->next;
	}
	struct capture **link = &captures;
	while (*link != capture)
		link = &(*link)->next;
	*link = capture->next;
	free(capture);
	atomic_fetch_sub(&alive, 1);
}

/* -- work becomes nodes ------------------------------------------------------------------------ */

static struct sim_spot spot_of(const struct member *member)
{
	return (struct sim_spot){member->capture->graph, member->after, member->count};
}

static enum sim_status member_usable(const struct member *member)
{
	if (!member)
		return SIM_CAPTURE_STATE;
	return member->capture->invalid ? SIM_CAPTURE_INVALIDATED : SIM_OK;
}

/* The stream's next node comes after this one. */
static enum sim_status set_last_node(struct member *member, enum sim_status status, struct sim_node *node)
{
	if (status)
		return status;
	member->count = 0;
	return member_after(member, &node, 1);
}

static enum sim_status add_work_node(struct sim_stream *stream, struct member *member,
                                     enum sim_node_type type, work_function run, void *data)
{
	struct sim_context *context = sim_stream_context(stream);
	struct sim_node *node = NULL;

	if (recording.on)
		return node_work(&recording.spot, context, type, run, data, &recording.made);
	if (type == SIM_NODE_NONE)
		return refuse_node(stream);
	if (member->capture->invalid)
		return SIM_CAPTURE_INVALIDATED;
	struct sim_spot spot = spot_of(member);
	enum sim_status status = node_work(&spot, context, type, run, data, &node);
	return set_last_node(member, status, node);
}

bool capture_take(struct sim_stream *stream, enum sim_node_type type, work_function run, void *data,
                  enum sim_status *status)
{
	if (!recording.on && !atomic_load(&alive))
		return false;
	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	bool taken = recording.on || member;
	if (taken) {
		*status = add_work_node(stream, member, type, run, data);
	} else if (meets_blocking_capture(stream, true)) {
		*status = SIM_CAPTURE_IMPLICIT;
		taken = true;
	}
	pthread_mutex_unlock(&sim_graph_lock);
	if (taken && *status)
		free(data);
	return taken;
}

bool capture_records(struct sim_stream *stream)
{
	return recording.on || sim_capturing(stream);
}

void sim_node_begin(const struct sim_spot *spot)
{
	recording.on = true;
	recording.spot = *spot;
	recording.made = NULL;
}

enum sim_status sim_node_end(struct sim_node **out)
{
	recording.on = false;
	if (!recording.made)
		return SIM_INVALID;
	*out = recording.made;
	return SIM_OK;
}

enum sim_status sim_capture_alloc(struct sim_stream *stream, uint64_t bytes, uint64_t *address)
{
	struct sim_node *node = NULL;

	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	enum sim_status status = member_usable(member);
	if (!status) {
		struct sim_spot spot = spot_of(member);
		int device = sim_context_device(sim_stream_context(stream));

		status = node_alloc(&spot, device, 0, bytes, address, &node);
		status = set_last_node(member, status, node);
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_capture_free(struct sim_stream *stream, uint64_t address)
{
	struct sim_node *node = NULL;

	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	enum sim_status status = member_usable(member);
	if (!status) {
		struct sim_spot spot = spot_of(member);

		status = node_free(&spot, address, &node);
		status = set_last_node(member, status, node);
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_capture_external(struct sim_stream *stream, enum sim_node_type record_or_wait,
                                     struct sim_event *event)
{
	struct sim_node *node = NULL;

	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	enum sim_status status = member_usable(member);
	if (!status) {
		struct sim_spot spot = spot_of(member);

		status = node_event(&spot, record_or_wait, event, &node);
		status = set_last_node(member, status, node);
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

/* -- events carry a capture from stream to stream ---------------------------------------------- */

void capture_mark_free(void *mark)
{
	free(mark);
}

static enum sim_status mark_event(struct sim_event *event, const struct member *member)
{
	struct mark *made = malloc(sizeof(*made) + member->count * sizeof(struct sim_node *));
	void **place = event_capture_mark(event);

	if (!made)
		return SIM_NO_HOST_MEMORY;
	made->capture = member->capture->id;
	made->count = member->count;
	if (member->count)
		memcpy(made->after, member->after, member->count * sizeof(struct sim_node *));
	free(*place);
	*place = made;
	return SIM_OK;
}

bool capture_record(struct sim_event *event, struct sim_stream *stream, enum sim_status *status)
{
	void **place = event_capture_mark(event);

	if (!atomic_load(&alive) && !*place)
		return false;
	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	bool taken = true;
	if (member) {
		*status = member->capture->invalid ? SIM_CAPTURE_INVALIDATED : mark_event(event, member);
	} else if (meets_blocking_capture(stream, true)) {
		*status = SIM_CAPTURE_IMPLICIT;
	} else {
		free(*place);
		*place = NULL;
		taken = false;
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return taken;
}

/* A stream waits for captured work, and so joins the capture. */
static enum sim_status join_capture(struct sim_stream *stream, struct member *member, const struct mark *mark)
{
	struct capture *capture = capture_of(mark->capture);
	enum sim_status status = SIM_OK;

	if (!capture || capture->invalid)
		return SIM_INVALID;
	if (member && member->capture != capture) {
		capture->invalid = member->capture->invalid = true;
		return SIM_CAPTURE_MERGE;
	}
	if (!member && stream == sim_stream_default(sim_stream_context(stream))) {
		capture->invalid = true;
		return SIM_CAPTURE_UNSUPPORTED;
	}
	if (!member)
		status = member_new(stream, capture, &member);
	return status ? status : member_after(member, mark->after, mark->count);
}

bool capture_wait(struct sim_stream *stream, struct sim_event *event, bool recorded, enum sim_status *status)
{
	void **place = event_capture_mark(event);

	if (!atomic_load(&alive) && !*place)
		return false;
	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	bool taken = true;
	if (member && member->capture->invalid) {
		*status = SIM_CAPTURE_INVALIDATED;
	} else if (meets_blocking_capture(stream, true)) {
		*status = SIM_CAPTURE_IMPLICIT;
	} else if (*place) {
		*status = join_capture(stream, member, *place);
	} else if (member) { /* a graph cannot wait for work outside of it */
		member->capture->invalid |= recorded;
		*status = recorded ? SIM_CAPTURE_ISOLATION : SIM_OK;
	} else {
		taken = false;
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return taken;
}

/* -- begin and end ----------------------------------------------------------------------------- */

static enum sim_status begin_capture(struct sim_stream *stream, enum sim_capture_mode mode,
                                     struct sim_graph *graph, const struct sim_spot *spot)
{
	struct capture *capture;
	struct member *member = member_of(stream);

	if (member)
		return SIM_CAPTURE_STATE;
	if (meets_blocking_capture(stream, true))
		return SIM_CAPTURE_IMPLICIT;
	if (stream == sim_stream_default(sim_stream_context(stream)))
		return SIM_CAPTURE_UNSUPPORTED;
	if (!(capture = malloc(sizeof(*capture))) || member_new(stream, capture, &member)) {
		free(capture);
		return SIM_NO_HOST_MEMORY;
	}
	*capture = (struct capture){.next = captures,
	                            .id = sim_next_id(),
	                            .thread = this_thread(),
	                            .mode = mode,
	                            .origin = stream,
	                            .graph = graph};
	captures = capture;
	atomic_fetch_add(&alive, 1);
	return spot ? member_after(member, spot->after, spot->count) : SIM_OK;
}

enum sim_status sim_capture_begin(struct sim_stream *stream, enum sim_capture_mode mode,
                                  const struct sim_spot *spot)
{
	struct sim_graph *graph = spot ? spot->graph : NULL;
	enum sim_status status = spot ? SIM_OK : sim_graph_create(&graph);

	if (status)
		return status;
	pthread_mutex_lock(&sim_graph_lock);
	status = sim_graph_alive(graph) ? begin_capture(stream, mode, graph, spot) : SIM_INVALID;
	if (status && !spot)
		graph_delete(graph);
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

static enum sim_status capture_result(const struct capture *capture, const struct member *origin)
{
	if (capture->mode != SIM_CAPTURE_RELAXED && capture->thread != this_thread())
		return SIM_CAPTURE_WRONG_THREAD;
	if (capture->invalid)
		return SIM_CAPTURE_INVALIDATED;
	for (const struct member *member = members; member; member = member->next)
		if (member->capture == capture &&
		    !graph_leads_to(capture->graph, member->after, member->count, origin->after,
		                    origin->count))
			return SIM_CAPTURE_UNJOINED;
	return SIM_OK;
}

/* At each end but one in another stream. The capture ends; without success its graph, too. */
enum sim_status sim_capture_end(struct sim_stream *stream, struct sim_graph **out)
{
	enum sim_status status = SIM_CAPTURE_STATE;

	*out = NULL;
	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	struct capture *capture = member ? member->capture : NULL;
	if (capture && capture->origin != stream) {
		capture->invalid = true;
		status = SIM_CAPTURE_UNMATCHED;
	} else if (capture) {
		status = capture_result(capture, member);
		if (!status)
			*out = capture->graph;
		else if (sim_graph_alive(capture->graph))
			graph_delete(capture->graph);
		capture_delete(capture);
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

/* A stream ends: so does its own capture, or its work can join no more. pre: the lock is held. */
static void leave_capture(struct member *member)
{
	struct capture *capture = member->capture;

	if (capture->origin == member->stream) {
		if (sim_graph_alive(capture->graph))
			graph_delete(capture->graph);
		capture_delete(capture);
		return;
	}
	struct member **link = &members;
	while (*link != member)
		link = &(*link)->next;
	member_delete(link);
	capture->invalid = true;
}

void capture_stream_gone(struct sim_stream *stream)
{
	if (!atomic_load(&alive))
		return;
	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	if (member)
		leave_capture(member);
	pthread_mutex_unlock(&sim_graph_lock);
}

void capture_context_gone(struct sim_context *context)
{
	if (!atomic_load(&alive))
		return;
	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = members;
	while (member) {
		bool here = sim_stream_context(member->stream) == context;

		if (here)
			leave_capture(member);
		member = here ? members : member->next; /* more members than this one may have ended */
	}
	pthread_mutex_unlock(&sim_graph_lock);
}

/* -- queries ----------------------------------------------------------------------------------- */

bool sim_capturing(struct sim_stream *stream)
{
	if (!atomic_load(&alive))
		return false;
	pthread_mutex_lock(&sim_graph_lock);
	bool found = member_of(stream);
	pthread_mutex_unlock(&sim_graph_lock);
	return found;
}

/* Invalidates all captures of the context. pre: the lock is held. */
static bool break_captures(struct sim_context *context)
{
	bool found = false;

	for (struct member *member = members; member; member = member->next) {
		if (sim_stream_context(member->stream) == context) {
			member->capture->invalid = true;
			found = true;
		}
	}
	return found;
}

enum sim_status capture_refuse_context(struct sim_context *context)
{
	if (!atomic_load(&alive))
		return SIM_OK;
	pthread_mutex_lock(&sim_graph_lock);
	bool found = break_captures(context);
	pthread_mutex_unlock(&sim_graph_lock);
	return found ? SIM_CAPTURE_UNSUPPORTED : SIM_OK;
}

void capture_forget(struct sim_event *event)
{
	void **place = event_capture_mark(event);

	pthread_mutex_lock(&sim_graph_lock);
	free(*place);
	*place = NULL;
	pthread_mutex_unlock(&sim_graph_lock);
}

enum sim_status sim_capture_query(struct sim_stream *stream, struct sim_capture_info *out)
{
	pthread_mutex_lock(&sim_graph_lock);
	const struct member *member = member_of(stream);
	enum sim_status status = meets_blocking_capture(stream, false) ? SIM_CAPTURE_IMPLICIT : SIM_OK;
	if (!status)
		*out = (struct sim_capture_info){.status = SIM_CAPTURE_NONE};
	if (!status && member)
		*out = (struct sim_capture_info){
		    member->capture->invalid ? SIM_CAPTURE_ENDED_BY_ERROR : SIM_CAPTURE_ACTIVE,
		    member->capture->id, member->capture->graph, member->after, member->count};
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_capture_depend(struct sim_stream *stream, struct sim_node *const *nodes, size_t count,
                                   bool replace)
{
	/* Copy: the program may pass the array that it got from sim_capture_query. */
	struct sim_node **copy = calloc(count + 1, sizeof(struct sim_node *));

	if (!copy)
		return SIM_NO_HOST_MEMORY;
	pthread_mutex_lock(&sim_graph_lock);
	struct member *member = member_of(stream);
	enum sim_status status = member_usable(member);
	for (size_t i = 0; i < count && !status; i++) {
		copy[i] = nodes[i];
		status = object_is(nodes[i], OBJECT_NODE) ? SIM_OK : SIM_INVALID;
	}
	if (!status && replace)
		member->count = 0;
	if (!status)
		status = member_after(member, copy, count);
	pthread_mutex_unlock(&sim_graph_lock);
	free(copy);
	return status;
}

int sim_capture_exchange_mode(int mode)
{
	int before = thread_mode;

	thread_mode = mode;
	return before;
}

/* Tests are told of a call that would break a capture, if there were one now. */
static void tell_strict(void)
{
	struct sim_entered entered = sim_entered();

	if (sim_test_strict && thread_mode != SIM_CAPTURE_RELAXED)
		sim_test_strict(entered.symbol, entered.caller);
}

enum sim_status sim_capture_unsafe(void)
{
	tell_strict();
	if (!atomic_load(&alive))
		return SIM_OK;
	pthread_mutex_lock(&sim_graph_lock);
	enum sim_status status = refuse_unsafe();
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_capture_refuse(struct sim_stream *stream)
{
	if (!atomic_load(&alive))
		return SIM_OK;
	pthread_mutex_lock(&sim_graph_lock);
	enum sim_status status = refuse_node(stream);
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_capture_asks(struct sim_stream *stream)
{
	enum sim_status status = sim_capture_refuse(stream);

	return status ? status : sim_capture_unsafe();
}

enum sim_status sim_capture_asks_context(struct sim_context *context)
{
	enum sim_status status = SIM_OK;

	if (!atomic_load(&alive))
		return SIM_OK;
	pthread_mutex_lock(&sim_graph_lock);
	status = break_captures(context) ? SIM_CAPTURE_UNSUPPORTED : refuse_unsafe();
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

enum sim_status sim_capture_asks_event(struct sim_event *event)
{
	enum sim_status status;
	void **place = event_capture_mark(event);

	tell_strict();
	if (!atomic_load(&alive) && !*place)
		return SIM_OK;
	pthread_mutex_lock(&sim_graph_lock);
	const struct mark *mark = *place;
	struct capture *capture = mark ? capture_of(mark->capture) : NULL;
	if (capture && !capture->invalid) {
		capture->invalid = true;
		status = SIM_CAPTURE_EVENT;
	} else {
		status = mark ? SIM_INVALID : refuse_unsafe();
	}
	pthread_mutex_unlock(&sim_graph_lock);
	return status;
}

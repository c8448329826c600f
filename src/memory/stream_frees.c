#include "stream_frees.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "capture.h"
#include "contexts.h"
#include "quiesce.h"

/* The frees of one stream, or of no stream. */
struct spill_stream_free_list {
	struct spill_stream_order order;
	int device;          /* of its context */
	uint64_t generation; /* of the last free (context_end.h) */
	uint64_t turn;       /* of the last mark that was tried for it; 0: none */
	struct spill_free_ranges ranges[SPILL_RANGE_KINDS];
	struct spill_stream_free_list *next;
};

static _Atomic uint64_t last_number;

static struct spill_stream_free_list *find_list(const struct spill_stream_frees *frees,
                                                const struct spill_stream_order *order)
{
	struct spill_stream_free_list *list = frees->lists;
	while (list && (list->order.stream != order->stream || list->order.context != order->context))
		list = list->next;
	return list;
}

static bool is_empty(const struct spill_stream_free_list *list)
{
	return !list->ranges[SPILL_SMALL_RANGES].bytes && !list->ranges[SPILL_LARGE_RANGES].bytes;
}

struct spill_free_ranges *spill_stream_frees_of(const struct spill_stream_frees *frees,
                                                const struct spill_stream_order *order,
                                                enum spill_range_kind kind)
{
	struct spill_stream_free_list *list = find_list(frees, order);
	return list ? &list->ranges[kind] : NULL;
}

/* An empty list can be another stream's. */
static struct spill_stream_free_list *make_list(struct spill_stream_frees *frees)
{
	struct spill_stream_free_list *list = frees->lists;
	while (list && !is_empty(list))
		list = list->next;
	if (!list && (list = calloc(1, sizeof(*list))) != NULL) {
		list->next = frees->lists;
		frees->lists = list;
	}
	return list;
}

struct spill_free_ranges *spill_stream_frees_make(struct spill_stream_frees *frees,
                                                  const struct spill_stream_order *order, int device,
                                                  enum spill_range_kind kind)
{
	struct spill_stream_free_list *list = find_list(frees, order);
	if (!list)
		list = make_list(frees);
	if (!list)
		return NULL;
	list->order = *order;
	list->device = device;
	list->generation = spill_context_generation();
	return &list->ranges[kind];
}

uint64_t spill_stream_frees_count(void)
{
	return ++last_number;
}

uint64_t spill_stream_frees_number(void)
{
	return atomic_load(&last_number);
}

static void settle(struct spill_stream_frees *frees, struct spill_stream_free_list *list, uint64_t number)
{
	for (int kind = 0; kind < SPILL_RANGE_KINDS; kind++)
		spill_free_ranges_settle(&list->ranges[kind], &frees->settled[kind], number);
}

void spill_stream_frees_done(struct spill_stream_frees *frees, const struct spill_stream_order *order,
                             uint64_t number)
{
	for (struct spill_stream_free_list *list = frees->lists; list; list = list->next)
		if ((!order->context || list->order.context == order->context) &&
		    (!order->stream || list->order.stream == order->stream))
			settle(frees, list, number);
}

void spill_stream_frees_context_ended(struct spill_stream_frees *frees, const struct spill_context_end *end)
{
	for (struct spill_stream_free_list *list = frees->lists; list; list = list->next)
		if (spill_context_end_covers(end, end->backend, list->device, list->order.context,
		                             list->generation))
			settle(frees, list, UINT64_MAX);
}

void spill_stream_frees_stream_ended(struct spill_stream_frees *frees, const void *stream)
{
	for (struct spill_stream_free_list *list = frees->lists; list; list = list->next)
		if (list->order.stream == stream)
			list->order.stream = NULL;
}

/* -- marks. pre: this thread has set frees->marking, and holds no lock ------------------------- */

/*
 * True: the mark has passed, or its context has ended. Its event is gone. While the context ends, the
 * event may not exist any more.
 */
static bool has_passed(const struct spill_backend *backend, const struct spill_free_mark *mark)
{
	struct spill_context_hold hold;
	if (!spill_context_hold(&hold, backend, mark->device, mark->context, mark->generation))
		return false;
	bool ended = spill_contexts_birth(backend, mark->context) != mark->birth ||
	             spill_context_dead(backend, mark->device, mark->context, mark->generation);
	bool passed = ended || backend->events->passed(mark->device, mark->context, mark->event);
	if (passed && !ended)
		backend->events->destroy(mark->device, mark->context, mark->event);
	spill_context_release(&hold);
	return passed;
}

static bool place_mark(const struct spill_backend *backend, struct spill_free_mark *mark)
{
	struct spill_context_hold hold;
	if (!spill_context_hold(&hold, backend, mark->device, mark->context, 0))
		return false;
	mark->generation = spill_context_generation();
	mark->birth = spill_contexts_birth(backend, mark->context);
	mark->number = spill_stream_frees_number();
	bool placed = mark->birth && spill_quiesce_mark(backend, mark->device, mark->context, &mark->event);
	spill_context_release(&hold);
	return placed;
}

/*
 * The context of some frees. The contexts take turns. A context that is not known has ended, and its
 * frees need no mark. pre: locked
 */
static bool choose_context(struct spill_stream_frees *frees, const struct spill_backend *backend,
                           struct spill_free_mark *mark)
{
	struct spill_stream_free_list *chosen = NULL;
	for (struct spill_stream_free_list *list = frees->lists; list; list = list->next)
		if (!is_empty(list) && (!chosen || list->turn < chosen->turn) &&
		    spill_contexts_birth(backend, list->order.context))
			chosen = list;
	*mark = (struct spill_free_mark){0};
	if (!chosen)
		return false;
	chosen->turn = ++frees->turns;
	mark->context = (void *)chosen->order.context;
	mark->device = chosen->device;
	return true;
}

/* A mark breaks a capture, and so does a query of it. */
bool spill_stream_frees_look(struct spill_stream_frees *frees, const struct spill_backend *backend,
                             pthread_mutex_t *lock)
{
	if (spill_capture_any())
		return false;
	pthread_mutex_lock(lock);
	struct spill_free_mark mark = frees->mark;
	bool begin = !frees->marking && (mark.event || choose_context(frees, backend, &mark));
	frees->marking |= begin;
	pthread_mutex_unlock(lock);
	if (!begin)
		return false;
	bool passed = mark.event && has_passed(backend, &mark);
	bool placed = !mark.event && place_mark(backend, &mark);
	const struct spill_stream_order whole = {NULL, mark.context};
	pthread_mutex_lock(lock);
	if (passed) {
		spill_stream_frees_done(frees, &whole, mark.number);
		frees->mark = (struct spill_free_mark){0};
	} else if (placed) {
		frees->mark = mark;
	}
	frees->marking = false;
	pthread_mutex_unlock(lock);
	return passed;
}

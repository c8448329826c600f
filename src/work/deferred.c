#include "deferred.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "capture.h"
#include "contexts.h"
#include "peer.h"
#include "quiesce.h"

/* Placements that one poll looks at. Frees of a stream pass in order, so the oldest come first. */
#define POLLED 8

TAILQ_HEAD(placement_list, spill_placement);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_DEFERRED */
static struct placement_list waiting = TAILQ_HEAD_INITIALIZER(waiting);
/* a thread polls them, without the lock */
static struct placement_list polled = TAILQ_HEAD_INITIALIZER(polled);
static struct placement_list kept = TAILQ_HEAD_INITIALIZER(kept); /* no work uses them */
static _Atomic unsigned pending_count;                            /* of waiting and polled */

int spill_deferred_wait(const struct spill_backend *backend, int device, void *context)
{
	if (!context && backend->contexts && !backend->devices->current(&device, &context))
		return 0;
	return spill_peer_wait(backend, device, context);
}

void spill_deferred_add(struct spill_placement *placement)
{
	pthread_mutex_lock(&lock);
	TAILQ_INSERT_TAIL(&waiting, placement, pending);
	atomic_fetch_add(&pending_count, 1);
	pthread_mutex_unlock(&lock);
}

/* Takes the oldest placement of the vendor. The caller puts it back or ends it. */
static struct spill_placement *take_waiting(const struct spill_backend *backend)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = TAILQ_FIRST(&waiting);
	while (placement && placement->backend != backend)
		placement = TAILQ_NEXT(placement, pending);
	if (placement) {
		TAILQ_REMOVE(&waiting, placement, pending);
		TAILQ_INSERT_TAIL(&polled, placement, pending);
	}
	pthread_mutex_unlock(&lock);
	return placement;
}

/* The event's context has ended, and the event with it. */
static bool is_event_gone(const struct spill_placement *placement)
{
	return spill_context_dead(placement->backend, placement->event_device, placement->event_context,
	                          placement->event_generation);
}

/* While the event's context ends, the event may not exist any more. */
static bool hold_event(struct spill_context_hold *hold, const struct spill_placement *placement)
{
	return spill_context_hold(hold, placement->backend, placement->event_device, placement->event_context,
	                          placement->event_generation);
}

/* Waits for the context's work. False: it ends, or is dead. */
static bool wait_for(const struct spill_backend *backend, int device, void *context)
{
	struct spill_context_hold hold;
	if (!spill_context_hold(&hold, backend, device, context, 0))
		return false;
	bool done = !spill_deferred_wait(backend, device, context);
	spill_context_release(&hold);
	return done;
}

/* A mark behind the work that may use the placement. Another thread may end the context at this moment. */
static void place_mark(struct spill_placement *placement)
{
	const struct spill_backend *backend = placement->backend;
	int device = placement->event_device;
	void *context = placement->event_context, *event;
	struct spill_context_hold hold;
	if (!spill_context_hold(&hold, backend, device, context, 0))
		return;
	if (spill_quiesce_mark(backend, device, context, &event)) {
		pthread_mutex_lock(&lock);
		placement->event = event;
		placement->event_generation = spill_context_generation();
		pthread_mutex_unlock(&lock);
	}
	spill_context_release(&hold);
}

void spill_deferred_add_behind(struct spill_placement *placement)
{
	placement->event_generation = spill_context_generation();
	placement->order = (struct spill_stream_order){NULL, placement->event_context};
	place_mark(placement);
	spill_deferred_add(placement);
}

/*
 * The placement was freed behind all work of a context, and no mark could be placed then: something captured, or another
 * thread was in a long call. Now one may be. It is behind more work than it had to be. A wait could be without end, because
 * the work may wait for the host, so only a driver that has no marks is waited for. True: the work is done.
 */
static bool is_work_done(struct spill_placement *placement, bool may_wait)
{
	const struct spill_backend *backend = placement->backend;
	int device = placement->event_device;
	void *context = placement->event_context;
	if (!spill_contexts_birth(backend, context))
		return true; /* it has ended with the context */
	if (!(backend->devices->capabilities(device) & SPILL_CAN_MOVE))
		return may_wait && wait_for(backend, device, context);
	place_mark(placement);
	return false;
}

/*
 * May the placement be released? Without an event it has to wait for the owner, and only a caller
 * that may wait does so.
 */
static bool may_release(struct spill_placement *placement, bool may_wait)
{
	const struct spill_backend *backend = placement->backend;
	struct spill_context_hold hold;
	if (!placement->event && placement->event_context)
		return is_work_done(placement, may_wait);
	if (!placement->event)
		return may_wait && wait_for(backend, placement->device, placement->context);
	if (!hold_event(&hold, placement))
		return false;
	bool passed =
	    !is_event_gone(placement) &&
	    backend->events->passed(placement->event_device, placement->event_context, placement->event);
	spill_context_release(&hold);
	return passed;
}

/* Destroys the event of a placement, given as a copy: the placement itself may be in use again. */
static void destroy_event(const struct spill_placement *copy)
{
	struct spill_context_hold hold;
	if (!copy->event || copy->event_ended || !hold_event(&hold, copy))
		return;
	if (!is_event_gone(copy))
		copy->backend->events->destroy(copy->event_device, copy->event_context, copy->event);
	spill_context_release(&hold);
}

/* Keeps a placement for the next request. The caller destroys its event. pre: locked */
static void keep_for_reuse(struct spill_placement *placement)
{
	placement->event = placement->event_context = NULL;
	placement->event_ended = false;
	TAILQ_INSERT_HEAD(&kept, placement, pending);
}

/*
 * Releases or keeps a placement that was polled, or puts it back. A context that ended meanwhile is
 * noted in the placement.
 */
static bool finish_poll(struct spill_placement *placement, bool may_go)
{
	pthread_mutex_lock(&lock);
	TAILQ_REMOVE(&polled, placement, pending);
	struct spill_placement copy = *placement;
	bool stays = copy.reusable && !copy.owner_ended;
	may_go = may_go || copy.owner_ended || copy.event_ended;
	if (!may_go)
		TAILQ_INSERT_TAIL(&waiting, placement, pending);
	else
		atomic_fetch_sub(&pending_count, 1);
	if (may_go && stays)
		keep_for_reuse(placement);
	pthread_mutex_unlock(&lock);
	if (may_go)
		destroy_event(&copy);
	if (!may_go || stays)
		return false;
	spill_placement_release(placement, copy.owner_ended);
	return true;
}

static void add_held(struct spill_bytes *sum, const struct spill_placement *placement, int device)
{
	if (placement->device == device)
		sum->device += placement->held.device;
	sum->host += placement->held.host + placement->held.managed;
}

/*
 * Polls up to `most` placements, each once, because those that are put back go to the end. HIP's
 * calls set a last error. Ours must not replace the program's, and must not stay.
 */
static struct spill_bytes poll_waiting(const struct spill_backend *backend, int device, unsigned most,
                                       bool may_wait)
{
	struct spill_bytes given = {0};
	unsigned waiting_count = atomic_load_explicit(&pending_count, memory_order_relaxed);
	if (!waiting_count || spill_capture_any() || (backend->last_error && backend->last_error->peek()))
		return given;
	for (unsigned i = 0; i < most && i < waiting_count; i++) {
		struct spill_placement *placement = take_waiting(backend);
		if (!placement)
			break;
		struct spill_bytes held = {0};
		add_held(&held, placement, device);
		if (finish_poll(placement, may_release(placement, may_wait))) {
			given.device += held.device;
			given.host += held.host;
		}
	}
	if (backend->last_error)
		backend->last_error->forget();
	return given;
}

/* A placement fits if it is at most an eighth too large. */
static bool fits(const struct spill_placement *placement, const struct spill_deferred_wanted *wanted)
{
	uint64_t size = placement->held.host;
	return placement->reusable && placement->ops == wanted->ops &&
	       placement->backend == wanted->backend && placement->device == wanted->device &&
	       placement->context == wanted->context && size >= wanted->bytes &&
	       size - wanted->bytes <= size / 8 && !spill_placement_ending(placement);
}

/* Removes a placement that fits from its list. pre: locked */
static struct spill_placement *take_reusable(const struct spill_deferred_wanted *wanted)
{
	const struct spill_stream_order *order = &wanted->order;
	struct spill_placement *placement;
	TAILQ_FOREACH(placement, &kept, pending)
	if (fits(placement, wanted)) {
		TAILQ_REMOVE(&kept, placement, pending);
		return placement;
	}
	TAILQ_FOREACH(placement, &waiting, pending)
	if (placement->event && !placement->event_ended && order->stream &&
	    placement->order.stream == order->stream && placement->order.context == order->context &&
	    fits(placement, wanted)) {
		TAILQ_REMOVE(&waiting, placement, pending);
		atomic_fetch_sub(&pending_count, 1);
		return placement;
	}
	return NULL;
}

struct spill_placement *spill_deferred_reuse(const struct spill_deferred_wanted *wanted)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = take_reusable(wanted);
	pthread_mutex_unlock(&lock);
	if (placement) {
		destroy_event(placement);
		placement->event = NULL;
		placement->bytes = wanted->bytes;
	}
	return placement;
}

void spill_deferred_stream_ended(const struct spill_backend *backend, const void *stream)
{
	struct spill_placement *placement;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(placement, &waiting, pending)
	if (placement->backend == backend && placement->order.stream == stream)
		placement->order.stream = NULL;
	TAILQ_FOREACH(placement, &polled, pending)
	if (placement->backend == backend && placement->order.stream == stream)
		placement->order.stream = NULL;
	pthread_mutex_unlock(&lock);
}

void spill_deferred_give(struct spill_placement *placement)
{
	if (!placement->reusable) {
		spill_placement_release(placement, false);
		return;
	}
	pthread_mutex_lock(&lock);
	keep_for_reuse(placement);
	pthread_mutex_unlock(&lock);
}

/* `device`: -1 for any. */
static struct spill_placement *take_kept(const struct spill_backend *backend, int device)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = TAILQ_FIRST(&kept);
	while (placement && (placement->backend != backend || (device >= 0 && placement->device != device)))
		placement = TAILQ_NEXT(placement, pending);
	if (placement)
		TAILQ_REMOVE(&kept, placement, pending);
	pthread_mutex_unlock(&lock);
	return placement;
}

void spill_deferred_drop(const struct spill_backend *backend, int device)
{
	struct spill_placement *placement;
	while ((placement = take_kept(backend, device)) != NULL)
		spill_placement_release(placement, false);
}

void spill_deferred_poll(const struct spill_backend *backend, bool may_wait)
{
	poll_waiting(backend, -1, POLLED, may_wait);
}

struct spill_bytes spill_deferred_collect(const struct spill_backend *backend, int device, bool may_wait)
{
	return poll_waiting(backend, device, UINT_MAX, may_wait);
}

struct spill_bytes spill_deferred_pending(const struct spill_backend *backend, int device)
{
	struct spill_bytes sum = {0};
	struct spill_placement *placement;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(placement, &waiting, pending)
	if (placement->backend == backend)
		add_held(&sum, placement, device);
	pthread_mutex_unlock(&lock);
	return sum;
}

/*
 * Notes whether the placement's owner, or the work that it waits for, ended with the context. True: the wait is over. pre:
 * locked
 */
static bool note_end(struct spill_placement *placement, const struct spill_context_end *end)
{
	const struct spill_backend *backend = placement->backend;
	placement->owner_ended |= spill_placement_ends_with(placement, end);
	placement->event_ended |=
	    (placement->event || placement->event_context) &&
	    spill_context_end_covers(end, backend, placement->event_device, placement->event_context,
	                             placement->event_generation);
	return placement->owner_ended || placement->event_ended;
}

/* Removes a placement that ends with the context from its list. pre: locked */
static struct spill_placement *take_ended(struct placement_list *list, const struct spill_context_end *end)
{
	struct spill_placement *placement;
	TAILQ_FOREACH(placement, list, pending)
	if (note_end(placement, end))
		break;
	if (placement)
		TAILQ_REMOVE(list, placement, pending);
	return placement;
}

static struct spill_placement *take_waiting_ended(const struct spill_context_end *end)
{
	struct spill_placement *placement;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(placement, &polled, pending)
	note_end(placement, end);
	placement = take_ended(&waiting, end);
	if (placement)
		TAILQ_INSERT_TAIL(&polled, placement, pending);
	pthread_mutex_unlock(&lock);
	return placement;
}

static struct spill_placement *take_kept_ended(const struct spill_context_end *end)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = take_ended(&kept, end);
	pthread_mutex_unlock(&lock);
	return placement;
}

void spill_deferred_context_ended(const struct spill_context_end *end)
{
	struct spill_placement *placement;
	while ((placement = take_waiting_ended(end)) != NULL)
		finish_poll(placement, true);
	while ((placement = take_kept_ended(end)) != NULL)
		spill_placement_release(placement, true);
}

/* The child has no GPU. Deferred frees stay with the parent. */
static void forget_parent(void)
{
	TAILQ_INIT(&waiting);
	TAILQ_INIT(&polled);
	TAILQ_INIT(&kept);
	atomic_store(&pending_count, 0);
}

const struct spill_fork_lock spill_deferred_fork_lock = {&lock, forget_parent};

#include "deferred.h"

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "capture.h"
#include "peer.h"

/* Looked at by a poll: frees of one stream pass in their order, so that the oldest are the ones to look at. */
#define A_FEW 8

TAILQ_HEAD(list, spill_placement);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* SPILL_RANK_DEFERRED */
static struct list waiting = TAILQ_HEAD_INITIALIZER(waiting);
static struct list looked_at = TAILQ_HEAD_INITIALIZER(looked_at); /* by some thread, without the lock */
static struct list kept = TAILQ_HEAD_INITIALIZER(kept);           /* nothing uses them; not counted */
static _Atomic unsigned count;                                    /* of both */

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
	atomic_fetch_add(&count, 1);
	pthread_mutex_unlock(&lock);
}

/* The oldest, which is then the caller's to put back or to end. */
static struct spill_placement *take(const struct spill_backend *backend)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = TAILQ_FIRST(&waiting);
	while (placement && placement->backend != backend)
		placement = TAILQ_NEXT(placement, pending);
	if (placement) {
		TAILQ_REMOVE(&waiting, placement, pending);
		TAILQ_INSERT_TAIL(&looked_at, placement, pending);
	}
	pthread_mutex_unlock(&lock);
	return placement;
}

/*
 * One without an event is waited for, which only a caller may do that waits anyway. Of an event whose context is just ending nobody
 * knows whether it lives.
 */
static bool passed(const struct spill_placement *placement, bool may_wait)
{
	const struct spill_backend *backend = placement->backend;
	if (placement->event)
		return !spill_context_ending(backend, placement->event_device, placement->event_context,
		                             placement->event_generation) &&
		       backend->events->passed(placement->event_device, placement->event_context,
		                               placement->event);
	return may_wait && !spill_deferred_wait(backend, placement->device, placement->context);
}

/* Destroys the event of a placement as it was: the placement itself may be in use again. */
static void destroy_event(const struct spill_placement *was)
{
	if (was->event && !was->event_ended &&
	    !spill_context_dead(was->backend, was->event_device, was->event_context, was->event_generation))
		was->backend->events->destroy(was->event_device, was->event_context, was->event);
}

/* pre: locked. For whoever asks next; its event is the caller's to destroy. */
static void keep(struct spill_placement *placement)
{
	placement->event = NULL;
	placement->event_ended = false;
	TAILQ_INSERT_HEAD(&kept, placement, pending);
}

/* Ends what may go, puts back what may not. A context that ended meanwhile has left word in the placement. */
static bool settle(struct spill_placement *placement, bool may_go)
{
	pthread_mutex_lock(&lock);
	TAILQ_REMOVE(&looked_at, placement, pending);
	struct spill_placement was = *placement;
	bool stays = was.reusable && !was.owner_ended;
	may_go = may_go || was.owner_ended || was.event_ended;
	if (!may_go)
		TAILQ_INSERT_TAIL(&waiting, placement, pending);
	else
		atomic_fetch_sub(&count, 1);
	if (may_go && stays)
		keep(placement);
	pthread_mutex_unlock(&lock);
	if (may_go)
		destroy_event(&was);
	if (!may_go || stays)
		return false;
	spill_placement_release(placement, was.owner_ended);
	return true;
}

static void add(struct spill_bytes *sum, const struct spill_placement *placement, int device)
{
	if (placement->device == device)
		sum->device += placement->held.device;
	sum->host += placement->held.host + placement->held.managed;
}

/*
 * Looks at up to `most`, each once: what is put back goes to the end. HIP's calls leave a last error: where the
 * program's own is set, ours must not overwrite it, and where it is not, ours must not stay.
 */
static struct spill_bytes look(const struct spill_backend *backend, int device, unsigned most, bool may_wait)
{
	struct spill_bytes given = {0};
	unsigned there = atomic_load_explicit(&count, memory_order_relaxed);
	if (!there || spill_capture_any() || (backend->last_error && backend->last_error->peek()))
		return given;
	for (unsigned at = 0; at < most && at < there; at++) {
		struct spill_placement *placement = take(backend);
		if (!placement)
			break;
		struct spill_bytes held = {0};
		add(&held, placement, device);
		if (settle(placement, passed(placement, may_wait))) {
			given.device += held.device;
			given.host += held.host;
		}
	}
	if (backend->last_error)
		backend->last_error->forget();
	return given;
}

/* Little is wasted, and what is freed on a stream may be used by what comes after it there. */
static bool fits(const struct spill_placement *placement, const struct spill_backend *backend, int device,
                 const void *context, uint64_t bytes)
{
	uint64_t size = placement->held.host;
	return placement->reusable && placement->backend == backend && placement->device == device &&
	       placement->context == context && size >= bytes && size - bytes <= size / 8 &&
	       !spill_placement_ending(placement);
}

/* pre: locked. Taken from its list. */
static struct spill_placement *find_free(const struct spill_backend *backend, int device, const void *context,
                                         uint64_t bytes, const struct spill_stream_order *order)
{
	struct spill_placement *placement;
	TAILQ_FOREACH(placement, &kept, pending)
	if (fits(placement, backend, device, context, bytes)) {
		TAILQ_REMOVE(&kept, placement, pending);
		return placement;
	}
	TAILQ_FOREACH(placement, &waiting, pending)
	if (placement->event && !placement->event_ended && order->stream &&
	    placement->order.stream == order->stream && placement->order.context == order->context &&
	    fits(placement, backend, device, context, bytes)) {
		TAILQ_REMOVE(&waiting, placement, pending);
		atomic_fetch_sub(&count, 1);
		return placement;
	}
	return NULL;
}

struct spill_placement *spill_deferred_reuse(const struct spill_backend *backend, int device,
                                             const void *context, uint64_t bytes,
                                             const struct spill_stream_order *order)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = find_free(backend, device, context, bytes, order);
	pthread_mutex_unlock(&lock);
	if (placement) {
		destroy_event(placement);
		placement->event = NULL;
		placement->bytes = bytes;
	}
	return placement;
}

/* Behind it, another stream may have its handle. */
void spill_deferred_stream_ended(const struct spill_backend *backend, const void *stream)
{
	struct spill_placement *placement;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(placement, &waiting, pending)
	if (placement->backend == backend && placement->order.stream == stream)
		placement->order.stream = NULL;
	TAILQ_FOREACH(placement, &looked_at, pending)
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
	keep(placement);
	pthread_mutex_unlock(&lock);
}

static struct spill_placement *take_kept(const struct spill_backend *backend)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = TAILQ_FIRST(&kept);
	while (placement && placement->backend != backend)
		placement = TAILQ_NEXT(placement, pending);
	if (placement)
		TAILQ_REMOVE(&kept, placement, pending);
	pthread_mutex_unlock(&lock);
	return placement;
}

void spill_deferred_drop(const struct spill_backend *backend)
{
	struct spill_placement *placement;
	while ((placement = take_kept(backend)) != NULL)
		spill_placement_release(placement, false);
}

void spill_deferred_poll(const struct spill_backend *backend, bool may_wait)
{
	look(backend, -1, A_FEW, may_wait);
}

struct spill_bytes spill_deferred_collect(const struct spill_backend *backend, int device, bool may_wait)
{
	return look(backend, device, UINT_MAX, may_wait);
}

struct spill_bytes spill_deferred_pending(const struct spill_backend *backend, int device)
{
	struct spill_bytes sum = {0};
	struct spill_placement *placement;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(placement, &waiting, pending)
	if (placement->backend == backend)
		add(&sum, placement, device);
	pthread_mutex_unlock(&lock);
	return sum;
}

/* Notes what ended with the context; true if that ends the wait. pre: locked */
static bool mark(struct spill_placement *placement, const struct spill_context_end *end)
{
	const struct spill_backend *backend = placement->backend;
	placement->owner_ended |= spill_placement_ends_with(placement, end);
	placement->event_ended |=
	    placement->event &&
	    spill_context_end_covers(end, backend, placement->event_device, placement->event_context,
	                             placement->event_generation);
	return placement->owner_ended || placement->event_ended;
}

/* pre: locked. Taken from its list. */
static struct spill_placement *take_marked(struct list *list, const struct spill_context_end *end)
{
	struct spill_placement *placement;
	TAILQ_FOREACH(placement, list, pending)
	if (mark(placement, end))
		break;
	if (placement)
		TAILQ_REMOVE(list, placement, pending);
	return placement;
}

static struct spill_placement *take_ended(const struct spill_context_end *end)
{
	struct spill_placement *placement;
	pthread_mutex_lock(&lock);
	TAILQ_FOREACH(placement, &looked_at, pending)
	mark(placement, end);
	placement = take_marked(&waiting, end);
	if (placement)
		TAILQ_INSERT_TAIL(&looked_at, placement, pending);
	pthread_mutex_unlock(&lock);
	return placement;
}

static struct spill_placement *take_kept_of(const struct spill_context_end *end)
{
	pthread_mutex_lock(&lock);
	struct spill_placement *placement = take_marked(&kept, end);
	pthread_mutex_unlock(&lock);
	return placement;
}

void spill_deferred_context_ended(const struct spill_context_end *end)
{
	struct spill_placement *placement;
	while ((placement = take_ended(end)) != NULL)
		settle(placement, true);
	while ((placement = take_kept_of(end)) != NULL)
		spill_placement_release(placement, true);
}

void spill_deferred_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

/* The child has no GPU: what waits is the parent's alone. */
void spill_deferred_fork_done(bool child)
{
	if (child) {
		TAILQ_INIT(&waiting);
		TAILQ_INIT(&looked_at);
		TAILQ_INIT(&kept);
		atomic_store(&count, 0);
	}
	pthread_mutex_unlock(&lock);
}

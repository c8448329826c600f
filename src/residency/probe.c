#include "probe.h"

#include <sched.h>
#include <string.h>

#include "capture.h"
#include "clock.h"
#include "gate.h"
#include "chunked.h"

/* Our copies wait for nothing, but the link may be busy. */
#define PATIENCE_NS 1000000000ull
/* For the gate, which nobody keeps closed or stays in for longer as a rule. */
#define GATE_NS 20000000ull
#define BYTES 4096

struct touch {
	const struct spill_backend *backend;
	int device;
	void *context, *stream;
	uint64_t granule, va;
	uint64_t handle[2]; /* device, host */
	unsigned reserved, created, mapped;
	bool waiting; /* a copy may be under way */
	bool later;   /* it cannot be told now: something captures, or a call does not return */
	int error;    /* the vendor's last */
};

static bool good(struct touch *touch, int error)
{
	touch->error = error;
	return !error;
}

static bool make(struct touch *touch)
{
	const struct spill_backend *backend = touch->backend;
	if (!good(touch, backend->vmm->reserve(2 * touch->granule, touch->granule, &touch->va)))
		return false;
	touch->reserved = 1;
	for (; touch->created < 2; touch->created++)
		if (!good(touch, backend->physical->create(touch->device, touch->created == 1, touch->granule,
		                                           &touch->handle[touch->created])))
			return false;
	for (; touch->mapped < 2; touch->mapped++)
		if (!good(touch, backend->vmm->map(touch->va + touch->mapped * touch->granule, touch->granule,
		                                   touch->handle[touch->mapped])))
			return false;
	return good(touch, backend->vmm->allow(touch->va, 2 * touch->granule, touch->device)) &&
	       good(touch, backend->moves->copier_create(touch->device, touch->context, &touch->stream));
}

/* Copies in the order of the stream, from one end to the other. */
static bool copy_along(struct touch *touch, const uint64_t *stations, unsigned count)
{
	for (unsigned i = 0; i + 1 < count; i++) {
		if (!good(touch, touch->backend->moves->copy(touch->device, touch->context, touch->stream,
		                                             stations[i + 1], stations[i], BYTES)))
			return false;
		touch->waiting = true;
	}
	return true;
}

/* Waits for what our own stream does, and only for that. */
static bool wait_for_copies(struct touch *touch)
{
	const struct spill_backend *backend = touch->backend;
	uint64_t deadline = spill_clock_ns() + PATIENCE_NS;
	void *event;
	if (!good(touch,
	          backend->events->record(touch->device, touch->context, touch->stream, false, &event)))
		return false;
	while (!backend->events->passed(touch->device, touch->context, event)) {
		if (spill_clock_ns() >= deadline)
			return false; /* for good: what it has made must stay, and once is enough */
		sched_yield();
	}
	backend->events->destroy(touch->device, touch->context, event);
	touch->waiting = false;
	return true;
}

static bool mark(struct touch *touch)
{
	void *event;
	if (!good(touch, touch->backend->moves->mark(touch->device, touch->context, &event)))
		return false;
	touch->backend->events->destroy(touch->device, touch->context, event);
	return true;
}

/* A mark breaks every capture of its context: none may begin meanwhile (gate.h). */
static bool can_mark(struct touch *touch)
{
	bool held = spill_mover_is_mine();
	if (!held)
		spill_mover_lock();
	bool closed = spill_gate_close(spill_clock_ns() + GATE_NS);
	touch->later = !closed || spill_capture_any();
	bool marked = !touch->later && mark(touch);
	if (closed)
		spill_gate_open();
	if (!held)
		spill_mover_unlock();
	return marked;
}

/*
 * Through both chunks and back into another place. The page is never given back: freeing pinned memory waits for all of the
 * device's work (docs/measurements.md), which may never end. It is one in the life of the process.
 */
static bool copies_are_right(struct touch *touch)
{
	uint64_t page;
	void *host;
	if (!good(touch, touch->backend->memory->host_alloc((uint64_t)2 * BYTES, &page, &host)))
		return false;
	unsigned char *from = host, *to = from + BYTES;
	for (unsigned i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 7 + (i >> 8));
	memset(to, 0xee, BYTES);
	uint64_t on_device = touch->va, on_host = touch->va + touch->granule;
	const uint64_t stations[] = {page, on_device, on_host, on_device + BYTES, page + BYTES};
	return copy_along(touch, stations, 5) && wait_for_copies(touch) && !memcmp(from, to, BYTES);
}

/* Memory that a copy may still use stays: there is no telling when it ends. */
static void unmake(struct touch *touch)
{
	const struct spill_backend *backend = touch->backend;
	if (touch->waiting)
		return;
	if (touch->stream)
		backend->moves->copier_destroy(touch->device, touch->context, touch->stream);
	while (touch->mapped--)
		backend->vmm->unmap(touch->va + touch->mapped * touch->granule, touch->granule);
	while (touch->created--)
		backend->physical->release(touch->handle[touch->created]);
	if (touch->reserved)
		backend->vmm->unreserve(touch->va, 2 * touch->granule);
}

enum spill_probe spill_probe(const struct spill_backend *backend, int device)
{
	int current;
	struct touch touch = {.backend = backend, .device = device};
	if (!(backend->devices->capabilities(device) & SPILL_CAN_MOVE) || !backend->moves)
		return SPILL_PROBE_FAILS;
	touch.granule = spill_chunked_granularity(backend, device);
	if (!touch.granule)
		return SPILL_PROBE_FAILS;
	if (!backend->devices->current(&current, &touch.context) || current != device)
		return SPILL_PROBE_LATER;
	if (!spill_gate_prepare()) /* now, as it can take milliseconds, while nobody waits for a move */
		return SPILL_PROBE_FAILS;
	bool works = make(&touch) && can_mark(&touch) && copies_are_right(&touch);
	unmake(&touch);
	if (works)
		return SPILL_PROBE_WORKS;
	/* A capture that began behind the mark may forbid what the trial needs. */
	touch.later = touch.later || spill_capture_any() || touch.error == backend->out_of_memory;
	return touch.later ? SPILL_PROBE_LATER : SPILL_PROBE_FAILS;
}

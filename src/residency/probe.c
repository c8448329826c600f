#include "movable.h"

#include <sched.h>
#include <string.h>

#include "capture.h"
#include "clock.h"
#include "gate.h"
#include "chunked.h"

/* Our copies wait for no other work, but the link may be busy. */
#define PATIENCE_NS 1000000000ull
/* For the gate: calls rarely stay inside for longer. */
#define GATE_NS 20000000ull
#define BYTES 4096

struct trial {
	const struct spill_backend *backend;
	int device;
	void *context, *stream;
	uint64_t granularity, va;
	uint64_t handle[2]; /* device, host */
	unsigned reserved, created, mapped;
	bool waiting; /* a copy may be under way */
	bool endless; /* it did not end in time */
	bool later;   /* undecided: a stream captures, or a call does not return */
	int error;    /* the vendor's last error */
};

static bool succeeded(struct trial *trial, int error)
{
	trial->error = error;
	return !error;
}

static bool make_chunks(struct trial *trial)
{
	const struct spill_backend *backend = trial->backend;
	if (!succeeded(trial, backend->vmm->reserve(2 * trial->granularity, trial->granularity, &trial->va)))
		return false;
	trial->reserved = 1;
	for (; trial->created < 2; trial->created++)
		if (!succeeded(trial,
		               backend->physical->create(trial->device, trial->created == 1,
		                                         trial->granularity, &trial->handle[trial->created])))
			return false;
	for (; trial->mapped < 2; trial->mapped++)
		if (!succeeded(trial, backend->vmm->map(trial->va + trial->mapped * trial->granularity,
		                                        trial->granularity, trial->handle[trial->mapped])))
			return false;
	return succeeded(trial, backend->vmm->allow(trial->va, 2 * trial->granularity, trial->device)) &&
	       succeeded(trial, backend->moves->copier_create(trial->device, trial->context, &trial->stream));
}

/* Copies along the stations, in stream order. */
static bool copy_along(struct trial *trial, const uint64_t *stations, unsigned count)
{
	for (unsigned i = 0; i + 1 < count; i++) {
		if (!succeeded(trial,
		               trial->backend->moves->copy(trial->device, trial->context, trial->stream,
		                                           stations[i + 1], stations[i], BYTES)))
			return false;
		trial->waiting = true;
	}
	return true;
}

/* Waits for the copies in our own stream, and for no other work. */
static bool wait_for_copies(struct trial *trial)
{
	const struct spill_backend *backend = trial->backend;
	uint64_t deadline = spill_clock_ns() + PATIENCE_NS;
	void *event;
	if (!succeeded(trial,
	               backend->events->record(trial->device, trial->context, trial->stream, false, &event)))
		return false;
	while (!backend->events->passed(trial->device, trial->context, event)) {
		trial->endless = spill_clock_ns() >= deadline;
		if (trial->endless)
			return false; /* final: its memory must stay, and once is enough */
		sched_yield();
	}
	backend->events->destroy(trial->device, trial->context, event);
	trial->waiting = false;
	return true;
}

static bool can_mark_now(struct trial *trial)
{
	void *event;
	if (!succeeded(trial, trial->backend->moves->mark(trial->device, trial->context, &event)))
		return false;
	trial->backend->events->destroy(trial->device, trial->context, event);
	return true;
}

/* A mark breaks every capture of its context, so none may begin meanwhile (gate.h). */
static bool can_mark(struct trial *trial)
{
	bool held = spill_mover_is_mine();
	if (!held)
		spill_mover_lock();
	bool closed = spill_gate_close(spill_clock_ns() + GATE_NS);
	trial->later = !closed || spill_capture_any();
	bool marked = !trial->later && can_mark_now(trial);
	if (closed)
		spill_gate_open();
	if (!held)
		spill_mover_unlock();
	return marked;
}

/*
 * Copies bytes through both chunks and back into another place. The page is never freed: freeing
 * pinned memory waits for all work of the device (docs/measurements.md), which may never end. Each
 * process has one such page.
 */
static bool copies_are_right(struct trial *trial)
{
	uint64_t page;
	void *host;
	if (!succeeded(trial, trial->backend->memory->host_alloc((uint64_t)2 * BYTES, &page, &host)))
		return false;
	unsigned char *from = host, *to = from + BYTES;
	for (unsigned i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 7 + (i >> 8));
	memset(to, 0xee, BYTES);
	uint64_t on_device = trial->va, on_host = trial->va + trial->granularity;
	const uint64_t stations[] = {page, on_device, on_host, on_device + BYTES, page + BYTES};
	return copy_along(trial, stations, 5) && wait_for_copies(trial) && !memcmp(from, to, BYTES);
}

/*
 * Undoes the trial. If a call behind the first copy failed, the copies are waited for here. Memory
 * that a copy may still use stays, because the end of the copy is unknown.
 */
static void undo_trial(struct trial *trial)
{
	const struct spill_backend *backend = trial->backend;
	const int error = trial->error;
	bool may_be_used = trial->waiting && (trial->endless || !wait_for_copies(trial));
	trial->error = error;
	if (may_be_used)
		return;
	if (trial->stream)
		backend->moves->copier_destroy(trial->device, trial->context, trial->stream);
	while (trial->mapped--)
		backend->vmm->unmap(trial->va + trial->mapped * trial->granularity, trial->granularity);
	while (trial->created--)
		backend->physical->release(trial->handle[trial->created]);
	if (trial->reserved)
		backend->vmm->unreserve(trial->va, 2 * trial->granularity);
}

enum spill_probe spill_probe(const struct spill_backend *backend, int device)
{
	int current;
	struct trial trial = {.backend = backend, .device = device};
	if (!(backend->devices->capabilities(device) & SPILL_CAN_MOVE) || !backend->moves)
		return SPILL_PROBE_FAILS;
	trial.granularity = spill_chunked_granularity(backend, device);
	if (!trial.granularity)
		return SPILL_PROBE_FAILS;
	if (!backend->devices->current(&current, &trial.context) || current != device)
		return SPILL_PROBE_LATER;
	if (!spill_gate_prepare()) /* now, because it can take milliseconds and no move waits */
		return SPILL_PROBE_FAILS;
	bool works = make_chunks(&trial) && can_mark(&trial) && copies_are_right(&trial);
	undo_trial(&trial);
	if (works)
		return SPILL_PROBE_WORKS;
	/* A capture that began after the mark may forbid the trial's calls. */
	trial.later = trial.later || spill_capture_any() || trial.error == backend->out_of_memory;
	return trial.later ? SPILL_PROBE_LATER : SPILL_PROBE_FAILS;
}

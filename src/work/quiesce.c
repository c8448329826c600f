#include "quiesce.h"

#include <pthread.h>

#include "capture.h"
#include "clock.h"
#include "contexts.h"
#include "gate.h"
#include "peer.h"

/* Short at first, as most work is; then so long that polling costs the other threads nothing. */
#define POLL_NS 5000
#define POLL_MOST_NS 200000

/* A context and its mark; no event: all its work is done. */
struct marked {
	void *context, *event;
	uint64_t birth;
};

/* The vendor has taken the event along; the handle may be another context's by now. */
static bool ended(const struct spill_backend *backend, const struct marked *marked)
{
	uint64_t birth = spill_contexts_birth(backend, marked->context);
	return !birth || birth != marked->birth;
}

/*
 * False: its work cannot be waited for. The vendor breaks a capture in that context (CUDA Driver API, cuCtxRecordEvent), so
 * that one is looked for first. A context that ended just now runs nothing.
 */
static bool mark(const struct spill_backend *backend, int device, struct marked *marked)
{
	int its_device;
	if (spill_capture_any())
		return false;
	if (!backend->mark(device, marked->context, &marked->event))
		return true;
	marked->event = NULL;
	return ended(backend, marked) ||
	       (backend->context_device && !backend->context_device(marked->context, &its_device));
}

/* Looks at each once; returns how many are not done. */
static unsigned look(const struct spill_backend *backend, int device, struct marked *marks, unsigned count)
{
	unsigned left = 0;
	for (unsigned i = 0; i < count; i++) {
		struct marked *marked = &marks[i];
		if (marked->event && ended(backend, marked)) {
			marked->event = NULL;
		} else if (marked->event && backend->event_passed(device, marked->context, marked->event)) {
			backend->event_destroy(device, marked->context, marked->event);
			marked->event = NULL;
		}
		left += marked->event != NULL;
	}
	return left;
}

/* Polls until all are done. A query, too, would break a capture of certain modes (docs/measurements.md). */
static bool passed(const struct spill_backend *backend, int device, struct marked *marks, unsigned count,
                   uint64_t deadline_ns)
{
	uint64_t pause = POLL_NS;
	while (!spill_capture_any()) {
		if (!look(backend, device, marks, count))
			return true;
		uint64_t now = spill_clock_ns();
		if (now >= deadline_ns)
			return false;
		uint64_t left = deadline_ns - now;
		spill_clock_sleep(pause < left ? pause : left);
		pause = 2 * pause < POLL_MOST_NS ? 2 * pause : POLL_MOST_NS;
	}
	return false;
}

/* Ends what is left of them; an event may be destroyed before it has passed (CUDA Driver API, cuEventDestroy). */
static void discard(const struct spill_backend *backend, int device, struct marked *marks, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (marks[i].event && !ended(backend, &marks[i]))
			backend->event_destroy(device, marks[i].context, marks[i].event);
}

/* All marks first, so that the contexts are waited for together. */
static bool wait_for(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	void *contexts[SPILL_CONTEXTS];
	struct marked marks[SPILL_CONTEXTS];
	bool known = true;
	unsigned count = spill_contexts_of(backend, device, contexts), marked = 0;
	if (count > SPILL_CONTEXTS)
		return false;
	while (marked < count && known) {
		marks[marked] = (struct marked){.context = contexts[marked],
		                                .birth = spill_contexts_birth(backend, contexts[marked])};
		known = mark(backend, device, &marks[marked]);
		marked++;
	}
	bool idle = known && passed(backend, device, marks, marked, deadline_ns);
	if (!idle)
		discard(backend, device, marks, marked);
	return idle;
}

bool spill_quiesce_wait(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	int peers[SPILL_DEVICES], cancel;
	if (!backend->mark)
		return false;
	/* It sleeps, which the calls it is part of do not. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	unsigned count = spill_peer_devices(backend, device, peers);
	/* One device after the other: nothing new is submitted meanwhile. */
	bool idle = wait_for(backend, device, deadline_ns);
	for (unsigned i = 0; i < count && idle; i++)
		idle = peers[i] == device || wait_for(backend, peers[i], deadline_ns);
	pthread_setcancelstate(cancel, NULL);
	return idle;
}

bool spill_quiesce_look(const struct spill_backend *backend, int device, uint64_t gate_ns,
                        uint64_t deadline_ns)
{
	if (!spill_gate_close(gate_ns))
		return false;
	bool idle = spill_quiesce_wait(backend, device, deadline_ns);
	spill_gate_open();
	return idle;
}

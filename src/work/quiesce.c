#include "quiesce.h"

#include <pthread.h>
#include <stdatomic.h>

#include "capture.h"
#include "clock.h"
#include "contexts.h"
#include "gate.h"
#include "minmax.h"

/*
 * Pauses between polls: short at first, because most work is short, then longer, so that polling
 * does not slow other threads.
 */
#define POLL_NS 5000
#define POLL_MOST_NS 200000
/*
 * The gate is closed so long at most for a mark. If a call stays inside longer (a copy that waits), no mark is tried
 * for a while, so that all the tries together cost a hundredth of the time.
 */
#define MARK_NS 100000ull
#define MARK_PAUSE_NS (100 * MARK_NS)

/* A context and the mark behind its work. No event: the work is done. */
struct context_mark {
	void *context, *event;
	uint64_t birth;
};

/* The context has ended, and its event with it. Its handle may be another context's by now. */
static bool context_ended(const struct spill_backend *backend, const struct context_mark *mark)
{
	uint64_t birth = spill_contexts_birth(backend, mark->context);
	return !birth || birth != mark->birth;
}

/*
 * False: the work cannot be waited for. A mark breaks a capture in its context (CUDA Driver API,
 * cuCtxRecordEvent), so captures are looked for first. A context that has just ended runs no work.
 */
static bool place_mark(const struct spill_backend *backend, int device, struct context_mark *mark)
{
	int its_device;
	if (spill_capture_any())
		return false;
	if (!backend->moves->mark(device, mark->context, &mark->event))
		return true;
	mark->event = NULL;
	return context_ended(backend, mark) ||
	       (backend->contexts && !backend->contexts->device(mark->context, &its_device));
}

/* Looks at each mark once. True: all have passed. */
static bool have_passed(const struct spill_backend *backend, int device, struct context_mark *marks,
                        unsigned count)
{
	bool passed = true;
	for (unsigned i = 0; i < count; i++) {
		struct context_mark *mark = &marks[i];
		if (mark->event && context_ended(backend, mark)) {
			mark->event = NULL;
		} else if (mark->event && backend->events->passed(device, mark->context, mark->event)) {
			backend->events->destroy(device, mark->context, mark->event);
			mark->event = NULL;
		}
		passed = passed && !mark->event;
	}
	return passed;
}

/*
 * Polls until all marks have passed. A query, too, would break a capture of certain modes
 * (docs/measurements.md).
 */
static bool wait_for_marks(const struct spill_backend *backend, int device, struct context_mark *marks,
                           unsigned count, uint64_t deadline_ns)
{
	uint64_t pause = POLL_NS;
	while (!spill_capture_any()) {
		if (have_passed(backend, device, marks, count))
			return true;
		uint64_t now = spill_clock_ns();
		if (now >= deadline_ns)
			return false;
		spill_clock_sleep(spill_min(pause, deadline_ns - now));
		pause = spill_min(2 * pause, POLL_MOST_NS);
	}
	return false;
}

/*
 * Destroys the remaining events. That is allowed before they have passed (CUDA Driver API,
 * cuEventDestroy).
 */
static void destroy_events(const struct spill_backend *backend, int device, struct context_mark *marks,
                           unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		if (marks[i].event && !context_ended(backend, &marks[i]))
			backend->events->destroy(device, marks[i].context, marks[i].event);
}

/* Places all marks first, so that one wait covers all contexts. */
static bool wait_for_device(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	void *contexts[SPILL_CONTEXTS];
	struct context_mark marks[SPILL_CONTEXTS];
	bool placed = true;
	unsigned count = spill_contexts_of(backend, device, contexts), placed_count = 0;
	if (count > SPILL_CONTEXTS)
		return false;
	while (placed_count < count && placed) {
		marks[placed_count] =
		    (struct context_mark){.context = contexts[placed_count],
		                          .birth = spill_contexts_birth(backend, contexts[placed_count])};
		placed = place_mark(backend, device, &marks[placed_count]);
		placed_count++;
	}
	bool idle = placed && wait_for_marks(backend, device, marks, placed_count, deadline_ns);
	if (!idle)
		destroy_events(backend, device, marks, placed_count);
	return idle;
}

bool spill_quiesce_wait(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	int devices[SPILL_DEVICES], cancel;
	if (!backend->moves)
		return false;
	/* The program's call is no cancellation point, and a sleep is. */
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
	unsigned count = spill_contexts_devices(backend, device, devices);
	/* One device after the other, because no new work is submitted meanwhile. */
	bool idle = true;
	for (unsigned i = 0; i < count && idle; i++)
		idle = wait_for_device(backend, devices[i], deadline_ns);
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

/* pre: the gate is closed, and all work is done */
static bool synchronize_contexts(const struct spill_backend *backend, int device)
{
	void *contexts[SPILL_CONTEXTS];
	unsigned count = spill_contexts_of(backend, device, contexts);
	bool synchronized = count <= SPILL_CONTEXTS;
	for (unsigned i = 0; i < count && synchronized; i++)
		synchronized = !backend->moves->synchronize(device, contexts[i]);
	return synchronized;
}

static _Atomic uint64_t next_mark_ns; /* after a try in vain */

bool spill_quiesce_mark(const struct spill_backend *backend, int device, void *context, void **event)
{
	bool mine = spill_mover_is_mine(), marked = false;
	uint64_t now = spill_clock_ns();
	if (!backend->moves || now < atomic_load(&next_mark_ns) || (!mine && !spill_mover_trylock()))
		return false;
	if (spill_gate_close(now + MARK_NS)) {
		marked = !spill_capture_any() && !backend->moves->mark(device, context, event);
		spill_gate_open();
	} else {
		atomic_store(&next_mark_ns, now + MARK_PAUSE_NS);
	}
	if (!mine)
		spill_mover_unlock();
	return marked;
}

bool spill_quiesce_synchronize(const struct spill_backend *backend, int device, uint64_t deadline_ns)
{
	if (!backend->moves || !spill_gate_close(deadline_ns))
		return false;
	bool idle = spill_quiesce_wait(backend, device, deadline_ns) && synchronize_contexts(backend, device);
	spill_gate_open();
	return idle;
}

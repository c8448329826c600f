#include "stopwatch.h"

#include <stdatomic.h>
#include <stddef.h>

#include "capture.h"
#include "clock.h"
#include "contexts.h"

/* No launch takes this long: its thread has ended, or has jumped out of the call. */
#define ABANDONED_NS 10000000000ull
/*
 * On an idle stream the measured time includes the submission. It is only the most that the work can have taken, if
 * the submission is more than a quarter of it.
 */
#define HOST_SHARE 4

/*
 * The state of a stopwatch, in one word with the number of times that it was taken. So a stop that
 * comes too late does not stop another's. The thread that made it BUSY owns it until the next
 * state. Other threads change nothing.
 */
enum { FREE, BUSY, STARTED, STOPPED, STATES };
#define STATE_OF(word) ((word) % STATES)

struct stopwatch {
	const struct spill_backend *backend;
	int device;
	void *context;
	_Atomic uint64_t birth; /* of the timers' context; 0: no timers. Any thread reads it */
	void *begin, *end;
	void *stream;
	bool per_thread;
	bool behind; /* the stream was busy when the launch was submitted */
	struct spill_stopwatch_access access;
	_Atomic uint64_t started_ns;
	uint64_t submit_ns; /* from start to stop, on the host */
};

static struct stopwatch watches[SPILL_STOPWATCHES];
static _Atomic uint64_t states[SPILL_STOPWATCHES];
static _Atomic unsigned pending; /* stopwatches whose work is pending; approximate */
static _Atomic unsigned next_turn;
static _Atomic uint64_t last_look_ns; /* when they were last polled */

/* Makes the stopwatch BUSY for the caller, unless its word has changed. */
static bool claim(unsigned index, uint64_t word)
{
	return atomic_compare_exchange_strong(&states[index], &word, word - STATE_OF(word) + BUSY);
}

/* pre: the caller owns the stopwatch */
static void leave_as(unsigned index, unsigned state)
{
	uint64_t word = atomic_load_explicit(&states[index], memory_order_relaxed);
	atomic_store_explicit(&states[index], word - STATE_OF(word) + state, memory_order_release);
}

/*
 * The context has ended, and the timers with it. Their addresses may be others' by now. pre: the
 * caller owns the stopwatch; so for all functions here
 */
static bool context_ended(const struct stopwatch *watch)
{
	return spill_contexts_birth(watch->backend, watch->context) != watch->birth;
}

/* Or the vendor does not know them, because libspill missed the end. */
static bool timers_are_gone(const struct stopwatch *watch)
{
	bool passed;
	return context_ended(watch) ||
	       watch->backend->timers->passed(watch->device, watch->context, watch->begin, &passed) != 0;
}

/*
 * Timers are used only if their context is current. Another context may be ending in another thread
 * (CUDA Driver API, cuCtxDestroy: no call may use it meanwhile).
 */
static bool is_current(const struct stopwatch *watch)
{
	int device;
	void *context;
	return watch->backend->devices->current(&device, &context) && context == watch->context;
}

static void end_timers(struct stopwatch *watch)
{
	if (watch->birth && is_current(watch) && !timers_are_gone(watch)) {
		watch->backend->timers->destroy(watch->device, watch->context, watch->begin);
		watch->backend->timers->destroy(watch->device, watch->context, watch->end);
	}
	watch->birth = 0;
}

/* Like the launch itself, this may wait while another thread's launch waits for a full queue. */
static bool make_timers(struct stopwatch *watch)
{
	if (watch->backend->timers->create(watch->device, watch->context, &watch->begin))
		return false;
	if (!watch->backend->timers->create(watch->device, watch->context, &watch->end))
		return true;
	watch->backend->timers->destroy(watch->device, watch->context, watch->begin);
	return false;
}

static bool prepare(struct stopwatch *watch, const struct spill_backend *backend, int device, void *context,
                    uint64_t birth)
{
	if (watch->birth == birth)
		return true;
	end_timers(watch);
	watch->backend = backend;
	watch->device = device;
	watch->context = context;
	if (!make_timers(watch))
		return false;
	watch->birth = birth;
	return true;
}

static bool claim_matching(uint64_t state, bool of_any, uint64_t birth, uint64_t before_ns, unsigned *index)
{
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
		uint64_t word = atomic_load_explicit(&states[i], memory_order_acquire);
		if (STATE_OF(word) == state && (of_any || watches[i].birth == birth) &&
		    (state == FREE || watches[i].started_ns < before_ns) && claim(i, word)) {
			atomic_fetch_add(&states[i], STATES);
			*index = i;
			return true;
		}
	}
	return false;
}

/*
 * Takes a stopwatch: one with timers of the context, one without timers, one with another context's
 * timers, or an abandoned one.
 */
static bool claim_stopwatch(uint64_t birth, uint64_t now, unsigned *index)
{
	uint64_t long_ago = now > ABANDONED_NS ? now - ABANDONED_NS : 0;
	return claim_matching(FREE, false, birth, 0, index) || claim_matching(FREE, false, 0, 0, index) ||
	       claim_matching(FREE, true, 0, 0, index) || claim_matching(STARTED, true, 0, long_ago, index);
}

/*
 * Frees a stopwatch after an error of the vendor. Its timers are kept, unless the vendor does not
 * know them. That cannot be asked during a capture; then the next launch notices. pre: the caller
 * owns it
 */
static void free_refused(unsigned index)
{
	struct stopwatch *watch = &watches[index];
	if (!spill_capture_any() && timers_are_gone(watch))
		watch->birth = 0;
	leave_as(index, FREE);
}

void *spill_stopwatch_start(const struct spill_backend *backend, int device, void *context, void *stream,
                            bool per_thread, const struct spill_stopwatch_access *access)
{
	unsigned index;
	if (!backend->timers || spill_capture_any())
		return NULL;
	spill_contexts_made(backend, device, context);
	uint64_t birth = spill_contexts_birth(backend, context), now = spill_clock_ns();
	if (!birth || !claim_stopwatch(birth, now, &index))
		return NULL;
	struct stopwatch *watch = &watches[index];
	if (!prepare(watch, backend, device, context, birth)) {
		leave_as(index, FREE);
		return NULL;
	}
	watch->stream = stream;
	watch->per_thread = per_thread;
	watch->access = *access;
	watch->started_ns = spill_clock_ns();
	if (backend->timers->record(device, context, stream, per_thread, watch->begin)) {
		free_refused(index);
		return NULL;
	}
	uint64_t turn_taken = atomic_load_explicit(&states[index], memory_order_relaxed) / STATES;
	leave_as(index, STARTED);
	return (void *)(uintptr_t)(turn_taken * SPILL_STOPWATCHES + index);
}

/* Records the second timer. True: both are on the stream. */
static bool record_end(struct stopwatch *watch)
{
	const struct spill_backend *backend = watch->backend;
	bool passed;
	if (spill_capture_any() || context_ended(watch) ||
	    backend->timers->passed(watch->device, watch->context, watch->begin, &passed) ||
	    backend->timers->record(watch->device, watch->context, watch->stream, watch->per_thread,
	                            watch->end))
		return false;
	watch->behind = !passed;
	watch->submit_ns = spill_clock_ns() - watch->started_ns;
	return true;
}

void spill_stopwatch_stop(void *stopwatch)
{
	uint64_t number = (uintptr_t)stopwatch; /* NULL: turn 0, which no stopwatch has */
	unsigned index = number % SPILL_STOPWATCHES;
	if (!claim(index, number / SPILL_STOPWATCHES * STATES + STARTED))
		return;
	if (record_end(&watches[index])) {
		atomic_fetch_add_explicit(&pending, 1, memory_order_relaxed);
		leave_as(index, STOPPED);
	} else {
		free_refused(index);
	}
}

/* False: the vendor does not tell. */
static bool read_time(const struct stopwatch *watch, uint64_t looked_ns, struct spill_stopwatch_time *time)
{
	uint64_t started_ns = watch->started_ns;
	if (watch->backend->timers->between(watch->device, watch->context, watch->begin, watch->end,
	                                    &time->ns))
		return false;
	/* Moves between the launches of a graph's nodes are part of its time, and the host waits for them. */
	time->at_most = !watch->behind && !watch->access.by_nodes && time->ns / HOST_SHARE < watch->submit_ns;
	time->behind_ns = looked_ns > started_ns ? looked_ns - started_ns : 0;
	return true;
}

/*
 * Reports a stopwatch whose work is done. False: the work is not done. pre: the caller owns it, and
 * no longer does afterwards
 */
static bool report_if_done(unsigned index,
                           void (*done)(const struct spill_stopwatch_access *access,
                                        const struct spill_stopwatch_time *time),
                           uint64_t looked_ns)
{
	struct stopwatch *watch = &watches[index];
	const struct spill_backend *backend = watch->backend;
	struct spill_stopwatch_access access = watch->access;
	struct spill_stopwatch_time time;
	bool passed = false;
	bool lost = context_ended(watch) ||
	            backend->timers->passed(watch->device, watch->context, watch->end, &passed);
	if (!lost && !passed) {
		leave_as(index, STOPPED);
		return false;
	}
	atomic_fetch_sub_explicit(&pending, 1, memory_order_relaxed);
	if (lost) {
		watch->birth = 0;
		leave_as(index, FREE);
		return true;
	}
	bool known = read_time(watch, looked_ns, &time);
	leave_as(index, FREE);
	if (known)
		done(&access, &time);
	return true;
}

unsigned spill_stopwatch_pending(void)
{
	return atomic_load_explicit(&pending, memory_order_relaxed);
}

/* A query breaks a capture of certain modes (docs/measurements.md). */
void spill_stopwatch_collect(void (*done)(const struct spill_stopwatch_access *access,
                                          const struct spill_stopwatch_time *time))
{
	unsigned first = atomic_load_explicit(&next_turn, memory_order_relaxed);
	if (!atomic_load_explicit(&pending, memory_order_relaxed))
		return;
	uint64_t looked_ns = atomic_exchange_explicit(&last_look_ns, spill_clock_ns(), memory_order_relaxed);
	for (unsigned i = first; i != first + SPILL_STOPWATCHES; i++) {
		unsigned index = i % SPILL_STOPWATCHES;
		uint64_t word = atomic_load_explicit(&states[index], memory_order_acquire);
		if (STATE_OF(word) != STOPPED)
			continue;
		if (spill_capture_any())
			return;
		if (!claim(index, word))
			continue;
		if (!context_ended(&watches[index]) && !is_current(&watches[index])) {
			leave_as(index, STOPPED);
			continue;
		}
		if (!report_if_done(index, done, looked_ns)) {
			atomic_store_explicit(&next_turn, i + 1, memory_order_relaxed);
			return;
		}
	}
}

void spill_stopwatch_reset(void)
{
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
		uint64_t word = atomic_load(&states[i]);
		watches[i].birth = 0;
		atomic_store(&states[i], word - STATE_OF(word) + FREE);
	}
	atomic_store(&pending, 0);
}

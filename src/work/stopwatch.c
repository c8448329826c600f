#include "stopwatch.h"

#include <stdatomic.h>
#include <stddef.h>

#include "capture.h"
#include "clock.h"
#include "contexts.h"

/* So long no call takes that submits work: its thread has ended, or has jumped out of it. */
#define ABANDONED_NS 10000000000ull
/*
 * On a stream that had nothing to do, the time until the call has submitted its work counts, too: no more
 * than a quarter.
 */
#define HOST_SHARE 4

/*
 * The state of a stopwatch: one of these, and how often it was taken, so that a stop that comes too late
 * finds another's. Who has made it BUSY owns all of it until the next state; the others change nothing.
 */
enum { FREE, BUSY, STARTED, STOPPED, STATES };
#define STATE(word) ((word) % STATES)

struct stopwatch {
	const struct spill_backend *backend;
	int device;
	void *context;
	_Atomic uint64_t birth; /* of the context that its timers are of; 0: it has none. All look at it */
	void *begin, *end;
	void *stream;
	bool per_thread;
	bool behind; /* the stream had not reached the call's work when it was submitted */
	struct spill_stopwatch_use use;
	_Atomic uint64_t since_ns;
	uint64_t host_ns; /* from start to stop */
};

static struct stopwatch watches[SPILL_STOPWATCHES];
static _Atomic uint64_t words[SPILL_STOPWATCHES];
static _Atomic unsigned stopped; /* that have something to tell: about as many, while they change */
static _Atomic unsigned turn;
static _Atomic uint64_t looked; /* when they were asked last */

/* From that state to BUSY, for the caller. */
static bool take(unsigned index, uint64_t word)
{
	return atomic_compare_exchange_strong(&words[index], &word, word - STATE(word) + BUSY);
}

/* pre: it is the caller's */
static void put(unsigned index, unsigned state)
{
	uint64_t word = atomic_load_explicit(&words[index], memory_order_relaxed);
	atomic_store_explicit(&words[index], word - STATE(word) + state, memory_order_release);
}

/*
 * The vendor has taken its timers along; their addresses may be others' by now. pre: it is the caller's, as
 * of all here
 */
static bool ended(const struct stopwatch *watch)
{
	return spill_contexts_birth(watch->backend, watch->context) != watch->birth;
}

/* Or it does not know them, as we missed that. */
static bool gone(const struct stopwatch *watch)
{
	bool passed;
	return ended(watch) ||
	       watch->backend->timers->passed(watch->device, watch->context, watch->begin, &passed) != 0;
}

/*
 * The vendor is asked about timers of the calling thread's context alone: another may be ending in another thread at this moment (CUDA
 * Driver API, cuCtxDestroy: no call may use it meanwhile).
 */
static bool is_current(const struct stopwatch *watch)
{
	int device;
	void *context;
	return watch->backend->devices->current(&device, &context) && context == watch->context;
}

static void end_timers(struct stopwatch *watch)
{
	if (watch->birth && is_current(watch) && !gone(watch)) {
		watch->backend->timers->destroy(watch->device, watch->context, watch->begin);
		watch->backend->timers->destroy(watch->device, watch->context, watch->end);
	}
	watch->birth = 0;
}

/*
 * Making one can wait for as long as a launch of another thread waits for a full queue; as the call itself
 * would.
 */
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

static bool find(uint64_t state, bool of_any, uint64_t birth, uint64_t before_ns, unsigned *index)
{
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
		uint64_t word = atomic_load_explicit(&words[i], memory_order_acquire);
		if (STATE(word) == state && (of_any || watches[i].birth == birth) &&
		    (state == FREE || watches[i].since_ns < before_ns) && take(i, word)) {
			atomic_fetch_add(&words[i], STATES);
			*index = i;
			return true;
		}
	}
	return false;
}

/* One with timers of that context, without any, with others', or one whose call never came to its end. */
static bool choose(uint64_t birth, uint64_t now, unsigned *index)
{
	uint64_t long_ago = now > ABANDONED_NS ? now - ABANDONED_NS : 0;
	return find(FREE, false, birth, 0, index) || find(FREE, false, 0, 0, index) ||
	       find(FREE, true, 0, 0, index) || find(STARTED, true, 0, long_ago, index);
}

/*
 * Its timers are kept, unless it was them that the vendor refused; while a stream captures that cannot be
 * asked, and the next use finds it out. pre: it is the caller's
 */
static void refused(unsigned index)
{
	struct stopwatch *watch = &watches[index];
	if (!spill_capture_any() && gone(watch))
		watch->birth = 0;
	put(index, FREE);
}

void *spill_stopwatch_start(const struct spill_backend *backend, int device, void *context, void *stream,
                            bool per_thread, const struct spill_stopwatch_use *use)
{
	unsigned index;
	if (!backend->timers || spill_capture_any())
		return NULL;
	spill_contexts_made(backend, device, context);
	uint64_t birth = spill_contexts_birth(backend, context), now = spill_clock_ns();
	if (!birth || !choose(birth, now, &index))
		return NULL;
	struct stopwatch *watch = &watches[index];
	if (!prepare(watch, backend, device, context, birth)) {
		put(index, FREE);
		return NULL;
	}
	watch->stream = stream;
	watch->per_thread = per_thread;
	watch->use = *use;
	watch->since_ns = spill_clock_ns();
	if (backend->timers->record(device, context, stream, per_thread, watch->begin)) {
		refused(index);
		return NULL;
	}
	uint64_t turn_taken = atomic_load_explicit(&words[index], memory_order_relaxed) / STATES;
	put(index, STARTED);
	return (void *)(uintptr_t)(turn_taken * SPILL_STOPWATCHES + index);
}

/* Both timers are on the stream. */
static bool stop(struct stopwatch *watch)
{
	const struct spill_backend *backend = watch->backend;
	bool passed;
	if (spill_capture_any() || ended(watch) ||
	    backend->timers->passed(watch->device, watch->context, watch->begin, &passed) ||
	    backend->timers->record(watch->device, watch->context, watch->stream, watch->per_thread,
	                            watch->end))
		return false;
	watch->behind = !passed;
	watch->host_ns = spill_clock_ns() - watch->since_ns;
	return true;
}

void spill_stopwatch_stop(void *stopwatch)
{
	uint64_t number = (uintptr_t)stopwatch; /* of NULL, the 0th turn's: it never was */
	unsigned index = number % SPILL_STOPWATCHES;
	if (!take(index, number / SPILL_STOPWATCHES * STATES + STARTED))
		return;
	if (stop(&watches[index])) {
		atomic_fetch_add_explicit(&stopped, 1, memory_order_relaxed);
		put(index, STOPPED);
	} else {
		refused(index);
	}
}

/* Whether the time is one to be told. On an idle stream it begins before the call has submitted its work. */
static bool read_time(const struct stopwatch *watch, uint64_t *ns)
{
	if (watch->backend->timers->between(watch->device, watch->context, watch->begin, watch->end, ns))
		return false;
	return watch->behind || *ns / HOST_SHARE >= watch->host_ns;
}

/* False: its work is not done. pre: it is the caller's, and is not afterwards */
static bool ask(unsigned index,
                void (*done)(const struct spill_stopwatch_use *use, uint64_t ns, uint64_t behind_ns),
                uint64_t looked_ns)
{
	struct stopwatch *watch = &watches[index];
	const struct spill_backend *backend = watch->backend;
	struct spill_stopwatch_use use = watch->use;
	uint64_t ns;
	bool passed = false;
	bool lost =
	    ended(watch) || backend->timers->passed(watch->device, watch->context, watch->end, &passed);
	if (!lost && !passed) {
		put(index, STOPPED);
		return false;
	}
	atomic_fetch_sub_explicit(&stopped, 1, memory_order_relaxed);
	if (lost) {
		watch->birth = 0;
		put(index, FREE);
		return true;
	}
	bool right = read_time(watch, &ns);
	uint64_t since_ns = watch->since_ns, behind_ns = looked_ns > since_ns ? looked_ns - since_ns : 0;
	put(index, FREE);
	if (right)
		done(&use, ns, behind_ns);
	return true;
}

bool spill_stopwatch_any(void)
{
	return atomic_load_explicit(&stopped, memory_order_relaxed);
}

/* A query breaks a capture of certain modes (docs/measurements.md). */
void spill_stopwatch_collect(void (*done)(const struct spill_stopwatch_use *use, uint64_t ns,
                                          uint64_t behind_ns))
{
	unsigned first = atomic_load_explicit(&turn, memory_order_relaxed);
	if (!atomic_load_explicit(&stopped, memory_order_relaxed))
		return;
	uint64_t looked_ns = atomic_exchange_explicit(&looked, spill_clock_ns(), memory_order_relaxed);
	for (unsigned i = first; i != first + SPILL_STOPWATCHES; i++) {
		unsigned index = i % SPILL_STOPWATCHES;
		uint64_t word = atomic_load_explicit(&words[index], memory_order_acquire);
		if (STATE(word) != STOPPED)
			continue;
		if (spill_capture_any())
			return;
		if (!take(index, word))
			continue;
		if (!ended(&watches[index]) && !is_current(&watches[index])) {
			put(index, STOPPED);
			continue;
		}
		if (!ask(index, done, looked_ns)) {
			atomic_store_explicit(&turn, i + 1, memory_order_relaxed);
			return;
		}
	}
}

void spill_stopwatch_reset(void)
{
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
		uint64_t word = atomic_load(&words[i]);
		watches[i].birth = 0;
		atomic_store(&words[i], word - STATE(word) + FREE);
	}
	atomic_store(&stopped, 0);
}

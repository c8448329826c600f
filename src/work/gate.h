/*
 * work: work in flight, and how to make it stop. This header is the gate: threads that submit work to the device pass through it, and whoever moves chunks closes it, so that nothing
 * new is submitted meanwhile. Passing an open gate costs a few nanoseconds and no lock-prefixed instruction: a thread writes
 * only to its own record, and the closer pays for the order of memory (membarrier(2), PRIVATE_EXPEDITED). Where that
 * system call is missing, and under ThreadSanitizer, which knows nothing of it, each entry pays for itself.
 *
 *	bool outer = spill_gate_enter(self);
 *	result = real(arguments);
 *	if (outer)
 *		spill_gate_leave(self);
 *
 * There is no lock here: what never waits cannot be in the wrong order.
 *
 * This room neither makes nor moves memory. Begin with the gate, then quiesce.h, capture.h and deferred.h.
 */
#ifndef SPILL_GATE_H
#define SPILL_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread's own; never unmapped, so that the closer can look at all of them, and given to a new thread at its end. */
struct spill_gate_thread {
	_Atomic unsigned inside; /* written by its thread alone */
	_Atomic bool owned;
	unsigned entries_to_skip; /* until the clock is looked at, with a call wanted */
	struct spill_gate_thread *next;
	_Atomic uint64_t counts[]; /* calls, written by its thread alone */
};

/* NULL until spill_gate_join. */
extern __thread struct spill_gate_thread *spill_gate_self __attribute__((tls_model("initial-exec")));

/* Why an entry takes the slow path. */
enum spill_gate_state {
	SPILL_GATE_OPEN = 0,
	SPILL_GATE_CLOSED = 1,
	SPILL_GATE_CALLED = 2, /* spill_gate_call_me */
	SPILL_GATE_BARE = 4,   /* no membarrier: always */
};

extern _Atomic unsigned spill_gate_state;

/*
 * Once, before the first entry: how many counters a thread's record has, and the maintenance that spill_gate_call_me asks for.
 * `maintain` is called outside the gate, with no lock of ours held. It may change errno.
 */
void spill_gate_use(unsigned counters, void (*maintain)(void));

/*
 * Makes the calling thread's record, with `counters` counters, the same number for all threads. Without memory for it the
 * thread stays outside for good, spill_gate_self stays NULL, and the gate can never be closed again.
 */
void spill_gate_join(unsigned counters);

bool spill_gate_enter_slow(struct spill_gate_thread *self);

/*
 * True: the thread is inside, and leaves when the call is done. False: it is not to leave; the call is within another that
 * is inside (a callback, a driver that calls its own exports), or is one of ours, made by who has closed the gate. Waits
 * outside while the gate is closed. Keeps errno.
 */
static inline bool spill_gate_enter(struct spill_gate_thread *self)
{
	if (__builtin_expect(atomic_load_explicit(&self->inside, memory_order_relaxed) != 0, 0))
		return false;
	atomic_store_explicit(&self->inside, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst); /* the closer's membarrier makes a real one of it */
	if (__builtin_expect(atomic_load_explicit(&spill_gate_state, memory_order_acquire) != SPILL_GATE_OPEN,
	                     0))
		return spill_gate_enter_slow(self);
	return true;
}

static inline void spill_gate_leave(struct spill_gate_thread *self)
{
	atomic_store_explicit(&self->inside, 0, memory_order_release);
}

/*
 * The same for a request of the engine (request.h), which is no work but must not be under way while chunks move: a capture
 * that begins or ends, because the mover's marks would break it. True: to be left by spill_gate_leave(spill_gate_self).
 */
bool spill_gate_enter_request(void);

/* Counts one call; no other thread writes here. */
static inline void spill_gate_count(struct spill_gate_thread *self, unsigned counter)
{
	uint64_t count = atomic_load_explicit(&self->counts[counter], memory_order_relaxed);
	atomic_store_explicit(&self->counts[counter], count + 1, memory_order_relaxed);
}

/* The sum over all threads, those that have ended too. Safe in a signal handler. */
uint64_t spill_gate_counted(unsigned counter);

/*
 * What closing needs of the kernel, which can take milliseconds the first time in a process with threads; the first close
 * does it if nobody has. False: the gate cannot be closed in this process.
 */
bool spill_gate_prepare(void);

/*
 * Closes the gate and waits, polling, until no thread is inside. False: not by `deadline_ns` (CLOCK_MONOTONIC), or never
 * (the caller itself is inside; a thread has no record), and the gate is open again. True: the caller opens it soon, and
 * its own calls meanwhile are made with spill_thread.depth above 0. pre: the mover is held (one closer at a time)
 */
bool spill_gate_close(uint64_t deadline_ns);
void spill_gate_open(void);

/*
 * Has the maintenance called once by a later entry, before it goes inside, not sooner than SPILL_GATE_CALL_NS after
 * the last such call. To be called again, ask again.
 */
#define SPILL_GATE_CALL_NS 1000000
void spill_gate_call_me(void);

/* In the child: the gate is open, and no other thread is inside. What was counted stays, as all hits do. */
void spill_gate_fork_child(void);

#endif

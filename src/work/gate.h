/*
 * work: knows the work in flight, and makes it stop. Makes and moves no memory. Begin with the
 * gate, then quiesce.h, capture.h and deferred.h.
 *
 * The gate: threads pass it when they submit work to the device. A thread that moves chunks closes
 * it, so that no new work is submitted meanwhile. Passing an open gate costs a few nanoseconds and
 * no lock-prefixed instruction: a thread writes only to its own record, and the closer orders
 * memory for all threads (membarrier(2), PRIVATE_EXPEDITED). Each entry orders memory itself if
 * that system call is missing, and under ThreadSanitizer, which does not know it.
 *
 *	bool outer = spill_gate_enter(self);
 *	result = real(arguments);
 *	if (outer)
 *		spill_gate_leave(self);
 *
 * Entering takes no lock, so the order of locks does not matter here.
 *
 * There is one gate for all devices (docs/adr/0030): the calls of a move could wait for ever beside
 * a device that is busy.
 */
#ifndef SPILL_GATE_H
#define SPILL_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mover.h" /* who closes the gate holds it */

/*
 * The record of a thread. Never unmapped, so that the closer can look at all records. A new thread
 * reuses the record of an ended one.
 */
struct spill_gate_thread {
	_Atomic unsigned inside; /* only its thread writes */
	_Atomic bool owned;
	unsigned entries_to_skip; /* until the next look at the clock, when maintenance is wanted */
	_Atomic uint64_t clear;   /* 1 + the flight beside which its next entry submits work; 0: not known */
	struct spill_gate_thread *next;
	_Atomic uint64_t counts[]; /* calls; only its thread writes */
};

/* NULL until spill_gate_join. */
extern __thread struct spill_gate_thread *spill_gate_self __attribute__((tls_model("initial-exec")));

/* Why an entry takes the slow path. */
enum spill_gate_state {
	SPILL_GATE_OPEN = 0,
	SPILL_GATE_CLOSED = 1,
	SPILL_GATE_MAINTENANCE = 2, /* spill_gate_want_maintenance */
	SPILL_GATE_BARE = 4,        /* membarrier is missing: every entry */
	SPILL_GATE_FLIGHTS = 8,     /* spill_gate_use_flights */
};

extern _Atomic unsigned spill_gate_state;

/*
 * Called once, before the first entry. Sets the number of counters of a record, and the
 * maintenance. `maintain` is called outside the gate, with no lock of ours held. It may change
 * errno.
 */
void spill_gate_use(unsigned counters, void (*maintain)(void));

/*
 * Makes the calling thread's record. `counters` is the same number for all threads. If memory is
 * short, the thread stays outside for good: spill_gate_self stays NULL, and the gate can never be
 * closed again.
 */
void spill_gate_join(unsigned counters);

bool spill_gate_enter_slow(struct spill_gate_thread *self);

/*
 * Enters, and waits outside while the gate is closed. True: the thread is inside, and leaves when
 * the call is done. False: the thread must not leave. Then the call is nested in another call that
 * is inside (a callback, a driver that calls its own exports), or this thread has closed the gate.
 * Keeps errno.
 */
static inline bool spill_gate_enter(struct spill_gate_thread *self)
{
	if (__builtin_expect(atomic_load_explicit(&self->inside, memory_order_relaxed) != 0, 0))
		return false;
	atomic_store_explicit(&self->inside, 1, memory_order_relaxed);
	/* the closer's membarrier makes it a real fence */
	atomic_signal_fence(memory_order_seq_cst);
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
 * Enters for a request of the engine (request.h). A request is no work, but some must not run while
 * chunks move: the mover's marks would break a capture that begins or ends meanwhile, and the driver
 * refuses addresses that are not mapped. True: it is inside.
 */
bool spill_gate_enter_request(void);

/* `entered`: the answer of spill_gate_enter_request. */
static inline void spill_gate_leave_request(bool entered)
{
	if (entered)
		spill_gate_leave(spill_gate_self);
}

/* Counts one call in the thread's own record. */
static inline void spill_gate_count(struct spill_gate_thread *self, unsigned counter)
{
	uint64_t count = atomic_load_explicit(&self->counts[counter], memory_order_relaxed);
	atomic_store_explicit(&self->counts[counter], count + 1, memory_order_relaxed);
}

/* The sum over all threads, with those that have ended. Safe in a signal handler. */
uint64_t spill_gate_counted(unsigned counter);

/*
 * Registers with the kernel for closing. The first time in a process with threads this can take
 * milliseconds. The first close does it, too. False: the gate cannot be closed in this process.
 */
bool spill_gate_prepare(void);

/*
 * Closes the gate, and polls until no thread is inside. True: the caller opens it soon. Until then
 * the caller makes its own calls with spill_thread.depth above 0. False: the gate is open again.
 * Either a thread stayed inside until `deadline_ns` (CLOCK_MONOTONIC), or the gate cannot be
 * closed: the caller itself is inside, or a thread has no record. pre: the mover is held (one
 * closer at a time)
 */
bool spill_gate_close(uint64_t deadline_ns);
void spill_gate_open(void);

/*
 * A later entry calls the maintenance once, before it goes inside, and at least
 * SPILL_GATE_MAINTENANCE_NS after the last such call.
 */
#define SPILL_GATE_MAINTENANCE_NS 1000000
void spill_gate_want_maintenance(void);

/*
 * A flight: chunks are copied beside the work, and are not mapped meanwhile (movable.follow = overlap). Until it
 * has landed, an entry goes inside only if its thread has found out that its work uses none of them
 * (spill_gate_clear). Any other entry first ends the flight, and so does each thread that takes the mover's lock.
 */

/* Begins to tell entries apart. `land` is called with the mover held, and ends the flight. */
void spill_gate_use_flights(void (*land)(void));

/* Entries of threads that were not clear: nobody knows what their work uses. */
uint64_t spill_gate_unclear(void);

/* The number of the flight; 0: none. */
uint64_t spill_gate_flight(void);

/* Begins a flight with a new number. pre: the gate is closed, the mover is held, there is no flight */
void spill_gate_begin_flight(void);
void spill_gate_end_flight(void); /* pre: the mover is held */

/*
 * The calling thread knows what its next entry uses, and that is no chunk of that flight (0: there is none).
 * SPILL_GATE_UNCLEAR: it does not know.
 */
#define SPILL_GATE_UNCLEAR UINT64_MAX
void spill_gate_clear(uint64_t flight);

/* True: another thread is clear, and has not submitted its work yet. pre: the gate is closed */
bool spill_gate_others_clear(void);

/* In the child the gate is open, and no other thread is inside. The counters keep their values. */
void spill_gate_fork_child(void);

#endif

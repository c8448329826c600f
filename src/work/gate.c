#include "gate.h"

#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "clock.h"
#include "process.h"

/* Threads that wait look again this often, in case the closer never wakes them. */
#define LOOK_AGAIN_NS 10000000
/* The closer spins this often, then sleeps this long at a time. */
#define SPINS 200
#define NAP_NS 10000
/* Entries that do not look at the clock, after one that found it too early for maintenance. */
#define SKIPPED_ENTRIES 32

#if defined(__SANITIZE_THREAD__)
#define START_STATE SPILL_GATE_BARE
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define START_STATE SPILL_GATE_BARE
#endif
#endif
#ifndef START_STATE
#define START_STATE SPILL_GATE_OPEN
#endif

__thread struct spill_gate_thread *spill_gate_self __attribute__((tls_model("initial-exec")));
_Atomic unsigned spill_gate_state = START_STATE;

/* This thread has closed the gate. Its calls, and the vendor's calls below them, do not wait. */
static __thread bool is_closer __attribute__((tls_model("initial-exec")));

static struct {
	_Atomic(struct spill_gate_thread *) threads; /* new records become the head */
	_Atomic bool outsiders;                      /* a thread has no record */
	_Atomic bool prepared;
	_Atomic uint64_t maintained_ns;
	pthread_once_t once;
	pthread_key_t key;
	bool has_key;
	unsigned counters;
	void (*maintain)(void);
	_Atomic uint64_t flight, unclear; /* as the functions of these names */
	uint64_t flights;                 /* so far; the mover's lock guards it */
	void (*_Atomic land)(void);
} gate = {.once = PTHREAD_ONCE_INIT};

/* Called by number, because libc's ways to sleep are cancellation points. */
static void sleep_on(_Atomic unsigned *word, unsigned seen, long ns)
{
	struct timespec span = {.tv_nsec = ns};
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, &span, NULL, 0);
}

/* The thread ends, perhaps inside a call (pthread_exit in a callback, cancellation). */
static void leave_at_thread_end(void *record)
{
	struct spill_gate_thread *self = record;
	spill_gate_self = NULL;
	atomic_store(&self->clear, 0);
	spill_gate_leave(self);
	atomic_store_explicit(&self->owned, false, memory_order_release);
}

void spill_gate_use(unsigned counters, void (*maintain)(void))
{
	gate.counters = counters;
	gate.maintain = maintain;
}

static void start_gate(void)
{
	/* Without a key no record is reused: a page for each thread that ever submitted work. */
	gate.has_key = pthread_key_create(&gate.key, leave_at_thread_end) == 0;
	long offered = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	if (offered < 0 || !(offered & MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		atomic_fetch_or(&spill_gate_state, SPILL_GATE_BARE);
}

/* Takes the record of a thread that has ended. NULL: there is none. */
static struct spill_gate_thread *reuse_record(void)
{
	for (struct spill_gate_thread *thread = atomic_load(&gate.threads); thread; thread = thread->next) {
		bool owned = false;
		if (!atomic_load_explicit(&thread->owned, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&thread->owned, &owned, true))
			return thread;
	}
	return NULL;
}

static struct spill_gate_thread *make_record(unsigned counters)
{
	size_t size = offsetof(struct spill_gate_thread, counts) + counters * sizeof(_Atomic uint64_t);
	struct spill_gate_thread *record =
	    mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (record == MAP_FAILED)
		return NULL;
	atomic_store(&record->owned, true);
	record->next = atomic_load(&gate.threads);
	while (!atomic_compare_exchange_weak(&gate.threads, &record->next, record))
		;
	return record;
}

void spill_gate_join(unsigned counters)
{
	int error = errno;
	pthread_once(&gate.once, start_gate);
	struct spill_gate_thread *self = reuse_record();
	if (!self)
		self = make_record(counters);
	if (self) {
		if (gate.has_key)
			pthread_setspecific(gate.key, self);
		spill_gate_self = self;
	} else {
		/*
		 * First tell, then look. The closer first looks, then closes: one of the two sees
		 * the other.
		 */
		atomic_store(&gate.outsiders, true);
		unsigned state;
		while ((state = atomic_load(&spill_gate_state)) & SPILL_GATE_CLOSED)
			sleep_on(&spill_gate_state, state, LOOK_AGAIN_NS);
	}
	errno = error;
}

uint64_t spill_gate_counted(unsigned counter)
{
	uint64_t sum = 0;
	for (const struct spill_gate_thread *thread = atomic_load(&gate.threads); thread;
	     thread = thread->next)
		sum += atomic_load_explicit(&thread->counts[counter], memory_order_relaxed);
	return sum;
}

/* True: this thread calls the maintenance now. */
static bool maintenance_is_due(struct spill_gate_thread *self)
{
	if (self->entries_to_skip) {
		self->entries_to_skip--;
		return false;
	}
	uint64_t now = spill_clock_ns(),
	         last = atomic_load_explicit(&gate.maintained_ns, memory_order_relaxed);
	if (now - last < SPILL_GATE_MAINTENANCE_NS) {
		self->entries_to_skip = SKIPPED_ENTRIES;
		return false;
	}
	if (!(atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_MAINTENANCE) &
	      SPILL_GATE_MAINTENANCE))
		return false; /* another thread was first */
	atomic_store_explicit(&gate.maintained_ns, now, memory_order_relaxed);
	return true;
}

/*
 * Enters as the inline part does. If the closer cannot order memory, the entry does. Returns the
 * gate's state.
 */
static unsigned go_inside(struct spill_gate_thread *self)
{
	if (atomic_load_explicit(&spill_gate_state, memory_order_relaxed) & SPILL_GATE_BARE) {
		atomic_exchange(&self->inside, 1);
		return atomic_load(&spill_gate_state);
	}
	atomic_store_explicit(&self->inside, 1, memory_order_relaxed);
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&spill_gate_state, memory_order_acquire);
}

/* -- flights ------------------------------------------------------------------------------------ */

/* pre: the mover is held */
static void land_if_any(void)
{
	if (!spill_gate_flight())
		return;
	int error = errno, cancel = spill_ours_begin();
	void (*land)(void) = atomic_load(&gate.land);
	land();
	spill_ours_end(cancel);
	errno = error;
}

void spill_gate_use_flights(void (*land)(void))
{
	if (atomic_load_explicit(&spill_gate_state, memory_order_relaxed) & SPILL_GATE_FLIGHTS)
		return;
	atomic_store(&gate.land, land); /* two threads may come here at once */
	spill_mover_use_landing(land_if_any);
	atomic_fetch_or(&spill_gate_state, SPILL_GATE_FLIGHTS);
}

uint64_t spill_gate_unclear(void)
{
	return atomic_load(&gate.unclear);
}

uint64_t spill_gate_flight(void)
{
	return atomic_load(&gate.flight);
}

void spill_gate_begin_flight(void)
{
	atomic_store(&gate.flight, ++gate.flights);
}

void spill_gate_end_flight(void)
{
	atomic_store(&gate.flight, 0);
}

void spill_gate_clear(uint64_t flight)
{
	if (spill_gate_self)
		atomic_store(&spill_gate_self->clear, 1 + flight);
}

bool spill_gate_others_clear(void)
{
	for (const struct spill_gate_thread *thread = atomic_load(&gate.threads); thread;
	     thread = thread->next)
		if (thread != spill_gate_self && atomic_load(&thread->clear))
			return true;
	return false;
}

/*
 * True: the thread's work may use chunks that are in flight. Without a flight its work is counted, inside: who
 * closes the gate knows that it was submitted. Our own calls know what they do.
 */
static bool must_land(struct spill_gate_thread *self, unsigned state)
{
	uint64_t flight = spill_gate_flight();
	if (!(state & SPILL_GATE_FLIGHTS) || spill_thread.depth || atomic_load(&self->clear) == 1 + flight)
		return false;
	if (!flight)
		atomic_fetch_add(&gate.unclear, 1);
	return flight;
}

/* Who takes the mover's lock ends the flight. */
static void end_flight(void)
{
	spill_mover_lock();
	spill_mover_unlock();
}

/* -- the slow entry ------------------------------------------------------------------------------ */

bool spill_gate_enter_slow(struct spill_gate_thread *self)
{
	int error = errno;
	/* Once an entry: maintenance that is due again when it ends would keep the thread for ever. */
	bool inside = true, may_maintain = spill_thread.depth == 0;
	for (;;) {
		unsigned state = go_inside(self);
		bool closed = state & SPILL_GATE_CLOSED;
		bool due =
		    !closed && may_maintain && (state & SPILL_GATE_MAINTENANCE) && maintenance_is_due(self);
		bool lands = !closed && !due && must_land(self, state);
		if (!closed && !due && !lands)
			break;
		spill_gate_leave(self);
		if (lands) {
			end_flight();
		} else if (due) {
			may_maintain = false;
			gate.maintain();
		} else if (is_closer) {
			inside = false;
			break;
		} else {
			sleep_on(&spill_gate_state, state, LOOK_AGAIN_NS);
		}
	}
	if (inside)
		atomic_store_explicit(&self->clear, 0, memory_order_relaxed); /* it was for this entry */
	errno = error;
	return inside;
}

bool spill_gate_enter_request(void)
{
	if (!spill_gate_self)
		spill_gate_join(gate.counters);
	if (!spill_gate_self)
		return false; /* the gate cannot be closed */
	bool entered = spill_gate_enter(spill_gate_self);
	while (entered && spill_gate_flight() && !spill_mover_is_mine()) {
		spill_gate_leave(spill_gate_self);
		end_flight();
		entered = spill_gate_enter(spill_gate_self);
	}
	return entered;
}

bool spill_gate_prepare(void)
{
	pthread_once(&gate.once, start_gate);
	if (atomic_load(&spill_gate_state) & SPILL_GATE_BARE)
		return true;
	if (!atomic_load(&gate.prepared) &&
	    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0)
		atomic_store(&gate.prepared, true);
	return atomic_load(&gate.prepared);
}

/*
 * After this call the closer sees each thread inside, or the thread sees the closed gate when it
 * enters.
 */
static bool order_all_threads(void)
{
	return (atomic_load(&spill_gate_state) & SPILL_GATE_BARE) ||
	       syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static bool wait_until_out(const struct spill_gate_thread *thread, uint64_t deadline_ns)
{
	_Atomic unsigned nobody_wakes = 0;
	for (unsigned spins = 0; atomic_load(&thread->inside); spins++) {
		if (spins < SPINS)
			continue;
		if (spill_clock_ns() >= deadline_ns)
			return false;
		sleep_on(&nobody_wakes, 0, NAP_NS);
	}
	return true;
}

static bool wait_until_all_out(uint64_t deadline_ns)
{
	for (const struct spill_gate_thread *thread = atomic_load(&gate.threads); thread;
	     thread = thread->next)
		if (!wait_until_out(thread, deadline_ns))
			return false;
	return true;
}

bool spill_gate_close(uint64_t deadline_ns)
{
	const struct spill_gate_thread *self = spill_gate_self;
	int error = errno;
	bool closed = !(self && atomic_load(&self->inside)) && spill_gate_prepare() &&
	              !(atomic_fetch_or(&spill_gate_state, SPILL_GATE_CLOSED) & SPILL_GATE_CLOSED);
	is_closer = is_closer || closed;
	if (closed &&
	    !(order_all_threads() && !atomic_load(&gate.outsiders) && wait_until_all_out(deadline_ns))) {
		spill_gate_open();
		closed = false;
	}
	errno = error;
	return closed;
}

void spill_gate_open(void)
{
	int error = errno;
	is_closer = false;
	atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_CLOSED);
	syscall(SYS_futex, &spill_gate_state, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	errno = error;
}

void spill_gate_want_maintenance(void)
{
	atomic_fetch_or(&spill_gate_state, SPILL_GATE_MAINTENANCE);
}

void spill_gate_fork_child(void)
{
	for (struct spill_gate_thread *thread = atomic_load(&gate.threads); thread; thread = thread->next)
		if (thread != spill_gate_self) {
			atomic_store(&thread->inside, 0);
			atomic_store(&thread->owned, false);
		}
	is_closer = false;
	atomic_fetch_and(&spill_gate_state,
	                 ~(unsigned)(SPILL_GATE_CLOSED | SPILL_GATE_MAINTENANCE | SPILL_GATE_FLIGHTS));
	atomic_store(&gate.flight, 0);
	/* whether a fork keeps the registration is not documented */
	atomic_store(&gate.prepared, false);
}

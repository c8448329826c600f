/*
 * The memory orders of seqlock.h, publish_once.h and the gate, on aarch64: the code itself runs, and
 * a model tries all executions of it (weak_memory.h). Each order is then weakened alone. Where it is
 * needed, the model must find a bad execution, so these tests fail if somebody weakens it.
 */
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "unit.h"
#include "weak_atomics.h"

#include "clock.h"
#include "process.h"
#include "publish_once.h"
#include "seqlock.h"

/* No other thread waits here, so no call reaches the kernel. A thread that sleeps finds the gate open. */
static void open_meanwhile(void);
static long model_syscall(long number, ...)
{
	va_list arguments;
	va_start(arguments, number);
	if (number == SYS_futex)
		(void)va_arg(arguments, void *);
	int command = va_arg(arguments, int);
	va_end(arguments);
	if (number == SYS_futex && command == FUTEX_WAIT_PRIVATE)
		open_meanwhile();
	if (number == SYS_membarrier && command == MEMBARRIER_CMD_QUERY)
		return MEMBARRIER_CMD_PRIVATE_EXPEDITED;
	if (number == SYS_membarrier && command == MEMBARRIER_CMD_PRIVATE_EXPEDITED)
		weak_barrier_of_all();
	return 0;
}

#define syscall model_syscall
#include "../../src/work/gate.c"
#undef syscall

static void open_meanwhile(void)
{
	spill_gate_state = SPILL_GATE_OPEN;
}

/* Operations are numbered as they were recorded. A read-modify-write is two: its load, its store. */
#define BIT(operation) (1u << (operation))

/* Weakens each operation alone. Returns a bit for each one that is needed. */
static uint32_t find_needed(bool (*is_bad)(const struct weak_execution *execution))
{
	uint32_t needed = 0;
	assert_false(weak_allows(is_bad));
	for (unsigned i = 0; i < weak_operations(); i++) {
		if (weak_weaken(i) && weak_allows(is_bad))
			needed |= BIT(i);
		weak_restore();
	}
	return needed;
}

static uint32_t all_strong(void)
{
	uint32_t strong = 0;
	for (unsigned i = 0; i < weak_operations(); i++) {
		strong |= (uint32_t)weak_weaken(i) << i;
		weak_restore();
	}
	return strong;
}

/* A store and a load of plain memory. */
static uint64_t plain;
static void set_plain(uint64_t value)
{
	weak_store(&plain, sizeof(plain), value, memory_order_relaxed);
}
static uint64_t get_plain(void)
{
	return weak_load(&plain, sizeof(plain), memory_order_relaxed);
}

/* -- seqlock.h --------------------------------------------------------------------------------- */

static spill_seqlock lock;
static _Atomic uint64_t figures[2];

static void write_figures(uint64_t value)
{
	const uint64_t words[2] = {value, value};
	spill_seq_write_alone(&lock);
	spill_seq_put(figures, words, 2);
	spill_seq_write_end(&lock);
}

static bool read_figures(uint64_t *words)
{
	uint32_t version = spill_seq_read_begin(&lock);
	spill_seq_take(words, figures, 2);
	return spill_seq_read_end(&lock, version);
}

static bool figures_are_mixed(const struct weak_execution *execution)
{
	uint64_t words[2];
	weak_replay(execution->loads[1]);
	bool valid = read_figures(words);
	weak_stop();
	return valid && words[0] != words[1];
}

static void watch_figures(void)
{
	weak_reset();
	lock = 0;
	figures[0] = figures[1] = 0;
	weak_watch(&lock, sizeof(lock));
	weak_watch(&figures[0], sizeof(figures[0]));
	weak_watch(&figures[1], sizeof(figures[1]));
}

TEST(figures_that_are_read_together_belong_together)
{
	uint64_t words[2];
	watch_figures();
	weak_record(0);
	write_figures(1);
	write_figures(2);
	weak_record(1);
	(void)read_figures(words);
	weak_stop();
	/*
	 * The odd versions are stored relaxed. Before the end of the first write a reader gets
	 * nothing, so its figures need no order.
	 */
	enum { FIRST_FIGURE = 2, SECOND_FIGURE = 3 };
	assert_int_equal(weak_operations(), 16);
	assert_int_equal(find_needed(figures_are_mixed),
	                 all_strong() & ~(BIT(FIRST_FIGURE) | BIT(SECOND_FIGURE)));
}

/* -- publish_once.h ---------------------------------------------------------------------------- */

static _Atomic int published;

static bool is_unfinished(const struct weak_execution *execution)
{
	return execution->loads[1][0] == SPILL_PUBLISHED && execution->loads[1][1] != 7;
}

TEST(a_published_result_is_whole)
{
	weak_reset();
	weak_watch(&published, sizeof(published));
	weak_watch(&plain, sizeof(plain));
	weak_record(0);
	assert_true(spill_publish_begin(&published));
	set_plain(7);
	spill_publish_done(&published);
	weak_record(1);
	(void)spill_is_published(&published);
	(void)get_plain();
	weak_stop();
	/* Of the exchange that begins, no order is needed here: it chooses the thread. */
	enum { BEGIN_LOAD, BEGIN_STORE };
	assert_int_equal(find_needed(is_unfinished), all_strong() & ~(BIT(BEGIN_LOAD) | BIT(BEGIN_STORE)));
}

/* -- the gate ---------------------------------------------------------------------------------- */

static uint64_t work_done;

static void watch_gate(unsigned state)
{
	weak_stop();
	weak_reset();
	if (!spill_gate_self)
		spill_gate_join(1);
	spill_gate_state = state;
	is_closer = false;
	plain = work_done = 0;
	weak_watch(&spill_gate_state, sizeof(spill_gate_state));
	weak_watch(&spill_gate_self->inside, sizeof(spill_gate_self->inside));
	weak_watch(&plain, sizeof(plain));
	weak_watch(&work_done, sizeof(work_done));
}

/* Work uses the chunk (plain) and leaves a result. */
static void record_work(void)
{
	weak_record(0);
	bool outer = spill_gate_enter(spill_gate_self);
	(void)get_plain();
	weak_store(&work_done, sizeof(work_done), 1, memory_order_relaxed);
	if (outer)
		spill_gate_leave(spill_gate_self);
}

/* The mover closes the gate, waits for those inside, looks at their results and moves the chunk. */
static void record_move(void)
{
	struct spill_gate_thread *self = spill_gate_self;
	spill_gate_self = NULL;
	weak_record(1);
	assert_true(spill_gate_close(UINT64_MAX));
	(void)weak_load(&work_done, sizeof(work_done), memory_order_relaxed);
	set_plain(1);
	weak_stop();
	spill_gate_self = self;
}

/*
 * The loads of the work: its own `inside`, the state (of the last look, in turn `looks`), the chunk.
 * Of the move: the last two are `inside` and the result.
 */
static unsigned looks, last;

static bool passed(uint64_t state)
{
	return !(state & SPILL_GATE_CLOSED);
}

/* The work got inside, the mover found nobody inside, and they met. */
static bool they_meet(const struct weak_execution *execution)
{
	const uint64_t *work = execution->loads[0], *move = execution->loads[1];
	bool moved = work[looks + 1] == 1, missed = move[last] == 0;
	return passed(work[looks]) && move[last - 1] == 0 && (moved || missed);
}

TEST(work_and_a_move_never_meet)
{
	watch_gate(SPILL_GATE_OPEN);
	record_work();
	record_move();
	looks = 1;
	last = 4;
	enum { FENCE = 2, LEAVE = 6, BARRIER = 11, LOOK_INSIDE = 12, OPERATIONS = 15 };
	assert_int_equal(weak_operations(), OPERATIONS);
	assert_int_equal(find_needed(they_meet), BIT(FENCE) | BIT(LEAVE) | BIT(BARRIER) | BIT(LOOK_INSIDE));
}

/* The work came to the closed gate, left again and slept. Then the mover opens it, and closes it anew. */
static bool they_meet_later(const struct weak_execution *execution)
{
	const uint64_t *work = execution->loads[0];
	return !passed(work[1]) && !passed(work[3]) && they_meet(execution);
}

TEST(work_that_had_to_wait_never_meets_a_move)
{
	struct spill_gate_thread *self;
	watch_gate(SPILL_GATE_CLOSED);
	record_work();
	weak_stop();
	self = spill_gate_self;
	spill_gate_state = SPILL_GATE_CLOSED;
	weak_record(1);
	spill_gate_open();
	record_move();
	weak_start_with(&spill_gate_state, SPILL_GATE_CLOSED);
	looks = 5;
	last = 5;
	enum { FENCE = 11, LEAVE = 15, BARRIER = 22, LOOK_INSIDE = 23, OPERATIONS = 26 };
	assert_ptr_equal(spill_gate_self, self);
	assert_int_equal(weak_operations(), OPERATIONS);
	assert_int_equal(find_needed(they_meet_later),
	                 BIT(FENCE) | BIT(LEAVE) | BIT(BARRIER) | BIT(LOOK_INSIDE));
}

/* The exchange of `inside` and the look at the state do what the barrier did. */
TEST(they_do_not_meet_without_membarrier_either)
{
	watch_gate(SPILL_GATE_BARE);
	record_work();
	record_move();
	looks = 4;
	last = 4;
	enum { GO_INSIDE = 6, LOOK_AT_STATE = 7, LEAVE = 10, LOOK_INSIDE = 15, OPERATIONS = 18 };
	assert_int_equal(weak_operations(), OPERATIONS);
	assert_int_equal(find_needed(they_meet),
	                 BIT(GO_INSIDE) | BIT(LOOK_AT_STATE) | BIT(LEAVE) | BIT(LOOK_INSIDE));
}

/* -- the gate opens ---------------------------------------------------------------------------- */

static bool sees_old_chunk(const struct weak_execution *execution)
{
	return passed(execution->loads[0][1]) && execution->loads[0][2] == 0;
}

TEST(work_sees_what_the_mover_left)
{
	watch_gate(SPILL_GATE_OPEN);
	record_work();
	weak_record(1);
	spill_gate_state = SPILL_GATE_CLOSED;
	set_plain(1);
	spill_gate_open();
	weak_stop();
	weak_start_with(&spill_gate_state, SPILL_GATE_CLOSED);
	enum { LOOK_AT_STATE = 3, OPEN = 9, OPERATIONS = 10 };
	assert_int_equal(weak_operations(), OPERATIONS);
	assert_int_equal(find_needed(sees_old_chunk), BIT(LOOK_AT_STATE) | BIT(OPEN));
}

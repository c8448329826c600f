/*
 * When memory is brought to the device before it is used, and when that is undone. The model of accesses
 * is the test's: it says which chunks change sides. The clock stands still.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access_choice.h"
#include "access_model.h"
#include "access_recording.h"
#include "account.h"
#include "captures.h"
#include "chunk_map.h"
#include "chunked.h"
#include "contexts.h"
#include "exchange.h"
#include "fake_clock.h"
#include "fake_objects.h"
#include "fake_vendor.h"
#include "gate.h"
#include "host_chunks.h"
#include "ledger.h"
#include "movable.h"
#include "copier.h"
#include "movable_allocation.h"
#include "move.h"
#include "note.h"
#include "prefetch.h"
#include "process.h"
#include "promote.h"

#define MS 1000000ull
#define CHUNK SPILL_CHUNK_MAP_UNIT
#define WAIT_MS 50

/* Two allocations. The chunks of the second are on the host at first. */
enum { AWAY = 8, CHUNKS = 2 * AWAY };

static struct spill_policy policy;
static int context;
static const bool yes = true, no = false;
static struct spill_chunked *halves[2];
static char notes[16][256];
static unsigned note_count;

/* In place of note.c. */
void spill_note(const char *code, const char *text)
{
	if (!strcmp(code, "movable"))
		return;
	assert_string_equal(code, "follow");
	assert_true(note_count < 16);
	snprintf(notes[note_count++], sizeof(notes[0]), "%s", text);
}

/* In place of probe.c, whose trial needs memory of the host with bytes. */
enum spill_probe spill_probe(const struct spill_backend *backend, int device)
{
	assert_true(spill_gate_prepare());
	return SPILL_PROBE_WORKS;
}

/* -- in place of access_model.c: needed chunks come, and as many others go as lack room ------------------ */

static struct {
	bool pays, swaps, lets_one_stay, busy, spares; /* busy: a measurement arrives at each question */
	uint64_t heard;
	unsigned asked, idle, moved;       /* calls */
	unsigned dead, displaced, swapped; /* chunks: of the last one, and of swaps */
	uint64_t waited_ns;                /* before the last exchange */
	unsigned untold;                   /* moves whose time tells nothing about others */
	struct spill_exchange_choice last; /* as it was asked; its lists are gone */
} model;

bool spill_access_model_choose(struct spill_exchange_choice *choice, uint16_t site, uint64_t *cost_ns)
{
	uint64_t needed = model.spares ? choice->spare : 0, room = choice->room;
	bool comes = false;
	model.asked++;
	model.last = *choice;
	model.dead = model.displaced = 0;
	for (unsigned i = 0; i < choice->count; i++) {
		model.dead += choice->chunks[i].dead;
		model.displaced += choice->chunks[i].displaced;
	}
	*cost_ns = 3000;
	choice->excess_ns = 7000;
	choice->pays = model.pays;
	choice->swaps = model.swaps;
	if (!model.pays && !choice->always && !model.swaps)
		return false;
	for (unsigned i = 0; i < choice->count; i++)
		if (choice->chunks[i].needed && choice->chunks[i].on_host) {
			choice->chunks[i].verdict = SPILL_EXCHANGE_COMES;
			needed += CHUNK;
			comes = true;
		}
	for (unsigned i = 0; i < choice->count && comes && room < needed; i++)
		if (!choice->chunks[i].needed && !choice->chunks[i].on_host) {
			choice->chunks[i].verdict = SPILL_EXCHANGE_GOES;
			room += CHUNK;
		}
	if (model.lets_one_stay)
		choice->chunks[choice->count - 1].verdict =
		    SPILL_EXCHANGE_COMES; /* for which there is no room */
	return comes;
}

void spill_access_model_swapped(const struct spill_exchange_choice *choice)
{
	for (unsigned i = 0; i < choice->count; i++)
		model.swapped += choice->chunks[i].verdict != SPILL_EXCHANGE_STAYS;
}

uint64_t spill_access_model_hear(void)
{
	return model.heard += model.busy;
}

void spill_access_model_idle(void)
{
	model.idle++;
}

void spill_access_model_moved(const struct spill_exchange_choice *choice, uint64_t bytes, uint64_t ns,
                              uint64_t waited_ns)
{
	model.waited_ns = waited_ns;
	if (!bytes) {
		model.untold++;
		return;
	}
	assert_true(bytes % CHUNK == 0 && ns && choice->excess_ns == 7000);
	model.moved++;
}

/* -- in place of access_recording.c ------------------------------------------------------------------------ */

static struct {
	unsigned exchanges, restored;
	struct spill_recorded_exchange last;
} recorded;

void spill_access_recording_exchange(const struct spill_exchange_choice *choice,
                                     const struct spill_recorded_exchange *seen)
{
	recorded.exchanges++;
	recorded.last = *seen;
}

void spill_access_recording_restored(void)
{
	recorded.restored++;
}

/* -- a full device ------------------------------------------------------------------------------------------ */

static struct spill_chunk *chunk(unsigned index)
{
	return &halves[index / AWAY]->chunks[index % AWAY];
}

static bool is_on_host(unsigned index)
{
	return chunk(index)->on_host;
}

static void leave(unsigned index)
{
	struct spill_exchange exchange = {.backend = &fake_vendor_backend};
	assert_true(spill_exchange_add(&exchange, halves[index / AWAY], index % AWAY));
	spill_exchange_carry_out(&exchange, spill_clock_ns() + MS);
	chunk(index)->displaced = false;
}

static struct spill_chunked *make(void)
{
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, AWAY * CHUNK, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *made = make_allocation(&spill_place_movable, &want);
	spill_chunked_enlist(made);
	return made;
}

static void fill_device(void)
{
	halves[0] = make();
	halves[1] = make();
	assert_true(spill_gate_prepare());
	spill_mover_lock();
	for (unsigned i = AWAY; i < CHUNKS; i++)
		leave(i);
	spill_exchange_drop();
	spill_mover_unlock();
	fake_vendor.device_free = 0;
	assert_int_equal(spill_chunked_on_host(), AWAY * CHUNK);
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.log_stderr = SPILL_STDERR_OFF;
	policy.movable_wait_us = WAIT_MS * 1000;
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.host_limit = policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	spill_process_use_policy(&policy);
	fake_clock_use(100000 * MS);
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	fake_vendor_reset_mover(2 * CHUNKS * CHUNK);
	fake_vendor.granule = fake_vendor.host_granule = CHUNK;
	fake_vendor.context = &context;
	fake_vendor.marks_pass = &yes;
	spill_account_reset();
	spill_copier_reset();
	spill_movable_reset();
	spill_promote_reset();
	spill_exchange_reset();
	spill_prefetch_reset();
	spill_contexts_made(&fake_vendor_backend, 0, &context);
	memset(&model, 0, sizeof(model));
	memset(&recorded, 0, sizeof(recorded));
	model.pays = true;
	fill_device();
	fake_clock.ns += 10000 * MS;
	note_count = 0;
	return 0;
}

static int teardown(void **state)
{
	set_capturing(false);
	for (unsigned i = 0; i < 2; i++) {
		spill_ledger_end(spill_ledger_take(halves[i]->base.ptr));
		spill_placement_release(&halves[i]->base, false);
	}
	spill_mover_lock();
	spill_exchange_drop();
	spill_mover_unlock();
	spill_host_chunks_drop(&fake_vendor_backend);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(fake_vendor.handles + fake_vendor.mappings, 0);
	return 0;
}

/* A launch that uses one chunk. */
static struct spill_launch_access access_to(unsigned index)
{
	struct spill_launch_access access = {.site = 1, .count = 1, .sure = 1, .bytes = CHUNK};
	access.keys[0] = (uint32_t)(spill_chunked_address(halves[index / AWAY], index % AWAY) >>
	                            SPILL_CHUNK_MAP_UNIT_SHIFT);
	access.on_host = is_on_host(index);
	access.host_bytes = is_on_host(index) ? CHUNK : 0;
	return access;
}

static bool prefetch(unsigned index)
{
	struct spill_launch_access access = access_to(index);
	return spill_prefetch(&access, &(struct spill_access_advice){.busy_ns = 10 * MS});
}

static void left_in_place(unsigned index)
{
	struct spill_launch_access access = access_to(index);
	spill_prefetch_left_in_place(&access, &(struct spill_access_advice){.busy_ns = 10 * MS});
}

/* So many accesses to a chunk on the host until the exchange of chunk 0 is undone. */
static unsigned accesses_until_restored(void)
{
	unsigned count = 0;
	assert_true(is_on_host(0));
	for (; is_on_host(0); count++) {
		assert_true(count < 1000);
		left_in_place(CHUNKS - 1);
	}
	return count;
}

/* -- bringing ------------------------------------------------------------------------------------------------- */

TEST(what_is_needed_comes_in_the_place_of_another_chunk)
{
	assert_true(prefetch(AWAY + 1));
	assert_true(!is_on_host(AWAY + 1) && is_on_host(0));
	assert_int_equal(spill_chunked_on_host(), AWAY * CHUNK);
	assert_int_equal(model.last.count, CHUNKS);
	assert_int_equal(model.last.horizon, (CHUNKS - AWAY) * CHUNK / 2);
	assert_int_equal(model.last.room, 0);
	assert_false(model.last.always);
	assert_true(spill_chunked_is_held());
	assert_int_equal(model.idle, 1);
	assert_true(model.moved == 0 && model.untold == 1); /* its host memory was new */
	assert_true(prefetch(AWAY + 2));
	assert_true(!is_on_host(AWAY + 2) && is_on_host(1));
	assert_int_equal(model.moved, 1);
	fake_clock.ns += 500 * MS;
	assert_false(spill_chunked_is_held());
}

/* It is for good: no end of a phase undoes it, and nothing else waits for it. */
TEST(chunks_that_swap_are_at_home)
{
	model.pays = false;
	model.swaps = true;
	assert_true(prefetch(AWAY + 1));
	assert_true(!is_on_host(AWAY + 1) && is_on_host(0));
	assert_false(chunk(AWAY + 1)->displaced || chunk(0)->displaced);
	assert_int_equal(model.swapped, 2);
	assert_false(spill_chunked_is_held());
	assert_int_equal(note_count, 1);
	assert_string_equal(
	    notes[0],
	    "memory that costs less in place changes places with memory that costs more (movable.follow)");
	for (unsigned i = 0; i < 100; i++)
		left_in_place(0);
	assert_true(!is_on_host(AWAY + 1) && is_on_host(0));
	assert_int_equal(recorded.exchanges, 1);
	assert_int_equal(recorded.restored, 0);
	assert_true(prefetch(0)); /* and back */
	assert_true(is_on_host(1) && !is_on_host(0));
	assert_int_equal(note_count, 1); /* it was said */
	/* An exchange afterwards is undone, and the swap is not. */
	model.pays = true;
	model.swaps = false;
	assert_true(prefetch(AWAY + 2));
	assert_true(chunk(AWAY + 2)->displaced && chunk(0)->displaced);
	model.pays = false;
	assert_false(prefetch(0));
	assert_int_equal(model.displaced, 2);
	for (unsigned i = 0; i < 100 && is_on_host(0); i++)
		left_in_place(CHUNKS - 1);
	assert_true(!is_on_host(0) && is_on_host(AWAY + 2));
	assert_true(!is_on_host(AWAY + 1) && is_on_host(1));
}

/* Nothing is said of the price, which nobody compared. */
TEST(a_look_for_a_swap_asks_for_nothing_else)
{
	struct spill_launch_access access = access_to(AWAY + 1);
	struct spill_access_advice advice = {.busy_ns = 10 * MS, .looks = true};
	assert_true(prefetch(AWAY + 2));
	assert_false(model.last.swaps_only || model.last.graph);
	assert_int_equal(note_count, 1);
	fake_clock.ns += 10000 * MS;
	model.pays = false;
	access.graph = true;
	assert_false(spill_prefetch(&access, &advice));
	assert_true(model.last.swaps_only && model.last.graph);
	assert_int_equal(note_count, 1);
}

/* One that stays where it is has the home that it had. */
TEST(only_what_moved_has_a_new_home)
{
	model.pays = false;
	model.swaps = true;
	model.lets_one_stay = true;
	chunk(CHUNKS - 1)->displaced = true;
	assert_true(prefetch(AWAY + 1));
	assert_true(chunk(CHUNKS - 1)->displaced);
	assert_int_equal(model.swapped, 2);
}

/* A swap is no news about what an exchange costs. */
TEST(a_swap_does_not_end_the_exchanges)
{
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(note_count, 1);
	fake_clock.ns += 10000 * MS;
	model.pays = false;
	model.swaps = true;
	assert_true(prefetch(AWAY + 2));
	assert_int_equal(note_count, 2);
	assert_non_null(strstr(notes[1], "changes places"));
}

TEST(without_a_gain_nothing_moves)
{
	model.pays = false;
	assert_false(prefetch(AWAY + 1));
	assert_true(is_on_host(AWAY + 1) && !is_on_host(0));
	assert_int_equal(model.idle, 0);
	policy.movable_follow = SPILL_FOLLOW_ON;
	assert_true(prefetch(AWAY + 1));
	assert_true(model.last.always);
	assert_int_equal(note_count, 0); /* nobody has compared costs */
}

TEST(what_is_on_the_device_brings_nothing)
{
	assert_false(prefetch(0));
	assert_int_equal(model.asked, 1);
	assert_int_equal(model.idle, 0);
}

TEST(what_is_gone_brings_nothing)
{
	struct spill_launch_access access = access_to(AWAY + 1);
	access.keys[1] = access.keys[0]; /* behind the last */
	access.keys[0] += 1000;
	assert_false(spill_prefetch(&access, &(struct spill_access_advice){0}));
	assert_int_equal(model.asked, 0);
}

TEST(what_must_not_move_is_not_asked_about)
{
	spill_movable_forbid("a test");
	note_count = 0;
	assert_false(prefetch(AWAY + 1));
	assert_int_equal(model.asked, 0);
}

/* The room that chunks leave is not for those that could come back at once. */
TEST(after_an_exchange_nothing_is_promoted_for_a_while)
{
	assert_true(prefetch(AWAY + 1));
	fake_vendor.device_free = CHUNKS * CHUNK;
	spill_promote_later();
	spill_promote_maintain();
	assert_int_equal(spill_chunked_on_host(), AWAY * CHUNK);
	spill_chunked_hold(0); /* the pause of exchanges; promotion has one of its own */
	spill_promote_maintain();
	assert_int_equal(spill_chunked_on_host(), AWAY * CHUNK);
	fake_clock.ns += SPILL_PROMOTE_QUIET_MS * MS;
	spill_promote_maintain();
	assert_int_equal(spill_chunked_on_host(), 0);
}

/* Memory is kept for the next exchange, and counts as room then. */
TEST(what_is_left_over_is_kept)
{
	model.spares = true;
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(model.last.spare, AWAY * CHUNK / 8);
	assert_int_equal(spill_exchange_kept(), CHUNK);
	assert_true(is_on_host(0) && is_on_host(1));
	model.spares = false;
	assert_true(prefetch(AWAY + 2));
	assert_int_equal(model.last.room, CHUNK);
	assert_false(is_on_host(2));
	assert_int_equal(spill_exchange_kept(), 0);
}

/* After a swap there may be no exchange that would use it. */
TEST(a_swap_keeps_no_memory)
{
	model.pays = false;
	model.swaps = model.spares = true;
	assert_true(prefetch(AWAY + 1));
	assert_true(is_on_host(0) && is_on_host(1));
	assert_int_equal(spill_exchange_kept(), 0);
}

static unsigned first_is_live(const struct spill_chunked *of, unsigned index,
                              struct spill_span spans[SPILL_SPANS])
{
	spans[0] = (struct spill_span){0, 1};
	return index == 0;
}

/* Memory of which nothing is in use moves for nothing. Only segments have such. */
TEST(dead_chunks_are_told)
{
	prefetch(AWAY + 1);
	assert_int_equal(model.dead, 0);
	halves[1]->live = first_is_live;
	prefetch(AWAY + 2);
	assert_int_equal(model.dead, AWAY - 1);
}

/* Nothing has to leave where there is room. */
TEST(one_way_alone)
{
	fake_vendor.device_free = CHUNK;
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(model.last.room, CHUNK);
	assert_int_equal(spill_chunked_on_host(), (AWAY - 1) * CHUNK);
}

/* The launch is told that memory came if and only if it did. */
TEST(whatever_fails_the_answer_is_right)
{
	unsigned number = 0;
	for (bool failed = true; failed;) {
		number++;
		fake_vendor_fail(number, number + 1);
		bool here = prefetch(AWAY + 1);
		failed = fake_vendor.calls >= number;
		fake_vendor_fail(0, 0);
		assert_int_equal(here, !is_on_host(AWAY + 1) && !chunk(AWAY + 1)->unmapped);
		teardown(NULL);
		setup(NULL);
	}
	assert_true(number > 10);
	fake_libc_fail(FAKE_realloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	fake_libc_fail(FAKE_calloc, 3, FAKE_LIBC_FOR_EVER, ENOMEM); /* behind the two of the list of chunks */
	assert_false(prefetch(AWAY + 1));
	fake_libc_reset();
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	assert_true(is_on_host(AWAY + 1));
}

/* 0 with an allocator of a sanitizer, which finds what is lost itself. */
TEST(a_decision_keeps_no_memory)
{
	model.pays = false;
	prefetch(AWAY + 1);
	size_t before = mallinfo2().uordblks;
	for (unsigned i = 0; i < 10; i++)
		prefetch(AWAY + 1);
	assert_int_equal(mallinfo2().uordblks, before);
}

/* -- the mover is another thread's ------------------------------------------------------------------------------ */

static void *move_meanwhile(void *body)
{
	((void (*)(void))body)();
	return NULL;
}

/* With the mover held by this thread: whoever waits for it never returns. */
static void while_another_moves(void (*body)(void))
{
	pthread_t thread;
	spill_mover_lock();
	assert_int_equal(pthread_create(&thread, NULL, move_meanwhile, (void *)body), 0);
	pthread_join(thread, NULL);
	spill_mover_unlock();
}

static bool came;

static void prefetch_meanwhile(void)
{
	came = prefetch(AWAY + 1);
}

TEST(nobody_waits_for_another_mover)
{
	came = true;
	while_another_moves(prefetch_meanwhile);
	assert_false(came);
	assert_int_equal(model.asked, 0);
	assert_true(is_on_host(AWAY + 1));
}

static void restore_meanwhile(void)
{
	left_in_place(CHUNKS - 1);
	left_in_place(CHUNKS - 1);
	left_in_place(CHUNKS - 1);
}

TEST(nobody_waits_for_another_mover_to_undo)
{
	assert_true(prefetch(AWAY + 1));
	while_another_moves(restore_meanwhile);
	assert_true(is_on_host(0));
	assert_int_equal(accesses_until_restored(), 1);
}

/* -- a busy device ---------------------------------------------------------------------------------------------- */

/* Milliseconds that the next such a prefetch waits. */
static uint64_t waited_ms(void)
{
	uint64_t before = fake_clock.slept_ns;
	assert_false(prefetch(AWAY + 1));
	return (fake_clock.slept_ns - before) / MS;
}

/*
 * The first wait is five times movable.wait. For four times as long the device is only looked at, for
 * 2 ms each 20 ms. The second pause is at least twice as long as the first.
 */
TEST(a_busy_device_is_waited_for_more_rarely)
{
	uint64_t first, second, start;
	fake_vendor.marks_pass = &no;
	first = waited_ms();
	assert_int_equal(first, 5 * (WAIT_MS + 1));
	start = fake_clock.ns;
	assert_int_equal(waited_ms(), 0); /* too soon even for a look */
	assert_int_equal(model.asked, 1);
	fake_clock.ns += 20 * MS - 1;
	assert_int_equal(waited_ms(), 0);
	fake_clock.ns += 1;
	assert_int_equal(waited_ms(), 2);
	assert_int_equal(waited_ms(), 0);
	fake_clock.ns = start + 4 * first * MS - 1;
	assert_int_equal(waited_ms(), 2);
	fake_clock.ns = start + 4 * first * MS;
	second = waited_ms();
	assert_int_equal(second, first);
	start = fake_clock.ns;
	fake_clock.ns = start + 8 * first * MS - 1;
	assert_int_equal(waited_ms(), 2);
	/* Idle at last: then all begins anew. */
	fake_vendor.marks_pass = &yes;
	fake_clock.ns += 20 * MS;
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(model.idle, 1);
	fake_vendor.marks_pass = &no;
	assert_false(prefetch(AWAY + 2));
	start = fake_clock.slept_ns;
	fake_clock.ns += 4 * first * MS;
	assert_false(prefetch(AWAY + 2));
	assert_int_equal((fake_clock.slept_ns - start) / MS, first);
}

/* With a wait of 4 ms, and a millisecond between two waits, each limit is met exactly. */
TEST(waits_end_in_time)
{
	const struct {
		uint64_t busy_ms, waited_ms;
		bool alive;
	} cases[] = {{0, 20, false}, {50, 100, false}, {0, 5000, true}, {100000, 5000, false}};
	policy.movable_wait_us = 4000;
	fake_vendor.marks_pass = &no;
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spill_launch_access access = access_to(AWAY + 1);
		uint64_t before = fake_clock.slept_ns;
		spill_prefetch_reset();
		model.busy = cases[i].alive;
		assert_false(
		    spill_prefetch(&access, &(struct spill_access_advice){.busy_ns = cases[i].busy_ms * MS}));
		assert_int_equal((fake_clock.slept_ns - before) / MS, cases[i].waited_ms);
		assert_int_equal(recorded.last.waited_ns, cases[i].waited_ms * MS);
		assert_int_equal(recorded.last.busy_ns, cases[i].busy_ms * MS);
	}
}

static void nothing(void)
{
}

static struct {
	sem_t entered, over;
	struct spill_gate_thread *thread;
	unsigned looks; /* at the clock */
} inside;

static void *stay_inside(void *data)
{
	spill_gate_join(0);
	inside.thread = spill_gate_self;
	spill_gate_enter(inside.thread);
	sem_post(&inside.entered);
	while (sem_wait(&inside.over))
		;
	return data;
}

/* Its call returns while the closed gate is waited for. */
static uint64_t now_and_leave(void)
{
	if (atomic_load(&spill_gate_state) & SPILL_GATE_CLOSED && ++inside.looks == 3)
		spill_gate_leave(inside.thread);
	return fake_clock.ns;
}

static void sleep_long(uint64_t ns)
{
	fake_clock.ns += ns;
	fake_clock.sleeps++;
}

TEST(a_call_that_is_under_way_is_waited_for)
{
	static const struct spill_clock clock = {.now = now_and_leave, .sleep = sleep_long};
	pthread_t thread;
	spill_gate_use(0, nothing);
	inside.looks = 0;
	assert_int_equal(sem_init(&inside.entered, 0, 0) + sem_init(&inside.over, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, stay_inside, NULL), 0);
	while (sem_wait(&inside.entered))
		;
	fake_clock.sleeps = 0;
	spill_clock_use(&clock);
	bool here = prefetch(AWAY + 1);
	sem_post(&inside.over);
	pthread_join(thread, NULL);
	assert_true(here);
	assert_int_equal(fake_clock.sleeps, 0);
}

static bool await_idle(void)
{
	spill_mover_lock();
	bool idle = spill_prefetch_await_idle(&fake_vendor_backend, 0, 0);
	spill_mover_unlock();
	return idle;
}

/* For trials. A wait in vain counts for both. */
TEST(others_wait_for_an_idle_device_too)
{
	assert_true(await_idle());
	fake_vendor.marks_pass = &no;
	assert_false(await_idle());
	fake_vendor.marks_pass = &yes;
	assert_false(await_idle());
	assert_false(prefetch(AWAY + 1));
	fake_clock.ns += 20 * MS;
	assert_true(await_idle());
	assert_true(prefetch(AWAY + 1));
}

static bool is_done;

static void finish(void)
{
	is_done = true;
}

/* The program is held up by that, too. */
TEST(the_time_of_the_wait_is_told_with_the_exchange)
{
	is_done = false;
	fake_vendor.marks_pass = &is_done;
	fake_clock.on_sleep = finish;
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(model.waited_ns, recorded.last.waited_ns);
	assert_int_not_equal(model.waited_ns, 0);
}

/* Its last marks pass late, but within movable.wait. */
TEST(an_exchange_waits_for_the_last_work)
{
	fake_vendor.marks_pass = NULL;
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(recorded.exchanges, 1);
	assert_int_equal(recorded.last.came, CHUNK);
	assert_int_equal(recorded.last.cost_ns, 3000);
}

static pthread_t waiting;

static void *want_mover(void *data)
{
	spill_mover_lock();
	spill_mover_unlock();
	return data;
}

static void begin_to_want(void)
{
	fake_clock.on_sleep = NULL;
	assert_int_equal(pthread_create(&waiting, NULL, want_mover, NULL), 0);
	while (!spill_mover_wanted())
		;
}

TEST(whoever_needs_the_mover_gets_it)
{
	fake_vendor.marks_pass = &no;
	fake_clock.on_sleep = begin_to_want;
	assert_false(prefetch(AWAY + 1));
	pthread_join(waiting, NULL);
	assert_int_equal(fake_clock.slept_ns, (WAIT_MS + 1) * MS); /* the gate is open for the last one */
}

TEST(in_a_capture_nothing_comes)
{
	set_capturing(true);
	assert_false(prefetch(AWAY + 1));
	assert_true(is_on_host(AWAY + 1));
}

/* -- undoing ---------------------------------------------------------------------------------------------------- */

/* Half of what is on the host was used there. */
TEST(half_a_sweep_in_place_undoes_an_exchange)
{
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(accesses_until_restored(), AWAY / 2);
	assert_true(is_on_host(AWAY + 1));
	assert_int_equal(recorded.restored, 1);
	/* From now on no launch waits for a device. */
	fake_vendor.marks_pass = &no;
	uint64_t slept = fake_clock.slept_ns;
	for (unsigned i = 0; i < 4 * AWAY; i++)
		left_in_place(CHUNKS - 1);
	assert_int_equal(fake_clock.slept_ns, slept);
}

/* What went back to the host is not what has room on the device. */
TEST(what_was_undone_is_not_promoted_at_once)
{
	assert_true(prefetch(AWAY + 1));
	fake_clock.ns += 500 * MS;
	accesses_until_restored();
	fake_vendor.device_free = CHUNKS * CHUNK;
	spill_promote_later();
	spill_promote_maintain();
	assert_int_equal(spill_chunked_on_host(), AWAY * CHUNK);
	fake_clock.ns += SPILL_PROMOTE_QUIET_MS * MS;
	spill_promote_later();
	spill_promote_maintain();
	assert_int_equal(spill_chunked_on_host(), 0);
}

TEST(a_child_begins_anew)
{
	assert_true(prefetch(AWAY + 1));
	left_in_place(CHUNKS - 1);
	assert_true(spill_chunked_is_held());
	spill_prefetch_reset();
	assert_false(spill_chunked_is_held());
	for (unsigned i = 0; i < 4 * AWAY; i++)
		left_in_place(CHUNKS - 1);
	assert_true(is_on_host(0));
	spill_prefetch_displaced();
	assert_int_equal(accesses_until_restored(), AWAY / 2);
}

TEST(what_is_used_once_undoes_nothing)
{
	struct spill_launch_access access;
	assert_true(prefetch(AWAY + 1));
	access = access_to(CHUNKS - 1);
	access.once = true;
	for (unsigned i = 0; i < 4 * AWAY; i++)
		spill_prefetch_left_in_place(&access, &(struct spill_access_advice){0});
	assert_true(is_on_host(0));
	assert_int_equal(accesses_until_restored(), AWAY / 2);
}

TEST(an_exchange_in_between_begins_the_count_anew)
{
	assert_true(prefetch(AWAY + 1));
	left_in_place(CHUNKS - 1);
	assert_true(prefetch(AWAY + 2));
	assert_int_equal(accesses_until_restored(), AWAY / 2);
	assert_true(!is_on_host(1) && is_on_host(AWAY + 1) && is_on_host(AWAY + 2));
}

/* Each time an exchange follows soon, twice as much: up to 64 halves of what is on the host. */
TEST(phases_that_take_turns_are_left_alone_for_longer)
{
	for (unsigned accesses = AWAY / 2; accesses < 4 * 64 * AWAY / 2; accesses *= 2) {
		unsigned most = 64 * AWAY / 2;
		assert_true(prefetch(AWAY + 1));
		assert_int_equal(accesses_until_restored(), accesses < most ? accesses : most);
	}
	spill_prefetch_reset();
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(accesses_until_restored(), AWAY / 2);
}

/* After eight sweeps in place it was right to undo the last one. Others' exchanges are counted from, too. */
static void exchange_after(unsigned accesses)
{
	assert_true(prefetch(AWAY + 1));
	accesses_until_restored();
	spill_prefetch_displaced();
	fake_vendor.marks_pass = &no;
	for (unsigned i = 0; i < accesses; i++)
		left_in_place(CHUNKS - 1);
	fake_vendor.marks_pass = &yes;
	fake_clock.ns += 100000 * MS;
	assert_true(prefetch(AWAY + 1));
}

TEST(an_exchange_is_soon_within_eight_sweeps)
{
	exchange_after(8 * AWAY - 1);
	assert_int_equal(accesses_until_restored(), AWAY);
	spill_prefetch_reset();
	exchange_after(8 * AWAY);
	assert_int_equal(accesses_until_restored(), AWAY / 2);
}

TEST(on_a_busy_device_nothing_is_undone)
{
	assert_true(prefetch(AWAY + 1));
	fake_vendor.marks_pass = &no;
	for (unsigned i = 0; i < AWAY; i++)
		left_in_place(CHUNKS - 1);
	assert_true(is_on_host(0));
	uint64_t waited = fake_clock.slept_ns;
	left_in_place(CHUNKS - 1); /* too soon to wait again */
	assert_int_equal(fake_clock.slept_ns, waited);
	fake_vendor.marks_pass = &yes;
	fake_clock.ns += 20 * MS;
	assert_int_equal(accesses_until_restored(), 1);
}

TEST(what_must_not_move_is_not_undone)
{
	assert_true(prefetch(AWAY + 1));
	note_count = 0;
	policy.movable_enable = SPILL_SWITCH_OFF;
	for (unsigned i = 0; i < AWAY; i++)
		left_in_place(CHUNKS - 1);
	assert_true(is_on_host(0));
}

/* -- notes ------------------------------------------------------------------------------------------------------ */

static void noted(unsigned count, const char *text)
{
	if (note_count != count || !strstr(notes[count - 1], text))
		fail_msg("%u notes, the last: %s", note_count, note_count ? notes[note_count - 1] : "");
}

TEST(the_log_says_when_it_begins_and_ends)
{
	assert_true(prefetch(AWAY + 1));
	noted(
	    1,
	    "is brought to the device before it is used: in-place access costs 7 us per MiB, migration 3 (");
	assert_true(prefetch(AWAY + 2));
	assert_int_equal(note_count, 1);
	model.pays = false;
	fake_clock.ns += 2000 * MS; /* without an exchange */
	assert_false(prefetch(AWAY + 3));
	assert_int_equal(note_count, 1);
	fake_clock.ns++;
	assert_false(prefetch(AWAY + 3));
	noted(2, "is used in place again: in-place access costs 7 us per MiB, migration 3 (");
	assert_false(prefetch(AWAY + 3));
	assert_int_equal(note_count, 2);
	accesses_until_restored(); /* it is in place already */
	assert_int_equal(note_count, 2);
	model.pays = true;
	assert_true(prefetch(AWAY + 1));
	noted(3, "is brought");
	accesses_until_restored();
	noted(4, "is used in place again: the program has changed its accesses");
}

TEST(the_log_has_eight_such_notes)
{
	for (unsigned i = 0; i < 6; i++) {
		assert_true(prefetch(AWAY + 1));
		accesses_until_restored();
		assert_int_equal(note_count, i < 4 ? 2 * (i + 1) : 8);
	}
	spill_prefetch_reset();
	assert_true(prefetch(AWAY + 1));
	assert_int_equal(note_count, 9);
}

TEST(the_log_tells_when_exchanges_pause)
{
	struct spill_access_advice advice = {
	    .pause_change = SPILL_PAUSE_BEGINS, .pause_was_ns = 290567890, .pause_is_ns = 180123456};
	spill_prefetch_note_pause(&advice);
	noted(1, "used in place from now on: a step of the program takes 180123 us, and took 290567");
	advice.pause_change = SPILL_PAUSE_ENDS;
	spill_prefetch_note_pause(&advice);
	noted(2, "brought to the device again: a step");
	advice.pause_change = SPILL_PAUSE_IN_VAIN;
	spill_prefetch_note_pause(&advice);
	noted(3, "brought to the device as before: a trial of the other way took 180123 us, and was to take "
	         "less than 290567");
	advice.pause_change = SPILL_PAUSE_GOES_ON;
	spill_prefetch_note_pause(&advice);
	noted(4, "used in place as before: a trial");
	advice.pause_change = SPILL_PAUSE_ENDS;
	advice.pause_is_ns = 0;
	spill_prefetch_note_pause(&advice);
	noted(5, "the program has changed its accesses");
	for (unsigned i = 0; i < 10; i++)
		spill_prefetch_note_pause(&advice);
	assert_int_equal(note_count, 8);
	spill_prefetch_reset();
	spill_prefetch_note_pause(&advice);
	assert_int_equal(note_count, 9);
}

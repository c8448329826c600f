/*
 * How many chunks have to leave, and when they come back: at which times the device is looked at, by a clock that
 * stands still.
 */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "account.h"
#include "chunked.h"
#include "contexts.h"
#include "demote.h"
#include "exchange.h"
#include "fake_clock.h"
#include "fake_objects.h"
#include "fake_libc.h"
#include "fake_vendor.h"
#include "gate.h"
#include "host_chunks.h"
#include "ledger.h"
#include "movable.h"
#include "copier.h"
#include "movable_allocation.h"
#include "move.h"
#include "process.h"
#include "promote.h"
#include "reserve.h"

#define MS 1000000ull
#define START (1000 * MS)
#define LOOK (SPILL_PROMOTE_LOOK_MS * MS)
#define QUIET (SPILL_PROMOTE_QUIET_MS * MS)
#define CHUNK (4 * FAKE_SMALL_UNIT)

enum { CHUNKS = 8, AWAY = 4 };

static struct spill_policy policy;
static int context;
static const bool yes = true, no = false;
static struct spill_chunked *chunked;

/* In place of probe.c, whose trial needs memory of the host with bytes. */
enum spill_probe spill_probe(const struct spill_backend *backend, int device)
{
	assert_true(spill_gate_prepare());
	return SPILL_PROBE_WORKS;
}

/* In place of host_ahead.c: these tests make what its thread would make. */
static unsigned wakes;

void spill_host_ahead_wake(void)
{
	wakes++;
}

void spill_host_ahead_fork_child(void)
{
}

static struct spill_demotion demotion_for(uint64_t bytes)
{
	return (struct spill_demotion){.backend = &fake_vendor_backend,
	                               .device = 0,
	                               .bytes = bytes,
	                               .reason = SPILL_REASON_OOM,
	                               .api = "",
	                               .caller = ""};
}

/* As for a request that takes what has become free. */
static void demote(void)
{
	struct spill_demotion demotion = demotion_for(AWAY * CHUNK);
	fake_vendor.device_free = 0;
	if (!spill_demote(&demotion))
		fail_msg("%s", demotion.error);
	assert_int_equal(spill_chunked_away(chunked), AWAY * CHUNK);
	fake_vendor.device_free = 0;
}

static struct spill_chunked *make(const struct spill_place_ops *place, uint64_t bytes)
{
	struct spill_place_request want = {&fake_vendor_backend, &policy, 0, &context, bytes, 0,
	                                   SPILL_UNLIMITED};
	struct spill_chunked *made = make_allocation(place, &want);
	spill_chunked_enlist(made);
	return made;
}

static int setup(void **state)
{
	spill_policy_default(&policy);
	policy.movable_enable = SPILL_SWITCH_ON;
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.host_limit = policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_NONE, 0};
	spill_process_use_policy(&policy);
	fake_clock_use(START);
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	fake_vendor_reset_mover(2 * CHUNKS * CHUNK);
	fake_vendor.context = &context;
	fake_vendor.marks_pass = &yes;
	spill_account_reset();
	spill_copier_reset();
	spill_exchange_reset();
	spill_reserve_reset();
	spill_movable_reset();
	spill_promote_reset();
	spill_contexts_made(&fake_vendor_backend, 0, &context);
	chunked = make(&spill_place_movable, CHUNKS * CHUNK);
	demote(); /* a half */
	return 0;
}

static void release(struct spill_chunked *made)
{
	spill_ledger_end(spill_ledger_take(made->base.ptr));
	spill_placement_release(&made->base, false);
}

static int teardown(void **state)
{
	release(chunked);
	spill_host_chunks_drop(&fake_vendor_backend);
	assert_int_equal(fake_vendor.broken, 0);
	spill_promote_reset();
	return 0;
}

/* Maintains each 0.1 ms, until something comes back. Returns when that was, or `end`. */
static uint64_t maintain_until(uint64_t end)
{
	uint64_t away = spill_chunked_away(chunked);
	while (fake_clock.ns < end && spill_chunked_away(chunked) == away) {
		fake_clock.ns += MS / 10;
		spill_promote_maintain();
	}
	return fake_clock.ns;
}

static void assert_about(uint64_t time, uint64_t wanted)
{
	assert_in_range(time, wanted - MS / 5, wanted + MS / 5);
}

TEST(quiet_after_a_demotion)
{
	uint64_t demoted = fake_clock.ns;
	fake_vendor.device_free = AWAY * CHUNK;
	assert_about(maintain_until(demoted + LOOK), demoted + QUIET);
	assert_int_equal(spill_chunked_away(chunked), 0);
	assert_int_equal(fake_vendor.device_free, 0);
}

TEST(a_full_device_is_looked_at_now_and_then)
{
	uint64_t demoted = fake_clock.ns;
	maintain_until(demoted + QUIET + MS);
	fake_vendor.device_free = CHUNK;
	assert_about(maintain_until(demoted + 10 * LOOK), demoted + QUIET + LOOK);
	assert_int_equal(spill_chunked_away(chunked), (AWAY - 1) * CHUNK);
	/* The next chunk finds no room a millisecond later, and room at the look behind that. */
	uint64_t came = fake_clock.ns;
	maintain_until(came + 2 * MS);
	fake_vendor.device_free = CHUNK;
	assert_about(maintain_until(came + 10 * LOOK), came + MS + LOOK);
}

/* The program frees memory after a look in vain. */
TEST(a_free_makes_the_next_look_come_sooner)
{
	uint64_t demoted = fake_clock.ns;
	maintain_until(demoted + QUIET + MS);
	fake_vendor.device_free = AWAY * CHUNK;
	uint64_t freed = fake_clock.ns;
	spill_promote_later();
	assert_about(maintain_until(freed + 10 * LOOK), freed + QUIET);
	assert_int_equal(spill_chunked_away(chunked), 0);
}

/* But a look that is near stays where it is, however often something is freed. */
TEST(frees_put_no_look_off)
{
	uint64_t demoted = fake_clock.ns;
	fake_vendor.device_free = AWAY * CHUNK;
	for (unsigned i = 1; i < 4; i++) {
		maintain_until(demoted + i * QUIET / 4);
		spill_promote_later();
	}
	assert_about(maintain_until(demoted + 10 * LOOK), demoted + QUIET);
}

/* Device memory for a chunk that cannot be moved after all goes back. */
TEST(without_memory_for_a_move_the_device_keeps_its_own)
{
	fake_vendor.device_free = AWAY * CHUNK;
	fake_libc_fail(FAKE_realloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	maintain_until(fake_clock.ns + LOOK);
	assert_true(fake_libc[FAKE_realloc].calls > 0);
	fake_libc_reset();
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	assert_int_equal(fake_vendor.device_free, AWAY * CHUNK);
	assert_int_equal(spill_chunked_away(chunked), AWAY * CHUNK);
}

/* A newcomer on the host is looked after although nothing else is away. */
TEST(a_newcomer_alone)
{
	fake_vendor.device_free = AWAY * CHUNK;
	maintain_until(fake_clock.ns + LOOK);
	fake_clock.ns += LOOK;
	assert_false(spill_promote_maintain());
	spill_promote_wanted();
	assert_true(spill_promote_maintain());
}

TEST(a_success_is_followed_by_a_look)
{
	fake_vendor.device_free = CHUNK;
	uint64_t came = maintain_until(fake_clock.ns + LOOK);
	fake_vendor.device_free = CHUNK;
	assert_about(maintain_until(came + LOOK), came + MS);
}

/* Looks at the device until `end`, each a mark that does not pass. */
static unsigned looks_until(uint64_t end)
{
	unsigned marks = fake_vendor.marks;
	uint64_t away = spill_chunked_away(chunked);
	maintain_until(end);
	assert_int_equal(spill_chunked_away(chunked), away);
	return fake_vendor.marks - marks;
}

/* Goes on to the next wait for a device that stays busy. Returns the time between the looks before it. */
static uint64_t time_between_looks(void)
{
	uint64_t first = fake_clock.ns, slept = fake_clock.slept_ns;
	unsigned marks = fake_vendor.marks;
	while (fake_clock.slept_ns == slept) {
		assert_true(fake_clock.ns < first + 10000 * MS);
		maintain_until(fake_clock.ns + MS / 10);
	}
	unsigned looks = fake_vendor.marks - marks;
	return looks ? (fake_clock.ns - first - (fake_clock.slept_ns - slept)) / looks : 0;
}

TEST(a_busy_device_is_waited_for_more_and_more_rarely)
{
	fake_vendor.marks_pass = &no;
	fake_vendor.device_free = AWAY * CHUNK;
	maintain_until(fake_clock.ns + QUIET);
	/* After 250 looks, each after 2 ms, a wait. */
	unsigned marks = fake_vendor.marks;
	assert_about(time_between_looks(), 2 * MS);
	assert_in_range(fake_vendor.marks - marks, 250, 253);
	/* Then nothing for a while, and looks in twice the time. */
	assert_int_equal(looks_until(fake_clock.ns + LOOK - MS), 0);
	assert_about(time_between_looks(), 4 * MS);
	assert_int_equal(looks_until(fake_clock.ns + 2 * LOOK - MS), 0);
	assert_about(time_between_looks(), 8 * MS);
	/* A success, and all is as in the beginning. */
	fake_vendor.marks_pass = &yes;
	fake_vendor.device_free = CHUNK;
	maintain_until(fake_clock.ns + 10000 * MS);
	assert_int_equal(spill_chunked_away(chunked), (AWAY - 1) * CHUNK);
	fake_vendor.marks_pass = &no;
	fake_vendor.device_free = CHUNK;
	maintain_until(fake_clock.ns + MS);
	assert_about(time_between_looks(), 2 * MS);
	assert_int_equal(looks_until(fake_clock.ns + LOOK - MS), 0);
	assert_about(time_between_looks(), 4 * MS);
}

/* A list of allocations that found no memory is no reason to stop looking. */
TEST(without_memory_for_a_list_there_is_a_later_look)
{
	uint64_t demoted = fake_clock.ns;
	fake_vendor.device_free = AWAY * CHUNK;
	fake_libc_fail(FAKE_calloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	maintain_until(demoted + QUIET + MS);
	fake_libc_reset();
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
	assert_about(maintain_until(demoted + 10 * LOOK), demoted + QUIET + LOOK);
	assert_int_equal(spill_chunked_away(chunked), 0);
}

/* Chunks that leave for a request of that size. `recheck` as in demote.h. */
static unsigned chunks_that_leave(uint64_t bytes, bool recheck)
{
	uint64_t before = spill_chunked_away(chunked);
	struct spill_demotion demotion = demotion_for(bytes);
	spill_mover_lock();
	assert_true(spill_demote_held(&demotion, recheck));
	spill_mover_unlock();
	assert_int_equal(spill_chunked_away(chunked) - before, demotion.freed);
	return (unsigned)(demotion.freed / CHUNK);
}

/* A look at free memory tells how many, unless the driver has just refused what would fit by that look. */
TEST(as_many_leave_as_are_missing)
{
	for (unsigned recheck = 0; recheck < 2; recheck++) {
		fake_vendor.device_free = CHUNK;
		assert_int_equal(chunks_that_leave(2 * CHUNK, recheck), 1);
	}
	fake_vendor.device_free = 2 * CHUNK;
	assert_int_equal(chunks_that_leave(2 * CHUNK, true), 0);
	assert_int_equal(chunks_that_leave(2 * CHUNK, false), 2);
}

static void none_leaves(struct spill_demotion *demotion, const char *why)
{
	uint64_t away = spill_chunked_away(chunked);
	assert_false(spill_demote(demotion));
	assert_int_equal(demotion->freed, 0);
	assert_true(demotion->hopeless);
	assert_string_equal(demotion->error, why);
	assert_int_equal(spill_chunked_away(chunked), away);
}

/* None leaves for a request that would not fit all the same, be it for the reserve that it must leave. */
TEST(none_leaves_in_vain)
{
	const uint64_t on_device = (CHUNKS - AWAY) * CHUNK;
	struct spill_chunked *beside = make(&spill_place_split, CHUNK); /* on the host */
	struct spill_demotion large = demotion_for(on_device + 1), with_reserve = demotion_for(on_device),
	                      older = demotion_for(CHUNK);
	none_leaves(&large, "not enough movable memory");
	policy.device_reserve.value = CHUNK;
	with_reserve.keeps_reserve = true;
	none_leaves(&with_reserve, "not enough movable memory");
	older.older_than = chunked->seq;
	none_leaves(&older, "no movable memory");
	older.older_than++;
	assert_true(spill_demote(&older));
	release(beside);
	spill_reserve_reset();
}

/* The device is full then, unless only a limit was. Who keeps the reserve looks after it from now on. */
TEST(the_reserve_is_kept_from_the_first_demotion_on)
{
	struct spill_demotion demotion = demotion_for(CHUNK);
	policy.device_reserve.value = CHUNK;
	fake_vendor.device_free = CHUNK;
	demotion.reason = SPILL_REASON_LIMIT;
	assert_true(spill_demote(&demotion));
	assert_false(spill_reserve_is_kept(0));
	atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_MAINTENANCE);
	fake_vendor.device_free = CHUNK;
	demotion.reason = SPILL_REASON_OOM;
	assert_true(spill_demote(&demotion));
	assert_true(spill_reserve_is_kept(0));
	assert_true(spill_gate_state & SPILL_GATE_MAINTENANCE);
	spill_reserve_reset();
}

/* As an exchange leaves it behind, on a device that is full otherwise. */
static void keep_a_chunk(unsigned index)
{
	struct spill_exchange exchange = {.backend = &fake_vendor_backend, .keep = CHUNK};
	spill_mover_lock();
	assert_true(spill_exchange_add(&exchange, chunked, index));
	spill_exchange_carry_out(&exchange, UINT64_MAX);
	spill_mover_unlock();
	assert_int_equal(spill_exchange_kept(), CHUNK);
	fake_vendor.device_free = 0;
}

/* It is released first, and then there is room. */
TEST(what_exchanges_keep_is_room_for_a_request)
{
	keep_a_chunk(0);
	assert_int_equal(chunks_that_leave(CHUNK, false), 0);
	assert_int_equal(spill_exchange_kept(), 0);
	assert_int_equal(fake_vendor.device_free, CHUNK);
}

/* Also where no chunk may leave. But that is all: the same request has no hope then. */
TEST(what_exchanges_keep_is_the_only_room_without_moves)
{
	struct spill_demotion demotion = demotion_for(CHUNK);
	for (unsigned chunk = 0; chunk < 2; chunk++) {
		policy.movable_enable = SPILL_SWITCH_ON;
		keep_a_chunk(chunk);
		policy.movable_enable = SPILL_SWITCH_OFF;
		demotion.bytes += chunk; /* and the second one is a byte too small */
		assert_int_equal(spill_demote(&demotion), !chunk);
		assert_false(demotion.hopeless);
		assert_int_equal(spill_exchange_kept(), 0);
		assert_false(
		    spill_demote(&demotion)); /* with the same memory free, which the driver refused */
		assert_true(demotion.hopeless);
		assert_int_equal(demotion.freed, 0);
		assert_string_equal(demotion.error, "movable memory is off");
	}
}

/* From now on, and nothing is there: so many bytes. */
static void want_ahead(uint64_t bytes)
{
	policy.host_ahead = (struct spill_amount){SPILL_AMOUNT_BYTES, bytes};
	spill_host_chunks_drop(&fake_vendor_backend);
	fake_clock.ns += 1000 * MS; /* then host memory is short no longer */
	wakes = 0;
}

static unsigned made_ahead(void)
{
	unsigned count = 0;
	while (spill_host_chunks_make())
		count++;
	return count;
}

/* Is host memory of that size there? Takes it. */
static bool is_there(uint64_t bytes)
{
	struct spill_host_chunk chunk;
	unsigned calls = fake_vendor.calls;
	assert_null(spill_host_chunk_get(&fake_vendor_backend, 0, bytes, &chunk));
	bool there = fake_vendor.calls == calls;
	spill_host_chunk_put(&fake_vendor_backend, 0, &chunk, false);
	return there;
}

/* Each demotion names the chunks that leave next. */
TEST(host_memory_is_made_ahead_for_what_leaves_next)
{
	struct spill_demotion demotion = demotion_for(CHUNK);
	fake_vendor.device_free = CHUNK + FAKE_SMALL_UNIT;
	struct spill_chunked *later = make(&spill_place_movable, CHUNK + FAKE_SMALL_UNIT);
	want_ahead(AWAY * CHUNK);
	assert_true(spill_demote(&demotion)); /* of the older one. Three of its chunks are left */
	assert_int_equal(wakes, 1);
	assert_int_equal(made_ahead(), AWAY);
	for (unsigned i = 1; i < AWAY; i++)
		assert_true(is_there(CHUNK));
	assert_true(is_there(FAKE_SMALL_UNIT)); /* the later one's last */
	assert_false(is_there(CHUNK));
	release(later);
}

/* A demotion in vain changes nothing of that, nor does one without memory for a list. */
TEST(what_is_made_ahead_stays_as_it_was_named)
{
	struct spill_demotion large = demotion_for((CHUNKS - AWAY) * CHUNK + 1);
	want_ahead(AWAY * CHUNK);
	assert_false(spill_demote(&large));
	assert_int_equal(wakes, 0);
	spill_demote_foresee(&fake_vendor_backend, 0);
	fake_libc_fail(FAKE_calloc, 1, 1, ENOMEM);
	spill_demote_foresee(&fake_vendor_backend, 0);
	fake_libc_reset();
	assert_int_equal(made_ahead(), AWAY);
	USE_FAKE_OBJECTS({0, SIZE_MAX, ""});
}

/* An allocation can have more of them than are named. */
TEST(so_many_chunks_are_made_ahead)
{
	fake_vendor.device_free = 70 * FAKE_SMALL_UNIT;
	policy.movable_chunk.value = FAKE_SMALL_UNIT;
	struct spill_chunked *later = make(&spill_place_movable, 70 * FAKE_SMALL_UNIT);
	policy.movable_chunk.value = CHUNK;
	want_ahead(1000 * CHUNK);
	spill_demote_foresee(&fake_vendor_backend, 0);
	assert_int_equal(wakes, 1);
	assert_int_equal(made_ahead(), 64);
	spill_demote_foresee(&fake_vendor_backend, 0);
	assert_int_equal(wakes, 1); /* nothing is missing */
	release(later);
}

static void *foresee(void *unused)
{
	spill_demote_foresee(&fake_vendor_backend, 0);
	return NULL;
}

/* While another thread moves, it names them itself. Without the option no list of allocations is made. */
TEST(a_look_ahead_waits_for_nothing)
{
	struct spill_demotion demotion = demotion_for(CHUNK);
	pthread_t thread;
	want_ahead(CHUNK);
	spill_mover_lock();
	pthread_create(&thread, NULL, foresee, NULL);
	pthread_join(thread, NULL);
	spill_mover_unlock();
	assert_int_equal(wakes, 0);
	foresee(NULL);
	assert_int_equal(wakes, 1);
	assert_true(spill_demote(&demotion)); /* the mover is free */
	policy.host_ahead.value = 0;
	unsigned lists = fake_libc[FAKE_calloc].calls;
	foresee(NULL);
	assert_int_equal(fake_libc[FAKE_calloc].calls, lists);
}

/* Chunks that came back and leave at once came too soon: the quiet time is twice as long. */
TEST(quiet_longer_after_a_promotion_that_was_too_soon)
{
	for (unsigned i = 0; i < 3; i++) {
		fake_vendor.device_free = AWAY * CHUNK;
		uint64_t demoted = fake_clock.ns;
		assert_about(maintain_until(demoted + 10 * LOOK), demoted + (QUIET << i));
		demote();
	}
}

/* A newcomer on the host, in chunks of this size. It is owed the device. */
static struct spill_chunked *make_owed(uint64_t bytes, uint64_t chunk)
{
	policy.movable_chunk.value = chunk;
	struct spill_chunked *owed = make(&spill_place_split, bytes);
	policy.movable_chunk.value = CHUNK;
	assert_int_equal(spill_chunked_away(owed), bytes);
	owed->owed = true;
	spill_promote_wanted();
	return owed;
}

/* A newcomer waits for a look. Whoever makes it, or makes room, sees that there is one. */
TEST(a_newcomer_is_looked_after_in_time)
{
	void (*const calls[])(void) = {spill_promote_wanted, spill_promote_hold};
	const uint64_t pauses[] = {LOOK, QUIET};
	for (unsigned i = 0; i < 2; i++) {
		atomic_fetch_and(&spill_gate_state, ~(unsigned)SPILL_GATE_MAINTENANCE);
		fake_vendor.device_free = AWAY * CHUNK;
		uint64_t called = fake_clock.ns;
		calls[i]();
		assert_true(atomic_load(&spill_gate_state) & SPILL_GATE_MAINTENANCE);
		assert_about(maintain_until(called + 10 * LOOK), called + pauses[i]);
		fake_clock.ns += 4 * QUIET; /* it did not come too soon */
		demote();
	}
}

/* Maintains for some seconds. Returns the bytes that moved. */
static uint64_t moved_meanwhile(void)
{
	uint64_t before = fake_vendor.copied_bytes;
	for (uint64_t end = fake_clock.ns + 5000 * MS; fake_clock.ns < end; fake_clock.ns += MS / 10)
		spill_promote_maintain();
	return fake_vendor.copied_bytes - before;
}

/* Older memory makes way for the newcomer, even if it is to be brought back first. */
TEST(older_memory_makes_way_for_a_newcomer)
{
	struct spill_chunked *owed = make_owed(AWAY * CHUNK, CHUNK);
	chunked->priority = SPILL_PRIORITY_HOT;
	assert_int_equal(moved_meanwhile(), 2 * AWAY * CHUNK);
	assert_int_equal(spill_chunked_away(owed), 0);
	assert_int_equal(spill_chunked_away(chunked), CHUNKS * CHUNK);
	release(owed);
}

/* What leaves makes no room for a chunk of the newcomer. It comes back, and that is all. */
TEST(a_newcomer_that_cannot_come_is_given_up)
{
	struct spill_chunked *owed = make_owed(CHUNKS * CHUNK, CHUNKS * CHUNK);
	assert_int_equal(moved_meanwhile(), 2 * AWAY * CHUNK);
	assert_int_equal(spill_chunked_away(owed), CHUNKS * CHUNK);
	assert_int_equal(spill_chunked_away(chunked), AWAY * CHUNK);
	assert_false(owed->owed);
	release(owed);
}

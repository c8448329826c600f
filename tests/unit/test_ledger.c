/*
 * The ledger: a removed entry is gone, interior addresses find their placement, sums are right, the
 * largest come first.
 */
#define TEARDOWN clean
#include "unit.h"

#include <errno.h>

#include "ended.h"
#include "forgotten.h"
#include "fake_libc.h"
#include "ledger.h"
#include "ledger_totals.h"

static const struct spill_backend *const backend = (const void *)&backend;
static struct spill_placement placement;

static struct spill_allocation plain(uint64_t ptr, uint64_t bytes)
{
	return (struct spill_allocation){
	    .backend = backend, .ptr = ptr, .bytes = bytes, .held = {.device = bytes}, .caller = "test"};
}

static int clean(void **state)
{
	struct spill_allocation *entry;
	for (int device = 0; device < 2; device++)
		while ((entry = spill_ledger_take_of(ENDED(backend, device, NULL))))
			spill_ledger_end(entry);
	return 0;
}

TEST(take_removes_exactly_once)
{
	struct spill_allocation allocation = plain(0x1000, 512);
	assert_true(spill_ledger_add(&allocation));
	assert_null(spill_ledger_take(0x1001));
	struct spill_allocation *taken = spill_ledger_take(0x1000);
	assert_non_null(taken);
	assert_int_equal(taken->seq, allocation.seq);
	assert_null(spill_ledger_take(0x1000));
	spill_ledger_put_back(taken);
	assert_ptr_equal(spill_ledger_take(0x1000), taken);
	spill_ledger_end(taken);
}

TEST(interior_addresses_find_placed_ones_only)
{
	struct spill_allocation copy, device = plain(0x10000, 0x1000), placed = plain(0x20000, 0x1000);
	struct spill_allocation another = plain(0x30000, 0x1000);
	placed.placement = another.placement = &placement;
	spill_ledger_add(&another);
	spill_ledger_add(&device);
	spill_ledger_add(&placed);
	assert_false(spill_ledger_placed(0x10000, &copy));
	assert_false(spill_ledger_placed(0x1ffff, &copy));
	assert_true(spill_ledger_placed(0x20000, &copy));
	assert_true(spill_ledger_placed(0x20fff, &copy));
	assert_int_equal(copy.ptr, 0x20000);
	assert_false(spill_ledger_placed(0x21000, &copy));
	struct spill_allocation *taken = spill_ledger_take(0x20000);
	assert_false(spill_ledger_placed(0x20000, &copy));
	spill_ledger_end(taken);
}

TEST(totals_follow)
{
	struct spill_totals before, after;
	spill_ledger_totals(&before);
	struct spill_allocation one = plain(0x1000, 100), two = plain(0x2000, 50);
	two.placement = &placement;
	two.held = (struct spill_bytes){.host = 50, .managed = 7};
	spill_ledger_add(&one);
	spill_ledger_add(&two);
	spill_ledger_end(spill_ledger_take(0x1000));
	spill_ledger_totals(&after);
	assert_int_equal(after.allocs - before.allocs, 2);
	assert_int_equal(after.frees - before.frees, 1);
	assert_int_equal(after.spills - before.spills, 1);
	assert_int_equal(after.live.device, 0);
	assert_int_equal(after.live.host, 50);
	assert_int_equal(after.spilled.host - before.spilled.host, 50);
	assert_int_equal(after.spilled.managed - before.spilled.managed, 7);
	assert_true(after.peak.device >= 100);
	spill_ledger_end(spill_ledger_take(0x2000));
	spill_ledger_totals(&after);
	assert_int_equal(after.live.host, 0);
	assert_int_equal(after.spilled.host - before.spilled.host, 50);
}

/* Memory that the program itself asked to have on the host is not away; all that moved is. */
TEST(most_away_counts_moves_but_not_the_programs_own)
{
	struct spill_totals totals;
	uint64_t order = 0, away = (uint64_t)1 << 40;
	struct spill_level level;
	struct spill_allocation moves = plain(0x8000, away), own = plain(0x9000, 2 * away);
	moves.placement = &placement;
	own.place = SPILL_PLACE_HOST;
	own.held = (struct spill_bytes){.host = 2 * away};
	assert_true(spill_ledger_add(&own));
	assert_true(spill_ledger_add(&moves));
	spill_ledger_totals(&totals);
	uint64_t wanted = totals.away.wanted;
	assert_true(totals.away.peak < away && wanted >= away && wanted < 2 * away);

	assert_true(
	    spill_ledger_moved(0x8000, moves.seq, &(struct spill_bytes){.host = away}, &order, &level));
	spill_ledger_held_up(0, 70);
	spill_ledger_held_up(0, 5);
	spill_ledger_end(spill_ledger_take(0x8000));
	spill_ledger_end(spill_ledger_take(0x9000));
	spill_ledger_totals(&totals);
	assert_true(totals.away.peak >= away && totals.away.peak < 2 * away);
	assert_int_equal(totals.away.wanted, wanted);
	assert_int_equal(totals.away.moves_us, 75);
}

/* Of 100 bytes 60 leave, 20 of them come back, and it is freed: nothing stays behind in any sum. */
TEST(totals_follow_moves)
{
	struct spill_totals before, after;
	uint64_t order = 0;
	struct spill_level level;
	spill_ledger_totals(&before);
	struct spill_allocation one = plain(0x5000, 100), other = plain(0x6000, 7);
	one.placement = &placement;
	assert_true(spill_ledger_add(&other));
	assert_true(spill_ledger_add(&one));

	assert_true(spill_ledger_moved(0x5000, one.seq, &(struct spill_bytes){.device = 40, .host = 60},
	                               &order, &level));
	assert_int_equal(order, one.order + 1);
	spill_ledger_totals(&after);
	assert_int_equal(after.live.device - before.live.device, 47);
	assert_int_equal(after.live.host - before.live.host, 60);
	assert_int_equal(after.demotions - before.demotions, 1);
	assert_int_equal(after.demoted - before.demoted, 60);
	assert_int_equal(after.promotions, before.promotions);
	assert_true(after.peak.host >= 60);
	/* It was not spilled when it was allocated, and is not counted later. */
	assert_int_equal(after.spills, before.spills);
	assert_int_equal(after.spilled.host, before.spilled.host);

	assert_true(spill_ledger_moved(0x5000, one.seq, &(struct spill_bytes){.device = 60, .host = 40},
	                               &order, &level));
	assert_int_equal(order, one.order + 2);
	spill_ledger_totals(&after);
	assert_int_equal(after.live.device - before.live.device, 67);
	assert_int_equal(after.live.host - before.live.host, 40);
	assert_int_equal(after.demotions - before.demotions, 1);
	assert_int_equal(after.promotions - before.promotions, 1);
	assert_int_equal(after.promoted - before.promoted, 20);

	/* From managed memory to other memory of the host: as much is on the device. */
	assert_true(spill_ledger_moved(0x5000, one.seq, &(struct spill_bytes){.device = 60, .managed = 40},
	                               &order, &level));
	spill_ledger_totals(&after);
	assert_int_equal(after.demotions - before.demotions, 1);
	assert_int_equal(after.promotions - before.promotions, 1);

	struct spill_allocation *taken = spill_ledger_take(0x5000);
	assert_int_equal(taken->order, one.order + 4);
	/* Being freed: nobody counts what happens to it now. */
	assert_false(spill_ledger_moved(0x5000, one.seq, &(struct spill_bytes){.host = 100}, &order, &level));
	/* Nor for it an older entry at the address, of a context that is just ending. */
	struct spill_allocation old = plain(0x5000, 1);
	assert_true(spill_ledger_add(&old));
	assert_false(spill_ledger_moved(0x5000, one.seq, &(struct spill_bytes){.host = 100}, &order, &level));
	spill_ledger_end(spill_ledger_take(0x5000));
	spill_ledger_end(taken);
	spill_ledger_end(spill_ledger_take(0x6000));
	spill_ledger_totals(&after);
	assert_int_equal(after.live.device, before.live.device);
	assert_int_equal(after.live.host, before.live.host);
	assert_int_equal(after.demoted - before.demoted, 60);
}

/* A chunk set's entry is found by its handle. Its number tells it from an allocation there. */
TEST(a_handle_moves)
{
	uint64_t order = 0;
	struct spill_level level;
	struct spill_allocation one = plain(0x7000, 100);
	one.handle = true;
	assert_true(spill_ledger_add(&one));
	assert_false(
	    spill_ledger_moved(0x7000, one.seq + 1, &(struct spill_bytes){.host = 100}, &order, &level));
	assert_true(spill_ledger_moved(0x7000, one.seq, &(struct spill_bytes){.host = 100}, &order, &level));
	spill_ledger_end(spill_ledger_take_handle(0x7000, one.seq));
}

TEST(the_largest_come_first)
{
	struct spill_record_oom record = {.device = 0};
	for (uint64_t i = 1; i <= 25; i++) {
		struct spill_allocation allocation = plain(i << 12, (i * 7) % 26);
		spill_ledger_add(&allocation);
	}
	spill_ledger_holders(&record);
	assert_int_equal(record.holders, SPILL_HOLDERS);
	for (uint64_t i = 0; i < SPILL_HOLDERS; i++)
		assert_int_equal(record.top[i].bytes, 25 - i);
}

static void check_group(const struct spill_group *group, const char *name, uint64_t count, uint64_t device,
                        uint64_t host)
{
	assert_string_equal(group->name, name);
	assert_int_equal(group->count, count);
	assert_int_equal(group->held.device, device);
	assert_int_equal(group->held.host, host);
	assert_int_equal(group->held.managed, 0);
}

/* Of 25 callers with an allocation of 100 bytes each, one with many small ones, and one with a large one. */
TEST(callers_and_places_are_summed)
{
	static char names[25][8];
	struct spill_record_oom record = {.device = 0};
	struct spill_allocation allocation;
	for (uint64_t i = 0; i < 25; i++) {
		names[i][0] = (char)('a' + i);
		allocation = plain((i + 1) << 12, 100);
		allocation.caller = names[i];
		spill_ledger_add(&allocation);
	}
	for (uint64_t i = 0; i < 50; i++) {
		allocation = plain(0x100000 + (i << 12), 10);
		allocation.caller = "small";
		allocation.place = SPILL_PLACE_SPLIT;
		allocation.held = (struct spill_bytes){.device = 4, .host = 6};
		spill_ledger_add(&allocation);
	}
	allocation = plain(0x900000, 400);
	allocation.caller = "large";
	spill_ledger_add(&allocation);
	for (int again = 0; again < 2; again++) { /* each time anew */
		spill_ledger_holders(&record);
		assert_int_equal(record.callers, SPILL_CALLERS);
		check_group(&record.by_caller[0], "small", 50, 200, 300);
		check_group(&record.by_caller[1], "large", 1, 400, 0);
		for (unsigned i = 2; i < SPILL_CALLERS; i++)
			check_group(&record.by_caller[i], record.by_caller[i].name, 1, 100, 0);
		assert_int_equal(record.places, 2);
		check_group(&record.by_place[0], "device", 26, 2900, 0);
		check_group(&record.by_place[1], "split", 50, 200, 300);
	}
}

/* Generated code: more call sites than there is room for. The sums by place are exact, the callers are some of them. */
TEST(more_callers_than_there_is_room_for)
{
	static char names[4000];
	struct spill_record_oom record = {.device = 0};
	struct spill_allocation allocation;
	for (uint64_t i = 0; i < 4000; i++) {
		allocation = plain((i + 1) << 12, 8);
		allocation.caller = &names[i];
		spill_ledger_add(&allocation);
	}
	spill_ledger_holders(&record);
	assert_int_equal(record.callers, SPILL_CALLERS);
	for (unsigned i = 0; i < SPILL_CALLERS; i++)
		check_group(&record.by_caller[i], "", 1, 8, 0);
	check_group(&record.by_place[0], "device", 4000, 32000, 0);
}

/* An out of memory of device 1: what is on device 0 is in nobody's way there, but the host's memory is one for both. */
TEST(what_is_on_other_devices_is_left_out)
{
	struct spill_record_oom record = {.device = 1};
	struct spill_allocation one = plain(0x1000, 1000), two = plain(0x2000, 900),
	                        three = plain(0x3000, 500);
	one.caller = two.caller = "elsewhere";
	two.place = SPILL_PLACE_SPLIT;
	two.held = (struct spill_bytes){.device = 800, .host = 100};
	three.caller = "here";
	three.device = 1;
	spill_ledger_add(&one);
	spill_ledger_add(&two);
	spill_ledger_add(&three);
	spill_ledger_holders(&record);
	assert_int_equal(record.live.device, 2300);
	assert_int_equal(record.live.host, 100);
	assert_int_equal(record.callers, 2);
	check_group(&record.by_caller[0], "here", 1, 500, 0);
	check_group(&record.by_caller[1], "elsewhere", 1, 0, 100);
	assert_int_equal(record.places, 2);
	check_group(&record.by_place[0], "device", 1, 500, 0);
	check_group(&record.by_place[1], "split", 1, 0, 100);
	assert_int_equal(record.holders, 2);
	assert_int_equal(record.top[0].bytes, 500);
	assert_int_equal(record.top[1].bytes, 900); /* as in its alloc */
	record.device = 0;
	spill_ledger_holders(&record);
	assert_int_equal(record.callers, 1);
	check_group(&record.by_caller[0], "elsewhere", 2, 1800, 100);
	record.device = -1;
	spill_ledger_holders(&record);
	assert_int_equal(record.callers, 2);
	check_group(&record.by_caller[0], "elsewhere", 2, 1800, 100);
}

/* As in the list of all places. */
TEST(places_with_equal_bytes_have_an_order)
{
	struct spill_record_oom record = {.device = 0};
	struct spill_allocation host = plain(0x1000, 100), split = plain(0x2000, 100);
	host.place = SPILL_PLACE_HOST;
	split.place = SPILL_PLACE_SPLIT;
	spill_ledger_add(&host);
	spill_ledger_add(&split);
	spill_ledger_holders(&record);
	assert_int_equal(record.places, 2);
	bool host_first = SPILL_PLACE_HOST < SPILL_PLACE_SPLIT;
	check_group(&record.by_place[!host_first], "host", 1, 100, 0);
	check_group(&record.by_place[host_first], "split", 1, 100, 0);
}

TEST(nothing_is_held)
{
	struct spill_record_oom record = {.device = 0};
	spill_ledger_holders(&record);
	assert_int_equal(record.holders + record.callers + record.places, 0);
}

TEST(a_context_takes_its_own)
{
	int mine, other;
	struct spill_allocation one = plain(0x1000, 1), two = plain(0x2000, 1);
	one.context = &mine;
	one.device = 1;
	two.context = &other;
	spill_ledger_add(&one);
	spill_ledger_add(&two);
	struct spill_allocation *entry = spill_ledger_take_of(ENDED(backend, 1, &mine));
	assert_int_equal(entry->ptr, 0x1000);
	spill_ledger_end(entry);
	assert_null(spill_ledger_take_of(ENDED(backend, 1, &mine)));
}

/* Another thread's new context may have the handle before the thread that ended the old one comes for what it held. */
TEST(what_is_made_under_the_same_handle_meanwhile_stays)
{
	int mine;
	struct spill_allocation old = plain(0x1000, 1), new = plain(0x1000, 1);
	old.context = new.context = &mine;
	spill_ledger_add(&old);
	struct spill_context_end end = spill_context_end_begin(backend, 0, &mine);
	spill_ledger_add(&new);
	struct spill_allocation *entry = spill_ledger_take_of(&end);
	assert_int_equal(entry->seq, old.seq);
	spill_ledger_end(entry);
	assert_null(spill_ledger_take_of(&end));
	entry = spill_ledger_take(0x1000);
	assert_int_equal(entry->seq, new.seq);
	spill_ledger_end(entry);
}

/* The same for addresses: the vendor may give the host memory of a context that ends to another thread at once. */
TEST(what_is_placed_there_before_the_old_is_taken_is_found)
{
	int context;
	struct spill_allocation copy, old[2] = {plain(0x1000, 0x1000), plain(0x2000, 0x1000)},
	                              new = plain(0x1800, 0x1000);
	for (int i = 0; i < 2; i++) {
		old[i].context = &context;
		old[i].placement = &placement;
		assert_true(spill_ledger_add(&old[i]));
	}
	new.placement = &placement;
	struct spill_context_end end = spill_context_end_begin(backend, 0, &context);
	assert_true(spill_ledger_add(&new));
	for (struct spill_allocation *entry; (entry = spill_ledger_take_of(&end)); spill_ledger_end(entry)) {
		assert_true(entry->seq == old[0].seq || entry->seq == old[1].seq);
		assert_true(spill_ledger_placed(0x27ff, &copy));
		assert_int_equal(copy.seq, new.seq);
	}
	assert_true(spill_ledger_placed(0x1800, &copy));
	assert_int_equal(copy.seq, new.seq);
	assert_false(spill_ledger_placed(0x17ff, &copy));
	struct spill_allocation *taken = spill_ledger_take(0x1800);
	assert_false(spill_ledger_placed(0x1800, &copy));
	spill_ledger_end(taken);
}

static void count_one(const struct spill_placement *one, void *data)
{
	assert_ptr_equal(one, &placement);
	++*(unsigned *)data;
}

/*
 * A free that the vendor refused: the memory is in use, and a peer that gets access later needs it
 * as well.
 */
TEST(put_back_without_memory_it_is_found_all_the_same)
{
	struct spill_allocation copy, placed = plain(0x20000, 0x1000);
	unsigned seen = 0;

	placed.placement = &placement;
	assert_true(spill_ledger_add(&placed));
	struct spill_allocation *taken = spill_ledger_take(0x20000);
	fake_libc_fail(FAKE_tsearch, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	spill_ledger_put_back(taken);
	fake_libc_reset();
	assert_true(spill_ledger_placed(0x20fff, &copy));
	assert_int_equal(copy.seq, placed.seq);
	assert_false(spill_ledger_placed(0x21000, &copy));
	spill_ledger_each_placed(count_one, &seen);
	assert_int_equal(seen, 1);
	assert_ptr_equal(spill_ledger_take(0x20000), taken);
	assert_false(spill_ledger_placed(0x20000, &copy));
	spill_ledger_put_back(taken);
	assert_true(spill_ledger_placed(0x20000, &copy));
	assert_ptr_equal(spill_ledger_take(0x20000), taken);
	spill_ledger_end(taken);
}

/* Every look at an address asks first for placed memory: where there is none it costs a load. */
static void expect_locks_for_looks(bool some)
{
	struct spill_allocation copy;
	unsigned seen = 0, before = locks_taken();
	spill_ledger_placed(0x20000, &copy);
	spill_ledger_each_placed(count_one, &seen);
	assert_int_equal(locks_taken() - before, some ? 2 : 0);
	assert_int_equal(seen, some);
}

TEST(looks_cost_a_load_where_nothing_is_placed)
{
	struct spill_allocation placed = plain(0x20000, 0x1000), device = plain(0x30000, 0x1000);
	placed.placement = &placement;
	expect_locks_for_looks(false);
	forgotten_begin();
	assert_true(spill_ledger_add(&device));
	forgotten_end();
	expect_locks_for_looks(false);
	assert_true(spill_ledger_add(&placed));
	expect_locks_for_looks(true);
	struct spill_allocation *taken = spill_ledger_take(0x20000);
	expect_locks_for_looks(false);
	fake_libc_fail(FAKE_tsearch, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	spill_ledger_put_back(taken);
	fake_libc_reset();
	expect_locks_for_looks(true);
	spill_ledger_end(spill_ledger_take(0x20000));
	expect_locks_for_looks(false);
	/* A child has nothing of its parent's. */
	forgotten_begin();
	assert_true(spill_ledger_add(&placed));
	forgotten_end();
	spill_fork_lock_take(&spill_ledger_fork_lock);
	spill_fork_lock_release(&spill_ledger_fork_lock, true);
	expect_locks_for_looks(false);
	assert_null(spill_ledger_take(0x20000));
	assert_null(spill_ledger_take(0x30000));
	struct spill_allocation copy, first = plain(0x50000, 0x1000);
	first.placement = &placement;
	assert_true(spill_ledger_add(&first));
	assert_int_equal(first.seq, 1);
	assert_true(spill_ledger_placed(0x50000, &copy));
	assert_false(spill_ledger_placed(0x20000, &copy));
	spill_ledger_end(spill_ledger_take(0x50000));
}

/* Each takes the lock and gives it back (held_locks.c), and tells the same. */
TEST(totals_are_told_in_several_ways)
{
	struct spill_totals totals, now;
	struct spill_device_totals devices[2];
	struct spill_allocation moves = plain(0x8000, 100);
	uint64_t order = 0;
	struct spill_level level;
	moves.placement = &placement;
	moves.device = 1;
	assert_true(spill_ledger_add(&moves));
	uint64_t before = spill_ledger_away_now();
	assert_true(spill_ledger_moved(0x8000, moves.seq, &(struct spill_bytes){.host = 60, .device = 40},
	                               &order, &level));
	assert_int_equal(spill_ledger_away_now(), before + 60);
	spill_ledger_totals(&totals);
	assert_true(spill_ledger_totals_now(&now));
	assert_memory_equal(&now, &totals, sizeof(now));
	spill_ledger_count_oom(1);
	spill_ledger_in_place(1, &(struct spill_in_place){.bytes = 30, .us = 20, .most_us = 10});
	assert_true(spill_ledger_totals_now(&now));
	assert_int_equal(now.ooms, totals.ooms + 1);
	assert_int_equal(now.away.in_place.bytes, 30);
	assert_true(spill_ledger_device_totals_now(devices, 2));
	assert_int_equal(devices[1].totals.live.host, 60);
	assert_int_equal(devices[1].totals.away.in_place.us, 20);
	assert_int_equal(devices[1].totals.away.in_place.most_us, 10);
	assert_int_equal(devices[0].totals.away.in_place.us, 0);
	spill_ledger_end(spill_ledger_take(0x8000));
	assert_int_equal(spill_ledger_away_now(), before);
}

/*
 * Sums of memory that has no lines of its own: exact for each call site, and lines between them
 * tell what the process really held.
 */
#define TEARDOWN clean
#include "unit.h"

#include "ended.h"
#include "ledger.h"
#include "ledger_totals.h"
#include "roll.h"
#include "site_sums.h"

static const struct spill_backend *const backend = (const void *)&backend;
static struct spill_placement placement;
static const char api[] = "cuMemAllocAsync", rule[] = "default";

static struct spill_allocation own(uint64_t ptr, uint64_t bytes)
{
	return (struct spill_allocation){.backend = backend,
	                                 .ptr = ptr,
	                                 .bytes = bytes,
	                                 .held = {.device = bytes},
	                                 .api = api,
	                                 .caller = rule};
}

static struct spill_allocation summed(uint64_t ptr, uint64_t bytes)
{
	struct spill_allocation allocation = own(ptr, bytes);
	allocation.sum_rule = rule;
	return allocation;
}

static unsigned add(struct spill_allocation allocation)
{
	assert_true(spill_ledger_add(&allocation));
	return allocation.sum;
}

static void end(uint64_t ptr)
{
	spill_ledger_end(spill_ledger_take(ptr));
}

static int clean(void **state)
{
	struct spill_allocation *entry;
	struct spill_record_sum record;
	for (int device = 0; device < 3; device++)
		while ((entry = spill_ledger_take_of(ENDED(backend, device, NULL))))
			spill_ledger_end(entry);
	while (spill_site_sums_take(&record))
		;
	for (int device = 0; device < 3; device++)
		spill_ledger_totals_level(device);
	return 0;
}

/* The level that the line behind a refused free tells, where no event had no line. */
static struct spill_level level_behind_a_refused_free(void)
{
	struct spill_allocation later = own(0x3000, 1);
	assert_true(spill_ledger_add(&(struct spill_allocation){
	    .backend = backend, .ptr = 0x1000, .bytes = 100, .held = {.device = 100}}));
	spill_ledger_put_back(spill_ledger_take(0x1000));
	assert_true(spill_ledger_add(&later));
	return later.level;
}

static struct spill_level level_without_sums;

/* The first test: no event was summed yet. */
TEST(without_sums_lines_tell_the_level)
{
	level_without_sums = level_behind_a_refused_free();
}

TEST(a_site_has_counts_and_bytes_since_the_last_time)
{
	struct spill_record_sum record;
	struct spill_allocation large = summed(0x2000, 200);
	assert_false(spill_site_sums_take(&record));
	add(summed(0x1000, 100));
	assert_true(spill_ledger_add(&large));
	add(summed(0x3000, 30));
	end(0x1000);
	assert_true(spill_site_sums_take(&record));
	assert_ptr_equal(record.api, api);
	assert_ptr_equal(record.caller, rule);
	assert_ptr_equal(record.rule, rule);
	assert_int_equal(record.allocs.count, 3);
	assert_int_equal(record.allocs.bytes.device, 330);
	assert_int_equal(record.frees.count, 1);
	assert_int_equal(record.frees.bytes.device, 100);
	assert_int_equal(record.live, 230);
	assert_int_equal(record.peak, 330);
	assert_int_equal(record.largest.bytes, 200);
	assert_int_equal(record.largest.seq, large.seq);
	assert_false(spill_site_sums_take(&record));
	end(0x2000);
	assert_true(spill_site_sums_take(&record));
	assert_int_equal(record.allocs.count, 0);
	assert_int_equal(record.frees.count, 1);
	assert_int_equal(record.live, 30);
	assert_int_equal(record.peak, 230);
	assert_int_equal(record.largest.bytes, 0);
}

TEST(of_equals_the_first_is_the_largest)
{
	struct spill_record_sum record;
	struct spill_allocation first = summed(0x1000, 100);
	assert_true(spill_ledger_add(&first));
	add(summed(0x2000, 100));
	assert_true(spill_site_sums_take(&record));
	assert_int_equal(record.largest.seq, first.seq);
}

TEST(a_site_is_device_function_caller_and_rule)
{
	struct spill_record_sum record;
	unsigned sites = 0;
	for (unsigned i = 0; i < 10; i++) {
		struct spill_allocation allocation = summed((i + 1) << 12, 10);
		allocation.device = i % 5 == 1;
		allocation.api = i % 5 == 2 ? "cudaMalloc" : api;
		allocation.caller = i % 5 == 3 ? "elsewhere" : rule;
		allocation.sum_rule = i % 5 == 4 ? "experts" : rule;
		add(allocation);
	}
	for (; spill_site_sums_take(&record); sites++)
		assert_int_equal(record.allocs.count, 2);
	assert_int_equal(sites, 5);
}

/* A free that the vendor refused is none. */
TEST(an_entry_that_is_put_back_was_not_freed)
{
	struct spill_record_sum record;
	struct spill_totals totals;
	add(summed(0x1000, 100));
	spill_ledger_put_back(spill_ledger_take(0x1000));
	assert_true(spill_site_sums_take(&record));
	assert_int_equal(record.frees.count, 0);
	assert_int_equal(record.live, 100);
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device, 100);
}

/* Far fewer than there is room for: each has its sum, wherever the others are. */
TEST(every_site_has_its_own_sum)
{
	enum { SITES = 100 };
	struct spill_record_sum record;
	unsigned taken = 0;
	const char *callers[SITES];
	for (unsigned i = 0; i < SITES; i++)
		callers[i] = (const char *)(uintptr_t)(1 + roll_any() % (1ull << 46));
	for (uint64_t i = 0; i < 2 * SITES; i++) {
		struct spill_allocation allocation = summed((i + 1) << 12, 8);
		allocation.caller = callers[i % SITES];
		assert_int_not_equal(add(allocation), 0);
	}
	for (; spill_site_sums_take(&record); taken++)
		assert_int_equal(record.allocs.count, 2);
	assert_int_equal(taken, SITES);
}

/* Generated code: sites that still hold memory keep their place; others have lines. */
TEST(more_sites_than_there_is_room_for)
{
	static char names[4000];
	struct spill_record_sum record;
	unsigned kept = 0, taken = 0, again = 0;
	for (uint64_t i = 0; i < 4000; i++) {
		struct spill_allocation allocation = summed((i + 1) << 12, 8);
		allocation.caller = &names[i];
		kept += add(allocation) != 0;
	}
	assert_in_range(kept, SPILL_SITE_SUMS / 2, SPILL_SITE_SUMS);
	while (spill_site_sums_take(&record))
		taken++;
	assert_int_equal(taken, kept);
	for (uint64_t i = 0; i < 4000; i++)
		end((i + 1) << 12);
	while (spill_site_sums_take(&record))
		assert_int_equal(record.frees.count, 1);
	/* Sites without memory and news make room. */
	for (uint64_t i = 0; i < 4000; i++) {
		struct spill_allocation allocation = summed(0x1000, 8);
		allocation.caller = &names[i];
		again += add(allocation) != 0;
		end(0x1000);
		assert_true(spill_site_sums_take(&record));
		assert_ptr_equal(record.caller, &names[i]);
		assert_int_equal(record.peak, 8);
	}
	assert_int_equal(again, 4000);
}

static void check_level(struct spill_level level, uint64_t device, uint64_t device_peak, uint64_t all,
                        uint64_t all_peak)
{
	assert_int_equal(level.device, device);
	assert_int_equal(level.device_peak, device_peak);
	assert_int_equal(level.all, all);
	assert_int_equal(level.all_peak, all_peak);
}

static struct spill_level add_own(uint64_t ptr, uint64_t bytes, int device)
{
	struct spill_allocation allocation = own(ptr, bytes);
	allocation.device = device;
	assert_true(spill_ledger_add(&allocation));
	assert_int_equal(allocation.sum, 0);
	return allocation.level;
}

TEST(a_line_tells_what_those_before_it_cannot)
{
	struct spill_allocation other = summed(0x9000, 7);
	check_level(add_own(0x1000, 100, 0), 0, 0, 0, 0);
	add(summed(0x2000, 50));
	end(0x2000);
	add(summed(0x3000, 20));
	check_level(add_own(0x4000, 1000, 0), 1120, 150, 1120, 150);
	check_level(add_own(0x5000, 1, 0), 0, 0, 0, 0);
	other.device = 1;
	add(other);
	/* The other device's own line was before any of its memory. */
	check_level(add_own(0x6000, 2, 0), 1123, 1121, 1130, 1128);
	check_level(add_own(0x7000, 3, 1), 10, 7, 1133, 1130);
	check_level(add_own(0x8000, 4, 1), 0, 0, 0, 0);
	end(0x3000);
	struct spill_allocation *taken = spill_ledger_take(0x1000);
	check_level(taken->level, 1003, 1123, 1017, 1137);
	spill_ledger_end(taken);
}

/* The peak before a move is of what was there before it. */
TEST(a_move_tells_what_was_before_it)
{
	struct spill_level level;
	uint64_t order;
	struct spill_allocation moves = own(0x1000, 100);
	moves.placement = &placement;
	moves.held = (struct spill_bytes){.host = 100};
	assert_true(spill_ledger_add(&moves));
	add(summed(0x2000, 50));
	end(0x2000);
	add(summed(0x3000, 20));
	assert_true(
	    spill_ledger_moved(0x1000, moves.seq, &(struct spill_bytes){.device = 100}, &order, &level));
	check_level(level, 120, 50, 120, 50);
}

/* The line of the refused free is never written, so that the next one must tell it. */
TEST(a_refused_free_loses_no_peak)
{
	add_own(0x1000, 100, 0);
	add(summed(0x2000, 50));
	end(0x2000);
	spill_ledger_put_back(spill_ledger_take(0x1000));
	check_level(add_own(0x3000, 1, 0), 101, 150, 101, 150);
}

/* The log is not open, so the sums that are taken go nowhere. */
TEST(sums_are_due_once_a_second)
{
	struct spill_record_sum record;
	spill_ledger_fork_lock.forget_parent(); /* begins anew */
	add(summed(0x1000, 100));
	spill_ledger_write_due_sums(5000000);
	spill_ledger_write_due_sums(5999999);
	assert_true(spill_site_sums_take(&record));
	end(0x1000);
	spill_ledger_write_due_sums(6000000);
	assert_false(spill_site_sums_take(&record));
	add(summed(0x1000, 100));
	spill_ledger_write_due_sums(6999999);
	assert_true(spill_site_sums_take(&record));
	end(0x1000);
	spill_ledger_write_due_sums(9000000);
	assert_false(spill_site_sums_take(&record));
	/* The time of a child's log begins anew. */
	spill_ledger_fork_lock.forget_parent();
	add(summed(0x1000, 100));
	end(0x1000);
	spill_ledger_write_due_sums(5);
	spill_ledger_write_due_sums(1000005);
	assert_false(spill_site_sums_take(&record));
}

/* The child of a fork has none of its parent's memory, and begins with no sums. */
TEST(a_child_begins_with_nothing)
{
	struct spill_record_sum record;
	add(summed(0x1000, 100));
	end(0x1000);
	spill_ledger_fork_lock.forget_parent();
	assert_false(spill_site_sums_take(&record));
	check_level(add_own(0x2000, 10, 0), 0, 0, 0, 0);
	add(summed(0x3000, 20));
	assert_true(spill_site_sums_take(&record));
	assert_int_equal(record.allocs.count, 1);
	assert_int_equal(record.peak, 20);
}

TEST(a_child_has_summed_nothing)
{
	add(summed(0x2000, 50));
	end(0x2000);
	spill_ledger_fork_lock.forget_parent();
	struct spill_level level = level_behind_a_refused_free();
	assert_memory_equal(&level, &level_without_sums, sizeof(level));
}

/* In a child no launch has told which memory it uses yet. */
TEST(a_child_follows_nothing)
{
	struct spill_totals totals;
	struct spill_allocation moved = own(0x1000, 100);
	spill_ledger_in_place(0, &(struct spill_in_place){.bytes = 1});
	spill_ledger_fork_lock.forget_parent();
	moved.placement = &placement;
	moved.place = SPILL_PLACE_MOVABLE;
	assert_true(spill_ledger_add(&moved));
	uint64_t order = 0;
	struct spill_level level;
	assert_true(
	    spill_ledger_moved(0x1000, moved.seq, &(struct spill_bytes){.host = 100}, &order, &level));
	spill_ledger_totals(&totals);
	assert_int_equal(totals.away.in_place.followed, 0);
	spill_ledger_in_place(0, &(struct spill_in_place){.bytes = 1});
	spill_ledger_totals(&totals);
	assert_int_equal(totals.away.in_place.followed, 100);
}

static void add_on_host(uint64_t ptr, uint64_t bytes)
{
	struct spill_allocation chunks = own(ptr, bytes);
	chunks.placement = &placement;
	chunks.place = SPILL_PLACE_MOVABLE;
	chunks.held = (struct spill_bytes){.host = bytes};
	assert_true(spill_ledger_add(&chunks));
}

static uint64_t most_followed(void)
{
	struct spill_totals totals;
	spill_ledger_totals(&totals);
	return totals.away.in_place.followed;
}

/* What launches may use is known since the first one that told it, and the most of it is told at once. */
TEST(the_most_that_was_followed)
{
	spill_ledger_fork_lock.forget_parent(); /* begins anew */
	add_on_host(0x1000, 100);
	assert_int_equal(most_followed(), 0);
	spill_ledger_in_place(0, &(struct spill_in_place){.bytes = 1});
	assert_int_equal(most_followed(), 100);
	add_on_host(0x2000, 50);
	assert_int_equal(most_followed(), 150);
	end(0x2000);
	assert_int_equal(most_followed(), 150);
	add_on_host(0x2000, 50);
	assert_int_equal(most_followed(), 150);
	/* Memory whose use launches do not tell, and memory that began on both sides. */
	struct spill_allocation whole = own(0x3000, 500), split = own(0x4000, 30);
	whole.placement = split.placement = &placement;
	whole.held = (struct spill_bytes){.managed = 500};
	whole.place = SPILL_PLACE_MANAGED;
	split.held = (struct spill_bytes){.device = 20, .host = 10};
	split.place = SPILL_PLACE_SPLIT;
	assert_true(spill_ledger_add(&whole));
	assert_int_equal(most_followed(), 150);
	assert_true(spill_ledger_add(&split));
	assert_int_equal(most_followed(), 160);
}

/* Numbers are of lines: sums have none until they are taken, so that no reader waits for them. */
TEST(orders_have_no_gaps)
{
	struct spill_allocation one = own(0x1000, 1), two = own(0x2000, 1);
	assert_true(spill_ledger_add(&one));
	add(summed(0x3000, 1));
	end(0x3000);
	assert_true(spill_ledger_add(&two));
	assert_int_equal(two.order, one.order + 1);
	assert_int_equal(two.seq, one.seq + 2);
}

/* What a reader does with the lines: it never sees the ledger's totals, and has the same peaks. */
TEST(peaks_follow_from_the_lines)
{
	uint64_t held = 0, ahead = 0, peak = 0, real = 0, real_peak = 0;
	uint64_t sizes[64] = {0};
	bool is_own[64];
	struct spill_level level;
	for (unsigned i = 0; i < 20000; i++) {
		unsigned slot = (unsigned)(roll_any() % 64);
		uint64_t ptr = (slot + 1) << 12;
		bool line = sizes[slot] ? is_own[slot] : roll_any() % 8 == 0;
		uint64_t change;
		if (sizes[slot]) {
			struct spill_allocation *taken = spill_ledger_take(ptr);
			level = taken->level;
			change = 0 - sizes[slot];
			sizes[slot] = 0;
			spill_ledger_end(taken);
		} else {
			struct spill_allocation allocation =
			    line ? own(ptr, 1 + roll_any() % 1000) : summed(ptr, 1 + roll_any() % 1000);
			assert_true(spill_ledger_add(&allocation));
			level = allocation.level;
			change = sizes[slot] = allocation.bytes;
			is_own[slot] = line;
		}
		real += change;
		real_peak = real_peak > real ? real_peak : real;
		if (!line)
			continue;
		peak = peak > level.all_peak ? peak : level.all_peak;
		held += change;
		if (level.all_peak)
			ahead = level.all - held;
		assert_int_equal(held + ahead, real);
		peak = peak > held + ahead ? peak : held + ahead;
		assert_int_equal(peak, real_peak);
	}
}

/*
 * What launches lose by memory on the host, for the reports. The launches here read 64 MiB: 0.5 ms on the
 * device, and 2.5 ms where they are.
 */
#define SETUP setup
#include "unit.h"

#include <string.h>

#include "in_place_cost.h"

#define MIB (1ull << 20)
#define US 1000ull
#define MS (1000 * US)
#define SITE 7

static struct spill_migration_benefit benefit;
static struct spill_in_place_cost cost;

static int setup(void **state)
{
	memset(&benefit, 0, sizeof(benefit));
	memset(&cost, 0, sizeof(cost));
	return 0;
}

static struct spill_in_place_sums sums(bool all)
{
	return spill_in_place_cost_sums(&cost, 3600ull * 1000 * MS, all);
}

static void launch(uint64_t on_host, uint64_t ns, bool known)
{
	spill_in_place_cost_add(&cost, &benefit, SITE, on_host, ns, known);
}

/* A launch takes so long in place; all that came before it wait for that. */
static void measured(uint64_t on_host, uint64_t ns)
{
	spill_benefit_add_use(&benefit, SITE, on_host, ns);
	spill_in_place_cost_measured(&cost, &benefit, SITE, benefit.sites[SITE].waiting, ns);
}

TEST(with_a_time_on_the_device_the_difference_counts)
{
	spill_benefit_add_use(&benefit, SITE, 0, MS / 2);
	launch(64 * MIB, 5 * MS / 2, true);
	launch(64 * MIB, 5 * MS / 2, true);
	assert_int_equal(sums(false).bytes, 128 * MIB);
	assert_int_equal(sums(false).ns, 4 * MS);
	assert_int_equal(sums(false).most_ns, 4 * MS);
	/* As fast as on the device. */
	launch(MIB, MS / 4, true);
	assert_int_equal(sums(false).ns, 4 * MS);
}

TEST(without_one_it_is_a_range)
{
	benefit.copy_ns_per_mib = 30 * US;
	launch(64 * MIB, 5 * MS, true);
	assert_int_equal(sums(false).ns, 64 * 30 * US);
	assert_int_equal(sums(false).most_ns, 5 * MS);
	/* The link is slower than moves were. It takes no longer than the launch. */
	launch(64 * MIB, 3 * MS / 2, true);
	assert_int_equal(sums(false).ns, 64 * 30 * US + 3 * MS / 2);
}

/* A launch names 4 GiB, and takes a millisecond: it read a small part, and nobody knows how much. */
TEST(no_more_bytes_than_a_link_carries)
{
	launch(4096 * MIB, MS, true);
	assert_int_equal(sums(false).bytes, 64 * MS);
	assert_int_equal(sums(false).ns, 0);
	assert_int_equal(sums(false).most_ns, MS);
}

/* What a link carries just so may all have been read. */
TEST(as_many_bytes_as_a_link_carries)
{
	benefit.copy_ns_per_mib = 10 * US;
	launch(64 * MIB, MIB - 1, true);
	assert_int_equal(sums(false).ns, 0);
	launch(64 * MIB, MIB, true);
	assert_int_equal(sums(false).ns, 64 * 10 * US);
}

TEST(sites_with_and_without_a_time_on_the_device_add_up)
{
	benefit.copy_ns_per_mib = 30 * US;
	spill_in_place_cost_add(&cost, &benefit, SITE + 1, 64 * MIB, 5 * MS, true);
	spill_benefit_add_use(&benefit, SITE, 0, MS / 2);
	launch(64 * MIB, MS, true);
	assert_int_equal(sums(false).ns, 64 * 30 * US + MS / 2);
	assert_int_equal(sums(false).most_ns, 11 * MS / 2);
}

TEST(unknown_launches_wait_for_the_next_time)
{
	spill_benefit_add_use(&benefit, SITE, 0, MS / 2);
	launch(64 * MIB, 0, false);
	launch(64 * MIB, 0, false);
	assert_int_equal(sums(false).most_ns, 0);
	assert_int_equal(sums(false).bytes, 0);
	measured(64 * MIB, 5 * MS / 2);
	assert_int_equal(sums(false).ns, 4 * MS);
	assert_int_equal(sums(false).bytes, 128 * MIB);
	/* A time that was begun before the other one, and arrives later. */
	spill_in_place_cost_measured(&cost, &benefit, SITE, (struct spill_benefit_waiting){1, 64 << 10}, MS);
	assert_int_equal(sums(false).ns, 4 * MS);
	launch(64 * MIB, 0, false);
	measured(64 * MIB, 3 * MS / 2);
	assert_int_equal(sums(false).ns, 5 * MS);
}

TEST(at_the_end_all_count)
{
	spill_benefit_add_use(&benefit, SITE, 0, MS / 2);
	launch(64 * MIB, 0, false);
	measured(64 * MIB, 5 * MS / 2);
	launch(64 * MIB, 0, false);
	assert_int_equal(sums(false).ns, 2 * MS);
	assert_int_equal(sums(true).ns, 4 * MS); /* in proportion */
	spill_in_place_cost_end(&cost, &benefit);
	assert_int_equal(sums(false).ns, 4 * MS);
	assert_int_equal(sums(true).ns, 4 * MS);
	/* Of a site that was never measured. */
	spill_in_place_cost_add(&cost, &benefit, SITE + 1, 64 * MIB, 0, false);
	spill_in_place_cost_end(&cost, &benefit);
	assert_int_equal(sums(true).ns, 6 * MS);
	assert_int_equal(sums(true).bytes, 192 * MIB);
}

TEST(without_any_time_there_are_only_bytes)
{
	launch(64 * MIB, 0, false);
	assert_int_equal(sums(true).bytes, 64 * MIB);
	assert_int_equal(sums(true).most_ns, 0);
}

/* A known time of nothing is not the same as none. */
TEST(nothing_lost_is_known)
{
	spill_benefit_add_use(&benefit, SITE, 0, MS);
	launch(MIB, MS, true);
	assert_int_equal(sums(true).ns, 0);
	assert_int_equal(sums(true).most_ns, 1);
}

/* Launches of several streams take their times side by side. */
TEST(never_more_than_the_run)
{
	struct spill_in_place_sums run;

	launch(64 * MIB, 5 * MS, true);
	run = spill_in_place_cost_sums(&cost, MS / 2, true);
	assert_int_equal(run.most_ns, MS / 2);
	assert_int_equal(run.ns, MS / 2);
	assert_int_equal(run.bytes, 64 * MS / 2);
	run = spill_in_place_cost_sums(&cost, 0, true);
	assert_true(run.most_ns == 1 && run.ns <= 1 && run.bytes == 0);
}

TEST(huge_figures_stay_in_bounds)
{
	for (unsigned i = 0; i < 3; i++)
		launch(UINT64_MAX, UINT64_MAX / 4, true);
	spill_in_place_cost_add(&cost, &benefit, SITE + 1, UINT64_MAX, 0, false);
	assert_true(spill_in_place_cost_sums(&cost, UINT64_MAX, true).most_ns >= UINT64_MAX / 4 * 3);
}

/* A fifth of the time was not watched. */
TEST(what_was_not_watched_counts_as_before)
{
	launch(64 * MIB, 7 * MS, true);
	struct spill_in_place_cost since = cost;
	launch(64 * MIB, 7 * MS, true);
	struct spill_in_place_cost seen = cost;
	spill_in_place_cost_rested(&cost, &since, 8 * MS, 400, 100);
	assert_int_equal(cost.bytes - seen.bytes, 16 * MIB);
	assert_int_equal(cost.ns - seen.ns, 2 * MS);
	assert_int_equal(cost.most_ns - seen.most_ns, 2 * MS);
	assert_int_equal(cost.named_kib - seen.named_kib, 16 << 10);
	/* As many bytes as the link carries in the time that was lost. */
	seen = cost;
	spill_in_place_cost_rested(&cost, &since, 8 * 1000, 400, 100);
	assert_int_equal(cost.bytes - seen.bytes, 2000 * 64);
	seen = cost;
	spill_in_place_cost_rested(&cost, &seen, 0, 400, 100);
	assert_int_equal(cost.bytes, seen.bytes);
	assert_int_equal(cost.ns, seen.ns);
}

/* Launches that waited long for a time are no use of the window in which it arrives; those of the window are. */
TEST(what_was_not_watched_is_counted_by_use)
{
	for (unsigned i = 0; i < 100; i++)
		launch(64 * MIB, 0, false);
	struct spill_in_place_cost since = cost;
	launch(64 * MIB, 0, false);
	spill_in_place_cost_rested(&cost, &since, 4 * MS, 400, 100);
	assert_int_equal(cost.named_kib, 16 << 10);
	assert_int_equal(cost.unknown_kib, 101 * 64 << 10);
	since = cost;
	measured(64 * MIB, 200000);
	struct spill_in_place_cost seen = cost;
	spill_in_place_cost_rested(&cost, &since, 0, 400, 100);
	assert_int_equal(cost.bytes, seen.bytes);
	assert_int_equal(cost.most_ns, seen.most_ns);
}

/* The accounts, one call at a time: what each adds, returns and tells. */
#define SETUP setup
#include "unit.h"

#include "account.h"
#include "backend.h"
#include "rule.h"

static unsigned changes;

static void count_change(void)
{
	changes++;
}

static int setup(void **state)
{
	spill_account_reset();
	spill_account_host_observe(NULL);
	changes = 0;
	return 0;
}

/* Of two threads that have looked at the same value, one charges, and the other one looks again. */
static void expect_charges(bool charge(uint64_t *held, uint64_t bytes), uint64_t held(void))
{
	uint64_t one = held(), other = one;
	assert_true(charge(&one, 100));
	assert_int_equal(held(), 100);
	assert_false(charge(&other, 7));
	assert_int_equal(held(), 100);
	assert_int_equal(other, 100);
	assert_true(charge(&other, 7));
	assert_int_equal(held(), 107);
}

static bool charge_device(uint64_t *held, uint64_t bytes)
{
	return spill_account_device_charge(1, held, bytes);
}

static uint64_t device_held(void)
{
	return spill_account_device_held(1);
}

static bool charge_rule(uint64_t *held, uint64_t bytes)
{
	return spill_account_rule_charge(SPILL_RULES - 1, held, bytes);
}

static uint64_t rule_held(void)
{
	return spill_account_rule_held(SPILL_RULES - 1);
}

TEST(a_charge_is_for_the_value_that_was_seen)
{
	expect_charges(charge_device, device_held);
	expect_charges(charge_rule, rule_held);
	expect_charges(spill_account_host_charge, spill_account_host_held);
	spill_account_device_return(1, 7);
	spill_account_rule_return(SPILL_RULES - 1, 7);
	spill_account_host_return(7);
	assert_int_equal(device_held(), 100);
	assert_int_equal(rule_held(), 100);
	assert_int_equal(spill_account_host_held(), 100);
	spill_account_device_add(1, 20);
	spill_account_host_add(20);
	assert_int_equal(device_held(), 120);
	assert_int_equal(spill_account_host_held(), 120);
	assert_int_equal(spill_account_physical_held(), 0);
	assert_int_equal(spill_account_device_held(0), 0);
	assert_int_equal(spill_account_rule_held(0), 0);
}

TEST(physical_memory_is_in_both_accounts)
{
	spill_account_physical_add(50);
	assert_int_equal(spill_account_host_held(), 50);
	spill_account_host_add(30);
	spill_account_physical_charged(30);
	assert_int_equal(spill_account_host_held(), 80);
	assert_int_equal(spill_account_physical_held(), 80);
	spill_account_physical_return(70);
	assert_int_equal(spill_account_host_held(), 10);
	assert_int_equal(spill_account_physical_held(), 10);
}

/* The one who charges tells it. */
TEST(changes_of_the_host_are_told)
{
	uint64_t held = 0;
	spill_account_host_add(5);
	spill_account_host_observe(count_change);
	spill_account_host_add(5);
	assert_int_equal(changes, 1);
	spill_account_host_return(5);
	assert_int_equal(changes, 2);
	spill_account_physical_add(5);
	spill_account_physical_return(5);
	assert_int_equal(changes, 4);
	held = spill_account_host_held();
	assert_true(spill_account_host_charge(&held, 5));
	spill_account_device_add(0, 5);
	assert_int_equal(changes, 4);
	spill_account_host_observe(NULL);
	spill_account_host_add(5);
	assert_int_equal(changes, 4);
}

TEST(other_devices_share_an_account)
{
	spill_account_device_add(SPILL_DEVICES - 1, 1);
	spill_account_device_add(SPILL_DEVICES, 2);
	spill_account_device_add(SPILL_DEVICES + 5, 4);
	spill_account_device_add(-1, 8);
	assert_int_equal(spill_account_device_held(SPILL_DEVICES - 1), 15);
	assert_int_equal(spill_account_device_held(-1), 15);
	assert_int_equal(spill_account_device_held(SPILL_DEVICES - 2), 0);
	assert_int_equal(spill_account_device_held(0), 0);
}

TEST(a_child_holds_nothing)
{
	uint64_t held = 0;
	for (int device = 0; device < SPILL_DEVICES; device++)
		spill_account_device_add(device, 1);
	for (unsigned rule = 0; rule < SPILL_RULES; rule++, held = 0)
		assert_true(spill_account_rule_charge(rule, &held, 1));
	spill_account_physical_add(1);
	spill_account_reset();
	for (int device = 0; device <= SPILL_DEVICES; device++)
		assert_int_equal(spill_account_device_held(device), 0);
	for (unsigned rule = 0; rule < SPILL_RULES; rule++)
		assert_int_equal(spill_account_rule_held(rule), 0);
	assert_int_equal(spill_account_host_held(), 0);
	assert_int_equal(spill_account_physical_held(), 0);
}

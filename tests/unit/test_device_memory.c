/* The driver's figures for a device are remembered, and the driver is asked no more than before. */
#include "device_memory.h"

#include "account.h"
#include "memory_limit.h"
#include "process.h"
#include "fake_clock.h"
#include "unit.h"

static struct {
	int result;
	uint64_t free, total;
	unsigned asked;
} driver;

static int memory(int device, uint64_t *free, uint64_t *total)
{
	driver.asked++;
	*free = driver.free;
	*total = driver.total;
	return driver.result;
}

static const struct spill_vendor_devices devices = {.memory = memory};
static const struct spill_backend backend = {.devices = &devices};

static int ask(int device)
{
	uint64_t free = 0, total = 0;
	int result = spill_device_memory(&backend, device, &free, &total);
	assert_true(free == driver.free && total == driver.total);
	return result;
}

TEST(an_answer_is_remembered_with_what_this_process_held)
{
	struct spill_seen seen;
	spill_device_memory_reset();
	spill_account_reset();
	assert_int_equal(spill_device_seen(1).total, 0);
	spill_account_device_add(1, 300);
	driver.result = 0;
	driver.free = 100;
	driver.total = 1000;
	assert_int_equal(ask(1), 0);
	spill_account_device_add(1, 50);
	driver.asked = 0;
	seen = spill_device_seen(1);
	assert_true(seen.free == 100 && seen.total == 1000 && seen.ours == 300);
	assert_int_equal(spill_device_seen(0).total, 0);
	assert_int_equal(driver.asked, 0);
}

/* The driver's free bytes still have what a request of this thread has only charged. */
TEST(bytes_that_are_charged_and_not_served_are_not_held)
{
	spill_device_memory_reset();
	spill_account_reset();
	spill_account_device_add(1, 300);
	spill_account_device_add(2, 300);
	driver.result = 0;
	driver.free = 100;
	driver.total = 1000;
	spill_device_memory_unserved(1, 80);
	assert_int_equal(ask(1), 0);
	assert_int_equal(ask(2), 0);
	assert_int_equal(spill_device_seen(1).ours, 220);
	assert_int_equal(spill_device_seen(2).ours, 300);
	spill_device_memory_unserved(1, 0);
	assert_int_equal(ask(1), 0);
	assert_int_equal(spill_device_seen(1).ours, 300);
}

TEST(an_answer_tells_its_age)
{
	fake_clock_use(7000000);
	spill_device_memory_reset();
	driver.result = 0;
	driver.free = 7;
	driver.total = 1000;
	assert_int_equal(ask(0), 0);
	assert_int_equal(spill_device_seen(0).ago_us, 0);
	fake_clock.ns += 12345678;
	assert_int_equal(spill_device_seen(0).ago_us, 12345);
	spill_clock_use(NULL);
}

/* The driver is asked for its size once it answers, and then no more. */
TEST(a_limit_in_percent_is_of_the_device)
{
	static struct spill_policy policy;
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_BYTES, 300};
	driver.asked = 0;
	assert_int_equal(spill_device_limit(&backend, 5), 300);
	assert_int_equal(driver.asked, 0);
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_PERCENT, 25000};
	driver.result = 3;
	driver.total = 0;
	assert_true(spill_device_limit(&backend, 5) == SPILL_UNLIMITED);
	driver.result = 0;
	driver.total = 1000;
	assert_int_equal(spill_device_limit(&backend, 5), 250);
	driver.total = 2000;
	assert_int_equal(spill_device_limit(&backend, 5), 250);
	assert_int_equal(driver.asked, 2);
	assert_int_equal(spill_device_limit(&backend, 6), 500);
}

TEST(an_answer_that_is_not_known_replaces_the_one_before)
{
	spill_device_memory_reset();
	driver.result = 0;
	driver.free = 7;
	driver.total = 1000;
	assert_int_equal(ask(0), 0);
	driver.free = 0; /* no context could be asked for it */
	assert_int_equal(ask(0), 0);
	assert_int_equal(spill_device_seen(0).total, 0);
}

TEST(a_refusal_and_an_unknown_device_change_nothing)
{
	spill_device_memory_reset();
	driver.result = 0;
	driver.free = 7;
	driver.total = 1000;
	assert_int_equal(ask(0), 0);
	driver.result = 3;
	driver.free = 9;
	assert_int_equal(ask(0), 3);
	driver.result = 0;
	assert_int_equal(ask(-1), 0);
	assert_int_equal(ask(SPILL_DEVICES), 0);
	assert_int_equal(spill_device_seen(0).free, 7);
	assert_int_equal(spill_device_seen(-1).total, 0);
	assert_int_equal(spill_device_seen(SPILL_DEVICES).total, 0);
}

TEST(a_child_remembers_nothing)
{
	spill_account_reset();
	spill_account_device_add(0, 300);
	driver.result = 0;
	driver.free = 100;
	driver.total = 1000;
	assert_int_equal(ask(0), 0);
	spill_device_memory_reset();
	struct spill_seen seen = spill_device_seen(0);
	assert_true(!seen.free && !seen.total && !seen.ours);
}

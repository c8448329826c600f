/* What an exchange costs beside the time that it takes: idle time of the device behind it. */
#define SETUP begin
#include "unit.h"

#include <string.h>

#include "exchange_lead.h"

#define MS 1000000ull
#define MIB (1ull << 20)

static struct spill_exchange_lead lead;
static uint64_t now;

/* An exchange of 64 MiB held threads up for 5 ms. */
static int begin(void **state)
{
	now = 5000 * MS;
	spill_exchange_lead_begin(&lead, 64 * MIB, 5 * MS, now);
	return 0;
}

/* After `ms` of which the device was idle for `idle_ms`. */
static bool is_known_after(unsigned ms, unsigned idle_ms)
{
	now += ms * MS;
	return spill_exchange_lead_follow(&lead, idle_ms * MS, now);
}

TEST(idle_time_behind_an_exchange_is_a_part_of_its_cost)
{
	assert_false(is_known_after(1, 1));
	assert_false(is_known_after(2, 0));
	assert_false(is_known_after(2, 1));
	assert_true(is_known_after(1, 0));
	assert_int_equal(lead.idle_ns, 2 * MS);
	assert_int_equal(lead.bytes, 64 * MIB);
}

TEST(it_is_followed_for_as_long_as_threads_were_held_up)
{
	assert_false(is_known_after(5, 5));
	assert_true(is_known_after(1, 1));
	assert_int_equal(lead.idle_ns, 5 * MS);
}

/* Nobody knows when the device was idle. */
TEST(time_that_ends_later_does_not_count)
{
	assert_true(is_known_after(6, 6));
	assert_int_equal(lead.idle_ns, 0);
}

TEST(a_new_exchange_takes_its_place)
{
	assert_false(is_known_after(1, 1));
	spill_exchange_lead_begin(&lead, 32 * MIB, 1 * MS, now);
	assert_false(is_known_after(1, 0));
	assert_true(is_known_after(1, 1));
	assert_int_equal(lead.idle_ns, 0);
	assert_int_equal(lead.bytes, 32 * MIB);
}

TEST(without_an_exchange_nothing_is_known)
{
	memset(&lead, 0, sizeof(lead));
	assert_false(is_known_after(1, 1));
	assert_false(is_known_after(1000, 1000));
}

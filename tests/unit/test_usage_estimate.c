/* When the driver is asked how full the device is: never too late to know the line, and seldom below it. */
#include "unit.h"
#include "usage_estimate.h"

#define HALF 50000
#define AT 1000000

static const struct spill_usage_estimate below = {
    .seen = true, .used = 20, .total = 200, .own = 5, .at_us = AT};
static const struct spill_usage_estimate above = {
    .seen = true, .used = 120, .total = 200, .own = 50, .at_us = AT};

static enum spill_usage_answer ask(const struct spill_usage_estimate *look, uint64_t own, uint64_t bytes,
                                   uint64_t after_us)
{
	return spill_usage_estimate(look, HALF, own, bytes, AT + after_us);
}

TEST(what_was_never_seen_is_asked)
{
	const struct spill_usage_estimate never = {.seen = false, .total = 200, .at_us = AT};
	assert_int_equal(ask(&never, 0, 0, 0), SPILL_USAGE_STALE);
}

/* The line is at 100, 80 are left: 40 of them may go without a question, the request included. */
TEST(half_of_what_is_left_is_free)
{
	assert_int_equal(ask(&below, 5, 40, 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&below, 5, 41, 1), SPILL_USAGE_STALE);
	assert_int_equal(ask(&below, 35, 10, 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&below, 35, 11, 1), SPILL_USAGE_STALE);
	assert_int_equal(ask(&below, 200, 1, 1), SPILL_USAGE_STALE);
	/* What was given back is free again. */
	assert_int_equal(ask(&below, 0, 45, 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&below, 0, 46, 1), SPILL_USAGE_STALE);
}

TEST(right_after_a_look_it_is_known)
{
	assert_int_equal(ask(&below, 5, 80, 0), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&below, 5, 81, 0), SPILL_USAGE_ABOVE);
	assert_int_equal(ask(&below, 5, UINT64_MAX, 0), SPILL_USAGE_ABOVE);
	assert_int_equal(ask(&above, 50, 0, 0), SPILL_USAGE_ABOVE);
}

/* Above the line nothing more is asked, until what this process gave back makes it doubtful. */
TEST(above_the_line_it_stays)
{
	assert_int_equal(ask(&above, 50, 0, 1), SPILL_USAGE_ABOVE);
	assert_int_equal(ask(&above, 80, 100, 1), SPILL_USAGE_ABOVE);
	assert_int_equal(ask(&above, 31, 0, 1), SPILL_USAGE_ABOVE);
	assert_int_equal(ask(&above, 30, 0, 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&above, 0, 30, 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&above, 0, 31, 1), SPILL_USAGE_ABOVE);
}

/* On the line, half of nothing is left: all but what fits is asked about. */
TEST(on_the_line_more_is_asked_about)
{
	const struct spill_usage_estimate on = {
	    .seen = true, .used = 100, .total = 200, .own = 50, .at_us = AT};
	assert_int_equal(ask(&on, 50, 0, 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&on, 50, 1, 1), SPILL_USAGE_STALE);
	assert_int_equal(ask(&on, 51, 0, 1), SPILL_USAGE_STALE);
}

TEST(a_look_grows_old)
{
	assert_int_equal(ask(&below, 5, 1, SPILL_USAGE_VALID_US - 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&below, 5, 1, SPILL_USAGE_VALID_US), SPILL_USAGE_STALE);
	assert_int_equal(ask(&above, 50, 1, SPILL_USAGE_VALID_US - 1), SPILL_USAGE_ABOVE);
	assert_int_equal(ask(&above, 50, 1, SPILL_USAGE_VALID_US), SPILL_USAGE_STALE);
}

TEST(ends_of_the_numbers)
{
	const struct spill_usage_estimate more_than_known = {
	    .seen = true, .used = 1, .total = 200, .own = 50, .at_us = AT};
	assert_int_equal(ask(&more_than_known, 0, 50, 1), SPILL_USAGE_BELOW);
	assert_int_equal(ask(&below, UINT64_MAX, UINT64_MAX, 1), SPILL_USAGE_STALE);
	assert_int_equal(spill_usage_estimate(&below, 0, 5, 1, AT), SPILL_USAGE_ABOVE);
	assert_int_equal(spill_usage_estimate(&below, 100000, 5, 180, AT), SPILL_USAGE_BELOW);
	assert_int_equal(spill_usage_estimate(&below, 100000, 5, 181, AT), SPILL_USAGE_ABOVE);
}

/*
 * A program that fills a device in steps: every answer is what the driver would have said, and below the line it was asked
 * no more often than the distance can be halved.
 */
TEST(filling_a_device)
{
	const uint64_t total = 80ull << 30, others = 3ull << 30, step = 2ull << 20;
	struct spill_usage_estimate look = {0};
	unsigned looks = 0;
	for (uint64_t own = 0; own + others < total / 2 + 100 * step; own += step) {
		enum spill_usage_answer answer = spill_usage_estimate(&look, HALF, own, step, AT);
		if (answer == SPILL_USAGE_STALE) {
			looks++;
			look = (struct spill_usage_estimate){true, others + own, total, own, AT};
			answer = spill_usage_estimate(&look, HALF, own, step, AT);
		}
		assert_int_equal(answer == SPILL_USAGE_ABOVE, others + own + step > total / 2);
	}
	assert_in_range(looks, 10, 20);
}

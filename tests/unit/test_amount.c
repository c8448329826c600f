/* Sizes and percentages: exact meaning, exact errors, and back to text. */
#include "unit.h"

#include <string.h>

#include "amount.h"

#define BOTH (SPILL_ALLOW_PERCENT | SPILL_ALLOW_NONE)
#define GIB ((uint64_t)1 << 30)

static const struct good {
	const char *text;
	enum spill_amount_kind kind;
	uint64_t value;
	const char *again; /* as it is printed */
} goods[] = {
    {"0", SPILL_AMOUNT_BYTES, 0, "0"},
    {"1", SPILL_AMOUNT_BYTES, 1, "1"},
    {"1B", SPILL_AMOUNT_BYTES, 1, "1"},
    {"1023", SPILL_AMOUNT_BYTES, 1023, "1023"},
    {"1024", SPILL_AMOUNT_BYTES, 1024, "1KiB"},
    {"007KiB", SPILL_AMOUNT_BYTES, 7 * 1024, "7KiB"},
    {"512MiB", SPILL_AMOUNT_BYTES, 512u << 20, "512MiB"},
    {"4.5GiB", SPILL_AMOUNT_BYTES, 9 * GIB / 2, "4608MiB"},
    {"0.000001TiB", SPILL_AMOUNT_BYTES, 1099511, "1099511"},
    {"2.999999TiB", SPILL_AMOUNT_BYTES, 3298533783816, "3298533783816"},
    {"16777215TiB", SPILL_AMOUNT_BYTES, (uint64_t)16777215 << 40, "16777215TiB"},
    {"18446744073709551614", SPILL_AMOUNT_BYTES, UINT64_MAX - 1, "18446744073709551614"},
    {"0%", SPILL_AMOUNT_PERCENT, 0, "0%"},
    {"75%", SPILL_AMOUNT_PERCENT, 75000, "75%"},
    {"100%", SPILL_AMOUNT_PERCENT, 100000, "100%"},
    {"12.5%", SPILL_AMOUNT_PERCENT, 12500, "12.5%"},
    {"0.005%", SPILL_AMOUNT_PERCENT, 5, "0.005%"},
    {"33.305%", SPILL_AMOUNT_PERCENT, 33305, "33.305%"},
    {"none", SPILL_AMOUNT_BYTES, SPILL_UNLIMITED, "none"},
};

static const struct bad {
	const char *text;
	unsigned allow;
	size_t at;
	const char *why; /* a part of it */
} bads[] = {
    {"", BOTH, 0, "number"},
    {"GiB", BOTH, 0, "number"},
    {"-1", BOTH, 0, "negative"},
    {"+1", BOTH, 0, "number"},
    {" 1", BOTH, 0, "number"},
    {"1 GiB", BOTH, 1, "no blank"},
    {"4GB", BOTH, 1, "write GiB; units are"},
    {"4G", BOTH, 1, "write GiB; units are"},
    {"4gib", BOTH, 1, "write GiB; units are"},
    {"4k", BOTH, 1, "write KiB; units are"},
    {"4mB", BOTH, 1, "write MiB; units are"},
    {"4T", BOTH, 1, "write TiB; units are"},
    {"4GHz", BOTH, 1, "units are"},
    {"4GiBs", BOTH, 1, "units are"},
    {"1e3", BOTH, 1, "units are"},
    {"0x10", BOTH, 1, "units are"},
    {"4,5GiB", BOTH, 1, "comma"},
    {"4.GiB", BOTH, 2, "digits must follow"},
    {"1.5", BOTH, 0, "no decimals"},
    {"1.5B", BOTH, 0, "no decimals"},
    {"1.1234567GiB", BOTH, 8, "6 decimals"},
    {"18446744073709551615", BOTH, 0, "too large"},
    {"18446744073709551616", BOTH, 0, "too large"},
    {"99999999999999999999999", BOTH, 0, "too large"},
    {"16777216TiB", BOTH, 0, "too large"},
    {"17179869184GiB", BOTH, 0, "too large"},
    {"101%", BOTH, 0, "exceed 100%"},
    {"100.001%", BOTH, 0, "exceed 100%"},
    {"1.0001%", BOTH, 0, "3 decimals"},
    {"50%", 0, 2, "no meaning"},
    {"50%%", BOTH, 2, "units are"},
    {"none", SPILL_ALLOW_PERCENT, 0, "the largest is 100%"},
    {"none", 0, 0, "it cannot be none"},
    {"None", BOTH, 0, "number"},
};

TEST(good)
{
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		struct spill_amount amount = {SPILL_AMOUNT_NONE, 1};
		char text[32];
		size_t at;

		assert_null(spill_amount_parse(goods[i].text, BOTH, &amount, &at));
		assert_int_equal(amount.kind, goods[i].kind);
		assert_int_equal(amount.value, goods[i].value);
		assert_int_equal(spill_amount_format(amount, text, sizeof(text)), strlen(goods[i].again));
		assert_string_equal(text, goods[i].again);
	}
}

TEST(bad)
{
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		struct spill_amount amount = {SPILL_AMOUNT_PERCENT, 42};
		size_t at = 99;
		const char *why = spill_amount_parse(bads[i].text, bads[i].allow, &amount, &at);

		if (!why || !strstr(why, bads[i].why) || at != bads[i].at)
			fail_msg("'%s': '%s' at %zu", bads[i].text, why ? why : "accepted", at);
		assert_int_equal(amount.kind, SPILL_AMOUNT_PERCENT);
		assert_int_equal(amount.value, 42);
	}
}

/* What is printed must mean the same when it is read: each power of two and its neighbours. */
TEST(round_trip)
{
	for (unsigned shift = 0; shift < 64; shift++) {
		for (int near = -1; near <= 1; near++) {
			struct spill_amount amount = {SPILL_AMOUNT_BYTES,
			                              ((uint64_t)1 << shift) + (uint64_t)near},
			                    again;
			char text[32];
			size_t at;

			spill_amount_format(amount, text, sizeof(text));
			assert_null(spill_amount_parse(text, BOTH, &again, &at));
			assert_int_equal(again.value, amount.value);
		}
	}
	for (uint64_t value = 0; value <= 100000; value++) {
		struct spill_amount amount = {SPILL_AMOUNT_PERCENT, value}, again;
		char text[32];
		size_t at;

		spill_amount_format(amount, text, sizeof(text));
		if (spill_amount_parse(text, BOTH, &again, &at) || again.value != value)
			fail_msg("%s", text);
	}
}

TEST(resolve)
{
	struct spill_amount half = {SPILL_AMOUNT_PERCENT, 50000}, all = {SPILL_AMOUNT_PERCENT, 100000};
	struct spill_amount third = {SPILL_AMOUNT_PERCENT, 33333}, bytes = {SPILL_AMOUNT_BYTES, 7};
	struct spill_amount none = {SPILL_AMOUNT_NONE, 0};

	assert_int_equal(spill_amount_resolve(half, 16 * GIB, 1), 8 * GIB);
	assert_int_equal(spill_amount_resolve(all, UINT64_MAX, 1), UINT64_MAX);
	assert_int_equal(spill_amount_resolve(third, 1000000, 1), 333330);
	assert_int_equal(spill_amount_resolve(third, 7, 1), 2);
	assert_int_equal(spill_amount_resolve(bytes, 16 * GIB, 1), 7);
	assert_int_equal(spill_amount_resolve(none, 16 * GIB, 123), 123);
}

static void time_is(const char *text, uint64_t us, const char *again)
{
	uint64_t read = 1;
	char printed[32];
	size_t at;

	if (spill_time_parse(text, &read, &at) || read != us)
		fail_msg("%s: %llu", text, (unsigned long long)read);
	assert_int_equal(spill_time_format(us, printed, sizeof(printed)), strlen(again));
	assert_string_equal(printed, again);
}

TEST(times)
{
	time_is("0s", 0, "0s");
	time_is("1us", 1, "1us");
	time_is("250ms", 250000, "250ms");
	time_is("1.5ms", 1500, "1500us");
	time_is("60s", 60000000, "60s");
	time_is("1min", 60000000, "60s");
	time_is("0.000001s", 1, "1us");
	time_is("1.5h", 5400000000, "5400s");
	time_is("0.999999h", 3599996400, "3599996400us");
	time_is("18446744073709551615us", UINT64_MAX, "18446744073709551615us");
}

static void time_bad(const char *text, size_t where, const char *part)
{
	uint64_t us = 42;
	size_t at = 99;
	const char *why = spill_time_parse(text, &us, &at);

	if (!why || !strstr(why, part) || at != where)
		fail_msg("'%s': '%s' at %zu", text, why ? why : "accepted", at);
	assert_int_equal(us, 42);
}

TEST(bad_times)
{
	time_bad("", 0, "number");
	time_bad("-1s", 0, "negative");
	time_bad("60", 2, "a unit must follow");
	time_bad("60 s", 2, "no blank");
	time_bad("1,5s", 1, "comma");
	time_bad("60sec", 2, "units are");
	time_bad("60S", 2, "units are");
	time_bad("60%", 2, "units are");
	time_bad("1.5us", 0, "microsecond");
	time_bad("0.0000005s", 8, "6 decimals");
	time_bad("0.00001ms", 0, "microsecond");
	time_bad("18446744073709551615ms", 0, "too long");
	time_bad("18446744073710s", 0, "too long");
	time_bad("99999999999999999999999s", 0, "too large");
}

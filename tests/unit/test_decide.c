/* The pure decisions: limit, chain, host room, names. */
#include "unit.h"

#include <string.h>

#include "decide.h"

#define GIB ((uint64_t)1 << 30)
#define ALL (SPILL_CAN_MOVE | SPILL_CAN_SPLIT | SPILL_CAN_MANAGED | SPILL_CAN_HOST)

static bool fits(uint64_t bytes, uint64_t used, uint64_t limit)
{
	struct spill_policy policy;
	struct spill_ask ask = {.bytes = bytes, .weight = bytes};
	struct spill_view view = {.device_used = used, .device_limit = limit};
	struct spill_decision decision;

	spill_policy_default(&policy);
	decision = spill_decide(&policy, NULL, &ask, &view);
	assert_string_equal(decision.rule, "default");
	return decision.verdict == SPILL_VERDICT_DRIVER;
}

TEST(limit)
{
	assert_true(fits(4 * GIB, 0, 4 * GIB));
	assert_false(fits(4 * GIB + 1, 0, 4 * GIB));
	assert_true(fits(GIB, 3 * GIB, 4 * GIB));
	assert_false(fits(GIB + 1, 3 * GIB, 4 * GIB));
	assert_true(fits(0, 4 * GIB, 4 * GIB));
	/* A ledger above a limit: nothing more, not even nothing. */
	assert_false(fits(0, 5 * GIB, 4 * GIB));
	assert_false(fits(1, 0, 0));
	/* used + bytes would wrap to a small number */
	assert_false(fits(UINT64_MAX, 2 * GIB, 4 * GIB));
	assert_false(fits(UINT64_MAX - GIB, 2 * GIB, 4 * GIB));
	/* without a limit the driver decides */
	assert_true(fits(UINT64_MAX, UINT64_MAX, SPILL_UNLIMITED));
}

TEST(device_limit)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	assert_int_equal(spill_policy_device_limit(&policy, 0, 8 * GIB), SPILL_UNLIMITED);
	policy.device_limit = (struct spill_amount){SPILL_AMOUNT_PERCENT, 75000};
	policy.device_limits[1] = (struct spill_amount){SPILL_AMOUNT_BYTES, GIB};
	policy.device_limits[2] = (struct spill_amount){SPILL_AMOUNT_BYTES, SPILL_UNLIMITED};
	assert_int_equal(spill_policy_device_limit(&policy, 0, 8 * GIB), 6 * GIB);
	assert_int_equal(spill_policy_device_limit(&policy, 1, 8 * GIB), GIB);
	assert_int_equal(spill_policy_device_limit(&policy, 2, 8 * GIB), SPILL_UNLIMITED);
	assert_int_equal(spill_policy_device_limit(&policy, -1, 8 * GIB), 6 * GIB);
	assert_int_equal(spill_policy_device_limit(&policy, SPILL_DEVICES, 8 * GIB), 6 * GIB);
}

TEST(device_reserve)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	assert_int_equal(spill_policy_device_reserve(&policy, 0), 64u << 20);
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, GIB};
	policy.device_reserves[0] = (struct spill_amount){SPILL_AMOUNT_BYTES, 0};
	policy.device_reserves[31] = (struct spill_amount){SPILL_AMOUNT_BYTES, 2 * GIB};
	assert_int_equal(spill_policy_device_reserve(&policy, 0), 0);
	assert_int_equal(spill_policy_device_reserve(&policy, 1), GIB);
	assert_int_equal(spill_policy_device_reserve(&policy, 31), 2 * GIB);
	assert_int_equal(spill_policy_device_reserve(&policy, -1), GIB);
	assert_int_equal(spill_policy_device_reserve(&policy, SPILL_DEVICES), GIB);
}

TEST(chain_by_capability)
{
	struct spill_policy policy;
	enum spill_step step[SPILL_STEPS];

	spill_policy_default(&policy);
	assert_int_equal(spill_policy_chain(&policy, ALL, step), 5);
	assert_int_equal(step[0], SPILL_STEP_TRIM);
	assert_int_equal(step[1], SPILL_STEP_DEMOTE);
	assert_int_equal(step[2], SPILL_STEP_SPLIT);
	assert_int_equal(step[3], SPILL_STEP_MANAGED);
	assert_int_equal(step[4], SPILL_STEP_HOST);
	/* VMM on host, but a driver that cannot say when a context is idle. */
	assert_int_equal(spill_policy_chain(&policy, ALL & ~(unsigned)SPILL_CAN_MOVE, step), 4);
	assert_int_equal(step[1], SPILL_STEP_SPLIT);
	assert_int_equal(spill_policy_chain(&policy, SPILL_CAN_HOST, step), 2);
	assert_int_equal(step[1], SPILL_STEP_HOST);
	assert_int_equal(spill_policy_chain(&policy, SPILL_CAN_MANAGED | SPILL_CAN_HOST, step), 3);
	assert_int_equal(step[1], SPILL_STEP_MANAGED);
	assert_int_equal(spill_policy_chain(&policy, 0, step), 1);
}

static void check_chain(const struct spill_policy *policy, unsigned capabilities, const char *words)
{
	enum spill_step step[SPILL_STEPS];
	unsigned count = spill_policy_chain(policy, capabilities, step);
	char text[64] = "";

	for (unsigned i = 0; i < count; i++) {
		strcat(text, i ? " " : "");
		strcat(text, spill_step_name(step[i]));
	}
	assert_string_equal(text, words);
}

TEST(chain_by_memory)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	check_chain(&policy, ALL | SPILL_IS_INTEGRATED, "trim managed host");
	check_chain(&policy, SPILL_CAN_HOST | SPILL_IS_INTEGRATED, "trim host");
	check_chain(&policy, SPILL_IS_INTEGRATED, "trim");
	check_chain(&policy, ALL | SPILL_IS_COHERENT, "trim demote managed split host");
	check_chain(&policy, SPILL_CAN_SPLIT | SPILL_IS_COHERENT, "trim split");
	check_chain(&policy, ALL | SPILL_IS_INTEGRATED | SPILL_IS_COHERENT, "trim managed host");
	policy.movable_enable = SPILL_SWITCH_OFF;
	check_chain(&policy, ALL | SPILL_IS_COHERENT, "trim managed split host");
	check_chain(&policy, ALL, "trim split managed host");
	/* device.memory knows better than the device. */
	policy.device_memory = SPILL_MEMORY_DISCRETE;
	check_chain(&policy, ALL | SPILL_IS_INTEGRATED, "trim split managed host");
	check_chain(&policy, ALL | SPILL_IS_COHERENT, "trim split managed host");
	policy.device_memory = SPILL_MEMORY_COHERENT;
	check_chain(&policy, ALL, "trim managed split host");
	policy.device_memory = SPILL_MEMORY_INTEGRATED;
	check_chain(&policy, ALL, "trim managed host");
	/* What is written is written. */
	policy.chain =
	    (struct spill_fallback_chain){.count = 2, .step = {SPILL_STEP_DEMOTE, SPILL_STEP_SPLIT}};
	check_chain(&policy, ALL, "demote split");
}

TEST(memory)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	assert_int_equal(spill_policy_memory(&policy, ALL), SPILL_MEMORY_DISCRETE);
	assert_int_equal(spill_policy_memory(&policy, ALL | SPILL_IS_INTEGRATED), SPILL_MEMORY_INTEGRATED);
	assert_int_equal(spill_policy_memory(&policy, ALL | SPILL_IS_COHERENT), SPILL_MEMORY_COHERENT);
	assert_int_equal(spill_policy_memory(&policy, SPILL_IS_COHERENT | SPILL_IS_INTEGRATED),
	                 SPILL_MEMORY_INTEGRATED);
	assert_true(spill_policy_gains_by_moving(&policy, ALL));
	assert_true(spill_policy_gains_by_moving(&policy, ALL | SPILL_IS_COHERENT));
	assert_false(spill_policy_gains_by_moving(&policy, ALL | SPILL_IS_INTEGRATED));
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_DEMOTE}};
	assert_true(spill_policy_gains_by_moving(&policy, ALL | SPILL_IS_INTEGRATED));
	assert_string_equal(spill_memory_name(SPILL_MEMORY_DISCRETE), "discrete");
	assert_string_equal(spill_memory_name(SPILL_MEMORY_INTEGRATED), "integrated");
	assert_string_equal(spill_memory_name(SPILL_MEMORY_COHERENT), "coherent");
}

TEST(chain_as_written)
{
	struct spill_policy policy;
	enum spill_step step[SPILL_STEPS];

	spill_policy_default(&policy);
	policy.chain = (struct spill_fallback_chain){.count = 2, .step = {SPILL_STEP_HOST, SPILL_STEP_SPLIT}};
	assert_int_equal(spill_policy_chain(&policy, 0, step), 2);
	assert_int_equal(step[0], SPILL_STEP_HOST);
	assert_int_equal(step[1], SPILL_STEP_SPLIT);
	policy.chain = (struct spill_fallback_chain){.count = 0};
	assert_int_equal(spill_policy_chain(&policy, ALL, step), 0);
}

static uint64_t room(uint64_t limit, uint64_t held, uint64_t available, uint64_t reserve)
{
	struct spill_policy policy;
	struct spill_host_view view = {.limit = limit, .held = held, .available = available};

	spill_policy_default(&policy);
	policy.host_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, reserve};
	return spill_policy_host_room(&policy, &view);
}

static void falls_short(uint64_t reserve, uint64_t free, uint64_t held, uint64_t limit, uint64_t least,
                        uint64_t wanted)
{
	struct spill_shortfall shortfall = spill_policy_shortfall(reserve, 100, free, held, limit);

	assert_int_equal(shortfall.least, least);
	assert_int_equal(shortfall.wanted, wanted);
}

/* Of a request of 100 bytes: what the driver lacks and the reserve, or what the limit lacks if that is more. */
TEST(shortfall)
{
	falls_short(10, 30, 50, SPILL_UNLIMITED, 70, 80);
	falls_short(10, 100, 50, SPILL_UNLIMITED, 0, 10);
	falls_short(10, 110, 50, SPILL_UNLIMITED, 0, 0);
	falls_short(10, 1000, 20, 50, 70, 70);
	falls_short(10, 30, 20, 45, 75, 80);
	falls_short(10, 30, 20, 120, 70, 80);
	falls_short(10, 1000, 60, 50, 100, 100); /* above the limit already */
	falls_short(UINT64_MAX - 100, 30, 0, SPILL_UNLIMITED, 70, UINT64_MAX - 30);
}

/* The steps of a chain end at its count, whatever is behind them. */
TEST(which_chains_demote)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	assert_true(spill_policy_demotes(&policy));
	policy.chain =
	    (struct spill_fallback_chain){.count = 2, .step = {SPILL_STEP_HOST, SPILL_STEP_DEMOTE}};
	assert_true(spill_policy_demotes(&policy));
	policy.chain.count = 1;
	assert_false(spill_policy_demotes(&policy));
	policy.chain = (struct spill_fallback_chain){.count = 0, .step = {SPILL_STEP_DEMOTE}};
	assert_false(spill_policy_demotes(&policy));
}

TEST(host_room)
{
	assert_int_equal(room(8 * GIB, 3 * GIB, 32 * GIB, 2 * GIB), 5 * GIB);
	assert_int_equal(room(8 * GIB, 3 * GIB, 4 * GIB, 2 * GIB), 2 * GIB);
	assert_int_equal(room(8 * GIB, 9 * GIB, 32 * GIB, 2 * GIB), 0);
	assert_int_equal(room(8 * GIB, 0, GIB, 2 * GIB), 0);
	assert_int_equal(room(UINT64_MAX, 0, UINT64_MAX, 0), UINT64_MAX);
}

static uint64_t device_room(int device, uint64_t free, uint64_t held, uint64_t limit)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	policy.device_reserve = (struct spill_amount){SPILL_AMOUNT_BYTES, GIB};
	policy.device_reserves[1] = (struct spill_amount){SPILL_AMOUNT_BYTES, 2 * GIB};
	return spill_policy_device_room(spill_policy_device_reserve(&policy, device), free, held, limit);
}

TEST(device_room)
{
	assert_int_equal(device_room(0, 8 * GIB, 0, SPILL_UNLIMITED), 7 * GIB);
	assert_int_equal(device_room(1, 8 * GIB, 0, SPILL_UNLIMITED), 6 * GIB);
	assert_int_equal(device_room(0, GIB, 0, SPILL_UNLIMITED), 0);
	assert_int_equal(device_room(0, GIB - 1, 0, SPILL_UNLIMITED), 0);
	assert_int_equal(device_room(0, 8 * GIB, 3 * GIB, 4 * GIB), GIB);
	assert_int_equal(device_room(0, 2 * GIB, 0, 4 * GIB), GIB);
	assert_int_equal(device_room(0, 8 * GIB, 4 * GIB, 4 * GIB), 0);
	/* The ledger can be above the limit, and without one what it holds is no matter. */
	assert_int_equal(device_room(0, 8 * GIB, 5 * GIB, 4 * GIB), 0);
	assert_int_equal(device_room(0, 8 * GIB, UINT64_MAX, SPILL_UNLIMITED), 7 * GIB);
	assert_int_equal(device_room(0, 8 * GIB, 1, 0), 0);
}

TEST(names)
{
	assert_string_equal(spill_place_name(SPILL_PLACE_DEVICE), "device");
	assert_string_equal(spill_place_name(SPILL_PLACE_SPLIT), "split");
	assert_string_equal(spill_place_name(SPILL_PLACE_MANAGED), "managed");
	assert_string_equal(spill_place_name(SPILL_PLACE_HOST), "host");
	assert_string_equal(spill_place_name(SPILL_PLACE_MOVABLE), "movable");
	assert_string_equal(spill_place_name(SPILL_PLACES), "unknown");
}

/*
 * The free and total memory that a program sees: by value, and properties that hold for any
 * figures.
 */
#include "unit.h"

#include <string.h>

#include "meminfo.h"

#define GIB ((uint64_t)1 << 30)
#define MOST UINT64_MAX

#define HONEST SPILL_MEMINFO_HONEST
#define LIMIT SPILL_MEMINFO_LIMIT
#define SPILL SPILL_MEMINFO_SPILL

/* A row: the driver's answer, the view, and the answer to the program. */
struct row {
	enum spill_meminfo_report report;
	uint64_t free, total;
	struct spill_meminfo_view view; /* limit, held, host_most, host_room */
	uint64_t told_free, told_total;
};

static const struct row rows[] = {
    /* honest is the driver's answer, whatever else is known */
    {HONEST, 3, 8, {.limit = 1, .held = 1, .host_most = 9, .host_room = 9}, 3, 8},
    {HONEST, MOST, MOST, {.limit = 0, .host_most = MOST, .host_room = MOST}, MOST, MOST},
    {HONEST, 0, 0, {.limit = SPILL_UNLIMITED}, 0, 0},
    /* limit without a limit is the same */
    {LIMIT, 3, 8, {.limit = SPILL_UNLIMITED, .held = 7, .host_most = 9, .host_room = 9}, 3, 8},
    {LIMIT, MOST, MOST, {.limit = SPILL_UNLIMITED, .held = MOST}, MOST, MOST},
    /* and with one that is larger than the device, of which others hold something */
    {LIMIT, 3, 8, {.limit = 20, .held = 2}, 3, 8},
    {LIMIT, 3, 8, {.limit = 8, .held = 2}, 3, 8},
    /* smaller than the device */
    {LIMIT, 6 * GIB, 8 * GIB, {.limit = 4 * GIB, .held = GIB}, 3 * GIB, 4 * GIB},
    /* the driver has less than the limit leaves */
    {LIMIT, GIB, 8 * GIB, {.limit = 4 * GIB, .held = GIB}, GIB, 4 * GIB},
    /* full, over full, nothing allowed */
    {LIMIT, 6, 8, {.limit = 4, .held = 4}, 0, 4},
    {LIMIT, 6, 8, {.limit = 4, .held = 5}, 0, 4},
    {LIMIT, 6, 8, {.limit = 4, .held = MOST}, 0, 4},
    {LIMIT, 6, 8, {.limit = 0, .held = 0}, 0, 0},
    /* spill is that and the host */
    {SPILL, 6, 8, {.limit = 4, .held = 1, .host_most = 100, .host_room = 60}, 63, 104},
    {SPILL, 6, 8, {.limit = 4, .held = 9, .host_most = 100, .host_room = 60}, 60, 104},
    {SPILL, 6, 8, {.limit = SPILL_UNLIMITED, .held = 9, .host_most = 100, .host_room = 60}, 66, 108},
    {SPILL, 6, 8, {.limit = 4, .held = 1}, 3, 4},
    /* never more host than there can be, and never around */
    {SPILL, 6, 8, {.limit = 4, .held = 1, .host_most = 10, .host_room = 60}, 13, 14},
    {SPILL, 6, 8, {.limit = SPILL_UNLIMITED, .host_most = MOST, .host_room = MOST}, MOST, MOST},
    {SPILL, 6, 8, {.limit = SPILL_UNLIMITED, .host_most = MOST, .host_room = MOST - 6}, MOST, MOST},
    {SPILL,
     6,
     8,
     {.limit = SPILL_UNLIMITED, .host_most = MOST - 9, .host_room = MOST - 9},
     MOST - 3,
     MOST - 1},
};

TEST(what_is_told)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		uint64_t free = spill_meminfo_free(row->report, row->free, &row->view);
		uint64_t total = spill_meminfo_total(row->report, row->total, &row->view);
		if (free != row->told_free || total != row->told_total)
			fail_msg("row %zu: told %llu of %llu", i, (unsigned long long)free,
			         (unsigned long long)total);
	}
}

/* NVML's first form, and its second with what is reserved apart from what is used and in it. */
TEST(what_nvml_tells)
{
	static const struct {
		enum spill_meminfo_report report;
		struct spill_meminfo_parts said, told; /* total, free, used, reserved */
		struct spill_meminfo_view view;
	} answers[] = {
	    {HONEST, {100, 60, 40, 0}, {100, 60, 40, 0}, {.limit = 1, .held = 1, .host_most = 9}},
	    {LIMIT, {100, 60, 40, 0}, {100, 60, 40, 0}, {.limit = SPILL_UNLIMITED}},
	    {LIMIT, {100, 60, 35, 5}, {100, 60, 35, 5}, {.limit = 200, .held = 9}},
	    /* an answer without any sum that nothing cuts */
	    {LIMIT, {100, 90, 90, 90}, {100, 90, 90, 90}, {.limit = 200, .held = 9}},
	    {LIMIT, {100, 60, 40, 0}, {50, 40, 10, 0}, {.limit = 50, .held = 10}},
	    {LIMIT, {100, 60, 35, 5}, {50, 40, 5, 5}, {.limit = 50, .held = 10}},
	    {LIMIT, {100, 60, 40, 5}, {50, 40, 10, 5}, {.limit = 50, .held = 10}},
	    /* what is reserved is more than what the limit leaves beside what is free */
	    {LIMIT, {100, 60, 35, 5}, {50, 47, 0, 3}, {.limit = 50, .held = 3}},
	    {LIMIT, {100, 60, 40, 5}, {50, 47, 3, 3}, {.limit = 50, .held = 3}},
	    {LIMIT, {100, 60, 35, 5}, {0, 0, 0, 0}, {.limit = 0}},
	    {SPILL,
	     {100, 60, 35, 5},
	     {150, 80, 65, 5},
	     {.limit = 50, .held = 30, .host_most = 100, .host_room = 60}},
	    {SPILL,
	     {100, 60, 35, 5},
	     {MOST, MOST, 0, 0},
	     {.limit = SPILL_UNLIMITED, .host_most = MOST, .host_room = MOST}},
	};
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct spill_meminfo_parts told = answers[i].said;
		spill_meminfo_parts(answers[i].report, &told, &answers[i].view);
		if (memcmp(&told, &answers[i].told, sizeof(told)) != 0)
			fail_msg("answer %zu: told %llu %llu %llu %llu", i, (unsigned long long)told.total,
			         (unsigned long long)told.free, (unsigned long long)told.used,
			         (unsigned long long)told.reserved);
	}
}

static uint64_t seed = 20260101;

/* Of all sizes, with the ends and their neighbours more often than by chance. */
static uint64_t any(void)
{
	seed = seed * 6364136223846793005u + 1442695040888963407u;
	uint64_t x = seed >> 33 ^ seed << 20;
	switch (seed >> 60) {
	case 0:
		return 0;
	case 1:
		return MOST;
	case 2:
		return MOST - (x & 3);
	case 3:
		return x & 3;
	default:
		return x >> (seed >> 50 & 63);
	}
}

static bool driver_is_asked(const struct spill_ask *ask, const struct spill_view *view)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	return spill_decide(&policy, NULL, ask, view).verdict == SPILL_VERDICT_DRIVER;
}

TEST(what_holds_of_any_figures)
{
	for (unsigned i = 0; i < 200000; i++) {
		uint64_t total = any(), free = any();
		free = free < total ? free : total;
		struct spill_meminfo_view view = {any(), any(), any(), any()}, more = view;
		more.held = view.held > MOST - 5 ? MOST : view.held + 5;
		uint64_t limit_free = spill_meminfo_free(LIMIT, free, &view);
		uint64_t limit_total = spill_meminfo_total(LIMIT, total, &view);
		uint64_t spill_free = spill_meminfo_free(SPILL, free, &view);
		uint64_t spill_total = spill_meminfo_total(SPILL, total, &view);

		assert_int_equal(spill_meminfo_free(HONEST, free, &view), free);
		assert_int_equal(spill_meminfo_total(HONEST, total, &view), total);
		/* Never more than the driver has, and what is told to be free is a request that the limit lets pass. */
		assert_true(limit_free <= free && limit_total <= total && limit_total <= view.limit);
		struct spill_ask ask = {.weight = limit_free};
		struct spill_view now = {.device_used = view.held, .device_limit = view.limit};
		assert_true(limit_free == 0 || driver_is_asked(&ask, &now));
		/* Not less than could be told: one byte more is too much for the driver or the limit. */
		ask.weight = limit_free + 1;
		assert_true(limit_free == free || !driver_is_asked(&ask, &now));
		/* The host comes on top, and no more of it than there is. */
		assert_true(spill_free >= limit_free && spill_free - limit_free <= view.host_room);
		assert_true(spill_total >= limit_total && spill_total - limit_total <= view.host_most);
		assert_true(limit_free <= limit_total && spill_free <= spill_total);
		/* Who holds more is told less. */
		assert_true(spill_meminfo_free(LIMIT, free, &more) <= limit_free);
	}
}

TEST(the_sums_of_nvml_hold)
{
	for (unsigned i = 0; i < 200000; i++) {
		struct spill_meminfo_parts said = {.total = any()}, told;
		said.free = said.total ? any() % said.total : 0;
		said.reserved = any() % (said.total - said.free + (said.total < MOST));
		bool apart = i & 1;
		said.used = said.total - said.free - (apart ? said.reserved : 0);
		struct spill_meminfo_view view = {any(), any(), any(), any()};
		enum spill_meminfo_report report = i & 2 ? LIMIT : SPILL;
		told = said;
		spill_meminfo_parts(report, &told, &view);
		assert_true(told.free == spill_meminfo_free(report, said.free, &view));
		assert_true(told.total == spill_meminfo_total(report, said.total, &view));
		assert_true(told.total == told.free + told.used + (apart ? told.reserved : 0));
		assert_true(told.reserved <= said.reserved && told.reserved <= told.total - told.free);
	}
}

TEST(where_nothing_can_spill_the_host_is_not_counted)
{
	struct spill_policy policy;

	spill_policy_default(&policy);
	assert_false(spill_meminfo_can_spill(&policy, 0));
	assert_true(spill_meminfo_can_spill(&policy, SPILL_CAN_HOST));
	assert_true(spill_meminfo_can_spill(&policy, SPILL_CAN_MANAGED));
	assert_true(spill_meminfo_can_spill(&policy, SPILL_CAN_SPLIT));
	assert_true(spill_meminfo_can_spill(&policy, SPILL_CAN_MOVE));
	/* The same chips: the device's own figure has it already. */
	assert_false(spill_meminfo_can_spill(&policy, SPILL_CAN_HOST | SPILL_IS_INTEGRATED));
	assert_true(spill_meminfo_can_spill(&policy, SPILL_CAN_HOST | SPILL_IS_COHERENT));
	policy.movable_enable = SPILL_SWITCH_OFF;
	assert_false(spill_meminfo_can_spill(&policy, SPILL_CAN_MOVE));

	/* A chain that the user wrote, also with steps that the device cannot do. */
	policy.chain = (struct spill_fallback_chain){.count = 0};
	assert_false(spill_meminfo_can_spill(&policy, SPILL_CAN_HOST | SPILL_CAN_SPLIT));
	policy.chain =
	    (struct spill_fallback_chain){.count = 2, .step = {SPILL_STEP_TRIM, SPILL_STEP_MANAGED}};
	assert_false(spill_meminfo_can_spill(&policy, SPILL_CAN_HOST | SPILL_CAN_SPLIT | SPILL_CAN_MOVE));
	assert_true(spill_meminfo_can_spill(&policy, SPILL_CAN_MANAGED));
	policy.chain = (struct spill_fallback_chain){.count = 1, .step = {SPILL_STEP_DEMOTE}};
	assert_false(spill_meminfo_can_spill(&policy, SPILL_CAN_MOVE));
	policy.movable_enable = SPILL_SWITCH_AUTO;
	assert_true(spill_meminfo_can_spill(&policy, SPILL_CAN_MOVE));
	assert_false(spill_meminfo_can_spill(&policy, SPILL_CAN_HOST));
}

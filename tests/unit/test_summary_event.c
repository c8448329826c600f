/* Sums of a run whose log lacks lines. */
#define TEARDOWN forget
#include "unit.h"

#include "one_summary.h"

/* Its alloc is not in the log: what it holds is added, and what it held before is not taken from others. */
TEST(a_move_before_its_alloc)
{
	const struct cli_name *reason = name("use");
	const struct cli_device *device;

	tell(&(struct cli_event){
	    .kind = CLI_EVENT_ALLOC, .seq = 1, .bytes = 500, .held = {300, 200, 0}, .reason = name("oom")});
	tell(&(struct cli_event){.kind = CLI_EVENT_DEMOTE,
	                         .seq = 2,
	                         .bytes = 40,
	                         .held = {60, 40, 0},
	                         .time_us = 100,
	                         .took_us = 10,
	                         .reason = reason});
	device = cli_summary_device(&summary, 0);
	assert_memory_equal(&summary.totals.live, (&(struct spill_bytes){360, 240, 0}),
	                    sizeof(summary.totals.live));
	assert_memory_equal(&device->live, (&(struct spill_bytes){360, 240, 0}), sizeof(device->live));
	assert_memory_equal(&summary.unannounced, (&(struct spill_bytes){100, 0, 0}),
	                    sizeof(summary.unannounced));
	assert_int_equal(summary.away, 240);
	/* The same move goes on. */
	tell(&(struct cli_event){.kind = CLI_EVENT_PROMOTE,
	                         .seq = 3,
	                         .bytes = 30,
	                         .held = {50, 5, 0},
	                         .time_us = 105,
	                         .took_us = 15,
	                         .reason = reason});
	assert_memory_equal(&summary.totals.live, (&(struct spill_bytes){410, 245, 0}),
	                    sizeof(summary.totals.live));
	assert_memory_equal(&summary.unannounced, (&(struct spill_bytes){120, 35, 0}),
	                    sizeof(summary.unannounced));
	assert_int_equal(summary.totals.away.moves_us, 15);
	tell(&(struct cli_event){.kind = CLI_EVENT_PROMOTE,
	                         .seq = 3,
	                         .bytes = 5,
	                         .held = {55, 0, 0},
	                         .time_us = 120,
	                         .took_us = 4,
	                         .reason = reason});
	assert_int_equal(summary.totals.away.moves_us, 19);
	assert_int_equal(summary.away, 240);
	assert_int_equal(summary.moved.count, 1);
	assert_null(summary.moved.list[0].caller);
	tell(&(struct cli_event){.kind = CLI_EVENT_FREE, .seq = 4});
	assert_int_equal(summary.unknown_frees, 1);
}

/* The sums of a caller: what was ahead becomes less by what the line tells. */
TEST(a_sum_of_what_had_no_lines)
{
	struct cli_event sum = {.kind = CLI_EVENT_SUM,
	                        .time_us = 10,
	                        .reason = name("fits"),
	                        .who = name("a"),
	                        .rule = name("default")};
	const struct cli_device *device;
	const struct cli_row *row;

	tell(&(struct cli_event){.kind = CLI_EVENT_ALLOC,
	                         .seq = 1,
	                         .bytes = 100,
	                         .held = {100, 0, 0},
	                         .who = sum.who,
	                         .rule = sum.rule,
	                         .reason = sum.reason,
	                         .level = {.all = 150, .all_peak = 180, .device = 140, .device_peak = 160}});
	device = cli_summary_device(&summary, 0);
	assert_int_equal(cli_device_held(device).device, 140);
	assert_int_equal(device->peak.device, 160);
	assert_int_equal(summary.totals.peak.device, 180);
	sum.sum = (struct cli_site_sum){5, 70, 3, 30, 40, 60, {9, 25}};
	tell(&sum);
	assert_int_equal(summary.totals.allocs, 6);
	assert_int_equal(summary.totals.frees, 3);
	assert_int_equal(summary.totals.live.device, 140);
	assert_int_equal(device->live.device, 140);
	assert_int_equal(cli_device_held(device).device, 140);
	row = cli_table_find(&summary.views[CLI_BY_CALLER], "a");
	assert_int_equal(row->count, 6);
	assert_int_equal(row->bytes, 170);
	assert_int_equal(row->live, 140);
	assert_int_equal(row->peak, 160);
	assert_int_equal(summary.largest.count, 2);
	assert_int_equal(summary.largest.list[1].bytes, 25);
	assert_true(summary.largest.list[1].summed);
	/* What began before it held 40, at most 60, and now 10. */
	sum.sum = (struct cli_site_sum){0, 0, 1, 30, 10, 40, {0, 0}};
	tell(&sum);
	assert_int_equal(summary.totals.live.device, 110);
	assert_int_equal(row->peak, 160);
	assert_int_equal(row->live, 110);
	assert_int_equal(summary.largest.count, 2);
	/* Nothing counts behind the exit line. */
	summary.exited = true;
	tell(&sum);
	assert_int_equal(summary.after_exit, 1);
	assert_int_equal(summary.totals.frees, 4);
}

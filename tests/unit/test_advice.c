/* What would have kept a run on the device, and what would have been left: where it is just enough and where a byte is missing. */
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report.h"

#define GIB ((uint64_t)1 << 30)

static struct cli_names names;
static struct cli_summary run;
static struct cli_device *device;
static char advice[CLI_ADVICE];

/* A run with one device of 1000 GiB, from which something was placed elsewhere. */
static int setup(void **state)
{
	run = (struct cli_summary){.all_told = true, .totals.spills = 1};
	device = cli_summary_device(&run, 0);
	device->bytes = 1000 * GIB;
	return 0;
}

static int teardown(void **state)
{
	free(run.devices);
	free(run.ooms.list);
	cli_table_free(&run.demoted);
	cli_table_free(&run.views[CLI_BY_REASON]);
	cli_names_free(&names);
	return 0;
}

static struct cli_row *row_of(struct cli_table *table, const char *reason)
{
	unsigned row = cli_table_row(table, cli_names_get(&names, reason));

	return &table->rows[row];
}

static bool says(const char *text)
{
	cli_advice_run(&run, advice);
	return strstr(advice, text);
}

static void refuse(const char *by, uint64_t bytes, uint64_t total, const char *would)
{
	run.ooms.list = realloc(run.ooms.list, 2 * CLI_OOMS_EACH * sizeof(*run.ooms.list));
	run.ooms.list[run.ooms.count++] =
	    (struct spill_record_oom){.refused_by = by, .bytes = bytes, .total = total, .would = would};
}

static const char less[] = " less on device 0 (", others[] = "less memory of other programs on device 0: ",
                  as_much[] = ", or as much less of other programs, contexts and libraries there",
                  limit[] = ", or device.limit = ", would_fit[] = "the peak demand alone would have fitted";

/* wanted, limit and others in bytes; which of the sentences are said. */
static void is_said(uint64_t wanted, uint64_t of_limit, uint64_t of_others, bool of_device, bool to_blame,
                    bool shared, bool larger)
{
	device->fit.wanted = wanted;
	device->limit = of_limit;
	device->shortage.others = of_others;
	assert_int_equal(says(less), of_device);
	assert_int_equal(says(others), to_blame);
	assert_int_equal(says(as_much), shared);
	assert_int_equal(says(limit), larger);
}

TEST(a_device_that_just_fits)
{
	const uint64_t all = 1000 * GIB;

	is_said(all, SPILL_UNLIMITED, 0, false, false, false, false);
	assert_true(says(would_fit));
	is_said(all + 1, SPILL_UNLIMITED, 0, true, false, false, false);
	assert_false(says(would_fit));
	/* A larger limit helps only as far as the device goes. */
	is_said(all, all - 1, 0, true, false, false, true);
	is_said(all + 1, all - 1, 0, true, false, false, false);
	is_said(all + 1, all, 0, true, false, false, false);
	/* Others are to blame where the rest would have fitted. */
	is_said(500 * GIB, SPILL_UNLIMITED, 500 * GIB, false, false, false, false);
	is_said(500 * GIB + 1, SPILL_UNLIMITED, 500 * GIB, true, true, false, false);
	is_said(600 * GIB, 600 * GIB, 500 * GIB, true, true, false, true);
	is_said(600 * GIB + 1, 600 * GIB, 500 * GIB, true, false, false, true);
}

/* What would be left of others may be no more than contexts. */
TEST(contexts_are_no_other_programs)
{
	is_said(1000 * GIB, SPILL_UNLIMITED, 10 * GIB, true, false, true, false);
	is_said(1000 * GIB + 1, SPILL_UNLIMITED, 10 * GIB, true, false, false, false);
	is_said(999 * GIB, SPILL_UNLIMITED, 2 * GIB, true, false, true, false);
	is_said(999 * GIB - 1, SPILL_UNLIMITED, 2 * GIB, true, true, false, false);
}

/* device.reserve is added to what is missing, where memory moved for it. */
TEST(a_reserve)
{
	device->reserve = 64 * GIB;
	run.totals = (struct spill_totals){.demotions = 1};
	is_said(1000 * GIB + 1, SPILL_UNLIMITED, 0, true, false, false, false);
	assert_false(says("device.reserve"));
	row_of(&run.demoted, "reserve")->bytes = 64 * GIB;
	assert_true(says("(1000.00 GiB needed + 64.00 GiB device.reserve - 1000.00 GiB room = 64.00 GiB)"));
	is_said(936 * GIB, SPILL_UNLIMITED, 500 * GIB, true, false, true, false);
	is_said(936 * GIB + 1, SPILL_UNLIMITED, 500 * GIB, true, false, false, false);
	is_said(636 * GIB, 700 * GIB, 500 * GIB, true, true, false, true);
	is_said(636 * GIB + 1, 700 * GIB, 500 * GIB, true, false, false, true);
	/* Nothing else was missing. */
	is_said(500 * GIB, SPILL_UNLIMITED, 0, false, false, false, false);
	assert_true(says("a smaller device.reserve, or "));
	row_of(&run.demoted, "reserve")->bytes++;
	assert_false(says("a smaller device.reserve, or "));
	row_of(&run.demoted, "reserve")->bytes--;
	row_of(&run.demoted, "use");
	assert_false(says("a smaller device.reserve, or "));
}

TEST(requests_that_could_fit_nowhere)
{
	run.totals.spills = 0;
	assert_true(says("") && !*advice);
	refuse("device.limit", 1, 1, NULL);
	device->beyond = 1;
	assert_true(says("nothing: 1 request of more than "));
	refuse("device.limit", 1, 1, NULL);
	assert_true(says("a larger device.limit, which counts") &&
	            strstr(advice, "; 1 request of more than "));
	device->beyond = 2;
	assert_true(says("nothing: 2 requests of more than "));
}

/* A refusal of what could not fit says nothing of the limit. */
TEST(refusals_by_limits_and_rules)
{
	run.totals.spills = 0;
	refuse("device.limit", 101, 100, NULL);
	assert_false(says("a larger device.limit"));
	refuse("device.limit", 100, 100, NULL);
	assert_true(says("a larger device.limit"));
	run.ooms.count = 0;
	refuse("rule.cap", 100, 100, NULL);
	assert_true(says("a larger cap in the rules") && !strstr(advice, "another setting"));
	run.ooms.count = 0;
	refuse("rule.over", 100, 100, NULL);
	assert_true(says("another setting in the rule that refused"));
}

/* Only a cap can be the reason where the device has no limit below its size. */
TEST(a_cap_or_a_limit)
{
	static const char cap[] = "a larger cap in the rules that have one",
	                  wider[] = "a larger device.limit, which";

	row_of(&run.views[CLI_BY_REASON], "limit")->spilled = 1;
	assert_true(says(wider) && !strstr(advice, cap));
	run.capped = true;
	assert_true(says(cap) && !strstr(advice, wider));
	/* More was wanted than is there. */
	device->fit.wanted = 1001 * GIB;
	device->limit = 1000 * GIB;
	assert_true(says(cap));
	device->limit--;
	assert_false(says(cap));
	row_of(&run.views[CLI_BY_REASON], "limit")->spilled = 0;
	device->limit++;
	assert_false(says(cap));
	row_of(&run.views[CLI_BY_REASON], "rule")->spilled = 1;
	assert_true(says("another place in the rules that set one"));
}

/* Of memory that lacked although all would have fitted, and of a log that does not tell enough. */
TEST(what_is_not_known)
{
	device->shortage.count = 1;
	assert_true(says(would_fit));
	device->shortage.bytes = 1000 * GIB;
	assert_true(says("a little less on the device: it was full up to device.reserve"));
	device->fit.wanted = 1001 * GIB;
	assert_true(says(": 1.00 GiB less"));
	run.lost = 1;
	assert_true(says("at least 1.00 GiB less"));
	device->fit.wanted = 0;
	assert_true(says("this log does not show how much"));
	device->bytes = 0;
	assert_true(says("") && !*advice);
	device->device = -1; /* memory of no device */
	assert_true(says("this log does not show how much"));
	run.lost = 0;
	for (unsigned lacks = 0; lacks < 5; lacks++) {
		run.all_told = lacks != 0;
		run.end.missing = lacks == 1;
		run.left_out[SPILL_DROP_ALLOC].count = lacks == 2;
		run.left_out[SPILL_DROP_SPILL].count = lacks == 3;
		assert_int_equal(says("this log does not show how much"), lacks < 4);
	}
}

TEST(a_run_that_only_observed)
{
	run.totals.spills = 0;
	refuse("driver", 100, 100, NULL);
	refuse("driver", 100, 100, "refuse");
	assert_false(says("spill.mode = spill"));
	refuse("driver", 100, 100, "host");
	assert_true(says("; or spill.mode = spill"));
	run.problem = (char[]){"a line is wrong"};
	assert_true(says("; or a policy without this error: a line is wrong"));
	device->beyond = 3;
	assert_true(says("a policy without this error: a line is wrong") && strncmp(advice, "; or", 4) != 0);
}

/* The margin, or what others held if that is more, is kept free; within the limit. */
TEST(what_would_have_been_left)
{
	struct cli_fit_row row;

	device->fit = (struct cli_fit){.wanted = 700 * GIB, .device = 600 * GIB};
	row = cli_fit_row(device, 100 * GIB);
	assert_int_equal(row.usable, 900 * GIB);
	assert_int_equal(row.surplus, 200 * GIB);
	assert_int_equal(row.free, 400 * GIB);
	device->shortage.others = 300 * GIB;
	row = cli_fit_row(device, 100 * GIB);
	assert_int_equal(row.usable, 700 * GIB);
	assert_int_equal(row.others, 300 * GIB);
	assert_int_equal(row.free, 100 * GIB);
	assert_int_equal(row.surplus, 0);
	assert_false(row.unknown || row.reserved);
	/* Memory lacked although nothing is missing. */
	device->shortage.count = 1;
	assert_true(cli_fit_row(device, 0).unknown);
	assert_false(cli_fit_row(device, 0).reserved);
	device->shortage.bytes = 1000 * GIB;
	assert_true(cli_fit_row(device, 0).reserved);
	assert_false(cli_fit_row(device, 0).unknown);
	device->fit.wanted++;
	row = cli_fit_row(device, 0);
	assert_int_equal(row.surplus, -1);
	assert_false(row.unknown || row.reserved);
	device->limit = 650 * GIB;
	assert_int_equal(cli_fit_row(device, 0).usable, 650 * GIB);
	assert_int_equal(cli_fit_row(device, 2000 * GIB).usable, 0);
}

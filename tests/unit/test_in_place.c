/*
 * Whom the sums of memory that is used in place are told, and when the log gets a line of them. The sums,
 * the time, the ledger and the log are the test's.
 */
#define SETUP setup
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "access_model.h"
#include "in_place.h"
#include "ledger.h"
#include "log.h"
#include "metrics.h"
#include "registry.h"
#include "scratch.h"

#define S 1000000ull

static struct {
	struct spill_in_place_sums sums;
	bool unknown, silent; /* no launch was seen; there is no log */
	int device;           /* the current one; -1: none */
	uint64_t now_us;
	bool no_scratch;
} world;

static struct {
	unsigned ledger, lines, asked_last, scratch, metrics;
	int device;
	struct spill_in_place told;
	char line[SPILL_LOG_LINE];
} seen;

bool spill_access_model_in_place(struct spill_in_place_sums *sums, bool all)
{
	*sums = world.sums;
	seen.asked_last += all;
	return !world.unknown;
}

void spill_ledger_in_place(int device, const struct spill_in_place *now)
{
	seen.ledger++;
	seen.device = device;
	seen.told = *now;
}

void spill_ledger_totals(struct spill_totals *totals)
{
	memset(totals, 0, sizeof(*totals));
	totals->away.peak = 77;
	totals->away.in_place = seen.told;
}

uint64_t spill_log_now_us(void)
{
	return world.now_us;
}

bool spill_log_active(void)
{
	return !world.silent;
}

void spill_log_write(const char *line, size_t length, enum spill_log_when when)
{
	assert_int_equal(when, SPILL_LOG_NOW);
	assert_true(length && length < sizeof(seen.line));
	assert_int_equal(seen.scratch, 1);
	seen.lines++;
	snprintf(seen.line, sizeof(seen.line), "%.*s", (int)length, line);
}

/* In place of metrics.c. */
_Atomic int spill_metrics_state;

void spill_metrics_start(void)
{
	seen.metrics++;
}

void *spill_scratch_take(void)
{
	static char room[SPILL_SCRATCH];

	if (world.no_scratch)
		return NULL;
	seen.scratch++;
	return room;
}

void spill_scratch_give_back(void *room)
{
	seen.scratch -= room != NULL;
}

static bool current(int *device, void **context)
{
	if (world.device < 0)
		return false;
	*device = world.device;
	return true;
}

static const struct spill_vendor_devices devices = {.current = current};
static const struct spill_backend backend = {.devices = &devices};

const struct spill_backend *spill_backend_for(enum spill_domain domain)
{
	return &backend;
}

static int setup(void **state)
{
	memset(&world, 0, sizeof(world));
	memset(&seen, 0, sizeof(seen));
	world.sums.bytes = 1000;
	world.now_us = 5 * S;
	spill_in_place_reset();
	return 0;
}

/* Lines that the log gets of sums that have grown, at that time. */
static unsigned lines_at(uint64_t now_us)
{
	unsigned before = seen.lines;

	world.now_us = now_us;
	world.sums.bytes++;
	spill_in_place_tell(false);
	assert_int_equal(seen.scratch, 0);
	return seen.lines - before;
}

TEST(nothing_is_told_without_a_launch)
{
	world.unknown = true;
	spill_in_place_tell(false);
	spill_in_place_tell(true);
	assert_int_equal(seen.ledger + seen.lines, 0);
	assert_int_equal(seen.asked_last, 1);
}

/* Times in us: the least is cut, and the most rounded up. */
TEST(the_ledger_gets_the_sums)
{
	world.sums = (struct spill_in_place_sums){1234, 5999, 7001};
	spill_in_place_tell(false);
	assert_int_equal(seen.told.bytes, 1234);
	assert_int_equal(seen.told.us, 5);
	assert_int_equal(seen.told.most_us, 8);
	world.sums.most_ns = 8000;
	spill_in_place_tell(false);
	assert_int_equal(seen.told.most_us, 8);
	assert_int_equal(seen.ledger, 2);
}

TEST(they_count_for_the_device_of_the_launch)
{
	world.device = 3;
	spill_in_place_tell(false);
	assert_int_equal(seen.device, 3);
	/* At the end no vendor is asked: it is the device of the last launch. */
	world.device = 5;
	spill_in_place_tell(true);
	assert_int_equal(seen.device, 3);
	world.device = -1;
	spill_in_place_tell(false);
	assert_int_equal(seen.device, 3);
	spill_in_place_reset();
	spill_in_place_tell(false);
	assert_int_equal(seen.device, 0);
}

TEST(the_log_gets_a_line_with_the_totals)
{
	world.sums = (struct spill_in_place_sums){1234, 5000, 8000};
	spill_in_place_tell(false);
	assert_int_equal(seen.lines, 1);
	struct spill_record_use expected = {
	    .time_us = 5 * S, .away = {.peak = 77, .in_place = {.bytes = 1234, .us = 5, .most_us = 8}}};
	char line[SPILL_LOG_LINE];
	line[spill_record_use(&expected, line, sizeof(line))] = 0;
	assert_string_equal(seen.line, line);
}

/* A run that waits in one call for long has figures to write. */
TEST(with_the_line_the_metrics_are_looked_at)
{
	spill_metrics_state = SPILL_METRICS_CHANGED;
	assert_int_equal(lines_at(5 * S), 1);
	assert_int_equal(lines_at(5 * S), 0);
	spill_metrics_state = 0;
	assert_int_equal(seen.metrics, 1);
}

TEST(the_end_and_a_run_without_a_log_write_no_line)
{
	spill_in_place_tell(true);
	assert_int_equal(seen.lines, 0);
	world.silent = true;
	assert_int_equal(lines_at(5 * S), 0);
	assert_int_equal(seen.ledger, 2);
	world.silent = false;
	assert_int_equal(lines_at(5 * S), 1);
}

TEST(the_first_line_comes_after_a_second)
{
	assert_int_equal(lines_at(S - 1), 0);
	assert_int_equal(lines_at(S), 1);
	assert_int_equal(lines_at(2 * S - 1), 0);
	assert_int_equal(lines_at(2 * S), 1);
}

/* Then each time that an eighth of the run has passed. */
TEST(a_long_run_has_few_lines)
{
	assert_int_equal(lines_at(80 * S), 1);
	assert_int_equal(lines_at(90 * S - 1), 0);
	assert_int_equal(lines_at(90 * S), 1);
}

TEST(sums_that_have_not_grown_write_no_line)
{
	assert_int_equal(lines_at(5 * S), 1);
	world.sums.bytes--;
	assert_int_equal(lines_at(50 * S), 0);
	assert_int_equal(lines_at(50 * S), 1);
}

TEST(a_forked_child_begins_anew)
{
	assert_int_equal(lines_at(80 * S), 1);
	spill_in_place_reset();
	world.sums.bytes = 0; /* fewer than its parent's */
	assert_int_equal(lines_at(2 * S), 1);
}

TEST(without_memory_there_is_no_line)
{
	world.no_scratch = true;
	assert_int_equal(lines_at(5 * S), 0);
	assert_int_equal(seen.ledger, 1);
}

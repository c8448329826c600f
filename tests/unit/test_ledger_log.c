/*
 * What the ledger tells the log: sums of call sites, and lines that the log had no room for. And how it goes on when another
 * thread keeps its lock, or there is no memory. The log is replaced.
 */
#define SETUP setup
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "account.h"
#include "fake_libc.h"
#include "ledger.h"
#include "ledger_totals.h"
#include "log.h"
#include "metrics.h"
#include "said.h"
#include "site_sums.h"

static const struct spill_backend *const backend = (const void *)&backend;
static struct spill_placement placement;
static const char rule[] = "default";

static struct {
	bool full; /* the log takes no line */
	unsigned lines;
	char line[1000];
	struct spill_totals totals; /* of the last drop */
} world;

/* -- in place of the log ----------------------------------------------------------------------- */

bool spill_log_offer(const char *line, size_t length, enum spill_log_when when)
{
	say("offer", when);
	world.lines++;
	snprintf(world.line, sizeof(world.line), "%.*s", (int)length, line);
	return !world.full;
}

void spill_log_drop(enum spill_drop kind, const struct spill_sum *sum, const struct spill_totals *totals)
{
	say(kind == SPILL_DROP_ALLOC ? "allocs" : kind == SPILL_DROP_FREE ? "frees" : "others", sum->count);
	say("bytes", sum->bytes.device + 2 * sum->bytes.host);
	world.totals = *totals;
}

uint64_t spill_log_now_us(void)
{
	return 1234567;
}

const char *spill_log_path(void)
{
	return "";
}

/* There is no log.metrics, which would need the rest of the log. */
_Atomic int spill_metrics_state = SPILL_METRICS_OFF;

void spill_metrics_start(void)
{
}

/* ---------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	spill_ledger_fork_lock.forget_parent();
	spill_account_reset();
	memset(&world, 0, sizeof(world));
	what_was_said();
	return 0;
}

static bool add(uint64_t ptr, uint64_t bytes)
{
	struct spill_allocation summed = {.backend = backend,
	                                  .ptr = ptr,
	                                  .bytes = bytes,
	                                  .held = {.device = bytes},
	                                  .api = "cuMemAlloc",
	                                  .caller = rule,
	                                  .sum_rule = rule};
	return spill_ledger_add(&summed);
}

static void end(uint64_t ptr)
{
	spill_ledger_end(spill_ledger_take(ptr));
}

/* -- sums -------------------------------------------------------------------------------------- */

TEST(a_sum_is_a_line)
{
	assert_true(add(0x1000, 100) && add(0x2000, 30));
	end(0x2000);
	spill_ledger_write_sums();
	char expected[20];
	snprintf(expected, sizeof(expected), "offer:%d", SPILL_LOG_SOON);
	assert_string_equal(what_was_said(), expected);
	assert_non_null(strstr(world.line, "\"kind\":\"sum\""));
	assert_non_null(strstr(world.line, "\"t\":1.234567"));
	assert_non_null(strstr(world.line, "\"order\":1,\"held\":{\"device_bytes\":100,"));
	spill_ledger_write_sums(); /* nothing is new */
	assert_string_equal(what_was_said(), "");
	end(0x1000);
}

/* What the log has no room for counts as dropped, of allocations and of frees, each if there are any. */
TEST(a_sum_that_is_dropped)
{
	world.full = true;
	assert_true(add(0x1000, 100) && add(0x2000, 30));
	spill_ledger_write_sums();
	assert_non_null(strstr(what_was_said(), " allocs:2 bytes:130"));
	end(0x2000);
	spill_ledger_write_sums();
	const char *all = what_was_said();
	assert_non_null(strstr(all, " frees:1 bytes:30"));
	assert_null(strstr(all, "allocs"));
	assert_int_equal(world.totals.allocs, 2);
	assert_int_equal(world.totals.frees, 1);
	end(0x1000);
}

TEST(a_line_that_is_dropped)
{
	const struct spill_bytes bytes = {.device = 5, .host = 10};
	spill_ledger_offer("{}", 2, SPILL_LOG_NOW, SPILL_DROP_FREE, &bytes);
	char expected[100];
	snprintf(expected, sizeof(expected), "offer:%d", SPILL_LOG_NOW);
	assert_string_equal(what_was_said(), expected);
	assert_string_equal(world.line, "{}");
	world.full = true;
	spill_ledger_offer("{}", 2, SPILL_LOG_NOW, SPILL_DROP_FREE, &bytes);
	snprintf(expected, sizeof(expected), "offer:%d frees:1 bytes:25", SPILL_LOG_NOW);
	assert_string_equal(what_was_said(), expected);
}

/* The first event of all is due a second later. */
TEST(sums_are_due_once_a_second)
{
	assert_true(add(0x1000, 100));
	spill_ledger_write_due_sums(5000000);
	spill_ledger_write_due_sums(5999999);
	assert_string_equal(what_was_said(), "");
	spill_ledger_write_due_sums(6000000);
	assert_non_null(strstr(what_was_said(), "offer"));
	end(0x1000);
	spill_ledger_write_due_sums(6999999);
	assert_string_equal(what_was_said(), "");
	spill_ledger_write_due_sums(7000000);
	assert_non_null(strstr(what_was_said(), "offer"));
}

static uint64_t last_added;

static void add_another(void)
{
	assert_true(add(last_added += 0x1000, 1));
	before_next_lock(add_another);
}

/* Other threads may go on: it ends all the same, after as many lines as there are call sites. */
TEST(sums_end)
{
	last_added = 0;
	world.lines = 0;
	before_next_lock(add_another);
	spill_ledger_write_sums();
	before_next_lock(NULL);
	assert_int_equal(world.lines, SPILL_SITE_SUMS);
	for (uint64_t ptr = 0x1000; ptr <= last_added; ptr += 0x1000)
		end(ptr);
}

/* -- the lock ---------------------------------------------------------------------------------- */

static sem_t held, wanted;

static void *hold(void *unused)
{
	spill_fork_lock_take(&spill_ledger_fork_lock);
	sem_post(&held);
	sem_wait(&wanted);
	spill_fork_lock_release(&spill_ledger_fork_lock, false);
	return NULL;
}

static pthread_t start_holder(void)
{
	pthread_t thread;
	assert_int_equal(sem_init(&held, 0, 0) + sem_init(&wanted, 0, 0), 0);
	assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
	sem_wait(&held);
	return thread;
}

/* A report of an end must not wait for ever for a thread that never runs again. */
TEST(another_thread_keeps_the_lock)
{
	struct spill_totals totals = {.allocs = 7};
	struct spill_device_totals devices[1] = {{.away = 7}};
	assert_true(add(0x1000, 100));
	pthread_t thread = start_holder();
	assert_false(spill_ledger_totals_now(&totals));
	assert_false(spill_ledger_device_totals_now(devices, 1));
	spill_ledger_in_place(0, &(struct spill_in_place){.bytes = 30});
	spill_ledger_write_sums();
	sem_post(&wanted);
	pthread_join(thread, NULL);
	assert_int_equal(totals.allocs, 7);
	assert_int_equal(devices[0].away, 7);
	assert_string_equal(what_was_said(), "");
	assert_true(spill_ledger_totals_now(&totals));
	assert_int_equal(totals.allocs, 1);
	assert_int_equal(totals.away.in_place.bytes, 0);
	spill_ledger_write_sums(); /* they are still there */
	assert_non_null(strstr(what_was_said(), "offer"));
	end(0x1000);
}

static void let_go(void)
{
	sem_post(&wanted);
}

static bool totals_are_told(void)
{
	struct spill_totals totals;
	pthread_t thread = start_holder();
	before_next_lock(let_go); /* the first try may still fail */
	bool told = spill_ledger_totals_now(&totals);
	pthread_join(thread, NULL);
	return told;
}

/* One that goes on gives it back soon. */
TEST(another_thread_gives_the_lock_back)
{
	for (unsigned i = 0; i < 50; i++)
		assert_true(totals_are_told());
}

/* -- memory ------------------------------------------------------------------------------------ */

/* Then nothing is counted. The placement stays the caller's. */
static void refuse(enum fake_libc_call call)
{
	struct spill_totals totals;
	struct spill_allocation allocation = {
	    .backend = backend, .ptr = 0x1000, .bytes = 100, .placement = &placement};
	fake_libc_fail(call, 1, 1, ENOMEM);
	bool added = spill_ledger_add(&allocation);
	fake_libc_reset();
	assert_false(added);
	assert_null(spill_ledger_take(0x1000));
	assert_false(spill_ledger_placed(0x1000, &allocation));
	spill_ledger_totals(&totals);
	assert_int_equal(totals.allocs, 0);
}

TEST(without_memory)
{
	refuse(FAKE_malloc);
	refuse(FAKE_tsearch);
}

/* What an entry holds under the cap of a rule comes back with its end. */
TEST(a_rule_gets_its_bytes_back)
{
	struct spill_allocation allocation = {
	    .backend = backend, .ptr = 0x1000, .bytes = 100, .charged_rule = 60, .rule = 2};
	uint64_t now = 0;
	assert_true(spill_account_rule_charge(2, &now, 60));
	assert_true(spill_ledger_add(&allocation));
	assert_int_equal(spill_account_rule_held(2), 60);
	end(0x1000);
	assert_int_equal(spill_account_rule_held(2), 0);
}

/* The child of a fork has none of its parent's memory, and writes none of its sums. */
TEST(a_forked_child_tells_nothing)
{
	struct spill_totals totals;
	assert_true(add(0x1000, 100));
	end(0x1000);
	spill_ledger_write_due_sums(9000000);
	spill_fork_lock_take(&spill_ledger_fork_lock);
	spill_fork_lock_release(&spill_ledger_fork_lock, true);
	spill_ledger_write_sums();
	assert_string_equal(what_was_said(), "");
	spill_ledger_totals(&totals);
	assert_int_equal(totals.allocs, 0);
	/* Its log's time begins anew. */
	assert_true(add(0x1000, 100));
	spill_ledger_write_due_sums(5);
	spill_ledger_write_due_sums(1000005);
	assert_non_null(strstr(what_was_said(), "offer"));
	end(0x1000);
}

/*
 * Stopwatches against a vendor whose streams are numbers. A stopwatch measures the work without its
 * waits. It measures nothing while a stream captures, nothing of a context that has ended, and
 * nothing that may be wrong. The clock is the test's.
 */
#include <pthread.h>
#define SETUP setup
#include "unit.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "captures.h"
#include "clock.h"
#include "ended.h"
#include "contexts.h"
#include "stopwatch.h"

#define US 1000ull
#define MS (1000 * US)
#define SECOND (1000 * MS)
#define TIMERS (8 * SPILL_STOPWATCHES)
#define THREADS 4

/* A context with one stream: when it is through with what it was given. */
struct context {
	_Atomic uint64_t ready_ns;
	bool gone;    /* the vendor has destroyed it, and all that was in it */
	bool refuses; /* its stream */
};

struct timer {
	struct context *of; /* NULL: not made, or destroyed */
	_Atomic uint64_t at_ns;
};

static struct context contexts[3];
static struct timer timers[TIMERS];
static _Atomic unsigned made, destroyed, records, queries;
static _Atomic uint64_t clock_ns;
static _Atomic int left; /* timers that can be made; negative: any number */
static bool wrong;
static bool expect_per_thread;

static uint64_t now(void)
{
	return clock_ns;
}

static struct timer *judged(void *context, void *timer)
{
	struct timer *one = timer;
	assert_false(spill_capture_any());
	assert_ptr_equal(one->of, context);
	return one;
}

/* The calling thread's: that of which a timer was made or recorded last. */
static __thread void *current_context;

static bool current(int *device, void **context)
{
	*device = 0;
	*context = current_context;
	return true;
}

static int the_timer_create(int device, void *context, void **timer)
{
	unsigned index = atomic_fetch_add(&made, 1);
	current_context = context;
	assert_int_equal(device, (struct context *)context - contexts);
	assert_true(index < TIMERS);
	if (!left) {
		atomic_fetch_sub(&made, 1);
		return 2;
	}
	left -= left > 0;
	timers[index].of = context;
	*timer = &timers[index];
	return 0;
}

static int the_timer_record(int device, void *context, void *stream, bool per_thread, void *timer)
{
	struct timer *one = judged(context, timer);
	current_context = context;
	assert_ptr_equal(stream, context);
	assert_int_equal(per_thread, expect_per_thread);
	if (one->of->gone || one->of->refuses)
		return 1;
	records++;
	one->at_ns = one->of->ready_ns > clock_ns ? one->of->ready_ns : clock_ns;
	return 0;
}

static int the_timer_passed(int device, void *context, void *timer, bool *passed)
{
	struct timer *one = judged(context, timer);
	queries++;
	if (one->of->gone)
		return 709;
	*passed = clock_ns >= one->at_ns;
	return 0;
}

static int the_timer_between(int device, void *context, void *begin, void *end, uint64_t *ns)
{
	struct timer *one = judged(context, begin), *other = judged(context, end);
	assert_true(clock_ns >= one->at_ns && clock_ns >= other->at_ns);
	if (wrong)
		return 1;
	*ns = other->at_ns - one->at_ns;
	return 0;
}

static void the_timer_destroy(int device, void *context, void *timer)
{
	struct timer *one = judged(context, timer);
	assert_false(one->of->gone);
	one->of = NULL;
	destroyed++;
}

static const struct spill_backend vendor = {
    .devices = &(const struct spill_vendor_devices){.current = current},
    .timers =
        &(const struct spill_vendor_timers){
            .create = the_timer_create,
            .record = the_timer_record,
            .passed = the_timer_passed,
            .between = the_timer_between,
            .destroy = the_timer_destroy,
        },
};
static const struct spill_backend without;

static unsigned told;
static uint16_t told_site;
static uint32_t told_key;
static uint64_t told_on_host, told_ns, told_behind_ns;

static bool told_at_most;

static void tell(const struct spill_stopwatch_access *use, const struct spill_stopwatch_time *time)
{
	told++;
	told_site = use->site;
	told_on_host = use->on_host;
	told_key = use->count ? use->keys[use->count - 1] : 0;
	told_ns = time->ns;
	told_behind_ns = time->behind_ns;
	told_at_most = time->at_most;
}

static int setup(void **state)
{
	spill_stopwatch_reset();
	for (int i = 0; i < 3; i++)
		spill_contexts_ended(ENDED(&vendor, i, NULL));
	memset(contexts, 0, sizeof(contexts));
	memset(timers, 0, sizeof(timers));
	made = destroyed = records = queries = told = 0;
	clock_ns += 100 * SECOND;
	static const struct spill_clock test_clock = {.now = now};
	spill_clock_use(&test_clock);
	set_capturing(false);
	wrong = expect_per_thread = false;
	left = -1;
	return 0;
}

static void *start(int context, uint16_t site, uint64_t on_host)
{
	return spill_stopwatch_start(&vendor, context, &contexts[context], &contexts[context],
	                             expect_per_thread,
	                             &(struct spill_stopwatch_access){site, 1, on_host, {site + 1000}});
}

static void submit(int context, uint64_t ns)
{
	uint64_t ready = contexts[context].ready_ns;
	contexts[context].ready_ns = (ready > clock_ns ? ready : clock_ns) + ns;
}

/* One whole measurement of work that is done at once on a stream that idles. */
static unsigned measure(int context)
{
	unsigned before = told;
	void *watch = start(context, 1, 2);
	submit(context, MS);
	spill_stopwatch_stop(watch);
	clock_ns += MS;
	spill_stopwatch_collect(tell);
	spill_stopwatch_collect(tell); /* the first may have met one that runs */
	return told - before;
}

TEST(the_work_is_measured)
{
	void *watch = start(0, 7, 123456789012);
	assert_non_null(watch);
	submit(0, 3 * MS);
	spill_stopwatch_stop(watch);
	clock_ns += 3 * MS - 1;
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 0);
	assert_true(spill_stopwatch_pending());
	clock_ns += MS;
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	assert_false(spill_stopwatch_pending());
	assert_int_equal(told_site, 7);
	assert_true(told_on_host == 123456789012);
	assert_int_equal(told_key, 1007);
	assert_true(told_ns == 3 * MS);
	assert_true(told_behind_ns == 3 * MS - 1); /* when it was looked for in vain */
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	/* One that is told is free, and its timers are used again. */
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(measure(0), 1);
	assert_int_equal(made, 2);
	expect_per_thread = true;
	assert_int_equal(measure(0), 1);
}

/* What was submitted before is waited for and not measured, however long submitting took. */
TEST(what_came_before_does_not_count)
{
	submit(0, SECOND);
	void *watch = start(0, 1, 0);
	clock_ns += 100 * MS; /* a queue that is full */
	submit(0, 2 * MS);
	spill_stopwatch_stop(watch);
	clock_ns += 2 * SECOND;
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	assert_true(told_ns == 2 * MS);
}

/* An idle stream begins at once, and then waits for the call: more than a quarter of the whole, and it is only a bound. */
TEST(with_time_on_the_host_it_is_the_most)
{
	static const struct {
		uint64_t host, work;
		bool at_most;
	} cases[] = {{US, 3 * US, false}, {US, 2 * US, true}, {100 * MS, 10 * US, true}, {0, 10 * US, false}};
	for (unsigned i = 0; i < 4; i++) {
		told = 0;
		void *watch = start(0, 1, 0);
		clock_ns += cases[i].host;
		submit(0, cases[i].work);
		spill_stopwatch_stop(watch);
		clock_ns += SECOND;
		spill_stopwatch_collect(tell);
		assert_int_equal(told, 1);
		assert_int_equal(told_at_most, cases[i].at_most);
		assert_int_equal(told_ns, cases[i].host + cases[i].work);
	}
	assert_int_equal(made, 2);
}

/* Moves between the launches of a graph's nodes are part of what it takes. */
TEST(time_on_the_host_counts_for_the_nodes_of_a_graph)
{
	told = 0;
	void *watch = spill_stopwatch_start(&vendor, 0, &contexts[0], &contexts[0], expect_per_thread,
	                                    &(const struct spill_stopwatch_access){.by_nodes = true});
	clock_ns += 100 * MS;
	submit(0, 10 * US);
	spill_stopwatch_stop(watch);
	clock_ns += SECOND;
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	assert_false(told_at_most);
}

TEST(there_are_so_many)
{
	void *watches[SPILL_STOPWATCHES];
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
		watches[i] = start(0, (uint16_t)i, 0);
		assert_non_null(watches[i]);
		for (unsigned j = 0; j < i; j++)
			assert_ptr_not_equal(watches[i], watches[j]);
	}
	assert_null(start(0, 99, 0));
	spill_stopwatch_stop(NULL);
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
		submit(0, MS);
		spill_stopwatch_stop(watches[i]);
	}
	assert_null(start(0, 99, 0));
	clock_ns += SECOND;
	spill_stopwatch_collect(tell);
	assert_int_equal(told, SPILL_STOPWATCHES);
	assert_int_equal(measure(0), 1);
	assert_int_equal(made, 2 * SPILL_STOPWATCHES);
}

/* Asking costs: one that is not done is enough, and work that never ends hides no other. */
TEST(asking_is_bounded)
{
	void *endless = start(0, 1, 0), *other[3];
	submit(0, MS);
	spill_stopwatch_stop(endless);
	timers[1].at_ns += 1000 * SECOND; /* its end */
	for (unsigned i = 0; i < 3; i++) {
		other[i] = start(0, 2, 0);
		submit(0, MS);
		spill_stopwatch_stop(other[i]);
	}
	queries = 0;
	spill_stopwatch_collect(tell);
	assert_int_equal(queries, 1);
	clock_ns += SECOND;
	for (unsigned i = 0; i < 4; i++)
		spill_stopwatch_collect(tell);
	assert_int_equal(told, 3);
	assert_int_equal(told_site, 2);
	assert_int_equal(spill_stopwatch_pending(), 1);
}

TEST(nothing_is_touched_in_a_capture)
{
	void *watch = start(0, 1, 0), *stopped = start(0, 2, 0);
	submit(0, MS);
	spill_stopwatch_stop(stopped);
	clock_ns += SECOND;
	unsigned before = records, asked = queries;
	set_capturing(true);
	assert_null(start(0, 3, 0));
	spill_stopwatch_stop(watch); /* forgotten: its end is not on the stream */
	spill_stopwatch_collect(tell);
	assert_int_equal(records, before);
	assert_int_equal(queries, asked);
	assert_int_equal(told, 0);
	set_capturing(false);
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	assert_int_equal(told_site, 2);
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++)
		assert_non_null(start(0, 4, 0));
}

/*
 * Those that were never stopped are given to others after 10 s, and stopping them then does nothing to
 * those.
 */
TEST(what_is_never_stopped_is_not_believed)
{
	void *lost[SPILL_STOPWATCHES];
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++)
		lost[i] = start(0, 1, 0);
	clock_ns += 9 * SECOND;
	assert_null(start(0, 2, 0));
	clock_ns += 2 * SECOND;
	void *watch = start(0, 2, 0);
	assert_non_null(watch);
	submit(0, MS);
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++)
		assert_ptr_not_equal(watch, lost[i]);
	unsigned before = records;
	spill_stopwatch_stop(lost[0]);
	assert_int_equal(records, before);
	spill_stopwatch_stop(watch);
	spill_stopwatch_stop(watch); /* twice is once */
	assert_int_equal(records, before + 1);
	clock_ns += SECOND;
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	assert_int_equal(told_site, 2);
}

/* The same handle may be another context's by then. */
TEST(a_context_may_end_at_any_moment)
{
	void *running = start(0, 1, 0);
	assert_int_equal(measure(0), 1);
	void *stopped = start(0, 2, 0);
	told = 0;
	submit(0, MS);
	spill_stopwatch_stop(stopped);
	clock_ns += MS;
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[0]));
	for (unsigned i = 0; i < TIMERS; i++)
		timers[i].of = NULL;
	queries = 0;
	spill_stopwatch_stop(running);
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 0);
	assert_int_equal(queries, 0);
	assert_int_equal(measure(0), 1);
	assert_int_equal(destroyed, 0);
	for (unsigned i = 1; i < SPILL_STOPWATCHES; i++)
		assert_non_null(start(0, 3, 0));
}

/* Another context may be ending at this moment: its are left for a thread of its own. */
TEST(a_thread_asks_of_its_own_context)
{
	void *watch = start(1, 1, 0);
	submit(1, MS);
	spill_stopwatch_stop(watch);
	clock_ns += SECOND;
	current_context = &contexts[0];
	queries = 0;
	spill_stopwatch_collect(tell);
	assert_int_equal(queries + told, 0);
	assert_true(spill_stopwatch_pending());
	current_context = &contexts[1];
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	assert_false(spill_stopwatch_pending());
}

/* The same look goes on behind it: a program that ends its contexts would be measured late otherwise. */
TEST(lost_work_holds_up_no_other)
{
	void *lost = start(0, 1, 0), *other = start(1, 2, 0);
	submit(0, MS);
	submit(1, MS);
	spill_stopwatch_stop(lost);
	spill_stopwatch_stop(other);
	clock_ns += SECOND;
	spill_contexts_ended(ENDED(&vendor, 0, &contexts[0]));
	current_context = &contexts[1];
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 1);
	assert_int_equal(told_site, 2);
	assert_false(spill_stopwatch_pending());
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) /* both are free again */
		assert_non_null(start(1, 3, 0));
}

/* We were not told, but the vendor refuses what was in it. */
TEST(timers_that_the_vendor_does_not_know_are_dropped)
{
	void *running = start(0, 1, 0), *stopped = start(0, 2, 0);
	submit(0, SECOND);
	spill_stopwatch_stop(stopped);
	assert_int_equal(measure(1), 1);
	contexts[0].gone = contexts[1].gone = true;
	current_context = &contexts[0];
	spill_stopwatch_stop(running);
	spill_stopwatch_collect(tell);
	assert_null(start(1, 1, 0));
	contexts[0].gone = contexts[1].gone = false;
	contexts[0].ready_ns = 0;
	memset(timers, 0, sizeof(timers));
	told = 0;
	assert_int_equal(measure(0), 1);
	assert_int_equal(measure(1), 1);
	assert_int_equal(destroyed, 0);
}

TEST(a_stream_that_refuses_costs_nothing)
{
	assert_int_equal(measure(0), 1);
	contexts[0].refuses = true;
	for (unsigned i = 0; i < 100; i++)
		assert_null(start(0, 1, 0));
	contexts[0].refuses = false;
	for (unsigned i = 0; i < 2 * SPILL_STOPWATCHES; i++) {
		void *watch = start(0, 1, 0);
		assert_non_null(watch);
		contexts[0].refuses = true;
		spill_stopwatch_stop(watch);
		contexts[0].refuses = false;
	}
	assert_int_equal(measure(0), 1);
	wrong = true;
	assert_int_equal(measure(0), 0);
	wrong = false;
	assert_int_equal(measure(0), 1);
	assert_int_equal(made, 2);
}

/* Timers of a context that is not used any more make way, and none is left behind. */
TEST(timers_move_to_another_context)
{
	void *watches[SPILL_STOPWATCHES];
	for (int context = 0; context < 3; context++) {
		for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
			watches[i] = start(context, 1, 0);
			submit(context, MS);
			assert_non_null(watches[i]);
		}
		for (unsigned i = 0; i < SPILL_STOPWATCHES; i++)
			spill_stopwatch_stop(watches[i]);
		clock_ns += SECOND;
		for (unsigned i = 0; i < 2; i++)
			spill_stopwatch_collect(tell);
	}
	/* Those of a context that is not the thread's own stay behind: it may be ending at this moment. */
	assert_in_range(made - destroyed, 2 * SPILL_STOPWATCHES, 3 * 2 * SPILL_STOPWATCHES);
	assert_true(destroyed);
	for (unsigned i = 0; i < TIMERS; i += 2) /* both of a stopwatch, or none */
		assert_int_equal(timers[i].of == NULL, timers[i + 1].of == NULL);
	/* One that has ended has taken them along. */
	unsigned before = destroyed;
	spill_contexts_ended(ENDED(&vendor, 2, &contexts[2]));
	for (unsigned i = 0; i < TIMERS; i++)
		timers[i].of = NULL;
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++)
		assert_non_null(start(0, 1, 0));
	assert_int_equal(destroyed, before);
}

TEST(no_timer_no_time)
{
	for (unsigned i = 0; i < 2 * SPILL_STOPWATCHES; i++) {
		left = (int)i % 2; /* not even the first, or the second */
		assert_null(start(0, 1, 0));
	}
	assert_int_equal(made, SPILL_STOPWATCHES);
	assert_int_equal(destroyed, made);
	left = -1;
	assert_int_equal(measure(0), 1);
	/* A stopwatch that could not go to another context has nothing of the first any more. */
	void *watch = NULL;
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) {
		watch = start(0, 1, 0);
		assert_non_null(watch);
	}
	spill_stopwatch_stop(watch);
	spill_stopwatch_collect(tell);
	left = 0;
	assert_null(start(1, 1, 0));
	left = -1;
	assert_int_equal(measure(0), 1);
	const struct spill_stopwatch_access use = {.site = 1, .on_host = 2};
	assert_null(spill_stopwatch_start(&without, 0, &contexts[0], NULL, false, &use));
	assert_null(spill_stopwatch_start(&vendor, 0, NULL, NULL, false, &use));
}

TEST(a_child_measures_nothing)
{
	void *running = start(0, 1, 0), *stopped = start(0, 2, 0);
	submit(0, MS);
	spill_stopwatch_stop(stopped);
	clock_ns += SECOND;
	spill_stopwatch_reset();
	unsigned before = records, asked = queries;
	spill_stopwatch_stop(running);
	spill_stopwatch_collect(tell);
	assert_int_equal(told, 0);
	assert_int_equal(records, before);
	assert_int_equal(queries, asked);
	unsigned parents = made;
	assert_int_equal(measure(0), 1);
	assert_int_equal(made, parents + 2);
	assert_int_equal(destroyed, 0);
	for (unsigned i = 0; i < SPILL_STOPWATCHES; i++) /* each is free again */
		assert_non_null(start(0, 3, 0));
	assert_null(start(0, 3, 0));
}

static _Atomic unsigned started, counted[THREADS];

static void count(const struct spill_stopwatch_access *use, const struct spill_stopwatch_time *time)
{
	uint16_t site = use->site;
	assert_int_equal(use->on_host, site);
	atomic_fetch_add(&counted[site], 1);
}

static void *work(void *argument)
{
	uint16_t mine = (uint16_t)(uintptr_t)argument;
	for (unsigned i = 0; i < 5000; i++) {
		void *watch = start(mine % 2, mine, mine);
		started += watch != NULL;
		spill_stopwatch_stop(watch);
		spill_stopwatch_stop(watch);
		spill_stopwatch_collect(count);
	}
	return NULL;
}

/* Each is told once, whoever collects it. */
TEST(threads_share_them)
{
	pthread_t threads[THREADS];
	unsigned sum = 0;
	started = 0;
	for (uintptr_t i = 0; i < THREADS; i++) {
		counted[i] = 0;
		assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	/* One that a thread of the other context was looking at when those of its own came by for the last time. */
	for (unsigned i = 0; i < 2; i++) {
		current_context = &contexts[i];
		spill_stopwatch_collect(count);
	}
	for (unsigned i = 0; i < THREADS; i++)
		sum += counted[i];
	assert_true(started > 5000);
	assert_int_equal(sum, started);
	assert_int_equal(made - destroyed <= 2 * SPILL_STOPWATCHES, 1);
}

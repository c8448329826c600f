/*
 * Ordered pools against a vendor whose marks pass when a test says so: which stream may use a range
 * that another one has freed, and when. Then which bytes of a chunk are live, and the figures.
 */
#include <pthread.h>
#define SETUP setup
#define TEARDOWN teardown
#include "unit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "account.h"
#include "captures.h"
#include "chunk_map.h"
#include "contexts.h"
#include "ended.h"
#include "fake_libc.h"
#include "fake_vendor.h"
#include "heap.h"
#include "minmax.h"
#include "ordered_pool.h"
#include "stream_frees.h"

#define MIB ((uint64_t)1 << 20)
#define DEVICE (1024 * MIB)
#define SEGMENT (64 * MIB)
#define UNIT ((uint64_t)512)

enum { DEVICES_POOL, OTHER_POOL, POOLS };

static struct spill_policy policy;
static int contexts[3], handles[POOLS], stream_handles[2];
static struct spill_ordered_pool *pool;
static struct spill_chunked *segments[8];
static unsigned segment_count;
static bool passes;

/* Streams 0 and 1 of context 0, and stream 0 of context 1. */
static const struct spill_stream_order first = {&stream_handles[0], &contexts[0]};
static const struct spill_stream_order second = {&stream_handles[1], &contexts[0]};
static const struct spill_stream_order elsewhere = {&stream_handles[0], &contexts[1]};
static const struct spill_stream_order of_no_stream = {NULL, &contexts[0]};

static int setup(void **state)
{
	spill_policy_default(&policy);
	fake_vendor_reset(DEVICE);
	fake_vendor.can |= SPILL_CAN_MOVE;
	fake_vendor.strict = true;
	passes = false;
	fake_vendor.marks_pass = &passes;
	spill_account_reset();
	for (unsigned i = 0; i < 3; i++)
		spill_contexts_created(&fake_vendor_backend, 0, &contexts[i]);
	pool = spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[DEVICES_POOL]);
	assert_non_null(pool);
	return 0;
}

static void end_segment(struct spill_chunked *segment)
{
	for (unsigned i = 0; i < segment_count; i++)
		if (segments[i] == segment)
			segments[i] = NULL;
	spill_placement_release(&segment->base, false);
}

/* Nothing is left of the segments. The ends of the contexts let go of the marks. */
static int teardown(void **state)
{
	struct spill_chunked *segment;
	unsigned left = 0;
	fake_libc_reset();
	set_capturing(false);
	for (unsigned i = 0; i < 3; i++)
		spill_contexts_ended(ENDED(&fake_vendor_backend, 0, &contexts[i]));
	spill_ordered_idle(&fake_vendor_backend, 0, UINT64_MAX);
	while ((segment = spill_ordered_empty(&fake_vendor_backend, 0, NULL, false)) != NULL)
		end_segment(segment);
	for (unsigned i = 0; i < POOLS; i++)
		spill_ordered_pool_ended(&fake_vendor_backend, &handles[i]);
	for (unsigned i = 0; i < segment_count; i++)
		left += segments[i] != NULL;
	segment_count = 0;
	assert_int_equal(left, 0);
	assert_false(spill_ordered_any(NULL));
	assert_int_equal(spill_account_device_held(0) + spill_account_physical_held(), 0);
	assert_int_equal(fake_vendor.device_free, DEVICE);
	assert_int_equal(fake_vendor.broken, 0);
	return 0;
}

/* -- a pool and its segments ------------------------------------------------------------------- */

static struct spill_chunked *make_segment(uint64_t bytes)
{
	const char *error = NULL;
	struct spill_place_request want = {.backend = &fake_vendor_backend,
	                                   .policy = &policy,
	                                   .context = &contexts[0],
	                                   .bytes = spill_ordered_segment_bytes(bytes),
	                                   .device_limit = SPILL_UNLIMITED,
	                                   .most_chunk = SPILL_ORDERED_CHUNK};
	struct spill_chunked *made = spill_chunked_of(spill_place_movable.make(&want, &error));
	assert_non_null(made);
	assert_int_equal(made->chunk_bytes, SPILL_ORDERED_CHUNK);
	segments[segment_count++] = made;
	return made;
}

/* A range that is the first one of a new segment. */
static struct spill_placement *grow(struct spill_ordered_pool *of, uint64_t bytes,
                                    const struct spill_stream_order *order)
{
	struct spill_chunked *segment = make_segment(bytes);
	assert_true(spill_ordered_add(of, segment, bytes));
	spill_chunked_enlist(segment);
	struct spill_placement *range = spill_ordered_open(segment, bytes, order);
	assert_non_null(range);
	assert_int_equal(range->ptr, segment->base.ptr);
	assert_int_equal(range->bytes, bytes);
	assert_true(spill_ordered_is(range));
	assert_false(spill_ordered_is(&segment->base));
	return range;
}

static struct spill_placement *take(uint64_t bytes, const struct spill_stream_order *order)
{
	return spill_ordered_take(pool, bytes, order, false);
}

/* Takes the range at that address. */
static struct spill_placement *expect_at(uint64_t ptr, uint64_t bytes, const struct spill_stream_order *order)
{
	struct spill_placement *range = take(bytes, order);
	assert_non_null(range);
	assert_int_equal(range->ptr, ptr);
	assert_int_equal(range->bytes, bytes);
	assert_ptr_equal(range->context, order->context);
	return range;
}

static void give(struct spill_placement *range, const struct spill_stream_order *order)
{
	spill_ordered_free(range, order, 0);
}

/* The address of a new segment that is one range, freed in that order. */
static uint64_t freed_segment(const struct spill_stream_order *order)
{
	struct spill_placement *range = grow(pool, SEGMENT, order);
	uint64_t ptr = range->ptr;
	give(range, order);
	return ptr;
}

/* Places a mark behind the frees so far, and lets it pass. */
static void pass_a_mark(const struct spill_stream_order *order)
{
	unsigned marks = fake_vendor.marks;
	passes = false;
	assert_null(take(SEGMENT, order));
	assert_int_equal(fake_vendor.marks, marks + 1);
	passes = true;
}

static struct spill_ordered_pool *closed_pool;

static void use_and_end_segments(void)
{
	struct spill_placement *range = grow(pool, SEGMENT / 4, &first), *next = take(SEGMENT / 4, &first);
	assert_non_null(next);
	give(range, &first);
	give(next, &first);
	spill_ordered_idle(&fake_vendor_backend, 0, UINT64_MAX);
	end_segment(spill_ordered_empty(&fake_vendor_backend, 0, NULL, false));
	struct spill_chunked *late = make_segment(SEGMENT);
	assert_false(spill_ordered_add(closed_pool, late, SEGMENT));
	end_segment(late);
	segment_count = 0;
}

TEST(nothing_stays_of_segments)
{
	closed_pool = spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[OTHER_POOL]);
	spill_ordered_pool_close(closed_pool);
	assert_heap_stays(use_and_end_segments);
}

/* -- the order of streams ---------------------------------------------------------------------- */

/* It waits, and its range is anybody's then. This test is the first, because lists are used again. */
TEST(a_free_that_gets_no_list)
{
	struct spill_placement *range = grow(pool, 2 * MIB, &first);
	fake_libc_fail(FAKE_calloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	give(range, &first);
	fake_libc_reset();
	assert_int_equal(fake_vendor.waits, 1);
	give(take(SEGMENT, &second), &second);
}

TEST(a_stream_gets_at_once_what_it_freed)
{
	struct spill_placement *range = grow(pool, 40 * MIB, &first);
	uint64_t ptr = range->ptr;
	for (unsigned i = 0; i < 3; i++) {
		give(range, &first);
		range = expect_at(ptr, 40 * MIB - i, &first);
	}
	assert_int_equal(fake_vendor.marks + fake_vendor.queries, 0);
	give(range, &first);
}

/* The rest of a new segment was never used, so it is anyone's. */
TEST(another_stream_gets_what_nobody_used)
{
	struct spill_placement *range = grow(pool, 40 * MIB, &first);
	struct spill_placement *rest = expect_at(range->ptr + 40 * MIB, 24 * MIB, &second);
	assert_null(take(MIB + 1, &first));
	assert_int_equal(fake_vendor.marks + fake_vendor.queries, 0);
	give(range, &first);
	give(rest, &first);
}

TEST(another_stream_waits_for_a_mark)
{
	uint64_t ptr = freed_segment(&first);
	assert_null(take(SEGMENT, &second));
	assert_int_equal(fake_vendor.marks, 1);
	assert_ptr_equal(fake_vendor.marked_context, &contexts[0]);
	assert_null(take(SEGMENT, &second));
	assert_int_equal(fake_vendor.marks, 1);
	assert_int_equal(fake_vendor.queries, 1);
	passes = true;
	struct spill_placement *range = expect_at(ptr, SEGMENT, &second);
	assert_int_equal(fake_vendor.events, 0);
	give(range, &second);
}

/* A free after the mark is not behind it, even of the same range. */
TEST(a_mark_is_for_earlier_frees_only)
{
	uint64_t ptr = freed_segment(&first);
	pass_a_mark(&second);
	give(expect_at(ptr, SEGMENT, &first), &first);
	assert_null(take(SEGMENT, &second));
	pass_a_mark(&second);
	give(expect_at(ptr, SEGMENT, &second), &second);
}

TEST(a_later_stream_of_that_handle_has_no_order)
{
	uint64_t ptr = freed_segment(&first);
	spill_ordered_stream_ended(&fake_vendor_backend, &stream_handles[1]);
	struct spill_placement *range = expect_at(ptr, SEGMENT, &first);
	give(range, &first);
	spill_ordered_stream_ended(&fake_vendor_backend, first.stream);
	pass_a_mark(&first);
	give(expect_at(ptr, SEGMENT, &first), &first);
}

TEST(a_stream_of_another_context_is_another_one)
{
	uint64_t ptr = freed_segment(&elsewhere);
	pass_a_mark(&first);
	assert_ptr_equal(fake_vendor.marked_context, elsewhere.context);
	give(expect_at(ptr, SEGMENT, &first), &first);
}

/* A range that was freed without a stream serves no stream before a mark. */
TEST(freed_without_a_stream)
{
	struct spill_placement *range = grow(pool, SEGMENT, &first);
	uint64_t ptr = range->ptr;
	give(range, &of_no_stream);
	pass_a_mark(&first);
	range = expect_at(ptr, SEGMENT, &first);
	give(range, &of_no_stream);
	assert_null(spill_ordered_take(pool, SEGMENT, &of_no_stream, false));
}

/* A request may be given up after it got a range: then no other stream may use it earlier. */
TEST(given_up_behind_its_stream)
{
	uint64_t ptr = freed_segment(&first);
	spill_placement_release(expect_at(ptr, SEGMENT, &first), false);
	pass_a_mark(&second);
	give(expect_at(ptr, SEGMENT, &second), &second);
}

/* -- marks ------------------------------------------------------------------------------------- */

TEST(in_a_capture_nobody_asks_the_vendor)
{
	static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
	struct spill_stream_frees none = {0};
	set_capturing(true);
	assert_false(spill_stream_frees_look(&none, &fake_vendor_backend, &own));
	set_capturing(false);
	uint64_t ptr = freed_segment(&first);
	set_capturing(true);
	assert_null(take(SEGMENT, &second));
	assert_null(spill_ordered_empty(&fake_vendor_backend, 0, NULL, false));
	assert_int_equal(fake_vendor.marks, 0);
	set_capturing(false);
	pass_a_mark(&second);
	set_capturing(true);
	assert_null(take(SEGMENT, &second));
	assert_int_equal(fake_vendor.queries, 0);
	give(expect_at(ptr, SEGMENT, &first), &first);
	set_capturing(false);
}

TEST(a_refused_mark_is_tried_again)
{
	uint64_t ptr = freed_segment(&first);
	fake_vendor_fail(1, 2);
	assert_null(take(SEGMENT, &second));
	assert_int_equal(fake_vendor.marks, 0);
	fake_vendor_fail(0, 0);
	pass_a_mark(&second);
	give(expect_at(ptr, SEGMENT, &second), &second);
}

/* Its event ends with the context, and so does the work. */
TEST(the_context_of_a_mark_ends)
{
	uint64_t ptr = freed_segment(&elsewhere);
	assert_null(take(SEGMENT, &first));
	assert_ptr_equal(fake_vendor.marked_context, elsewhere.context);
	fake_vendor.dead_context = elsewhere.context;
	spill_contexts_ended(ENDED(&fake_vendor_backend, 0, elsewhere.context));
	give(expect_at(ptr, SEGMENT, &first), &first);
	fake_vendor.events = 0;
}

/* From the vendor's call until the table knows of it, nobody uses an event of the context. */
TEST(a_mark_of_an_ending_context_is_left_alone)
{
	struct spill_placement *range = grow(pool, SEGMENT, &elsewhere);
	give(range, &elsewhere);
	assert_null(take(SEGMENT, &first));
	passes = true;
	struct spill_context_end end = spill_context_end_begin(&fake_vendor_backend, 0, elsewhere.context);
	fake_vendor.dead_context = elsewhere.context;
	assert_null(take(SEGMENT, &first));
	assert_int_equal(fake_vendor.queries, 0);
	spill_contexts_ended(&end);
	spill_context_end_finish(&end, false);
	range = take(SEGMENT, &first);
	assert_non_null(range);
	give(range, &first);
	fake_vendor.events = 0;
}

TEST(no_mark_in_an_ending_context)
{
	struct spill_placement *range = grow(pool, SEGMENT, &elsewhere);
	give(range, &elsewhere);
	struct spill_context_end end = spill_context_end_begin(&fake_vendor_backend, 0, elsewhere.context);
	fake_vendor.dead_context = elsewhere.context;
	assert_null(take(SEGMENT, &first));
	assert_int_equal(fake_vendor.marks, 0);
	spill_context_end_finish(&end, true);
	fake_vendor.dead_context = NULL;
	pass_a_mark(&first);
	range = take(SEGMENT, &first);
	assert_non_null(range);
	give(range, &first);
}

/* A context whose frees never end does not keep the marks for itself. */
TEST(contexts_take_turns)
{
	struct spill_placement *busy = grow(pool, SEGMENT, &first), *rare = grow(pool, SEGMENT, &elsewhere);
	const void *marked[4];
	for (unsigned order = 0; order < 2; order++) {
		give(order ? busy : rare, order ? &first : &elsewhere);
		give(order ? rare : busy, order ? &elsewhere : &first);
		passes = true;
		for (unsigned i = 0; i < 4; i++) {
			assert_null(take(2 * SEGMENT, &second));
			marked[i] = fake_vendor.marked_context;
			busy = take(SEGMENT, &first);
			assert_non_null(busy);
			give(busy, &first);
			assert_null(take(2 * SEGMENT, &second));
		}
		assert_true(marked[0] == elsewhere.context || marked[1] == elsewhere.context);
		busy = take(SEGMENT, &second);
		assert_non_null(busy);
		rare = take(SEGMENT, &first);
		assert_non_null(rare);
	}
	give(busy, &first);
	give(rare, &first);
}

/* Frees behind a context that has ended before stay, and do not keep others from being marked. */
TEST(an_unknown_context_holds_up_no_other)
{
	static int unknown;
	const struct spill_stream_order lost = {NULL, &unknown};
	struct spill_placement *stays = grow(pool, SEGMENT, &first), *range = grow(pool, SEGMENT, &first);
	give(stays, &lost);
	for (unsigned i = 0; i < 2; i++) {
		give(range, &elsewhere);
		pass_a_mark(&second);
		assert_ptr_equal(fake_vendor.marked_context, elsewhere.context);
		range = take(SEGMENT, &second);
		assert_non_null(range);
	}
	give(range, &second);
}

/* -- what the program waits for ---------------------------------------------------------------- */

TEST(a_context_that_ends_frees_its_order)
{
	uint64_t ptr = freed_segment(&elsewhere);
	set_capturing(true); /* no marks */
	spill_ordered_context_ended(ENDED(&fake_vendor_backend, 0, &contexts[2]));
	assert_null(take(SEGMENT, &first));
	spill_ordered_context_ended(ENDED(&fake_vendor_backend, 0, elsewhere.context));
	give(expect_at(ptr, SEGMENT, &first), &first);
}

/* Another thread has made a context with the same handle, before the end is carried out here. */
TEST(the_end_of_an_older_context_covers_no_later_free)
{
	struct spill_placement *range = grow(pool, SEGMENT, &elsewhere);
	uint64_t ptr = range->ptr;
	struct spill_context_end end = spill_context_end_begin(&fake_vendor_backend, 0, elsewhere.context);
	spill_contexts_created(&fake_vendor_backend, 0, &contexts[1]);
	give(range, &elsewhere);
	spill_contexts_ended(&end);
	spill_ordered_context_ended(&end);
	spill_context_end_finish(&end, false);
	pass_a_mark(&first);
	give(expect_at(ptr, SEGMENT, &first), &first);
}

TEST(a_wait_for_a_stream_or_context)
{
	static const struct {
		struct spill_stream_order waited;
		bool done;
	} cases[] = {
	    {{&stream_handles[1], &contexts[0]}, false},
	    {{&stream_handles[0], &contexts[1]}, false},
	    {{NULL, &contexts[1]}, false},
	    {{&stream_handles[0], &contexts[0]}, true},
	    {{NULL, &contexts[0]}, true},
	};
	struct spill_placement *range = grow(pool, SEGMENT, &first);
	set_capturing(true); /* no marks */
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before = spill_ordered_number();
		give(range, &first);
		assert_int_equal(spill_ordered_number(), before + 1);
		spill_ordered_done(&fake_vendor_backend, &cases[i].waited, before);
		assert_null(take(SEGMENT, &second));
		spill_ordered_done(&fake_vendor_backend, &cases[i].waited, before + 1);
		range = take(SEGMENT, &second);
		assert_int_equal(range != NULL, cases[i].done);
		if (!range)
			range = take(SEGMENT, &first);
		assert_non_null(range);
	}
	give(range, &first);
}

TEST(an_idle_device)
{
	struct spill_placement *range = grow(pool, SEGMENT, &first);
	set_capturing(true); /* no marks */
	give(range, &first);
	uint64_t number = spill_ordered_number();
	spill_ordered_idle(&fake_vendor_backend, 1, number);
	spill_ordered_idle(&fake_vendor_backend, 0, number - 1);
	assert_null(take(SEGMENT, &second));
	spill_ordered_idle(&fake_vendor_backend, 0, number);
	range = take(SEGMENT, &second);
	assert_non_null(range);
	give(range, &of_no_stream);
	spill_ordered_idle(&fake_vendor_backend, 0, spill_ordered_number());
	range = take(SEGMENT, &elsewhere);
	assert_non_null(range);
	give(range, &elsewhere);
}

/* -- segments ---------------------------------------------------------------------------------- */

TEST(sizes_of_segments)
{
	assert_int_equal(spill_ordered_segment_bytes(1), SPILL_ORDERED_CHUNK);
	assert_int_equal(spill_ordered_segment_bytes(MIB), SPILL_ORDERED_CHUNK);
	assert_int_equal(spill_ordered_segment_bytes(MIB + 1), SEGMENT);
	assert_int_equal(spill_ordered_segment_bytes(SEGMENT), SEGMENT);
	assert_int_equal(spill_ordered_segment_bytes(SEGMENT + 1), SEGMENT + SPILL_ORDERED_CHUNK);
	assert_true(spill_ordered_segment_bytes(UINT64_MAX) == UINT64_MAX);
	assert_true(spill_ordered_segment_bytes(UINT64_MAX - MIB) >= UINT64_MAX - MIB);
}

/* A small request that lives long keeps no large segment, and the other way round. */
TEST(small_and_large_requests_do_not_mix)
{
	struct spill_placement *large = grow(pool, 2 * MIB, &first);
	assert_null(take(MIB, &first));
	struct spill_placement *small = grow(pool, MIB, &first);
	assert_null(take(SEGMENT - 1, &first));
	struct spill_placement *next = expect_at(small->ptr + MIB, UNIT, &second);
	give(next, &first);
	give(small, &first);
	give(large, &first);
}

TEST(only_a_segment_that_no_work_can_use_is_empty)
{
	struct spill_placement *range = grow(pool, 40 * MIB, &first);
	struct spill_chunked *segment = segments[0];
	set_capturing(true); /* no marks */
	assert_int_equal(spill_ordered_unused(&fake_vendor_backend, 0), 0);
	assert_null(spill_ordered_empty(&fake_vendor_backend, 0, NULL, false));
	give(range, &first);
	assert_int_equal(spill_ordered_unused(&fake_vendor_backend, 0), SEGMENT);
	assert_int_equal(spill_ordered_unused(&fake_vendor_backend, 1), 0);
	assert_null(spill_ordered_empty(&fake_vendor_backend, 0, NULL, false));
	set_capturing(false);
	assert_null(spill_ordered_empty(&fake_vendor_backend, 0, NULL, false));
	assert_int_equal(fake_vendor.marks, 1);
	passes = true;
	struct spill_ordered_pool *other =
	    spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[OTHER_POOL]);
	assert_null(spill_ordered_empty(&fake_vendor_backend, 0, other, false));
	assert_null(spill_ordered_empty(&fake_vendor_backend, 1, NULL, false));
	assert_null(spill_ordered_empty(&fake_vendor_backend, 0, pool, true));
	assert_ptr_equal(spill_ordered_empty(&fake_vendor_backend, 0, pool, false), segment);
	assert_false(spill_ordered_any(pool) || spill_ordered_any(NULL));
	assert_null(take(UNIT, &first));
	assert_true(spill_chunked_is_dead(segment));
	end_segment(segment);
}

static unsigned visited;

/* With the lock held, so it does not jump. */
static void visit(const struct spill_placement *segment, void *data)
{
	visited += segment == &segments[visited]->base && data == &visited;
}

/* Each close tells each segment once. */
TEST(segments_are_told_oldest_first)
{
	struct spill_placement *ranges[3];
	for (unsigned i = 0; i < 3; i++)
		ranges[i] = grow(pool, 2 * MIB, &first);
	visited = 0;
	spill_ordered_each(visit, &visited);
	assert_int_equal(visited, 3);
	for (unsigned close = 0; close < 2; close++) {
		spill_ordered_pool_close(pool);
		for (unsigned i = 0; i < 3; i++)
			assert_ptr_equal(spill_ordered_next_closed(pool), segments[i]);
		assert_null(spill_ordered_next_closed(pool));
	}
	for (unsigned i = 0; i < 3; i++)
		give(ranges[i], &first);
}

TEST(each_close_tells_all_segments_though_some_end_meanwhile)
{
	struct spill_placement *ranges[3];
	for (unsigned i = 0; i < 3; i++)
		ranges[i] = grow(pool, 64 * MIB, &first);
	spill_mover_lock();
	spill_ordered_pool_close(pool);
	assert_ptr_equal(spill_ordered_next_closed(pool), segments[0]);
	give(ranges[0], &first);
	spill_ordered_idle(&fake_vendor_backend, 0, spill_ordered_number());
	struct spill_chunked *ended = spill_ordered_empty(&fake_vendor_backend, 0, pool, false);
	assert_ptr_equal(ended, segments[0]);
	assert_ptr_equal(spill_ordered_next_closed(pool), segments[1]);
	assert_ptr_equal(spill_ordered_next_closed(pool), segments[2]);
	assert_null(spill_ordered_next_closed(pool));
	spill_ordered_pool_close(pool);
	assert_ptr_equal(spill_ordered_next_closed(pool), segments[1]);
	assert_ptr_equal(spill_ordered_next_closed(pool), segments[2]);
	assert_null(spill_ordered_next_closed(pool));
	spill_mover_unlock();
	end_segment(ended);
	for (unsigned i = 1; i < 3; i++)
		give(ranges[i], &first);
}

TEST(memory_that_spilled_counts_until_it_ends)
{
	struct spill_placement spilled = {.backend = &fake_vendor_backend, .bytes = 1000};
	spill_ordered_count(pool, &spilled);
	struct spill_ordered_figures figures = spill_ordered_figures(pool);
	assert_int_equal(figures.used, 1024);
	assert_int_equal(figures.reserved, 1024);
	spill_ordered_uncount(&spilled);
	spill_ordered_uncount(&spilled);
	figures = spill_ordered_figures(pool);
	assert_int_equal(figures.used + figures.reserved, 0);
	assert_int_equal(figures.most_used, 1024);
}

/* As a move does it: new memory, and the old one is returned. */
static void move_to_host(struct spill_chunked *segment, unsigned index)
{
	uint64_t handle, old = segment->chunks[index].handle, bytes = segment->chunks[index].bytes;
	assert_int_equal(fake_vendor_backend.physical->create(0, true, bytes, &handle), 0);
	spill_account_physical_add(bytes);
	spill_mover_lock();
	spill_chunked_moved(segment, index, handle);
	spill_mover_unlock();
	fake_vendor_backend.physical->release(old);
	spill_account_device_return(0, bytes);
}

TEST(ranges_on_the_host_are_avoided_and_found)
{
	struct spill_placement *range = grow(pool, SEGMENT, &first), *back;
	uint64_t ptr = range->ptr;
	move_to_host(segments[0], 1); /* 16 to 32 MiB */
	give(range, &first);
	back = expect_at(ptr, 16 * MIB, &first);
	assert_null(take(32 * MIB + 1, &first));
	assert_null(take(2 * MIB, &first)); /* the rest begins on the host */
	range = spill_ordered_take(pool, 20 * MIB, &first, true);
	assert_true(range && range->ptr == ptr + 16 * MIB);
	give(expect_at(ptr + 36 * MIB, 28 * MIB, &first), &first);
	give(range, &first);
	give(back, &first);
	/* Settled, it goes back as one that has chunks on the host. */
	spill_ordered_idle(&fake_vendor_backend, 0, spill_ordered_number());
	assert_ptr_equal(spill_ordered_empty(&fake_vendor_backend, 0, NULL, true), segments[0]);
	end_segment(segments[0]);
}

/* What is on the host comes when it is used. */
TEST(while_exchanges_follow_each_other_the_side_is_of_no_matter)
{
	struct spill_placement *lower = grow(pool, 20 * MIB, &first);
	uint64_t ptr = lower->ptr;
	struct spill_placement *between = expect_at(ptr + 20 * MIB, 12 * MIB, &first);
	struct spill_placement *higher = expect_at(ptr + 32 * MIB, 32 * MIB, &first);
	move_to_host(segments[0], 0);
	give(lower, &first);
	give(higher, &first);
	for (unsigned i = 0; i < 2; i++) {
		spill_chunked_hold(i ? UINT64_MAX : 0);
		lower = spill_ordered_take(pool, 20 * MIB, &first, true);
		assert_non_null(lower);
		assert_int_equal(lower->ptr, i ? ptr : ptr + 32 * MIB);
		give(lower, &first);
		/* Not where it would be used in place. */
		give(expect_at(ptr + 32 * MIB, 20 * MIB, &first), &first);
	}
	spill_chunked_hold(0);
	give(between, &first);
}

/* The addresses of a program's step: two blocks of 8 MiB, and one of 4 in the place of the first. */
static void take_a_step(uint64_t places[3], bool settles)
{
	struct spill_placement *one = take(8 * MIB, &first), *other = take(8 * MIB, &first);
	assert_true(one && other);
	places[0] = one->ptr;
	places[1] = other->ptr;
	give(one, &first);
	if (settles)
		spill_ordered_idle(&fake_vendor_backend, 0, spill_ordered_number());
	struct spill_placement *small = take(4 * MIB, &first);
	assert_non_null(small);
	places[2] = small->ptr;
	give(other, &first);
	give(small, &first);
}

/* Else the next step would not use what this one foretells (policy/predict). */
TEST(addresses_do_not_depend_on_when_frees_settle)
{
	uint64_t before[3], places[3];
	struct spill_placement *one = grow(pool, SEGMENT, &first), *other = grow(pool, SEGMENT, &first);
	bool ascending = one->ptr < other->ptr;
	give(ascending ? one : other, &second);
	spill_ordered_idle(&fake_vendor_backend, 0, spill_ordered_number());
	give(ascending ? other : one, &first);
	take_a_step(before, false);
	for (unsigned i = 0; i < 4; i++) {
		if (i % 2)
			spill_ordered_idle(&fake_vendor_backend, 0, spill_ordered_number());
		take_a_step(places, i / 2);
		assert_memory_equal(places, before, sizeof(places));
	}
}

/* -- live bytes -------------------------------------------------------------------------------- */

static unsigned live_spans(unsigned chunk, struct spill_span *spans)
{
	return spill_chunked_live(segments[0], chunk, spans);
}

static void is_whole(unsigned chunk)
{
	struct spill_span spans[SPILL_SPANS];
	assert_int_equal(live_spans(chunk, spans), 1);
	assert_true(spans[0].offset == 0 && spans[0].bytes == SPILL_ORDERED_CHUNK);
}

TEST(live_bytes_of_chunks)
{
	struct spill_span spans[SPILL_SPANS];
	struct spill_placement *ranges[4];
	ranges[0] = grow(pool, 10 * MIB, &first); /* of chunk 0 */
	ranges[1] = take(4 * MIB, &second);       /* the same, beside it */
	ranges[2] = take(20 * MIB, &first);       /* 14 to 34: the end of 0, all of 1, the begin of 2 */
	ranges[3] = take(6 * MIB - 1, &first);    /* 34 to 40, rounded to whole units */
	is_whole(0);
	is_whole(1);
	assert_int_equal(live_spans(2, spans), 1);
	assert_true(spans[0].offset == 0 && spans[0].bytes == 8 * MIB);
	assert_int_equal(live_spans(3, spans), 0);
	give(ranges[1], &second); /* dead at once: live bytes are asked for while the device is idle */
	assert_int_equal(live_spans(0, spans), 2);
	assert_true(spans[0].offset == 0 && spans[0].bytes == 10 * MIB);
	assert_true(spans[1].offset == 14 * MIB && spans[1].bytes == 2 * MIB);
	give(ranges[2], &first);
	assert_int_equal(live_spans(1, spans), 0);
	assert_int_equal(live_spans(2, spans), 1);
	assert_true(spans[0].offset == 2 * MIB && spans[0].bytes == 6 * MIB);
	assert_false(spill_chunked_is_dead(segments[0]));
	give(ranges[0], &first);
	give(ranges[3], &first);
	assert_true(spill_chunked_is_dead(segments[0]));
	ranges[0] = take(SEGMENT - MIB, &first);
	assert_null(ranges[0]); /* of two streams */
}

/* More parts than there is room for count as the whole chunk. */
TEST(too_many_live_parts_are_the_whole_chunk)
{
	enum { PARTS = 2 * SPILL_SPANS + 1 };
	struct spill_span spans[SPILL_SPANS];
	struct spill_placement *ranges[PARTS];
	for (unsigned i = 0; i < PARTS; i++)
		ranges[i] = i ? take(UNIT, &first) : grow(pool, UNIT, &first);
	for (unsigned i = 1; i < PARTS; i += 2)
		give(ranges[i], &first);
	is_whole(0);
	give(ranges[PARTS - 1], &first);
	assert_int_equal(live_spans(0, spans), SPILL_SPANS);
	for (unsigned i = 0; i < SPILL_SPANS; i++) {
		assert_true(spans[i].offset == 2 * i * UNIT && spans[i].bytes == UNIT);
		give(ranges[2 * i], &first);
	}
	assert_int_equal(live_spans(0, spans), 0);
}

/* Before it is opened, and after it was unlinked, nothing of a segment is in use. */
TEST(a_segment_without_ranges_is_dead)
{
	struct spill_chunked *segment = make_segment(SEGMENT);
	assert_true(spill_ordered_add(pool, segment, SEGMENT));
	assert_true(spill_ordered_any(pool));
	spill_chunked_enlist(segment);
	assert_true(spill_chunked_is_dead(segment));
	assert_null(take(SEGMENT, &first));
	assert_null(spill_ordered_empty(&fake_vendor_backend, 0, NULL, false));
	struct spill_placement *range = spill_ordered_open(segment, SEGMENT, &first);
	assert_false(spill_chunked_is_dead(segment));
	give(range, &first);
}

/* -- figures and memory ------------------------------------------------------------------------ */

static void figures_are(uint64_t used, uint64_t most_used, uint64_t reserved, uint64_t most_reserved)
{
	struct spill_ordered_figures figures = spill_ordered_figures(pool);
	assert_int_equal(figures.used, used);
	assert_int_equal(figures.most_used, most_used);
	assert_int_equal(figures.reserved, reserved);
	assert_int_equal(figures.most_reserved, most_reserved);
}

TEST(figures_are_exact)
{
	figures_are(0, 0, 0, 0);
	struct spill_placement *range = grow(pool, 40 * MIB, &first), *other = take(10 * MIB - 1, &second);
	figures_are(50 * MIB, 50 * MIB, SEGMENT, SEGMENT);
	struct spill_placement *small = grow(pool, 1, &first);
	figures_are(50 * MIB + UNIT, 50 * MIB + UNIT, 80 * MIB, 80 * MIB);
	give(small, &first);
	give(range, &of_no_stream);
	figures_are(10 * MIB, 50 * MIB + UNIT, 80 * MIB, 80 * MIB);
	spill_ordered_idle(&fake_vendor_backend, 0, UINT64_MAX);
	end_segment(spill_ordered_empty(&fake_vendor_backend, 0, pool, false));
	figures_are(10 * MIB, 50 * MIB + UNIT, SEGMENT, 80 * MIB);
	spill_ordered_restart(pool, true, false);
	figures_are(10 * MIB, 10 * MIB, SEGMENT, 80 * MIB);
	spill_ordered_restart(pool, false, true);
	figures_are(10 * MIB, 10 * MIB, SEGMENT, SEGMENT);
	spill_placement_release(other, true);
	figures_are(0, 10 * MIB, SEGMENT, SEGMENT);
}

/* Each of the allocations is refused once. Nothing is lost then. */
TEST(without_memory_nothing_breaks)
{
	struct spill_chunked *segment = make_segment(SEGMENT);
	fake_libc_fail(FAKE_calloc, 1, 1, ENOMEM);
	assert_false(spill_ordered_add(pool, segment, SEGMENT));
	assert_null(segment->owner);
	assert_true(spill_ordered_add(pool, segment, SEGMENT));
	fake_libc_fail(FAKE_calloc, 1, 1, ENOMEM);
	assert_null(spill_ordered_open(segment, 2 * MIB, &first));
	assert_false(spill_ordered_any(pool));
	figures_are(0, 0, 0, SEGMENT);
	end_segment(segment);
	segment = make_segment(SEGMENT);
	assert_true(spill_ordered_add(pool, segment, SEGMENT));
	fake_libc_fail(FAKE_malloc, 1, 1, ENOMEM);
	assert_null(spill_ordered_open(segment, 2 * MIB, &first));
	assert_false(spill_ordered_any(pool));
	end_segment(segment);
	struct spill_placement *range = grow(pool, 2 * MIB, &first);
	fake_libc_fail(FAKE_calloc, 1, 1, ENOMEM);
	assert_null(take(2 * MIB, &first));
	fake_libc_fail(FAKE_malloc, 1, 1, ENOMEM);
	struct spill_placement *rest = take(2 * MIB, &first); /* not cut: all that is left */
	figures_are(SEGMENT, SEGMENT, SEGMENT, SEGMENT);
	give(range, &first);
	give(rest, &first);
	figures_are(0, SEGMENT, SEGMENT, SEGMENT);
}

/* -- pools ------------------------------------------------------------------------------------- */

TEST(a_pool_is_beside_one_of_the_vendor)
{
	assert_ptr_equal(spill_ordered_pool_of(&fake_vendor_backend, &handles[DEVICES_POOL]), pool);
	assert_ptr_equal(spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[DEVICES_POOL]), pool);
	assert_null(spill_ordered_pool_of(&fake_vendor_backend, &handles[OTHER_POOL]));
	assert_null(spill_ordered_pool_of(&fake_vendor_backend, NULL));
	assert_ptr_equal(spill_ordered_handle(pool), &handles[DEVICES_POOL]);
	assert_int_equal(spill_ordered_device(pool), 0);
	struct spill_ordered_pool *other =
	    spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[OTHER_POOL]);
	assert_true(other && other != pool);
	bool found[2] = {false, false};
	for (struct spill_ordered_pool *at = spill_ordered_next(NULL); at; at = spill_ordered_next(at)) {
		found[0] |= at == pool;
		found[1] |= at == other;
	}
	assert_true(found[0] && found[1]);
}

/* Its ranges live on. A later pool of the vendor may have the handle. */
TEST(an_ended_pool_keeps_its_ranges)
{
	struct spill_placement *range = grow(pool, SEGMENT, &first);
	assert_ptr_equal(spill_ordered_pool_ended(&fake_vendor_backend, &handles[DEVICES_POOL]), pool);
	assert_null(spill_ordered_pool_ended(&fake_vendor_backend, &handles[DEVICES_POOL]));
	assert_null(spill_ordered_pool_of(&fake_vendor_backend, &handles[DEVICES_POOL]));
	assert_null(spill_ordered_handle(pool));
	struct spill_ordered_pool *later =
	    spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[DEVICES_POOL]);
	assert_true(later && later != pool);
	give(range, &first);
	assert_null(spill_ordered_take(later, SEGMENT, &first, true));
	figures_are(0, SEGMENT, SEGMENT, SEGMENT);
	spill_ordered_idle(&fake_vendor_backend, 0, UINT64_MAX);
	assert_ptr_equal(spill_ordered_empty(&fake_vendor_backend, 0, pool, false), segments[0]);
	end_segment(segments[0]);
}

/* The vendor refuses to end a device's own pool. It goes on with its segments and its figures. */
TEST(a_pool_that_does_not_end_is_the_same_as_before)
{
	struct spill_placement *range = grow(pool, SEGMENT, &first);
	assert_ptr_equal(spill_ordered_pool_ended(&fake_vendor_backend, &handles[DEVICES_POOL]), pool);
	spill_ordered_pool_alive(pool, &handles[DEVICES_POOL]);
	assert_ptr_equal(spill_ordered_pool_of(&fake_vendor_backend, &handles[DEVICES_POOL]), pool);
	give(range, &first);
	/* Meanwhile another thread may have made it anew. */
	spill_ordered_pool_ended(&fake_vendor_backend, &handles[DEVICES_POOL]);
	struct spill_ordered_pool *later =
	    spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[DEVICES_POOL]);
	assert_ptr_not_equal(later, pool);
	spill_ordered_pool_alive(pool, &handles[DEVICES_POOL]);
	assert_null(spill_ordered_handle(pool));
	assert_ptr_equal(spill_ordered_pool_of(&fake_vendor_backend, &handles[DEVICES_POOL]), later);
	spill_ordered_pool_alive(NULL, &handles[OTHER_POOL]);
	/* Or its record is another pool's. */
	spill_ordered_pool_ended(&fake_vendor_backend, &handles[DEVICES_POOL]);
	assert_ptr_equal(spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[OTHER_POOL]), later);
	spill_ordered_pool_alive(later, &handles[DEVICES_POOL]);
	assert_ptr_equal(spill_ordered_handle(later), &handles[OTHER_POOL]);
}

/* It counts in the figures of its own pool, though that has ended, and in no later pool's. */
TEST(a_pool_with_memory_that_spilled_is_not_used_again)
{
	struct spill_placement spilled = {.backend = &fake_vendor_backend, .bytes = 2 * MIB};
	spill_ordered_count(pool, &spilled);
	spill_ordered_pool_ended(&fake_vendor_backend, &handles[DEVICES_POOL]);
	struct spill_ordered_pool *later =
	    spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[OTHER_POOL]);
	assert_ptr_not_equal(later, pool);
	spill_ordered_uncount(&spilled);
	assert_int_equal(spill_ordered_figures(later).used, 0);
	spill_ordered_pool_ended(&fake_vendor_backend, &handles[OTHER_POOL]);
}

/* A program that makes and ends pools for ever takes no more memory for them. */
TEST(records_of_ended_pools_are_used_again)
{
	unsigned before = 0, after = 0;
	for (struct spill_ordered_pool *at = spill_ordered_next(NULL); at; at = spill_ordered_next(at))
		before++;
	for (unsigned i = 0; i < 10; i++) {
		struct spill_ordered_pool *made =
		    spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[OTHER_POOL]);
		assert_false(spill_ordered_pool_is_closed(made));
		assert_int_equal(spill_ordered_figures(made).most_reserved, 0);
		assert_int_equal(spill_ordered_kept(made), 0);
		spill_ordered_keep(made, SEGMENT);
		assert_int_equal(spill_ordered_kept(made), SEGMENT);
		give(grow(made, SEGMENT, &first), &first);
		spill_ordered_pool_close(made);
		spill_ordered_pool_ended(&fake_vendor_backend, &handles[OTHER_POOL]);
		spill_ordered_idle(&fake_vendor_backend, 0, UINT64_MAX);
		end_segment(spill_ordered_empty(&fake_vendor_backend, 0, NULL, false));
		segment_count = 0;
	}
	for (struct spill_ordered_pool *at = spill_ordered_next(NULL); at; at = spill_ordered_next(at))
		after++;
	assert_true(after <= before + 1);
}

/* Another device uses its memory, and would not have access to a segment that comes now. */
TEST(a_closed_pool_gets_no_segment)
{
	struct spill_placement *range = grow(pool, SEGMENT, &first);
	struct spill_chunked *late = make_segment(SEGMENT);
	assert_false(spill_ordered_pool_is_closed(pool));
	spill_ordered_pool_close(pool);
	assert_true(spill_ordered_pool_is_closed(pool));
	assert_false(spill_ordered_add(pool, late, SEGMENT));
	assert_null(late->owner);
	assert_ptr_equal(spill_ordered_next_closed(pool), segments[0]);
	assert_null(spill_ordered_next_closed(pool));
	figures_are(SEGMENT, SEGMENT, SEGMENT, SEGMENT);
	end_segment(late);
	give(range, &first);
}

/* -- fork and threads -------------------------------------------------------------------------- */

/* As fork handlers do it (runtime.c). The child has no GPU, and its parent keeps the segments. */
TEST(a_child_has_no_pools)
{
	struct spill_placement *range = grow(pool, SEGMENT, &first);
	spill_fork_lock_take(&spill_ordered_fork_lock);
	pid_t child = fork();
	spill_fork_lock_release(&spill_ordered_fork_lock, child == 0);
	if (child == 0)
		_exit(spill_ordered_next(NULL) || spill_ordered_any(NULL) ||
		      spill_ordered_pool_of(&fake_vendor_backend, &handles[DEVICES_POOL]) ||
		      spill_ordered_unused(&fake_vendor_backend, 0) ||
		      !spill_ordered_pool_made(&fake_vendor_backend, 0, &handles[OTHER_POOL]));
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_non_null(spill_ordered_next(NULL));
	give(range, &first);
}

enum { THREADS = 4, ROUNDS = 20000, MINE = 16 };

static _Atomic unsigned failures, working, taken;
static _Atomic unsigned char owners[DEVICE / MIB]; /* of each MiB of the segments */
static uint64_t begin_of_space;

/* In a thread: cmocka's assertions jump. */
static void expect(bool right)
{
	if (!right)
		atomic_fetch_add(&failures, 1);
}

static void own(const struct spill_placement *range, unsigned char from, unsigned char to)
{
	uint64_t at = (range->ptr - begin_of_space) / MIB;
	for (uint64_t end = at + range->bytes / MIB; at < end; at++) {
		unsigned char old = from;
		expect(atomic_compare_exchange_strong(&owners[at], &old, to));
	}
}

static void *use_ranges(void *argument)
{
	unsigned me = (unsigned)(uintptr_t)argument, random = me * 7919;
	struct spill_placement *mine[MINE] = {NULL};
	struct spill_stream_order order = {argument, &contexts[me % 2]};
	for (unsigned round = 0; round < ROUNDS + MINE; round++) {
		random = random * 1103515245u + 12345u;
		struct spill_placement **one = &mine[(round < ROUNDS ? random >> 16 : round) % MINE];
		if (*one) {
			own(*one, (unsigned char)me, 0);
			spill_ordered_free(*one, &order, 0);
			*one = NULL;
		} else if (round < ROUNDS) {
			*one = spill_ordered_take(pool, (2 + (random >> 20) % 8) * MIB, &order, random & 1);
			if (!*one)
				continue;
			own(*one, 0, (unsigned char)me);
			atomic_fetch_add(&taken, 1);
		}
	}
	atomic_fetch_sub(&working, 1);
	return NULL;
}

/* The mover, a caller that has waited, and one that looks for unused segments. */
static void *look_on(void *argument)
{
	struct spill_span spans[SPILL_SPANS];
	struct spill_chunked *segment, **empty = argument;
	while (atomic_load(&working)) {
		spill_mover_lock();
		for (segment = spill_chunked_next(NULL); segment; segment = spill_chunked_next(segment))
			for (unsigned chunk = 0; chunk < segment->count; chunk++)
				expect(spill_chunked_live(segment, chunk, spans) <= SPILL_SPANS);
		spill_mover_unlock();
		spill_ordered_idle(&fake_vendor_backend, 0, spill_ordered_number());
		struct spill_ordered_figures figures = spill_ordered_figures(pool);
		expect(figures.used <= figures.reserved && figures.used <= figures.most_used);
		if (!*empty)
			*empty = spill_ordered_empty(&fake_vendor_backend, 0, pool, false);
	}
	return NULL;
}

TEST(threads_share_a_pool)
{
	pthread_t threads[THREADS], looker;
	struct spill_placement *ranges[4];
	struct spill_chunked *empty = NULL;
	passes = true;
	for (unsigned i = 0; i < 4; i++) {
		ranges[i] = grow(pool, SEGMENT, &first);
		begin_of_space = i ? spill_min(begin_of_space, ranges[i]->ptr) : ranges[i]->ptr;
	}
	for (unsigned i = 0; i < 4; i++)
		give(ranges[i], &first);
	atomic_store(&working, THREADS);
	assert_int_equal(pthread_create(&looker, NULL, look_on, &empty), 0);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, use_ranges, (void *)(i + 1)), 0);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	assert_int_equal(pthread_join(looker, NULL), 0);
	assert_int_equal(failures, 0);
	assert_true(taken > ROUNDS / 4);
	assert_int_equal(spill_ordered_figures(pool).used, 0);
	if (empty)
		end_segment(empty);
}

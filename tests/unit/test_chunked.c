/*
 * Chunked placements: how they are cut, what they are charged for, which may be moved. Moving itself: test_move.c.
 */
#include <pthread.h>
#include <stdlib.h>
#define SETUP setup
#include "unit.h"
#include "account.h"
#include "captures.h"
#include "fake_clock.h"
#include "fake_vendor.h"
#include "forgotten.h"
#include "heap.h"
#include "chunk_map.h"
#include "ledger.h"
#include "chunked.h"
#include "unpark.h"

#define CHUNK (4 * FAKE_SMALL_UNIT)

static struct spill_policy policy;

static int setup(void **state)
{
	fake_vendor_policy(&policy);
	policy.movable_chunk = (struct spill_amount){SPILL_AMOUNT_BYTES, CHUNK};
	fake_vendor_reset_mover(64 * CHUNK);
	spill_account_reset();
	return 0;
}

static struct spill_place_request want(uint64_t bytes)
{
	return (struct spill_place_request){&fake_vendor_backend, &policy, 0, &policy, bytes, 0,
	                                    SPILL_UNLIMITED};
}

static struct spill_chunked *make(uint64_t bytes)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(bytes);
	struct spill_chunked *made = spill_chunked_of(spill_place_movable.make(&wanted, &error));
	assert_non_null(made);
	return made;
}

static void nothing_is_held(void)
{
	assert_int_equal(fake_vendor_alive(), 0);
	assert_int_equal(fake_vendor.broken, 0);
	assert_int_equal(fake_vendor.device_free, 64 * CHUNK);
	assert_int_equal(spill_account_device_held(0) + spill_account_host_held(), 0);
}

/* Whole chunks, and one that is rounded to the granule only. What is smaller than a chunk is one of its own size. */
TEST(cut_into_chunks)
{
	static const struct {
		uint64_t bytes, range;
		unsigned count;
		uint64_t last;
	} cases[] = {
	    {1, FAKE_SMALL_UNIT, 1, FAKE_SMALL_UNIT},
	    {CHUNK - FAKE_SMALL_UNIT, CHUNK - FAKE_SMALL_UNIT, 1, CHUNK - FAKE_SMALL_UNIT},
	    {CHUNK, CHUNK, 1, CHUNK},
	    {CHUNK + 1, CHUNK + FAKE_SMALL_UNIT, 2, FAKE_SMALL_UNIT},
	    {3 * CHUNK, 3 * CHUNK, 3, CHUNK},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct spill_chunked *made = make(cases[i].bytes);
		uint64_t va, bytes;
		assert_int_equal(made->base.bytes, cases[i].bytes);
		assert_int_equal(made->range, cases[i].range);
		assert_int_equal(made->count, cases[i].count);
		assert_int_equal(made->chunks[made->count - 1].bytes, cases[i].last);
		made->base.ops->range(&made->base, &va, &bytes);
		assert_true(va == made->base.ptr && bytes == cases[i].range);
		for (unsigned chunk = 0; chunk < made->count; chunk++) {
			assert_false(made->chunks[chunk].on_host);
			assert_int_equal(spill_chunked_address(made, chunk), va + chunk * CHUNK);
			assert_non_null(fake_vendor_bytes(va + chunk * CHUNK, 0));
		}
		assert_int_equal(made->base.held.device, cases[i].range);
		assert_int_equal(spill_account_device_held(0), cases[i].range);
		assert_int_equal(fake_vendor.device_free, 64 * CHUNK - cases[i].range);
		spill_placement_release(&made->base, i % 2);
		nothing_is_held();
	}
}

TEST(chunks_are_whole_granules)
{
	static const uint64_t sizes[][2] = {{1, FAKE_SMALL_UNIT},
	                                    {FAKE_SMALL_UNIT + 1, 2 * FAKE_SMALL_UNIT},
	                                    {0, FAKE_SMALL_UNIT},
	                                    {UINT64_MAX, 16 << 20}};
	const uint64_t MANY = (uint64_t)1 << 40;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		policy.movable_chunk.value = sizes[i][0];
		assert_int_equal(spill_policy_chunk(&policy, MANY, FAKE_SMALL_UNIT), sizes[i][1]);
	}
	policy.movable_chunk.kind = SPILL_AMOUNT_NONE;
	assert_int_equal(spill_policy_chunk(&policy, MANY, FAKE_SMALL_UNIT), 64 << 20);
	/* Of what is smaller than two of them. */
	assert_int_equal(spill_policy_chunk(&policy, (128 << 20) - FAKE_SMALL_UNIT, FAKE_SMALL_UNIT),
	                 16 << 20);
	assert_int_equal(spill_policy_chunk(&policy, (128 << 20) - 1, FAKE_SMALL_UNIT), 64 << 20);
}

static void make_and_end(void)
{
	struct spill_chunked *made = make(3 * CHUNK);
	made->owner = malloc(100);
	spill_placement_release(&made->base, false);
}

/* Each call of the vendor fails once. */
static void make_in_vain(void)
{
	const char *error = NULL;
	struct spill_placement *made = NULL;
	for (unsigned failing = 1; !made; failing++) {
		struct spill_place_request wanted = want(3 * CHUNK);
		fake_vendor_fail(failing, failing + 1);
		made = spill_place_movable.make(&wanted, &error);
	}
	fake_vendor_fail(0, 0);
	spill_placement_release(made, false);
}

TEST(nothing_stays_of_what_has_ended)
{
	assert_heap_stays(make_and_end);
	assert_heap_stays(make_in_vain);
	nothing_is_held();
}

/* All or nothing, by the name of what refuses. */
TEST(what_does_not_fit_is_not_made)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(3 * CHUNK);
	wanted.device_limit = 3 * CHUNK - 1;
	assert_null(spill_place_movable.make(&wanted, &error));
	assert_string_equal(error, "device.limit");
	nothing_is_held();
	wanted = want(65 * CHUNK);
	assert_null(spill_place_movable.make(&wanted, &error));
	assert_ptr_equal(error, fake_vendor_backend.error_name(fake_vendor_backend.out_of_memory));
	nothing_is_held();
	wanted = want(UINT64_MAX);
	assert_null(spill_place_movable.make(&wanted, &error));
	assert_string_equal(error, "not supported by the device");
	/* What is there already counts. */
	struct spill_chunked *made = make(2 * CHUNK);
	wanted = want(CHUNK + 1);
	wanted.device_limit = 3 * CHUNK;
	assert_null(spill_place_movable.make(&wanted, &error));
	assert_string_equal(error, "device.limit");
	wanted.bytes = CHUNK;
	struct spill_placement *other = spill_place_movable.make(&wanted, &error);
	assert_non_null(other);
	spill_placement_release(other, false);
	spill_placement_release(&made->base, false);
	nothing_is_held();
}

TEST(a_failing_call_leaves_nothing)
{
	static const struct spill_place_ops *const places[] = {&spill_place_movable, &spill_place_split};
	for (size_t place = 0; place < 2; place++) {
		unsigned failures = 0;
		for (unsigned nth = 1; nth <= 12; nth++) {
			const char *error = NULL;
			struct spill_place_request wanted = want(4 * CHUNK);
			wanted.device_room = 2 * CHUNK;
			fake_vendor_fail(nth, nth + 1);
			struct spill_placement *made = places[place]->make(&wanted, &error);
			fake_vendor_fail(0, 0);
			failures += !made;
			if (made)
				assert_int_equal(made->held.device + made->held.host, 4 * CHUNK);
			else
				assert_ptr_equal(error, fake_vendor_backend.error_name(FAKE_OUT_OF_MEMORY));
			spill_placement_release(made, false);
			nothing_is_held();
		}
		assert_true(failures >= 5);
	}
}

TEST(split_is_chunked_too)
{
	const char *error = NULL;
	struct spill_place_request wanted = want(4 * CHUNK);
	wanted.device_room = CHUNK + FAKE_SMALL_UNIT;
	struct spill_chunked *made = spill_chunked_of(spill_place_split.make(&wanted, &error));
	assert_non_null(made);
	assert_int_equal(made->count, 5); /* a chunk and a granule here, two chunks and the rest there */
	for (unsigned i = 0; i < made->count; i++)
		assert_int_equal(made->chunks[i].on_host, i >= 2);
	spill_placement_release(&made->base, false);
	nothing_is_held();
	struct spill_placement host = {.ops = &spill_place_host};
	assert_null(spill_chunked_of(NULL));
	assert_null(spill_chunked_of(&host));
}

/* HIP's reset of a device ends its chunks. Another allocation may have the addresses by then. */
TEST(what_ended_with_its_context_is_not_released_again)
{
	struct spill_vendor_vmm vmm = *fake_vendor_backend.vmm;
	struct spill_backend backend = fake_vendor_backend;
	backend.vmm = &vmm;
	for (int outlive = 0; outlive < 2; outlive++) {
		struct spill_place_request wanted = want(3 * CHUNK);
		const char *error = NULL;
		vmm.outlive_contexts = outlive;
		wanted.backend = &backend;
		wanted.device_room = CHUNK;
		struct spill_placement *made = spill_place_split.make(&wanted, &error);
		assert_non_null(made);
		unsigned alive = fake_vendor_alive(), calls = fake_vendor.calls;
		spill_chunked_release(made, true);
		assert_int_equal(fake_vendor_alive(), outlive ? 0 : alive);
		assert_int_equal(fake_vendor.calls == calls, !outlive);
		assert_int_equal(spill_account_device_held(0) + spill_account_host_held(), 0);
		fake_vendor_reset_mover(64 * CHUNK);
	}
}

static int recommend(int device, uint64_t *bytes)
{
	*bytes = 2 * FAKE_SMALL_UNIT;
	return 0;
}

TEST(the_recommended_granularity_counts)
{
	struct spill_vendor_vmm vmm = *fake_vendor_backend.vmm;
	struct spill_backend backend = fake_vendor_backend;
	struct spill_place_request wanted = want(1);
	const char *error = NULL;
	vmm.granularity = recommend;
	backend.vmm = &vmm;
	wanted.backend = &backend;
	struct spill_placement *made = spill_place_split.make(&wanted, &error);
	assert_non_null(made);
	assert_int_equal(spill_chunked_of(made)->range, 2 * FAKE_SMALL_UNIT);
	spill_placement_release(made, false);
	nothing_is_held();
}

static bool trial_works;

static bool works(int device, uint64_t unit)
{
	assert_int_equal(unit, FAKE_SMALL_UNIT);
	return trial_works;
}

/* A trial would break a capture. */
TEST(chunks_are_tried_where_the_vendor_wants_it)
{
	struct spill_vendor_vmm vmm = *fake_vendor_backend.vmm;
	struct spill_backend backend = fake_vendor_backend;
	struct spill_place_request wanted = want(CHUNK);
	const char *error = NULL;
	vmm.works = works;
	backend.vmm = &vmm;
	wanted.backend = &backend;
	assert_null(spill_place_split.make(&wanted, &error));
	assert_string_equal(error, "a trial of chunks did not work");
	nothing_is_held();
	trial_works = true;
	struct spill_placement *made = spill_place_split.make(&wanted, &error);
	assert_non_null(made);
	spill_placement_release(made, false);
	set_capturing(true);
	assert_null(spill_place_split.make(&wanted, &error));
	set_capturing(false);
	nothing_is_held();
}

/* Oldest first; what has left is not met, whoever walks. */
TEST(the_list_is_in_the_order_of_making)
{
	struct spill_chunked *made[4];
	assert_false(spill_chunked_any());
	for (unsigned i = 0; i < 4; i++) {
		made[i] = make(CHUNK);
		spill_chunked_enlist(made[i]);
	}
	assert_true(spill_chunked_any());
	spill_chunked_delist(made[1]);
	spill_chunked_delist(made[1]); /* once more harms nothing */
	assert_true(spill_mover_trylock());
	assert_false(spill_mover_trylock());
	assert_ptr_equal(spill_chunked_next(NULL), made[0]);
	assert_ptr_equal(spill_chunked_next(made[0]), made[2]);
	assert_ptr_equal(spill_chunked_next(made[2]), made[3]);
	assert_null(spill_chunked_next(made[3]));
	spill_mover_unlock();
	spill_chunked_enlist(made[1]);
	assert_ptr_equal(spill_chunked_next(made[3]), made[1]);
	for (unsigned i = 0; i < 4; i++)
		spill_placement_release(&made[i]->base, false);
	assert_null(spill_chunked_next(NULL));
	assert_false(spill_chunked_any());
	nothing_is_held();
}

TEST(the_one_that_is_exported_is_pinned)
{
	struct spill_chunked *first = make(2 * CHUNK), *second = make(2 * CHUNK);
	spill_chunked_enlist(first);
	spill_chunked_enlist(second);
	spill_unpark_pin_at(second->base.ptr - 1);
	spill_unpark_pin_at(second->base.ptr + second->range);
	assert_false(first->pinned || second->pinned);
	spill_unpark_pin_at(second->base.ptr + second->range - 1);
	assert_true(!first->pinned && second->pinned);
	spill_unpark_pin_at(first->base.ptr);
	assert_true(first->pinned);
	struct spill_chunked *third = make(2 * CHUNK);
	spill_chunked_enlist(third);
	assert_int_equal(spill_chunked_on_device(0), third->range);
	spill_unpark_pin(third);
	assert_true(third->pinned);
	assert_int_equal(spill_chunked_on_device(0), 0);
	spill_placement_release(&third->base, false);
	spill_placement_release(&first->base, false);
	spill_placement_release(&second->base, false);
	nothing_is_held();
}

/* Charges go with handles; what the placement holds follows, and the ledger is told. */
TEST(a_moved_chunk_is_held_elsewhere)
{
	struct spill_chunked *made = make(2 * CHUNK + 1);
	uint64_t handle, order = 0;
	struct spill_level level;
	struct spill_allocation entry = {.backend = &fake_vendor_backend,
	                                 .ptr = made->base.ptr,
	                                 .bytes = made->base.bytes,
	                                 .held = made->base.held,
	                                 .placement = &made->base};
	struct spill_totals totals;
	assert_true(spill_ledger_add(&entry));
	uint64_t old = made->chunks[2].handle;
	fake_vendor_backend.physical->create(0, true, FAKE_SMALL_UNIT, &handle);
	fake_vendor_backend.vmm->unmap(spill_chunked_address(made, 2), FAKE_SMALL_UNIT);
	fake_vendor_backend.vmm->map(spill_chunked_address(made, 2), FAKE_SMALL_UNIT, handle);
	spill_account_host_add(FAKE_SMALL_UNIT);
	spill_mover_lock();
	spill_chunked_moved(made, 2, handle);
	spill_mover_unlock();
	assert_true(made->chunks[2].on_host && made->chunks[2].handle == handle);
	assert_int_equal(made->base.held.device, 2 * CHUNK);
	assert_int_equal(made->base.held.host, FAKE_SMALL_UNIT);
	assert_true(spill_ledger_moved(made->base.ptr, entry.seq, &made->base.held, &order, &level));
	spill_ledger_totals(&totals);
	assert_int_equal(totals.live.device, 2 * CHUNK);
	assert_int_equal(totals.live.host, FAKE_SMALL_UNIT);
	fake_vendor_backend.physical->release(old);
	spill_account_device_return(0, FAKE_SMALL_UNIT);
	spill_ledger_end(spill_ledger_take(made->base.ptr));
	spill_placement_release(&made->base, false);
	nothing_is_held();
}

/* A pool's blocks, each larger than the last: all but the newest are dead cache; another run's are not. */
TEST(older_blocks_of_a_growing_pool_are_dead)
{
	struct spill_chunked *blocks[5];
	for (unsigned i = 0; i < 5; i++) {
		blocks[i] = make((10 + i) * FAKE_SMALL_UNIT);
		blocks[i]->run = i == 1 ? 2 : 1;
		blocks[i]->grows = i >= 3;
		spill_chunked_enlist(blocks[i]);
		assert_false(blocks[i]->dead);
		assert_int_equal(blocks[0]->dead, i >= 3);
	}
	assert_true(blocks[2]->dead && blocks[3]->dead);
	assert_false(blocks[1]->dead || blocks[4]->dead);
	for (unsigned i = 0; i < 5; i++)
		spill_placement_release(&blocks[i]->base, false);
	nothing_is_held();
}

/* It came when nothing could move; once all of it is on the device it has what it was owed, wherever it goes then. */
TEST(what_is_owed_is_owed_once)
{
	static const struct {
		unsigned chunk;
		bool owed; /* after the chunk has moved to the other side */
	} moves[] = {{1, true}, {0, true}, {1, false}, {0, false}, {0, false}};
	struct spill_chunked *made = make(2 * CHUNK);
	spill_mover_lock();
	spill_chunked_moved(made, 0, made->chunks[0].handle);
	made->owed = true;
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		spill_chunked_moved(made, moves[i].chunk, made->chunks[moves[i].chunk].handle);
		assert_int_equal(made->owed, moves[i].owed);
	}
	spill_mover_unlock();
	spill_placement_release(&made->base, false);
	nothing_is_held();
}

/* Which of the allocation's chunks are told as being on host, a bit each; -1: none is told at all. */
static int told_on_host(const struct spill_chunked *made)
{
	struct spill_chunk_map_entry granule;
	int hosts = 0, there = 0;
	for (unsigned i = 0; i < made->count; i++) {
		uint64_t va = spill_chunked_address(made, i);
		if (!spill_chunk_map_of(va, &granule))
			continue;
		there++;
		hosts |= granule.on_host << i;
		assert_int_equal(granule.key, va / SPILL_CHUNK_MAP_UNIT);
		assert_int_equal(granule.more, i + 1 < made->count);
	}
	assert_true(there == 0 || (unsigned)there == made->count);
	return there ? hosts : -1;
}

static void move(struct spill_chunked *made, unsigned chunk)
{
	spill_mover_lock();
	spill_chunked_moved(made, chunk, made->chunks[chunk].handle);
	spill_mover_unlock();
}

/* Launches find what may be moved, where it is; what is pinned or leaves is nobody's business. */
TEST(what_is_listed_is_told_to_launches)
{
	fake_vendor_reset_mover(64 * SPILL_CHUNK_MAP_UNIT);
	policy.movable_chunk.value = SPILL_CHUNK_MAP_UNIT;
	struct spill_chunked *made = make(3 * SPILL_CHUNK_MAP_UNIT);
	assert_int_equal(told_on_host(made), -1);
	move(made, 0); /* not listed: nobody is told */
	assert_int_equal(told_on_host(made), -1);
	assert_int_equal(spill_chunked_on_host(), 0);
	spill_chunked_enlist(made);
	assert_int_equal(told_on_host(made), 1);
	assert_int_equal(spill_chunked_on_host(), SPILL_CHUNK_MAP_UNIT);
	move(made, 2);
	assert_int_equal(told_on_host(made), 5);
	assert_int_equal(spill_chunked_on_host(), 2 * SPILL_CHUNK_MAP_UNIT);
	move(made, 0);
	assert_int_equal(told_on_host(made), 4);
	spill_chunked_delist(made);
	assert_int_equal(told_on_host(made), -1);
	assert_int_equal(spill_chunked_on_host(), 0);
	spill_chunked_enlist(made);
	assert_int_equal(told_on_host(made), 4);
	spill_unpark_pin_at(made->base.ptr);
	spill_unpark_pin_at(made->base.ptr);
	assert_int_equal(told_on_host(made), -1);
	assert_int_equal(spill_chunked_on_host(), 0);
	spill_chunked_delist(made);
	spill_chunked_enlist(made);
	assert_int_equal(told_on_host(made), -1);
	spill_placement_release(&made->base, false);
	assert_int_equal(spill_chunked_on_host(), 0);
}

static unsigned changes;

static void count_change(void)
{
	changes++;
}

/* Each change once; the observer sees the sums behind it, and those of unknown devices are no other's. */
TEST(changes_of_movable_bytes_are_told)
{
	static const int devices[] = {0, SPILL_DEVICES - 1, -1};
	for (unsigned i = 0; i < 3; i++) {
		struct spill_chunked *made = make(3 * CHUNK);
		int other = i ? 0 : 1;
		made->base.device = devices[i];
		changes = 0;
		spill_chunked_observe(count_change);
		move(made, 1);
		assert_int_equal(changes, 0); /* not listed */
		spill_chunked_enlist(made);
		assert_int_equal(changes, 1);
		assert_int_equal(spill_chunked_on_device(devices[i]), 2 * CHUNK);
		assert_int_equal(spill_chunked_on_device(other), 0);
		move(made, 1);
		assert_int_equal(changes, 2);
		assert_int_equal(spill_chunked_on_device(devices[i]), 3 * CHUNK);
		spill_chunked_delist(made);
		assert_int_equal(changes, 3);
		assert_int_equal(spill_chunked_on_device(devices[i]), 0);
		spill_chunked_delist(made);
		spill_chunked_observe(NULL);
		spill_chunked_enlist(made);
		assert_int_equal(changes, 3);
		spill_chunked_delist(made);
		made->base.device = 0;
		spill_placement_release(&made->base, false);
	}
	nothing_is_held();
}

TEST(exchanges_follow_until_a_time)
{
	fake_clock_use(100);
	assert_false(spill_chunked_is_held());
	spill_chunked_hold(200);
	assert_true(spill_chunked_is_held());
	fake_clock.ns = 199;
	assert_true(spill_chunked_is_held());
	fake_clock.ns = 200;
	assert_false(spill_chunked_is_held());
	spill_chunked_hold(300);
	assert_true(spill_chunked_is_held());
	spill_chunked_hold(0);
	assert_false(spill_chunked_is_held());
	spill_clock_use(NULL);
}

/* A buffer of the program reaches from one set into the next, which it mapped beside it. */
TEST(a_set_continues_in_the_set_beside_it)
{
	struct spill_chunk_map_entry entry;
	fake_vendor_reset_mover(64 * SPILL_CHUNK_MAP_UNIT);
	policy.movable_chunk.value = SPILL_CHUNK_MAP_UNIT;
	struct spill_chunked *made = make(SPILL_CHUNK_MAP_UNIT);
	made->set = true;
	spill_chunked_enlist(made);
	assert_true(spill_chunk_map_of(made->base.ptr, &entry));
	assert_true(entry.more);
	spill_chunked_delist(made);
	made->set = false;
	spill_placement_release(&made->base, false);
}

/* The program maps the memory of a set, at addresses of its own. */
TEST(a_set_is_not_mapped_by_us)
{
	struct spill_chunked *set = calloc(1, sizeof(*set) + 2 * sizeof(set->chunks[0]));
	assert_non_null(set);
	set->base.backend = &fake_vendor_backend;
	set->base.ptr = CHUNK;
	set->chunk_bytes = CHUNK;
	set->range = 2 * CHUNK;
	set->set = true;
	assert_int_equal(spill_chunked_extend(set, false, 2 * CHUNK), 0);
	assert_int_equal(set->count, 2);
	assert_int_equal(fake_vendor.handles, 2);
	assert_int_equal(spill_chunked_allow(set), 0);
	assert_int_equal(fake_vendor.mappings + fake_vendor.broken, 0);
	for (unsigned i = 0; i < set->count; i++)
		fake_vendor_backend.physical->release(set->chunks[i].handle);
	free(set);
	nothing_is_held();
}

static int cancel_state(void)
{
	int now;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &now);
	pthread_setcancelstate(now, NULL);
	return now;
}

static void *other_thread(void *argument)
{
	bool *free = argument;
	bool right = !spill_mover_is_mine() && cancel_state() == PTHREAD_CANCEL_ENABLE &&
	             spill_mover_trylock() == *free && spill_mover_is_mine() == *free &&
	             cancel_state() == (*free ? PTHREAD_CANCEL_DISABLE : PTHREAD_CANCEL_ENABLE);
	if (*free)
		spill_mover_unlock();
	return right && cancel_state() == PTHREAD_CANCEL_ENABLE ? argument : NULL;
}

static void another_thread_finds_it(bool free)
{
	pthread_t thread;
	void *right;
	assert_int_equal(pthread_create(&thread, NULL, other_thread, &free), 0);
	assert_int_equal(pthread_join(thread, &right), 0);
	assert_non_null(right);
}

/* A thread that ended with it would take it along; and a signal handler asks whether it is its own thread's. */
TEST(who_holds_the_mover_is_not_cancelled)
{
	static const int before[] = {PTHREAD_CANCEL_ENABLE, PTHREAD_CANCEL_DISABLE};
	for (unsigned i = 0; i < 4; i++) {
		pthread_setcancelstate(before[i % 2], NULL);
		another_thread_finds_it(true);
		if (i < 2)
			spill_mover_lock();
		else
			assert_true(spill_mover_trylock());
		assert_int_equal(cancel_state(), PTHREAD_CANCEL_DISABLE);
		assert_true(spill_mover_is_mine());
		another_thread_finds_it(false);
		spill_mover_unlock();
		assert_false(spill_mover_is_mine());
		assert_int_equal(cancel_state(), before[i % 2]);
	}
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
}

/* Also the bytes of devices that a process cannot use. */
TEST(a_child_has_no_movable_memory)
{
	forgotten_begin();
	struct spill_chunked *made = make(3 * CHUNK);
	forgotten_end();
	spill_chunked_enlist(made);
	move(made, 1);
	assert_true(spill_chunked_any());
	assert_int_equal(spill_chunked_on_host(), CHUNK);
	assert_int_equal(spill_chunked_on_device(0), 2 * CHUNK);
	spill_fork_lock_take(&spill_chunked_fork_lock);
	spill_fork_lock_release(&spill_chunked_fork_lock, true);
	assert_false(spill_chunked_any());
	assert_null(spill_chunked_next(NULL));
	assert_int_equal(spill_chunked_on_host(), 0);
	assert_int_equal(spill_chunked_on_device(0), 0);
	/* The parent's placement is left alone. What the child makes is counted from 0. */
	made = make(2 * CHUNK);
	spill_chunked_enlist(made);
	assert_int_equal(spill_chunked_on_device(0), 2 * CHUNK);
	spill_placement_release(&made->base, false);
	assert_int_equal(spill_chunked_on_device(0), 0);
	assert_false(spill_chunked_any());
}

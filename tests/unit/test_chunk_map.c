/*
 * Which chunk an address belongs to: what is set is found in every granule, whatever begins meanwhile.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "chunk_map.h"

#define BASE (5ull << 40)
#define END (1ull << 47)

static struct spill_granule at(uint64_t address)
{
	struct spill_granule granule;
	memset(&granule, 0xff, sizeof(granule));
	assert_true(spill_chunk_map_of(address, &granule));
	return granule;
}

static bool nothing_at(uint64_t address)
{
	struct spill_granule granule;
	return !spill_chunk_map_of(address, &granule);
}

static void every_granule_tells_its_chunk(void **state)
{
	assert_true(nothing_at(BASE));
	assert_true(spill_chunk_map_set(BASE, 3 * SPILL_GRANULE, true, true));
	for (unsigned i = 0; i < 3; i++) {
		struct spill_granule granule = at(BASE + i * SPILL_GRANULE + 12345);
		assert_int_equal(granule.key, BASE / SPILL_GRANULE);
		assert_int_equal(granule.count, 3);
		assert_true(granule.on_host && granule.more && !granule.begun && !granule.inside);
	}
	assert_true(nothing_at(BASE - 1) && nothing_at(BASE + 3 * SPILL_GRANULE));
	assert_true(spill_chunk_map_set(BASE, 3 * SPILL_GRANULE, false, false));
	assert_true(!at(BASE + 3 * SPILL_GRANULE - 1).on_host && !at(BASE).more);
	spill_chunk_map_clear(BASE, 3 * SPILL_GRANULE);
	for (unsigned i = 0; i < 3; i++)
		assert_true(nothing_at(BASE + i * SPILL_GRANULE));
}

static void what_is_no_granule_is_not_kept(void **state)
{
	assert_false(spill_chunk_map_set(BASE + 4096, SPILL_GRANULE, true, false));
	assert_false(spill_chunk_map_set(BASE, SPILL_GRANULE + 4096, true, false));
	assert_false(spill_chunk_map_set(BASE, 0, true, false));
	assert_false(spill_chunk_map_set(END, SPILL_GRANULE, true, false));
	assert_false(spill_chunk_map_set(END + SPILL_GRANULE, SPILL_GRANULE, true, false));
	assert_false(spill_chunk_map_set(END - SPILL_GRANULE, 2 * SPILL_GRANULE, true, false));
	assert_false(spill_chunk_map_set(BASE, 0 - SPILL_GRANULE, true, false));
	assert_true(nothing_at(BASE) && nothing_at(END) && nothing_at(UINT64_MAX) && nothing_at(0));
	spill_chunk_map_clear(END, SPILL_GRANULE);
	spill_chunk_map_begins(UINT64_MAX);
	assert_true(spill_chunk_map_set(END - SPILL_GRANULE, SPILL_GRANULE, true, false));
	assert_true(at(END - 1).there);
	spill_chunk_map_clear(END - SPILL_GRANULE, SPILL_GRANULE);
}

/* Two leaves. */
static void a_chunk_may_cross_a_leaf(void **state)
{
	uint64_t edge = BASE + SPILL_GRANULE_LEAF * SPILL_GRANULE;
	assert_true(spill_chunk_map_set(edge - SPILL_GRANULE, 2 * SPILL_GRANULE, true, false));
	assert_int_equal(at(edge).key, (edge - SPILL_GRANULE) / SPILL_GRANULE);
	assert_int_equal(at(edge - 1).key, at(edge).key);
	spill_chunk_map_clear(edge - SPILL_GRANULE, 2 * SPILL_GRANULE);
	assert_true(nothing_at(edge) && nothing_at(edge - 1));
}

static void begins_are_kept_until_the_chunk_goes(void **state)
{
	spill_chunk_map_begins(BASE); /* nobody's */
	assert_true(spill_chunk_map_set(BASE, 4 * SPILL_GRANULE, false, false));
	assert_false(at(BASE).begun);
	spill_chunk_map_begins(BASE + 2 * SPILL_GRANULE + 5);
	assert_true(at(BASE).inside && !at(BASE).begun && at(BASE + 2 * SPILL_GRANULE).begun);
	assert_false(at(BASE + SPILL_GRANULE).begun);
	spill_chunk_map_begins(BASE);
	assert_true(at(BASE).begun);
	assert_true(spill_chunk_map_set(BASE, 4 * SPILL_GRANULE, true, true));
	assert_true(at(BASE).begun && at(BASE).inside && at(BASE).on_host && at(BASE).more);
	assert_true(at(BASE + 2 * SPILL_GRANULE).begun && !at(BASE + 3 * SPILL_GRANULE).begun);
	/* Other chunks at the same addresses know nothing of it. */
	assert_true(spill_chunk_map_set(BASE + SPILL_GRANULE, 3 * SPILL_GRANULE, true, true));
	assert_false(at(BASE + 2 * SPILL_GRANULE).begun);
	spill_chunk_map_clear(BASE, 4 * SPILL_GRANULE);
	assert_true(spill_chunk_map_set(BASE, 4 * SPILL_GRANULE, true, true));
	assert_false(at(BASE).begun || at(BASE).inside);
	/* Within the first granule, behind its first byte: no begin of the chunk. */
	spill_chunk_map_begins(BASE + 512);
	assert_true(!at(BASE).begun && at(BASE).inside);
	spill_chunk_map_clear(BASE, 4 * SPILL_GRANULE);
}

#define THREADS 3
#define ROUNDS 20000
#define LEAVES 64
static pthread_barrier_t barrier;

/* Each has chunks of its own in leaves that all of them make; one is moved to and fro while the next thread's begins in it. */
static void *works(void *argument)
{
	uint64_t self = (uintptr_t)argument, leaf = SPILL_GRANULE_LEAF * SPILL_GRANULE;
	uint64_t mine = 2 * BASE + self * 4 * SPILL_GRANULE;
	struct spill_granule granule;
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < LEAVES; i++)
		if (!spill_chunk_map_set(mine + i * leaf, 2 * SPILL_GRANULE, true, false))
			return NULL;
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t other = 2 * BASE + (self + 1) % THREADS * 4 * SPILL_GRANULE + i % LEAVES * leaf;
		spill_chunk_map_set(mine + i % LEAVES * leaf, 2 * SPILL_GRANULE, i % 2, false);
		spill_chunk_map_begins(other);
		if (!spill_chunk_map_of(other, &granule) || !granule.begun ||
		    granule.key != other / SPILL_GRANULE)
			return NULL;
	}
	return argument ? argument : &barrier;
}

static void threads_lose_nothing(void **state)
{
	pthread_t threads[THREADS];
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (uintptr_t i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, works, (void *)i), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		void *right;
		pthread_join(threads[i], &right);
		assert_non_null(right);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_granule_tells_its_chunk),
	    cmocka_unit_test(what_is_no_granule_is_not_kept),
	    cmocka_unit_test(a_chunk_may_cross_a_leaf),
	    cmocka_unit_test(begins_are_kept_until_the_chunk_goes),
	    cmocka_unit_test(threads_lose_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

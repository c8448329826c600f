/*
 * Which chunk an address belongs to: what is set is found in every granule, whatever begins meanwhile.
 */
#include <pthread.h>
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "chunk_map.h"
#include "fake_libc.h"

#define BASE (5ull << 40)
#define END (1ull << 48) /* of a program's addresses on aarch64; on x86-64 they are fewer */

static struct spill_chunk_map_entry at(uint64_t address)
{
	struct spill_chunk_map_entry granule;
	memset(&granule, 0xff, sizeof(granule));
	assert_true(spill_chunk_map_of(address, &granule));
	return granule;
}

static bool nothing_at(uint64_t address)
{
	struct spill_chunk_map_entry granule;
	return !spill_chunk_map_of(address, &granule);
}

TEST(every_granule_tells_its_chunk)
{
	assert_true(nothing_at(BASE));
	assert_true(spill_chunk_map_set(BASE, 3 * SPILL_CHUNK_MAP_UNIT, true, true));
	for (unsigned i = 0; i < 3; i++) {
		struct spill_chunk_map_entry granule = at(BASE + i * SPILL_CHUNK_MAP_UNIT + 12345);
		assert_int_equal(granule.key, BASE / SPILL_CHUNK_MAP_UNIT);
		assert_int_equal(granule.count, 3);
		assert_true(granule.on_host && granule.more && !granule.begun && !granule.inside);
	}
	assert_true(nothing_at(BASE - 1) && nothing_at(BASE + 3 * SPILL_CHUNK_MAP_UNIT));
	assert_true(spill_chunk_map_set(BASE, 3 * SPILL_CHUNK_MAP_UNIT, false, false));
	assert_true(!at(BASE + 3 * SPILL_CHUNK_MAP_UNIT - 1).on_host && !at(BASE).more);
	spill_chunk_map_clear(BASE, 3 * SPILL_CHUNK_MAP_UNIT);
	for (unsigned i = 0; i < 3; i++)
		assert_true(nothing_at(BASE + i * SPILL_CHUNK_MAP_UNIT));
}

TEST(what_is_no_granule_is_not_kept)
{
	assert_false(spill_chunk_map_set(BASE + 4096, SPILL_CHUNK_MAP_UNIT, true, false));
	assert_false(spill_chunk_map_set(BASE, SPILL_CHUNK_MAP_UNIT + 4096, true, false));
	assert_false(spill_chunk_map_set(BASE, 0, true, false));
	assert_false(spill_chunk_map_set(END, SPILL_CHUNK_MAP_UNIT, true, false));
	assert_false(spill_chunk_map_set(END + SPILL_CHUNK_MAP_UNIT, SPILL_CHUNK_MAP_UNIT, true, false));
	assert_false(spill_chunk_map_set(END - SPILL_CHUNK_MAP_UNIT, 2 * SPILL_CHUNK_MAP_UNIT, true, false));
	assert_false(spill_chunk_map_set(BASE, 0 - SPILL_CHUNK_MAP_UNIT, true, false));
	assert_true(nothing_at(BASE) && nothing_at(END) && nothing_at(UINT64_MAX) && nothing_at(0));
	spill_chunk_map_clear(END, SPILL_CHUNK_MAP_UNIT);
	spill_chunk_map_buffer(1ull << 60, SPILL_CHUNK_MAP_UNIT);
	spill_chunk_map_begins(UINT64_MAX);
	assert_true(spill_chunk_map_set(END - SPILL_CHUNK_MAP_UNIT, SPILL_CHUNK_MAP_UNIT, true, false));
	assert_true(at(END - 1).present);
	assert_true(nothing_at(END / 2 - 1) && nothing_at(END / 2));
	spill_chunk_map_clear(END - SPILL_CHUNK_MAP_UNIT, SPILL_CHUNK_MAP_UNIT);
}

/* The second leaf of two is missing. The first stays, and serves later. */
TEST(without_memory_a_chunk_is_not_kept)
{
	uint64_t unit = SPILL_CHUNK_MAP_UNIT, leaf = SPILL_CHUNK_MAP_LEAF_ENTRIES * unit,
	         edge = BASE + 7 * leaf;
	fake_libc_fail(FAKE_mmap64, 2, 1, ENOMEM);
	errno = 5;
	assert_false(spill_chunk_map_set(edge - unit, 2 * unit, true, false));
	assert_int_equal(errno, 5);
	assert_true(nothing_at(edge - unit) && nothing_at(edge));
	fake_libc_reset();
	assert_true(spill_chunk_map_set(edge - unit, 2 * unit, true, false));
	assert_int_equal(fake_libc[FAKE_mmap64].calls, 1);
	/* To the end of a leaf: the next one is not needed. */
	assert_true(spill_chunk_map_set(edge + 2 * leaf - unit, unit, true, false));
	assert_int_equal(fake_libc[FAKE_mmap64].calls, 2);
	spill_chunk_map_clear(edge + 2 * leaf - unit, unit);
	assert_true(at(edge - unit).present && at(edge).present);
	spill_chunk_map_clear(edge - unit, 2 * unit);
}

/* Two leaves. */
TEST(a_chunk_may_cross_a_leaf)
{
	uint64_t edge = BASE + SPILL_CHUNK_MAP_LEAF_ENTRIES * SPILL_CHUNK_MAP_UNIT;
	assert_true(spill_chunk_map_set(edge - SPILL_CHUNK_MAP_UNIT, 2 * SPILL_CHUNK_MAP_UNIT, true, false));
	assert_int_equal(at(edge).key, (edge - SPILL_CHUNK_MAP_UNIT) / SPILL_CHUNK_MAP_UNIT);
	assert_int_equal(at(edge - 1).key, at(edge).key);
	spill_chunk_map_clear(edge - SPILL_CHUNK_MAP_UNIT, 2 * SPILL_CHUNK_MAP_UNIT);
	assert_true(nothing_at(edge) && nothing_at(edge - 1));
}

TEST(begins_are_kept_until_the_chunk_goes)
{
	spill_chunk_map_begins(BASE); /* nobody's */
	assert_true(spill_chunk_map_set(BASE, 4 * SPILL_CHUNK_MAP_UNIT, false, false));
	assert_false(at(BASE).begun);
	spill_chunk_map_begins(BASE + 2 * SPILL_CHUNK_MAP_UNIT + 5);
	assert_true(at(BASE).inside && !at(BASE).begun && at(BASE + 2 * SPILL_CHUNK_MAP_UNIT).begun);
	assert_false(at(BASE + SPILL_CHUNK_MAP_UNIT).begun);
	spill_chunk_map_begins(BASE);
	assert_true(at(BASE).begun);
	assert_true(spill_chunk_map_set(BASE, 4 * SPILL_CHUNK_MAP_UNIT, true, true));
	assert_true(at(BASE).begun && at(BASE).inside && at(BASE).on_host && at(BASE).more);
	assert_true(at(BASE + 2 * SPILL_CHUNK_MAP_UNIT).begun && !at(BASE + 3 * SPILL_CHUNK_MAP_UNIT).begun);
	/* Other chunks at the same addresses know nothing of it. */
	assert_true(spill_chunk_map_set(BASE + SPILL_CHUNK_MAP_UNIT, 3 * SPILL_CHUNK_MAP_UNIT, true, true));
	assert_false(at(BASE + 2 * SPILL_CHUNK_MAP_UNIT).begun);
	spill_chunk_map_clear(BASE, 4 * SPILL_CHUNK_MAP_UNIT);
	assert_true(spill_chunk_map_set(BASE, 4 * SPILL_CHUNK_MAP_UNIT, true, true));
	assert_false(at(BASE).begun || at(BASE).inside);
	/* Within the first granule, behind its first byte: no begin of the chunk. */
	spill_chunk_map_begins(BASE + 512);
	assert_true(!at(BASE).begun && at(BASE).inside);
	spill_chunk_map_clear(BASE, 4 * SPILL_CHUNK_MAP_UNIT);
}

#define THREADS 3
#define ROUNDS 20000
#define LEAVES 64
static pthread_barrier_t barrier;

/* Each has chunks of its own in leaves that all of them make; one is moved to and fro while the next thread's begins in it. */
static void *works(void *argument)
{
	uint64_t self = (uintptr_t)argument, leaf = SPILL_CHUNK_MAP_LEAF_ENTRIES * SPILL_CHUNK_MAP_UNIT;
	uint64_t mine = 2 * BASE + self * 4 * SPILL_CHUNK_MAP_UNIT;
	struct spill_chunk_map_entry granule;
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < LEAVES; i++)
		if (!spill_chunk_map_set(mine + i * leaf, 2 * SPILL_CHUNK_MAP_UNIT, true, false))
			return NULL;
	pthread_barrier_wait(&barrier);
	for (unsigned i = 0; i < ROUNDS; i++) {
		uint64_t other =
		    2 * BASE + (self + 1) % THREADS * 4 * SPILL_CHUNK_MAP_UNIT + i % LEAVES * leaf;
		spill_chunk_map_set(mine + i % LEAVES * leaf, 2 * SPILL_CHUNK_MAP_UNIT, i % 2, false);
		spill_chunk_map_begins(other);
		if (!spill_chunk_map_of(other, &granule) || !granule.begun ||
		    granule.key != other / SPILL_CHUNK_MAP_UNIT)
			return NULL;
	}
	return argument ? argument : &barrier;
}

/* What is seen of a buffer in the units of two chunks of four: . no begin, b one. */
static void begins_are(uint64_t base, const char *wanted)
{
	char seen[9] = {0};
	for (unsigned i = 0; i < 8; i++)
		seen[i] = at(base + i * SPILL_CHUNK_MAP_UNIT).begun ? 'b' : '.';
	assert_string_equal(seen, wanted);
}

/* An allocator of ours knows its buffers: what was noted of earlier ones in the same place is gone. */
TEST(a_buffer_replaces_the_begins_within)
{
	const uint64_t base = BASE + (1ull << 36), unit = SPILL_CHUNK_MAP_UNIT, second = base + 4 * unit;
	assert_true(spill_chunk_map_set(base, 4 * unit, false, true));
	assert_true(spill_chunk_map_set(second, 4 * unit, false, false));
	assert_false(at(base).exact);
	for (unsigned i = 0; i < 8; i++)
		spill_chunk_map_begins(base + i * unit);
	begins_are(base, "bbbbbbbb");
	spill_chunk_map_buffer(base, 8 * unit);
	begins_are(base, "b.......");
	assert_true(at(base).exact && at(second).exact && !at(base).inside && !at(second).inside);
	spill_chunk_map_buffer(base, 5 * unit);
	begins_are(base, "b....b..");
	assert_true(!at(base).inside && at(second).inside);
	spill_chunk_map_buffer(base + 5 * unit, 3 * unit);
	begins_are(base, "b....b..");
	spill_chunk_map_buffer(base + unit + 512, 5 * unit);
	begins_are(base, "bb....b.");
	assert_true(at(base).inside && at(second).inside);
	/* A move keeps that. */
	assert_true(spill_chunk_map_set(base, 4 * unit, true, true));
	begins_are(base, "bb....b.");
	assert_true(at(base).exact && at(base).inside);
	/* Another chunk's begins are not known. */
	assert_true(spill_chunk_map_set(base + unit, 3 * unit, true, true));
	assert_false(at(base + unit).exact || at(base + 2 * unit).exact);
	spill_chunk_map_clear(base, 8 * unit);
	spill_chunk_map_buffer(base, 8 * unit);
	assert_true(nothing_at(base));
}

/* Nothing is known of what lies behind it, also not where that begins. */
TEST(the_first_buffer_of_a_chunk)
{
	const uint64_t base = BASE + (3ull << 36), unit = SPILL_CHUNK_MAP_UNIT;
	assert_true(spill_chunk_map_set(base, 4 * unit, false, true));
	assert_true(spill_chunk_map_set(base + 4 * unit, 4 * unit, false, false));
	spill_chunk_map_buffer(base, 2 * unit);
	begins_are(base, "b.......");
	assert_true(at(base).inside && at(base + unit).exact && !at(base + 2 * unit).exact);
	spill_chunk_map_buffer(base + 2 * unit, 2 * unit);
	begins_are(base, "b.b.....");
	assert_true(at(base).inside && !at(base + 4 * unit).exact && !at(base + 4 * unit).begun);
	/* It reaches to the end of the second one, and then not. */
	spill_chunk_map_buffer(base + 2 * unit + 512, 6 * unit - 512);
	begins_are(base, "b.b.....");
	assert_true(at(base).inside && !at(base + 4 * unit).inside);
	spill_chunk_map_buffer(base + 2 * unit + 512, 5 * unit);
	begins_are(base, "b.b....b");
	assert_true(at(base + 4 * unit).inside);
	/* A chunk that begins earlier has its flags in another unit. */
	assert_true(spill_chunk_map_set(base - unit, 2 * unit, false, false));
	assert_false(at(base).inside || at(base).begun || at(base).exact);
	spill_chunk_map_clear(base - unit, 2 * unit);
	spill_chunk_map_clear(base, 4 * unit);
	assert_true(at(base + 4 * unit).present); /* its neighbour stays */
	spill_chunk_map_clear(base + 4 * unit, 4 * unit);
}

TEST(a_chunk_of_the_most_units)
{
	const uint64_t bytes = ((1ull << 23) - 1) * SPILL_CHUNK_MAP_UNIT, base = 7ull << 44;
	assert_false(spill_chunk_map_set(base, bytes + SPILL_CHUNK_MAP_UNIT, false, false));
	assert_true(nothing_at(base));
	assert_true(spill_chunk_map_set(base, bytes, false, false));
	assert_int_equal(at(base + bytes - 1).count, (1u << 23) - 1);
	spill_chunk_map_clear(base, bytes);
	assert_true(nothing_at(base + bytes - 1));
}

TEST(threads_lose_nothing)
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

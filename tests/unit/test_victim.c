/* Who leaves the device first: the cases of shared/design/facts.md, and that the order is one. */
#define SETUP begin
#include "unit.h"

#include <stdlib.h>

#include "victim.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define MOST 64

static struct spill_victim list[MOST];
static unsigned count;

static int begin(void **state)
{
	count = 0;
	return 0;
}

static struct spill_victim *add(uint64_t bytes)
{
	list[count] =
	    (struct spill_victim){.priority = SPILL_PRIORITY_NORMAL, .bytes = bytes, .seq = count + 1};
	return &list[count++];
}

/* The seqs in the order in which they leave. */
static void leave_as(const uint64_t *seq)
{
	spill_victim_mark(list, count);
	qsort(list, count, sizeof(list[0]), spill_victim_compare);
	for (unsigned i = 0; i < count; i++)
		if (list[i].seq != seq[i]) // NOLINT(clang-analyzer-*): as long as the list
			fail_msg("place %u: #%d, expected #%d", i, (int)list[i].seq, (int)seq[i]);
	qsort(list, count, sizeof(list[0]), spill_victim_compare_back);
	for (unsigned i = 0; i < count; i++)
		assert_int_equal(list[i].seq, seq[count - 1 - i]);
}

/* llama.cpp: weights, KV cache, three compute buffers. Not the KV cache for the scratch pool's sake. */
TEST(weights_before_kv_cache_before_scratch)
{
	add(7 * GIB);
	add(2 * GIB);
	add(300 * MIB);
	add(20 * MIB);
	leave_as((const uint64_t[]){1, 2, 3, 4});
}

/* What was allocated last is hot, however large: the KV cache right after the weights. */
TEST(the_newest_is_the_last)
{
	add(2 * GIB);
	add(20 * MIB);
	add(7 * GIB);
	leave_as((const uint64_t[]){1, 2, 3});
}

/* The segments of PyTorch: exact sizes say nothing about heat, age does; but 2 MiB ones are not worth a move. */
TEST(segments_go_by_class_and_age)
{
	static const uint64_t mib[] = {20, 2, 22, 50, 30, 2, 36, 20};
	for (unsigned i = 0; i < sizeof(mib) / sizeof(mib[0]); i++)
		add(mib[i] * MIB);
	/* 32 to 63: #4, #7; 16 to 31: #1, #3, #5; 2: #2, #6; the newest: #8. */
	leave_as((const uint64_t[]){4, 7, 1, 3, 5, 2, 6, 8});
}

TEST(priority_comes_before_size)
{
	add(7 * GIB)->priority = SPILL_PRIORITY_HOT;
	add(2 * GIB);
	add(20 * MIB)->priority = SPILL_PRIORITY_COLD;
	add(2 * MIB)->priority = SPILL_PRIORITY_COLD;
	add(1 * GIB)->priority = SPILL_PRIORITY_HOT;
	add(20 * MIB);
	/* The newest of each priority is its last. */
	leave_as((const uint64_t[]){3, 4, 2, 6, 1, 5});
}

/* Of each priority, also where the newest is the largest. */
TEST(the_newest_of_each_priority_is_its_last)
{
	for (unsigned i = 0; i <= SPILL_PRIORITY_HOT; i++) {
		add(1 * GIB)->priority = (enum spill_priority)i;
		add(7 * GIB)->priority = (enum spill_priority)i;
	}
	leave_as((const uint64_t[]){1, 2, 3, 4, 5, 6});
}

TEST(dead_cache_comes_before_all)
{
	add(7 * GIB)->priority = SPILL_PRIORITY_COLD;
	add(100 * MIB)->dead = true;
	add(105 * MIB)->dead = true;
	add(200 * MIB)->dead = true;
	add(220 * MIB);
	leave_as((const uint64_t[]){4, 2, 3, 1, 5});
}

/* The last of a dead run is no newcomer: that is the newest of those that live. */
TEST(the_dead_are_no_newcomers)
{
	add(1 * GIB);
	add(2 * GIB);
	add(7 * GIB)->dead = true;
	leave_as((const uint64_t[]){3, 1, 2});
}

TEST(one_alone_and_none)
{
	spill_victim_mark(list, 0);
	add(0);
	leave_as((const uint64_t[]){1});
}

/* A mark of an earlier sort does not last. */
TEST(marks_are_made_anew)
{
	add(1 * GIB);
	add(1 * GIB);
	leave_as((const uint64_t[]){1, 2});
	count = 0;
	add(1 * GIB);
	count = 2; /* the other one is there, marked */
	list[1] = (struct spill_victim){
	    .priority = SPILL_PRIORITY_NORMAL, .bytes = 4 * GIB, .seq = 2, .newest = true};
	add(1 * GIB);
	leave_as((const uint64_t[]){2, 1, 3});
}

/* qsort needs it: antisymmetric, transitive, and no two different ones equal. */
TEST(it_is_a_total_order)
{
	static const uint64_t sizes[] = {0, 1, 2 * MIB, 3 * MIB, 4 * MIB, UINT64_MAX};
	for (unsigned i = 0; i < 48; i++) {
		struct spill_victim *one = add(sizes[i % 6]);
		one->priority = (enum spill_priority)(i / 6 % 3);
		one->dead = i % 5 == 0;
		one->newest = i % 7 == 0;
	}
	for (unsigned a = 0; a < count; a++)
		for (unsigned b = 0; b < count; b++) {
			int ab = spill_victim_compare(&list[a], &list[b]);
			assert_int_equal(ab == 0, a == b);
			assert_int_equal(ab<0, spill_victim_compare(&list[b], &list[a])> 0);
			for (unsigned c = 0; c < count && ab < 0; c++)
				if (spill_victim_compare(&list[b], &list[c]) < 0)
					assert_true(spill_victim_compare(&list[a], &list[c]) < 0);
		}
}

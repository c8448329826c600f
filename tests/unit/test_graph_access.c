/* The table of what executable graphs use (graph_access.h). Each case runs in a child of its own. */
#include "graph_access.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "childtest.h"
#include "fake_libc.h"
#include "heap.h"

#define EXEC(number) ((const void *)(uintptr_t)(0x1000 * (number)))

static const struct spill_graph_range range = {1, 8};

static void keep(unsigned number)
{
	spill_graph_access_keep(EXEC(number),
	                        &(struct spill_graph_access){.site = number, .count = 1, .ranges = &range});
}

static void note_site(void *closure, const struct spill_graph_access *access)
{
	CHECK(access->count == 1 && access->ranges[0].va == range.va &&
	      access->ranges[0].bytes == range.bytes);
	*(uint64_t *)closure = access->site;
}

/* Whether it is known, as what was kept. */
static bool is_known(unsigned number)
{
	uint64_t site = 0;
	bool known = spill_graph_access_look(EXEC(number), note_site, &site);
	CHECK(known ? site == number : site == 0);
	return known;
}

CHILD_TEST(what_ends_is_forgotten)
{
	for (unsigned i = 1; i <= 5000; i++)
		keep(i);
	spill_graph_access_forget(EXEC(7));
	spill_graph_access_forget(EXEC(9999));
	for (unsigned i = 1; i <= 5000; i++)
		CHECK(is_known(i) == (i != 7));
	spill_graph_access_forget_all();
	for (unsigned i = 1; i <= 5000; i++)
		CHECK(!is_known(i));
	keep(7);
	CHECK(is_known(7));
}

static void keep_without_memory(void)
{
	void *nodes = malloc(100);
	fake_libc_fail(FAKE_malloc, 1, FAKE_LIBC_FOR_EVER, ENOMEM);
	spill_graph_access_keep(EXEC(1), &(struct spill_graph_access){.memory = 1, .nodes = nodes});
	fake_libc_reset();
}

TEST(nodes_end_where_there_is_no_memory_for_their_graph)
{
	uint64_t site;
	assert_heap_stays(keep_without_memory);
	assert_null(spill_graph_access_take_nodes(EXEC(1), &site));
}

CHILD_TEST(a_forked_child_knows_nothing)
{
	int status;
	keep(1);
	pid_t child = fork();
	if (child == 0) {
		spill_graph_access_reset();
		bool known = is_known(1);
		keep(2); /* the table is in use again */
		_exit(known || is_known(1) || !is_known(2));
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(is_known(1));
}

static void right_or_nothing(void *closure, const struct spill_graph_access *uses)
{
	CHECK(uses->count == 2 && uses->ranges[1].va == uses->site && uses->ranges[0].bytes == 8);
}

static void *works(void *seed)
{
	for (uintptr_t i = 0; i < 20000; i++) {
		uint64_t site = (i * 31 + (uintptr_t)seed) * 2 + 3;
		const struct spill_graph_range ranges[] = {{1, 8}, {site, 8}};
		const void *exec = EXEC(1 + i % 7);
		if (i % 3 == (uintptr_t)seed)
			spill_graph_access_keep(
			    exec, &(struct spill_graph_access){.site = site, .count = 2, .ranges = ranges});
		else if (i % 1000 == 1)
			spill_graph_access_forget_all();
		else if (i % 11 == 1)
			spill_graph_access_forget(exec);
		else
			spill_graph_access_look(exec, right_or_nothing, NULL);
	}
	return NULL;
}

CHILD_TEST(threads_change_and_launch)
{
	pthread_t threads[3];
	for (uintptr_t i = 0; i < 3; i++)
		CHECK(pthread_create(&threads[i], NULL, works, (void *)i) == 0);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

/* However many there are: memory is bounded, and what was kept is right. */
CHILD_TEST(no_more_than_there_is_room_for)
{
	size_t before = 0;
	for (unsigned i = 1; i <= 20000; i++) {
		if (i == 16385)
			before = mallinfo2().uordblks;
		keep(i);
	}
	CHECK(mallinfo2().uordblks < before + 1000); /* nothing for those that are not kept */
	CHECK(is_known(1) && is_known(16384) && !is_known(16385) && !is_known(20000));
	spill_graph_access_forget(EXEC(1));
	keep(20000);
	keep(19999);
	CHECK(is_known(20000) && !is_known(19999));
}

static void keep_ranges(const void *exec, const struct spill_graph_range *ranges, uint32_t number)
{
	spill_graph_access_keep(
	    exec, &(struct spill_graph_access){.site = 3, .memory = 1, .count = number, .ranges = ranges});
}

static void keep_nodes(unsigned number)
{
	spill_graph_access_keep(EXEC(number),
	                        &(struct spill_graph_access){.site = number, .nodes = malloc(1000)});
}

/* Copied nodes are the table's, or out of it. */
CHILD_TEST(copied_nodes_can_be_taken_out)
{
	uint64_t site = 0;
	keep_nodes(1);
	void *nodes = spill_graph_access_take_nodes(EXEC(1), &site);
	CHECK(nodes && site == 1);
	CHECK(!spill_graph_access_take_nodes(EXEC(1), &site));
	CHECK(spill_graph_access_give_nodes(EXEC(1), nodes));
	CHECK(spill_graph_access_take_nodes(EXEC(1), &site) == nodes);
	CHECK(!spill_graph_access_take_nodes(EXEC(2), &site));
	CHECK(!spill_graph_access_give_nodes(EXEC(2), nodes));
	/* Others came, or the graph ended. */
	keep_nodes(1);
	CHECK(!spill_graph_access_give_nodes(EXEC(1), nodes));
	spill_graph_access_forget(EXEC(1));
	CHECK(!spill_graph_access_give_nodes(EXEC(1), nodes));
	free(nodes);
}

/* Of 256 graphs, and memory of what is not kept is freed. */
CHILD_TEST(no_more_copied_nodes_than_there_is_room_for)
{
	uint64_t site;
	keep(1000); /* the table is not empty */
	size_t before = mallinfo2().uordblks, most = 0;
	for (unsigned turn = 0; turn < 2; turn++) {
		for (unsigned i = 1; i <= 300; i++)
			keep_nodes(i);
		most = turn ? most : mallinfo2().uordblks;
		CHECK(mallinfo2().uordblks == most && most < before + 256 * 1100 + 300 * 200);
		for (unsigned i = 1; i <= 256; i++) {
			void *nodes = spill_graph_access_take_nodes(EXEC(i), &site);
			CHECK(nodes && spill_graph_access_give_nodes(EXEC(i), nodes));
		}
		CHECK(!spill_graph_access_take_nodes(EXEC(257), &site));
		for (unsigned i = 1; i <= 300 && !turn; i++)
			spill_graph_access_forget(EXEC(i));
	}
	/* The end of a context: they stay, because they know the order of launches. */
	spill_graph_access_forget_all();
	CHECK(!is_known(1000));
	CHECK(spill_graph_access_take_nodes(EXEC(1), &site) &&
	      spill_graph_access_take_nodes(EXEC(256), &site));
}

/* Room for 2^20 ranges of all graphs, and what a graph had is free when it is forgotten. */
CHILD_TEST(no_more_ranges_than_there_is_room_for)
{
	enum { MOST = 1 << 20 };
	struct spill_graph_range *ranges = calloc(MOST + 1, sizeof(*ranges));
	CHECK(ranges);
	keep_ranges(EXEC(1), ranges, MOST + 1);
	CHECK(spill_graph_access_memory(EXEC(1)) == 0);
	for (unsigned i = 0; i < 2; i++) {
		keep_ranges(EXEC(1), ranges, MOST - 1);
		keep_ranges(EXEC(2), ranges, 2);
		CHECK(spill_graph_access_memory(EXEC(1)) && !spill_graph_access_memory(EXEC(2)));
		keep_ranges(EXEC(2), ranges, 1);
		keep_ranges(EXEC(3), ranges, 1);
		CHECK(spill_graph_access_memory(EXEC(2)) && !spill_graph_access_memory(EXEC(3)));
		spill_graph_access_forget(EXEC(1));
		spill_graph_access_forget(EXEC(2));
	}
	/* The own memory of a graph stays known, and its ranges are free. */
	keep_ranges(EXEC(1), ranges, MOST);
	spill_graph_access_forget_all();
	CHECK(spill_graph_access_memory(EXEC(1)));
	keep_ranges(EXEC(2), ranges, MOST);
	CHECK(spill_graph_access_memory(EXEC(2)));
	keep_ranges(EXEC(3), ranges, 1);
	CHECK(!spill_graph_access_memory(EXEC(3)));
	free(ranges);
}

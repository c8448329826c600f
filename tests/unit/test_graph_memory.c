/*
 * The memory of a graph's own, by the nodes of the graph that it is made of (graph_hints.h), with a driver of our own. Each case
 * runs in a child of its own.
 */
#include "graph_driver.h"

#include <malloc.h>
#include <stdlib.h>

#include "fake_libc.h"
#include "vendor_pool.h"

#define MIB (1ull << 20)
#define MEMORY(address, mib) \
	{ \
		.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC, .memory = { \
			.bytesize = (mib)*MIB, \
			.dptr = (address)*MIB \
		} \
	}

static int reserves_nothing(int device, uint64_t *bytes)
{
	*bytes = 0;
	return device;
}

/* The program has made a node with memory. */
static void memory_is_seen(void)
{
	static const struct spill_backend backend = {.graph_reserved = reserves_nothing};
	spill_vendor_pool_graphs(&backend, 0);
}

static uint64_t memory(struct graph *graph)
{
	make(1, graph);
	return spill_graph_access_memory(EXEC(1)) / MIB;
}

CHILD_TEST(memory_in_steps)
{
	CHECK(memory(GRAPH(MEMORY(64, 40))) == 0 && asked == 3); /* of hints alone: nobody has such memory */
	memory_is_seen();
	spill_chunked_delist(&one);
	CHECK(memory(GRAPH(SET(AT(0)))) == 0);
	CHECK(memory(GRAPH(MEMORY(64, 1))) == 32);
	CHECK(memory(GRAPH(MEMORY(64, 40))) == 64 && launch(1) == 0);
	/* Each in a step of its own, as any three of these may be: no two fit into one. */
	CHECK(memory(GRAPH(MEMORY(64, 17), MEMORY(96, 17), MEMORY(128, 17))) == 96);
	CHECK(memory(GRAPH(MEMORY(64, 12), MEMORY(80, 12), MEMORY(96, 12))) == 96);
	CHECK(memory(GRAPH(MEMORY(100, 60), SET(AT(0)), MEMORY(64, 1))) == 96);
	CHECK(spill_graph_access_memory(EXEC(2)) == 0);
	spill_graph_access_forget(EXEC(1));
	CHECK(spill_graph_access_memory(EXEC(1)) == 0);
}

CHILD_TEST(memory_used_in_turn_counts_once)
{
	memory_is_seen();
	CHECK(memory(GRAPH(MEMORY(64, 60), MEMORY(64, 64), MEMORY(64, 10), MEMORY(100, 28))) == 64);
	struct graph *inner = GRAPH(MEMORY(1000, 64)), *empty = &(struct graph){0};
	CHECK(memory(GRAPH(MEMORY(64, 64), {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = inner})) == 128);
	CHECK(memory(GRAPH(MEMORY(64, 64), {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = empty})) == 64);
}

CHILD_TEST(memory_stays_through_changes)
{
	const CUDA_MEMSET_NODE_PARAMS_v1 set = {.dst = AT(0), .elementSize = 4, .width = 1, .height = 1};
	chunks(1, 1);
	memory_is_seen();
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 64 && launch(1) == 0);
	change(&(struct spill_graph_change){.exec = EXEC(1), .set = &set});
	CHECK(spill_graph_access_memory(EXEC(1)) == 64 * MIB && launch(1) == 1);
}

/* Graphs within graphs are read 16 deep. What is deeper may have memory that nobody knows. */
CHILD_TEST(memory_deep_inside)
{
	struct node nodes[18], innermost = MEMORY(64, 40);
	struct graph graphs[18];
	memory_is_seen();
	for (unsigned i = 0; i < 18; i++) {
		nodes[i] = (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = &graphs[i + 1]};
		graphs[i] = (struct graph){1, &nodes[i]};
	}
	nodes[17] = innermost;
	CHECK(memory(&graphs[1]) == 64);
	CHECK(memory(&graphs[0]) == 0);
	graphs[0] = *GRAPH(MEMORY(64, 40), nodes[0]);
	CHECK(memory(&graphs[0]) == 0);
}

/* What is read of a graph is given back, however often it changes. */
CHILD_TEST(changes_cost_no_memory)
{
	size_t before = 0;
	memory_is_seen();
	for (unsigned i = 0; i < 1000; i++) {
		if (i == 1)
			before = mallinfo2().uordblks;
		CHECK(memory(GRAPH(MEMORY(64, 40), SET(AT(0)))) == 64);
		asked = 0;
		refused_question = 2; /* the nodes, after their number */
		CHECK(memory(GRAPH(MEMORY(64, 40))) == 0);
		refused_question = 0;
	}
	CHECK(mallinfo2().uordblks <= before + 10000);
}

/* Not all of it is none of it: a launch is not asked again by a figure that is too low. */
CHILD_TEST(memory_that_cannot_be_read)
{
	memory_is_seen();
	lacking = "cuGraphMemAllocNodeGetParams";
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 0);
	set_capturing(true);
	lacking = "";
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 0);
	set_capturing(false);
	refuses = true;
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 0);
}

/* Whatever the driver does not tell: what it tells of others is too low a figure. */
CHILD_TEST(memory_of_which_the_driver_does_not_tell_something)
{
	struct graph *inner = GRAPH(MEMORY(1000, 64), SET(AT(0)));
	struct graph *outer = GRAPH(MEMORY(64, 64), {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = inner});
	memory_is_seen();
	spill_chunked_delist(&one);
	asked = 0;
	CHECK(memory(outer) == 128);
	unsigned questions = asked;
	CHECK(questions == 11);
	for (refused_question = 1; refused_question <= questions; refused_question++) {
		asked = 0;
		CHECK(memory(outer) == 0);
	}
}

CHILD_TEST(memory_without_memory_to_read_it)
{
	struct graph *graph = GRAPH(MEMORY(64, 64));
	memory_is_seen();
	spill_chunked_delist(&one);
	for (unsigned first = 1; first <= 2; first++) {
		CHECK(memory(graph) == 64);
		fake_libc_fail(FAKE_calloc, first, 1, ENOMEM);
		CHECK(memory(graph) == 0);
		fake_libc_reset();
	}
	/* The table of allocations begins with 16, and grows. */
	struct node nodes[17];
	for (unsigned i = 0; i < 17; i++)
		nodes[i] = (struct node)MEMORY(64 * (i + 1), 64);
	CHECK(memory(&(struct graph){17, nodes}) == 17 * 64);
	for (unsigned first = 1; first <= 2; first++) {
		fake_libc_fail(FAKE_realloc, first, 1, ENOMEM);
		CHECK(memory(&(struct graph){17, nodes}) == 0);
		fake_libc_reset();
	}
}

/* The table's memory has any content behind the last allocation: here that of one at the same address, and longer. */
static bool give_used_memory(long arguments[6], long *result)
{
	*result = (long)memset(calloc(1, (size_t)arguments[1]), 1, (size_t)arguments[1]);
	return true;
}

CHILD_TEST(memory_of_the_allocations_that_there_are)
{
	struct node node = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
	                    .memory = {.dptr = 0x0101010101010101, .bytesize = 64 * MIB}};
	memory_is_seen();
	fake_libc[FAKE_realloc].hook = give_used_memory;
	CHECK(memory(&(struct graph){1, &node}) == 64);
	fake_libc_reset();
}

/* The end of a context takes away what was known of addresses. A change brings none of that back. */
CHILD_TEST(changes_after_the_end_of_a_context)
{
	const CUDA_MEMSET_NODE_PARAMS_v1 set = {.dst = AT(1), .elementSize = 4, .width = 1, .height = 1};
	chunks(2, 0);
	memory_is_seen();
	CHECK(memory(GRAPH(MEMORY(64, 64), SET(AT(0)))) == 64 && launch(1) == 1);
	spill_graph_access_forget_all();
	change(&(struct spill_graph_change){.exec = EXEC(1), .set = &set});
	CHECK(spill_graph_access_memory(EXEC(1)) == 64 * MIB && launch(1) == 2);
}

/* The amount stays, whatever else changes. So without hints a change needs no memory. */
CHILD_TEST(changes_without_hints_take_no_memory)
{
	struct graph *other = GRAPH(MEMORY(64, 10));
	memory_is_seen();
	spill_chunked_delist(&one);
	CHECK(memory(GRAPH(MEMORY(64, 64))) == 64);
	fake_libc_reset();
	change(&(struct spill_graph_change){.exec = EXEC(1), .graph = (CUgraph)other});
	CHECK(fake_libc[FAKE_calloc].calls == 0 && spill_graph_access_memory(EXEC(1)) == 64 * MIB);
}

/*
 * The memory that executable graphs use (graph_hints.h), and the hints of their launches (hints.h), with a driver of our own.
 * Each case runs in a child of its own.
 */
#include "graph_driver.h"

#include <stdlib.h>

#include "fake_libc.h"
#include "graph_copies.h"

/* -- nodes ------------------------------------------------------------------------------------------------ */

CHILD_TEST(kernels_by_their_parameters)
{
	chunks(4, 4);
	make(1, GRAPH(KERNEL(AT(0) + 8, AT(2))));
	CHECK(launch(1) == 5 && !told.once && told.on_host == 1 && told.host_bytes == CHUNK);
	/* The other kind of handle. */
	make(2, GRAPH({.kernel = {.kern = (CUkernel)2, KERNEL_PARAMS(0, AT(3))}}));
	CHECK(launch(2) == 8);
	uint64_t block[] = {AT(1), 5, AT(3)};
	size_t bytes = sizeof(block);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, block, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
	                 CU_LAUNCH_PARAM_END};
	make(3, GRAPH({.kernel = {.func = (CUfunction)3, .extra = extra}}));
	block[0] = 0; /* has been copied */
	CHECK(launch(3) == 10);
}

/* Before anything is launched: what is behind it ends there. */
CHILD_TEST(begins_are_known_at_once)
{
	for (unsigned i = 0; i < 32; i++)
		CHECK(spill_chunk_map_set(AT(i), CHUNK, false, i < 31));
	make(1, GRAPH(KERNEL(AT(0), 0)));
	make(2, GRAPH(KERNEL(AT(3), 0), SET(AT(1))));
	CHECK(launch(1) == 7);
}

CHILD_TEST(copies_and_sets_by_their_ranges)
{
	chunks(8, 0);
	make(1, GRAPH(COPY(AT(1), AT(3), 64), SET(AT(5) + 64)));
	CHECK(launch(1) == 052 && told.once);
	make(1, GRAPH(COPY(1000, AT(3) - 8, 16), KERNEL(AT(0), 0)));
	CHECK(launch(1) == 1 + 4 && !told.once); /* allocations end at chunks here */
	make(1, GRAPH(COPY(1000, AT(3) - 8, 0)));
	CHECK(launch(1) == 0);
	for (unsigned i = 3; i < 5; i++)
		CHECK(spill_chunk_map_set(AT(i), CHUNK, false, i < 4));
	make(1, GRAPH(COPY(1000, AT(3), CHUNK)));
	CHECK(launch(1) == 8); /* to the last byte of its chunk */
}

static void say_ranges(void *closure, const struct spill_graph_access *access)
{
	char *text = closure;
	for (uint32_t i = 0; i < access->count; i++)
		sprintf(text + strlen(text), "%llx+%llx ", (unsigned long long)(access->ranges[i].va - BASE),
		        (unsigned long long)access->ranges[i].bytes);
}

/* Two chunks never share a unit, so a copy or set takes whole ones; of memory of ours alone, and within addresses. */
CHILD_TEST(copies_and_sets_take_whole_units)
{
	char text[256] = "";
	chunks(4, 0);
	make(1, GRAPH(SET(BASE), SET(BASE + 0x200000 - 4), SET(BASE + 0x600000 - 8),
	              COPY(BASE + 0xa00000, BASE + 0x1000001, 0x400000), COPY(BASE + 0x1e00000, 1000, 8),
	              COPY(BASE, BASE, UINT64_MAX)));
	CHECK(spill_graph_access_look(EXEC(1), say_ranges, text));
	CHECK(!strcmp(text, "0+200000 0+400000 400000+200000 a00000+400000 1000000+600000 1e00000+200000 "));
}

CHILD_TEST(graphs_in_graphs)
{
	chunks(4, 0);
	struct graph *inner = GRAPH(KERNEL(AT(2), 0));
	struct graph *middle = GRAPH({.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = inner}, SET(AT(1)));
	struct graph *outer = GRAPH(KERNEL(AT(0), 0), {.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = middle});
	make(1, outer);
	CHECK(launch(1) == 7);
	inner->nodes[0] =
	    (struct node){.type = CU_GRAPH_NODE_TYPE_GRAPH, .child = outer}; /* never, but it ends */
	make(2, outer);
	CHECK(launch(2) == 3);
}

CHILD_TEST(other_nodes_say_nothing)
{
	chunks(1, 0);
	for (int type = 3; type < 20; type++)
		if (type != CU_GRAPH_NODE_TYPE_GRAPH)
			make(1, GRAPH({.type = type}, KERNEL(AT(0), 0)));
	CHECK(launch(1) == 1);
	make(1, &(struct graph){0});
	CHECK(launch(1) == 0);
}

/* -- when ------------------------------------------------------------------------------------------------- */

/* Launches look where memory is by then, and whether it is. */
CHILD_TEST(memory_is_looked_up_at_the_launch)
{
	chunks(4, 0);
	make(1, GRAPH(KERNEL(AT(0), AT(1)), SET(AT(2))));
	CHECK(launch(1) == 7 && told.on_host == 0);
	chunks(3, 6);
	CHECK(launch(1) == 7 && told.on_host == 2 && told.host_bytes == 2 * CHUNK);
	spill_chunk_map_clear(AT(1), CHUNK);
	CHECK(launch(1) == 5);
	spill_chunk_map_clear(AT(0), CHUNK);
	spill_chunk_map_clear(AT(2), CHUNK);
	CHECK(launch(1) == 0);
}

CHILD_TEST(nothing_is_asked_where_nothing_is_wanted)
{
	struct graph *graph = GRAPH(KERNEL(AT(0), 0));
	chunks(1, 1);
	spill_chunked_delist(&one);
	make(1, graph);
	spill_chunked_enlist(&one);
	policy.movable_follow = SPILL_FOLLOW_OFF;
	make(1, graph);
	CHECK(asked == 0 && launch(1) == 0);
	policy.movable_follow = SPILL_FOLLOW_AUTO;
	make(1, graph);
	CHECK(asked && launch(1) == 1);
}

/* Nor is what was known before: the graph at that handle is another now. */
CHILD_TEST(nothing_is_asked_in_a_capture)
{
	struct graph *graph = GRAPH(KERNEL(AT(0), 0));
	chunks(1, 1);
	make(1, graph);
	CHECK(launch(1) == 1);
	set_capturing(true);
	asked = 0;
	make(1, graph);
	CHECK(asked == 0 && launch(1) == 0);
	set_capturing(false);
	CHECK(launch(1) == 0);
	make(1, graph);
	set_capturing(true);
	CHECK(launch(1) == 0); /* known, and not told */
	set_capturing(false);
	CHECK(launch(1) == 1);
}

CHILD_TEST(a_driver_that_refuses)
{
	refuses = true;
	chunks(1, 1);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	CHECK(asked == 1 && launch(1) == 0);
}

CHILD_TEST(a_driver_that_lacks_something)
{
	lacking = "cuGraphKernelNodeGetParams_v2";
	chunks(2, 1);
	make(1, GRAPH(KERNEL(AT(0), 0), SET(AT(1))));
	CHECK(launch(1) == 2);
}

CHILD_TEST(a_driver_without_graphs)
{
	lacking = "cuGraphGetNodes";
	chunks(2, 1);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	CHECK(asked == 0 && launch(1) == 0);
}

/* What was known of the handle before is of another graph. */
CHILD_TEST(a_graph_is_forgotten_without_memory_to_read_it)
{
	chunks(2, 1);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	CHECK(launch(1) == 1);
	for (unsigned first = 1; first <= 2; first++) {
		make(2, GRAPH(KERNEL(AT(1), 0)));
		fake_libc_fail(FAKE_calloc, first, 1, ENOMEM); /* for the graph; for its nodes */
		make(2, GRAPH(KERNEL(AT(1), 0)));
		fake_libc_reset();
		CHECK(launch(2) == 0 && launch(1) == 1);
	}
}

/* Nor is memory taken, where neither hints nor graphs with memory of their own are. */
CHILD_TEST(no_memory_is_taken_where_nothing_is_wanted)
{
	spill_chunked_delist(&one);
	fake_libc_reset();
	make(1, GRAPH(SET(AT(0))));
	CHECK(fake_libc[FAKE_calloc].calls == 0);
	spill_chunked_enlist(&one);
	make(1, GRAPH(SET(AT(0))));
	CHECK(fake_libc[FAKE_calloc].calls == 2);
}

CHILD_TEST(a_graph_without_nodes_is_asked_for_them_once)
{
	make(1, &(struct graph){0});
	CHECK(asked == 1 && launch(1) == 0);
}

/* -- changes ---------------------------------------------------------------------------------------------- */

CHILD_TEST(updates_tell_anew)
{
	chunks(4, 0);
	make(1, GRAPH(KERNEL(AT(0), 0)));
	make(2, GRAPH(KERNEL(AT(3), 0)));
	CHECK(launch(1) == 1);
	uint64_t site = told.site;
	change(&(struct spill_graph_change){.exec = EXEC(1),
	                                    .graph = (CUgraph)GRAPH(KERNEL(AT(1), 0), SET(AT(2)))});
	CHECK(launch(1) == 6 && told.site == site && launch(2) == 8);
	change(&(struct spill_graph_change){.exec = EXEC(3), .graph = (CUgraph)GRAPH(KERNEL(AT(1), 0))});
	CHECK(launch(3) == 2); /* which was made before anything was movable */
}

CHILD_TEST(changed_nodes_add)
{
	struct graph *child = GRAPH(SET(AT(5)));
	CUDA_KERNEL_NODE_PARAMS_v1 first = {.func = (CUfunction)3, KERNEL_PARAMS(AT(1), 0)};
	CUDA_KERNEL_NODE_PARAMS_v2 second = {.kern = (CUkernel)2, KERNEL_PARAMS(AT(2), 0)};
	struct node copy = COPY(AT(3), 8, 8), set = SET(AT(4));
	chunks(8, 0);
	make(1, GRAPH(SET(AT(0))));
	CHECK(launch(1) == 1 && told.once);
	uint64_t site = told.site;
	change(&(struct spill_graph_change){.exec = EXEC(1), .copy = &copy.copy});
	CHECK(launch(1) == 011 && told.once);
	change(&(struct spill_graph_change){.exec = EXEC(1), .kernel = &first});
	CHECK(launch(1) == 013 && !told.once);
	change(&(struct spill_graph_change){.exec = EXEC(1), .set = &set.set});
	change(&(struct spill_graph_change){.exec = EXEC(1), .kernel_v2 = &second});
	change(&(struct spill_graph_change){.exec = EXEC(1), .graph = (CUgraph)child, .child = true});
	CHECK(launch(1) == 077 && !told.once && told.site == site);
}

CHILD_TEST(changed_nodes_of_any_type)
{
	struct graph *child = GRAPH(SET(AT(3)));
	CUDA_KERNEL_NODE_PARAMS_v2 kernel = {.func = (CUfunction)3, KERNEL_PARAMS(AT(0), 0)};
	struct node copy = COPY(AT(1), 8, 8), set = SET(AT(2));
	CUDA_MEMCPY_NODE_PARAMS copies = {.copyParams = copy.copy};
	const struct {
		int type;
		const void *params;
		size_t bytes;
	} all[] = {{CU_GRAPH_NODE_TYPE_KERNEL, &kernel, sizeof(kernel)},
	           {CU_GRAPH_NODE_TYPE_MEMCPY, &copies, sizeof(copies)},
	           {CU_GRAPH_NODE_TYPE_MEMSET, &set.set, sizeof(set.set)},
	           {CU_GRAPH_NODE_TYPE_GRAPH, &child, sizeof(child)},
	           {CU_GRAPH_NODE_TYPE_MEM_FREE, &kernel, sizeof(kernel)}};
	chunks(4, 0);
	for (unsigned i = 0; i < 5; i++) {
		CUgraphNodeParams node = {.type = (CUgraphNodeType)all[i].type};
		memcpy(node.reserved1, all[i].params, all[i].bytes);
		change(&(struct spill_graph_change){.exec = EXEC(i + 1), .node = &node});
		CHECK(launch(i + 1) == (1u << i) % 16);
	}
}

CHILD_TEST(the_same_graph_is_the_same_site)
{
	chunks(4, 0);
	make(1, GRAPH(KERNEL(AT(0), 0), SET(AT(1))));
	launch(1);
	uint64_t site = told.site;
	make(2, GRAPH(KERNEL(AT(2), 0), SET(AT(1))));
	CHECK(launch(2) && told.site == site);
	make(3, GRAPH(SET(AT(1)), KERNEL(AT(2), 0)));
	CHECK(launch(3) && told.site != site);
}

static void count(void *closure, const struct spill_graph_access *uses)
{
	*(unsigned *)closure = uses->count;
}

/* One word a granule; of more granules than there is room for the first. */
CHILD_TEST(each_granule_once)
{
	const unsigned many = SPILL_GRAPH_RANGES + 100;
	uint64_t *words = malloc(2 * many * sizeof(*words));
	size_t bytes = 2 * many * sizeof(*words) < 32768 ? 2 * many * sizeof(*words) : 32768;
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, words, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, NULL};
	CHECK(spill_chunk_map_set(BASE, many * SPILL_CHUNK_MAP_UNIT, false, false));
	unsigned of_one = (unsigned)(bytes / sizeof(*words));
	struct node nodes[16];
	for (unsigned i = 0; i < of_one; i++)
		words[i] = BASE + i % 16 * SPILL_CHUNK_MAP_UNIT + i;
	for (unsigned i = 0; i < 16; i++)
		nodes[i] = (struct node){.kernel = {.func = (CUfunction)3, .extra = extra}};
	make(1, &(struct graph){16, nodes});
	unsigned ranges = 0;
	CHECK(spill_graph_access_look(EXEC(1), count, &ranges) && ranges == 16);
	/* Each node its own granules, as sets. */
	struct node *sets = calloc(many, sizeof(*sets));
	for (unsigned i = 0; i < many; i++)
		sets[i] = (struct node)SET(BASE + i * SPILL_CHUNK_MAP_UNIT);
	asked = 0;
	make(1, &(struct graph){many, sets});
	CHECK(spill_graph_access_look(EXEC(1), count, &ranges) && ranges == SPILL_GRAPH_RANGES);
	CHECK(asked == 2 + 2 * SPILL_GRAPH_RANGES); /* nothing about the nodes behind */
	/* A word and a set are two, although they begin alike. */
	for (unsigned i = 0; i < 2000; i++)
		words[i] = BASE + i * SPILL_CHUNK_MAP_UNIT;
	bytes = 2000 * sizeof(*words);
	sets[2000] = nodes[0];
	make(1, &(struct graph){2001, sets});
	CHECK(spill_graph_access_look(EXEC(1), count, &ranges) && ranges == 4000);
	free(sets);
	free(words);
}

/* It is of no executable graph, so nothing is read. */
CHILD_TEST(where_graphs_own_objects_they_stay_whole)
{
	chunks(1, 0);
	make(1, GRAPH(SET(AT(0))));
	asked = 0;
	CHECK(!spill_graph_copies_forbidden());
	change(&(struct spill_graph_change){.alone = true});
	CHECK(spill_graph_copies_forbidden() && !asked && launch(1) == 1);
}

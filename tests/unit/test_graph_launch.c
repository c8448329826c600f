/* Launches of the nodes of a graph one by one, and the copies that they are made from. The driver is the test's. */
#define SETUP begin
#define TEARDOWN end
#include "unit.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "captures.h"
#include "chunked.h"
#include "fake_clock.h"
#include "graph_access.h"
#include "graph_ask.h"
#include "graph_copies.h"
#include "graph_launch.h"
#include "graph_modes.h"
#include "heap.h"
#include "nodes.h"
#include "process.h"
#include "real.h"
#include "registry.h"
#include "work.h"

#define EXEC ((CUgraphExec)0x1000)
#define OTHER_EXEC ((CUgraphExec)0x2000)
#define GRAPH ((CUgraph)0x3000)
#define CONTEXT ((CUcontext)0x4000)
#define EVENT ((CUevent)0x5000)
#define STREAM ((CUstream)0x6000)
#define SITE 7

static struct {
	bool by_nodes, wanted, on_host, unreadable, unchangeable, refuses_events;
	unsigned busy; /* so many looks at the stream */
	bool begins_capture, records_nothing, unknown, has_block;
	unsigned kernel_bytes, shared_bytes; /* of shared memory, that the kernel takes and may take */
	cuuint64_t flags;
	unsigned refuses; /* the only call that is, from 1 on */
	CUcontext current;
} world;

static struct {
	char text[512]; /* what was called, a letter each (say) */
	unsigned calls, hints, refused, freed, reads, stopped;
	CUevent made;
} seen;

static int stopwatch, all;

/* -- in place of the others ---------------------------------------------------------------------------------- */

const struct spill_row spill_rows[SPILL_HOOKS];
_Atomic bool spill_graph_modes_used = true;

static void say(const char *what, const void *stream)
{
	char *end = strchr(seen.text, 0);
	snprintf(end, (size_t)(seen.text + sizeof(seen.text) - end), "%s%s%s ", what,
	         stream == STREAM      ? ""
	         : stream == (void *)2 ? "'"
	                               : "?",
	         spill_thread.depth ? "-" : "");
}

/* A call that submits work. */
static CUresult take(const char *what, CUstream stream)
{
	assert_true(spill_gate_self && spill_gate_self->inside && !spill_thread.depth);
	if (++seen.calls == world.refuses)
		return CUDA_ERROR_INVALID_HANDLE;
	say(what, stream);
	return CUDA_SUCCESS;
}

static CUresult launch_kernel(const CUlaunchConfig *config, CUfunction function, void **params, void **extra)
{
	const unsigned size[] = {config->gridDimX,  config->gridDimY,  config->gridDimZ,
	                         config->blockDimX, config->blockDimY, config->blockDimZ};
	assert_memory_equal(size, ((unsigned[]){1, 2, 3, 4, 5, 6}), sizeof(size));
	assert_int_equal(config->sharedMemBytes, world.kernel_bytes);
	assert_int_equal(config->numAttrs, 1);
	assert_int_equal(config->attrs->id, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
	assert_int_equal(config->attrs->value.words[0], 1);
	assert_ptr_equal(function, (void *)9);
	if (world.has_block) {
		assert_null(params);
		assert_ptr_equal(extra[0], CU_LAUNCH_PARAM_BUFFER_POINTER);
		assert_ptr_equal(extra[2], CU_LAUNCH_PARAM_BUFFER_SIZE);
		assert_ptr_equal(extra[4], CU_LAUNCH_PARAM_END);
		assert_int_equal(*(size_t *)extra[3], 24);
		assert_int_equal(((uint64_t *)extra[1])[1], 0x100); /* behind the places of values */
		return take("block", config->hStream);
	}
	assert_null(extra);
	assert_int_equal(*(uint64_t *)params[0], 0x100);
	assert_int_equal(*(uint64_t *)params[1], 0x200);
	return take("kernel", config->hStream);
}

static CUresult copy_row(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream)
{
	assert_true(to == 0x1010 && from == 0x2020 && bytes == 64);
	return take("row", stream);
}

static CUresult copy_rows(const CUDA_MEMCPY3D *copy, CUstream stream)
{
	assert_int_equal(copy->Height, 2);
	return take("rows", stream);
}

static CUresult set_8(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
	assert_true(to == 0x1000 && value == 0xfe && count == 4);
	return take("set8", stream);
}

static CUresult set_16(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
	assert_true(to == 0x1000 && value == 0xfffe && count == 4);
	return take("set16", stream);
}

static CUresult set_32(CUdeviceptr to, size_t pitch, unsigned value, size_t width, size_t height,
                       CUstream stream)
{
	assert_true(to == 0x1000 && pitch == 512 && value == 0xfffffffe && width == 4 && height == 3);
	return take("set32", stream);
}

void *spill_real(const struct spill_row *row, const void *caller)
{
	switch ((enum spill_hook)(row - spill_rows)) {
	case SPILL_HOOK_cuLaunchKernelEx:
		return (void *)launch_kernel;
	case SPILL_HOOK_cuMemcpyDtoDAsync_v2:
		return (void *)copy_row;
	case SPILL_HOOK_cuMemcpy3DAsync_v2:
		return (void *)copy_rows;
	case SPILL_HOOK_cuMemsetD8Async:
		return (void *)set_8;
	case SPILL_HOOK_cuMemsetD16Async:
		return (void *)set_16;
	case SPILL_HOOK_cuMemsetD2D32Async:
		return (void *)set_32;
	default:
		return NULL;
	}
}

bool spill_work_room(enum spill_hook hook, int result, const void *graph, const void *caller,
                     unsigned attempt)
{
	return false;
}

void *spill_hint(const struct spill_hint *hint)
{
	assert_int_equal(spill_gate_self->inside, 0);
	assert_false(hint->graph);
	if (hint->function)
		assert_true(hint->configured && hint->config &&
		            (world.has_block ? hint->extra : hint->params));
	else
		assert_true(hint->stream == STREAM || hint->stream == (void *)2 || !hint->stream);
	if (hint->set.bytes)
		assert_true(hint->set.to == 0x1000 && hint->set.bytes == 16 && hint->set.pitch == 512 &&
		            hint->set.height == 3);
	seen.hints++;
	return &stopwatch;
}

void *spill_before_nodes(uint64_t site, void *stream)
{
	assert_int_equal(site, SITE);
	say("begin", stream);
	return &all;
}

void spill_after_launch(void *watch)
{
	if (watch == &all)
		say("end", STREAM);
	seen.stopped += watch == &stopwatch;
}

bool spill_graph_modes_by_nodes(uint64_t site)
{
	assert_int_equal(site, SITE);
	return world.by_nodes;
}

void spill_graph_modes_refused(uint64_t site)
{
	seen.refused++;
}

bool spill_graph_modes_wants_nodes(uint64_t site)
{
	return world.wanted;
}

uint64_t spill_chunked_on_host(void)
{
	return world.on_host;
}

struct spill_graph_nodes *spill_graph_nodes_read(CUgraph graph)
{
	assert_ptr_equal(graph, GRAPH);
	assert_true(spill_thread.depth);
	seen.reads++;
	return world.unreadable ? NULL : calloc(1, sizeof(struct spill_graph_nodes));
}

bool spill_graph_nodes_change(struct spill_graph_nodes *nodes, const struct spill_graph_change *change)
{
	return !world.unchangeable;
}

const struct spill_node *spill_graph_nodes_next(const struct spill_graph_nodes *nodes,
                                                const struct spill_node *node)
{
	const char *next = node ? (const char *)node + node->bytes : nodes->nodes;
	return next < nodes->nodes + nodes->bytes ? (const struct spill_node *)(const void *)next : NULL;
}

bool spill_ask_cuCtxGetCurrent(CUcontext *context)
{
	assert_true(spill_thread.depth);
	*context = world.current;
	return true;
}

bool spill_ask_cuEventCreate(CUevent *event, unsigned flags)
{
	assert_int_equal(flags, SPILL_EVENT_DISABLE_TIMING);
	seen.made = *event = EVENT;
	return !world.refuses_events;
}

bool spill_ask_cuEventRecord(CUevent event, CUstream stream)
{
	assert_ptr_equal(event, EVENT);
	say("record", stream);
	errno = EDOM;
	return !world.records_nothing;
}

bool spill_ask_cuFuncGetAttribute(int *value, int attribute, CUfunction of)
{
	assert_int_equal(attribute, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
	*value = (int)world.shared_bytes;
	return !world.unknown;
}

bool spill_ask_cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
	assert_ptr_equal(exec, EXEC);
	*flags = world.flags;
	return true;
}

bool spill_ask_cuStreamSynchronize(CUstream stream)
{
	say("synchronize", stream);
	return true;
}

bool spill_ask_cuStreamQuery(CUstream stream)
{
	assert_true(spill_thread.depth);
	assert_false(spill_capture_any());
	if (world.begins_capture)
		set_capturing(true);
	return !world.busy || !--world.busy;
}

bool spill_ask_cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
	assert_ptr_equal(event, EVENT);
	say("wait", stream);
	return true;
}

bool spill_ask_cuEventDestroy_v2(CUevent event)
{
	assert_ptr_equal(event, EVENT);
	say("destroy", STREAM);
	return true;
}

/* -- a graph of a node of each kind ---------------------------------------------------------------------------- */

static struct spill_node *add(struct spill_graph_nodes *nodes, int type, size_t behind)
{
	struct spill_node *node = (struct spill_node *)(void *)(nodes->nodes + nodes->bytes);
	node->type = type;
	node->bytes = (uint32_t)(sizeof(*node) + behind);
	nodes->bytes += node->bytes;
	return node;
}

static void add_kernel(struct spill_graph_nodes *nodes)
{
	struct {
		CUlaunchAttribute attribute;
		uint32_t places[2];
		uint64_t values[2];
	} behind = {{CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 0, {{1}}}, {0, 8}, {0x100, 0x200}};
	struct spill_node *node = add(nodes, CU_GRAPH_NODE_TYPE_KERNEL, sizeof(behind));
	node->kernel =
	    (struct spill_node_kernel){(CUfunction)9, {1, 2, 3, 4, 5, 6}, world.kernel_bytes, 1, 2, 0};
	if (world.has_block) {
		node->kernel.parameters = 0;
		node->kernel.buffer_bytes = 24;
	}
	memcpy(node + 1, &behind, sizeof(behind));
}

static void add_copy(struct spill_graph_nodes *nodes, size_t height)
{
	add(nodes, CU_GRAPH_NODE_TYPE_MEMCPY, 0)->copy =
	    (CUDA_MEMCPY3D){.dstMemoryType = CU_MEMORYTYPE_DEVICE,
	                    .dstDevice = 0x1000,
	                    .dstXInBytes = 0x10,
	                    .dstPitch = 512,
	                    .srcMemoryType = CU_MEMORYTYPE_DEVICE,
	                    .srcDevice = 0x2000,
	                    .srcXInBytes = 0x20,
	                    .srcPitch = 512,
	                    .WidthInBytes = 64,
	                    .Height = height,
	                    .Depth = 1};
}

static void add_set(struct spill_graph_nodes *nodes, unsigned element, size_t pitch, size_t height)
{
	add(nodes, CU_GRAPH_NODE_TYPE_MEMSET, 0)->set =
	    (CUDA_MEMSET_NODE_PARAMS_v1){0x1000, pitch, 0xfffffffe, element, 4, height};
}

static void keep(void *nodes)
{
	spill_graph_access_keep(
	    EXEC, &(const struct spill_graph_access){.site = SITE, .memory = 1, .nodes = nodes});
}

/* The kernel takes so many bytes of shared memory. */
static void make(unsigned kernel_bytes)
{
	world.kernel_bytes = kernel_bytes;
	struct spill_graph_nodes *nodes = calloc(1, 8192);
	nodes->context = CONTEXT;
	nodes->order.last = STREAM;
	nodes->order.seen = true;
	add_kernel(nodes);
	add_copy(nodes, 1);
	add_copy(nodes, 2);
	add_set(nodes, 1, 0, 1);
	add_set(nodes, 2, 0, 1);
	add_set(nodes, 4, 512, 3);
	keep(nodes);
}

static int begin(void **state)
{
	memset(&world, 0, sizeof(world));
	memset(&seen, 0, sizeof(seen));
	world.by_nodes = world.wanted = world.on_host = true;
	world.current = CONTEXT;
	fake_clock_use(1000000000);
	if (!spill_gate_self)
		spill_gate_join(SPILL_WORK_COUNTERS);
	make(7);
	return 0;
}

static int end(void **state)
{
	spill_graph_access_forget(EXEC);
	return 0;
}

#define ALL "kernel row rows set8 set16 set32 "

static bool launch_in(CUstream stream, bool per_thread, CUresult *result)
{
	errno = ERANGE;
	bool is = spill_graph_launch(
	    &(const struct spill_hint){.graph = EXEC, .stream = stream, .per_thread = per_thread}, true,
	    result);
	assert_int_equal(errno, ERANGE);
	assert_int_equal(spill_thread.depth, 0);
	assert_int_equal(spill_gate_self->inside, 0);
	return is;
}

static bool launch(void)
{
	CUresult result = 99;
	bool is = launch_in(STREAM, false, &result);
	assert_int_equal(result, is ? CUDA_SUCCESS : 99);
	return is;
}

/* Since it was asked last. */
static void assert_said(const char *expected)
{
	assert_string_equal(seen.text, expected);
	*seen.text = 0;
}

/* -- launches ---------------------------------------------------------------------------------------------------- */

TEST(each_node_is_launched_like_a_call_of_the_program)
{
	assert_true(launch());
	assert_said("begin " ALL "end record- ");
	assert_int_equal(seen.hints, 6);
	assert_int_equal(seen.stopped, 6);
	assert_true(launch()); /* they are there again */
	assert_said("begin " ALL "end record- ");
}

static void *launch_in_own_stream(void *expected)
{
	CUresult result;
	if (!spill_gate_self)
		spill_gate_join(SPILL_WORK_COUNTERS);
	bool by_nodes = launch_in(NULL, true, &result);
	assert_int_equal(by_nodes, expected != NULL);
	return NULL;
}

/* The first launch in a stream is whole, and waits for the last, because CUDA has launches of a graph wait for each other. */
TEST(a_launch_in_another_stream_is_whole_and_waits)
{
	CUresult result;
	pthread_t thread;
	assert_true(launch());
	assert_said("begin " ALL "end record- ");
	launch_in_own_stream(NULL);
	assert_said("wait'- ");
	launch_in_own_stream(&seen);
	assert_said("begin' kernel' row' rows' set8' set16' set32' end record'- ");
	/* Another thread's has the same handle, and is another. */
	assert_int_equal(pthread_create(&thread, NULL, launch_in_own_stream, NULL), 0);
	pthread_join(thread, NULL);
	assert_said("wait'- ");
	assert_false(launch_in(STREAM, true, &result)); /* the driver orders whole launches */
	assert_said("");
	assert_true(launch_in(STREAM, true, &result));
	assert_said("begin " ALL "end record- ");
	assert_false(launch_in(NULL, false, &result));
	assert_said("wait?- ");
}

/* Where a launch was not seen, nobody knows its stream. */
TEST(the_first_launch_is_whole)
{
	uint64_t site;
	CUresult result;
	struct spill_graph_nodes *nodes = spill_graph_access_take_nodes(EXEC, &site);
	nodes->order.last = NULL;
	nodes->order.seen = false;
	keep(nodes);
	assert_false(launch_in(NULL, false, &result));
	assert_true(launch_in(NULL, false, &result));
}

/* Memory came back: then launches are only kept in order. */
TEST(order_is_kept_while_memory_is_not_short)
{
	CUresult result;
	const struct spill_hint hint = {.graph = EXEC}, same = {.graph = EXEC, .stream = STREAM};
	launch();
	assert_said("begin " ALL "end record- ");
	assert_false(spill_graph_launch(&same, false, &result));
	assert_said("");
	launch();
	*seen.text = 0;
	assert_false(spill_graph_launch(&hint, false, &result));
	assert_said("wait?- ");
	assert_false(launch()); /* behind a launch in another stream */
	assert_true(launch());
}

TEST(without_an_event_the_stream_is_waited_for)
{
	world.records_nothing = true;
	assert_true(launch());
	assert_said("begin " ALL "end record- synchronize- ");
}

TEST(what_is_left_whole)
{
	world.by_nodes = false;
	assert_false(launch());
	assert_int_equal(seen.refused, 0);
	world.by_nodes = true;
	world.current = (CUcontext)0x4001;
	assert_false(launch());
	world.current = NULL;
	assert_false(launch());
	world.current = CONTEXT;
	world.refuses_events = true;
	assert_false(launch());
	world.refuses_events = false;
	assert_int_equal(seen.refused, 3);
	CUresult result;
	assert_false(spill_graph_launch(&(const struct spill_hint){.graph = OTHER_EXEC, .stream = STREAM},
	                                true, &result));
	set_capturing(true);
	assert_false(launch());
	set_capturing(false);
	world.begins_capture = true;
	world.busy = 2;
	assert_false(launch());
	set_capturing(false);
	world.begins_capture = false;
	assert_said("");
	assert_true(launch());
}

static void *captured;

static bool is_captured(void *stream)
{
	assert_true(spill_thread.depth);
	return stream == captured;
}

static bool start(spill_resolve_fn *resolve)
{
	return true;
}

/* A launch in a stream that captures waits for nothing: it is done later. */
TEST(launches_are_kept_in_order_beside_a_capture)
{
	static const struct spill_vendor_streams streams = {.capturing = is_captured};
	static const struct spill_backend backend = {.start = start, .streams = &streams};
	CUresult result;
	spill_registry_use_backend(SPILL_CUDA_DRIVER, &backend);
	assert_true(launch());
	assert_said("begin " ALL "end record- ");
	set_capturing(true);
	captured = (void *)2;
	assert_false(launch_in(NULL, true, &result));
	assert_said("");
	captured = NULL;
	assert_false(launch());
	assert_said("");
	launch_in(STREAM, false, &result); /* whole, and so nothing is behind it */
	assert_false(launch_in(NULL, true, &result));
	set_capturing(false);
	assert_said("");
	assert_true(launch_in(NULL, true, &result));
	*seen.text = 0;
	set_capturing(true);
	assert_false(launch());
	assert_said("wait- ");
	set_capturing(false);
	spill_registry_use_backend(SPILL_CUDA_DRIVER, NULL);
}

TEST(parameters_in_a_block_are_given_as_a_block)
{
	world.has_block = true;
	make(7);
	assert_true(launch());
	assert_said("begin block row rows set8 set16 set32 end record- ");
}

/* A function that takes less shared memory by now: a graph has what it took then. */
TEST(shared_memory_beyond_the_usual)
{
	make(48 << 10);
	assert_true(launch());
	make((48 << 10) + 1);
	world.shared_bytes = 48 << 10;
	assert_false(launch());
	world.shared_bytes++;
	assert_true(launch());
	world.unknown = true;
	assert_false(launch());
	assert_int_equal(seen.refused, 2);
}

/* A stream takes so many launches, and may wait for what the program does next. */
TEST(nodes_need_an_idle_stream)
{
	world.busy = 1000000;
	assert_false(launch()); /* after a second */
	assert_int_equal(seen.refused, 1);
	assert_int_equal(fake_clock.slept_ns, 1000000000);
	world.busy = 3;
	assert_true(launch());
	assert_in_range(fake_clock.slept_ns, 1000000001, 1000100000);
}

/* Nothing was done, so the graph can be launched as a whole. */
TEST(if_the_first_node_is_refused_the_graph_is_launched)
{
	CUresult result;
	world.refuses = 1;
	assert_false(launch_in(STREAM, false, &result));
	assert_said("begin end ");
	assert_int_equal(seen.refused, 1);
	assert_true(launch());
}

TEST(if_a_later_node_is_refused_the_program_gets_the_error)
{
	CUresult result;
	world.refuses = 3;
	assert_true(launch_in(STREAM, false, &result));
	assert_int_equal(result, CUDA_ERROR_INVALID_HANDLE);
	assert_said("begin kernel row end record- ");
	assert_int_equal(seen.refused, 0);
}

/* -- copies ------------------------------------------------------------------------------------------------------ */

static void *changed(struct spill_graph_change change)
{
	int cancel = spill_ours_begin();
	void *nodes = spill_graph_copies_take(EXEC);
	if (change.made)
		change.exec = *change.made;
	nodes = spill_graph_copies_of(nodes, &change, SITE);
	spill_ours_end(cancel);
	return nodes;
}

TEST(a_new_graph_is_copied_while_memory_is_short)
{
	CUgraphExec made = EXEC;
	struct spill_graph_change change = {.made = &made, .graph = GRAPH};
	void *nodes = changed(change);
	assert_non_null(nodes);
	assert_int_equal(seen.reads, 1);
	free(nodes);
	assert_null(spill_graph_copies_of(NULL, &change, 0));
	world.on_host = false;
	assert_null(changed(change));
	world.on_host = true;
	world.wanted = false;
	assert_null(changed(change));
	assert_int_equal(seen.reads, 1);
}

/* And not read again with each update. */
TEST(what_cannot_be_read_is_whole)
{
	CUgraphExec made = EXEC;
	world.unreadable = true;
	struct spill_graph_nodes *nodes = changed((struct spill_graph_change){.made = &made, .graph = GRAPH});
	assert_true(nodes->outdated && nodes->unreadable);
	assert_int_equal(seen.reads, 1);
	keep(nodes);
	world.unreadable = false;
	keep(changed((struct spill_graph_change){.exec = EXEC, .graph = GRAPH}));
	assert_false(launch());
	assert_int_equal(seen.reads, 1);
	/* A new graph with the same handle, and one that kernels launch. */
	world.flags = CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	nodes = changed((struct spill_graph_change){.made = &made, .graph = GRAPH});
	assert_true(nodes->unreadable);
	assert_int_equal(seen.reads, 1);
	keep(nodes);
	world.flags = ~(cuuint64_t)CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
	nodes = changed((struct spill_graph_change){.made = &made, .graph = GRAPH});
	assert_false(nodes->unreadable);
	keep(nodes);
}

/* The next launch waits for the last one of the graph as it was. */
TEST(an_update_keeps_the_order_of_launches)
{
	launch();
	assert_said("begin " ALL "end record- ");
	struct spill_graph_nodes *nodes = changed((struct spill_graph_change){.exec = EXEC, .graph = GRAPH});
	assert_true(nodes->order.done == EVENT && nodes->order.pending && !nodes->outdated && !nodes->bytes);
	keep(nodes);
	/* Also which thread's stream it was. */
	nodes->order.thread = 12;
	nodes = changed((struct spill_graph_change){.exec = EXEC, .graph = GRAPH});
	assert_true(nodes->order.thread == 12 && nodes->order.last == STREAM && nodes->order.seen);
	nodes->order.thread = 0;
	keep(nodes);
	world.wanted = false;
	nodes = changed((struct spill_graph_change){.exec = EXEC, .graph = GRAPH});
	assert_true(nodes->order.done == EVENT && nodes->order.pending && nodes->outdated);
	keep(nodes);
	CUresult result;
	assert_false(launch_in(NULL, false, &result));
	assert_said("wait?- ");
}

TEST(a_copy_that_cannot_follow_is_outdated)
{
	struct spill_graph_change change = {.exec = EXEC, .at = (CUgraphNode)1};
	struct spill_graph_nodes *nodes = changed(change);
	assert_false(nodes->outdated);
	assert_int_equal(seen.reads, 0);
	keep(nodes);
	world.unchangeable = true;
	nodes = changed(change);
	assert_true(nodes->outdated);
	keep(nodes);
	world.unchangeable = false;
	nodes = changed(change); /* a part is no longer enough */
	assert_true(nodes->outdated);
	keep(nodes);
	assert_false(launch());
	nodes = changed((struct spill_graph_change){.exec = EXEC, .graph = GRAPH});
	assert_false(nodes->outdated);
	keep(nodes);
}

TEST(another_graph_within_the_graph_is_not_followed)
{
	world.unchangeable = true;
	struct spill_graph_nodes *nodes = changed(
	    (struct spill_graph_change){.exec = EXEC, .at = (CUgraphNode)1, .graph = GRAPH, .child = true});
	assert_true(nodes->outdated);
	assert_int_equal(seen.reads, 0);
	keep(nodes);
}

static void look(void *closure, const struct spill_graph_access *access)
{
}

TEST(what_is_lost_still_waits)
{
	launch();
	assert_said("begin " ALL "end record- ");
	assert_true(spill_graph_access_look(EXEC, look, NULL));
	int cancel = spill_ours_begin();
	spill_graph_copies_lost(EXEC);
	spill_ours_end(cancel);
	CUresult result;
	assert_false(launch_in(NULL, false, &result));
	assert_said("wait?- ");
	cancel = spill_ours_begin();
	spill_graph_copies_lost(EXEC);
	spill_ours_end(cancel);
	assert_said("destroy- ");
	assert_false(launch());
	assert_said("");
	assert_false(spill_graph_access_look(EXEC, look, NULL));
}

/* It changed, or another was made, while nobody looked. */
TEST(what_was_missed_is_whole)
{
	spill_graph_copies_missed(EXEC, false);
	assert_false(launch());
	uint64_t site;
	struct spill_graph_nodes *nodes = spill_graph_access_take_nodes(EXEC, &site);
	assert_non_null(nodes);
	assert_true(nodes->outdated && nodes->order.last == STREAM && nodes->context == CONTEXT);
	keep(nodes);
	spill_graph_copies_missed(EXEC, true);
	assert_null(spill_graph_access_take_nodes(EXEC, &site));
	spill_graph_copies_missed(OTHER_EXEC, false);
}

static void miss(void)
{
	uint64_t site;
	spill_graph_copies_missed(EXEC, false);
	void *nodes = spill_graph_access_take_nodes(EXEC, &site);
	keep(nodes);
	spill_graph_copies_missed(EXEC, true);
	make(7);
	nodes = spill_graph_access_take_nodes(EXEC, &site);
	spill_graph_access_forget(EXEC);
	free(nodes);
	make(7);
	spill_graph_copies_end(EXEC);
	make(7);
}

TEST(nothing_stays_of_what_has_ended)
{
	assert_heap_stays(miss);
}

TEST(the_end_of_a_graph_ends_its_event)
{
	launch();
	*seen.text = 0;
	errno = ERANGE;
	spill_graph_copies_end(EXEC);
	assert_int_equal(errno, ERANGE);
	assert_said("destroy- ");
	spill_graph_copies_end(EXEC);
	assert_said("");
	assert_false(launch());
}

/* The last case: it is for good. */
TEST(where_it_is_forbidden_all_are_whole)
{
	assert_true(launch());
	spill_graph_copies_forbid();
	assert_false(launch());
	struct spill_graph_nodes *nodes = changed((struct spill_graph_change){.exec = EXEC, .graph = GRAPH});
	assert_true(nodes->outdated);
	assert_int_equal(seen.reads, 0);
	keep(nodes);
}

/*
 * Every stub of every row that submits work passes the gate: the driver's functions are replaced by ones that look whether
 * they run inside. The stubs are the library's own (shim/stubs.c). Each row runs in a child of its own.
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../rows/zero.h"
#include "abi/cuda.h"
#include "abi/cuda_work.h"
#include "graph_access.h"
#include "graph_copies.h"
#include "graph_hints.h"
#include "graph_launch.h"
#include "layouts.h"
#include "process.h"
#include "runtime.h"
#include "work.h"

#define ANSWER CUDA_ERROR_NOT_FOUND /* no stub would say that by itself */

static enum spill_hook called;
static unsigned calls;
static bool was_inside;

static CUresult seen(enum spill_hook hook)
{
	called = hook;
	calls++;
	was_inside = spill_gate_self && atomic_load(&spill_gate_self->inside) == 1;
	return ANSWER;
}

#define HOOK(domain, ret, symbol, base, since, variant, op, params, args) \
	static ret fake_##symbol params \
	{ \
		return seen(SPILL_HOOK_##symbol); \
	} \
	static CUresult call_##symbol(void *stub) \
	{ \
		ret(*function) params; \
		*(void **)&function = stub; \
		return function ZEROS(args); \
	}
#include "hooks_cuda_work.def"
#undef HOOK

static const struct {
	enum spill_hook hook;
	void *fake;
	CUresult (*call)(void *stub);
} work[] = {
#define HOOK(domain, ret, symbol, ...) {SPILL_HOOK_##symbol, (void *)fake_##symbol, call_##symbol},
#include "hooks_cuda_work.def"
#undef HOOK
};

#define COUNT (sizeof(work) / sizeof(work[0]))

static CUresult (*function_end)(void *what); /* of other rows */

/* -- in place of shim_driver_sources (shim/meson.build) --------------------------------------------------- */

void *spill_real(const struct spill_row *row, const void *caller)
{
	for (size_t i = 0; i < COUNT; i++)
		if (&spill_rows[work[i].hook] == row)
			return work[i].fake;
	return (void *)function_end;
}

void spill_real_remember(const struct spill_row *row, const void *caller, void *real)
{
}

/* No driver. */
void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	return NULL;
}

void *spill_real_beside(const void *address, const char *symbol)
{
	return NULL;
}

static struct spill_hint hinted;

void *spill_hint(const struct spill_hint *hint)
{
	hinted = *hint;
	return NULL;
}

static unsigned forgotten, looks;

void spill_layouts_forget(void)
{
	forgotten++;
}

static struct spill_hint by_nodes; /* of the last launch that was asked about */
static bool launches_nodes;

static int may_by_nodes; /* -1: not asked */

bool spill_graph_launch(const struct spill_hint *hint, bool may, CUresult *result)
{
	may_by_nodes = may;
	by_nodes = *hint;
	*result = CUDA_ERROR_INVALID_HANDLE;
	return launches_nodes;
}

static CUgraphExec ended_exec;

void spill_graph_copies_end(CUgraphExec exec)
{
	ended_exec = exec;
}

static struct spill_graph_change looked;

void spill_graph_changed(const struct spill_graph_change *change)
{
	assert_int_equal(spill_thread.depth, 0);
	looked = *change;
	looks++;
}

/* -- rows of work ------------------------------------------------------------------------------------------ */

/* The first call of a row finds the function and has the thread join; the second is the usual one. */
static const char *wrong_with(size_t i, enum spill_way way)
{
	for (unsigned time = 1; time <= 2; time++) {
		calls = 0;
		was_inside = false;
		if (work[i].call(spill_stub(work[i].hook, way)) != ANSWER)
			return "another answer";
		if (calls != 1 || called != work[i].hook)
			return "another function";
		if (!was_inside)
			return "outside the gate";
		if (atomic_load(&spill_gate_self->inside))
			return "stays inside";
		if (spill_gate_counted(spill_work_counter((unsigned)i, way)) != time)
			return "counted otherwise";
	}
	return NULL;
}

TEST(every_stub_passes_the_gate)
{
#define X(id, name) name,
	static const char *const ways[SPILL_WAYS_COUNT] = {SPILL_WAYS(X)};
#undef X
	for (size_t i = 0; i < COUNT; i++) {
		int status;
		pid_t child = fork();
		if (child == 0) {
			for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
				const char *wrong = wrong_with(i, (enum spill_way)way);
				if (wrong)
					fprintf(stderr, "%s by %s: %s\n", spill_rows[work[i].hook].symbol,
					        ways[way], wrong);
				if (wrong)
					_exit(1);
			}
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_int_equal(status, 0);
	}
}

/* Whoever is GATE is counted and asked about by the place in hooks_cuda_work.def. */
TEST(no_other_row_is_work)
{
	size_t gates = 0;
	for (int hook = 0; hook < SPILL_HOOKS; hook++)
		if (spill_rows[hook].op == SPILL_OP_GATE)
			assert_int_equal(work[gates++].hook, hook);
	assert_int_equal(gates, COUNT);
	assert_int_equal(gates, SPILL_WORKS);
	assert_true(gates > 100);
}

/* -- hints ------------------------------------------------------------------------------------------------ */

#define ARGUMENT(number) ((void *)(uintptr_t)(0x100 * (number)))

/* What rows of rectangles, boxes, batches and graphs hand over: by the places of their arguments, which have the numbers' values. */
TEST(rows_hint_at_their_arguments)
{
	const struct {
		enum spill_hook hook;
		struct spill_hint hint;
	} rows[] = {
#define ROW(symbol, ...) {SPILL_HOOK_##symbol, {__VA_ARGS__}},
#define STREAM(number) .stream = ARGUMENT(number)
#define COPIES .to = ARGUMENT(1), .from = ARGUMENT(2), .sizes = ARGUMENT(3), .count = 0x400
#define BOTH(symbol, since, ...) ROW(symbol, __VA_ARGS__) ROW(symbol##since, .per_thread = true, __VA_ARGS__)
	    BOTH(cuGraphLaunch, _ptsz, .graph = ARGUMENT(1), STREAM(2)) BOTH(
	        cuMemcpy2D_v2, _ptds, .copy_2d = ARGUMENT(1)) BOTH(cuMemcpy2DUnaligned_v2, _ptds,
	                                                           .copy_2d = ARGUMENT(1))
	        BOTH(cuMemcpy2DAsync_v2, _ptsz, .copy_2d = ARGUMENT(1), STREAM(2)) BOTH(
	            cuMemcpy3D_v2, _ptds,
	            .copy_3d = ARGUMENT(1)) BOTH(cuMemcpy3DAsync_v2, _ptsz, .copy_3d = ARGUMENT(1),
	                                         STREAM(2)) BOTH(cuMemcpy3DPeer, _ptds,
	                                                         .copy_peer = ARGUMENT(1))
	            BOTH(cuMemcpy3DPeerAsync, _ptsz, .copy_peer = ARGUMENT(1), STREAM(2)) BOTH(
	                cuMemcpyBatchAsync,
	                _ptsz, COPIES, STREAM(9)) BOTH(cuMemcpyBatchAsync_v2, _ptsz, COPIES, STREAM(8))
	                BOTH(cuMemcpy3DBatchAsync, _ptsz, .count = 0x100, .copies_3d = ARGUMENT(2), STREAM(5))
	                    BOTH(cuMemcpy3DBatchAsync_v2, _ptsz, .count = 0x100, .copies_3d = ARGUMENT(2),
	                         STREAM(4)) BOTH(cuMemsetD2D8_v2, _ptds, .set = {0x100, 0x200, 0x400, 0x500})
	                        BOTH(cuMemsetD2D8Async, _ptsz, .set = {0x100, 0x200, 0x400, 0x500}, STREAM(6))
	                            BOTH(cuMemsetD2D16_v2, _ptds, .set = {0x100, 0x200, 0x800, 0x500})
	                                BOTH(cuMemsetD2D16Async, _ptsz, .set = {0x100, 0x200, 0x800, 0x500},
	                                     STREAM(6)) BOTH(cuMemsetD2D32_v2, _ptds,
	                                                     .set = {0x100, 0x200, 0x1000, 0x500})
	                                    BOTH(cuMemsetD2D32Async, _ptsz,
	                                         .set = {0x100, 0x200, 0x1000, 0x500}, STREAM(6))};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
			CUresult (*stub)(void *, void *, void *, void *, void *, void *, void *, void *,
			                 void *);
			*(void **)&stub = spill_stub(rows[i].hook, way);
			memset(&hinted, 0xff, sizeof(hinted));
			for (int wanted = 0; wanted < 2; wanted++) {
				spill_launch_access_wanted = wanted;
				assert_int_equal(stub(ARGUMENT(1), ARGUMENT(2), ARGUMENT(3), ARGUMENT(4),
				                      ARGUMENT(5), ARGUMENT(6), ARGUMENT(7), ARGUMENT(8),
				                      ARGUMENT(9)),
				                 ANSWER);
				if (!wanted)
					assert_int_equal(hinted.count, SIZE_MAX);
			}
			spill_launch_access_wanted = false;
			const struct spill_hint *is = &hinted, *expected = &rows[i].hint;
#define SAME(member) assert_true(is->member == expected->member)
			SAME(function), SAME(graph), SAME(copy_2d), SAME(copy_3d), SAME(copy_peer);
			SAME(copies_3d), SAME(to), SAME(from), SAME(sizes), SAME(count), SAME(stream);
			SAME(set.to), SAME(set.pitch), SAME(set.bytes), SAME(set.height), SAME(per_thread);
			assert_true(!is->ranges[0].bytes && !is->ranges[1].bytes);
		}
}

/* Once a graph was launched by its nodes, each launch of a graph is asked about, because of the order of launches. */
TEST(graphs_may_be_launched_by_nodes)
{
	for (int used = 0; used < 2; used++)
		for (int wanted = 0; wanted < 2; wanted++)
			for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
				CUresult (*stub)(CUgraphExec exec, CUstream stream);
				CUresult (*other)(CUdeviceptr to, CUdeviceptr from, size_t bytes);
				*(void **)&stub = spill_stub(SPILL_HOOK_cuGraphLaunch_ptsz, way);
				*(void **)&other = spill_stub(SPILL_HOOK_cuMemcpy, way);
				launches_nodes = false;
				stub(NULL, NULL); /* the first call of a thread or row is no usual one */
				launches_nodes = true;
				spill_graph_modes_used = used;
				spill_launch_access_wanted = wanted;
				calls = 0;
				may_by_nodes = -1;
				assert_int_equal(stub(ARGUMENT(1), ARGUMENT(2)),
				                 used ? CUDA_ERROR_INVALID_HANDLE : ANSWER);
				assert_int_equal(calls, !used);
				assert_int_equal(may_by_nodes, used ? wanted : -1);
				assert_true(!used || (by_nodes.graph == ARGUMENT(1) &&
				                      by_nodes.stream == ARGUMENT(2) && by_nodes.per_thread));
				assert_int_equal(other(1, 2, 3), ANSWER);
				spill_thread.depth = 1; /* a call of ours */
				assert_int_equal(stub(ARGUMENT(1), ARGUMENT(2)), ANSWER);
				spill_thread.depth = 0;
				spill_graph_modes_used = spill_launch_access_wanted = false;
			}
	launches_nodes = false;
}

/* -- rows that end functions ------------------------------------------------------------------------------ */

static unsigned ended;

static CUresult end_something(void *what)
{
	assert_int_equal(forgotten, ended + 1); /* before: behind it the handle can be another's */
	ended++;
	return ANSWER;
}

/* Records of functions are dropped, whichever call ends the functions. */
TEST(what_ends_functions_has_them_forgotten)
{
	static const enum spill_hook ends[] = {
	    SPILL_HOOK_cuModuleUnload,
	    SPILL_HOOK_cuLibraryUnload,
	    SPILL_HOOK_cuCtxDestroy,
	    SPILL_HOOK_cuCtxDestroy_v2,
	    SPILL_HOOK_cuDevicePrimaryCtxRelease,
	    SPILL_HOOK_cuDevicePrimaryCtxRelease_v2,
	    SPILL_HOOK_cuDevicePrimaryCtxReset,
	    SPILL_HOOK_cuDevicePrimaryCtxReset_v2,
	};
	function_end = end_something;
	spill_thread.depth = 1; /* nothing of the engine */
	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
			CUresult (*stub)(void *what);
			*(void **)&stub = spill_stub(ends[i], way);
			unsigned before = ended;
			assert_int_equal(stub(NULL), ANSWER);
			assert_int_equal(ended, before + 1);
		}
	spill_thread.depth = 0;
	function_end = NULL;
}

/* -- rows that make, change and end executable graphs ------------------------------------------------------- */

#define EXEC ((CUgraphExec)0x1230)
static CUresult graph_answer;

static CUresult end_graph(void *what)
{
	assert_int_equal(spill_graph_access_memory(EXEC),
	                 0); /* before: behind it the handle can be another's */
	assert_ptr_equal(ended_exec, EXEC);
	return ANSWER;
}

TEST(what_ends_graphs_has_them_forgotten)
{
	function_end = end_graph;
	for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
		CUresult (*stub)(CUgraphExec exec);
		*(void **)&stub = spill_stub(SPILL_HOOK_cuGraphExecDestroy, way);
		spill_graph_access_keep(EXEC, &(struct spill_graph_access){.memory = 4096});
		assert_int_equal(spill_graph_access_memory(EXEC), 4096);
		ended_exec = NULL;
		assert_int_equal(stub(EXEC), ANSWER);
	}
	function_end = NULL;
}

/* Of the same arguments: what is made, or changed; what of; more. */
static CUresult change_graph(void *what)
{
	assert_int_equal(looks, 0); /* behind it */
	return graph_answer;
}

TEST(graphs_are_looked_at_behind_the_call)
{
	CUgraphExec made = EXEC;
	void *const second = &looked, *const third = &looks;
	const struct {
		enum spill_hook hook;
		void *first;
		struct spill_graph_change change;
	} rows[] = {
	    {SPILL_HOOK_cuGraphInstantiate, &made, {.made = &made, .graph = second}},
	    {SPILL_HOOK_cuGraphInstantiate_v2, &made, {.made = &made, .graph = second}},
	    {SPILL_HOOK_cuGraphInstantiateWithFlags, &made, {.made = &made, .graph = second}},
	    {SPILL_HOOK_cuGraphInstantiateWithParams, &made, {.made = &made, .graph = second}},
	    {SPILL_HOOK_cuGraphInstantiateWithParams_ptsz, &made, {.made = &made, .graph = second}},
	    {SPILL_HOOK_cuGraphExecUpdate, EXEC, {.exec = EXEC, .graph = second}},
	    {SPILL_HOOK_cuGraphExecUpdate_v2, EXEC, {.exec = EXEC, .graph = second}},
	    {SPILL_HOOK_cuGraphExecKernelNodeSetParams, EXEC, {.exec = EXEC, .at = second, .kernel = third}},
	    {SPILL_HOOK_cuGraphExecKernelNodeSetParams_v2,
	     EXEC,
	     {.exec = EXEC, .at = second, .kernel_v2 = third}},
	    {SPILL_HOOK_cuGraphExecMemcpyNodeSetParams, EXEC, {.exec = EXEC, .at = second, .copy = third}},
	    {SPILL_HOOK_cuGraphExecMemsetNodeSetParams, EXEC, {.exec = EXEC, .at = second, .set = third}},
	    {SPILL_HOOK_cuGraphExecChildGraphNodeSetParams,
	     EXEC,
	     {.exec = EXEC, .at = second, .graph = third, .child = true}},
	    {SPILL_HOOK_cuGraphNodeSetEnabled, EXEC, {.exec = EXEC, .at = second}},
	    {SPILL_HOOK_cuGraphRetainUserObject, EXEC, {.alone = true}},
	    {SPILL_HOOK_cuGraphExecNodeSetParams, EXEC, {.exec = EXEC, .at = second, .node = third}},
	};
	function_end = change_graph;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
			CUresult (*stub)(void *first, void *second, void *third, void *fourth, size_t fifth);
			*(void **)&stub = spill_stub(rows[i].hook, way);
			looks = 0;
			graph_answer = CUDA_SUCCESS;
			assert_int_equal(stub(rows[i].first, second, third, NULL, 0), CUDA_SUCCESS);
			assert_int_equal(looks, 1);
			assert_memory_equal(&looked, &rows[i].change, sizeof(looked));
			looks = 0;
			graph_answer = ANSWER;
			assert_int_equal(stub(rows[i].first, second, third, NULL, 0), ANSWER);
			graph_answer = CUDA_SUCCESS;
			spill_thread.depth = 1; /* a call of ours */
			assert_int_equal(stub(rows[i].first, second, third, NULL, 0), CUDA_SUCCESS);
			spill_thread.depth = 0;
			assert_int_equal(looks, 0);
		}
	function_end = NULL;
}

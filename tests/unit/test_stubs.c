/*
 * The stubs of rows that submit no work (shim/stubs.c), around a driver and an engine of this test's: what they ask and count. Each
 * case runs in a child of its own.
 */
#include "childtest.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "abi/cuda.h"
#include "abi/cuda_work.h"
#include "abi/hip.h"
#include "abi/nvml.h"
#include "gate.h"
#include "graph_hints.h"
#include "hints.h"
#include "layouts.h"
#include "libc_symbol.h"
#include "make_room.h"
#include "movable.h"
#include "no_hints.h"
#include "note.h"
#include "process.h"
#include "real.h"
#include "record.h"
#include "request.h"
#include "runtime.h"
#include "said.h"
#include "stderr.h"
#include "vendor_pool.h"
#include "work.h"

static bool off, started, without_driver;
static struct spill_request asked; /* the last one that the engine saw */
static unsigned turns = 1;         /* so many times the engine wants the driver asked */
static const struct spill_shim *shim;

/* -- the driver ------------------------------------------------------------------------------------------- */

static CUresult real_alloc(CUdeviceptr *ptr, size_t bytes)
{
	CHECK(errno == ERANGE && bytes == 512);
	say("real", bytes);
	*ptr = 0x5000;
	return (CUresult)7;
}

static CUresult real_of_pointers(void *first, void *second)
{
	say("real", (uintptr_t)first);
	return (CUresult)8;
}

static CUresult real_add_node(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies, size_t count,
                              CUgraphNodeParams *params)
{
	say("real", (unsigned)params->type);
	return CUDA_SUCCESS;
}

static CUresult real_set(CUdeviceptr to, unsigned char value, size_t bytes)
{
	return CUDA_SUCCESS;
}

void *spill_real(const struct spill_row *row, const void *caller)
{
	int hook = spill_row_index(row);
	errno = EDOM;
	if (without_driver)
		return NULL;
	return hook == SPILL_HOOK_cuMemAlloc_v2    ? (void *)real_alloc
	       : hook == SPILL_HOOK_cuGraphAddNode ? (void *)real_add_node
	       : row->op == SPILL_OP_GATE          ? (void *)real_set
	                                           : (void *)real_of_pointers;
}

void spill_real_remember(const struct spill_row *row, const void *caller, void *real)
{
}

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	return NULL;
}

/* -- the engine and the library's life -------------------------------------------------------------------- */

bool spill_request_next(struct spill_request *request)
{
	static unsigned turn;
	say("next", turn);
	asked = *request;
	errno = ERANGE;
	if (turn == turns) {
		turn = 0;
		return false;
	}
	turn++;
	return true;
}

bool spill_runtime_ready(const struct spill_shim *of)
{
	shim = of;
	errno = EDOM;
	say("ready", !off);
	return !off;
}

bool spill_runtime_started(void)
{
	errno = EDOM;
	say("started", started);
	return started;
}

static unsigned remembered;

void spill_stderr_remember(void)
{
	remembered++;
}

/* What other calls of work and look-ups need. */
_Atomic bool spill_launch_access_wanted;

void spill_after_launch(void *stopwatch)
{
}

bool spill_vendor_pool_has_graphs(void)
{
	return false;
}

bool spill_make_room_for(enum spill_domain domain, int result, const char *api, const void *caller,
                         unsigned attempt, uint64_t whole)
{
	return false;
}

void spill_movable_forbid(const char *reason)
{
}

static char note[512];

void spill_note(const char *code, const char *text)
{
	CHECK(!strcmp(code, "foreign-dlsym"));
	snprintf(note, sizeof(note), "%s", text);
}

/* The dlsym that this program calls is libc's. */
static bool wrapped;

static void *behind_the_wrapper(void *handle, const char *name)
{
	return NULL;
}

spill_dlsym_fn *spill_real_dlsym(void)
{
	return wrapped ? behind_the_wrapper : dlsym;
}

int spill_real_dlclose(void *handle)
{
	return 0;
}

/* -- requests --------------------------------------------------------------------------------------------- */

static bool are_said(const char *words)
{
	const char *last = what_was_said();
	if (strcmp(last, words) != 0)
		fprintf(stderr, "said: %s\n", last);
	return strcmp(last, words) == 0;
}

static CUresult allocate(enum spill_way way, CUdeviceptr *ptr)
{
	CUresult (*stub)(CUdeviceptr *, size_t);
	*(void **)&stub = spill_stub(SPILL_HOOK_cuMemAlloc_v2, way);
	errno = ERANGE;
	return stub(ptr, 512);
}

static int call(enum spill_hook hook, void *first, void *second)
{
	int (*stub)(void *, void *);
	*(void **)&stub = spill_stub(hook, SPILL_WAY_LINK);
	return stub(first, second);
}

/* While it is loaded, and nothing else is done then. */
CHILD_TEST(the_library_remembers_its_stderr)
{
	CHECK(remembered == 1 && are_said(""));
}

CHILD_TEST(the_engine_says_when_the_driver_is_asked)
{
	CUdeviceptr ptr = 0;
	CHECK(allocate(SPILL_WAY_DLSYM, &ptr) == (CUresult)7 && ptr == 0x5000);
	CHECK(are_said("ready:1 next:0 real:512 next:1"));
	CHECK(asked.hook == SPILL_HOOK_cuMemAlloc_v2 && asked.op == SPILL_OP_ALLOC && asked.result == 7);
	CHECK(asked.domain == SPILL_CUDA_DRIVER && asked.way == SPILL_WAY_DLSYM && !asked.per_thread);
	CHECK(asked.caller && asked.real == (void *)real_alloc && !strcmp(asked.api, "cuMemAlloc_v2"));
	CHECK(asked.out == &ptr && asked.bytes == 512 && !asked.pass);
	turns = 3;
	CHECK(allocate(SPILL_WAY_LINK, &ptr) == (CUresult)7);
	CHECK(are_said("ready:1 next:0 real:512 next:1 real:512 next:2 real:512 next:3"));
	turns = 0; /* the engine serves it */
	CHECK(allocate(SPILL_WAY_LINK, &ptr) == CUDA_SUCCESS && are_said("ready:1 next:0"));
}

CHILD_TEST(a_call_passes_if_libspill_is_off_or_calls_itself)
{
	CUdeviceptr ptr = 0;
	off = true;
	CHECK(allocate(SPILL_WAY_LINK, &ptr) == (CUresult)7 && asked.pass);
	CHECK(are_said("ready:0 next:0 real:512 next:1"));
	off = false;
	spill_thread.depth = 1;
	CHECK(allocate(SPILL_WAY_LINK, &ptr) == (CUresult)7 && asked.pass);
	CHECK(are_said("next:0 real:512 next:1"));
	spill_thread.depth = 0;
}

/* A monitor asks NVML, and uses no GPU: that does not start the library. */
CHILD_TEST(questions_of_nvml_start_nothing)
{
	char device, answer;
	for (unsigned i = 0; i < 2; i++) {
		started = i;
		CHECK(call(SPILL_HOOK_nvmlDeviceGetMemoryInfo, &device, &answer) == 8 && asked.pass == !i);
		what_was_said();
	}
	call(SPILL_HOOK_nvmlDeviceGetMemoryInfo, NULL, &answer);
	CHECK(are_said("started:1 next:0 real:0 next:1"));
	call(SPILL_HOOK_hipMalloc, NULL, NULL);
	CHECK(are_said("ready:1 next:0 real:0 next:1") && asked.domain == SPILL_HIP);
}

/* The vendor's own words for that; the engine has nothing to say then. */
CHILD_TEST(nobody_has_the_function)
{
	CUdeviceptr ptr = 0;
	without_driver = true;
	CHECK(allocate(SPILL_WAY_LINK, &ptr) == CUDA_ERROR_NOT_INITIALIZED);
	CHECK(call(SPILL_HOOK_hipMalloc, NULL, NULL) == 3);
	CHECK(are_said("ready:1 ready:1"));
	CHECK(call(SPILL_HOOK_nvmlDeviceGetMemoryInfo, NULL, NULL) == 1 /* NVML_ERROR_UNINITIALIZED */);
	CHECK(are_said("started:0"));
}

/* A node that allocates, one that frees, and another. */
CHILD_TEST(arguments_can_change_the_operation)
{
	static const CUgraphNodeType types[] = {CU_GRAPH_NODE_TYPE_MEM_ALLOC, CU_GRAPH_NODE_TYPE_MEM_FREE,
	                                        CU_GRAPH_NODE_TYPE_KERNEL};
	CUresult (*stub)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUgraphNodeParams *);
	*(void **)&stub = spill_stub(SPILL_HOOK_cuGraphAddNode, SPILL_WAY_PROC);
	for (unsigned i = 0; i < 3; i++) {
		CUgraphNodeParams params = {.type = types[i]};
		if (i == 0)
			params.alloc.bytesize = 512;
		if (i == 1)
			params.free.dptr = 0x5000;
		CHECK(stub(NULL, NULL, NULL, 0, &params) == CUDA_SUCCESS);
		CHECK(asked.op == (i == 1 ? SPILL_OP_GRAPH_FREE : SPILL_OP_GRAPH_ALLOC));
		CHECK(asked.bytes == (i == 0 ? 512 : 0) && asked.ptr == (i == 1 ? 0x5000 : 0));
		CHECK(asked.out == (i == 0 ? &params.alloc.dptr : NULL));
	}
}

/* -- counts ----------------------------------------------------------------------------------------------- */

static void set_bytes(enum spill_hook hook, enum spill_way way, unsigned times)
{
	CUresult (*stub)(CUdeviceptr, unsigned char, size_t);
	*(void **)&stub = spill_stub(hook, way);
	while (times--)
		CHECK(stub(0, 0, 0) == CUDA_SUCCESS);
}

/* Of what the exit line says: SYMBOL/WAY:COUNT, in the order of the table. */
static const char *hits(void)
{
	char name[64];
	unsigned count = shim->hits();
	what_was_said();
	for (unsigned i = 0; i < count; i++) {
		snprintf(name, sizeof(name), "%s/%s", shim->exit_hits[i].symbol, shim->exit_hits[i].way);
		say(name, shim->exit_hits[i].count);
	}
	return what_was_said();
}

/* Those of work are counted by the gate, in each thread. */
CHILD_TEST(calls_are_counted_by_row_and_way)
{
	CUdeviceptr ptr;
	allocate(SPILL_WAY_DLSYM, &ptr);
	allocate(SPILL_WAY_DLSYM, &ptr);
	allocate(SPILL_WAY_PROC, &ptr);
	call(SPILL_HOOK_hipMalloc, NULL, NULL);
	set_bytes(SPILL_HOOK_cuMemsetD8_v2, SPILL_WAY_LINK, 3);
	set_bytes(SPILL_HOOK_cuMemsetD8_v2, SPILL_WAY_PROC, 4);
	set_bytes(SPILL_HOOK_cuMemsetD16_v2, SPILL_WAY_DLSYM, 5);
	CHECK(!strcmp(hits(), "cuMemAlloc_v2/dlsym:2 cuMemAlloc_v2/proc:1 cuMemsetD8_v2/link:3 "
	                      "cuMemsetD8_v2/proc:4 cuMemsetD16_v2/dlsym:5 hipMalloc/link:1"));
	CHECK(shim->counters == SPILL_WORK_COUNTERS && shim->note_bypass == spill_lookup_note_wrapper);
	CHECK(shim->symbols.resolve == spill_real_resolve && shim->symbols.beside == spill_real_beside);
}

/* Work of a thread whose counters nobody has, because the library starts on it: by the table, as all other rows. */
CHILD_TEST(work_outside_the_gate_is_counted_too)
{
	CUdeviceptr ptr;
	spill_thread.depth = 1;
	set_bytes(SPILL_HOOK_cuMemsetD8_v2, SPILL_WAY_LINK, 2);
	spill_thread.depth = 0;
	set_bytes(SPILL_HOOK_cuMemsetD8_v2, SPILL_WAY_LINK, 3);
	allocate(SPILL_WAY_LINK, &ptr);
	CHECK(!strcmp(hits(), "cuMemAlloc_v2/link:1 cuMemsetD8_v2/link:5"));
}

/* -- wrappers --------------------------------------------------------------------------------------------- */

/* It is before libspill's, so what it finds may go past libspill. */
CHILD_TEST(another_dlsym_before_ours_is_noted)
{
	CUdeviceptr ptr;
	allocate(SPILL_WAY_LINK, &ptr);
	shim->note_bypass();
	CHECK(!note[0]);
	wrapped = true;
	shim->note_bypass();
	CHECK(strstr(
	    note, "libc.so.6 has a dlsym before libspill's: functions that it finds may go past libspill"));
}

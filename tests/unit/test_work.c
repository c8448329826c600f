/*
 * Stubs of rows that submit work (shim/work.h): what they do around the driver's call, on a driver of our own. The
 * library's start, its room and the look-up of real functions are replaced. Each case runs in a child of its own.
 */
#include "work.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "childtest.h"
#include "abi/cuda.h"
#include "abi/cuda_work.h"
#include "graph_access.h"
#include "vendor_pool.h"
#include "make_room.h"
#include "movable.h"
#include "process.h"

/* -- the driver ------------------------------------------------------------------------------------------- */

static unsigned calls, full_calls; /* so many calls are out of memory */
static bool was_inside;
static int errno_at_call;
static CUresult (*in_call)(void);

static CUresult real_launch(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, CUstream stream, void **parameters, void **extra)
{
	CHECK(f == (CUfunction)1 && gx == 2 && gy == 3 && gz == 4 && bx == 5 && by == 6 && bz == 7);
	CHECK(shared == 8 && stream == (CUstream)9 && parameters == (void **)10 && extra == (void **)11);
	calls++;
	errno_at_call = errno;
	was_inside = spill_gate_self && atomic_load(&spill_gate_self->inside);
	errno = ERANGE;
	if (in_call)
		return in_call();
	return calls <= full_calls ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

SPILL_WORK_STUB(static, launch_linked, LINK, CUresult, cuLaunchKernel,
                (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                 unsigned shared, CUstream stream, void **parameters, void **extra),
                (f, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra))
SPILL_WORK_STUB(static, copy_found, PROC, CUresult, cuMemcpyAsync,
                (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream), (to, from, bytes, stream))

SPILL_WORK_STUB_WITH(, graph, static, launch_graph, LINK, CUresult, cuGraphLaunch,
                     (CUgraphExec graph, CUstream stream), (graph, stream))
SPILL_WORK_STUB(static, upload, LINK, CUresult, cuGraphUpload, (CUgraphExec graph, CUstream stream),
                (graph, stream))

static CUresult real_graph(const void *graph, CUstream stream)
{
	(void)graph;
	(void)stream;
	return ++calls <= full_calls ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult launch(void)
{
	return launch_linked((CUfunction)1, 2, 3, 4, 5, 6, 7, 8, (CUstream)9, (void **)10, (void **)11);
}

/* -- what is replaced ------------------------------------------------------------------------------------- */

static bool off;
static unsigned look_ups;
static unsigned rooms, room_until = 1000;
static int room_result;
static unsigned room_attempt;
static uint64_t room_whole;
static const char *room_api;

_Atomic uint64_t spill_row_hits[SPILL_HOOKS][SPILL_WAYS_COUNT];
const struct spill_row spill_rows[SPILL_HOOKS] = {
    [SPILL_HOOK_cuLaunchKernel] = {.symbol = "cuLaunchKernel"},
    [SPILL_HOOK_cuMemcpyAsync] = {.symbol = "cuMemcpyAsync"},
    [SPILL_HOOK_cuGraphLaunch] = {.symbol = "cuGraphLaunch"},
    [SPILL_HOOK_cuGraphUpload] = {.symbol = "cuGraphUpload"},
    [SPILL_HOOK_cuMemBatchDecompressAsync] = {.symbol = "cuMemBatchDecompressAsync"},
    [SPILL_HOOK_cuMemBatchDecompressAsync_ptsz] = {.symbol = "cuMemBatchDecompressAsync_ptsz"},
};

bool spill_shim_ready(void)
{
	errno = EDOM;
	return !off;
}

void *spill_real(const struct spill_row *row, const void *caller)
{
	errno = EDOM;
	look_ups++;
	if (row == &spill_rows[SPILL_HOOK_cuGraphLaunch] || row == &spill_rows[SPILL_HOOK_cuGraphUpload])
		return (void *)real_graph;
	return row == &spill_rows[SPILL_HOOK_cuLaunchKernel] ? (void *)real_launch : NULL;
}

static bool make_room(enum spill_domain domain, int result, const char *api, const void *caller,
                      unsigned attempt, uint64_t whole)
{
	CHECK(domain == SPILL_CUDA_DRIVER && attempt == rooms);
	CHECK(!atomic_load(&spill_gate_self->inside)); /* else who makes room would wait for this thread */
	errno = EDOM;
	room_api = api;
	room_result = result;
	room_attempt = attempt;
	room_whole = whole;
	return rooms++ < room_until;
}

__attribute__((constructor)) static void replace(void)
{
	spill_make_room_use(make_room);
}

/* -- cases ------------------------------------------------------------------------------------------------ */

static uint64_t counted(void)
{
	return spill_gate_counted(spill_work_counter(SPILL_WORK_cuLaunchKernel, SPILL_WAY_LINK));
}

static uint64_t hits(void)
{
	return spill_row_hits[SPILL_HOOK_cuLaunchKernel][SPILL_WAY_LINK];
}

CHILD_TEST(passes_the_gate)
{
	errno = 0;
	CHECK(launch() == CUDA_SUCCESS && calls == 1 && was_inside);
	CHECK(errno_at_call == 0 && errno == ERANGE); /* the program's before, the driver's after */
	CHECK(spill_gate_self && !atomic_load(&spill_gate_self->inside));
	CHECK(launch() == CUDA_SUCCESS && calls == 2 && was_inside);
	CHECK(look_ups == 1); /* by the first call alone */
	CHECK(counted() == 2 && hits() == 0 && rooms == 0);
	CHECK(spill_gate_counted(spill_work_counter(SPILL_WORK_cuLaunchKernel, SPILL_WAY_PROC)) == 0);
}

CHILD_TEST(nobody_has_the_function)
{
	CHECK(copy_found(0, 0, 0, NULL) == (CUresult)SPILL_NOT_INITIALIZED); /* there is no such function */
	CHECK(spill_work_real[SPILL_WORK_cuMemcpyAsync] == NULL && calls == 0);
	CHECK(spill_gate_counted(spill_work_counter(SPILL_WORK_cuMemcpyAsync, SPILL_WAY_PROC)) == 0);
}

static CUresult refuse(void)
{
	return CUDA_ERROR_INVALID_VALUE;
}

CHILD_TEST(is_asked_once_without_need)
{
	in_call = refuse;
	CHECK(launch() == CUDA_ERROR_INVALID_VALUE && calls == 1 && rooms == 0);
}

CHILD_TEST(is_asked_again_with_room)
{
	full_calls = 3;
	CHECK(launch() == CUDA_SUCCESS && calls == 4 && rooms == 3 && was_inside);
	CHECK(errno == ERANGE);
	CHECK(room_result == CUDA_ERROR_OUT_OF_MEMORY && room_attempt == 2);
	CHECK(!strcmp(room_api, "cuLaunchKernel"));
	CHECK(counted() == 1); /* the program made one call */
	CHECK(!atomic_load(&spill_gate_self->inside));
}

CHILD_TEST(fails_without_room)
{
	full_calls = 1000;
	room_until = 2;
	CHECK(launch() == CUDA_ERROR_OUT_OF_MEMORY && calls == 3 && rooms == 3);
	CHECK(errno == ERANGE);
	CHECK(!atomic_load(&spill_gate_self->inside));
}

static int reserves_nothing(int device, uint64_t *bytes)
{
	*bytes = 0;
	return device;
}

/* A refused launch loses what it had got: asked again once, and only for room for all of it. */
CHILD_TEST(graphs_with_memory_of_their_own)
{
	static const struct spill_backend backend = {.graph_reserved = reserves_nothing};
	CUgraphExec known = (CUgraphExec)0x1000, other = (CUgraphExec)0x2000;
	full_calls = 3;
	CHECK(launch_graph(other, NULL) == CUDA_SUCCESS && calls == 4 && rooms == 3);
	CHECK(room_whole == 0); /* nobody has such memory */
	spill_vendor_pool_graphs(&backend, 0);
	spill_graph_access_keep(known, &(struct spill_graph_access){.memory = 4096});
	full_calls = 1000;
	calls = rooms = 0;
	CHECK(launch_graph(other, NULL) == CUDA_ERROR_OUT_OF_MEMORY && calls == 1 && rooms == 0);
	CHECK(upload(known, NULL) == CUDA_ERROR_OUT_OF_MEMORY && calls == 2 && rooms == 0);
	CHECK(launch_graph(known, NULL) == CUDA_ERROR_OUT_OF_MEMORY && calls == 4 && rooms == 1);
	CHECK(room_whole == 4096 && !strcmp(room_api, "cuGraphLaunch"));
	rooms = 0;
	full_calls = calls + 1;
	CHECK(launch_graph(known, NULL) == CUDA_SUCCESS && rooms == 1);
	rooms = 0;
	full_calls = calls + 3;
	CHECK(launch() == CUDA_SUCCESS && rooms == 3 && room_whole == 0);
}

/* Work of the device itself on memory that cuMemAlloc made. */
CHILD_TEST(nothing_moves_for_who_has_the_device_decompress)
{
	static const enum spill_hook hooks[] = {SPILL_HOOK_cuMemBatchDecompressAsync,
	                                        SPILL_HOOK_cuMemBatchDecompressAsync_ptsz};
	static struct spill_policy policy;
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	spill_work_wanted(&spill_rows[SPILL_HOOK_cuLaunchKernel]);
	CHECK(!spill_movable_never(0));
	for (unsigned i = 0; i < 2; i++) {
		spill_thread.depth = 1; /* our own look-up */
		spill_work_wanted(&spill_rows[hooks[i]]);
		CHECK(!spill_movable_never(0));
		spill_thread.depth = 0;
		spill_work_wanted(&spill_rows[hooks[i]]);
		CHECK(spill_movable_never(0));
		spill_movable_reset();
	}
}

/* A program that is linked with it looks nothing up: the first call tells. */
CHILD_TEST(nothing_moves_behind_the_first_call_to_decompress)
{
	static struct spill_policy policy;
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	CHECK(launch() == CUDA_SUCCESS && !spill_movable_never(0));
	CHECK(!spill_work_begin(SPILL_HOOK_cuMemBatchDecompressAsync, SPILL_WORK_cuMemBatchDecompressAsync,
	                        SPILL_WAY_LINK));
	CHECK(spill_movable_never(0));
}

CHILD_TEST(names_the_call_of_the_runtime)
{
	struct spill_request frame = {.api = "cudaLaunchKernel"};
	full_calls = 1;
	spill_thread.frame = &frame;
	CHECK(launch() == CUDA_SUCCESS && !strcmp(room_api, "cudaLaunchKernel"));
}

CHILD_TEST(our_own_make_no_room)
{
	CHECK(launch() == CUDA_SUCCESS);
	spill_thread.depth = 1;
	full_calls = 1000;
	CHECK(launch() == CUDA_ERROR_OUT_OF_MEMORY && calls == 2 && rooms == 0);
	CHECK(counted() == 2);
}

static CUresult call_within(void)
{
	in_call = NULL;
	full_calls = 1000;
	CHECK(launch() == CUDA_ERROR_OUT_OF_MEMORY && was_inside); /* of the one around it */
	CHECK(atomic_load(&spill_gate_self->inside));
	return CUDA_SUCCESS;
}

CHILD_TEST(a_call_within_a_call)
{
	in_call = call_within;
	CHECK(launch() == CUDA_SUCCESS && calls == 2 && rooms == 0);
	CHECK(!atomic_load(&spill_gate_self->inside));
	CHECK(counted() == 2);
}

CHILD_TEST(off_means_off)
{
	off = true;
	full_calls = 1000;
	CHECK(launch() == CUDA_ERROR_OUT_OF_MEMORY && calls == 1 && rooms == 0);
	CHECK(errno == ERANGE && !spill_gate_self && counted() == 0 && hits() == 0);
}

/* On this thread, while libspill starts: what the start calls comes here. */
CHILD_TEST(while_starting)
{
	spill_thread.depth = 1;
	CHECK(launch() == CUDA_SUCCESS && calls == 1 && !spill_gate_self);
	CHECK(hits() == 1);
	spill_thread.depth = 0;
	CHECK(launch() == CUDA_SUCCESS && was_inside && counted() == 1);
}

static void *first_call_of_a_thread(void *argument)
{
	errno = EDOM;
	CHECK(!spill_gate_self && launch() == CUDA_SUCCESS && was_inside && errno == ERANGE);
	return argument;
}

CHILD_TEST(each_thread_joins)
{
	pthread_t thread;
	CHECK(launch() == CUDA_SUCCESS);
	CHECK(pthread_create(&thread, NULL, first_call_of_a_thread, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK(counted() == 2);
}

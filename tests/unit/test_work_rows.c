/*
 * Every stub of every row that submits work passes the gate: the driver's functions are replaced by ones that look whether
 * they run inside. The stubs are the library's own (shim/stubs.c). Each row runs in a child of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "../rows/zero.h"
#include "abi/cuda.h"
#include "abi/cuda_work.h"
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

bool __wrap_spill_runtime_ready(const struct spill_shim *shim);
void *__wrap_spill_real(const struct spill_row *row, const void *caller);

bool __wrap_spill_runtime_ready(const struct spill_shim *shim)
{
	return true;
}

void *__wrap_spill_real(const struct spill_row *row, const void *caller)
{
	for (size_t i = 0; i < COUNT; i++)
		if (&spill_rows[work[i].hook] == row)
			return work[i].fake;
	return (void *)function_end;
}

/* The first call of a row finds the function and has the thread join; the second is the usual one. */
static const char *wrong_with(size_t i, enum spill_way way)
{
	for (unsigned time = 1; time <= 2; time++) {
		calls = 0;
		was_inside = false;
		if (work[i].call(spill_rows[work[i].hook].stub[way]) != ANSWER)
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

static void every_stub_passes_the_gate(void **state)
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
static void no_other_row_is_work(void **state)
{
	size_t gates = 0;
	for (int hook = 0; hook < SPILL_HOOKS; hook++)
		if (spill_rows[hook].op == SPILL_OP_GATE)
			assert_int_equal(work[gates++].hook, hook);
	assert_int_equal(gates, COUNT);
	assert_int_equal(gates, SPILL_WORKS);
	assert_true(gates > 100);
}

/* -- rows that end functions ------------------------------------------------------------------------------ */

static unsigned forgotten, ended;

void __wrap_spill_layouts_forget(void);

void __wrap_spill_layouts_forget(void)
{
	forgotten++;
}

static CUresult end_something(void *what)
{
	assert_int_equal(forgotten, ended + 1); /* before: behind it the handle can be another's */
	ended++;
	return ANSWER;
}

/* What was learned of functions is forgotten, by whoever they are ended. */
static void what_ends_functions_has_them_forgotten(void **state)
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
			*(void **)&stub = spill_rows[ends[i]].stub[way];
			unsigned before = ended;
			assert_int_equal(stub(NULL), ANSWER);
			assert_int_equal(ended, before + 1);
		}
	spill_thread.depth = 0;
	function_end = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_other_row_is_work),
	    cmocka_unit_test(every_stub_passes_the_gate),
	    cmocka_unit_test(what_ends_functions_has_them_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}

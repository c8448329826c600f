/*
 * What a driver's resolver answers becomes our stub of that very row, or stays as it is. The look-up is the library's own
 * (shim/lookup.c), and the driver is a table: of each row it has the function that it exports, and the one that its
 * resolver answers, which may be another.
 */
#define SETUP setup
#include "unit.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "caller.h"
#include "graph_hints.h"
#include "hints.h"
#include "layouts.h"
#include "movable.h"
#include "no_hints.h"
#include "note.h"
#include "process.h"
#include "real.h"
#include "runtime.h"
#include "scratch.h"

static char exported[SPILL_HOOKS], answered[SPILL_HOOKS]; /* their addresses are functions */
static bool has_newer, has_older;                         /* forms of the resolver */
static unsigned newer_calls, older_calls, notes;
static char noted[32], noted_text[256];
static struct spill_policy policy;
static void *in_driver;   /* not NULL: what the driver exports, whatever the row */
static void *in_resolver; /* what its resolver gives */

/* -- the driver ------------------------------------------------------------------------------------------- */

/* The newest row of the base that a program of `version` may have. */
static void *answer_of(const char *base, int version, cuuint64_t flags)
{
	const struct spill_row *best = NULL;
	for (const struct spill_row *row = spill_rows; row < spill_rows + SPILL_HOOKS; row++)
		if (row->domain == SPILL_CUDA_DRIVER && strcmp(row->base, base) == 0 &&
		    row->since <= version && (row->variant != SPILL_VARIANT_LEGACY) == (flags == 2) &&
		    (!best || best->since < row->since))
			best = row;
	return best ? &answered[spill_row_index(best)] : NULL;
}

static CUresult newer(const char *base, void **found, int version, cuuint64_t flags,
                      CUdriverProcAddressQueryResult *status)
{
	newer_calls++;
	*found = answer_of(base, version, flags);
	return *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult older(const char *base, void **found, int version, cuuint64_t flags)
{
	older_calls++;
	*found = answer_of(base, version, flags);
	return *found ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* -- in place of shim_driver_sources (shim/meson.build), and of note.c -------------------------------------- */

void *spill_real(const struct spill_row *row, const void *caller)
{
	if (row == &spill_rows[SPILL_HOOK_cuGetProcAddress_v2])
		return has_newer ? (void *)newer : NULL;
	if (row == &spill_rows[SPILL_HOOK_cuGetProcAddress])
		return has_older ? (void *)older : NULL;
	return in_driver ? in_driver : &exported[spill_row_index(row)];
}

static void *remembered;

void spill_real_remember(const struct spill_row *row, const void *caller, void *real)
{
	remembered = real;
}

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	return in_resolver;
}

void spill_note(const char *code, const char *text)
{
	notes++;
	strncpy(noted, code, sizeof(noted) - 1);
	strncpy(noted_text, text, sizeof(noted_text) - 1);
}

void spill_note_flush(void)
{
}

/* -- in place of runtime.c ---------------------------------------------------------------------------------- */

static bool is_off;

bool spill_runtime_ready(const struct spill_shim *shim)
{
	return !is_off;
}

bool spill_runtime_started(void)
{
	return false; /* the end of this program writes nothing */
}

void spill_runtime_exit(const char *how)
{
}

static pthread_mutex_t note_lock = PTHREAD_MUTEX_INITIALIZER;
const struct spill_fork_lock spill_note_fork_lock = {&note_lock, NULL};

/* -- the tests -------------------------------------------------------------------------------------------- */

static int setup(void **state)
{
	spill_policy_default(&policy);
	spill_process_use_policy(&policy);
	has_newer = has_older = true;
	newer_calls = older_calls = notes = 0;
	in_driver = in_resolver = remembered = NULL;
	is_off = false;
	spill_movable_reset();
	return 0;
}

/* As the stub of a resolver does it, behind the driver's answer. The library does not start in a call of its own. */
static void *looked_up(enum spill_domain domain, const char *base, void *answer)
{
	struct spill_request request = {
	    .domain = domain, .hook = SPILL_HOOK_cuGetProcAddress_v2, .name = base, .out = &answer};
	spill_thread.depth = 1;
	spill_lookup_substitute(&request);
	spill_thread.depth = 0;
	return answer;
}

static bool is_resolver(const struct spill_row *row)
{
	return strcmp(row->base, "cuGetProcAddress") == 0;
}

static void all_rows_get_stubs(void)
{
	unsigned count = 0;
	for (const struct spill_row *row = spill_rows; row < spill_rows + SPILL_HOOKS; row++) {
		int index = spill_row_index(row);
		if (row->domain != SPILL_CUDA_DRIVER || is_resolver(row))
			continue;
		void *stub = spill_stub(index, SPILL_WAY_PROC);
		assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, row->base, &answered[index]), stub);
		assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, row->base, &exported[index]), stub);
		assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, row->base, stub), stub);
		count++;
	}
	assert_true(count > 100);
	assert_int_equal(notes, 0);
}

/* Each form of the resolver is asked for what it says of the row, by its own version and kind of stream. */
TEST(an_answer_is_known_by_what_is_exported_and_by_what_is_answered)
{
	all_rows_get_stubs();
	assert_true(newer_calls > 0);
	assert_int_equal(older_calls, 0);
}

TEST(a_driver_before_cuda_12_has_the_older_form_only)
{
	has_newer = false;
	all_rows_get_stubs();
	assert_true(older_calls > 0);
}

TEST(what_is_no_function_of_a_row_stays_as_it_is)
{
	static char unknown;
	for (unsigned form = 0; form < 3; form++) {
		has_newer = form == 0;
		has_older = form == 1;
		notes = 0;
		assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, "cuMemAlloc", &unknown), &unknown);
		assert_int_equal(notes, 1);
		assert_string_equal(noted, "unknown-version");
		assert_string_equal(noted_text, "cuMemAlloc was asked for in a version that libspill does "
		                                "not know: passed through");
		assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, "cuMemAllocTomorrow", &unknown), &unknown);
		assert_int_equal(notes, 2);
		assert_string_equal(noted, "unknown-symbol");
		assert_string_equal(noted_text, "cuMemAllocTomorrow looks like an allocation that libspill "
		                                "does not know: passed through");
		assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, "cuTomorrow", &unknown), &unknown);
		/* That of another base is of another kind. */
		void *free_function = &exported[SPILL_HOOK_cuMemFree_v2];
		assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, "cuMemAlloc", free_function), free_function);
		assert_int_equal(notes, 3);
	}
	/* Without a resolver, what is not exported is unknown, too. */
	void *other = &answered[SPILL_HOOK_cuMemAlloc_v2];
	assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, "cuMemAlloc", other), other);
}

TEST(what_the_driver_does_not_answer_stays_so)
{
	struct spill_request request = {.domain = SPILL_CUDA_DRIVER,
	                                .hook = SPILL_HOOK_cuGetProcAddress_v2,
	                                .name = "cuMemAllocTomorrow"};
	spill_lookup_substitute(&request); /* the program gave no place for an answer */
	assert_null(looked_up(SPILL_CUDA_DRIVER, "cuMemAllocTomorrow", NULL));
	assert_null(looked_up(SPILL_CUDA_DRIVER, "cuMemAlloc", NULL));
	assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, NULL, &exported), &exported);
	assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, "zzz", &exported), &exported); /* behind all rows */
	assert_int_equal(notes, 0);
}

/* HIP's resolver gives what is exported. CUDA's resolver knows nothing of its rows. */
TEST(hips_functions_are_the_exported_ones)
{
	unsigned count = 0;
	for (const struct spill_row *row = spill_rows; row < spill_rows + SPILL_HOOKS; row++) {
		int index = spill_row_index(row);
		if (row->domain != SPILL_HIP || strcmp(row->base, row->symbol) != 0)
			continue;
		assert_ptr_equal(looked_up(SPILL_HIP, row->base, &exported[index]),
		                 spill_stub(index, SPILL_WAY_PROC));
		assert_ptr_equal(remembered, &exported[index]); /* of several, the one that was asked */
		remembered = NULL;
		assert_ptr_equal(looked_up(SPILL_HIP, row->base, &answered[index]), &answered[index]);
		assert_null(remembered);
		count++;
	}
	assert_true(count > 20);
	assert_int_equal(newer_calls + older_calls, 0);
}

/* -- by symbol ---------------------------------------------------------------------------------------------- */

TEST(a_stub_is_known_by_its_row)
{
	const struct spill_row *row = &spill_rows[SPILL_HOOK_cuMemAlloc_v2];
	for (int way = 0; way < SPILL_WAYS_COUNT; way++) {
		assert_true(spill_row_has_stub(row, spill_stub(SPILL_HOOK_cuMemAlloc_v2, way)));
		assert_false(spill_row_has_stub(row, spill_stub(SPILL_HOOK_cuMemAlloc_v2 - 1, way)));
		assert_false(spill_row_has_stub(row, spill_stub(SPILL_HOOK_cuMemAlloc_v2 + 1, way)));
	}
}

/* lookup_driver.c, beside this program. */
static const char *path_of_library(void)
{
	static char path[4200];
	ssize_t length = readlink("/proc/self/exe", path, 4096);
	assert_true(length > 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, "lookup_driver.so");
	return path;
}

/* Also found by the search order. */
static void *open_library(void)
{
	void *library = dlopen(path_of_library(), RTLD_NOW | RTLD_GLOBAL);
	assert_non_null(library);
	return library;
}

/* Another file with the same functions, under the driver's name. */
static void *open_driver(void)
{
	char folder[] = "/tmp/lookup.XXXXXX", copy[64], bytes[4096];
	size_t length;
	assert_non_null(mkdtemp(folder));
	snprintf(copy, sizeof(copy), "%s/libcuda.so.9", folder);
	FILE *from = fopen(path_of_library(), "r"), *to = fopen(copy, "w");
	assert_true(from && to);
	while ((length = fread(bytes, 1, sizeof(bytes), from)) > 0)
		assert_int_equal(fwrite(bytes, 1, length, to), length);
	fclose(from);
	assert_int_equal(fclose(to), 0);
	void *driver = dlopen(copy, RTLD_NOW);
	unlink(copy);
	rmdir(folder);
	assert_non_null(driver);
	return driver;
}

static void *library(void)
{
	static void *library;
	if (!library)
		library = open_library();
	return library;
}

static void *found(void *handle, const char *name)
{
	spill_thread.depth = 1; /* the library does not start in a call of its own */
	void *stub = spill_dlsym_find(handle, name, &has_newer);
	spill_thread.depth = 0;
	return stub;
}

/* Work that is not known stops all moves; but not if the library itself looks it up. */
TEST(own_look_ups_stop_nothing)
{
	static char unknown;
	assert_ptr_equal(looked_up(SPILL_CUDA_DRIVER, "cuLaunchTomorrow", &unknown), &unknown);
	assert_null(found(library(), "cuLaunchTomorrow"));
	assert_false(spill_movable_never(0));
	assert_int_equal(notes, 0);
}

/* The program's own look-ups: whether anything may move from then on. */
static bool moves_after_answer(const char *base, void *answer)
{
	struct spill_request request = {.domain = SPILL_CUDA_DRIVER,
	                                .hook = SPILL_HOOK_cuGetProcAddress_v2,
	                                .name = base,
	                                .out = &answer};
	spill_movable_reset();
	spill_lookup_substitute(&request);
	return !spill_movable_never(0);
}

static bool moves_after_symbol_of(void *handle, const char *name)
{
	spill_movable_reset();
	spill_dlsym_find(handle, name, &has_newer);
	return !spill_movable_never(0);
}

static bool moves_after_symbol(const char *name)
{
	return moves_after_symbol_of(library(), name);
}

TEST(work_that_is_not_known_stops_all_moves)
{
	static char unknown;
	assert_false(moves_after_answer("cuLaunchTomorrow", &unknown));
	assert_true(moves_after_answer("cuTomorrow", &unknown));
	/* Nobody has the first, and the second is of another library than the driver. */
	assert_true(moves_after_symbol("cuLaunchTomorrow"));
	assert_true(moves_after_symbol("cuLaunchOfAnother"));
	assert_true(moves_after_answer("cuLaunchHostFunc", &unknown));
	is_off = true;
	assert_true(moves_after_answer("cuLaunchTomorrow", &unknown));
}

/* Calls of the host are no work of the device. The oldest forms have 32-bit addresses. */
TEST(work_of_the_driver_that_is_not_known_stops_all_moves)
{
	void *driver = open_driver();
	assert_false(moves_after_symbol_of(driver, "cuLaunchOfAnother"));
	assert_true(moves_after_symbol_of(driver, "cuLaunchTomorrow")); /* it has none */
	assert_true(moves_after_symbol_of(driver, "cuTomorrow"));
	assert_true(moves_after_symbol_of(driver, "cuLaunchHostFunc"));
	assert_true(moves_after_symbol_of(driver, "cuMemcpyHtoD"));
	is_off = true;
	assert_true(moves_after_symbol_of(driver, "cuLaunchOfAnother"));
	dlclose(driver);
}

/* Who looks it up may call it without libspill's seeing that. */
TEST(known_work_that_needs_plain_memory_stops_all_moves)
{
	in_driver = dlsym(library(), "cuMemBatchDecompressAsync");
	assert_false(moves_after_symbol("cuMemBatchDecompressAsync"));
	assert_false(moves_after_answer("cuMemBatchDecompressAsync", in_driver));
	in_driver = dlsym(library(), "cuMemAlloc_v2");
	assert_true(moves_after_symbol("cuMemAlloc_v2"));
	assert_true(moves_after_answer("cuMemAlloc", in_driver));
}

/* NULL: dlsym itself is to answer. */
TEST(a_function_of_the_driver_gets_the_stub)
{
	void *stub = spill_stub(SPILL_HOOK_cuMemAlloc_v2, SPILL_WAY_DLSYM);
	in_driver = dlsym(library(), "cuMemAlloc_v2");
	assert_non_null(in_driver);
	assert_ptr_equal(found(library(), "cuMemAlloc_v2"), stub);
	assert_ptr_equal(remembered, in_driver);
	/* A driver before its resolver is known, and one that exports another function than it resolves. */
	remembered = NULL;
	in_resolver = in_driver;
	in_driver = &exported;
	assert_ptr_equal(found(library(), "cuMemAlloc_v2"), stub);
	assert_ptr_equal(remembered, in_resolver);
	assert_int_equal(notes, 0);
}

/* Of vendors that a program may have several of, each library's is served. */
TEST(functions_of_other_vendors_get_stubs)
{
	assert_ptr_equal(found(library(), "hipMalloc"), spill_stub(SPILL_HOOK_hipMalloc, SPILL_WAY_DLSYM));
	assert_ptr_equal(remembered, dlsym(library(), "hipMalloc"));
	assert_ptr_equal(found(library(), "nvmlDeviceGetMemoryInfo"),
	                 spill_stub(SPILL_HOOK_nvmlDeviceGetMemoryInfo, SPILL_WAY_DLSYM));
	assert_int_equal(notes, 0);
}

TEST(what_another_library_defines_is_not_the_drivers)
{
	in_driver = in_resolver = &exported;
	assert_null(found(library(), "cuMemAlloc_v2"));
	assert_null(remembered);
	assert_int_equal(notes, 1);
	assert_string_equal(noted, "foreign-driver");
}

TEST(names_that_dlsym_answers_itself)
{
	in_driver = dlsym(library(), "cuMemAlloc_v2");
	assert_null(found(library(), "cuMemFree_v2")); /* the library has none */
	assert_null(found(RTLD_DEFAULT, "cuMemAlloc_v2"));
	assert_null(found(RTLD_NEXT, "cuMemAlloc_v2"));
	assert_null(found(library(), "cuTomorrow"));  /* no row */
	assert_null(found(library(), "nvmlDeviceZ")); /* nor any row behind it */
	assert_null(found(library(), "malloc"));
	assert_null(found(library(), NULL));
	assert_null(remembered);
	assert_int_equal(notes, 0);
}

/* Another preload may have one, too. */
void *dlsym(void *restrict handle, const char *restrict name)
{
	return spill_real_dlsym()(handle, name);
}

/* A look at who wraps dlsym keeps no room. The dlsym above is in the same library as the look-up, so nothing is noted. */
TEST(a_look_at_wrappers_gives_its_room_back)
{
	void *room = spill_scratch_take();
	spill_scratch_give_back(room);
	spill_lookup_note_wrapper();
	assert_int_equal(notes, 0);
	assert_ptr_equal(spill_scratch_take(), room);
	spill_scratch_give_back(room);
}

/* The last test, because it unloads the library. */
TEST(only_a_close_that_unloads_counts)
{
	unsigned before = spill_unloads();
	library();
	assert_int_equal(dlclose(open_library()), 0);
	assert_int_equal(spill_unloads(), before);
	assert_int_equal(dlclose(library()), 0);
	assert_int_equal(spill_unloads(), before + 1);
	/* The next close unloads nothing. */
	open_library();
	assert_int_equal(dlclose(open_library()), 0);
	assert_int_equal(spill_unloads(), before + 1);
}

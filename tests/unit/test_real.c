/* The real functions that callers reach, by what dlsym gave them. */
#include "unit.h"

#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "caller.h"
#include "libc_symbol.h"
#include "real.h"
#include "scratch.h"

/* -- in place of the look-ups of the shim: nothing is found but what is remembered ------------------------ */

enum { PLAIN, PLUG_IN, OF_DRIVER, REMEMBERED, PROVIDED };
const struct spill_row spill_rows[SPILL_HOOKS] = {
    [PLAIN] = {.domain = SPILL_HIP, .symbol = "hipFree"},
    [PLUG_IN] = {.domain = SPILL_HIP, .symbol = "hipMalloc"},
    [OF_DRIVER] = {.domain = SPILL_CUDA_DRIVER, .symbol = "cuMemFree_v2"},
    [REMEMBERED] = {.domain = SPILL_HIP, .symbol = "hipMemcpy"},
    [PROVIDED] = {.domain = SPILL_HIP, .symbol = "hipMemset"}};

static char stub[1]; /* of ours */
static void *beside; /* what a library has in its scope */
static void *asked;  /* the library */

static void *find_beside(void *handle, const char *symbol)
{
	asked = handle;
	return beside;
}

spill_dlsym_fn *spill_real_dlsym(void)
{
	return find_beside;
}

static unsigned closes;

int spill_real_dlclose(void *handle)
{
	assert_non_null(handle);
	closes++;
	return 0;
}

static void *next; /* behind us, of any name */
static _Atomic unsigned look_ups;

void *spill_libc_symbol(const char *name)
{
	look_ups++;
	return next;
}

bool spill_row_has_stub(const struct spill_row *of, const void *address)
{
	return address == stub;
}

/* -- callers ------------------------------------------------------------------------------------------------ */

static char caller[2], first[1], second[1];

/* Only the addresses matter. Some have the same place in the table. */
#define CALLERS 500
static char callers[CALLERS * CALLERS];

TEST(an_unload_ends_what_is_known)
{
	const struct spill_row *hook = &spill_rows[PLAIN];
	next = first;
	assert_ptr_equal(spill_real(hook, caller), first);
	next = second;
	assert_ptr_equal(spill_real(hook, caller), first);
	spill_unloads_count();
	assert_ptr_equal(spill_real(hook, caller), second);
	assert_ptr_equal(spill_real(hook, caller + 1), second);
}

/* It is still the same then, and is not looked up for each call. */
TEST(what_is_found_again_after_an_unload_is_known)
{
	const struct spill_row *hook = &spill_rows[PLAIN];
	spill_unloads_count();
	next = first;
	spill_real(hook, caller);
	spill_unloads_count();
	look_ups = 0;
	assert_ptr_equal(spill_real(hook, caller), first);
	assert_int_equal(look_ups, 1);
	assert_ptr_equal(spill_real(hook, caller), first);
	assert_int_equal(look_ups, 1);
}

/* What dlsym answered a library is right for all of it; and the last answer for who has nothing else. */
TEST(what_dlsym_answered)
{
	const struct spill_row *hook = &spill_rows[REMEMBERED];
	const char *in_libc = (const char *)dlsym(RTLD_DEFAULT, "puts");
	spill_real_remember(hook, caller, first);
	next = beside = stub;
	assert_ptr_equal(spill_real(hook, caller + 1), first);
	next = beside = NULL;
	assert_ptr_equal(spill_real(hook, in_libc), first);
	/* A later answer takes the place of the earlier one. */
	spill_real_remember(hook, caller, second);
	assert_ptr_equal(spill_real(hook, callers), second);
	/* Of the driver there is one. */
	spill_real_remember(&spill_rows[OF_DRIVER], caller, stub);
	assert_ptr_not_equal(spill_real(&spill_rows[OF_DRIVER], caller), stub);
}

/* A library of the vendor's that is loaded, but in nobody's scope. */
TEST(the_vendors_library_comes_last)
{
	const struct spill_row *hook = &spill_rows[PROVIDED];
	char path[4200], folder[] = "/tmp/real.XXXXXX", link[64];
	ssize_t length = readlink("/proc/self/exe", path, 4096);
	assert_true(length > 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, "lookup_driver.so");
	next = NULL;
	beside = first;
	assert_null(spill_real_resolve(SPILL_HIP, "hipMemset"));
	assert_non_null(mkdtemp(folder));
	snprintf(link, sizeof(link), "%s/libamdhip64.so.9", folder);
	assert_int_equal(symlink(path, link), 0);
	void *library = dlopen(link, RTLD_NOW);
	unlink(link);
	rmdir(folder);
	assert_non_null(library);
	void *room = spill_scratch_take();
	spill_scratch_give_back(room);
	assert_ptr_equal(spill_real_resolve(SPILL_HIP, "hipMemset"), first);
	assert_ptr_equal(asked, library);
	assert_ptr_equal(spill_real(hook, caller), first);
	next = second;
	assert_ptr_equal(spill_real_resolve(SPILL_HIP, "hipMemset"), first);
	assert_ptr_equal(spill_scratch_take(), room); /* each look gave its own back */
	spill_scratch_give_back(room);
}

/* There is one driver, and it stays. Its functions are looked up until they are found. */
TEST(the_driver_is_the_same_for_all)
{
	const struct spill_row *hook = &spill_rows[OF_DRIVER];
	next = NULL;
	assert_null(spill_real(hook, caller));
	next = first;
	assert_ptr_equal(spill_real(hook, caller), first);
	next = second;
	spill_unloads_count();
	assert_ptr_equal(spill_real(hook, caller + 1), first);
}

/* A library's own scope comes first, but for stubs of ours that are in it. */
TEST(the_function_in_the_scope_of_the_caller)
{
	const struct spill_row *hook = &spill_rows[PLAIN];
	const char *in_libc = (const char *)dlsym(RTLD_DEFAULT, "puts");
	assert_non_null(in_libc);
	next = second;
	beside = first;
	closes = 0;
	assert_ptr_equal(spill_real(hook, in_libc), first);
	assert_int_equal(closes, 1); /* the library can be unloaded as before */
	beside = stub;
	assert_ptr_equal(spill_real(hook, in_libc + 1), second);
	beside = NULL;
	spill_unloads_count();
	assert_ptr_equal(spill_real(hook, in_libc), second);
	void *room = spill_scratch_take();
	spill_scratch_give_back(room);
	spill_real_beside(in_libc, "puts");
	assert_ptr_equal(spill_scratch_take(), room);
	spill_scratch_give_back(room);
}

/* Plug-ins come and go for years, and the functions stay where they are. */
TEST(unloads_cost_no_memory)
{
	const struct spill_row *hook = &spill_rows[PLUG_IN];
	next = first;
	spill_real(hook, caller);
	size_t before = mallinfo2().uordblks;
	for (unsigned i = 0; i < 10000; i++) {
		spill_unloads_count();
		assert_ptr_equal(spill_real(hook, caller), first);
	}
	assert_in_range(mallinfo2().uordblks, 0, before + 1000);
}

static char many[10000]; /* more than the table has room for */

/* All look `first` up, and then know it, although another library stands behind us by now. */
static void assert_all_are_known(const struct spill_row *hook)
{
	next = first;
	for (unsigned i = 0; i < CALLERS; i++)
		assert_ptr_equal(spill_real(hook, &callers[i * i]), first);
	next = second;
	for (unsigned i = 0; i < CALLERS; i++)
		assert_ptr_equal(spill_real(hook, &callers[i * i]), first);
}

TEST(callers_do_not_push_each_other_out)
{
	assert_all_are_known(&spill_rows[PLAIN]);
}

TEST(callers_do_not_get_the_functions_of_others)
{
	const struct spill_row *hook = &spill_rows[PLAIN];
	spill_unloads_count();
	for (unsigned times = 0; times < 2; times++)
		for (unsigned i = 0; i < CALLERS; i++) {
			next = times ? stub : i % 2 ? first : second;
			assert_ptr_equal(spill_real(hook, &callers[i * i]), i % 2 ? first : second);
		}
}

static void *find_functions(void *argument)
{
	unsigned *wrong = argument;
	for (unsigned i = 0; i < CALLERS; i++)
		*wrong += spill_real(&spill_rows[PLAIN], &callers[i * i]) != first;
	return NULL;
}

/* What one thread has looked up, another one reads whole (scripts/check tsan). */
TEST(threads_know_what_others_found)
{
	pthread_t threads[3];
	unsigned wrong[3] = {0};
	spill_unloads_count();
	next = first;
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, find_functions, &wrong[i]), 0);
	for (unsigned i = 0; i < 3; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(wrong[i], 0);
	}
}

TEST(what_was_known_before_an_unload_makes_room)
{
	const struct spill_row *hook = &spill_rows[PLUG_IN];
	next = first;
	size_t before = 0;
	for (unsigned times = 0; times < 2; times++) {
		before = mallinfo2().uordblks;
		for (unsigned i = 0; i < sizeof(many); i++)
			spill_real(hook, &many[i]);
	}
	assert_in_range(mallinfo2().uordblks, 0, before + 1000); /* nothing for those without a place */
	spill_unloads_count();
	assert_all_are_known(hook);
}

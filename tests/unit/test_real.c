/* The real functions that callers reach, by what dlsym gave them. */
#include "unit.h"

#include <dlfcn.h>
#include <malloc.h>

#include "caller.h"
#include "libc_symbol.h"
#include "real.h"

/* -- in place of the look-ups of the shim: nothing is found but what is remembered ------------------------ */

enum { PLAIN, PLUG_IN, OF_DRIVER };
const struct spill_row spill_rows[SPILL_HOOKS] = {
    [PLAIN] = {.domain = SPILL_HIP, .symbol = "hipFree"},
    [PLUG_IN] = {.domain = SPILL_HIP, .symbol = "hipMalloc"},
    [OF_DRIVER] = {.domain = SPILL_CUDA_DRIVER, .symbol = "cuMemFree_v2"}};

static char stub[1]; /* of ours */
static void *beside; /* what a library has in its scope */

static void *find_beside(void *handle, const char *symbol)
{
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

void *spill_libc_symbol(const char *name)
{
	return next;
}

bool spill_row_has_stub(const struct spill_row *of, const void *address)
{
	return address == stub;
}

/* -- callers ------------------------------------------------------------------------------------------------ */

static char caller[2], first[1], second[1];

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
	assert_ptr_equal(spill_real(hook, in_libc), first);
	assert_int_equal(closes, 1); /* the library can be unloaded as before */
	beside = stub;
	assert_ptr_equal(spill_real(hook, in_libc + 1), second);
	beside = NULL;
	spill_unloads_count();
	assert_ptr_equal(spill_real(hook, in_libc), second);
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

/* Only the addresses matter. Some have the same place in the table. */
#define CALLERS 500
static char callers[CALLERS * CALLERS];
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

/* Functions read from the loader's list and symbol tables, against what the loader itself finds. */
#include <dlfcn.h>
#include "unit.h"
#include "libc_symbol.h"

TEST(finds_what_the_loader_finds)
{
	/* On x86-64 the last three have several versions, of which only one is the default. */
	static const char *const names[] = {"dlsym",    "dlvsym",      "dlclose",
	                                    "abort",    "_exit",       "qsort",
	                                    "realpath", "posix_spawn", "pthread_cond_signal"};
	void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	assert_non_null(libc);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *found = spill_loaded_function("libc.so.6", names[i]);

		assert_non_null(found);
		assert_ptr_equal(found, dlsym(libc, names[i]));
	}
	dlclose(libc);
}

TEST(finds_nothing_else)
{
	static const char *const names[] = {
	    "",      "dlsy", "dlsymm", "no such function", "environ" /* data */,
	    "memcpy" /* its address is what a resolver says */};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_null(spill_loaded_function("libc.so.6", names[i]));
	assert_null(spill_loaded_function("libc.so", "dlsym"));
	assert_null(spill_loaded_function("", "dlsym"));
	assert_null(spill_loaded_function("libcmocka.so.0", "dlsym")); /* it wants it, at most */
}

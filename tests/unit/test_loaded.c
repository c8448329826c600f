/* Functions read from the loader's list and symbol tables, against what the loader itself finds. */
#include <dlfcn.h>
#include "unit.h"
#include "libc_symbol.h"

#include <string.h>
#include <unistd.h>

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

/* The loader's list that is seen there is the program's, and its C library is not that of the namespace. */
TEST(finds_nothing_from_another_namespace)
{
	static const Lmid_t namespaces[] = {LM_ID_BASE, LM_ID_NEWLM};
	char path[4200];
	ssize_t length = readlink("/proc/self/exe", path, 4096);
	assert_true(length > 0);
	path[length] = '\0';
	strcpy(strrchr(path, '/') + 1, "loaded_elsewhere.so");
	for (unsigned i = 0; i < 2; i++) {
		void *(*find)(const char *name), *library = dlmopen(namespaces[i], path, RTLD_NOW);
		if (!library && i == 1)
			skip(); /* as under some tools */
		assert_non_null(library);
		*(void **)&find = dlsym(library, "find_in_libc");
		assert_int_equal(find("dlsym") != NULL, i == 0);
		dlclose(library);
	}
}

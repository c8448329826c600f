#include "libc_symbol.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "at_start.h"

/* glibc 2.34 moved dlsym to libc.so.6. Older ones have the version of the port's first glibc. */
static const char *const versions[] = {
    "GLIBC_2.34",
#if defined(__x86_64__)
    "GLIBC_2.2.5",
#elif defined(__aarch64__)
    "GLIBC_2.17",
#else
#error "name the version of dlsym in this port's first glibc"
#endif
};

/*
 * Set while this thread looks for dlsym: a wrapper of dlvsym finds its real function by our dlsym.
 * Volatile, because the header promises the compiler that dlvsym never calls back (__leaf__).
 */
static __thread volatile bool asking __attribute__((tls_model("initial-exec")));

static void *ask_by_version(void)
{
	void *found = NULL;
	if (asking)
		return NULL;
	asking = true;
	for (size_t i = 0; !found && i < sizeof(versions) / sizeof(versions[0]); i++)
		found = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
	asking = false;
	return found;
}

/*
 * Reads the C library's symbol table, because dlvsym may be wrapped and its wrapper may call us.
 * Before glibc 2.34 libdl has dlsym. dlvsym serves where the loader's list cannot be read.
 */
static void *find_dlsym(void)
{
	void *found = spill_loaded_function("libc.so.6", "dlsym");
	if (!found)
		found = spill_loaded_function("libdl.so.2", "dlsym");
	return found ? found : ask_by_version();
}

static void *find_nothing(void *handle, const char *name)
{
	return NULL;
}

spill_dlsym_fn *spill_real_dlsym(void)
{
	/* Relaxed: it points at code, which the loader made ready before a thread could call it. */
	SPILL_AT_START_DATA static _Atomic(spill_dlsym_fn *) known;
	spill_dlsym_fn *real = atomic_load_explicit(&known, memory_order_relaxed);
	if (real)
		return real;
	*(void **)&real = find_dlsym();
	if (!real)
		return find_nothing;
	atomic_store_explicit(&known, real, memory_order_relaxed);
	return real;
}

void *spill_libc_symbol(const char *name)
{
	return spill_real_dlsym()(RTLD_NEXT, name);
}

int spill_real_dlclose(void *handle)
{
	static _Atomic(void *) found;
	void *real = atomic_load_explicit(&found, memory_order_relaxed);
	if (!real) {
		real = spill_libc_symbol("dlclose");
		atomic_store_explicit(&found, real, memory_order_relaxed);
	}
	/* Without a real dlclose the library stays loaded, as POSIX allows. */
	return real ? ((int (*)(void *))real)(handle) : 0;
}

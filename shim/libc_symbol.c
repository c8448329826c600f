#include "libc_symbol.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

/*
 * dlsym moved into libc.so.6 in glibc 2.34; before, it has the version of the port's first glibc. _dl_sym is private.
 */
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

spill_dlsym_fn *spill_real_dlsym(void)
{
	static _Atomic(spill_dlsym_fn *) found;
	spill_dlsym_fn *real = atomic_load_explicit(&found, memory_order_relaxed);
	for (size_t i = 0; !real && i < sizeof(versions) / sizeof(versions[0]); i++) {
		*(void **)&real = dlvsym(RTLD_NEXT, "dlsym", versions[i]);
		atomic_store_explicit(&found, real, memory_order_relaxed);
	}
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
	return ((int (*)(void *))real)(handle);
}

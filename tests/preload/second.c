/*
 * Another preloaded library, as profilers are: it too defines dlsym and cuMemAlloc_v2, counts its
 * allocations and passes on. Writes its count to the file that SECOND names.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef void *dlsym_function(void *handle, const char *name);
typedef int alloc_function(unsigned long long *address, size_t bytes);

EXPORTED void *dlsym(void *restrict handle, const char *restrict name);
EXPORTED int cuMemAlloc_v2(unsigned long long *address, size_t bytes);

static atomic_uint allocated;

/* By version, as all of them do: so it is libc's, whatever other preloaded library comes next. */
static dlsym_function *next_dlsym(void)
{
	dlsym_function *next;

	*(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!next)
		*(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	return next;
}

void *dlsym(void *restrict handle, const char *restrict name)
{
	return next_dlsym()(handle, name);
}

int cuMemAlloc_v2(unsigned long long *address, size_t bytes)
{
	static alloc_function *_Atomic next;
	alloc_function *found = atomic_load(&next);

	if (!found) {
		void *library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

		*(void **)&found = next_dlsym()(RTLD_NEXT, "cuMemAlloc_v2");
		if (!found) /* the driver is only in the scope of its loader */
			*(void **)&found = next_dlsym()(library, "cuMemAlloc_v2");
		atomic_store(&next, found);
	}
	atomic_fetch_add(&allocated, 1);
	return found(address, bytes);
}

__attribute__((destructor)) static void tell(void)
{
	const char *path = getenv("SECOND");
	FILE *file = path ? fopen(path, "we") : NULL;

	if (!file)
		return;
	fprintf(file, "%u\n", atomic_load(&allocated));
	fclose(file);
}

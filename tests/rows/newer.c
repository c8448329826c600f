/*
 * A preloaded library behind libspill that makes the driver a newer one: its look-up knows names more, and gives another
 * function by one. The driver's own is asked for all others.
 */
#include <dlfcn.h>
#include <string.h>

typedef int resolver(const char *, void **, int, unsigned long long, int *);

__attribute__((visibility("default"))) resolver cuGetProcAddress_v2;

/* By version: libc's, whatever other preloaded library has one. */
static void *real_dlsym(void *library, const char *name)
{
	static void *(*found)(void *, const char *);
	if (!found)
		*(void **)&found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!found)
		*(void **)&found = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	return found ? found(library, name) : NULL;
}

static int tomorrow(void)
{
	return 0;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, unsigned long long flags, int *status)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	resolver *real;
	if (strcmp(name, "cuMemAllocTomorrow") == 0 || strcmp(name, "cuTomorrowGetAllocation") == 0 ||
	    strcmp(name, "cuLaunchTomorrow") == 0) {
		*found = (void *)tomorrow;
		return 0;
	}
	if (strcmp(name, "cuGraphInstantiate") == 0 && version >= 12000)
		name = "cuGraphInstantiateWithFlags";
	*(void **)&real = real_dlsym(driver, "cuGetProcAddress_v2");
	return real ? real(name, found, version, flags, status) : 500; /* CUDA_ERROR_NOT_FOUND */
}

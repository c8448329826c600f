/*
 * Two HIP runtimes in one process, each behind a plug-in that is loaded RTLD_LOCAL: what one asks for, its own runtime
 * gives. A device's memory is counted by each runtime for itself, so a call that went astray shows.
 *
 * two PLUGIN OTHER WAY    WAY: link, dlsym or proc. Prints what each one's device lost by its allocation.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

typedef int ask_function(const char *way);
typedef int take_function(size_t bytes);
typedef size_t used_function(void);

#ifdef HOST

struct plugin {
	ask_function *ask;
	take_function *take;
	used_function *used;
};

static int load(const char *path, struct plugin *plugin)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!handle) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&plugin->ask = dlsym(handle, "ask");
	*(void **)&plugin->take = dlsym(handle, "take");
	*(void **)&plugin->used = dlsym(handle, "used");
	return !plugin->ask || !plugin->take || !plugin->used;
}

int main(int count, char **arguments)
{
	struct plugin first, second;
	if (count != 4 || load(arguments[1], &first) || load(arguments[2], &second))
		return 2;
	size_t before[2] = {first.used(), second.used()};
	/* Both have asked before one of them calls. */
	if (first.ask(arguments[3]) || second.ask(arguments[3]))
		return 1;
	int results[3] = {first.take(4 * MIB), second.take(8 * MIB), first.take(16 * MIB)};
	printf("results %d %d %d\n", results[0], results[1], results[2]);
	printf("taken %zu %zu MiB\n", (first.used() - before[0]) / MIB, (second.used() - before[1]) / MIB);
	return 0;
}

#else

#include "abi/hip_later.h"
#include "hip_api.h"

typedef __typeof__(hipMalloc) malloc_function;
typedef __typeof__(hipMemGetInfo) info_function;
typedef hipError_t resolver(const char *, void **, int, uint64_t, hipDriverProcAddressQueryResult *);

__attribute__((visibility("default"))) ask_function ask;
__attribute__((visibility("default"))) take_function take;
__attribute__((visibility("default"))) used_function used;

static void *find(const char *way, const char *name)
{
	void *runtime = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL), *found = NULL;
	resolver *resolve;
	if (strcmp(way, "dlsym") == 0)
		return dlsym(runtime, name);
	*(void **)&resolve = dlsym(runtime, "hipGetProcAddress");
	return resolve(name, &found, 702, 0, NULL) ? NULL : found;
}

static malloc_function *allocate; /* asked for once, as programs do */

int ask(const char *way)
{
#ifndef BARE
	if (strcmp(way, "link") == 0)
		allocate = hipMalloc;
#endif
	if (!allocate)
		*(void **)&allocate = find(way, "hipMalloc");
	return allocate == NULL;
}

int take(size_t bytes)
{
	void *pointer;
	return allocate(&pointer, bytes);
}

size_t used(void)
{
	static info_function *info;
	size_t free = 0, total = 0;
	if (!info)
		*(void **)&info = find("dlsym", "hipMemGetInfo");
	return info && info(&free, &total) == 0 ? total - free : 0;
}

#endif

/*
 * What NVIDIA's own runtime, shared or static, asks the driver for. It authenticates its driver and gives up on the
 * simulated one, but makes all its look-ups before.
 *
 * lookups             starts the runtime and prints its error
 * lookups FILE        then asks for all of FILE (SPILL_SIM_LOOKUPS of a run before: name, version, flags, symbol) as the
 *                     runtime did, and prints a line each: `SYMBOL WHERE DLSYM SAME`. WHERE is the library that has what was
 *                     answered (libspill, libcuda), and DLSYM the one that has what dlsym finds; SAME is yes if a row's own version is answered by the very same
 *                     function, or for what is no row, if that is the driver's own symbol.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <cuda_runtime_api.h>

typedef int resolver(const char *, void **, int, unsigned long long, int *);

static const struct row {
	const char *symbol, *base;
	int since, per_thread;
} rows[] = {
#define LEGACY 0
#define PTDS 1
#define PTSZ 1
#define HOOK(domain, ret, symbol, base, since, variant, ...) {#symbol, #base, since, variant},
#include "hooks.def"
};

static const struct row *row_of(const char *symbol)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (strcmp(rows[i].symbol, symbol) == 0)
			return &rows[i];
	return NULL;
}

static const char *library_of(void *address)
{
	Dl_info info;
	if (!address || !dladdr(address, &info) || !info.dli_fname)
		return "nowhere";
	return strstr(info.dli_fname, "libspill")     ? "libspill"
	       : strstr(info.dli_fname, "libcuda.so") ? "libcuda"
	                                              : info.dli_fname;
}

static void check(resolver *resolve, void *driver, const char *name, int version, unsigned long long flags,
                  const char *symbol)
{
	void *answer = NULL, *same = NULL;
	const struct row *row = row_of(symbol);
	resolve(name, &answer, version, flags, NULL);
	if (row)
		resolve(row->base, &same, row->since, row->per_thread ? 2 : 1, NULL);
	else
		same = dlsym(driver, symbol);
	printf("%s %s %s %s\n", symbol, library_of(answer), library_of(dlsym(driver, symbol)),
	       answer && answer == same ? "yes" : "no");
}

/* One allocation, so that there is a log. */
static int begin(void *driver)
{
	int (*start)(unsigned), (*retain)(void **, int), (*current)(void *),
	    (*alloc)(unsigned long long *, size_t);
	unsigned long long pointer;
	void *context;
	*(void **)&start = dlsym(driver, "cuInit");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&current = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&alloc = dlsym(driver, "cuMemAlloc_v2");
	return start(0) || retain(&context, 0) || current(context) || alloc(&pointer, 1 << 20);
}

int main(int count, char **arguments)
{
	char name[128], symbol[128];
	int version;
	unsigned long long flags;
	resolver *resolve;
	fprintf(stderr, "the runtime says %s\n", cudaGetErrorName(cudaFree(NULL)));
	if (count < 2)
		return 0;
	FILE *file = fopen(arguments[1], "r");
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!file || !driver || begin(driver))
		return 1;
	*(void **)&resolve = dlsym(driver, "cuGetProcAddress_v2");
	while (fscanf(file, "%127s %d %llu %127s", name, &version, &flags, symbol) == 4)
		check(resolve, driver, name, version, flags, symbol);
	fclose(file);
	return 0;
}

/*
 * The driver's rows by the look-ups of a runtime that came to the driver without libspill, as one that is loaded with
 * RTLD_DEEPBIND does: what it hands out is the driver's own, and only the look-up itself can be seen.
 */
#include <dlfcn.h>

#include "cudart_api.h"
#include "cuda_api.h"
#include "rows.h"

typedef cudaError_t entry(const char *, void **, unsigned long long, enum cudaDriverEntryPointQueryResult *);
typedef cudaError_t version(const char *, void **, unsigned, unsigned long long,
                            enum cudaDriverEntryPointQueryResult *);

static void *of_runtime(const char *name)
{
	static void *runtime;
	if (!runtime)
		runtime = dlopen("libcudart.so.13", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
	return runtime ? dlsym(runtime, name) : NULL;
}

static void *by_entry(const struct rows_row *row)
{
	entry *resolve;
	void *found = NULL;
	*(void **)&resolve = of_runtime("cudaGetDriverEntryPoint");
	if (!resolve || !rows_newest(row))
		return NULL;
	return resolve(row->base, &found, rows_flags(row), NULL) ? NULL : found;
}

static void *by_version(const struct rows_row *row)
{
	version *resolve;
	void *found = NULL;
	*(void **)&resolve = of_runtime("cudaGetDriverEntryPointByVersion");
	return !resolve || resolve(row->base, &found, (unsigned)row->since, rows_flags(row), NULL) ? NULL
	                                                                                           : found;
}

const struct rows_way rows_ways[] = {{"entry_deep", by_entry}, {"version_deep", by_version}, {NULL, NULL}};

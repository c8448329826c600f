/*
 * Calls every row of its domain by one way in, with all arguments zero. Prints the result of the allocation that it
 * begins with, `begin RESULT`, and a line a call, `row SYMBOL HIT RESULT
 * last ERROR`, HIT being how libspill is to count it (link, dlsym, proc), or `none SYMBOL` for a row that cannot be
 * reached so in this library. The lines must be the same with and without libspill, of which this program knows nothing.
 *
 * rows list             the domain's rows: `SYMBOL OPERATION`
 * rows link             by the loader
 * rows dlsym LIBRARY    by dlsym with the library's handle
 * rows WAY              by the vendor's own way of that name, see ways_*.c
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda.h"
#include "abi/cuda_work.h"
#include "abi/cudart.h"
#include "abi/hip_later.h"
#include "abi/nvml.h"
#include "rows.h"
#include "zero.h"

#define OTHER(...)
#ifdef ROWS_CUDA_DRIVER
#define DOMAIN_CUDA_DRIVER ROW
static const CUipcMemHandle zero_shared;
#else
#define DOMAIN_CUDA_DRIVER OTHER
#endif
#ifdef ROWS_CUDA_RUNTIME
#define DOMAIN_CUDA_RUNTIME ROW
static const struct cudaExtent zero_extent;
static const cudaIpcMemHandle_t zero_shared;
#else
#define DOMAIN_CUDA_RUNTIME OTHER
#endif
#ifdef ROWS_HIP
#define DOMAIN_HIP ROW
static const hipExtent zero_extent;
#else
#define DOMAIN_HIP OTHER
#endif

#ifdef ROWS_NVML
#define DOMAIN_NVML ROW
#else
#define DOMAIN_NVML OTHER
#endif

/* Weak: what nobody has is NULL, and the program runs. The address is taken in code, as in data it would not be dynamic. */
#define HOOK(domain, ret, symbol, base, since, variant, op, params, args, ...) \
	DOMAIN_##domain(ret, symbol, base, since, variant, op, params, args)
#define ROW(ret, symbol, base, since, variant, op, params, args) \
	extern __attribute__((weak)) ret symbol params; \
	static void *linked_##symbol(void) \
	{ \
		return (void *)symbol; \
	} \
	static int call_##symbol(void *address) \
	{ \
		ret(*function) params; \
		*(void **)&function = address; \
		return (int)function ZEROS(args); \
	}
#include "hooks.def"
#undef ROW

enum { LEGACY, PTDS, PTSZ };

static const struct rows_row rows[] = {
#define HOOK(domain, ret, symbol, base, since, variant, op, params, args, ...) \
	DOMAIN_##domain(ret, symbol, base, since, variant, op, params, args)
#define ROW(ret, symbol, base, since, variant, op, params, args) \
	{#symbol, #base, #op, since, variant, SPILL_OP_##op, linked_##symbol, call_##symbol},
#include "hooks.def"
};

#define COUNT (sizeof(rows) / sizeof(rows[0]))

/* What the simulated runtime asks the driver for at most: its own version. */
#define RUNTIME 13000

bool rows_newest(const struct rows_row *row)
{
	for (size_t i = 0; i < COUNT; i++)
		if (strcmp(rows[i].base, row->base) == 0 && rows[i].per_thread == row->per_thread &&
		    rows[i].since > row->since && rows[i].since <= RUNTIME)
			return false;
	return row->since <= RUNTIME;
}

static void *by_link(const struct rows_row *row)
{
	return row->linked();
}

static void *library;

static void *by_dlsym(const struct rows_row *row)
{
	return dlsym(library, row->symbol);
}

/* What ends the context or the device, for all rows after it. */
static bool ends(const struct rows_row *row)
{
	return row->op >= SPILL_OP_CONTEXT_DESTROY && row->op <= SPILL_OP_DEVICE_RESET;
}

static void call(const struct rows_row *row, void *address, const char *hit)
{
	if (!address) {
		printf("none %s\n", row->symbol);
		return;
	}
	errno = EDOM;
	int result = row->call(address);
	int error = errno;
	printf("row %s %s %d", row->symbol, hit, result);
	printf(" last %d%s\n", rows_last_error(), error == EDOM ? "" : " errno");
}

static int call_all(const char *way, void *(*find)(const struct rows_row *row))
{
	const char *hit = find == by_link || find == by_dlsym ? way : "proc";
	void *found[COUNT];
	/* Before anything else: a runtime that starts at its first look-up must not escape by that. */
	for (size_t i = 0; i < COUNT; i++)
		found[i] = find(&rows[i]);
	printf("begin %d\n", rows_begin());
	for (int last = 0; last < 2; last++)
		for (size_t i = 0; i < COUNT; i++)
			if (ends(&rows[i]) == last)
				call(&rows[i], found[i], hit);
	return 0;
}

static int list(void)
{
	for (size_t i = 0; i < COUNT; i++)
		printf("%s %s\n", rows[i].symbol, rows[i].operation);
	return 0;
}

int rows_run(int count, char **arguments)
{
	const char *way = count > 1 ? arguments[1] : "";
	if (strcmp(way, "list") == 0)
		return list();
	if (strcmp(way, "link") == 0)
		return call_all(way, by_link);
	if (strcmp(way, "dlsym") == 0 && count == 3) {
		library = dlopen(arguments[2], RTLD_LAZY);
		return library ? call_all(way, by_dlsym) : 1;
	}
	for (const struct rows_way *known = rows_ways; known->name; known++)
		if (strcmp(way, known->name) == 0)
			return call_all(way, known->find);
	return 2;
}

/*
 * The two look-ups. By symbol: dlsym hands out our stub for a name in the table. By address: what the vendor's resolver
 * answered is compared with the addresses of the rows of the requested base, because only the address tells the ABI
 * (pitfall 4); an unknown one is passed through.
 */
#include "lookup.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda.h"
#include "caller.h"
#include "config.h"
#include "libc_symbol.h"
#include "note.h"
#include "real.h"

/* For the assembly: hidden, set before the first tail jump. */
spill_dlsym_fn *spill_dlsym_real;

/* dlsym's first argument when it means a search order, not a library: those find us by themselves, or must not. */
static bool is_search(const void *handle)
{
	return handle == RTLD_DEFAULT || handle == RTLD_NEXT;
}

static bool may_be_ours(const char *name)
{
	return name && (strncmp(name, "cu", 2) == 0 || strncmp(name, "hip", 3) == 0);
}

void *spill_dlsym_find(void *handle, const char *name, const void *caller)
{
	spill_dlsym_real = spill_real_dlsym();
	if (is_search(handle) || !may_be_ours(name) || spill_config_disabled())
		return NULL;
	const struct spill_row *row = spill_row_of(name);
	if (!row)
		return NULL;
	void *real = spill_dlsym_real(handle, name);
	if (!real || spill_row_has_stub(row, real))
		return NULL; /* the tail jump gives the same answer, and its dlerror */
	/* Another preload behind us may have the row's name too: then the driver's own address is not the next one. */
	if (row->domain == SPILL_CUDA_DRIVER && real != spill_real(row, caller) &&
	    real != spill_real_resolve(row->domain, row->symbol)) {
		spill_note("foreign-driver",
		           "dlsym found a driver function in a second library: passed through");
		return NULL;
	}
	spill_real_remember(row, caller, real);
	return row->stub[SPILL_WAY_DLSYM];
}

typedef CUresult resolver(const char *, void **, int, cuuint64_t);
typedef CUresult resolver_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* The vendor's own address for the row's ABI. */
static void *vendor_address(const struct spill_row *row)
{
	void *found = NULL;
	cuuint64_t flags =
	    row->variant == SPILL_VARIANT_PTSZ ? 2 : 1; /* CU_GET_PROC_ADDRESS_{LEGACY,PER_THREAD}_… */
	CUdriverProcAddressQueryResult status;
	resolver_v2 *newer;
	resolver *older;
	*(void **)&newer = spill_real(&spill_rows[SPILL_HOOK_cuGetProcAddress_v2], NULL);
	*(void **)&older = spill_real(&spill_rows[SPILL_HOOK_cuGetProcAddress], NULL);
	if (newer)
		newer(row->base, &found, row->since, flags, &status);
	else if (older)
		older(row->base, &found, row->since, flags);
	return found;
}

void spill_lookup_substitute(const struct spill_request *request)
{
	void **answer = request->out;
	bool known = false;
	if (request->pass || !request->name || !answer || !*answer)
		return;
	for (int i = 0; i < SPILL_HOOKS; i++) {
		const struct spill_row *row = &spill_rows[i];
		if (row->domain != SPILL_CUDA_DRIVER || strcmp(row->base, request->name) != 0)
			continue;
		known = true;
		if (*answer == spill_real(row, NULL) || *answer == vendor_address(row)) {
			*answer = row->stub[SPILL_WAY_PROC];
			return;
		}
	}
	if (known) {
		char text[256];
		snprintf(text, sizeof(text),
		         "%.100s was asked for in a version that libspill does not know: passed through",
		         request->name);
		spill_note("unknown-version", text);
	}
}

/* How many objects the loader has unloaded so far; every object's entry tells the same (dl_iterate_phdr(3)). */
static int read_unloads(struct dl_phdr_info *info, size_t size, void *unloads)
{
	*(unsigned long long *)unloads = info->dlpi_subs;
	return 1;
}

__attribute__((visibility("default"))) int dlclose(void *handle);

/* Exported. Whoever caches by address must hear of unloads, and not of every other close. */
int dlclose(void *handle)
{
	unsigned long long before = 0, after = 0;
	dl_iterate_phdr(read_unloads, &before);
	int result = spill_real_dlclose(handle);
	dl_iterate_phdr(read_unloads, &after);
	if (before != after)
		spill_unloads_count();
	return result;
}

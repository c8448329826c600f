#include "real.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caller.h"
#include "glob.h"
#include "libc_symbol.h"
#include "loaded_objects.h"
#include "scratch.h"

/* A vendor's library of any version and path. We never load it ourselves (pitfall 1). */
struct vendor_library {
	const char *prefix;
	char *path;
};

static int match_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct vendor_library *library = data;
	if (strncmp(spill_file_name(info->dlpi_name), library->prefix, strlen(library->prefix)) != 0)
		return 0;
	snprintf(library->path, SPILL_SCRATCH, "%s", info->dlpi_name);
	return 1;
}

static void *find_in_vendor_library(const char *prefix, const char *symbol)
{
	struct vendor_library library = {.prefix = prefix, .path = spill_scratch_take()};
	void *handle = library.path && spill_loaded_objects_visit(match_library, &library)
	                   ? dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD)
	                   : NULL;
	spill_scratch_give_back(library.path);
	/* The handle is never closed, so that the driver cannot be unloaded while we use it. */
	return handle ? spill_real_dlsym()(handle, symbol) : NULL;
}

static const char *const library_prefixes[SPILL_DOMAINS] = {
    [SPILL_CUDA_DRIVER] = "libcuda.so",
    [SPILL_CUDA_RUNTIME] = "libcudart.so",
    [SPILL_HIP] = "libamdhip64.so",
    [SPILL_NVML] = "libnvidia-ml.so",
};

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	void *found = find_in_vendor_library(library_prefixes[domain], symbol);
	return found ? found : spill_libc_symbol(symbol);
}

static void *find_driver_function(const struct spill_row *row)
{
	static _Atomic(void *) known[SPILL_HOOKS];
	_Atomic(void *) *slot = &known[spill_row_index(row)];
	void *real = atomic_load_explicit(slot, memory_order_acquire);
	if (real)
		return real;
	/* RTLD_NEXT first, because another preload behind us belongs in the chain. */
	real = spill_libc_symbol(row->symbol);
	if (!real)
		real = find_in_vendor_library(library_prefixes[SPILL_CUDA_DRIVER], row->symbol);
	if (real)
		atomic_store_explicit(slot, real, memory_order_release);
	return real;
}

/* Real functions by row and return address. An entry holds until an unload; a new look-up may renew it. */
#define SLOTS 4096
#define PROBES 32

struct cached_real {
	const struct spill_row *row;
	const void *caller;
	void *real;
	struct cached_real *replaced; /* never freed, because another thread may be reading it */
	atomic_uint unloads;          /* at the last look-up */
};

static _Atomic(struct cached_real *) cached_reals[SLOTS];

static size_t start_slot(const struct spill_row *row, const void *caller)
{
	return (((uintptr_t)caller + (uintptr_t)spill_row_index(row)) * 0x9e3779b97f4a7c15ull >> 52) % SLOTS;
}

/* Of any age. */
static struct cached_real *find_entry(const struct spill_row *row, const void *caller)
{
	size_t start = start_slot(row, caller);
	for (size_t i = 0; i < PROBES; i++) {
		struct cached_real *entry =
		    atomic_load_explicit(&cached_reals[(start + i) % SLOTS], memory_order_acquire);
		if (!entry || (entry->row == row && entry->caller == caller))
			return entry;
	}
	return NULL;
}

static void *find_cached_real(const struct spill_row *row, const void *caller)
{
	const struct cached_real *entry = find_entry(row, caller);
	return entry && atomic_load(&entry->unloads) == spill_unloads() ? entry->real : NULL;
}

/* An entry that is still right is renewed, so that plug-ins may come and go for years and cost no memory. */
static void cache_real(const struct spill_row *row, const void *caller, void *real)
{
	struct cached_real *known = find_entry(row, caller);
	if (known && known->real == real) {
		atomic_store(&known->unloads, spill_unloads());
		return;
	}
	struct cached_real *fresh = malloc(sizeof(*fresh));
	size_t start = start_slot(row, caller);
	if (!fresh)
		return;
	*fresh = (struct cached_real){.row = row, .caller = caller, .real = real, .unloads = spill_unloads()};
	for (size_t i = 0; i < PROBES; i++) {
		_Atomic(struct cached_real *) *slot = &cached_reals[(start + i) % SLOTS];
		struct cached_real *there = atomic_load(slot);
		bool usable = !there || (there->row == row && there->caller == caller) ||
		              atomic_load(&there->unloads) != spill_unloads();
		fresh->replaced = there;
		if (usable && atomic_compare_exchange_strong(slot, &there, fresh))
			return;
	}
	free(fresh);
}

void *spill_real_beside(const void *address, const char *symbol)
{
	struct spill_loaded_object *object = address ? spill_scratch_take() : NULL;
	void *handle = object && spill_loaded_object_of(address, object) && !object->main_program
	                   ? dlopen(object->path, RTLD_LAZY | RTLD_NOLOAD)
	                   : NULL;
	spill_scratch_give_back(object);
	if (!handle)
		return NULL;
	void *found = spill_real_dlsym()(handle, symbol);
	spill_real_dlclose(handle);
	return found;
}

static void *find_in_scope_of(const struct spill_row *row, const void *caller)
{
	void *real = spill_real_beside(caller, row->symbol);
	return real && !spill_row_has_stub(row, real) ? real : NULL;
}

/* dlsym's last answers, for callers that got the pointer from another library. */
static _Atomic(void *) last_from_dlsym[SPILL_HOOKS];

/* A library calls a function from many addresses. Its base stands for all of them. */
static const void *library_base_of(const void *caller)
{
	struct spill_loaded_object object;
	return spill_loaded_object_of(caller, &object) ? (const void *)object.base : caller;
}

void spill_real_remember(const struct spill_row *row, const void *caller, void *real)
{
	if (row->domain == SPILL_CUDA_DRIVER)
		return;
	atomic_store(&last_from_dlsym[spill_row_index(row)], real);
	cache_real(row, library_base_of(caller), real);
}

static void *find_caller_function(const struct spill_row *row, const void *caller)
{
	void *real = find_cached_real(row, caller);
	if (real)
		return real;
	real = find_cached_real(row, library_base_of(caller));
	if (!real)
		real = find_in_scope_of(row, caller);
	if (!real)
		real = spill_libc_symbol(row->symbol);
	if (!real)
		real = atomic_load(&last_from_dlsym[spill_row_index(row)]);
	if (!real)
		real = find_in_vendor_library(library_prefixes[row->domain], row->symbol);
	if (real)
		cache_real(row, caller, real);
	return real;
}

void *spill_real(const struct spill_row *row, const void *caller)
{
	return row->domain == SPILL_CUDA_DRIVER ? find_driver_function(row)
	                                        : find_caller_function(row, caller);
}

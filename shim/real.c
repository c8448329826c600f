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

/* The vendor's library whatever its version or path, if it is loaded: never loaded by us (pitfall 1). */
struct library {
	const char *prefix;
	char *path; /* SPILL_SCRATCH bytes */
};

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	struct library *library = data;
	if (strncmp(spill_file_name(info->dlpi_name), library->prefix, strlen(library->prefix)) != 0)
		return 0;
	snprintf(library->path, SPILL_SCRATCH, "%s", info->dlpi_name);
	return 1;
}

static void *from_library(const char *prefix, const char *symbol)
{
	struct library library = {.prefix = prefix, .path = spill_scratch_take()};
	void *handle = library.path && spill_loaded_objects_visit(visit, &library)
	                   ? dlopen(library.path, RTLD_LAZY | RTLD_NOLOAD)
	                   : NULL;
	spill_scratch_give_back(library.path);
	/* The handle is kept: a vendor's driver that was unloaded under us would be worse than one that stays. */
	return handle ? spill_real_dlsym()(handle, symbol) : NULL;
}

static const char *const prefixes[SPILL_DOMAINS] = {
    [SPILL_CUDA_DRIVER] = "libcuda.so",
    [SPILL_CUDA_RUNTIME] = "libcudart.so",
    [SPILL_HIP] = "libamdhip64.so",
    [SPILL_NVML] = "libnvidia-ml.so",
};

void *spill_real_resolve(enum spill_domain domain, const char *symbol)
{
	void *found = from_library(prefixes[domain], symbol);
	return found ? found : spill_libc_symbol(symbol);
}

static void *real_driver(const struct spill_row *row)
{
	static _Atomic(void *) known[SPILL_HOOKS];
	_Atomic(void *) *slot = &known[spill_row_index(row)];
	void *real = atomic_load_explicit(slot, memory_order_acquire);
	if (real)
		return real;
	/* RTLD_NEXT first: another preload behind us belongs in the chain. */
	real = spill_libc_symbol(row->symbol);
	if (!real)
		real = from_library(prefixes[SPILL_CUDA_DRIVER], row->symbol);
	if (real)
		atomic_store_explicit(slot, real, memory_order_release);
	return real;
}

/* What callers reached: by row and return address, forgotten at an unload. Entries never change once they are seen. */
#define SLOTS 4096
#define PROBES 32

struct entry {
	const struct spill_row *row;
	const void *caller;
	unsigned unloads;
	void *real;
};

static _Atomic(struct entry *) slots[SLOTS];

static size_t start_slot(const struct spill_row *row, const void *caller)
{
	return (((uintptr_t)caller + (uintptr_t)spill_row_index(row)) * 0x9e3779b97f4a7c15ull >> 52) % SLOTS;
}

static void *cached(const struct spill_row *row, const void *caller)
{
	size_t start = start_slot(row, caller);
	for (size_t i = 0; i < PROBES; i++) {
		const struct entry *entry =
		    atomic_load_explicit(&slots[(start + i) % SLOTS], memory_order_acquire);
		if (!entry)
			return NULL;
		if (entry->row == row && entry->caller == caller)
			return entry->unloads == spill_unloads() ? entry->real : NULL;
	}
	return NULL;
}

/* An entry that is replaced stays allocated: another thread may be reading it. One per call site and unload. */
static void cache(const struct spill_row *row, const void *caller, void *real)
{
	struct entry *fresh = malloc(sizeof(*fresh));
	size_t start = start_slot(row, caller);
	if (!fresh)
		return;
	*fresh = (struct entry){row, caller, spill_unloads(), real};
	for (size_t i = 0; i < PROBES; i++) {
		_Atomic(struct entry *) *slot = &slots[(start + i) % SLOTS];
		struct entry *there = atomic_load(slot);
		bool usable = !there || (there->row == row && there->caller == caller) ||
		              there->unloads != spill_unloads();
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

static void *in_scope_of(const struct spill_row *row, const void *caller)
{
	void *real = spill_real_beside(caller, row->symbol);
	return real && !spill_row_has_stub(row, real) ? real : NULL;
}

/* The last that a dlsym gave for the row: for callers that were handed the pointer by another library. */
static _Atomic(void *) remembered[SPILL_HOOKS];

/*
 * A caller that got the function from dlsym calls from many addresses of its library; the library's base stands for
 * all of them.
 */
static const void *library_key(const void *caller)
{
	struct spill_loaded_object object;
	return spill_loaded_object_of(caller, &object) ? (const void *)object.base : caller;
}

void spill_real_remember(const struct spill_row *row, const void *caller, void *real)
{
	if (row->domain == SPILL_CUDA_DRIVER)
		return;
	atomic_store(&remembered[spill_row_index(row)], real);
	cache(row, library_key(caller), real);
}

static void *real_in_scope(const struct spill_row *row, const void *caller)
{
	void *real = cached(row, caller);
	if (real)
		return real;
	real = cached(row, library_key(caller));
	if (!real)
		real = in_scope_of(row, caller);
	if (!real)
		real = spill_libc_symbol(row->symbol);
	if (!real)
		real = atomic_load(&remembered[spill_row_index(row)]);
	if (!real)
		real = from_library(prefixes[row->domain], row->symbol);
	if (real)
		cache(row, caller, real);
	return real;
}

void *spill_real(const struct spill_row *row, const void *caller)
{
	return row->domain == SPILL_CUDA_DRIVER ? real_driver(row) : real_in_scope(row, caller);
}

/*
 * The look-ups. By symbol: dlsym returns our stub for a name in the table. By address: the vendor's
 * resolver returns an address, and the row of the requested base with that address gives the stub.
 * Only the address tells the ABI (pitfall 4). Unknown addresses pass through.
 */
#include "hooks.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda.h"
#include "caller.h"
#include "config.h"
#include "glob.h"
#include "hooks_index.h"
#include "movable.h"
#include "note.h"
#include "loaded_objects.h"
#include "real.h"
#include "process.h"
#include "scratch.h"
#include "work.h"

/* -- rows of the table ------------------------------------------------------------------------ */

_Static_assert(sizeof(rows_by_symbol) / sizeof(rows_by_symbol[0]) == SPILL_HOOKS &&
                   sizeof(rows_by_base) / sizeof(rows_by_base[0]) == SPILL_HOOKS,
               "hooks_index.h was made from another table");

static const char *symbol_at(unsigned index)
{
	return spill_rows[rows_by_symbol[index]].symbol;
}

static const char *base_at(unsigned index)
{
	return spill_rows[rows_by_base[index]].base;
}

/* The first index whose name is not before `name`. */
static unsigned first_index_of(const char *(*name_at)(unsigned index), const char *name)
{
	unsigned low = 0, high = SPILL_HOOKS;
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (strcmp(name_at(middle), name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The index may be one behind the last. */
static bool is_name_at(const char *(*name_at)(unsigned index), unsigned index, const char *name)
{
	return index < SPILL_HOOKS && strcmp(name_at(index), name) == 0;
}

/* The row of an exported symbol, or NULL. */
static const struct spill_row *row_of(const char *symbol)
{
	unsigned index = first_index_of(symbol_at, symbol);
	return is_name_at(symbol_at, index, symbol) ? &spill_rows[rows_by_symbol[index]] : NULL;
}

/* Iterates over a base's rows in the table's order. *next is 0 at first. NULL: no more. */
static const struct spill_row *row_of_base(const char *base, unsigned *next)
{
	unsigned index = *next ? *next : first_index_of(base_at, base);
	*next = index + 1;
	return is_name_at(base_at, index, base) ? &spill_rows[rows_by_base[index]] : NULL;
}

bool spill_row_has_stub(const struct spill_row *row, const void *address)
{
	for (int way = 0; way < SPILL_WAYS_COUNT; way++)
		if (spill_stub(spill_row_index(row), way) == address)
			return true;
	return false;
}

/* -- by symbol -------------------------------------------------------------------------------- */

/* For the assembly in dlsym.S. Set before the first tail jump. */
spill_dlsym_fn *spill_dlsym_real;

/* Such a search finds our exported stubs by itself, or must skip them. */
static bool is_search_order(const void *handle)
{
	return handle == RTLD_DEFAULT || handle == RTLD_NEXT;
}

/* Not strncmp: another preload may wrap it, and its wrapper may call us to find the real one. */
static bool starts_with(const char *name, const char *beginning)
{
	while (*beginning && *name == *beginning) {
		name++;
		beginning++;
	}
	return !*beginning;
}

static bool may_be_ours(const char *name)
{
	return name &&
	       (starts_with(name, "cu") || starts_with(name, "hip") || starts_with(name, "nvmlDevice"));
}

/* True for names of work. Without a row it passes no gate, so chunks could move under it. */
static bool looks_like_work(const char *name)
{
	static const char *const beginnings[] = {"cuLaunch",          "cuGraphLaunch",      "cuGraphUpload",
	                                         "cuMemcpy",          "cuMemset",           "cuStreamBatch",
	                                         "cuStreamWaitValue", "cuStreamWriteValue", "cuMemBatch"};
	if (starts_with(name, "cuLaunchHostFunc"))
		return false;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (starts_with(name, beginnings[i]))
			return true;
	return false;
}

/* Starts the library if this is the first call, because the note depends on the options. */
static void forbid_unknown_work(void)
{
	if (!spill_thread.depth && spill_shim_ready())
		spill_movable_forbid(
		    "the program looked up a function that submits work and that libspill does not know");
}

/*
 * True for a function of a driver newer than the table. A base without a row of its own name is the
 * oldest form with 32-bit addresses, which no 64-bit program can use. Other libraries may have such
 * names too, so the function must be libcuda's.
 */
static bool is_unknown_work(void *handle, const char *name)
{
	unsigned next = 0;
	struct spill_loaded_object object;
	if (!looks_like_work(name) || row_of_base(name, &next))
		return false;
	void *found = spill_dlsym_real(handle, name);
	if (!found || !spill_loaded_object_of(found, &object))
		return false;
	return starts_with(spill_file_name(object.path), "libcuda.so");
}

void *spill_dlsym_find(void *handle, const char *name, const void *caller)
{
	spill_dlsym_real = spill_real_dlsym();
	if (is_search_order(handle) || !may_be_ours(name) || spill_config_disabled())
		return NULL;
	const struct spill_row *row = row_of(name);
	if (!row) {
		if (is_unknown_work(handle, name))
			forbid_unknown_work();
		return NULL;
	}
	void *real = spill_dlsym_real(handle, name);
	if (!real || spill_row_has_stub(row, real))
		return NULL; /* the tail jump gives the same answer and sets dlerror */
	/* Another preload behind us may define it too; then the next one is not the driver's. */
	if (row->domain == SPILL_CUDA_DRIVER && real != spill_real(row, caller) &&
	    real != spill_real_resolve(row->domain, row->symbol)) {
		spill_note("foreign-driver",
		           "dlsym found a driver function in a second library: passed through");
		return NULL;
	}
	spill_real_remember(row, caller, real);
	spill_work_wanted(row);
	return spill_stub(spill_row_index(row), SPILL_WAY_DLSYM);
}

typedef CUresult resolver_fn(const char *, void **, int, cuuint64_t);
typedef CUresult resolver_v2_fn(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* The driver's own address of the row's ABI. */
static void *vendor_address(const struct spill_row *row)
{
	void *found = NULL;
	cuuint64_t flags = row->variant != SPILL_VARIANT_LEGACY ? 2 : 1; /* CU_GET_PROC_ADDRESS_… */
	CUdriverProcAddressQueryResult status;
	resolver_v2_fn *newer;
	resolver_fn *older;
	*(void **)&newer = spill_real(&spill_rows[SPILL_HOOK_cuGetProcAddress_v2], NULL);
	*(void **)&older = spill_real(&spill_rows[SPILL_HOOK_cuGetProcAddress], NULL);
	if (newer)
		newer(row->base, &found, row->since, flags, &status);
	else if (older)
		older(row->base, &found, row->since, flags);
	return found;
}

/*
 * True if `answer` is the row's function. HIP's resolver asks dlsym, and a CUDA runtime that
 * resolved through us holds our stubs. pre: the row has the requested base
 */
static bool answers_row(const struct spill_row *row, const void *answer, const void *resolver)
{
	if (spill_row_has_stub(row, answer))
		return true;
	if (row->domain == SPILL_HIP)
		return answer == spill_real(row, resolver);
	return answer == spill_real(row, NULL) || answer == vendor_address(row);
}

/* True for a name like an allocation's, which a newer driver may have. */
static bool looks_like_allocation(const char *name)
{
	return strstr(name, "Alloc") && !strstr(name, "GetAllocation") && !strstr(name, "GetParams");
}

static void note_pass_through(const char *code, const char *name, const char *problem)
{
	char text[256];
	snprintf(text, sizeof(text), "%.100s %s: passed through", name, problem);
	spill_note(code, text);
}

/* Since CUDA 12 a resolver may return this other function for the name. NULL: not renamed. */
static const char *renamed_symbol(const char *name)
{
	return strcmp(name, "cuGraphInstantiate") == 0 ? "cuGraphInstantiateWithFlags" : NULL;
}

/* The row of `base` whose function is `answer`, or NULL. Sets *has_base if the base has rows. */
static const struct spill_row *find_row_of_answer(const char *base, enum spill_domain domain,
                                                  const void *answer, const void *resolver, bool *has_base)
{
	const struct spill_row *row;
	unsigned next = 0;
	while (base && (row = row_of_base(base, &next)) != NULL) {
		if (row->domain != domain)
			continue;
		*has_base = true;
		if (answers_row(row, answer, resolver))
			return row;
	}
	return NULL;
}

void spill_lookup_substitute(const struct spill_request *request)
{
	enum spill_domain domain = request->domain == SPILL_HIP ? SPILL_HIP : SPILL_CUDA_DRIVER;
	void **answer = request->out;
	bool has_base = false;
	if (request->pass || !request->name || !answer || !*answer)
		return;
	const void *resolver = spill_real(&spill_rows[request->hook], request->caller);
	const struct spill_row *row = find_row_of_answer(request->name, domain, *answer, resolver, &has_base);
	if (!row)
		row = find_row_of_answer(renamed_symbol(request->name), domain, *answer, resolver, &has_base);
	if (row) {
		/* With several HIP runtimes, the caller uses the one whose resolver it called. */
		if (domain == SPILL_HIP)
			spill_real_remember(row, request->caller, spill_real(row, resolver));
		spill_work_wanted(row);
		*answer = spill_stub(spill_row_index(row), SPILL_WAY_PROC);
		return;
	}
	if (looks_like_work(request->name))
		forbid_unknown_work();
	if (has_base)
		note_pass_through("unknown-version", request->name,
		                  "was asked for in a version that libspill does not know");
	else if (looks_like_allocation(request->name))
		note_pass_through("unknown-symbol", request->name,
		                  "looks like an allocation that libspill does not know");
}

/* True if one library has both addresses. `object` becomes the library of `address`. */
static bool are_in_one_library(const void *address, const void *other, struct spill_loaded_object *object)
{
	uintptr_t base = spill_loaded_object_of(other, object) ? object->base : 0;
	return spill_loaded_object_of(address, object) && object->base == base;
}

/* Our own reference to dlsym binds to the first one in the search order. */
void spill_lookup_note_wrapper(void)
{
	const void *first = (const void *)dlsym;
	struct spill_loaded_object *object =
	    first != (const void *)spill_real_dlsym() ? spill_scratch_take() : NULL;
	char text[384];
	if (object && !are_in_one_library(first, (const void *)spill_dlsym_find, object)) {
		snprintf(text, sizeof(text),
		         "%.250s has a dlsym before libspill's: functions that it finds may go past libspill",
		         object->main_program ? "the program" : object->path);
		spill_note("foreign-dlsym", text);
	}
	spill_scratch_give_back(object);
}

/* Every entry has the number of unloaded objects (dl_iterate_phdr(3)). */
static int read_unloads(struct dl_phdr_info *info, size_t size, void *unloads)
{
	*(unsigned long long *)unloads = info->dlpi_subs;
	return 1;
}

__attribute__((visibility("default"))) int dlclose(void *handle);

/*
 * Exported. Caches by address need to know when a library is unloaded. A wrapper of dl_iterate_phdr
 * may close a handle inside our visit: such a close is not counted, and the next one counts the
 * unload.
 */
int dlclose(void *handle)
{
	static _Atomic unsigned long long seen_unloads;
	unsigned long long now = 0;
	int result = spill_real_dlclose(handle);
	if (spill_loaded_objects_looking())
		return result;
	spill_loaded_objects_visit(read_unloads, &now);
	if (atomic_load(&seen_unloads) != now) {
		/* before the store: a thread that reads the new number relies on this count */
		spill_unloads_count();
		atomic_store(&seen_unloads, now);
	}
	return result;
}

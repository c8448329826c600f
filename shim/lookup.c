/*
 * The two look-ups. By symbol: dlsym hands out our stub for a name in the table. By address: what the vendor's resolver
 * answered is compared with the addresses of the rows of the requested base, because only the address tells the ABI
 * (pitfall 4); an unknown one is passed through.
 */
#include "lookup.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "abi/cuda.h"
#include "caller.h"
#include "config.h"
#include "glob.h"
#include "libc_symbol.h"
#include "movable.h"
#include "note.h"
#include "loaded_objects.h"
#include "real.h"
#include "process.h"
#include "scratch.h"
#include "work.h"

/* For the assembly: hidden, set before the first tail jump. */
spill_dlsym_fn *spill_dlsym_real;

/* dlsym's first argument when it means a search order, not a library: those find us by themselves, or must not. */
static bool is_search(const void *handle)
{
	return handle == RTLD_DEFAULT || handle == RTLD_NEXT;
}

/* Not strncmp: another preload may wrap it, and its wrapper may come here to find the real one. */
static bool begins(const char *name, const char *with)
{
	while (*with && *name == *with) {
		name++;
		with++;
	}
	return !*with;
}

static bool may_be_ours(const char *name)
{
	return name && (begins(name, "cu") || begins(name, "hip") || begins(name, "nvmlDevice"));
}

/* Of what submits work (hooks_cuda_work.def); where no row has it, a chunk may move under it. */
static bool looks_like_work(const char *name)
{
	static const char *const beginnings[] = {"cuLaunch",          "cuGraphLaunch",      "cuGraphUpload",
	                                         "cuMemcpy",          "cuMemset",           "cuStreamBatch",
	                                         "cuStreamWaitValue", "cuStreamWriteValue", "cuMemBatch"};
	if (begins(name, "cuLaunchHostFunc"))
		return false;
	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
		if (begins(name, beginnings[i]))
			return true;
	return false;
}

/* Asked before anything else of ours was, it starts us: what the note says depends on the options. */
static void forbid_unknown_work(void)
{
	if (!spill_thread.depth && spill_shim_ready())
		spill_movable_forbid(
		    "the program looked up a function that submits work and that libspill does not know");
}

/*
 * By dlsym a name is one function, of a driver newer than the table. A base of the table without a row of its own name is
 * the oldest form, which takes addresses of 32 bits: of no use here. Others' functions may have such names, too.
 */
static bool is_unknown_work(void *handle, const char *name)
{
	unsigned at = 0;
	struct spill_loaded_object object;
	if (!looks_like_work(name) || spill_row_of_base(name, &at))
		return false;
	void *found = spill_dlsym_real(handle, name);
	if (!found || !spill_loaded_object_of(found, &object))
		return false;
	return begins(spill_file_name(object.path), "libcuda.so");
}

void *spill_dlsym_find(void *handle, const char *name, const void *caller)
{
	spill_dlsym_real = spill_real_dlsym();
	if (is_search(handle) || !may_be_ours(name) || spill_config_disabled())
		return NULL;
	const struct spill_row *row = spill_row_of(name);
	if (!row) {
		if (is_unknown_work(handle, name))
			forbid_unknown_work();
		return NULL;
	}
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
	spill_work_wanted(row);
	return row->stub[SPILL_WAY_DLSYM];
}

typedef CUresult resolver(const char *, void **, int, cuuint64_t);
typedef CUresult resolver_v2(const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* The driver's own address for the row's ABI. */
static void *vendor_address(const struct spill_row *row)
{
	void *found = NULL;
	cuuint64_t flags =
	    row->variant != SPILL_VARIANT_LEGACY ? 2 : 1; /* CU_GET_PROC_ADDRESS_{LEGACY,PER_THREAD}_… */
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

/*
 * True if `answer` is what the row is about, whoever handed it out: HIP's look-up asks dlsym, and a CUDA runtime that
 * came to the driver through us has our stubs already. pre: of the requested base
 */
static bool is_row(const struct spill_row *row, const void *answer, const void *resolver)
{
	if (spill_row_has_stub(row, answer))
		return true;
	if (row->domain == SPILL_HIP)
		return answer == spill_real(row, resolver);
	return answer == spill_real(row, NULL) || answer == vendor_address(row);
}

/* A name that no row has, of a driver that is newer than the table. */
static bool looks_like_allocation(const char *name)
{
	return strstr(name, "Alloc") && !strstr(name, "GetAllocation") && !strstr(name, "GetParams");
}

static void tell(const char *code, const char *name, const char *what)
{
	char text[256];
	snprintf(text, sizeof(text), "%.100s %s: passed through", name, what);
	spill_note(code, text);
}

/* By a name that cuda.h has for another function since CUDA 12, a look-up may give that one; NULL for other names. */
static const char *renamed(const char *name)
{
	return strcmp(name, "cuGraphInstantiate") == 0 ? "cuGraphInstantiateWithFlags" : NULL;
}

/* The row of that base that the answer is about, or NULL; sets *known if there are rows of that base. */
static const struct spill_row *row_behind(const char *base, enum spill_domain domain, const void *answer,
                                          const void *resolver, bool *known)
{
	const struct spill_row *row;
	unsigned at = 0;
	while (base && (row = spill_row_of_base(base, &at)) != NULL) {
		if (row->domain != domain)
			continue;
		*known = true;
		if (is_row(row, answer, resolver))
			return row;
	}
	return NULL;
}

void spill_lookup_substitute(const struct spill_request *request)
{
	enum spill_domain domain = request->domain == SPILL_HIP ? SPILL_HIP : SPILL_CUDA_DRIVER;
	void **answer = request->out;
	bool known = false;
	if (request->pass || !request->name || !answer || !*answer)
		return;
	const void *resolver = spill_real(&spill_rows[request->hook], request->caller);
	const struct spill_row *row = row_behind(request->name, domain, *answer, resolver, &known);
	if (!row)
		row = row_behind(renamed(request->name), domain, *answer, resolver, &known);
	if (row) {
		/* Of several HIP runtimes, the caller's is the one whose resolver it asked. */
		if (domain == SPILL_HIP)
			spill_real_remember(row, request->caller, spill_real(row, resolver));
		spill_work_wanted(row);
		*answer = row->stub[SPILL_WAY_PROC];
		return;
	}
	if (looks_like_work(request->name))
		forbid_unknown_work();
	if (known)
		tell("unknown-version", request->name,
		     "was asked for in a version that libspill does not know");
	else if (looks_like_allocation(request->name))
		tell("unknown-symbol", request->name, "looks like an allocation that libspill does not know");
}

/* True if the two are in one library; `object` is then what has them, else what has the first. */
static bool is_beside(const void *address, const void *other, struct spill_loaded_object *object)
{
	uintptr_t base = spill_loaded_object_of(other, object) ? object->base : 0;
	return spill_loaded_object_of(address, object) && object->base == base;
}

/* The first dlsym of the search order is what our own reference to it was bound to. */
void spill_lookup_note_wrapper(void)
{
	const void *first = (const void *)dlsym;
	struct spill_loaded_object *object =
	    first != (const void *)spill_real_dlsym() ? spill_scratch_take() : NULL;
	char text[384];
	if (object && !is_beside(first, (const void *)spill_dlsym_find, object)) {
		snprintf(text, sizeof(text),
		         "%.250s has a dlsym before libspill's: functions that it finds may go past libspill",
		         object->main_program ? "the program" : object->path);
		spill_note("foreign-dlsym", text);
	}
	spill_scratch_give_back(object);
}

/* How many objects the loader has unloaded so far; every object's entry tells the same (dl_iterate_phdr(3)). */
static int read_unloads(struct dl_phdr_info *info, size_t size, void *unloads)
{
	*(unsigned long long *)unloads = info->dlpi_subs;
	return 1;
}

__attribute__((visibility("default"))) int dlclose(void *handle);

/*
 * Exported. Caches by address must hear of unloads, and not of every other close. Inside a look of
 * this thread there is no second one: a wrapper of dl_iterate_phdr may close a handle in each. The
 * next close counts what was unloaded there.
 */
int dlclose(void *handle)
{
	static _Atomic unsigned long long told;
	unsigned long long now = 0;
	int result = spill_real_dlclose(handle);
	if (spill_loaded_objects_looking())
		return result;
	spill_loaded_objects_visit(read_unloads, &now);
	if (atomic_load(&told) != now) {
		spill_unloads_count(); /* first: a thread that finds `told` new relies on it */
		atomic_store(&told, now);
	}
	return result;
}

#include "call_stack.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unwind.h>

#include "loaded_objects.h"
#include "publish_once.h"

/*
 * The unwinder asks for the tables of an address by this function of glibc, from 2.35 on. A reference
 * to it would keep the library from older systems. So the unwinder gets our own one, and where the
 * process has glibc's, that one answers: it takes no lock, and is quick with hundreds of objects.
 */
#ifndef DLFO_STRUCT_HAS_EH_DBASE
/* The headers are of an older glibc, and the compiler's unwinder may be of a newer one. */
struct dl_find_object {
	unsigned long long dlfo_flags;
	void *dlfo_map_start, *dlfo_map_end;
	struct link_map *dlfo_link_map;
	void *dlfo_eh_frame;
	unsigned long long reserved[7];
};
int _dl_find_object(void *address, struct dl_find_object *result);
#endif

typedef int find_object_fn(void *address, struct dl_find_object *result);

static find_object_fn *find_in_glibc(void)
{
	static find_object_fn *known;
	static _Atomic int published;
	if (!spill_is_published(&published)) {
		find_object_fn *found;
		*(void **)&found = spill_loaded_objects_function("_dl_find_object", NULL);
		spill_publish(&published, &known, &found, sizeof(found));
	}
	return known;
}

int _dl_find_object(void *address, struct dl_find_object *result)
{
	find_object_fn *real = find_in_glibc();
	struct spill_unwind_table found;
	if (real)
		return real(address, result);
	if (!spill_loaded_object_unwind(address, &found))
		return -1;
	*result = (struct dl_find_object){
	    .dlfo_map_start = (void *)found.begin,
	    .dlfo_map_end = (void *)found.end,
	    .dlfo_eh_frame = (void *)found.table,
	};
	return 0;
}

/* Frames of ours, of a stub and of a vendor's runtime, until `site` is found. */
#define TO_SITE 48

struct search {
	const void *site, *found;
	unsigned frames, behind;
	bool at_site;
};

/* Ends the walk with another code than _URC_NO_REASON. */
static _Unwind_Reason_Code look_at_frame(struct _Unwind_Context *context, void *data)
{
	struct search *search = data;
	const void *address = (const void *)_Unwind_GetIP(context);
	if (search->at_site)
		search->behind--;
	else if (address == search->site)
		search->at_site = true;
	else
		return ++search->frames < TO_SITE ? _URC_NO_REASON : _URC_END_OF_STACK;
	if (search->behind)
		return _URC_NO_REASON;
	search->found = address;
	return _URC_END_OF_STACK;
}

const void *spill_call_stack_behind(const void *site, unsigned behind)
{
	struct search search = {.site = site, .behind = behind};
	bool held = spill_loaded_objects_hold();
	_Unwind_Backtrace(look_at_frame, &search);
	spill_loaded_objects_release(held);
	return search.found;
}

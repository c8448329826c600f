#include "requester.h"

#include <stddef.h>
#include <string.h>

#include "allocators.h"
#include "call_stack.h"
#include "caller.h"
#include "python_function.h"

#define NAME 160 /* of a function or library; a longer one is cut, or is no allocator's. */

/* Frames of allocators that are passed over. */
#define DEEPEST 24

/* By a name like "libfoo.so+0x1a2b". */
static enum spill_requester_kind kind_of(const char *caller)
{
	char library[NAME];
	const char *plus = strrchr(caller, '+');
	size_t length = plus ? (size_t)(plus - caller) : strlen(caller);
	if (length >= sizeof(library))
		return SPILL_REQUESTER_NONE;
	memcpy(library, caller, length);
	library[length] = '\0';
	return spill_allocator_find(library);
}

/* The first code behind the allocator's. Each step passes over one more frame of an allocator. */
static const char *find_code(const void *site, enum spill_requester_kind kind)
{
	for (unsigned behind = 1; behind <= DEEPEST; behind++) {
		const void *address = spill_call_stack_behind(site, behind);
		const char *caller = address ? spill_caller_name(address) : NULL;
		if (!caller || kind_of(caller) != kind)
			return caller;
	}
	return NULL;
}

/* Not inlined, because the text is on the program's stack, which may be small. */
static __attribute__((noinline)) const char *find_function(void)
{
	char text[NAME];
	return spill_python_function(text, sizeof(text)) ? spill_caller_keep(text) : NULL;
}

const char *spill_requester(const void *site)
{
	enum spill_requester_kind kind = kind_of(spill_caller_name(site));
	const char *code = kind == SPILL_REQUESTER_CODE ? find_code(site, kind) : NULL;
	const char *function = code ? NULL : find_function();
	if (!code && !function && kind == SPILL_REQUESTER_FUNCTION)
		code = find_code(site, kind);
	return code ? code : function;
}

#include "allocators.h"

#include <stddef.h>

#include "glob.h"

static const struct {
	const char *library;
	enum spill_requester_kind first;
} rows[] = {
#define ALLOCATOR(library, first) {library, SPILL_REQUESTER_##first},
#include "allocators.def"
};

enum spill_requester_kind spill_allocator_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (spill_glob(rows[i].library, name))
			return rows[i].first;
	return SPILL_REQUESTER_NONE;
}

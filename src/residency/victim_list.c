#include "victim_list.h"

#include <stdlib.h>

static bool is_one(const struct spill_chunked *chunked, int device, bool on_host, uint64_t before)
{
	const struct spill_bytes *held = &chunked->base.held;
	return chunked->base.backend->moves && chunked->base.device == device && !chunked->pinned &&
	       (on_host ? spill_chunked_away(chunked) : held->device) && (!before || chunked->seq < before);
}

struct spill_victim *spill_victim_list(int device, bool on_host, uint64_t before, unsigned *count)
{
	unsigned there = 0;
	for (struct spill_chunked *one = spill_chunked_next(NULL); one; one = spill_chunked_next(one))
		there++;
	struct spill_victim *list = there ? calloc(there, sizeof(*list)) : NULL;
	*count = 0;
	if (!list)
		return NULL;
	/* More may have come meanwhile. */
	for (struct spill_chunked *one = spill_chunked_next(NULL); one; one = spill_chunked_next(one))
		if (is_one(one, device, on_host, before) && *count < there)
			list[(*count)++] = (struct spill_victim){
			    .priority = one->priority,
			    .bytes = one->base.bytes,
			    .seq = one->seq,
			    .dead = one->dead,
			    .data = one,
			};
	spill_victim_mark(list, *count);
	qsort(list, *count, sizeof(*list), on_host ? spill_victim_compare_back : spill_victim_compare);
	return list;
}

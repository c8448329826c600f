/* An allocation in chunks as a program's request makes it: with an entry in the ledger. */
#ifndef SPILL_TEST_MOVABLE_ALLOCATION_H
#define SPILL_TEST_MOVABLE_ALLOCATION_H

#include "chunked.h"
#include "ledger.h"
#include "unit.h"

/* Not enlisted yet: its chunks do not move. It ends by spill_ledger_end and spill_placement_release. */
static struct spill_chunked *make_allocation(const struct spill_place_ops *place,
                                             const struct spill_place_request *want)
{
	const char *error = NULL;
	struct spill_chunked *made = spill_chunked_of(place->make(want, &error));
	assert_non_null(made);
	struct spill_allocation entry = {.backend = want->backend,
	                                 .ptr = made->base.ptr,
	                                 .bytes = want->bytes,
	                                 .placement = &made->base,
	                                 .held = made->base.held};
	assert_true(spill_ledger_add(&entry));
	made->seq = entry.seq;
	return made;
}

#endif

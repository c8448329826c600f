/*
 * Host: pinned, mapped host memory that the device reads in place at link speed
 * (docs/measurements.md).
 */
#include <stdlib.h>

#include "account.h"
#include "place.h"

struct host_placement {
	struct spill_placement base;
	void *host; /* the pointer for the vendor's free */
};

static void release(struct spill_placement *placement, bool context_ended)
{
	struct host_placement *mine = (struct host_placement *)placement;
	if (!context_ended)
		placement->backend->memory->host_free(mine->host);
	spill_account_host_return(placement->held.host);
	free(mine);
}

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	struct host_placement *mine = calloc(1, sizeof(*mine));
	if (!mine) {
		*error = "no memory for bookkeeping";
		return NULL;
	}
	*error = spill_host_charge(want->policy, want->bytes);
	if (*error)
		goto no_room;
	uint64_t ptr;
	int result = want->backend->memory->host_alloc(want->bytes, &ptr, &mine->host);
	if (result) {
		*error = want->backend->error_name(result);
		goto no_memory;
	}
	mine->base = spill_placement_of(&spill_place_host, want, ptr);
	mine->base.held.host = want->bytes;
	return &mine->base;

no_memory:
	spill_account_host_return(want->bytes);
no_room:
	free(mine);
	return NULL;
}

const struct spill_place_ops spill_place_host = {SPILL_PLACE_HOST, make, release};

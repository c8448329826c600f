/*
 * Handle: physical host memory (HOST_NUMA, pinned, read in place) without an address, for a program
 * that maps its memory itself. What it may export can be exported here, too, by descriptors. Flags
 * that host memory cannot have, for other handles and RDMA, are left out (pitfall 8).
 */
#include <stdlib.h>

#include "account.h"
#include "chunked.h"

static void release(struct spill_placement *placement, bool context_ended)
{
	if (!context_ended)
		placement->backend->physical->release(placement->ptr);
	spill_account_physical_return(placement->held.host);
	free(placement);
}

/* NULL, or the reason why the device cannot map host memory of that size. */
static const char *unfit(const struct spill_place_request *want)
{
	const struct spill_backend *backend = want->backend;
	uint64_t granule;
	if (!backend->physical || backend->physical->granularity(want->device, true, &granule) || !granule)
		return "not supported by the device";
	return want->bytes % granule ? "no multiple of the host's granularity" : NULL;
}

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	struct spill_placement *placement = NULL;
	*error = unfit(want);
	if (!*error)
		*error = spill_physical_charge(want->policy, want->bytes);
	if (*error)
		return NULL;
	uint64_t handle;
	int result = want->exportable
	                 ? spill_chunk_create(want->backend, want->device, true, want->bytes, &handle)
	                 : want->backend->physical->create(want->device, true, want->bytes, &handle);
	if (result) {
		*error = want->backend->error_name(result);
		goto no_memory;
	}
	placement = malloc(sizeof(*placement));
	if (!placement) {
		*error = "no memory for bookkeeping";
		want->backend->physical->release(handle);
		goto no_memory;
	}
	*placement = spill_placement_of(&spill_place_handle, want, handle);
	placement->held.host = want->bytes;
	return placement;

no_memory:
	spill_account_physical_return(want->bytes);
	return NULL;
}

const struct spill_place_ops spill_place_handle = {SPILL_PLACE_HOST, make, release};

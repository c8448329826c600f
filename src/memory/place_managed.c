/*
 * Managed: unified memory. The policy advises its location. While spilling that is the host, so
 * that the device reads it in place and pages do not fault back and forth. It is prefetched to the
 * device only if it is small and fits. Managed memory never fails when it is allocated, so the host
 * account is charged in full at once (pitfall 13).
 */
#include <stdlib.h>

#include "account.h"
#include "capture.h"
#include "place.h"

static void release(struct spill_placement *placement, bool context_ended)
{
	if (!context_ended)
		placement->backend->memory->managed_free(placement->ptr);
	spill_account_host_return(placement->held.managed);
	spill_account_device_return(placement->device, placement->held.device);
	free(placement);
}

/* Advice is a hint: the memory is correct even if the driver refuses. */
static void advise(const struct spill_place_request *want, uint64_t ptr)
{
	const struct spill_backend *backend = want->backend;
	const struct spill_managed_advice *advice = &want->advice;
	if (advice->read_mostly)
		backend->memory->advise_read_mostly(ptr, want->bytes, want->device);
	if (advice->preferred != SPILL_LOCATION_NONE)
		backend->memory->advise_preferred(ptr, want->bytes, advice->preferred, want->device);
	if (advice->accessed_by_device)
		backend->memory->advise_accessed_by(ptr, want->bytes, SPILL_LOCATION_DEVICE, want->device);
	if (advice->accessed_by_host)
		backend->memory->advise_accessed_by(ptr, want->bytes, SPILL_LOCATION_HOST, want->device);
}

/*
 * Prefetches all or nothing. Returns the bytes. The prefetch would use the default stream, which
 * waits for other streams and so breaks their captures.
 */
static uint64_t prefetch(const struct spill_place_request *want, uint64_t ptr)
{
	uint64_t below = spill_amount_resolve(want->advice.prefetch_below, 0, 0);
	if (spill_capture_any() || want->bytes >= below || want->bytes > want->device_room ||
	    !spill_device_charge(want, want->bytes, want->bytes))
		return 0;
	if (want->backend->memory->prefetch(ptr, want->bytes, want->device) == 0)
		return want->bytes;
	spill_account_device_return(want->device, want->bytes);
	return 0;
}

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	struct spill_placement *mine = calloc(1, sizeof(*mine));
	if (!mine) {
		*error = "no memory for bookkeeping";
		return NULL;
	}
	*error = spill_host_charge(want->policy, want->bytes);
	if (*error)
		goto no_room;
	uint64_t ptr;
	int result = want->backend->memory->managed_alloc(want->bytes, &ptr);
	if (result) {
		*error = want->backend->error_name(result);
		goto no_memory;
	}
	advise(want, ptr);
	*mine = spill_placement_of(&spill_place_managed, want, ptr);
	mine->held = (struct spill_bytes){.managed = want->bytes, .device = prefetch(want, ptr)};
	return mine;

no_memory:
	spill_account_host_return(want->bytes);
no_room:
	free(mine);
	return NULL;
}

const struct spill_place_ops spill_place_managed = {SPILL_PLACE_MANAGED, make, release};

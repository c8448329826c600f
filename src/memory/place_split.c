/*
 * Split: device chunks first, as many as fit, then host chunks, read in place. It serves a full
 * device on which no chunk can leave.
 */
#include "account.h"
#include "chunk_set.h"
#include "chunked.h"
#include "minmax.h"

/*
 * Makes device chunks while there is room and the driver agrees. Other processes take device
 * memory, too, so the driver decides.
 */
static void fill_device(struct spill_chunked *mine, const struct spill_place_request *want, uint64_t unit)
{
	uint64_t bytes = spill_device_charge(want, mine->range, unit);
	spill_chunked_extend(mine, false, bytes);
	mine->base.held.device = mine->mapped;
	spill_account_device_return(mine->base.device, bytes - mine->mapped);
}

static const char *fill(struct spill_chunked *mine, const struct spill_place_request *want, uint64_t unit)
{
	fill_device(mine, want, unit);
	uint64_t host_bytes = mine->range - mine->base.held.device;
	if (host_bytes > mine->base.held.host) {
		const char *refused = spill_physical_charge(want->policy, host_bytes - mine->base.held.host);
		if (refused)
			return refused;
		mine->base.held.host = host_bytes;
	}
	int result = spill_chunked_extend(mine, true, host_bytes);
	if (!result)
		result = spill_chunked_allow(mine);
	return result ? want->backend->error_name(result) : NULL;
}

static struct spill_placement *make_as(const struct spill_place_ops *ops, spill_chunked_new_fn *begin,
                                       const struct spill_place_request *want, const char **error)
{
	uint64_t unit = spill_chunked_unit(want, error);
	if (!unit)
		return NULL;
	/* The least host memory is charged first: a refusal costs no vendor call. */
	uint64_t range = spill_round_up(want->bytes, unit);
	uint64_t surely_host = range - (want->device_room < range ? want->device_room / unit * unit : range);
	*error = surely_host ? spill_physical_charge(want->policy, surely_host) : NULL;
	if (*error)
		return NULL;
	struct spill_chunked *mine = begin(ops, want, unit, error);
	if (!mine) {
		spill_account_physical_return(surely_host);
		return NULL;
	}
	mine->base.held.host = surely_host;
	*error = fill(mine, want, unit);
	if (!*error)
		return &mine->base;
	spill_chunked_release(&mine->base, false);
	return NULL;
}

static struct spill_placement *make(const struct spill_place_request *want, const char **error)
{
	return make_as(&spill_place_split, spill_chunked_reserve, want, error);
}

/* An exportable set is one chunk, so all of it is on the host. */
static struct spill_placement *make_set(const struct spill_place_request *want, const char **error)
{
	struct spill_place_request whole = *want;
	if (want->properties)
		whole.device_room = 0;
	return make_as(&spill_place_split_set, spill_chunk_set_new, &whole, error);
}

const struct spill_place_ops spill_place_split = {SPILL_PLACE_SPLIT, make, spill_chunked_release,
                                                  spill_chunked_range};
const struct spill_place_ops spill_place_split_set = {SPILL_PLACE_SPLIT, make_set, spill_chunked_release,
                                                      NULL};

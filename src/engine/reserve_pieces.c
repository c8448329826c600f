#include "reserve_pieces.h"

#include <stdatomic.h>

#include "clock.h"
#include "minmax.h"
#include "reserve_keeper.h"

#define MS 1000000ull

/*
 * Of each device: the least request in pieces, 0: none; the pool, its least unused bytes, and when; what
 * it had reserved, 0: it has given the growth back.
 */
static struct pieces {
	_Atomic uint64_t bytes, unused, ns, reserved;
	const void *_Atomic pool;
} of_devices[SPILL_DEVICES];

static struct pieces *pieces_of(int device)
{
	return device >= 0 && device < SPILL_DEVICES ? &of_devices[device] : NULL;
}

bool spill_reserve_fell(const struct spill_backend *backend, int device,
                        const struct spill_pool_request *request)
{
	struct pieces *pieces = pieces_of(device);
	uint64_t free, kept, least;
	if (!pieces || !spill_reserve_look(backend, device, &free, &kept) || free >= kept)
		return false;
	least = atomic_load(&pieces->pool) == request->pool ? atomic_load(&pieces->bytes) : 0;
	atomic_store(&pieces->bytes, 0);
	atomic_store(&pieces->pool, request->pool);
	atomic_store(&pieces->unused, request->unused);
	atomic_store(&pieces->reserved, request->reserved);
	atomic_store(&pieces->ns, spill_clock_ns());
	atomic_store(&pieces->bytes, least ? spill_min(least, request->bytes) : request->bytes);
	return true;
}

static bool is_of_pieces(const struct pieces *pieces, const struct spill_pool_request *request)
{
	return pieces && atomic_load(&pieces->bytes) && atomic_load(&pieces->pool) == request->pool;
}

bool spill_reserve_is_in_pool(const struct spill_backend *backend, int device,
                              const struct spill_pool_request *request)
{
	struct pieces *pieces = pieces_of(device);
	uint64_t reserved = is_of_pieces(pieces, request) ? atomic_load(&pieces->reserved) : 0;
	if (!reserved)
		return false;
	if (request->reserved >= reserved && spill_reserve_is_short(backend, device, 1))
		return true;
	atomic_store(&pieces->reserved, 0);
	return false;
}

uint64_t spill_reserve_unused(int device, const struct spill_pool_request *request)
{
	struct pieces *pieces = pieces_of(device);
	if (!is_of_pieces(pieces, request) || request->bytes < atomic_load(&pieces->bytes))
		return request->unused;
	uint64_t least = atomic_load(&pieces->unused);
	if (request->unused < least)
		atomic_store(&pieces->unused, request->unused);
	if (spill_minus(request->unused, least) < request->bytes ||
	    spill_clock_ns() - atomic_load(&pieces->ns) < SPILL_RESERVE_CLOSED_MS * MS)
		return 0;
	atomic_store(&pieces->bytes, 0);
	return request->unused;
}

void spill_reserve_pieces_reset(void)
{
	for (unsigned i = 0; i < SPILL_DEVICES; i++)
		of_devices[i].bytes = 0;
}

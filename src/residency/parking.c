#include "parking.h"

#include <string.h>

#include "remap.h"

/* The mover's lock guards them. */
static struct place {
	const struct spill_backend *backend;
	uint64_t handle, bytes; /* 0: none */
} places[SPILL_DEVICES];

static struct place *place_of(int device)
{
	return device >= 0 && device < SPILL_DEVICES ? &places[device] : NULL;
}

bool spill_parking_needs(const struct spill_backend *backend, int device, uint64_t bytes)
{
	const struct place *place = place_of(device);
	return place && (!place->handle || (place->backend == backend && place->bytes < bytes));
}

/* Chunks may still be at the old one. Their mappings keep its memory. */
static void release(struct place *place, int device)
{
	if (place->handle)
		spill_device_chunk_put(place->backend, device, place->bytes, place->handle, 0);
	*place = (struct place){0};
}

void spill_parking_take(const struct spill_backend *backend, int device, uint64_t handle, uint64_t bytes)
{
	struct place *place = place_of(device);
	release(place, device);
	*place = (struct place){backend, handle, bytes};
}

bool spill_parking_begin(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	const struct place *place = place_of(device);
	struct spill_chunk *chunk = spill_move_chunk(move);
	if (!place || !place->handle || place->backend != backend || place->bytes < chunk->bytes)
		return false;
	chunk->parked = true;
	return true;
}

void spill_parking_cancel(const struct spill_move *move)
{
	spill_move_chunk(move)->parked = false;
}

bool spill_parking_park(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	return spill_remap_other(backend, device, move, place_of(device)->handle);
}

void spill_parking_forget(const struct spill_backend *backend, int device)
{
	struct place *place = place_of(device);
	if (!place)
		return;
	spill_mover_lock();
	if (place->backend == backend)
		release(place, device);
	spill_mover_unlock();
}

void spill_parking_reset(void)
{
	memset(places, 0, sizeof(places));
}

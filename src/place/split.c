/*
 * Split: one virtual range, device chunks first, host chunks (HOST_NUMA, pinned, read in place) behind them.
 * The range is mapped in chunks, each its own handle, because a mapping can be unmapped only whole: so a chunk can
 * move later without the program's pointer changing (docs/design.md). CUDA Driver API, "Virtual Memory Management".
 */
#include <stdlib.h>

#include "account.h"
#include "place.h"

/* 64 MiB: 4 GiB cost 2 ms; at 16 MiB they cost 8 (measured, H200). */
#define CHUNK (64ull << 20)

struct chunk {
	uint64_t handle, bytes;
};

struct split_placement {
	struct spill_placement base;
	uint64_t range;  /* bytes of address space reserved */
	uint64_t mapped; /* bytes mapped from the start: all, but for one half made */
	unsigned count;
	struct chunk chunks[];
};

static uint64_t round_up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

/* Chunks belong to the process, not to a context: they are given back whether it has ended or not. */
static void release(struct spill_placement *placement, bool context_ended)
{
	struct split_placement *mine = (struct split_placement *)placement;
	const struct spill_backend *backend = placement->backend;
	uint64_t va = placement->ptr;
	for (unsigned i = 0; i < mine->count; i++) {
		backend->unmap(va, mine->chunks[i].bytes);
		backend->release(mine->chunks[i].handle);
		va += mine->chunks[i].bytes;
	}
	if (mine->range)
		backend->unreserve(placement->ptr, mine->range);
	spill_account_device_return(placement->device, placement->held.device);
	spill_account_host_return(placement->held.host);
	free(mine);
}

/* Creates and maps chunks of `bytes` in all, at the end of what is mapped. Returns the vendor's error. */
static int extend(struct split_placement *mine, bool on_host, uint64_t bytes)
{
	const struct spill_backend *backend = mine->base.backend;
	while (bytes) {
		struct chunk *chunk = &mine->chunks[mine->count];
		chunk->bytes = bytes < CHUNK ? bytes : CHUNK;
		int result = backend->create(mine->base.device, on_host, chunk->bytes, &chunk->handle);
		if (result)
			return result;
		result = backend->map(mine->base.ptr + mine->mapped, chunk->bytes, chunk->handle);
		if (result) {
			backend->release(chunk->handle);
			return result;
		}
		mine->count++;
		mine->mapped += chunk->bytes;
		bytes -= chunk->bytes;
	}
	return 0;
}

/* Device chunks while there is room and the driver agrees: others take device memory too, so its word counts. */
static void fill_device(struct split_placement *mine, const struct spill_want *want, uint64_t unit)
{
	uint64_t bytes = spill_device_charge(want, mine->range, unit);
	extend(mine, false, bytes);
	mine->base.held.device = mine->mapped;
	spill_account_device_return(mine->base.device, bytes - mine->mapped);
}

static const char *fill(struct split_placement *mine, const struct spill_want *want, uint64_t unit)
{
	const struct spill_backend *backend = want->backend;
	fill_device(mine, want, unit);
	uint64_t host_bytes = mine->range - mine->base.held.device;
	if (host_bytes > mine->base.held.host) {
		const char *refused = spill_host_charge(want->policy, host_bytes - mine->base.held.host);
		if (refused)
			return refused;
		mine->base.held.host = host_bytes;
	}
	int result = extend(mine, true, host_bytes);
	if (!result)
		result = backend->allow(mine->base.ptr, mine->range, want->device);
	return result ? backend->error_name(result) : NULL;
}

/* The granule of both kinds of chunk, 0 if the device cannot do this. */
static uint64_t granule(const struct spill_want *want)
{
	const struct spill_backend *backend = want->backend;
	uint64_t on_device, on_host;
	if (!backend->create || !(backend->capabilities(want->device) & SPILL_CAN_SPLIT) ||
	    backend->granularity(want->device, false, &on_device) ||
	    backend->granularity(want->device, true, &on_host))
		return 0;
	return on_device > on_host ? on_device : on_host;
}

/* Bookkeeping for `range` bytes, of which `host_bytes` are charged already. */
static struct split_placement *describe(const struct spill_want *want, uint64_t range, uint64_t host_bytes)
{
	/* Two partial chunks at most: the last of the device and the last of the host. */
	struct split_placement *mine = calloc(1, sizeof(*mine) + (range / CHUNK + 2) * sizeof(struct chunk));
	if (!mine)
		return NULL;
	mine->base = (struct spill_placement){
	    .ops = &spill_place_split,
	    .backend = want->backend,
	    .device = want->device,
	    .context = want->context,
	    .bytes = want->bytes,
	    .held.host = host_bytes,
	};
	return mine;
}

static struct spill_placement *make(const struct spill_want *want, const char **error)
{
	uint64_t unit = granule(want);
	if (!unit || want->bytes > UINT64_MAX - unit) {
		*error = "not supported by the device";
		return NULL;
	}
	/* What must be on host in any case is charged first: a refusal costs no vendor call. */
	uint64_t range = round_up(want->bytes, unit);
	uint64_t surely_host = range - (want->device_room < range ? want->device_room / unit * unit : range);
	*error = surely_host ? spill_host_charge(want->policy, surely_host) : NULL;
	if (*error)
		return NULL;
	struct split_placement *mine = describe(want, range, surely_host);
	if (!mine) {
		spill_account_host_return(surely_host);
		*error = "no memory for bookkeeping";
		return NULL;
	}
	int result = want->backend->reserve(range, unit, &mine->base.ptr);
	if (result) {
		*error = want->backend->error_name(result);
	} else {
		mine->range = range;
		*error = fill(mine, want, unit);
	}
	if (!*error)
		return &mine->base;
	release(&mine->base, false);
	return NULL;
}

static void range(const struct spill_placement *placement, uint64_t *va, uint64_t *bytes)
{
	*va = placement->ptr;
	*bytes = ((const struct split_placement *)placement)->range;
}

const struct spill_place_ops spill_place_split = {SPILL_PLACE_SPLIT, make, release, range};

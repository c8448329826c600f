#include "remap.h"

#include "clock.h"
#include "note.h"
#include "peer.h"

#define TRIES 5 /* to map a chunk again: pauses of 1 ms, 2 ms, 4 ms … */

/* The addresses of a chunk, and the memory that is mapped there. */
struct chunk_mapping {
	const struct spill_backend *backend;
	uint64_t va, bytes;
	int users[SPILL_DEVICES + 1]; /* the chunk's device, then others with access */
	unsigned user_count;
	uint64_t handle; /* mapped memory; 0: none */
	bool accessible; /* by all users */
};

/* Stands for the handle of wrong memory. No handle has this value. */
#define WRONG_MEMORY UINT64_MAX

static uint64_t mapped_handle(const struct spill_chunk *chunk)
{
	if (chunk->wrong_memory)
		return WRONG_MEMORY;
	return chunk->unmapped ? 0 : chunk->handle;
}

/* Notes whether the chunk's own memory is mapped, of which it is going to have `own`. */
static void note_mapping(struct spill_chunk *chunk, const struct chunk_mapping *mapping, uint64_t own)
{
	chunk->unmapped = mapping->handle != own;
	chunk->wrong_memory = mapping->handle && chunk->unmapped;
	if (!chunk->wrong_memory)
		chunk->parked = false;
}

static struct chunk_mapping mapping_of(const struct spill_backend *backend, int device,
                                       const struct spill_move *move)
{
	struct chunk_mapping mapping = {
	    .backend = backend,
	    .va = spill_chunked_address(move->chunked, move->index),
	    .bytes = spill_move_chunk(move)->bytes,
	    .users = {device},
	    .user_count = 1,
	    .handle = mapped_handle(spill_move_chunk(move)),
	    .accessible = true,
	};
	/* Peer access is not for memory that the program maps itself: it gives access to that by range. */
	if (!move->chunked->set)
		mapping.user_count += spill_peer_devices(backend, device, mapping.users + 1);
	for (int user = 0; user < SPILL_DEVICES; user++)
		if (move->chunked->users >> user & 1 && user != device)
			mapping.users[mapping.user_count++] = user;
	return mapping;
}

/* Maps `handle` for all users. False: the vendor refused; `mapping` says what is mapped now. */
static bool map_handle(struct chunk_mapping *mapping, uint64_t handle)
{
	if (mapping->handle && mapping->handle != handle) {
		if (mapping->backend->vmm->unmap(mapping->va, mapping->bytes))
			return false;
		mapping->handle = 0;
	}
	if (!mapping->handle) {
		mapping->accessible = false;
		if (mapping->backend->vmm->map(mapping->va, mapping->bytes, handle))
			return false;
		mapping->handle = handle;
	}
	for (unsigned i = 0; i < mapping->user_count && !mapping->accessible; i++)
		if (mapping->backend->vmm->allow(mapping->va, mapping->bytes, mapping->users[i]))
			return false;
	mapping->accessible = true;
	return true;
}

/* Maps either memory, the old one first. Without one of them the program loses its data. */
static void map_either(struct chunk_mapping *mapping, uint64_t old, uint64_t new)
{
	for (unsigned try = 0; try < TRIES; try++) {
		if (map_handle(mapping, old) || map_handle(mapping, new))
			return;
		spill_clock_sleep(1000000ull << try);
	}
	spill_note("move", mapping->handle ? "a moved chunk of memory could not be made accessible again"
	                                   : "a chunk of memory could not be mapped again");
}

bool spill_remap_new(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	struct chunk_mapping mapping = mapping_of(backend, device, move);
	if (!map_handle(&mapping, move->handle))
		map_either(&mapping, chunk->handle, move->handle);
	bool mapped = mapping.handle == move->handle;
	note_mapping(chunk, &mapping, mapped ? move->handle : chunk->handle);
	return mapped;
}

bool spill_remap_other(const struct spill_backend *backend, int device, const struct spill_move *move,
                       uint64_t other)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	struct chunk_mapping mapping = mapping_of(backend, device, move);
	bool mapped = map_handle(&mapping, other);
	note_mapping(chunk, &mapping, chunk->handle);
	return mapped;
}

void spill_remap_old(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	struct chunk_mapping mapping = mapping_of(backend, device, move);
	mapping.handle = move->handle;
	map_either(&mapping, chunk->handle, chunk->handle);
	note_mapping(chunk, &mapping, chunk->handle);
}

bool spill_remap_lost(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	if (chunk->unmapped) {
		struct chunk_mapping mapping = mapping_of(backend, device, move);
		map_handle(&mapping, chunk->handle);
		note_mapping(chunk, &mapping, chunk->handle);
	}
	return !chunk->unmapped;
}

bool spill_remap_none(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	if (chunk->unmapped ||
	    backend->vmm->unmap(spill_chunked_address(move->chunked, move->index), chunk->bytes))
		return false;
	chunk->unmapped = true;
	return true;
}

void spill_remap_own(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	struct chunk_mapping mapping = mapping_of(backend, device, move);
	if (!chunk->unmapped)
		return;
	map_either(&mapping, chunk->handle, chunk->handle);
	note_mapping(chunk, &mapping, chunk->handle);
}

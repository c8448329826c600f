/*
 * The life of physical memory that the program creates (engine_vmm.c): its handles and mappings, and
 * access to them. vmm.h follows them. The calls that take a handle of ours are carried out here.
 */
#include <stdlib.h>

#include "abi/cuda.h"
#include "account.h"
#include "chunk_map.h"
#include "chunk_set.h"
#include "engine.h"
#include "exporting.h"
#include "note.h"
#include "promote.h"
#include "retry_state.h"
#include "unpark.h"
#include "vmm.h"

void spill_engine_finish_ended(struct spill_request *request, struct spill_vmm_memory *ended)
{
	while (ended) {
		struct spill_vmm_memory *memory = ended;
		ended = memory->next;
		struct spill_allocation *entry = spill_ledger_take_handle(memory->handle, memory->seq);
		if (entry) {
			/* The line is first, as for every free. */
			spill_request_log_free(request, entry, SPILL_REASON_FREE);
			spill_account_device_return(entry->device, entry->charged);
			spill_account_physical_return(entry->charged_host);
			spill_placement_release(entry->placement, true);
			spill_ledger_end(entry);
			spill_promote_later();
		}
		free(memory);
	}
}

/* As the driver's answer for a handle that it does not know. Only CUDA has chunk sets. */
static void refuse(struct spill_request *request)
{
	request->result = CUDA_ERROR_INVALID_VALUE;
}

/*
 * The vendor must not see a handle of ours, also if it has ended: the vendor takes it for an
 * address.
 */
bool spill_engine_release(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_releasing(request->handle);
		if (!spill_chunk_set_is(request->handle))
			return true;
		if (!request->memory)
			refuse(request);
	}
	if (request->memory)
		spill_engine_finish_ended(request, spill_vmm_released(request->memory, request->result == 0));
	return false;
}

/* The set of memory in the table, or NULL. */
static struct spill_chunked *set_of(const struct spill_vmm_memory *memory)
{
	return memory ? spill_chunked_of(memory->set) : NULL;
}

/* Without its record nobody would know when the memory ends. So the program gets an out of memory. */
static bool undo_mapping(struct spill_request *request)
{
	const struct spill_backend *backend = spill_backend_in_use(request->domain);
	struct spill_chunked *set = set_of(request->memory);
	if (!backend || !backend->vmm || backend->vmm->unmap(request->ptr, request->bytes))
		return false;
	if (set)
		spill_chunk_set_unmapped(set, request->ptr, true);
	request->result = backend->out_of_memory;
	return true;
}

static void record_mapping(struct spill_request *request)
{
	uint64_t mapped = request->result == 0 ? request->bytes : 0;
	bool recorded;
	spill_engine_finish_ended(request,
	                          spill_vmm_mapped(request->memory, request->ptr, mapped, &recorded));
	if (!recorded)
		spill_engine_finish_ended(request,
		                          spill_vmm_unrecorded(request->memory, undo_mapping(request)));
}

/* What is mapped twice stays where it is, because a move would change one of its mappings only. */
static int map_set(struct spill_chunked *set, uint64_t va, uint64_t bytes)
{
	spill_mover_lock();
	if (set->base.ptr && bytes == set->range)
		spill_unpark_pin_held(set);
	int result = spill_chunk_set_map(set, va, bytes);
	spill_mover_unlock();
	return result;
}

bool spill_engine_map(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_mapping(request->handle);
		if (!spill_chunk_set_is(request->handle))
			return true;
		struct spill_chunked *set = set_of(request->memory);
		if (set)
			request->result = map_set(set, request->ptr, request->bytes);
		else
			refuse(request);
	}
	if (request->memory)
		record_mapping(request);
	if (request->result == 0)
		spill_retry_state_mapped(request);
	return false;
}

/*
 * Sets in these mappings stay where they are from now on. False: the range covers a part of one. The
 * vendor would unmap single chunks.
 */
static bool prepare_unmapping(const struct spill_request *request)
{
	bool whole = true;
	for (const struct spill_vmm_mapping *mapping = request->mappings; mapping; mapping = mapping->next) {
		struct spill_chunked *set = set_of(mapping->memory);
		if (!set)
			continue;
		whole = whole && request->ptr <= mapping->va &&
		        mapping->va + mapping->bytes <= request->ptr + request->bytes;
		spill_chunked_delist(set);
	}
	return whole;
}

static void finish_unmapping(const struct spill_request *request)
{
	for (const struct spill_vmm_mapping *mapping = request->mappings; mapping; mapping = mapping->next) {
		struct spill_chunked *set = set_of(mapping->memory);
		if (set)
			spill_chunk_set_unmapped(set, mapping->va, request->result == 0);
	}
}

bool spill_engine_unmap(struct spill_request *request)
{
	if (request->step++ == 0) {
		request->start_us = spill_log_start_us();
		request->mappings = spill_vmm_unmapping(request->ptr, request->bytes);
		if (prepare_unmapping(request))
			return true;
		refuse(request);
	}
	finish_unmapping(request);
	if (request->mappings)
		spill_engine_finish_ended(request,
		                          spill_vmm_unmapped(request->mappings, request->result == 0));
	return false;
}

/* The devices that may read and write now, a bit each. 0: something else was set. Only CUDA has sets. */
_Static_assert(SPILL_DEVICES <= 64, "a bit for each device");
static uint64_t users_of(const struct spill_request *request)
{
	const CUmemAccessDesc *access = request->properties;
	uint64_t users = 0;
	for (unsigned i = 0; i < request->mode; i++) {
		if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0 ||
		    access[i].location.id >= SPILL_DEVICES ||
		    access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return 0;
		users |= 1ull << access[i].location.id;
	}
	return users;
}

/* Tells each set in the range. Returns the memory that has ended meanwhile. pre: the mover is held */
static struct spill_vmm_memory *tell_sets(const struct spill_request *request)
{
	struct spill_vmm_range range;
	struct spill_vmm_memory *ended = NULL, **last = &ended;
	for (uint64_t at = request->ptr, end = at + request->bytes; at < end;) {
		bool found = spill_vmm_spilled_at(at, &range);
		struct spill_vmm_memory *memory = found ? spill_vmm_retaining(at) : NULL;
		struct spill_chunked *set = set_of(memory);
		if (set) {
			spill_chunk_set_accessed(set, request->ptr, request->bytes, users_of(request));
			spill_gate_want_maintenance();
			if (set->owed)
				spill_promote_wanted();
		}
		if (memory)
			*last = spill_vmm_retained(memory, 0);
		while (*last)
			last = &(*last)->next;
		at = found ? range.va + range.bytes : at + SPILL_CHUNK_MAP_UNIT;
	}
	return ended;
}

/*
 * The program has access to its mappings: sets among them may move. Sets that may move already do
 * not during the call, because a chunk is not mapped for a moment, and not before the new users are
 * known.
 */
bool spill_engine_access(struct spill_request *request)
{
	struct spill_vmm_memory *ended = NULL;
	if (request->step++ == 0) {
		if (spill_vmm_any_spilled())
			spill_mover_lock();
		return true;
	}
	bool told = request->result == 0 && request->properties;
	if (told && !spill_mover_is_mine())
		spill_mover_lock();
	if (told)
		ended = tell_sets(request);
	if (spill_mover_is_mine())
		spill_mover_unlock();
	spill_engine_finish_ended(request, ended);
	return false;
}

/*
 * The program must not get one of our handles behind a split or movable allocation. The vendor has
 * no handle for plain memory, which the program takes it for, so the answer is the vendor's error.
 * Of a chunk set the program gets its own handle.
 */
bool spill_engine_retain(struct spill_request *request)
{
	struct spill_allocation placed;
	if (request->step++ == 0) {
		if (request->ptr && spill_ledger_placed(request->ptr, &placed) &&
		    (placed.place == SPILL_PLACE_SPLIT || placed.place == SPILL_PLACE_MOVABLE)) {
			request->result = placed.backend->invalid_value;
			return false;
		}
		request->start_us = spill_log_start_us();
		request->memory = spill_vmm_retaining(request->ptr);
		struct spill_chunked *set = set_of(request->memory);
		if (!set || !request->out)
			return true;
		*spill_engine_out(request) = set->name;
	}
	uint64_t handle = request->result == 0 && request->out ? *spill_engine_out(request) : 0;
	if (request->memory || handle)
		spill_engine_finish_ended(request, spill_vmm_retained(request->memory, handle));
	return false;
}

bool spill_engine_properties(struct spill_request *request)
{
	bool ours = spill_chunk_set_is(request->handle);
	if (request->step++ == 0 && !ours)
		return true;
	bool told = request->result == 0 && request->out && spill_vmm_spilled(request->handle, request->out);
	if (ours && !told)
		refuse(request);
	return false;
}

static void note_not_exported(const struct spill_vmm_memory *memory)
{
	spill_exporting_learn(memory->site, memory->bytes);
	spill_note("export", "physical memory cannot be exported, because libspill had made it of chunks and "
	                     "moved them. Later requests of this size from there stay plain. A rule with "
	                     "api = cuMemCreate and place = device, or movable.enable = off, keeps all of "
	                     "them plain");
}

/*
 * The vendor exports its own handle only, as it was created for the program. It must not see ours: it
 * takes a handle for an address.
 */
bool spill_engine_use_real_handle(struct spill_request *request)
{
	if (!spill_chunk_set_is(request->handle))
		return true;
	struct spill_vmm_memory *memory = spill_vmm_mapping(request->handle);
	struct spill_chunked *set = set_of(memory);
	if (set)
		spill_unpark_pin(set);
	uint64_t real = set ? spill_chunk_set_real(set) : 0;
	if (real)
		request->handle = real;
	else
		refuse(request);
	if (set && !real && memory->exportable)
		note_not_exported(memory);
	if (memory)
		spill_engine_finish_ended(request, spill_vmm_unrecorded(memory, true));
	return real;
}

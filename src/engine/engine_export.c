/*
 * Handing memory to another process or device driver, and preparing it for that (SYNC_MEMOPS): the vendor refuses both for
 * most of what we placed (docs/measurements.md), and a copy would not be the same memory. Its refusal is the program's
 * answer; the log says what it was about and how to keep such memory plain, and later requests like that one are
 * (exporting.h). What somebody else uses, too, stays where it is.
 */
#include <stdio.h>

#include "abi/cuda.h"
#include "engine.h"
#include "exporting.h"
#include "movable.h"
#include "note.h"
#include "chunked.h"
#include "vmm.h"

/* The vendor hands out whole pages of the host by a range; 4 KiB is the smallest. */
#define PAGE 4096u

/* An error of the program: no memory can do that. HIP numbers the attribute alike. */
static bool is_wrong(const struct spill_request *request)
{
	if (request->op == SPILL_OP_ATTR_SET)
		return request->mode != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !request->properties;
	bool range = request->bytes != 0, pages = (request->ptr | request->bytes) % PAGE == 0;
	return !request->out || (range && !pages);
}

/* Would plain memory have been refused as well? What the vendor lacks (CUDA_ERROR_NOT_SUPPORTED) it lacks for all memory. */
static bool is_for_chunks(const struct spill_request *request, const struct spill_allocation *placed)
{
	return (placed->place == SPILL_PLACE_MOVABLE || placed->place == SPILL_PLACE_SPLIT) &&
	       (request->op == SPILL_OP_ATTR_SET || request->result == placed->backend->invalid_value);
}

static void tell_of_chunks(const struct spill_request *request, const struct spill_allocation *placed)
{
	char text[512];
	snprintf(text, sizeof(text),
	         "the driver refused %s for memory that %s asked for, because libspill had made it of "
	         "chunks. Later requests of this size from there stay plain. A rule with this caller and "
	         "place = device, or movable.enable = off, keeps all of them plain",
	         spill_engine_api(request), placed->caller);
	spill_note("export", text);
}

static void refused(const struct spill_request *request, const struct spill_allocation *placed)
{
	if (placed && is_for_chunks(request, placed))
		spill_exporting_learn(placed->site, placed->bytes);
	if (placed && placed->place == SPILL_PLACE_MOVABLE) {
		if (is_for_chunks(request, placed))
			tell_of_chunks(request, placed);
	} else if (placed || (request->handle && spill_vmm_spilled(request->handle, NULL))) {
		spill_note(
		    "export",
		    "the driver refused to export memory that libspill had placed off the device: with "
		    "oom.chain empty nothing is, and an allocation that does not fit fails where it is made");
	}
}

bool spill_engine_export(struct spill_request *request)
{
	struct spill_allocation allocation = {0};
	bool placed = request->ptr && spill_ledger_placed(request->ptr, &allocation);
	if (request->step++ == 0) {
		/* Driver 580 crashes when it is asked for a handle of memory of a managed pool (measured). */
		bool crashes =
		    placed && allocation.ordered && allocation.held.managed && request->op == SPILL_OP_EXPORT;
		/* Before the driver is asked: a chunk that moved behind its answer would be another's. */
		if (placed && !crashes)
			spill_chunked_pin(request->ptr);
		if (!crashes)
			return true;
		request->result =
		    allocation.backend->invalid_value; /* its answer about memory of any other pool */
	}
	if (request->result && !is_wrong(request))
		refused(request, placed ? &allocation : NULL);
	else if (!request->result)
		spill_movable_forbid("the program hands memory to another process or device");
	return false;
}

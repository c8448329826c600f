/*
 * Exports: memory goes to another process or device driver, or is prepared for that (SYNC_MEMOPS).
 *
 * The vendor refuses both for most memory that we placed (docs/measurements.md), and a copy would
 * be other memory. libspill serves legacy handles of chunks itself (ipc.h). Else the program gets the
 * vendor's refusal. The log says which memory it was, and how to keep such memory plain. Later requests of the same kind stay plain (exporting.h). Exported
 * memory is not moved, because another process uses it, too.
 */
#include <stdio.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "engine.h"
#include "exporting.h"
#include "ipc.h"
#include "note.h"
#include "chunk_set.h"
#include "unpark.h"
#include "vmm.h"

/* Is the call wrong for any memory? HIP has the same number for the attribute. */
static bool is_wrong(const struct spill_request *request)
{
	if (request->op == SPILL_OP_ATTR_SET)
		return request->mode != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !request->properties;
	/* The vendor exports a range by whole pages of the host. */
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	bool range = request->bytes != 0, pages = (request->ptr | request->bytes) % page == 0;
	return !request->out || (range && !pages);
}

/* Was the call refused because of chunks? CUDA_ERROR_NOT_SUPPORTED holds for plain memory, too. */
static bool is_for_chunks(const struct spill_request *request, const struct spill_allocation *placed)
{
	return (placed->place == SPILL_PLACE_MOVABLE || placed->place == SPILL_PLACE_SPLIT) &&
	       (request->op == SPILL_OP_ATTR_SET || request->result == placed->backend->invalid_value);
}

static void note_chunks(const struct spill_request *request, const struct spill_allocation *placed)
{
	char text[512];
	snprintf(text, sizeof(text),
	         "the driver refused %s for memory that %s asked for, because libspill had made it of "
	         "chunks. Later requests of this size from there stay plain. A rule with this caller and "
	         "place = device, or movable.enable = off, keeps all of them plain",
	         spill_engine_api(request), placed->caller);
	spill_note("export", text);
}

/*
 * The vendor refuses a legacy handle of chunks, so they get one of ours (ipc.h). The placement stays
 * where it is: a free by another thread meanwhile is the program's error.
 */
static bool serve_handle(const struct spill_request *request, const struct spill_allocation *placed)
{
	int cancel = spill_ours_begin();
	bool served = request->result == placed->backend->invalid_value && spill_ipc_serves(placed) &&
	              spill_ipc_export(placed->placement, placed->bytes, request->out);
	spill_ours_end(cancel);
	if (served)
		spill_note(
		    "export",
		    "the driver has no cuIpcGetMemHandle for memory that is made of chunks, so libspill "
		    "hands it to other processes itself. These need libspill, too. Such memory does "
		    "not move any more");
	return served;
}

static void handle_refusal(const struct spill_request *request, const struct spill_allocation *placed)
{
	if (placed && is_for_chunks(request, placed))
		spill_exporting_learn(placed->site, placed->bytes);
	if (placed && placed->place == SPILL_PLACE_MOVABLE) {
		if (is_for_chunks(request, placed))
			note_chunks(request, placed);
	} else if (placed || (request->handle && !spill_chunk_set_is(request->handle) &&
	                      spill_vmm_spilled(request->handle, NULL))) {
		spill_note(
		    "export",
		    "the driver refused to export memory that libspill had placed off the device. With an "
		    "empty oom.chain nothing is placed there, and an allocation that does not fit fails");
	}
}

/*
 * Driver 580 crashes when it is asked to export memory of a managed pool (measured). For mapped
 * memory: export_harms (backend.h).
 */
static bool harms(const struct spill_request *request, const struct spill_allocation *placed)
{
	const struct spill_vendor_vmm *vmm = placed->backend->vmm;
	return request->op == SPILL_OP_EXPORT &&
	       ((placed->ordered && placed->held.managed) ||
	        (vmm && vmm->export_harms && placed->place == SPILL_PLACE_SPLIT));
}

bool spill_engine_export(struct spill_request *request)
{
	struct spill_allocation allocation = {0};
	struct spill_vmm_range range;
	bool placed = request->ptr && spill_ledger_placed(request->ptr, &allocation);
	if (request->step++ == 0) {
		if (!spill_engine_use_real_handle(request))
			return false;
		bool refused = placed && harms(request, &allocation);
		/*
		 * Pinned before the driver is asked: a chunk that moves after its answer is not
		 * exported.
		 */
		if ((placed && !refused) || spill_vmm_spilled_at(request->ptr, &range))
			spill_unpark_pin_at(request->ptr);
		if (!refused)
			return true;
		/* The driver's answer for other memory that it does not export. */
		request->result = allocation.backend->invalid_value;
	}
	if (!request->result || is_wrong(request))
		return false;
	if (placed && request->op == SPILL_OP_EXPORT && request->mode && request->out &&
	    serve_handle(request, &allocation))
		request->result = 0;
	else
		handle_refusal(request, placed ? &allocation : NULL);
	return false;
}

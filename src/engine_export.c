/*
 * Handing memory to another process or device driver, and preparing it for that (SYNC_MEMOPS): the vendor refuses both for
 * most of what we placed (docs/measurements.md), and a copy would not be the same memory. Its refusal is the program's
 * answer; the log says what it was about and how to keep such memory on the device. What somebody else uses, too, stays
 * where it is.
 */
#include "engine.h"
#include "movable.h"
#include "note.h"
#include "place/chunked.h"
#include "vmm.h"

static void refused(const struct spill_request *request, const struct spill_allocation *placed)
{
	if (placed && placed->place == SPILL_PLACE_MOVABLE)
		spill_note("export",
		           "the driver refused to export memory that libspill had made movable: with "
		           "movable.enable = off none is");
	else if (placed || (request->handle && spill_vmm_spilled(request->handle, NULL)))
		spill_note(
		    "export",
		    "the driver refused to export memory that libspill had placed off the device: with "
		    "oom.chain empty nothing is, and an allocation that does not fit fails where it is made");
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
	if (request->result)
		refused(request, placed ? &allocation : NULL);
	else
		spill_movable_forbid("the program hands memory to another process or device");
	return false;
}

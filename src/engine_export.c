/*
 * Handing memory to another process or device driver, and preparing it for that (SYNC_MEMOPS): the vendor refuses both for
 * most of what we placed (docs/measurements.md), and a copy would not be the same memory. Its refusal is the program's
 * answer; the log says what it was about and how to keep such memory on the device.
 */
#include "engine.h"
#include "note.h"
#include "vmm.h"

bool spill_engine_export(struct spill_request *request)
{
	struct spill_allocation allocation = {0};
	bool placed = request->ptr && spill_ledger_placed(request->ptr, &allocation);
	if (request->step++ == 0) {
		/* Driver 580 crashes when it is asked for a handle of memory of a managed pool (measured). */
		bool crashes =
		    placed && allocation.ordered && allocation.held.managed && request->op == SPILL_OP_EXPORT;
		if (!crashes)
			return true;
		request->result =
		    allocation.backend->invalid_value; /* its answer about memory of any other pool */
	}
	if (request->result && (placed || (request->handle && spill_vmm_spilled(request->handle, NULL))))
		spill_note(
		    "export",
		    "the driver refused to export memory that libspill had placed off the device: with "
		    "oom.chain empty nothing is, and an allocation that does not fit fails where it is made");
	return false;
}

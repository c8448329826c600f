#include "work.h"

#include <errno.h>

#include "graph_access.h"
#include "vendor_pool.h"
#include "movable.h"
#include "real.h"
#include "make_room.h"
#include "process.h"

_Atomic(void *) spill_work_real[SPILL_WORKS];

void spill_work_wanted(const struct spill_row *row)
{
	int hook = spill_row_index(row);
	if (hook != SPILL_HOOK_cuMemBatchDecompressAsync && hook != SPILL_HOOK_cuMemBatchDecompressAsync_ptsz)
		return;
	if (!spill_thread.depth && spill_shim_ready())
		spill_movable_forbid(
		    "the program has the device decompress, which works on memory of cuMemAlloc alone");
}

void *spill_work_begin(enum spill_hook hook, enum spill_work work, enum spill_way way)
{
	int error = errno;
	bool nested = spill_thread.depth > 0; /* also while we start on this thread */
	bool ready = !nested && spill_shim_ready();
	if (ready && !spill_gate_self)
		spill_gate_join(SPILL_WORK_COUNTERS);
	/* Who is off writes no totals. */
	if ((ready || nested) && !spill_gate_self)
		atomic_fetch_add_explicit(&spill_row_hits[hook][way], 1, memory_order_relaxed);
	spill_work_wanted(&spill_rows[hook]); /* linked, it was never looked up */
	void *real = spill_real(&spill_rows[hook], NULL);
	if (real)
		atomic_store_explicit(&spill_work_real[work], real, memory_order_release);
	errno = error;
	return real;
}

/*
 * A refused launch of a graph with memory of its own loses to the device what it had got (docs/adr/0015). So it is
 * asked again once, and only with room for all of it. Other graphs need no room when they are launched.
 */
static bool may_lose(enum spill_hook hook)
{
	return (hook == SPILL_HOOK_cuGraphLaunch || hook == SPILL_HOOK_cuGraphLaunch_ptsz ||
	        hook == SPILL_HOOK_cuGraphUpload || hook == SPILL_HOOK_cuGraphUpload_ptsz) &&
	       spill_vendor_pool_has_graphs();
}

bool spill_work_room(enum spill_hook hook, int result, const void *graph, const void *caller,
                     unsigned attempt)
{
	bool loses = may_lose(hook);
	uint64_t whole = loses && graph ? spill_graph_access_memory(graph) : 0;
	/* A call of our own: whoever makes room is on this stack. */
	if (spill_thread.depth || (loses && (attempt || !whole)))
		return false;
	int error = errno;
	const struct spill_request *frame = spill_thread.frame;
	bool again =
	    spill_make_room_for(SPILL_CUDA_DRIVER, result, frame ? frame->api : spill_rows[hook].symbol,
	                        frame ? frame->caller : caller, attempt, whole);
	errno = error;
	return again;
}

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
	bool nested = spill_thread.depth > 0; /* also while this thread starts the library */
	bool ready = !nested && spill_shim_ready();
	if (ready && !spill_gate_self)
		spill_gate_join(SPILL_WORK_COUNTERS);
	/* With libspill off there is no exit line. */
	if ((ready || nested) && !spill_gate_self)
		atomic_fetch_add_explicit(&spill_row_hits[hook][way], 1, memory_order_relaxed);
	/* a linked function needs no look-up, so it is checked here */
	spill_work_wanted(&spill_rows[hook]);
	void *real = spill_real(&spill_rows[hook], NULL);
	if (real)
		atomic_store_explicit(&spill_work_real[work], real, memory_order_release);
	errno = error;
	return real;
}

/*
 * A refused launch of a graph that allocates leaks the memory that it got (docs/adr/0015). So it is
 * tried again only once, with room for all of its memory. Other graphs need no room at launch.
 */
static bool loses_memory_if_refused(enum spill_hook hook)
{
	return (hook == SPILL_HOOK_cuGraphLaunch || hook == SPILL_HOOK_cuGraphLaunch_ptsz ||
	        hook == SPILL_HOOK_cuGraphUpload || hook == SPILL_HOOK_cuGraphUpload_ptsz) &&
	       spill_vendor_pool_has_graphs();
}

bool spill_work_room(enum spill_hook hook, int result, const void *graph, const void *caller,
                     unsigned attempt)
{
	bool loses = loses_memory_if_refused(hook);
	uint64_t whole = loses ? spill_graph_access_memory(graph) : 0;
	/* Not inside a call of our own: this thread may be making room already. */
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

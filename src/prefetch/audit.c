#include "audit.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

#include "capture.h"
#include "chunk_map.h"
#include "clock.h"
#include "contexts.h"
#include "flight.h"
#include "note.h"
#include "process.h"
#include "quiesce.h"
#include "registry.h"

/* A launch that does not end in this time may wait for the program. Then it is not checked. */
#define PATIENCE_NS 10000000000ull
/* So often the context is asked whether it is dead. */
#define SLICE_NS 20000000ull

static _Atomic uint64_t checked, unchecked; /* launches. */
static _Atomic bool broken;                 /* one has ended with an error, and so has its context. */

/* The launch that this thread submits. */
static __thread struct audited {
	const struct spill_backend *backend;
	int device;
	void *context;
	const char *name; /* of the kernel; NULL: unknown, or none. */
} audited __attribute__((tls_model("initial-exec")));

bool spill_audit_wanted(void)
{
	return spill_process_policy()->movable_audit;
}

/* Somebody wants the mover. */
static void map_all(void)
{
	spill_flight_end();
}

/* -- before ------------------------------------------------------------------------------------- */

static bool names(const struct spill_launch_access *access, struct spill_span reach)
{
	for (unsigned i = 0; i < access->count; i++)
		if (((uint64_t)access->keys[i] << SPILL_CHUNK_MAP_UNIT_SHIFT) - reach.offset < reach.bytes)
			return true;
	return false;
}

/* pre: the gate is closed, and the device idle */
static void hide_others(const struct spill_launch_access *access)
{
	for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
	     chunked = spill_chunked_next(chunked))
		for (unsigned i = 0; i < chunked->count && chunked->base.device == audited.device; i++) {
			const struct spill_move move = {.chunked = chunked, .index = i};
			if (!chunked->chunks[i].unmapped && spill_flight_takes(audited.backend, chunked, i) &&
			    !names(access, spill_flight_reach(chunked, i)))
				spill_flight_hide(audited.backend, audited.device, &move);
		}
	spill_gate_begin_flight();
}

/* pre: the mover is held (in flight). False: some work does not end, or a stream captures. */
static bool leave_only(const struct spill_launch_access *access)
{
	uint64_t deadline_ns = spill_clock_ns() + PATIENCE_NS;
	if (!spill_gate_close(deadline_ns))
		return false;
	bool idle = spill_quiesce_wait(audited.backend, audited.device, deadline_ns);
	if (idle)
		hide_others(access);
	spill_gate_open();
	spill_flight_map(access->keys, access->count);
	return idle;
}

/* Memory of other devices and contexts is not unmapped, because nothing tells which of them a launch uses. */
static bool prepare(const struct spill_launch_access *access)
{
	audited.backend = spill_backend_for(SPILL_CUDA_DRIVER);
	if (access->unknown || access->count == SPILL_LAUNCH_ACCESS_KEYS || !audited.backend ||
	    !audited.backend->moves ||
	    !audited.backend->devices->current(&audited.device, &audited.context) ||
	    spill_contexts_only(audited.backend, audited.device) != audited.context ||
	    !spill_mover_trylock_in_flight())
		return false;
	bool prepared = leave_only(access);
	spill_gate_clear(prepared ? spill_gate_flight() : SPILL_GATE_UNCLEAR);
	spill_mover_unlock();
	return prepared;
}

void *spill_audit_before(const struct spill_launch_access *access)
{
	int error = errno, cancel = spill_ours_begin();
	spill_gate_use_flights(map_all);
	spill_gate_clear(SPILL_GATE_UNCLEAR);
	bool prepared = !atomic_load(&broken) && prepare(access);
	if (!prepared)
		atomic_fetch_add(&unchecked, 1);
	else
		audited.name = access->function && audited.backend->kernel_name
		                   ? audited.backend->kernel_name(access->function)
		                   : NULL;
	spill_ours_end(cancel);
	errno = error;
	return prepared ? &audited : NULL;
}

/* -- after -------------------------------------------------------------------------------------- */

static void note_broken(int error)
{
	char text[512];
	if (atomic_exchange(&broken, true))
		return;
	snprintf(
	    text, sizeof(text),
	    "%.300s ended with %s: it used memory that none of its parameters names, or no memory at all. So "
	    "movable.follow = overlap is not for this program",
	    audited.name ? audited.name : "a kernel", audited.backend->error_name(error));
	spill_note("audit", text);
}

/*
 * 0: the launch has ended well, or it has not ended (*late). In a dead context nothing ever ends, and each call has the
 * error (CUDA Driver API, "CUDA_ERROR_ILLEGAL_ADDRESS").
 */
static int wait_for_launch(bool *late)
{
	uint64_t free, total, end_ns = spill_clock_ns() + PATIENCE_NS;
	bool ended = false;
	int error = 0;
	while (!ended && !error && !spill_capture_any() && spill_clock_ns() < end_ns) {
		ended = spill_quiesce_wait(audited.backend, audited.device, spill_clock_ns() + SLICE_NS);
		error = audited.backend->devices->memory(audited.device, &free, &total);
	}
	*late = !ended;
	return error;
}

bool spill_audit_after(const void *result)
{
	bool late;
	if (result != &audited)
		return false;
	int error = wait_for_launch(&late);
	if (error)
		note_broken(error);
	else
		atomic_fetch_add(late ? &unchecked : &checked, 1);
	return true;
}

void spill_audit_tell(void)
{
	char text[256];
	unsigned long long good = atomic_load(&checked), others = atomic_load(&unchecked);
	if (!spill_audit_wanted() || atomic_load(&broken) || !(good + others))
		return;
	snprintf(text, sizeof(text),
	         "%llu launches used only memory that their parameters name. %llu were not checked: graphs, "
	         "and work "
	         "whose parameters are not known, or that did not end in 10 s",
	         good, others);
	spill_note("audit", text);
}

void spill_audit_reset(void)
{
	atomic_store(&checked, 0);
	atomic_store(&unchecked, 0);
	atomic_store(&broken, false);
}

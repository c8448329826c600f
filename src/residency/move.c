/*
 * The pipelined mover. Copies are the device's work and mappings the processor's, so the next chunk
 * is copied while a chunk is mapped. First the new memory is mapped at a view. Then the chunk is
 * copied there, on a stream of ours. When the copy is done, the new memory is mapped in the chunk's
 * place (remap.h). Until then both memories have the content, so after any refusal of the vendor
 * one of them can be mapped. To map the same memory twice is legal: CUDA Programming Guide,
 * "Virtual Aliasing Support".
 */
#include "move.h"

#include "copier.h"
#include "note.h"
#include "parking.h"
#include "remap.h"
#include "chunked.h"

/*
 * Copies at a time, each way. More bring nothing, and chunks below 64 MiB are slower (measured,
 * H200).
 */
#define COPIES_EACH_WAY (SPILL_COPIER_VIEWS / 2)
#define ACTIVE_MOVES SPILL_COPIER_VIEWS /* both ways at once. */

/* A move that has begun. */
struct active_move {
	struct spill_move *move;
	bool to_device;
	void *event;   /* after the copy; NULL: no event could be made. */
	uint64_t view; /* of the new memory. */
	bool own_view; /* the view belongs to the memory, not to the copier. */
	bool in_place; /* no view: the new memory is in place, and copied to from the old view. */
	bool parks;    /* it is dead, and needs no mapping of its own (parking.h). */
};

/* -- views ------------------------------------------------------------------------------------- */

void spill_move_stage(const struct spill_backend *backend, int device, struct spill_move *moves,
                      unsigned count)
{
	for (struct spill_move *move = moves; move < moves + count; move++)
		if (!move->view && !spill_move_chunk(move)->on_host)
			move->view =
			    spill_view_make(backend, device, move->handle, spill_move_chunk(move)->bytes);
}

/* Maps the new memory at a view. If a mapping cannot be undone, its addresses are lost. */
static bool map_view(struct spill_copier *copier, struct active_move *active, unsigned slot)
{
	const struct spill_backend *backend = copier->backend;
	const struct spill_move *move = active->move;
	uint64_t bytes = spill_move_chunk(move)->bytes;
	active->view = move->view;
	active->own_view = move->view != 0;
	if (active->own_view)
		return true;
	if (!copier->view_addresses)
		return false;
	active->view = copier->view_addresses + slot * copier->view_bytes;
	if (backend->vmm->map(active->view, bytes, move->handle))
		return false;
	if (!backend->vmm->allow(active->view, bytes, copier->device))
		return true;
	if (backend->vmm->unmap(active->view, bytes))
		copier->view_addresses = 0;
	return false;
}

/* Unmaps a view of the copier. A view that belongs to the memory stays. */
static void unmap_view(struct spill_copier *copier, const struct active_move *active)
{
	if (active->own_view ||
	    !copier->backend->vmm->unmap(active->view, spill_move_chunk(active->move)->bytes))
		return;
	spill_note("move", "the driver did not end a temporary mapping, so its addresses are lost");
	copier->view_addresses = 0;
}

void spill_move_done(struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	uint64_t old = chunk->handle, old_view = chunk->view;
	spill_chunked_moved(move->chunked, move->index, move->handle);
	chunk->view = move->view;
	move->handle = old;
	move->view = old_view;
	move->moved = true;
}

/* -- copies ------------------------------------------------------------------------------------ */

/*
 * Opens the copy's target. If the old memory on the host has a view, the content stays there
 * whatever is mapped at the chunk. Then the new memory takes the place at once, which saves a
 * mapping.
 */
static bool open_target(struct spill_copier *copier, struct active_move *active, unsigned slot)
{
	active->in_place = active->to_device && spill_move_chunk(active->move)->view;
	return active->in_place ? spill_remap_new(copier->backend, copier->device, active->move)
	                        : map_view(copier, active, slot);
}

static void close_target(struct spill_copier *copier, const struct active_move *active, bool copied)
{
	if (!active->in_place)
		unmap_view(copier, active);
	else if (!copied)
		spill_remap_old(copier->backend, copier->device, active->move);
}

/* The parts of a chunk that count. Without any it is going to be parked. */
static unsigned live_parts(const struct spill_copier *copier, struct active_move *active,
                           struct spill_span spans[SPILL_SPANS])
{
	const struct spill_move *move = active->move;
	bool parks = !active->to_device && spill_parking_begin(copier->backend, copier->device, move);
	unsigned count = spill_chunked_live(move->chunked, move->index, spans);
	active->parks = parks && !count;
	if (parks && count)
		spill_parking_cancel(move);
	return count;
}

/*
 * Copies the parts of a chunk that count. If a later copy is refused, the earlier ones must end before
 * their target is unmapped.
 */
static int copy_live(const struct spill_copier *copier, struct active_move *active, void *stream, uint64_t to,
                     uint64_t from)
{
	const struct spill_backend *backend = copier->backend;
	struct spill_span spans[SPILL_SPANS];
	unsigned count = live_parts(copier, active, spans);
	for (unsigned i = 0; i < count; i++) {
		const struct spill_span *span = &spans[i];
		int result = backend->moves->copy(copier->device, copier->context, stream, to + span->offset,
		                                  from + span->offset, span->bytes);
		if (result && i)
			spill_copier_wait(copier);
		if (result)
			return result;
	}
	return 0;
}

/* Begins a move. False: it has not begun, and no further move begins. */
static bool begin_move(struct spill_copier *copier, struct active_move *active, struct spill_move *move,
                       unsigned slot)
{
	const struct spill_backend *backend = copier->backend;
	*active = (struct active_move){.move = move, .to_device = spill_move_chunk(move)->on_host};
	void *stream = spill_copier_stream(copier, active->to_device);
	bool parked = spill_move_chunk(move)->parked; /* nothing in it counts */
	if ((!parked && !spill_remap_lost(backend, copier->device, move)) ||
	    !open_target(copier, active, slot))
		return false;
	uint64_t place = spill_chunked_address(move->chunked, move->index);
	if (!parked && copy_live(copier, active, stream, active->in_place ? place : active->view,
	                         active->in_place ? spill_move_chunk(move)->view : place)) {
		close_target(copier, active, false);
		return false;
	}
	if (backend->events->record(copier->device, copier->context, stream, false, &active->event))
		active->event = NULL;
	return true;
}

/* Gives a chunk with its new memory a mapping. */
static bool place_chunk(const struct spill_copier *copier, const struct active_move *active)
{
	if (active->in_place)
		return true;
	return (active->parks && spill_parking_park(copier->backend, copier->device, active->move)) ||
	       spill_remap_new(copier->backend, copier->device, active->move);
}

static bool finish_move(struct spill_copier *copier, const struct active_move *active)
{
	bool done = spill_copier_wait_for(copier, active->event, SPILL_COPIER_PATIENCE_NS);
	bool moved = done && place_chunk(copier, active);
	if (moved)
		spill_move_done(active->move);
	else if (active->parks)
		spill_parking_cancel(active->move);
	close_target(copier, active, done);
	return moved;
}

static uint64_t largest_chunk(const struct spill_move *moves, unsigned count)
{
	uint64_t bytes = SPILL_COPIER_VIEW;
	for (unsigned i = 0; i < count; i++)
		if (bytes < spill_move_chunk(&moves[i])->bytes)
			bytes = spill_move_chunk(&moves[i])->bytes;
	return bytes;
}

/* Moves under way. They finish in the order in which they began. */
struct pipeline {
	struct active_move moves[ACTIVE_MOVES];
	unsigned begun, finished;
	unsigned each_way[2];
};

/* True: the next move can begin. A slot is free that way, and it has new memory, or gets it. */
static bool may_begin(const struct pipeline *pipeline, struct spill_move *next,
                      const struct spill_move_helper *helper)
{
	if (pipeline->each_way[spill_move_chunk(next)->on_host] == COPIES_EACH_WAY)
		return false;
	return next->handle || (helper && helper->get_memory(next, helper->data));
}

static bool begin_next(struct spill_copier *copier, struct pipeline *pipeline, struct spill_move *next)
{
	unsigned slot = pipeline->begun % ACTIVE_MOVES;
	if (!begin_move(copier, &pipeline->moves[slot], next, slot))
		return false;
	pipeline->each_way[pipeline->moves[slot].to_device]++;
	pipeline->begun++;
	return true;
}

static bool finish_next(struct spill_copier *copier, struct pipeline *pipeline,
                        const struct spill_move_helper *helper)
{
	const struct active_move *active = &pipeline->moves[pipeline->finished++ % ACTIVE_MOVES];
	bool done = finish_move(copier, active);
	pipeline->each_way[active->to_device]--;
	if (done && helper)
		helper->finished(active->move, helper->data);
	return done;
}

unsigned spill_move(const struct spill_backend *backend, int device, void *context, struct spill_move *moves,
                    unsigned count, const struct spill_move_helper *helper)
{
	struct spill_copier *copier = spill_copier_of(backend, device, context, largest_chunk(moves, count));
	struct pipeline pipeline = {0};
	unsigned moved = 0;
	bool going = copier != NULL;
	do {
		while (going && pipeline.begun < count &&
		       may_begin(&pipeline, &moves[pipeline.begun], helper))
			going = begin_next(copier, &pipeline, &moves[pipeline.begun]);
		if (pipeline.finished == pipeline.begun)
			break;
		bool done = finish_next(copier, &pipeline, helper);
		moved += done;
		going = going && done;
	} while (true);
	return moved;
}

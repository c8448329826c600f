/*
 * The pipelined mover. Copies are the device's work and mappings the processor's, so the next chunk
 * is copied while a chunk is mapped. First the new memory is mapped at a view. Then the chunk is
 * copied there, on a stream of ours. When the copy is done, the new memory is mapped in the chunk's
 * place (remap.h). Until then both memories have the content, so after any refusal of the vendor
 * one of them can be mapped. To map the same memory twice is legal: CUDA Programming Guide,
 * "Virtual Aliasing Support".
 */
#include "move.h"

#include <stdatomic.h>

#include "clock.h"
#include "note.h"
#include "remap.h"
#include "chunked.h"

/*
 * Copies at a time, each way. More bring nothing, and chunks below 64 MiB are slower (measured,
 * H200).
 */
#define COPIES_EACH_WAY 2
#define ACTIVE_MOVES (2 * COPIES_EACH_WAY) /* both ways at once. */
#define EVENT_COUNT (ACTIVE_MOVES + 2)     /* for copies, and for marks of contexts (quiesce.h). */
#define VIEW_BYTES (64ull << 20)           /* bytes of a view, until a chunk is larger. */
#define POLL_NS 20000                      /* a copy of 64 MiB takes 1.2 ms. */
/*
 * Polls without a pause, some 0.1 ms. A pause takes longer than asked for, while the program waits.
 */
#define SPINS 200
#define PATIENCE_NS 2000000000ull /* after this time the context is asked. */
#define TRIES 5                   /* attempts, with pauses of 1 ms, 2 ms, 4 ms … */

/*
 * The streams and addresses for moves of one device. The mover's lock guards all but the atomics.
 */
struct copier {
	_Atomic bool ready;
	_Atomic(void *) marked; /* the context prepared last */
	const struct spill_backend *backend;
	int device;
	/*
	 * Streams to the host and to the device; NULL: not made, refused, or their context has
	 * ended.
	 */
	void *context, *streams[2];
	uint64_t generation;                 /* when they were made (context_end.h) */
	uint64_t view_addresses, view_bytes; /* of ACTIVE_MOVES views; 0: none */
};

static struct copier copiers[SPILL_DEVICES];

/* A move that has begun. */
struct active_move {
	struct spill_move *move;
	bool to_device;
	void *event;   /* after the copy; NULL: no event could be made. */
	uint64_t view; /* of the new memory. */
	bool own_view; /* the view belongs to the memory, not to the copier. */
	bool in_place; /* no view: the new memory is in place, and copied to from the old view. */
};

/* -- streams and addresses for moves ----------------------------------------------------------- */

/* Only reserves addresses, which take no memory. */
static bool reserve_views(struct copier *copier, uint64_t view)
{
	const struct spill_backend *backend = copier->backend;
	if (copier->view_addresses && view <= copier->view_bytes)
		return true;
	uint64_t unit = spill_chunked_granularity(backend, copier->device);
	if (copier->view_addresses)
		backend->vmm->unreserve(copier->view_addresses, (uint64_t)ACTIVE_MOVES * copier->view_bytes);
	copier->view_addresses = 0;
	copier->view_bytes = view;
	return unit && !backend->vmm->reserve((uint64_t)ACTIVE_MOVES * view, unit, &copier->view_addresses);
}

/*
 * Makes one stream each way, in one context. With only one, the ways take turns. The second is
 * tried again at each move, because a device that is too full for it is where chunks have to move.
 */
static bool make_streams(struct copier *copier, void *context)
{
	const struct spill_backend *backend = copier->backend;
	void **streams = copier->streams;
	if (!streams[0]) {
		/* first, because the context may end meanwhile */
		uint64_t generation = spill_context_generation();
		if (backend->moves->copier_create(copier->device, context, &streams[0])) {
			streams[0] = NULL;
			return false;
		}
		copier->context = context;
		copier->generation = generation;
	}
	if (!streams[1] && backend->moves->copier_create(copier->device, copier->context, &streams[1]))
		streams[1] = NULL;
	return true;
}

static void *stream_of(const struct copier *copier, bool to_device)
{
	return copier->streams[to_device] ? copier->streams[to_device] : copier->streams[0];
}

/* The streams end with their context. pre: the mover is held */
static void forget_streams(struct copier *copier)
{
	copier->streams[0] = copier->streams[1] = copier->context = NULL;
	atomic_store(&copier->ready, false);
}

/*
 * The copier of a device, with views of `view` bytes. NULL: it cannot be made. pre: the mover is
 * held
 */
static struct copier *copier_of(const struct spill_backend *backend, int device, void *context, uint64_t view)
{
	if (device < 0 || device >= SPILL_DEVICES ||
	    !(backend->devices->capabilities(device) & SPILL_CAN_MOVE))
		return NULL;
	struct copier *copier = &copiers[device];
	if (copier->context && spill_context_ending(backend, device, copier->context, copier->generation))
		return NULL; /* until it is known whether they still exist */
	if (atomic_load(&copier->ready) && copier->view_addresses && view <= copier->view_bytes) {
		/* One stream is enough. */
		if (!copier->streams[1])
			make_streams(copier, context);
		return copier;
	}
	copier->backend = backend;
	copier->device = device;
	bool ready = reserve_views(copier, view) && make_streams(copier, context) &&
	             !backend->moves->events_ahead(device, copier->context, EVENT_COUNT);
	atomic_store_explicit(&copier->ready, ready, memory_order_release);
	return ready ? copier : NULL;
}

bool spill_move_prepare(const struct spill_backend *backend, int device, void *context)
{
	if (device < 0 || device >= SPILL_DEVICES)
		return false;
	struct copier *copier = &copiers[device];
	if (!atomic_load_explicit(&copier->ready, memory_order_acquire)) {
		spill_mover_lock();
		bool ready = copier_of(backend, device, context, VIEW_BYTES) != NULL;
		spill_mover_unlock();
		if (!ready)
			return false;
	}
	if (atomic_load_explicit(&copier->marked, memory_order_relaxed) == context)
		return true;
	if (backend->moves->events_ahead(device, context, EVENT_COUNT))
		return false;
	atomic_store(&copier->marked, context);
	return true;
}

void spill_move_context_ended(const struct spill_context_end *end)
{
	spill_mover_lock();
	for (int device = 0; device < SPILL_DEVICES; device++) {
		struct copier *copier = &copiers[device];
		if (!end->context || atomic_load(&copier->marked) == end->context)
			atomic_store(&copier->marked, NULL);
		if (spill_context_end_covers(end, copier->backend, device, copier->context,
		                             copier->generation))
			forget_streams(copier);
	}
	spill_mover_unlock();
}

void spill_move_give_up(const struct spill_backend *backend, int device, const void *context)
{
	spill_move_context_ended(&(struct spill_context_end){
	    .backend = backend, .device = device, .context = context, .generation = UINT64_MAX});
}

void spill_move_reset(void)
{
	for (int device = 0; device < SPILL_DEVICES; device++) {
		copiers[device].backend = NULL;
		copiers[device].streams[0] = copiers[device].streams[1] = copiers[device].context = NULL;
		copiers[device].view_addresses = copiers[device].view_bytes = 0;
		atomic_store(&copiers[device].ready, false);
		atomic_store(&copiers[device].marked, NULL);
	}
}

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
static bool map_view(struct copier *copier, struct active_move *active, unsigned slot)
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
static void unmap_view(struct copier *copier, const struct active_move *active)
{
	if (active->own_view ||
	    !copier->backend->vmm->unmap(active->view, spill_move_chunk(active->move)->bytes))
		return;
	spill_note("move", "the driver did not end a temporary mapping, so its addresses are lost");
	copier->view_addresses = 0;
}

/* Notes that the new memory is in place, with the content. */
static void note_moved(struct spill_move *move)
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
static bool open_target(struct copier *copier, struct active_move *active, unsigned slot)
{
	active->in_place = active->to_device && spill_move_chunk(active->move)->view;
	return active->in_place ? spill_remap_new(copier->backend, copier->device, active->move)
	                        : map_view(copier, active, slot);
}

static void close_target(struct copier *copier, const struct active_move *active, bool copied)
{
	if (!active->in_place)
		unmap_view(copier, active);
	else if (!copied)
		spill_remap_old(copier->backend, copier->device, active->move);
}

/*
 * Waits for all copies by the wait that frees use (backend.h). That is exact, because the device does
 * no other work now. An error that stays means that the context is dead, and no copy runs in it.
 */
static bool wait_for_context(const struct copier *copier)
{
	bool passed = false;
	for (unsigned try = 0; try < TRIES && !passed; try++) {
		passed = !copier->backend->devices->wait(copier->device, copier->context);
		if (!passed)
			spill_clock_sleep(1000000ull << try);
	}
	return passed;
}

/*
 * Copies the parts of a chunk that count. If a later copy is refused, the earlier ones must end before
 * their target is unmapped.
 */
static int copy_live(const struct copier *copier, const struct spill_move *move, void *stream, uint64_t to,
                     uint64_t from)
{
	const struct spill_backend *backend = copier->backend;
	struct spill_span spans[SPILL_SPANS];
	unsigned count = spill_chunked_live(move->chunked, move->index, spans);
	for (unsigned i = 0; i < count; i++) {
		const struct spill_span *span = &spans[i];
		int result = backend->moves->copy(copier->device, copier->context, stream, to + span->offset,
		                                  from + span->offset, span->bytes);
		if (result && i)
			wait_for_context(copier);
		if (result)
			return result;
	}
	return 0;
}

/* Begins a move. False: it has not begun, and no further move begins. */
static bool begin_move(struct copier *copier, struct active_move *active, struct spill_move *move,
                       unsigned slot)
{
	const struct spill_backend *backend = copier->backend;
	*active = (struct active_move){.move = move, .to_device = spill_move_chunk(move)->on_host};
	void *stream = stream_of(copier, active->to_device);
	if (!spill_remap_lost(copier->backend, copier->device, move) || !open_target(copier, active, slot))
		return false;
	uint64_t place = spill_chunked_address(move->chunked, move->index);
	if (copy_live(copier, move, stream, active->in_place ? place : active->view,
	              active->in_place ? spill_move_chunk(move)->view : place)) {
		close_target(copier, active, false);
		return false;
	}
	if (backend->events->record(copier->device, copier->context, stream, false, &active->event))
		active->event = NULL;
	return true;
}

/* Waits for the copy. Without an event, or if it does not pass for long, the context is asked. */
static bool wait_for_copy(const struct copier *copier, const struct active_move *active)
{
	const struct spill_backend *backend = copier->backend;
	uint64_t end = spill_clock_ns() + PATIENCE_NS;
	bool passed = false;
	for (unsigned looks = 1; active->event && !passed && spill_clock_ns() < end; looks++) {
		passed = backend->events->passed(copier->device, copier->context, active->event);
		if (!passed && looks > SPINS)
			spill_clock_sleep(POLL_NS);
	}
	passed = passed || wait_for_context(copier);
	if (active->event)
		backend->events->destroy(copier->device, copier->context, active->event);
	return passed;
}

static bool finish_move(struct copier *copier, const struct active_move *active)
{
	bool done = wait_for_copy(copier, active);
	bool moved =
	    done && (active->in_place || spill_remap_new(copier->backend, copier->device, active->move));
	if (moved)
		note_moved(active->move);
	close_target(copier, active, done);
	return moved;
}

static uint64_t largest_chunk(const struct spill_move *moves, unsigned count)
{
	uint64_t bytes = VIEW_BYTES;
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

static bool begin_next(struct copier *copier, struct pipeline *pipeline, struct spill_move *next)
{
	unsigned slot = pipeline->begun % ACTIVE_MOVES;
	if (!begin_move(copier, &pipeline->moves[slot], next, slot))
		return false;
	pipeline->each_way[pipeline->moves[slot].to_device]++;
	pipeline->begun++;
	return true;
}

static bool finish_next(struct copier *copier, struct pipeline *pipeline,
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
	struct copier *copier = copier_of(backend, device, context, largest_chunk(moves, count));
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

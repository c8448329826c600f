/*
 * The pipelined mover. While a chunk is remapped, which is the processor's work, the next one is copied, which is the
 * device's: the new home is mapped at a view, the chunk is copied there on a stream of ours, and when that has passed, the
 * new home takes the old one's place. Both homes have the content until then, so whatever the vendor refuses, one of them
 * can be mapped (again). One mapping more of the same memory is legal: CUDA Programming Guide, "Virtual Aliasing Support".
 */
#include "move.h"

#include <stdatomic.h>
#include <time.h>

#include "clock.h"
#include "note.h"
#include "peer.h"
#include "place/chunked.h"

#define DEPTH 2 /* copies at once: more bring nothing, and chunks below 64 MiB are slower (measured, H200) */
#define EVENTS (DEPTH + 2)        /* for copies, and for marks of the context (idle.h) */
#define VIEW (64ull << 20)        /* of a chunk, where no larger one has been seen */
#define POLL_NS 20000             /* a chunk of 64 MiB takes 1.2 ms */
#define PATIENCE_NS 2000000000ull /* for a copy, after which the context is asked whether it lives */
#define TRIES 5                   /* to put a chunk back, 1 ms apart and then twice that … */

/* What moves need of one device. The mover's, but for what is atomic. */
struct copier {
	_Atomic bool ready;
	_Atomic(void *) marked; /* the context that was prepared last */
	const struct spill_backend *backend;
	int device;
	void *context, *stream; /* NULL: none yet, or its context has ended */
	uint64_t views, view;   /* addresses for DEPTH of them, and the bytes of each; 0: none */
};

static struct copier copiers[SPILL_DEVICES];

/* A move that has begun. */
struct flight {
	struct spill_move *move;
	void *event;   /* behind the copy; NULL: there was no event to be had */
	uint64_t view; /* the new home's */
	bool staged;   /* that is the home's own, not the copier's */
};

static void pause_ns(uint64_t ns)
{
	nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
}

/* -- what moves need ---------------------------------------------------------------------------------------- */

/* Addresses alone take no memory. */
static bool make_views(struct copier *copier, uint64_t view)
{
	const struct spill_backend *backend = copier->backend;
	if (copier->views && view <= copier->view)
		return true;
	uint64_t unit = spill_chunked_granule(backend, copier->device);
	if (copier->views)
		backend->unreserve(copier->views, DEPTH * copier->view);
	copier->views = 0;
	copier->view = view;
	return unit && !backend->reserve(DEPTH * view, unit, &copier->views);
}

static bool make_stream(struct copier *copier, void *context)
{
	if (copier->stream)
		return true;
	if (copier->backend->copier_create(copier->device, context, &copier->stream)) {
		copier->stream = NULL;
		return false;
	}
	copier->context = context;
	return true;
}

/* The device's, with views of `view` bytes; NULL if it cannot be. pre: the mover is held */
static struct copier *copier_of(const struct spill_backend *backend, int device, void *context, uint64_t view)
{
	if (device < 0 || device >= SPILL_DEVICES || !(backend->capabilities(device) & SPILL_CAN_MOVE))
		return NULL;
	struct copier *copier = &copiers[device];
	if (atomic_load(&copier->ready) && copier->views && view <= copier->view)
		return copier;
	copier->backend = backend;
	copier->device = device;
	bool ready = make_views(copier, view) && make_stream(copier, context) &&
	             !backend->events_ahead(device, copier->context, EVENTS);
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
		bool ready = copier_of(backend, device, context, VIEW) != NULL;
		spill_mover_unlock();
		if (!ready)
			return false;
	}
	if (atomic_load_explicit(&copier->marked, memory_order_relaxed) == context)
		return true;
	if (backend->events_ahead(device, context, EVENTS))
		return false;
	atomic_store(&copier->marked, context);
	return true;
}

void spill_move_context_ended(const struct spill_backend *backend, const void *context)
{
	spill_mover_lock();
	for (int device = 0; device < SPILL_DEVICES; device++) {
		struct copier *copier = &copiers[device];
		if (atomic_load(&copier->marked) == context)
			atomic_store(&copier->marked, NULL);
		if (copier->backend != backend || copier->context != context)
			continue;
		copier->stream = copier->context = NULL;
		atomic_store(&copier->ready, false);
	}
	spill_mover_unlock();
}

void spill_move_reset(void)
{
	for (int device = 0; device < SPILL_DEVICES; device++) {
		copiers[device].backend = NULL;
		copiers[device].stream = copiers[device].context = NULL;
		copiers[device].views = copiers[device].view = 0;
		atomic_store(&copiers[device].ready, false);
		atomic_store(&copiers[device].marked, NULL);
	}
}

/* -- views ------------------------------------------------------------------------------------------------- */

static struct spill_chunk *chunk_of(const struct spill_move *move)
{
	return &move->of->chunks[move->chunk];
}

void spill_move_stage(const struct spill_backend *backend, int device, struct spill_move *moves,
                      unsigned count)
{
	for (struct spill_move *move = moves; move < moves + count; move++)
		if (!move->view && !chunk_of(move)->on_host)
			move->view = spill_view_make(backend, device, move->handle, chunk_of(move)->bytes);
}

/* Maps the new home where the copy goes. Addresses whose mapping cannot be undone are left for good. */
static bool open_view(struct copier *copier, struct flight *flight, unsigned slot)
{
	const struct spill_backend *backend = copier->backend;
	const struct spill_move *move = flight->move;
	uint64_t bytes = chunk_of(move)->bytes;
	flight->view = move->view;
	flight->staged = move->view != 0;
	if (flight->staged)
		return true;
	if (!copier->views)
		return false;
	flight->view = copier->views + slot * copier->view;
	if (backend->map(flight->view, bytes, move->handle))
		return false;
	if (!backend->allow(flight->view, bytes, copier->device))
		return true;
	if (backend->unmap(flight->view, bytes))
		copier->views = 0;
	return false;
}

/* One of the copier's. A view that came with the new home stays with it. */
static void close_view(struct copier *copier, const struct flight *flight)
{
	if (flight->staged || !copier->backend->unmap(flight->view, chunk_of(flight->move)->bytes))
		return;
	spill_note("move", "memory stays mapped where it was copied: its addresses are lost");
	copier->views = 0;
}

/* -- the place of a chunk ---------------------------------------------------------------------------------- */

/* The addresses of a chunk, and what is known of what is there. */
struct seat {
	const struct spill_backend *backend;
	uint64_t va, bytes;
	int users[SPILL_DEVICES + 1]; /* its own device, then those with peer access */
	unsigned user_count;
	uint64_t handle; /* what is mapped, 0: nothing */
	bool open;       /* to all of them */
};

static struct seat seat_of(const struct copier *copier, const struct spill_move *move)
{
	struct seat seat = {
	    .backend = copier->backend,
	    .va = spill_chunked_address(move->of, move->chunk),
	    .bytes = chunk_of(move)->bytes,
	    .users = {copier->device},
	    .handle = chunk_of(move)->unmapped ? 0 : chunk_of(move)->handle,
	    .open = true,
	};
	seat.user_count = 1 + spill_peer_devices(copier->backend, copier->device, seat.users + 1);
	return seat;
}

/* Makes `handle` what is there, for all who use it. False: the vendor refused, and the seat says what is there instead. */
static bool sit(struct seat *seat, uint64_t handle)
{
	if (seat->handle && seat->handle != handle) {
		if (seat->backend->unmap(seat->va, seat->bytes))
			return false;
		seat->handle = 0;
	}
	if (!seat->handle) {
		seat->open = false;
		if (seat->backend->map(seat->va, seat->bytes, handle))
			return false;
		seat->handle = handle;
	}
	for (unsigned i = 0; i < seat->user_count && !seat->open; i++)
		if (seat->backend->allow(seat->va, seat->bytes, seat->users[i]))
			return false;
	seat->open = true;
	return true;
}

/* The vendor refused the new home. Any of the two, or the program loses what is there: the old one first. */
static void sit_anyhow(struct seat *seat, uint64_t old, uint64_t new)
{
	for (unsigned try = 0; try < TRIES; try++) {
		if (sit(seat, old) || sit(seat, new))
			return;
		pause_ns(1000000ull << try);
	}
	spill_note("move", seat->handle ? "a moved chunk of memory could not be made accessible again"
	                                : "a chunk of memory could not be mapped again");
}

/* One whose mapping was lost is given another chance. */
static bool mapped(const struct copier *copier, const struct spill_move *move)
{
	struct spill_chunk *chunk = chunk_of(move);
	if (chunk->unmapped) {
		struct seat seat = seat_of(copier, move);
		sit(&seat, chunk->handle);
		chunk->unmapped = !seat.handle;
	}
	return !chunk->unmapped;
}

/* Puts the new home in the old one's place. */
static bool swap(const struct copier *copier, struct spill_move *move)
{
	struct spill_chunk *chunk = chunk_of(move);
	struct seat seat = seat_of(copier, move);
	uint64_t old = chunk->handle, old_view = chunk->view;
	if (!sit(&seat, move->handle))
		sit_anyhow(&seat, old, move->handle);
	chunk->unmapped = !seat.handle;
	if (seat.handle != move->handle)
		return false;
	spill_chunked_moved(move->of, move->chunk, move->handle);
	chunk->view = move->view;
	move->handle = old;
	move->view = old_view;
	move->moved = true;
	return true;
}

/* -- copies ------------------------------------------------------------------------------------------------ */

/* False: nothing is under way, and nothing is begun after it. */
static bool start(struct copier *copier, struct flight *flight, struct spill_move *move, unsigned slot)
{
	const struct spill_backend *backend = copier->backend;
	*flight = (struct flight){.move = move};
	if (!mapped(copier, move) || !open_view(copier, flight, slot))
		return false;
	if (backend->copy(copier->device, copier->context, copier->stream, flight->view,
	                  spill_chunked_address(move->of, move->chunk), chunk_of(move)->bytes)) {
		close_view(copier, flight);
		return false;
	}
	if (backend->event_record(copier->device, copier->context, copier->stream, false, &flight->event))
		flight->event = NULL;
	return true;
}

/*
 * Waits for the copy. Without an event, or when that does not pass for long, the context is asked by the wait that frees use
 * (backend.h): the device does nothing else now. An error that stays means that the context is dead, and nothing runs in it.
 */
static bool copied(const struct copier *copier, const struct flight *flight)
{
	const struct spill_backend *backend = copier->backend;
	uint64_t end = spill_clock_ns() + PATIENCE_NS;
	bool passed = false;
	while (flight->event && !passed && spill_clock_ns() < end) {
		passed = backend->event_passed(copier->device, copier->context, flight->event);
		if (!passed)
			pause_ns(POLL_NS);
	}
	for (unsigned try = 0; try < TRIES && !passed; try++) {
		passed = !backend->wait(copier->device, copier->context);
		if (!passed)
			pause_ns(1000000ull << try);
	}
	if (flight->event)
		backend->event_destroy(copier->device, copier->context, flight->event);
	return passed;
}

static bool land(struct copier *copier, const struct flight *flight)
{
	bool moved = copied(copier, flight) && swap(copier, flight->move);
	close_view(copier, flight);
	return moved;
}

static uint64_t largest(const struct spill_move *moves, unsigned count)
{
	uint64_t bytes = VIEW;
	for (unsigned i = 0; i < count; i++)
		if (bytes < chunk_of(&moves[i])->bytes)
			bytes = chunk_of(&moves[i])->bytes;
	return bytes;
}

unsigned spill_move(const struct spill_backend *backend, int device, void *context, struct spill_move *moves,
                    unsigned count)
{
	struct copier *copier = copier_of(backend, device, context, largest(moves, count));
	struct flight flights[DEPTH];
	unsigned started = 0, landed = 0, moved = 0;
	bool going = copier != NULL;
	do {
		while (going && started < count && started - landed < DEPTH) {
			unsigned slot = started % DEPTH;
			going = start(copier, &flights[slot], &moves[started], slot);
			started += going;
		}
		if (landed == started)
			break;
		bool done = land(copier, &flights[landed++ % DEPTH]);
		moved += done;
		going = going && done;
	} while (true);
	return moved;
}

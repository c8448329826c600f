/*
 * The pipelined mover. While a chunk is remapped, which is the processor's work, the next one is copied, which is the
 * device's: the new home is mapped at a view, the chunk is copied there on a stream of ours, and when that has passed, the
 * new home takes the old one's place. Both homes have the content until then, so whatever the vendor refuses, one of them
 * can be mapped (again). One mapping more of the same memory is legal: CUDA Programming Guide, "Virtual Aliasing Support".
 */
#include "move.h"

#include <stdatomic.h>

#include "clock.h"
#include "note.h"
#include "peer.h"
#include "chunked.h"

/* Copies at once each way: more bring nothing, and chunks below 64 MiB are slower (measured, H200). */
#define DEPTH 2
#define FLIGHTS (2 * DEPTH)  /* the link goes both ways at once */
#define EVENTS (FLIGHTS + 2) /* for copies, and for marks of the context (quiesce.h) */
#define VIEW (64ull << 20)   /* of a chunk, where no larger one has been seen */
#define POLL_NS 20000        /* a chunk of 64 MiB takes 1.2 ms */
/* Looks without a pause, some 0.1 ms: a pause takes longer than it says, and the program waits. */
#define SPINS 200
#define PATIENCE_NS 2000000000ull /* for a copy, after which the context is asked whether it lives */
#define TRIES 5                   /* to put a chunk back, 1 ms apart and then twice that … */

/* What moves need of one device. The mover's, but for what is atomic. */
struct copier {
	_Atomic bool ready;
	_Atomic(void *) marked; /* the context that was prepared last */
	const struct spill_backend *backend;
	int device;
	/* To the host, to the device; NULL: none yet, refused, or their context has ended. */
	void *context, *streams[2];
	uint64_t generation;  /* in which they were made (context_end.h) */
	uint64_t views, view; /* addresses for FLIGHTS of them, and the bytes of each; 0: none */
};

static struct copier copiers[SPILL_DEVICES];

/* A move that has begun. */
struct flight {
	struct spill_move *move;
	bool to_device;
	void *event;   /* behind the copy; NULL: there was no event to be had */
	uint64_t view; /* the new home's */
	bool staged;   /* that is the home's own, not the copier's */
	bool seated;   /* without view: the new home is in its place already, copied to from the old one's */
};

/* -- what moves need --------------------------------------------------------------------------- */

/* Addresses alone take no memory. */
static bool make_views(struct copier *copier, uint64_t view)
{
	const struct spill_backend *backend = copier->backend;
	if (copier->views && view <= copier->view)
		return true;
	uint64_t unit = spill_chunked_granularity(backend, copier->device);
	if (copier->views)
		backend->vmm->unreserve(copier->views, (uint64_t)FLIGHTS * copier->view);
	copier->views = 0;
	copier->view = view;
	return unit && !backend->vmm->reserve((uint64_t)FLIGHTS * view, unit, &copier->views);
}

/*
 * One stream each way, of one context. The second is asked for again at each move as long as it is refused: a device that is too
 * full for it is just where something has to move, and with one of them the ways take turns.
 */
static bool make_streams(struct copier *copier, void *context)
{
	const struct spill_backend *backend = copier->backend;
	void **streams = copier->streams;
	if (!streams[0]) {
		uint64_t generation = spill_context_generation(); /* before: the context may end meanwhile */
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

/* What was made in a context goes with it, unasked. pre: the mover is held */
static void forget_streams(struct copier *copier)
{
	copier->streams[0] = copier->streams[1] = copier->context = NULL;
	atomic_store(&copier->ready, false);
}

/* The device's, with views of `view` bytes; NULL if it cannot be. pre: the mover is held */
static struct copier *copier_of(const struct spill_backend *backend, int device, void *context, uint64_t view)
{
	if (device < 0 || device >= SPILL_DEVICES ||
	    !(backend->devices->capabilities(device) & SPILL_CAN_MOVE))
		return NULL;
	struct copier *copier = &copiers[device];
	if (copier->context && spill_context_ending(backend, device, copier->context, copier->generation))
		return NULL; /* until it is known whether they live */
	if (atomic_load(&copier->ready) && copier->views && view <= copier->view) {
		/* With one stream alone it works, too. */
		if (!copier->streams[1])
			make_streams(copier, context);
		return copier;
	}
	copier->backend = backend;
	copier->device = device;
	bool ready = make_views(copier, view) && make_streams(copier, context) &&
	             !backend->moves->events_ahead(device, copier->context, EVENTS);
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
	if (backend->moves->events_ahead(device, context, EVENTS))
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

/* As an end of all generations. */
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
		copiers[device].views = copiers[device].view = 0;
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

/* Maps the new home where the copy goes. Addresses whose mapping cannot be undone are left for good. */
static bool open_view(struct copier *copier, struct flight *flight, unsigned slot)
{
	const struct spill_backend *backend = copier->backend;
	const struct spill_move *move = flight->move;
	uint64_t bytes = spill_move_chunk(move)->bytes;
	flight->view = move->view;
	flight->staged = move->view != 0;
	if (flight->staged)
		return true;
	if (!copier->views)
		return false;
	flight->view = copier->views + slot * copier->view;
	if (backend->vmm->map(flight->view, bytes, move->handle))
		return false;
	if (!backend->vmm->allow(flight->view, bytes, copier->device))
		return true;
	if (backend->vmm->unmap(flight->view, bytes))
		copier->views = 0;
	return false;
}

/* One of the copier's. A view that came with the new home stays with it. */
static void close_view(struct copier *copier, const struct flight *flight)
{
	if (flight->staged ||
	    !copier->backend->vmm->unmap(flight->view, spill_move_chunk(flight->move)->bytes))
		return;
	spill_note("move", "memory stays mapped where it was copied: its addresses are lost");
	copier->views = 0;
}

/* -- the place of a chunk ---------------------------------------------------------------------- */

/* The addresses of a chunk, and what is known of what is there. */
struct seat {
	const struct spill_backend *backend;
	uint64_t va, bytes;
	int users[SPILL_DEVICES + 1]; /* its own device, then those with peer access */
	unsigned user_count;
	uint64_t handle; /* what is mapped, 0: nothing */
	bool open;       /* to all of them */
};

/* No handle that there is: only told apart from others. */
#define WRONG UINT64_MAX

static uint64_t what_is_there(const struct spill_chunk *chunk)
{
	if (chunk->wrong_memory)
		return WRONG;
	return chunk->unmapped ? 0 : chunk->handle;
}

/* After an attempt to have the chunk in its place, content and all. */
static void look_what_is_there(struct spill_chunk *chunk, const struct seat *seat)
{
	chunk->unmapped = seat->handle != chunk->handle;
	chunk->wrong_memory = seat->handle && chunk->unmapped;
}

static struct seat seat_of(const struct copier *copier, const struct spill_move *move)
{
	struct seat seat = {
	    .backend = copier->backend,
	    .va = spill_chunked_address(move->of, move->chunk),
	    .bytes = spill_move_chunk(move)->bytes,
	    .users = {copier->device},
	    .handle = what_is_there(spill_move_chunk(move)),
	    .open = true,
	};
	seat.user_count = 1 + spill_peer_devices(copier->backend, copier->device, seat.users + 1);
	return seat;
}

/* Makes `handle` what is there, for all who use it. False: the vendor refused, and the seat says what is there instead. */
static bool sit(struct seat *seat, uint64_t handle)
{
	if (seat->handle && seat->handle != handle) {
		if (seat->backend->vmm->unmap(seat->va, seat->bytes))
			return false;
		seat->handle = 0;
	}
	if (!seat->handle) {
		seat->open = false;
		if (seat->backend->vmm->map(seat->va, seat->bytes, handle))
			return false;
		seat->handle = handle;
	}
	for (unsigned i = 0; i < seat->user_count && !seat->open; i++)
		if (seat->backend->vmm->allow(seat->va, seat->bytes, seat->users[i]))
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
		spill_clock_sleep(1000000ull << try);
	}
	spill_note("move", seat->handle ? "a moved chunk of memory could not be made accessible again"
	                                : "a chunk of memory could not be mapped again");
}

/* One whose mapping was lost is given another chance. */
static bool mapped(const struct copier *copier, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	if (chunk->unmapped) {
		struct seat seat = seat_of(copier, move);
		sit(&seat, chunk->handle);
		look_what_is_there(chunk, &seat);
	}
	return !chunk->unmapped;
}

/* The new home is in the old one's place, content and all. */
static void settled(struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	uint64_t old = chunk->handle, old_view = chunk->view;
	spill_chunked_moved(move->of, move->chunk, move->handle);
	chunk->view = move->view;
	move->handle = old;
	move->view = old_view;
	move->moved = true;
}

/* Puts the new home in the old one's place; or leaves, or puts back, the old one. */
static bool swap(const struct copier *copier, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	struct seat seat = seat_of(copier, move);
	if (!sit(&seat, move->handle))
		sit_anyhow(&seat, chunk->handle, move->handle);
	chunk->unmapped = !seat.handle;
	return seat.handle == move->handle;
}

/* The new home, in its place, did not get the content: the old one still has it. */
static void unseat(const struct copier *copier, const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	struct seat seat = seat_of(copier, move);
	seat.handle = move->handle;
	sit_anyhow(&seat, chunk->handle, chunk->handle);
	look_what_is_there(chunk, &seat);
}

/* -- copies ------------------------------------------------------------------------------------ */

/*
 * Where the copy goes to. A home on host that has a view of its own keeps the content whatever is mapped in its place: the new
 * home then takes that at once, which saves mapping it twice.
 */
static bool open_target(struct copier *copier, struct flight *flight, unsigned slot)
{
	flight->seated = flight->to_device && spill_move_chunk(flight->move)->view;
	return flight->seated ? swap(copier, flight->move) : open_view(copier, flight, slot);
}

static void close_target(struct copier *copier, const struct flight *flight, bool copied)
{
	if (!flight->seated)
		close_view(copier, flight);
	else if (!copied)
		unseat(copier, flight->move);
}

/* False: nothing is under way, and nothing is begun after it. */
static bool start(struct copier *copier, struct flight *flight, struct spill_move *move, unsigned slot)
{
	const struct spill_backend *backend = copier->backend;
	*flight = (struct flight){.move = move, .to_device = spill_move_chunk(move)->on_host};
	void *stream = stream_of(copier, flight->to_device);
	if (!mapped(copier, move) || !open_target(copier, flight, slot))
		return false;
	uint64_t place = spill_chunked_address(move->of, move->chunk);
	if (backend->moves->copy(
	        copier->device, copier->context, stream, flight->seated ? place : flight->view,
	        flight->seated ? spill_move_chunk(move)->view : place, spill_move_chunk(move)->bytes)) {
		close_target(copier, flight, false);
		return false;
	}
	if (backend->events->record(copier->device, copier->context, stream, false, &flight->event))
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
	for (unsigned looks = 1; flight->event && !passed && spill_clock_ns() < end; looks++) {
		passed = backend->events->passed(copier->device, copier->context, flight->event);
		if (!passed && looks > SPINS)
			spill_clock_sleep(POLL_NS);
	}
	for (unsigned try = 0; try < TRIES && !passed; try++) {
		passed = !backend->devices->wait(copier->device, copier->context);
		if (!passed)
			spill_clock_sleep(1000000ull << try);
	}
	if (flight->event)
		backend->events->destroy(copier->device, copier->context, flight->event);
	return passed;
}

static bool land(struct copier *copier, const struct flight *flight)
{
	bool done = copied(copier, flight);
	bool moved = done && (flight->seated || swap(copier, flight->move));
	if (moved)
		settled(flight->move);
	close_target(copier, flight, done);
	return moved;
}

static uint64_t largest(const struct spill_move *moves, unsigned count)
{
	uint64_t bytes = VIEW;
	for (unsigned i = 0; i < count; i++)
		if (bytes < spill_move_chunk(&moves[i])->bytes)
			bytes = spill_move_chunk(&moves[i])->bytes;
	return bytes;
}

/* Moves on their way, landing in the order in which they began. */
struct air {
	struct flight flights[FLIGHTS];
	unsigned started, landed;
	unsigned each_way[2];
};

/* The next one can begin: there is place for one more that way, and it has a new home, or gets one. */
static bool may_start(const struct air *air, struct spill_move *next, const struct spill_move_helper *helper)
{
	if (air->each_way[spill_move_chunk(next)->on_host] == DEPTH)
		return false;
	return next->handle || (helper && helper->home(next, helper->data));
}

static bool start_next(struct copier *copier, struct air *air, struct spill_move *next)
{
	unsigned slot = air->started % FLIGHTS;
	if (!start(copier, &air->flights[slot], next, slot))
		return false;
	air->each_way[air->flights[slot].to_device]++;
	air->started++;
	return true;
}

static bool land_next(struct copier *copier, struct air *air, const struct spill_move_helper *helper)
{
	const struct flight *flight = &air->flights[air->landed++ % FLIGHTS];
	bool done = land(copier, flight);
	air->each_way[flight->to_device]--;
	if (done && helper)
		helper->landed(flight->move, helper->data);
	return done;
}

unsigned spill_move(const struct spill_backend *backend, int device, void *context, struct spill_move *moves,
                    unsigned count, const struct spill_move_helper *helper)
{
	struct copier *copier = copier_of(backend, device, context, largest(moves, count));
	struct air air = {0};
	unsigned moved = 0;
	bool going = copier != NULL;
	do {
		while (going && air.started < count && may_start(&air, &moves[air.started], helper))
			going = start_next(copier, &air, &moves[air.started]);
		if (air.landed == air.started)
			break;
		bool done = land_next(copier, &air, helper);
		moved += done;
		going = going && done;
	} while (true);
	return moved;
}

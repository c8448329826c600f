#include "flight.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture.h"
#include "chunk_map.h"
#include "clock.h"
#include "contexts.h"
#include "copier.h"
#include "device_memory.h"
#include "note.h"
#include "peer.h"
#include "remap.h"
#include "seqlock.h"

/* How long the gate may take to close: a call that waits inside it is no reason to stop the others. */
#define CLOSE_NS 200000ull

/*
 * The copies take some ms, and longer over a slow or busy link. If the driver has shut down, they never end: the
 * process exits, and the driver is asked by then.
 */
#define PATIENCE_NS 100000000ull

/* Most chunks without a mapping. */
#define MOST_UNMAPPED 4096

/* A chunk in flight. */
struct passenger {
	struct spill_move move;
	struct passenger *after;    /* comes into the memory that this one leaves; NULL: into other memory */
	struct passenger *follower; /* comes into its old memory; NULL: nobody does */
	bool copied;                /* the copy has begun */
};

/* A chunk without a mapping, and from where work can reach it. Any thread reads the reach. */
struct unmapped {
	_Atomic uint64_t begin, end;
	struct spill_move move; /* names the chunk; no memory */
};

/* The mover's lock guards all but the reaches. */
static struct {
	struct spill_exchange exchange;
	struct passenger passengers[SPILL_FLIGHT_CHUNKS];
	unsigned count;
	const struct spill_copier *copier;
	void *events[2]; /* behind the copies of each stream */
	bool up;
	struct unmapped list[MOST_UNMAPPED]; /* in order of their addresses */
	_Atomic unsigned listed;
	spill_seqlock version; /* of the list, for readers without the lock */
} flight;

/* -- which chunks ------------------------------------------------------------------------------- */

bool spill_flight_takes(const struct spill_backend *backend, const struct spill_chunked *chunked,
                        unsigned index)
{
	int list[SPILL_DEVICES];
	const struct spill_chunk *chunk = &chunked->chunks[index];
	bool others = chunked->users & ~(1ull << chunked->base.device);
	return (!chunked->set || chunked->exact_begins) && !chunked->pinned && !others &&
	       (!chunk->unmapped || chunk->away) && !spill_peer_devices(backend, chunked->base.device, list);
}

struct spill_span spill_flight_reach(const struct spill_chunked *chunked, unsigned index)
{
	if (chunked->exact_begins)
		return (struct spill_span){spill_chunked_address(chunked, index),
		                           chunked->chunks[index].bytes};
	return (struct spill_span){chunked->base.ptr, chunked->range};
}

/* The number of listed ones that begin at or below the address. Reaches are equal or disjoint. */
static unsigned listed_up_to(uint64_t address)
{
	unsigned low = 0, high = spill_seq_get(flight.listed);
	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (spill_seq_get(flight.list[middle].begin) <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_listed(uint32_t key)
{
	uint64_t address = (uint64_t)key << SPILL_CHUNK_MAP_UNIT_SHIFT;
	unsigned before = listed_up_to(address);
	return before && address < spill_seq_get(flight.list[before - 1].end);
}

bool spill_flight_touches(const uint32_t *keys, unsigned count)
{
	uint32_t version = spill_seq_read_begin(&flight.version);
	bool touches = false;
	for (unsigned i = 0; i < count && !touches; i++)
		touches = is_listed(keys[i]);
	return touches || !spill_seq_read_end(&flight.version, version);
}

static void set_entry(struct unmapped *entry, const struct unmapped *from)
{
	spill_seq_set(entry->begin, spill_seq_get(from->begin));
	spill_seq_set(entry->end, spill_seq_get(from->end));
	entry->move = from->move;
}

/* pre: the gate is closed. False: the list is full. */
static bool enlist(const struct spill_move *move)
{
	struct spill_span reach = spill_flight_reach(move->chunked, move->index);
	unsigned at = listed_up_to(reach.offset), count = flight.listed;
	const struct unmapped fresh = {
	    reach.offset, reach.offset + reach.bytes, {.chunked = move->chunked, .index = move->index}};
	if (count == MOST_UNMAPPED)
		return false;
	spill_seq_write_alone(&flight.version);
	for (unsigned i = count; i > at; i--)
		set_entry(&flight.list[i], &flight.list[i - 1]);
	set_entry(&flight.list[at], &fresh);
	spill_seq_set(flight.listed, count + 1);
	spill_seq_write_end(&flight.version);
	return true;
}

static void clear_list(void)
{
	spill_seq_write_alone(&flight.version);
	spill_seq_set(flight.listed, 0);
	spill_seq_write_end(&flight.version);
	spill_gate_end_flight();
}

/* Takes those off the list that are mapped again. */
static void delist_mapped(void)
{
	unsigned left = 0;
	spill_seq_write_alone(&flight.version);
	for (unsigned i = 0; i < flight.listed; i++)
		if (spill_move_chunk(&flight.list[i].move)->unmapped)
			set_entry(&flight.list[left++], &flight.list[i]);
	spill_seq_set(flight.listed, left);
	spill_seq_write_end(&flight.version);
	if (!left)
		spill_gate_end_flight();
}

/* -- memory and views --------------------------------------------------------------------------- */

static uint64_t view_of(const struct spill_exchange *exchange, uint64_t *view, uint64_t handle,
                        uint64_t bytes)
{
	if (!*view && handle)
		*view = spill_view_make(exchange->backend, exchange->device, handle, bytes);
	return *view;
}

/* Both memories of a move need a view. */
static bool has_views(const struct spill_exchange *exchange, struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	return view_of(exchange, &chunk->view, chunk->handle, chunk->bytes) &&
	       view_of(exchange, &move->view, move->handle, chunk->bytes);
}

static void add_passenger(const struct spill_move *move, struct passenger *after)
{
	struct passenger *added = &flight.passengers[flight.count++];
	*added = (struct passenger){.move = *move, .after = after};
	if (after)
		after->follower = added;
}

/* One that leaves memory of that size, which nobody else comes into. NULL: there is none. */
static struct passenger *leaving(uint64_t bytes)
{
	for (unsigned i = 0; i < flight.count; i++) {
		struct passenger *passenger = &flight.passengers[i];
		if (spill_move_leaves(&passenger->move) && !passenger->follower &&
		    spill_move_chunk(&passenger->move)->bytes == bytes)
			return passenger;
	}
	return NULL;
}

/* Finds the memory that a chunk comes into: a spare, what another one leaves, or what is free. */
static bool find_memory(struct spill_exchange *exchange, struct spill_move *move, struct passenger **after)
{
	*after = NULL;
	if (spill_exchange_use_spare(exchange, move))
		return true;
	*after = leaving(spill_move_chunk(move)->bytes);
	if (!*after)
		return spill_exchange_make(exchange, move);
	move->handle = spill_move_chunk(&(*after)->move)->handle;
	move->view = spill_move_chunk(&(*after)->move)->view;
	return true;
}

static void return_memory(struct spill_exchange *exchange, const struct spill_move *move)
{
	struct spill_move_batch batch = {.moves = (struct spill_move *)move, .count = 1};
	spill_move_batch_settle(&batch, exchange->backend, exchange->device);
}

static void board_those_that_leave(struct spill_exchange *exchange)
{
	for (unsigned i = 0; i < exchange->goes.count; i++) {
		struct spill_move *move = &exchange->goes.moves[i];
		if (flight.count < SPILL_FLIGHT_CHUNKS / 2 && has_views(exchange, move))
			add_passenger(move, NULL);
		else
			return_memory(exchange, move);
	}
}

static void board_those_that_come(struct spill_exchange *exchange)
{
	for (unsigned i = 0; i < exchange->comes.count && flight.count < SPILL_FLIGHT_CHUNKS; i++) {
		struct spill_move *move = &exchange->comes.moves[i];
		struct passenger *after;
		if (!find_memory(exchange, move, &after))
			continue;
		if (has_views(exchange, move)) {
			add_passenger(move, after);
		} else if (!after) {
			return_memory(exchange, move);
		}
	}
}

/* -- the copies --------------------------------------------------------------------------------- */

/* Those that follow each other take turns on the two streams, so that both ways of the link are used. */
static void *stream_for(const struct passenger *passenger, unsigned turn)
{
	if (passenger->after || passenger->follower)
		return spill_copier_stream(flight.copier, turn & 1);
	return spill_copier_stream(flight.copier, !spill_move_leaves(&passenger->move));
}

/* Copies what is in use. No work uses the chunk, so the rest of it is dead. */
static bool copy(struct passenger *passenger, void *stream)
{
	const struct spill_move *move = &passenger->move;
	const struct spill_chunk *chunk = spill_move_chunk(move);
	struct spill_span spans[SPILL_SPANS];
	unsigned count = chunk->unmapped ? spill_chunked_live(move->chunked, move->index, spans) : 0;
	passenger->copied = chunk->unmapped;
	for (unsigned i = 0; i < count && passenger->copied; i++)
		passenger->copied = !flight.copier->backend->moves->copy(
		    flight.copier->device, flight.copier->context, stream, move->view + spans[i].offset,
		    chunk->view + spans[i].offset, spans[i].bytes);
	return passenger->copied;
}

static void begin_copies(void)
{
	const struct spill_vendor_events *events = flight.copier->backend->events;
	for (unsigned i = 0, turn = 0; i < flight.count; i++) {
		struct passenger *passenger = &flight.passengers[i];
		void *stream = stream_for(passenger, turn);
		if (passenger->after || !copy(passenger, stream) || !passenger->follower)
			continue;
		copy(passenger->follower, stream);
		turn++;
	}
	for (unsigned i = 0; i < 2; i++)
		if (events->record(flight.copier->device, flight.copier->context,
		                   spill_copier_stream(flight.copier, i), false, &flight.events[i]))
			flight.events[i] = NULL;
}

/* -- begin and end ------------------------------------------------------------------------------ */

/* A chunk that is away is listed already. */
static void unmap(const struct spill_move *move)
{
	struct spill_chunk *chunk = spill_move_chunk(move);
	if (chunk->away ||
	    (enlist(move) && spill_remap_none(flight.exchange.backend, flight.exchange.device, move)))
		chunk->away = false;
}

/* Unmaps all chunks, with the gate closed: no thread is about to submit work that was looked at before. */
static bool take_off(spill_flight_used_fn *is_used)
{
	if (!spill_gate_close(spill_clock_ns() + CLOSE_NS))
		return false;
	bool allowed = !spill_capture_any();
	for (unsigned i = 0; i < flight.count && allowed; i++)
		if (!is_used(flight.passengers[i].move.chunked, flight.passengers[i].move.index))
			unmap(&flight.passengers[i].move);
	if (allowed)
		spill_gate_begin_flight();
	spill_gate_open();
	return allowed;
}

/* Ends the lists of the exchange, and returns the memory that its moves do not need. */
static void disembark(struct spill_move_reason why)
{
	struct spill_move_batch batch = {0};
	bool listed = true;
	for (unsigned i = 0; i < flight.count; i++) {
		struct passenger *passenger = &flight.passengers[i];
		if (passenger->after && !passenger->move.moved)
			passenger->move.handle = passenger->move.view = 0; /* it is still another's */
		if (passenger->follower && passenger->move.moved && passenger->follower->move.moved)
			passenger->move.handle = passenger->move.view = 0;
		if (passenger->move.moved)
			spill_exchange_note(&flight.exchange, &passenger->move);
	}
	for (unsigned i = 0; i < flight.count; i++) {
		listed = listed && spill_move_batch_add(&batch, &flight.passengers[i].move);
		if (!listed)
			return_memory(&flight.exchange, &flight.passengers[i].move);
	}
	spill_exchange_close(&flight.exchange, &batch, why);
	flight.count = 0;
}

bool spill_flight_begin(struct spill_exchange *exchange, spill_flight_used_fn *is_used)
{
	struct spill_move_reason why = {.reason = SPILL_REASON_USE, .start_us = spill_log_now_us()};
	void *context = spill_contexts_only(exchange->backend, exchange->device);
	flight.copier =
	    context ? spill_copier_of(exchange->backend, exchange->device, context, SPILL_COPIER_VIEW) : NULL;
	flight.count = 0;
	spill_move_stage(exchange->backend, exchange->device, exchange->goes.moves, exchange->goes.count);
	if (flight.copier && spill_exchange_open(exchange)) {
		board_those_that_leave(exchange);
		board_those_that_come(exchange);
	} else {
		spill_move_batch_settle(&exchange->goes, exchange->backend, exchange->device);
	}
	flight.exchange = *exchange;
	*exchange = (struct spill_exchange){.backend = exchange->backend, .device = exchange->device};
	bool begun = flight.count && take_off(is_used);
	flight.up = begun;
	if (begun)
		begin_copies();
	else
		disembark(why);
	return begun;
}

bool spill_flight_has_arrived(void)
{
	const struct spill_vendor_events *events = flight.copier->backend->events;
	bool arrived = true;
	for (unsigned i = 0; i < 2 && arrived; i++)
		arrived = !flight.events[i] ||
		          events->passed(flight.copier->device, flight.copier->context, flight.events[i]);
	return arrived;
}

bool spill_flight_is_up(void)
{
	return flight.up;
}

/* Maps a chunk that came to the device, or stayed there. One on the host stays away. */
static void arrive(const struct passenger *passenger)
{
	struct spill_chunk *chunk = spill_move_chunk(&passenger->move);
	chunk->away = chunk->unmapped && chunk->on_host;
	if (!chunk->away)
		spill_remap_own(flight.exchange.backend, flight.exchange.device, &passenger->move);
}

/* The context is dead, by a fault of the program's work or by its end. */
static void note_failure(void)
{
	char text[256];
	int error = flight.copier->backend->devices->wait(flight.copier->device, flight.copier->context);
	if (!error)
		return;
	snprintf(text, sizeof(text),
	         "copies beside running work failed: %s. With movable.follow = overlap, work that uses "
	         "memory which "
	         "none of its parameters names ends with an illegal address. movable.audit = yes finds it",
	         flight.copier->backend->error_name(error));
	spill_note("overlap", text);
}

uint64_t spill_flight_land(void)
{
	struct spill_move_reason why = {.reason = SPILL_REASON_USE,
	                                .start_us = spill_log_now_us(),
	                                .seen = spill_device_seen(flight.exchange.device)};
	bool arrived = true;
	for (unsigned i = 0; i < 2 && arrived; i++)
		arrived = spill_copier_wait_for(flight.copier, flight.events[i], PATIENCE_NS);
	if (!arrived)
		note_failure();
	/* First all content has its new memory: one chunk's old memory is another's new one. */
	for (unsigned i = 0; i < flight.count; i++)
		if (arrived && flight.passengers[i].copied)
			spill_move_done(&flight.passengers[i].move);
	for (unsigned i = 0; i < flight.count; i++)
		arrive(&flight.passengers[i]);
	delist_mapped();
	flight.up = false;
	disembark(why);
	return flight.exchange.came;
}

void spill_flight_hide(const struct spill_backend *backend, int device, const struct spill_move *move)
{
	if (enlist(move))
		spill_move_chunk(move)->away = spill_remap_none(backend, device, move);
}

/* Maps a chunk that is away, where it is. False: the driver refuses. */
static bool map_listed(const struct unmapped *entry, bool patient)
{
	struct spill_chunk *chunk = spill_move_chunk(&entry->move);
	const struct spill_placement *base = &entry->move.chunked->base;
	if (patient)
		spill_remap_own(base->backend, base->device, &entry->move);
	else
		spill_remap_lost(base->backend, base->device, &entry->move);
	chunk->away = false;
	return !chunk->unmapped;
}

void spill_flight_map(const uint32_t *keys, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		uint64_t address = (uint64_t)keys[i] << SPILL_CHUNK_MAP_UNIT_SHIFT;
		for (unsigned at = listed_up_to(address); at-- > 0 && address < flight.list[at].end;)
			map_listed(&flight.list[at], true);
	}
	delist_mapped();
}

uint64_t spill_flight_end(void)
{
	uint64_t came = flight.up ? spill_flight_land() : 0;
	bool mapped = true; /* where the driver refuses one, it has ended, and refuses all */
	for (unsigned i = 0; i < flight.listed; i++)
		mapped = map_listed(&flight.list[i], mapped);
	clear_list();
	return came;
}

void spill_flight_reset(void)
{
	atomic_store(&flight.listed, 0);
	flight.up = false;
	flight.count = 0;
}

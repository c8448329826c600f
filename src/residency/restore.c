#include "promote.h"
#include "clock.h"
#include "exchange.h"
#include "chunked.h"
#include "minmax.h"
#include "process.h"

/* A walk over all chunks of a device, for one direction. */
struct cursor {
	bool on_host; /* the side of the chunks to find */
	struct spill_chunked *chunked;
	unsigned index;
	uint64_t left; /* bytes of the allocation that shall change sides */
};

/*
 * Bytes displaced to this side, less those displaced to the other. Within an allocation it matters
 * little which chunks are on the device, so they are not exchanged for each other.
 */
static uint64_t displaced_surplus(const struct spill_chunked *chunked, bool on_host)
{
	uint64_t here = 0, gone = 0;
	for (unsigned i = 0; i < chunked->count; i++)
		if (chunked->chunks[i].displaced)
			*(chunked->chunks[i].on_host == on_host ? &here : &gone) += chunked->chunks[i].bytes;
	return spill_minus(here, gone);
}

static void enter_allocation(struct cursor *cursor, struct spill_chunked *chunked)
{
	cursor->chunked = chunked;
	cursor->index = 0;
	cursor->left = chunked ? displaced_surplus(chunked, cursor->on_host) : 0;
}

/*
 * A chunk of an odd size stays: its memory fits no other chunk, and making memory takes the driver
 * longer than the copy.
 */
static bool may_change(const struct cursor *cursor)
{
	const struct spill_chunk *chunk = &cursor->chunked->chunks[cursor->index];
	return chunk->displaced && chunk->on_host == cursor->on_host && !spill_chunk_is_lost(chunk) &&
	       (chunk->bytes == cursor->chunked->chunk_bytes || cursor->chunked->count == 1) &&
	       chunk->bytes <= cursor->left &&
	       (!cursor->on_host || spill_chunk_may_come(cursor->chunked, cursor->index));
}

/* Moves to the next chunk that shall change sides. False: there is none. pre: the mover is held */
static bool find_next(struct cursor *cursor, int device)
{
	for (; cursor->chunked; enter_allocation(cursor, spill_chunked_next(cursor->chunked)))
		for (; cursor->chunked->base.device == device && !cursor->chunked->pinned &&
		       cursor->index < cursor->chunked->count;
		     cursor->index++)
			if (may_change(cursor))
				return true;
	return false;
}

static uint64_t add_to_exchange(struct spill_exchange *exchange, struct cursor *cursor)
{
	uint64_t bytes = cursor->chunked->chunks[cursor->index].bytes;
	bool added = spill_exchange_add(exchange, cursor->chunked, cursor->index);
	cursor->index++;
	cursor->left -= bytes;
	return added ? bytes : 0;
}

/* Adds one slice: chunks that come back, and for each as many that leave as it lacks room. */
static void fill_exchange(struct spill_exchange *exchange, struct cursor *comes, struct cursor *goes,
                          uint64_t room)
{
	while (exchange->comes.bytes < SPILL_PROMOTE_SLICE && find_next(comes, exchange->device)) {
		uint64_t bytes = comes->chunked->chunks[comes->index].bytes;
		while (room < bytes && find_next(goes, exchange->device))
			room += add_to_exchange(exchange, goes);
		if (room < bytes)
			return;
		add_to_exchange(exchange, comes);
		room -= bytes;
	}
}

bool spill_restore_left(int device)
{
	for (struct spill_chunked *chunked = spill_chunked_next(NULL); chunked;
	     chunked = spill_chunked_next(chunked))
		if (chunked->base.device != device && displaced_surplus(chunked, true))
			return true;
	return false;
}

bool spill_restore(const struct spill_backend *backend, int device)
{
	struct cursor comes = {.on_host = true}, goes = {.on_host = false};
	uint64_t wait_ns = spill_process_policy()->movable_wait_us * 1000;
	enter_allocation(&comes, spill_chunked_next(NULL));
	enter_allocation(&goes, spill_chunked_next(NULL));
	while (true) {
		struct spill_exchange exchange = {.backend = backend, .device = device};
		fill_exchange(&exchange, &comes, &goes,
		              spill_promote_room(backend, device) + spill_exchange_kept());
		if (!exchange.comes.count && !exchange.goes.count)
			return true;
		spill_exchange_carry_out(&exchange, spill_clock_ns() + wait_ns);
		if (!exchange.ns || spill_mover_wanted())
			return false;
	}
}

#include "restore.h"

#include "back.h"
#include "clock.h"
#include "exchange.h"
#include "chunked.h"
#include "process.h"

/* The way over all chunks of a device, for one direction. */
struct cursor {
	bool on_host; /* of what is looked for */
	struct spill_chunked *of;
	unsigned chunk;
	uint64_t left; /* bytes that are to change sides in there */
};

/*
 * Bytes more of it that are displaced to this side than to the other. Which of its chunks are on the device matters little, so chunks
 * of one allocation are not exchanged for each other.
 */
static uint64_t surplus(const struct spill_chunked *of, bool on_host)
{
	uint64_t here = 0, there = 0;
	for (unsigned i = 0; i < of->count; i++)
		if (of->chunks[i].displaced)
			*(of->chunks[i].on_host == on_host ? &here : &there) += of->chunks[i].bytes;
	return here > there ? here - there : 0;
}

static void enter(struct cursor *cursor, struct spill_chunked *of)
{
	cursor->of = of;
	cursor->chunk = 0;
	cursor->left = of ? surplus(of, cursor->on_host) : 0;
}

/* An odd one is left where it is: its home fits no other, and making one of another size takes the driver longer than the copy. */
static bool may_change(const struct cursor *cursor)
{
	const struct spill_chunk *chunk = &cursor->of->chunks[cursor->chunk];
	return chunk->displaced && chunk->on_host == cursor->on_host && !chunk->unmapped &&
	       (chunk->bytes == cursor->of->chunk_bytes || cursor->of->count == 1) &&
	       chunk->bytes <= cursor->left &&
	       (!cursor->on_host || spill_chunk_may_come(cursor->of, cursor->chunk));
}

/* Moves to the next chunk that changes sides. False: there is none. pre: the mover is held */
static bool next(struct cursor *cursor, int device)
{
	for (; cursor->of; enter(cursor, spill_chunked_next(cursor->of)))
		for (; cursor->of->base.device == device && !cursor->of->pinned &&
		       cursor->chunk < cursor->of->count;
		     cursor->chunk++)
			if (may_change(cursor))
				return true;
	return false;
}

static uint64_t add(struct spill_exchange *exchange, struct cursor *cursor)
{
	uint64_t bytes = cursor->of->chunks[cursor->chunk].bytes;
	bool added = spill_exchange_add(exchange, cursor->of, cursor->chunk);
	cursor->chunk++;
	cursor->left -= bytes;
	return added ? bytes : 0;
}

/* One slice: what comes back, and as much that leaves for it as there is no room for. */
static void fill(struct spill_exchange *exchange, struct cursor *comes, struct cursor *goes, uint64_t room)
{
	while (exchange->comes.bytes < SPILL_BACK_SLICE && next(comes, exchange->device)) {
		uint64_t bytes = comes->of->chunks[comes->chunk].bytes;
		while (room < bytes && next(goes, exchange->device))
			room += add(exchange, goes);
		if (room < bytes)
			return;
		add(exchange, comes);
		room -= bytes;
	}
}

bool spill_restore_left(int device)
{
	for (struct spill_chunked *one = spill_chunked_next(NULL); one; one = spill_chunked_next(one))
		if (one->base.device != device && surplus(one, true))
			return true;
	return false;
}

bool spill_restore(const struct spill_backend *backend, int device)
{
	struct cursor comes = {.on_host = true}, goes = {.on_host = false};
	uint64_t wait_ns = spill_process_policy()->movable_wait_us * 1000;
	enter(&comes, spill_chunked_next(NULL));
	enter(&goes, spill_chunked_next(NULL));
	while (true) {
		struct spill_exchange exchange = {.backend = backend, .device = device};
		fill(&exchange, &comes, &goes, spill_back_room(backend, device) + spill_exchange_kept());
		if (!exchange.comes.count && !exchange.goes.count)
			return true;
		spill_exchange_carry_out(&exchange, spill_clock_ns() + wait_ns);
		if (!exchange.ns || spill_mover_wanted())
			return false;
	}
}

#include "restore.h"

#include "back.h"
#include "clock.h"
#include "exchange.h"
#include "place/chunked.h"
#include "runtime.h"

/* The next chunk to look at, on the way over all chunks of a device. */
struct cursor {
	struct spill_chunked *of;
	unsigned chunk;
};

/* Moves to the next displaced chunk that is on the host, or on the device. False: there is none. pre: the mover is held */
static bool next(struct cursor *cursor, int device, bool on_host)
{
	for (; cursor->of; *cursor = (struct cursor){spill_chunked_next(cursor->of), 0}) {
		const struct spill_chunked *of = cursor->of;
		for (; of->base.device == device && !of->pinned && cursor->chunk < of->count;
		     cursor->chunk++) {
			const struct spill_chunk *chunk = &of->chunks[cursor->chunk];
			if (chunk->displaced && chunk->on_host == on_host && !chunk->unmapped &&
			    (!on_host || spill_chunk_may_come(of, cursor->chunk)))
				return true;
		}
	}
	return false;
}

static uint64_t add(struct spill_exchange *exchange, struct cursor *cursor)
{
	uint64_t bytes = cursor->of->chunks[cursor->chunk].bytes;
	bool added = spill_exchange_add(exchange, cursor->of, cursor->chunk);
	cursor->chunk++;
	return added ? bytes : 0;
}

/* One slice. What is not followed by a chunk that comes goes back to the host all the same: others may need the room. */
static void fill(struct spill_exchange *exchange, struct cursor *comes, struct cursor *goes, uint64_t room)
{
	while (exchange->goes.bytes < SPILL_BACK_SLICE && next(goes, exchange->device, false))
		room += add(exchange, goes);
	while (exchange->comes.bytes < SPILL_BACK_SLICE && next(comes, exchange->device, true)) {
		uint64_t bytes = comes->of->chunks[comes->chunk].bytes;
		if (bytes > room)
			break;
		add(exchange, comes);
		room -= bytes;
	}
}

uint64_t spill_restore(const struct spill_backend *backend, int device, bool *done)
{
	struct cursor comes = {spill_chunked_next(NULL), 0}, goes = comes;
	uint64_t came = 0, wait_ns = spill_runtime_policy()->movable_wait_us * 1000;
	for (*done = false; !*done;) {
		struct spill_exchange exchange = {.backend = backend, .device = device};
		fill(&exchange, &comes, &goes, spill_back_room(backend, device) + spill_exchange_kept());
		*done = !exchange.comes.count && !exchange.goes.count;
		if (*done)
			break;
		spill_exchange_carry_out(&exchange, spill_clock_ns() + wait_ns);
		if (!exchange.ns)
			return came;
		came += exchange.came;
	}
	return came;
}

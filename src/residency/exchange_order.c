#include "exchange_order.h"

#include <stdlib.h>

/* The memory that chunks can come to at a point of the order. Like the spares, but without handles. */
struct outlook {
	uint64_t *ready; /* sizes of memory that chunks have left */
	unsigned count;
	uint64_t leaving; /* left by the last chunk in the order: ready behind the next one. 0: none */
	uint64_t room;    /* free bytes */
};

static bool has_ready(const struct outlook *outlook, uint64_t bytes, unsigned *at)
{
	for (*at = 0; *at < outlook->count; (*at)++)
		if (outlook->ready[*at] == bytes)
			return true;
	return false;
}

static void take_memory(struct outlook *outlook, uint64_t bytes)
{
	unsigned at;
	if (has_ready(outlook, bytes, &at)) {
		outlook->ready[at] = outlook->ready[--outlook->count];
		return;
	}
	while (outlook->room < bytes && outlook->count)
		outlook->room += outlook->ready[--outlook->count];
	outlook->room -= bytes < outlook->room ? bytes : outlook->room;
}

/* The chunk of that size that leaves next. The list's end: none. */
static unsigned next_of_size(const struct spill_move_batch *goes, unsigned first, uint64_t bytes)
{
	while (first < goes->count && spill_move_chunk(&goes->moves[first])->bytes != bytes)
		first++;
	return first;
}

/*
 * Can the chunk come without a wait? Its memory is ready, or is made of what is there because no chunk of its
 * size leaves: the last one to leave would have been of its size. pre: that one left for this chunk
 */
static bool can_come(const struct outlook *outlook, uint64_t bytes)
{
	uint64_t all = outlook->room;
	unsigned at;
	if (has_ready(outlook, bytes, &at))
		return true;
	if (outlook->leaving == bytes)
		return false;
	for (unsigned i = 0; i < outlook->count; i++)
		all += outlook->ready[i];
	return bytes <= all;
}

/* Lets a chunk of that size leave next, or the first one. Returns its size. */
static uint64_t leave(struct outlook *outlook, struct spill_move_batch *goes, unsigned go, uint64_t bytes)
{
	unsigned found = next_of_size(goes, go, bytes);
	if (found < goes->count) {
		struct spill_move move = goes->moves[found];
		goes->moves[found] = goes->moves[go];
		goes->moves[go] = move;
	}
	if (outlook->leaving)
		outlook->ready[outlook->count++] = outlook->leaving;
	return spill_move_chunk(&goes->moves[go])->bytes;
}

/*
 * Merges both ways into one order, in turns. A chunk that comes takes over the memory of one of its size, which
 * leaves two places ahead of it, so that neither way waits for the other. Only if none of its size leaves, its
 * memory is made of what others left. False: no memory for the order.
 */
static bool merge_ways(struct spill_exchange *exchange, struct outlook *outlook,
                       struct spill_move_batch *order)
{
	unsigned come = 0, go = 0;
	bool turn = false; /* chunks that leave are copied at once; others need a mapping first */
	while (come < exchange->comes.count || go < exchange->goes.count) {
		const struct spill_move *next =
		    come < exchange->comes.count ? &exchange->comes.moves[come] : NULL;
		uint64_t bytes = next ? spill_move_chunk(next)->bytes : 0;
		bool comes = next && (go == exchange->goes.count || (turn && can_come(outlook, bytes)));
		if (comes) {
			take_memory(outlook, bytes);
			come++;
		} else {
			outlook->leaving = leave(outlook, &exchange->goes, go, bytes);
			next = &exchange->goes.moves[go++];
		}
		if (!spill_move_batch_add(order, next))
			return false;
		turn = !comes;
	}
	return true;
}

bool spill_exchange_make_order(struct spill_exchange *exchange, struct spill_move_batch *order)
{
	struct outlook outlook = {
	    .ready = calloc(exchange->goes.count + exchange->spare_count + 1, sizeof(*outlook.ready)),
	    .room = exchange->room};
	for (unsigned i = 0; outlook.ready && i < exchange->spare_count; i++)
		outlook.ready[outlook.count++] = exchange->spares[i].bytes;
	bool made = outlook.ready && merge_ways(exchange, &outlook, order);
	free(outlook.ready);
	return made;
}

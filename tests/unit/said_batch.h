/* In place of move_batch.c: a batch that says what it is told. Chunks are named by 10 * seq + index. */
#ifndef SPILL_TEST_SAID_BATCH_H
#define SPILL_TEST_SAID_BATCH_H

#include <stdlib.h>

#include "move_batch.h"
#include "said.h"

static struct {
	bool no_memory, no_chance, stays; /* stays: carried out, and nothing moves */
	const char *error;                /* of carrying out */
} batch_world;

bool spill_move_batch_add(struct spill_move_batch *batch, const struct spill_move *move)
{
	say("add", move->chunked->seq * 10 + move->index);
	if (batch_world.no_memory)
		return false;
	batch->moves = realloc(batch->moves, ++batch->count * sizeof(*move));
	batch->moves[batch->count - 1] = *move;
	batch->bytes += spill_move_chunk(move)->bytes;
	return true;
}

bool spill_move_batch_has_a_chance(const struct spill_backend *backend, int device, uint64_t wait_us)
{
	return !batch_world.no_chance;
}

const char *spill_move_batch_carry_out(struct spill_move_batch *batch, const struct spill_backend *backend,
                                       int device, uint64_t wait_us)
{
	say("carry", batch->count);
	for (unsigned i = 0; i < batch->count && !batch_world.stays; i++) {
		struct spill_move *move = &batch->moves[i];
		struct spill_chunk *chunk = spill_move_chunk(move);
		struct spill_bytes *held = &move->chunked->base.held;
		*(chunk->on_host ? &held->host : &held->device) -= chunk->bytes;
		*(chunk->on_host ? &held->device : &held->host) += chunk->bytes;
		chunk->on_host = !chunk->on_host;
		move->moved = true;
	}
	return batch_world.error;
}

struct spill_bytes spill_move_batch_settle(const struct spill_move_batch *batch,
                                           const struct spill_backend *backend, int device)
{
	struct spill_bytes moved = {0};
	for (unsigned i = 0; i < batch->count; i++)
		if (batch->moves[i].moved)
			*(spill_move_leaves(&batch->moves[i]) ? &moved.host : &moved.device) +=
			    spill_move_chunk(&batch->moves[i])->bytes;
	say("settle", batch->count);
	return moved;
}

void spill_move_batch_report(const struct spill_move_batch *batch, struct spill_move_reason *why)
{
	say("report", batch->count);
}

void spill_move_batch_end(struct spill_move_batch *batch)
{
	say("end", batch->count);
	free(batch->moves);
	*batch = (struct spill_move_batch){0};
}

#endif

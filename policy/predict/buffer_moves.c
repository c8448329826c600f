#include "buffer_moves.h"

bool spill_buffer_moves_find(const struct spill_buffer_moves *moves, uint32_t *place, uint64_t time,
                             uint64_t period)
{
	const struct spill_buffer_move *move = &moves->slots[spill_buffer_moves_slot(*place)];

	if (move->from != *place || move->since <= time || !spill_is_same_period(move->period, period))
		return false;
	*place = move->to;
	return true;
}

void spill_buffer_moves_found(struct spill_buffer_moves *moves, uint64_t now, uint64_t before, uint32_t from,
                              uint32_t to)
{
	unsigned slot = spill_buffer_moves_slot(from);

	moves->taken[slot / 64] |= UINT64_C(1) << slot % 64;
	moves->slots[slot] = (struct spill_buffer_move){from, to, now, now - before};
	moves->since = now;
}

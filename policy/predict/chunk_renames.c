#include "chunk_renames.h"

#include <stdbool.h>
#include <string.h>

#include "minmax.h"

/*
 * Most units of 2 MiB from one chunk of a buffer to the next: a chunk has 64 MiB. A list of keys does
 * not say where a buffer ends, so neighbours count as one.
 */
#define NEIGHBOUR 32

/* The period is the same if it changed by at most this share. */
#define SAME_PERIOD 8

static bool is_same_period(uint64_t one, uint64_t other)
{
	return spill_max(one, other) - spill_min(one, other) <= other / SAME_PERIOD;
}

unsigned spill_chunk_renames_find(const struct spill_chunk_renames *renames, uint32_t key, uint64_t time,
                                  uint64_t period, uint32_t names[SPILL_CHUNK_NAMES])
{
	const struct spill_chunk_rename *rename = &renames->slots[spill_chunk_renames_slot(key)];
	unsigned count = 0;

	if (rename->from == key && rename->since > time && is_same_period(rename->period, period))
		while (count < SPILL_CHUNK_NAMES && rename->to[count]) {
			names[count] = rename->to[count];
			count++;
		}
	return spill_max(count, 1);
}

static void learn_name(struct spill_chunk_renames *renames, uint64_t now, uint64_t before, uint32_t from,
                       uint32_t to)
{
	unsigned slot = spill_chunk_renames_slot(from);
	struct spill_chunk_rename *rename = &renames->slots[slot];

	renames->taken[slot / 64] |= UINT64_C(1) << slot % 64;
	if (rename->from != from || rename->since <= before || !is_same_period(rename->period, now - before))
		*rename = (struct spill_chunk_rename){.from = from};
	if (rename->to[0] != to) {
		rename->to[1] = rename->to[0];
		rename->to[0] = to;
	}
	rename->since = renames->since = now;
	rename->period = now - before;
}

/* The first keys that can be one buffer. */
static unsigned buffer_length(const uint32_t *keys, unsigned count)
{
	unsigned length = 1;

	while (length < count && keys[length] > keys[length - 1] &&
	       keys[length] - keys[length - 1] <= NEIGHBOUR)
		length++;
	return length;
}

static unsigned count_buffers(const uint32_t *keys, unsigned count)
{
	unsigned buffers = 0;

	for (unsigned i = 0; i < count; i += buffer_length(keys + i, count - i))
		buffers++;
	return buffers;
}

/* The chunks of a buffer replace those that it had. They can be more or fewer. */
static void learn_buffer(struct spill_chunk_renames *renames, uint64_t now, uint64_t before,
                         const uint32_t *old, unsigned old_count, const uint32_t *keys, unsigned count)
{
	if (old_count == count && !memcmp(old, keys, count * sizeof(*keys)))
		return;
	for (unsigned i = 0; i < old_count; i++) {
		unsigned first = i * count / old_count, end = ((i + 1) * count + old_count - 1) / old_count;

		for (unsigned k = first; k < end; k++)
			learn_name(renames, now, before, old[i], keys[k]);
	}
}

void spill_chunk_renames_learn(struct spill_chunk_renames *renames, uint64_t now, uint64_t before,
                               const uint32_t *old, unsigned old_count, const uint32_t *keys, unsigned count)
{
	if (count_buffers(old, old_count) != count_buffers(keys, count))
		return;
	while (count) {
		unsigned length = buffer_length(keys, count), old_length = buffer_length(old, old_count);

		learn_buffer(renames, now, before, old, old_length, keys, length);
		keys += length;
		count -= length;
		old += old_length;
		old_count -= old_length;
	}
}

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "cache_sim.h"
#include "roll.h"

static struct sim the_sim;

struct sim *sim_begin(void)
{
	memset(&the_sim, 0, sizeof(the_sim));
	roll_state = ROLL_BEGIN;
	return &the_sim;
}

uint32_t sim_chunk(struct sim *sim, uint64_t bytes)
{
	assert_true(sim->chunks < SIM_CHUNKS);
	sim->bytes[sim->chunks] = bytes;
	return sim->chunks++;
}

void sim_use(struct sim *sim, uint32_t key, uint16_t site)
{
	assert_true(sim->count < SIM_USES);
	sim->uses[sim->count++] = (struct spill_access){.first = key, .site = site};
}

uint64_t sim_total(const struct sim *sim)
{
	return sim_moved(sim->bytes, 0, sim->chunks);
}

unsigned sim_random(unsigned limit)
{
	return (unsigned)(roll_any() >> 20) % limit;
}

uint64_t sim_moved(const uint64_t *moved, unsigned from, unsigned to)
{
	uint64_t sum = 0;

	for (unsigned i = from; i < to; i++)
		sum += moved[i];
	return sum;
}

/* What is on the device at first, of each chunk. Returns the room that is left. */
static uint64_t start(const struct sim *sim, uint64_t *resident)
{
	uint64_t room = sim->capacity;

	for (unsigned i = 0; i < sim->chunks; i++) {
		resident[i] = sim->bytes[i] <= room ? sim->bytes[i] : 0;
		room -= resident[i];
	}
	return room;
}

/* Takes the window's decision and checks its figures. */
static uint64_t apply(struct spill_exchange_choice *window, uint64_t room)
{
	uint64_t comes = 0, goes = 0;

	for (unsigned i = 0; i < window->count; i++) {
		struct spill_exchange_chunk *chunk = &window->chunks[i];

		if (chunk->verdict == SPILL_EXCHANGE_STAYS)
			continue;
		assert_int_equal(chunk->on_host, chunk->verdict == SPILL_EXCHANGE_COMES);
		*(chunk->on_host ? &comes : &goes) += chunk->bytes;
		chunk->on_host = !chunk->on_host;
	}
	assert_int_equal(comes, window->comes);
	assert_int_equal(goes, window->goes);
	assert_true(comes <= room + goes);
	return room + goes - comes;
}

static void run_ours(struct sim *sim)
{
	static struct spill_exchange_chunk chunks[SIM_CHUNKS];
	static unsigned ranks[SIM_CHUNKS];
	static struct spill_chunk_slot slots[4 * SIM_CHUNKS];
	struct spill_chunk_index index = {.slots = slots, .bits = spill_chunk_index_bits(2 * SIM_CHUNKS)};
	uint64_t resident[SIM_CHUNKS], room = start(sim, resident), total = sim_total(sim);

	memset(slots, 0, sizeof(slots));
	for (unsigned i = 0; i < sim->chunks; i++) {
		chunks[i] =
		    (struct spill_exchange_chunk){.key = i, .bytes = sim->bytes[i], .on_host = !resident[i]};
		assert_true(spill_chunk_index_add(&index, i, 1, i));
	}
	for (unsigned i = 0; i < sim->count; i++) {
		struct spill_exchange_chunk *used = &chunks[sim->uses[i].first];

		spill_access_history_launch(&sim->order, (const struct spill_access_range[]){{used->key, 1}},
		                            1, sim->uses[i].site);
		if (!used->on_host)
			continue;

		struct spill_exchange_choice window = {
		    .chunks = chunks,
		    .count = sim->chunks,
		    .index = index,
		    .ranks = ranks,
		    .room = room,
		    .slice = (total - sim->capacity) / 8,
		    .horizon = sim->capacity / 2,
		    .always = true,
		};

		used->needed = true;
		assert_true(spill_exchange_choose(&window, &sim->order, NULL, sim->uses[i].site, false));
		used->needed = false;
		room = apply(&window, room);
		assert_false(used->on_host);
		sim->ours[i] = window.comes;
	}
}

/* Takes bytes from whom `rank` is highest, all of it if `whole`, until there is so much room. */
static uint64_t evict(const struct sim *sim, uint64_t *resident, const uint64_t *rank, uint64_t room,
                      uint64_t bytes, uint32_t spare, bool whole)
{
	while (room < bytes) {
		unsigned furthest = sim->chunks;

		for (unsigned c = 0; c < sim->chunks; c++)
			if (c != spare && resident[c] &&
			    (furthest == sim->chunks || rank[c] > rank[furthest]))
				furthest = c;
		if (furthest == sim->chunks) {
			fail_msg("nothing left to evict");
			return room; /* not reached */
		}

		uint64_t out = whole || resident[furthest] < bytes - room ? resident[furthest] : bytes - room;

		resident[furthest] -= out;
		room += out;
	}
	return room;
}

/*
 * Belady's algorithm, in bytes. The chunk needed furthest in the future leaves, or a part of it if
 * that is enough. No strategy that brings all used chunks can move less.
 */
void sim_run_optimum(struct sim *sim)
{
	static uint64_t after[SIM_USES]; /* the next use of the same chunk */
	uint64_t resident[SIM_CHUNKS], room = start(sim, resident), rank[SIM_CHUNKS];

	for (unsigned c = 0; c < sim->chunks; c++)
		rank[c] = UINT64_MAX;
	for (unsigned i = sim->count; i-- > 0;) {
		after[i] = rank[sim->uses[i].first];
		rank[sim->uses[i].first] = i;
	}
	for (unsigned i = 0; i < sim->count; i++) {
		uint32_t key = sim->uses[i].first;
		uint64_t missing = sim->bytes[key] - resident[key];

		rank[key] = after[i];
		room = evict(sim, resident, rank, room, missing, key, false) - missing;
		resident[key] += missing;
		sim->optimum[i] = missing;
	}
}

static void run_lru(struct sim *sim)
{
	uint64_t resident[SIM_CHUNKS], room = start(sim, resident), rank[SIM_CHUNKS];

	for (unsigned c = 0; c < sim->chunks; c++)
		rank[c] = UINT64_MAX;
	for (unsigned i = 0; i < sim->count; i++) {
		uint32_t key = sim->uses[i].first;
		uint64_t missing = sim->bytes[key] - resident[key];

		room = evict(sim, resident, rank, room, missing, key, true) - missing;
		resident[key] += missing;
		rank[key] = UINT64_MAX - 1 - i;
		sim->lru[i] = missing;
	}
}

void sim_run(struct sim *sim)
{
	run_ours(sim);
	sim_run_optimum(sim);
	run_lru(sim);
}

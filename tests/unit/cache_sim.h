/*
 * Simulates a device that is served by the order and the window, as launch_access.c asks them. For
 * comparison it computes the bytes that two other strategies move for the same uses: the optimum,
 * and least recently used on demand.
 */
#ifndef CACHE_SIM_H
#define CACHE_SIM_H

#include <stdint.h>

#include "exchange_choice.h"

#define SIM_CHUNKS 2048
#define SIM_USES 200000
#define SIM_MIB ((uint64_t)1 << 20)

struct sim {
	uint64_t bytes[SIM_CHUNKS]; /* by key */
	unsigned chunks;
	struct spill_access uses[SIM_USES];
	unsigned count;
	uint64_t capacity;
	struct spill_access_history order;
	/* Bytes brought for the use of that number, by whom. */
	uint64_t ours[SIM_USES], optimum[SIM_USES], lru[SIM_USES];
};

/* Empty: a device of nothing. There is one. */
struct sim *sim_begin(void);
/* A new chunk's key. */
uint32_t sim_chunk(struct sim *sim, uint64_t bytes);
void sim_use(struct sim *sim, uint32_t key, uint16_t site);
uint64_t sim_total(const struct sim *sim);
/* Random number below `limit`, the same in every run. */
unsigned sim_random(unsigned limit);

/*
 * Serves all uses, by all three, from the same start: the first chunks are on the device, as many as fit. Fails the test if a
 * used chunk is not on the device afterwards, or if there is more on it than fits.
 */
void sim_run(struct sim *sim);
/* The same by the optimum alone. */
void sim_run_optimum(struct sim *sim);
/* Bytes that were brought for the uses [from, to). */
uint64_t sim_moved(const uint64_t *moved, unsigned from, unsigned to);

#endif

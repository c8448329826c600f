/*
 * What HIP remembers about an allocation and the simulated device does not: the flags it was made with, and
 * that managed memory without XNACK is pinned host memory which only calls itself managed.
 */
#ifndef SIM_HIP_ALLOCATIONS_H
#define SIM_HIP_ALLOCATIONS_H

#include <stdbool.h>
#include <stdint.h>

struct hip_note {
	bool managed;
	unsigned flags;
};

/* False without memory for it. The key is core.h's id of the allocation, which is never used again. */
bool hip_note_add(uint64_t id, struct hip_note note);
struct hip_note hip_note_find(uint64_t id); /* zeros when there is none */
void hip_note_remove(uint64_t id);

#endif

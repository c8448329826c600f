/*
 * Physical memory that the program made itself (cuMemCreate), and where it is mapped. Such memory lives until
 * its last handle is released and its last mapping ended, in whatever order; only then is it given back, so
 * only then does its ledger entry end. CUDA Driver API, "Virtual Memory Management".
 *
 * The vendor is called without the lock. What ends with the call leaves the table before it, because the
 * vendor may give the value or address to another thread at once, and comes back if the vendor refuses. Every
 * function that can end memory returns a list of what has ended by it: the caller's to finish and to free(3),
 * outside the lock.
 */
#ifndef SPILL_VMM_H
#define SPILL_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"

struct spill_vmm_memory {
	/* Set by who adds it. */
	uint64_t handle; /* as the vendor named it when it was made: with seq the key of the ledger */
	uint64_t seq;
	int device; /* that the program asked for */
	bool spilled;
	unsigned char asked[SPILL_PROPERTIES_BYTES]; /* spilled: the properties that the program gets */

	/* The table's own. */
	uint64_t name;                     /* the handle's value now */
	bool named;                        /* found by it */
	unsigned handles, mappings, calls; /* calls of the vendor that are under way */
	struct spill_vmm_memory *next;     /* of those that ended together */
};

struct spill_vmm_mapping;

/* Adds a copy with one handle, and returns it; NULL if there is no memory for it. */
struct spill_vmm_memory *spill_vmm_add(const struct spill_vmm_memory *memory,
                                       struct spill_vmm_memory **ended);

/* One handle is about to be released; NULL if it is none of ours. Then: did the vendor do it? */
struct spill_vmm_memory *spill_vmm_releasing(uint64_t handle);
struct spill_vmm_memory *spill_vmm_released(struct spill_vmm_memory *memory, bool done);

/* It is about to be mapped. Then: to these addresses; 0 bytes if the vendor refused. */
struct spill_vmm_memory *spill_vmm_mapping(uint64_t handle);
struct spill_vmm_memory *spill_vmm_mapped(struct spill_vmm_memory *memory, uint64_t va, uint64_t bytes);

/* All mappings in that range are about to end; NULL if there is none. */
struct spill_vmm_mapping *spill_vmm_unmapping(uint64_t va, uint64_t bytes);
struct spill_vmm_memory *spill_vmm_unmapped(struct spill_vmm_mapping *mappings, bool done);

/*
 * What is mapped at an address is about to get one more handle, or (va 0) an unknown one. Then: `handle`, to
 * what was mapped there or else to what has that handle; 0 if the vendor refused.
 */
struct spill_vmm_memory *spill_vmm_retaining(uint64_t va);
struct spill_vmm_memory *spill_vmm_retained(struct spill_vmm_memory *memory, uint64_t handle);

/* Is the handle's memory spilled? `asked` (or NULL): the properties that the program asked for. */
bool spill_vmm_spilled(uint64_t handle, void *asked);

/* A mapping of spilled memory. */
struct spill_vmm_range {
	uint64_t va, bytes;
	int device; /* that the program asked for */
};

/* Is it spilled memory that is mapped there? Free while nothing is spilled. */
bool spill_vmm_spilled_at(uint64_t va, struct spill_vmm_range *range);

void spill_vmm_fork_prepare(void);
void spill_vmm_fork_done(bool child);

#endif

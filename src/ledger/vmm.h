/*
 * Physical memory that the program made itself (cuMemCreate), and its mappings. Such memory lives
 * until its last handle is released and its last mapping ended, in any order (CUDA Driver API,
 * "Virtual Memory Management"). Its ledger entry ends then.
 *
 * The vendor is called without the lock. A handle or mapping leaves the table before the vendor's
 * call that ends it, because the vendor may give its value or address to another thread at once. It
 * returns to the table if the vendor refuses. So each operation has two functions: one before the
 * vendor's call, one after it.
 *
 * A function that can end memory returns a list of the memory that has ended. The caller ends its
 * ledger entries and frees the list with free(3), outside the lock.
 */
#ifndef SPILL_VMM_H
#define SPILL_VMM_H

#include <stdbool.h>
#include <stdint.h>

#include "backend.h"
#include "lock.h"
#include "placement.h"

struct spill_vmm_memory {
	/* Set by the caller of spill_vmm_add. */
	uint64_t handle; /* at its creation. With seq the key in the ledger. */
	uint64_t seq;
	int device; /* that the program asked for. */
	bool spilled;
	struct spill_placement *set; /* a chunk set; NULL: the vendor knows the handle. */
	bool exportable;             /* of a set: the program may export it. */
	const void *site;            /* of a set: the call that made it, and its bytes. */
	uint64_t bytes;
	unsigned char asked[SPILL_PROPERTIES_BYTES]; /* if spilled: what the program asked for. */

	/* Private to the table. */
	uint64_t name;                     /* the present value of the handle. */
	bool named;                        /* the table finds it by `name`. */
	unsigned handles, mappings, calls; /* `calls`: vendor calls under way. */
	struct spill_vmm_memory *next;     /* in the list of ended memory. */
};

struct spill_vmm_mapping {
	uint64_t va, bytes;
	struct spill_vmm_memory *memory;
	struct spill_vmm_mapping *next; /* in the list of those that end by one call. */
};

/* Adds a copy with one handle, and returns it; NULL if there is no memory for it. */
struct spill_vmm_memory *spill_vmm_add(const struct spill_vmm_memory *memory,
                                       struct spill_vmm_memory **ended);

/* Before the release of a handle; NULL if not ours. After it: `done` if it succeeded. */
struct spill_vmm_memory *spill_vmm_releasing(uint64_t handle);
struct spill_vmm_memory *spill_vmm_released(struct spill_vmm_memory *memory, bool done);

/* Before memory is mapped. After it: the addresses; 0 bytes if the vendor refused. */
struct spill_vmm_memory *spill_vmm_mapping(uint64_t handle);
struct spill_vmm_memory *spill_vmm_mapped(struct spill_vmm_memory *memory, uint64_t va, uint64_t bytes,
                                          bool *recorded);
/*
 * After a mapping for whose record there was no memory (*recorded is false). `undone`: the caller
 * has unmapped it. Otherwise it is counted and never found: its memory stays in the ledger for ever,
 * which is better than an early end.
 */
struct spill_vmm_memory *spill_vmm_unrecorded(struct spill_vmm_memory *memory, bool undone);

/* Before all mappings in a range end; NULL if none. After it: `done` if that succeeded. */
struct spill_vmm_mapping *spill_vmm_unmapping(uint64_t va, uint64_t bytes);
struct spill_vmm_memory *spill_vmm_unmapped(struct spill_vmm_mapping *mappings, bool done);

/*
 * Before the memory that is mapped at `va` gets one more handle. If `va` is 0, the memory is not
 * known yet. After it: the handle; 0 if the vendor refused. `memory` is NULL if it was not known,
 * and is then found by the handle.
 */
struct spill_vmm_memory *spill_vmm_retaining(uint64_t va);
struct spill_vmm_memory *spill_vmm_retained(struct spill_vmm_memory *memory, uint64_t handle);

/* True if the memory of the handle is spilled. `asked` or NULL: gets the program's properties. */
bool spill_vmm_spilled(uint64_t handle, void *asked);

/* A mapping of spilled memory. */
struct spill_vmm_range {
	uint64_t va, bytes;
	int device; /* that the program asked for */
};

/* True if spilled memory is mapped at `va`. Takes no lock while nothing is spilled. */
bool spill_vmm_spilled_at(uint64_t va, struct spill_vmm_range *range);
/* Is there any such mapping? One load. */
bool spill_vmm_any_spilled(void);

extern const struct spill_fork_lock spill_vmm_fork_lock;

#endif

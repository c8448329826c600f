/*
 * What a kernel's parameters look like, as the driver tells it, kept by function handle: where in the array that a launch is
 * given pointers can be. What is kept is never read for another function of the same handle: whatever can end a function
 * (unloading, the end of a context) comes through a row, which forgets everything before the driver is called. A launch
 * that races with the end of its own function is the program's error with or without us.
 */
#ifndef SPILL_LAYOUTS_H
#define SPILL_LAYOUTS_H

#include <stdint.h>

#include "hooks.h"

/* Parameters that can hold a pointer: of 8 bytes and more. */
struct spill_layout_part {
	uint16_t index; /* in kernelParams */
	uint16_t words; /* of 8 bytes */
};

struct spill_layout {
	const void *function;
	_Atomic uint64_t generation; /* for which it holds */
	struct spill_layout *older;  /* that it took the place of: somebody may be reading it */
	uint32_t count;
	struct spill_layout_part parts[];
};

/*
 * Of a CUfunction or a CUkernel: both are handed to launches. NULL: not known; the driver cannot tell (before CUDA 12.4), refuses,
 * or there are too many. It stays, and holds at least until a function of that handle ends. Keeps errno.
 */
const struct spill_layout *spill_layout_of(const void *function);

/* Functions may end now. Called before the driver does it. */
void spill_layouts_forget(void);

/* Of rows that can end functions. */
static inline bool spill_layouts_end_with(enum spill_op op)
{
	return op == SPILL_OP_UNLOAD || op == SPILL_OP_CONTEXT_DESTROY || op == SPILL_OP_PRIMARY_RELEASE ||
	       op == SPILL_OP_PRIMARY_RESET || op == SPILL_OP_DEVICE_RESET;
}

#endif

/*
 * Layouts of kernel parameters: which entries of a launch's parameter array can hold pointers. The
 * driver tells the layout once, and it is kept by function handle.
 *
 * A layout is never used for another function with the same handle. Every call that can end a
 * function has a row, which forgets all layouts before the driver is called.
 */
#ifndef SPILL_LAYOUTS_H
#define SPILL_LAYOUTS_H

#include <stdbool.h>
#include <stdint.h>

#include "hooks.h"

/* A parameter of 8 bytes or more, which can hold a pointer. */
struct spill_layout_part {
	uint16_t index; /* in kernelParams */
	uint16_t words; /* each of 8 bytes */
};

struct spill_layout {
	const void *function;
	_Atomic uint64_t generation; /* valid while it equals the current one */
	/* the layout that this one replaced; another thread may be reading it */
	struct spill_layout *older;
	uint32_t count;
	struct spill_layout_part parts[];
};

/*
 * The layout of a CUfunction or CUkernel. It stays valid at least until the function ends. NULL:
 * the driver cannot tell (before CUDA 12.4), returns an error, or there are too many layouts. Keeps
 * errno.
 */
const struct spill_layout *spill_layout_of(const void *function);

/*
 * Stores the bytes of each parameter of a CUfunction or CUkernel. Asks the driver each time. False: it
 * cannot tell, or returns an error. pre: this thread's calls are our own (spill_ours_begin)
 */
#define SPILL_LAYOUT_PARAMETERS 512
bool spill_layout_sizes(const void *function, uint16_t sizes[SPILL_LAYOUT_PARAMETERS], uint32_t *count);

/* Forgets all layouts. Call it before the driver ends functions. */
void spill_layouts_forget(void);

/* True for operations that can end functions. */
static inline bool spill_layouts_end_with(enum spill_op op)
{
	return op == SPILL_OP_UNLOAD || op == SPILL_OP_CONTEXT_DESTROY || op == SPILL_OP_PRIMARY_RELEASE ||
	       op == SPILL_OP_PRIMARY_RESET || op == SPILL_OP_DEVICE_RESET;
}

#endif

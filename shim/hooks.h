/*
 * The table of hooks.def as C: one enumerator, one row and one set of stubs per line. See hooks.def for the columns.
 */
#ifndef SPILL_HOOKS_H
#define SPILL_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "request.h"

enum spill_hook {
#define HOOK(domain, ret, symbol, ...) SPILL_HOOK_##symbol,
#include "hooks.def"
	SPILL_HOOKS
};

enum spill_variant { SPILL_VARIANT_LEGACY, SPILL_VARIANT_PTDS, SPILL_VARIANT_PTSZ };

struct spill_row {
	enum spill_domain domain;
	const char *symbol, *base;
	int since;
	enum spill_variant variant;
	enum spill_op op;
	void *stub[SPILL_WAYS_COUNT]; /* what callers by each way get; LINK is the exported symbol itself */
};

extern const struct spill_row spill_rows[SPILL_HOOKS];

/* Calls seen, by row and way in. */
extern _Atomic uint64_t spill_row_hits[SPILL_HOOKS][SPILL_WAYS_COUNT];

/* As spill_runtime_ready, with what src needs of the shim. */
bool spill_shim_ready(void);

/* The row of an exported symbol, or NULL. */
const struct spill_row *spill_row_of(const char *symbol);

/*
 * The rows of a base, one a call, in the table's order; NULL after the last. Begins with *at = 0.
 */
const struct spill_row *spill_row_of_base(const char *base, unsigned *at);

static inline int spill_row_index(const struct spill_row *row)
{
	return (int)(row - spill_rows);
}

/* True if the address is one of the row's stubs: somebody resolved us already. */
bool spill_row_has_stub(const struct spill_row *row, const void *address);

#endif

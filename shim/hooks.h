/*
 * shim: the exported functions. It puts a stub in front of each vendor function. The stub hands the
 * call to the engine as a request, and calls the real function when the engine says so. The shim
 * also finds real functions, and reads from arguments which memory a call uses.
 *
 * It never decides about memory, and never loads or initialises a driver. Without a decision to
 * change it, a call passes through exactly.
 *
 * Begin with hooks.def, the table. Then read stubs.c (a row as a function), lookup.c (dlsym and the
 * resolvers) and work.h (fast stubs). This header gives the table to C.
 */
#ifndef SPILL_HOOKS_H
#define SPILL_HOOKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "libc_symbol.h"
#include "request.h"

enum spill_hook {
#define HOOK(domain, ret, symbol, ...) SPILL_HOOK_##symbol,
#include "hooks.def"
	SPILL_HOOKS
};

enum spill_variant { SPILL_VARIANT_LEGACY, SPILL_VARIANT_PTDS, SPILL_VARIANT_PTSZ };

/*
 * Names are arrays, not pointers: the loader writes to each page that holds a pointer, and every
 * process pays for it, also one that never uses a GPU.
 */
#define SPILL_SYMBOL_MAX 48
struct spill_row {
	char symbol[SPILL_SYMBOL_MAX], base[SPILL_SYMBOL_MAX];
	enum spill_domain domain;
	int since;
	enum spill_variant variant;
	enum spill_op op;
};

extern const struct spill_row spill_rows[SPILL_HOOKS];

/* Our function for callers of that way. LINK: what we export, also where another preload exports the same. */
void *spill_stub(enum spill_hook hook, enum spill_way way);

extern _Atomic uint64_t spill_row_hits[SPILL_HOOKS][SPILL_WAYS_COUNT];

/* spill_runtime_ready with the shim's functions. */
bool spill_shim_ready(void);

static inline int spill_row_index(const struct spill_row *row)
{
	return (int)(row - spill_rows);
}

bool spill_row_has_stub(const struct spill_row *row, const void *address);

/* Called by dlsym.S. Returns our stub. NULL: jump to spill_dlsym_real, which this has set. */
void *spill_dlsym_find(void *handle, const char *name, const void *caller);
extern spill_dlsym_fn *spill_dlsym_real;

/* Replaces a resolved address by our stub, if a row has exactly this ABI. */
void spill_lookup_substitute(const struct spill_request *request);

/* Writes a note if another dlsym precedes ours: its look-ups may bypass us. */
void spill_lookup_note_wrapper(void);

#endif

#ifndef SPILL_LOOKUP_H
#define SPILL_LOOKUP_H

#include "hooks.h"
#include "libc_symbol.h"

/*
 * Called by the assembly in dlsym.S: our stub, or NULL to tail-jump to spill_dlsym_real, which this sets.
 */
void *spill_dlsym_find(void *handle, const char *name, const void *caller);
extern spill_dlsym_fn *spill_dlsym_real;

/* Replaces the vendor's address in a successful RESOLVE request by our stub, where the table has that very ABI. */
void spill_lookup_substitute(const struct spill_request *request);

/* Notes a dlsym that the program finds before ours: what it looks up there may go past us. */
void spill_lookup_note_wrapper(void);

#endif
